"""Earlier tasks: their guidelines are the first version, in English."""

from django.db import migrations


def fill(apps, schema_editor):
    task, guidelines = apps.get_model("annotate", "Task"), apps.get_model("annotate", "Guidelines")
    guidelines.objects.bulk_create(
        guidelines(task_id=pk, language="en", text=text) for pk, text in task.objects.values_list("pk", "guidelines")
    )


class Migration(migrations.Migration):
    dependencies = [("annotate", "0006_crowd")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
