"""Earlier tasks: their guidelines are the first version, in English."""

from django.db import migrations


def fill(apps, schema_editor):
    task, guidelines = apps.get_model("annotate", "Task"), apps.get_model("annotate", "Guidelines")
    guidelines.objects.bulk_create(
        guidelines(task_id=pk, language="en", text=text) for pk, text in task.objects.values_list("pk", "guidelines")
    )


def empty(apps, schema_editor):
    task, guidelines = apps.get_model("annotate", "Task"), apps.get_model("annotate", "Guidelines")
    for each in guidelines.objects.filter(language="en").order_by("major", "minor"):
        task.objects.filter(pk=each.task_id).update(guidelines=each.text)
    guidelines.objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [("annotate", "0006_crowd")]
    operations = [migrations.RunPython(fill, empty)]
