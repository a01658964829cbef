"""A task's guidelines are rows of their own, and no longer a field."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotate", "0007_guidelines")]
    operations = [
        migrations.RemoveField(model_name="task", name="guidelines"),
        migrations.AlterField(
            model_name="guidelines",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="guidelines", to="annotate.task"
            ),
        ),
    ]
