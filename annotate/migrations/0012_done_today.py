import datetime

import django.db.models.deletion
from django.db import migrations, models


def forget(apps, schema_editor):
    """Rows of what was counted before, which is counted again where there is none."""
    apps.get_model("annotate", "Backlog").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("annotate", "0011_agreement"),
    ]

    operations = [
        migrations.RunPython(forget, migrations.RunPython.noop, elidable=True),
        migrations.AddField(
            model_name="backlog",
            name="day",
            field=models.DateField(default=datetime.date(1970, 1, 1), help_text="in the installation's time zone"),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="backlog",
            name="answered",
            field=models.IntegerField(default=0, help_text="answers of the day that stand"),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="backlog",
            name="skipped",
            field=models.IntegerField(default=0, help_text="skips of the day that stand"),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="lease",
            name="annotator",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="leases",
                to="annotate.annotator",
            ),
        ),
        migrations.AlterField(
            model_name="lease",
            name="unit",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="leases",
                to="annotate.unit",
            ),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(fields=["annotator", "opened_at"], name="latest_leases"),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(fields=["unit", "annotator"], name="leases_of_unit"),
        ),
    ]
