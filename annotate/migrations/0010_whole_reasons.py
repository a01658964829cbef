"""Each of several reasons for a pause, whole."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotate", "0009_honeypots_index")]

    operations = [
        migrations.AlterField(
            model_name="pause",
            name="reason",
            field=models.TextField(blank=True, help_text="those that managers gave; empty where the rule paused"),
        ),
    ]
