import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotate", "0016_channel"),
        ("corpora", "0006_fewer_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="unit",
            name="item_asked_once_in_task",
        ),
        migrations.AlterField(
            model_name="judgment",
            name="annotator",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="judgments",
                to="annotate.annotator",
            ),
        ),
        migrations.AlterField(
            model_name="judgment",
            name="voided_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="the manager who voided it; empty if the annotator took it back",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="lease",
            name="instead_of",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="the unit of work that the person would have been given in place of this gold answer",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="stand_ins",
                to="annotate.unit",
            ),
        ),
        migrations.AlterField(
            model_name="transition",
            name="by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="transition",
            name="judgment",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="annotate.judgment",
            ),
        ),
        migrations.AlterField(
            model_name="unit",
            name="copy_of",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="copies",
                to="annotate.unit",
            ),
        ),
        migrations.AlterField(
            model_name="unit",
            name="item",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="units", to="corpora.item"
            ),
        ),
        migrations.AlterField(
            model_name="unit",
            name="reused_from",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="the unit of another task from which it took its label",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="reused_as",
                to="annotate.unit",
            ),
        ),
        migrations.AlterField(
            model_name="unit",
            name="task",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="units", to="annotate.task"
            ),
        ),
        migrations.AddIndex(
            model_name="judgment",
            index=models.Index(condition=models.Q(("voided_by__isnull", False)), fields=["voided_by"], name="voided"),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(
                condition=models.Q(("instead_of__isnull", False)), fields=["instead_of"], name="stand_ins"
            ),
        ),
        migrations.AddIndex(
            model_name="transition",
            index=models.Index(
                condition=models.Q(("judgment__isnull", False)), fields=["judgment"], name="moved_by_judgment"
            ),
        ),
        migrations.AddIndex(
            model_name="transition",
            index=models.Index(condition=models.Q(("by__isnull", False)), fields=["by"], name="moved_by"),
        ),
        migrations.AddIndex(
            model_name="unit",
            index=models.Index(condition=models.Q(("copy_of__isnull", False)), fields=["copy_of"], name="copies"),
        ),
        migrations.AddIndex(
            model_name="unit",
            index=models.Index(
                condition=models.Q(("reused_from__isnull", False)), fields=["reused_from"], name="reused"
            ),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.UniqueConstraint(
                fields=("item", "task", "asked", "pair"), name="item_asked_once_in_task"
            ),
        ),
    ]
