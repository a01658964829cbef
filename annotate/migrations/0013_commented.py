from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotate", "0012_done_today"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="judgment",
            index=models.Index(condition=models.Q(("comment", ""), _negated=True), fields=["id"], name="commented"),
        ),
    ]
