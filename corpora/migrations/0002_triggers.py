"""Draws of unread triggers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("corpora", "0001_corpora"),
    ]

    operations = [
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
                ],
                max_length=16,
            ),
        ),
    ]
