from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotate", "0018_outcomes_of_drawn_units"),
    ]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="in_place",
            field=models.BooleanField(
                default=False,
                help_text="a gold answer that somebody gave back, handed out in place of the unit for which it "
                "stands: the person is not asked about that unit, unless nothing else is left",
            ),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(condition=models.Q(("in_place", True)), fields=["annotator"], name="in_place"),
        ),
    ]
