"""Earlier tasks: their one draw among the draws; what the detectors agreed on, beside the label that it was."""

from django.db import migrations
from django.db.models import F, OuterRef, Subquery


def fill(apps, schema_editor):
    task, unit = apps.get_model("annotate", "Task"), apps.get_model("annotate", "Unit")
    for each in task.objects.all():
        each.draws.add(each.draw_id)
    # They were not audited: their limit is never passed, and nothing is said of their agreement.
    task.objects.update(audit_share=0, audit_least=0)
    unit.objects.filter(stage="AGREED").update(agreed_label=F("label"))
    original = unit.objects.filter(pk=OuterRef("copy_of")).values("agreed_label")
    unit.objects.filter(stage="COPIED").update(agreed_label=Subquery(original))


class Migration(migrations.Migration):
    dependencies = [("annotate", "0003_several_draws")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
