"""What earlier tasks have is moved: their one draw goes, and the database refuses what must not be."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotate", "0004_earlier_tasks")]
    operations = [
        migrations.RemoveConstraint(
            model_name="unit",
            name="item_once_in_task",
        ),
        migrations.RemoveField(
            model_name="task",
            name="draw",
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.UniqueConstraint(fields=("task", "item", "asked"), name="item_asked_once_in_task"),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("agreed_label", ""), _negated=True),
                    models.Q(models.Q(("stage", "AGREED"), _negated=True), ("audited", False), ("recheck", False)),
                    _connector="OR",
                ),
                name="agreed_on_a_label",
            ),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("gold_answer", ""),
                    models.Q(("copy_of__isnull", True), ("reused_from__isnull", True)),
                    _connector="OR",
                ),
                name="gold_answer_stands_alone",
            ),
        ),
    ]
