"""Draws by design and language, with the predictor they went by and what else they were told."""

from django.db import migrations, models


def asked_was_drawn(apps, schema_editor):
    """What was asked for was not kept before; what was drawn is the nearest to it."""
    apps.get_model("corpora", "Draw").objects.update(asked=models.F("size"))


class Migration(migrations.Migration):
    dependencies = [
        ("corpora", "0001_corpora"),
    ]

    operations = [
        migrations.AddField(
            model_name="draw",
            name="asked",
            field=models.PositiveBigIntegerField(default=0, help_text="posts asked for"),
        ),
        migrations.AddField(
            model_name="draw",
            name="language",
            field=models.CharField(blank=True, default="", help_text="drawn for; none in uniform draws", max_length=16),
        ),
        migrations.AddField(
            model_name="draw",
            name="parameters",
            field=models.JSONField(default=dict, help_text="what else the design was told, and what it found"),
        ),
        migrations.AddField(
            model_name="draw",
            name="predictor",
            field=models.CharField(
                blank=True,
                default="",
                help_text="whose labels the draw went by: a name, or name@version",
                max_length=200,
            ),
        ),
        migrations.AlterField(
            model_name="draw",
            name="design",
            field=models.CharField(
                choices=[("uniform", "uniform"), ("recall", "recall"), ("precision", "precision")], max_length=16
            ),
        ),
        migrations.RunPython(asked_was_drawn, migrations.RunPython.noop),
    ]
