"""Finding gold answers in a long queue."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotate", "0008_guidelines_only"),
        ("corpora", "0003_records"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="unit",
            index=models.Index(condition=models.Q(("honeypot", True)), fields=["task", "language"], name="honeypots"),
        ),
    ]
