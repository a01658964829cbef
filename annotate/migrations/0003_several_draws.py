"""A task may have a draw a language, ask about one language at a time, and audit the detectors' agreement."""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotate", "0002_routes"), ("corpora", "0001_corpora")]
    operations = [
        migrations.AddField(
            model_name="lease",
            name="sheet",
            field=models.BooleanField(default=False, help_text="handed out among others on one sheet"),
        ),
        migrations.AddField(
            model_name="task",
            name="audit_least",
            field=models.PositiveIntegerField(
                default=30, help_text="and how many in each language at least, if there are as many"
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="audit_limit",
            field=models.FloatField(
                default=0.1,
                help_text="where more than this may be wrong in a language (upper end of 95%), people label all of it",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="audit_recheck",
            field=models.FloatField(
                default=0.2,
                help_text="of those, how many an adjudicator checks though the reader confirms",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="audit_share",
            field=models.FloatField(
                default=0.02,
                help_text="of the posts that the detectors agree on, how many people check",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="decoy_share",
            field=models.FloatField(
                default=0.05,
                help_text="posts with a known answer, for each post that is verified",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="draws",
            field=models.ManyToManyField(
                help_text="of one corpus and one design", related_name="tasks", to="corpora.draw"
            ),
        ),
        migrations.AddField(
            model_name="unit",
            name="agreed_label",
            field=models.CharField(blank=True, help_text="what the detectors agreed on, if they did", max_length=16),
        ),
        migrations.AddField(
            model_name="unit",
            name="asked",
            field=models.CharField(
                blank=True,
                help_text="the language that is asked about: Is this X?; empty where any may be said",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="unit",
            name="audited",
            field=models.BooleanField(default=False, help_text="chosen by chance to audit the detectors' agreement"),
        ),
        migrations.AddField(
            model_name="unit",
            name="gold_answer",
            field=models.CharField(
                blank=True, help_text="known beforehand: hidden among the work, and never exported", max_length=64
            ),
        ),
        migrations.AddField(
            model_name="unit",
            name="recheck",
            field=models.BooleanField(default=False, help_text="if audited, an adjudicator checks it in any case"),
        ),
        migrations.AddField(
            model_name="unit",
            name="reused_from",
            field=models.ForeignKey(
                blank=True,
                help_text="the unit of another task whose label it took",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="reused_as",
                to="annotate.unit",
            ),
        ),
    ]
