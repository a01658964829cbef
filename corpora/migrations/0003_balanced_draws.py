"""Balanced draws, and the labels that came with records."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("corpora", "0002_triggers"),
    ]

    operations = [
        migrations.AddField(
            model_name="item",
            name="declared",
            field=models.JSONField(
                blank=True, default=list, help_text="the labels that came with a record; annotators never see them"
            ),
        ),
        migrations.AlterField(
            model_name="draw",
            name="design",
            field=models.CharField(
                choices=[
                    ("uniform", "uniform"),
                    ("recall", "recall"),
                    ("precision", "precision"),
                    ("triggers", "triggers"),
                    ("records", "records"),
                    ("balanced", "balanced"),
                ],
                max_length=16,
            ),
        ),
    ]
