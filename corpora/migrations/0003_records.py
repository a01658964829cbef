"""Records of several fields beside posts: an item's declared language and its fields, and draws of records."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("corpora", "0002_designs"),
    ]

    operations = [
        migrations.AddField(
            model_name="item",
            name="fields",
            field=models.JSONField(blank=True, default=dict, help_text="a record's fields by name; none for a post"),
        ),
        migrations.AddField(
            model_name="item",
            name="language",
            field=models.CharField(
                blank=True, default="", help_text="as the record's source declares it; none for a post", max_length=16
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
                    ("records", "records"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="letters",
            field=models.PositiveIntegerField(help_text="letters in the text as the detectors read it; 0 for a record"),
        ),
    ]
