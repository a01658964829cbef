"""Records: several answers a unit, guidelines by version, gold answers, the test, pauses."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotate", "0005_several_draws_only"),
        ("corpora", "0003_records"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="GoldAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "purpose",
                    models.CharField(
                        choices=[("practice", "practice"), ("test", "test"), ("queue", "queue")], max_length=8
                    ),
                ),
                ("label", models.CharField(max_length=64)),
                ("explanation", models.TextField(blank=True, help_text="why, in the language of the record")),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Guidelines",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16)),
                (
                    "major",
                    models.PositiveSmallIntegerField(
                        default=1, help_text="a new one changes what is right: everybody takes the test again"
                    ),
                ),
                ("minor", models.PositiveSmallIntegerField(default=0, help_text="a new one says the same better")),
                ("text", models.TextField(help_text="Markdown")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "guidelines",
                "ordering": ["language", "-major", "-minor"],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("right", models.PositiveIntegerField(help_text="known answers given, since the pause before")),
                ("asked", models.PositiveIntegerField(help_text="of so many asked for")),
                (
                    "reason",
                    models.CharField(blank=True, help_text="a manager's; empty where the rule paused", max_length=200),
                ),
                ("at", models.DateTimeField()),
                ("lifted_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Qualification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16)),
                ("major", models.PositiveSmallIntegerField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Trial",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16)),
                ("kind", models.CharField(choices=[("practice", "practice"), ("test", "test")], max_length=8)),
                (
                    "number",
                    models.PositiveSmallIntegerField(help_text="1 for the first of its kind under a major version"),
                ),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("right", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("passed", models.BooleanField(blank=True, null=True)),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="TrialAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField()),
                ("label", models.CharField(blank=True, max_length=64)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.RemoveConstraint(
            model_name="judgment",
            name="one_live_judgment",
        ),
        migrations.RemoveConstraint(
            model_name="judgment",
            name="answer_or_skip",
        ),
        migrations.RemoveConstraint(
            model_name="judgment",
            name="annotators_judge_by_lease",
        ),
        migrations.AddField(
            model_name="judgment",
            name="voided_by",
            field=models.ForeignKey(
                blank=True,
                help_text="the manager who voided it; nobody where it was taken back",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="aggregation",
            field=models.CharField(
                choices=[("majority", "majority"), ("median", "median")],
                default="majority",
                help_text="from answers to a label; the median is for grades",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="extra_answers",
            field=models.PositiveSmallIntegerField(
                default=0,
                help_text="answers asked for beyond that, where none prevails",
                validators=[django.core.validators.MaxValueValidator(2)],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="gold_share",
            field=models.FloatField(
                default=0.0,
                help_text="of what a person is given, how much has a known answer",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(0.5),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="languages",
            field=models.JSONField(
                blank=True, default=list, help_text="of the records; empty where the labels are the languages"
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="overlap_share",
            field=models.FloatField(
                default=0.0,
                help_text="of the posts that one person reads, how many a second one reads too",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="pass_mark",
            field=models.FloatField(
                default=0.8,
                help_text="share of them to be answered rightly",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="pause_below",
            field=models.FloatField(
                default=0.7,
                help_text="pause who answers less than this share of the known ones rightly",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="pause_confidence",
            field=models.FloatField(
                default=0.95,
                help_text="once it is so certain",
                validators=[
                    django.core.validators.MinValueValidator(0.5),
                    django.core.validators.MaxValueValidator(0.999),
                ],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="pause_least",
            field=models.PositiveSmallIntegerField(
                default=8,
                help_text="and they have answered so many",
                validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(99)],
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="stop_early",
            field=models.BooleanField(
                default=False,
                help_text="ask only as many people as can settle it, and the others where they do not agree",
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="test_items",
            field=models.PositiveSmallIntegerField(default=0, help_text="questions of the test; 0: nobody is tested"),
        ),
        migrations.AddField(
            model_name="task",
            name="tries",
            field=models.PositiveSmallIntegerField(
                default=3,
                help_text="tests that one person may take",
                validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(99)],
            ),
        ),
        migrations.AddField(
            model_name="unit",
            name="honeypot",
            field=models.BooleanField(
                default=False,
                help_text="a gold answer that everybody is asked for, again and again, and that gets no label",
            ),
        ),
        migrations.AlterField(
            model_name="judgment",
            name="kind",
            field=models.CharField(
                choices=[
                    ("answer", "answer"),
                    ("skip", "skip"),
                    ("settle", "settle"),
                    ("discard", "discard"),
                    ("repeat", "repeat"),
                ],
                max_length=8,
            ),
        ),
        migrations.AlterField(
            model_name="lease",
            name="outcome",
            field=models.CharField(
                blank=True,
                choices=[
                    ("answered", "answered"),
                    ("skipped", "skipped"),
                    ("released", "released"),
                    ("expired", "expired"),
                    ("undone", "undone"),
                    ("voided", "voided"),
                ],
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="labels",
            field=models.JSONField(
                help_text="what may be answered: codes of languages, besides und, or a record's labels"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.UniqueConstraint(
                condition=models.Q(("voided_at__isnull", True), models.Q(("kind", "repeat"), _negated=True)),
                fields=("unit", "annotator"),
                name="one_live_judgment",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.CheckConstraint(
                condition=models.Q(("voided_by__isnull", True), ("voided_at__isnull", False), _connector="OR"),
                name="voided_by_when_voided",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind__in", ["answer", "settle", "repeat"]), models.Q(("label", ""), _negated=True)),
                    models.Q(("kind__in", ["skip", "discard"]), ("label", "")),
                    _connector="OR",
                ),
                name="answer_or_skip",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind__in", ["answer", "skip"]), ("lease__isnull", False)),
                    models.Q(("kind__in", ["settle", "discard", "repeat"]), ("lease__isnull", True)),
                    _connector="OR",
                ),
                name="annotators_judge_by_lease",
            ),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("honeypot", False),
                    models.Q(("stage", "QUEUED"), models.Q(("gold_answer", ""), _negated=True)),
                    _connector="OR",
                ),
                name="honeypot_stays_queued",
            ),
        ),
        migrations.AddField(
            model_name="goldanswer",
            name="item",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="gold_answers", to="corpora.item"
            ),
        ),
        migrations.AddField(
            model_name="goldanswer",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="gold_answers", to="annotate.task"
            ),
        ),
        migrations.AddField(
            model_name="guidelines",
            name="task",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotate.task"),
        ),
        migrations.AddField(
            model_name="pause",
            name="annotator",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="pauses", to="annotate.annotator"
            ),
        ),
        migrations.AddField(
            model_name="pause",
            name="by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="pauses_ordered",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="pause",
            name="lifted_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="pauses_lifted",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="pause",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="pauses", to="annotate.task"
            ),
        ),
        migrations.AddField(
            model_name="qualification",
            name="annotator",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="qualifications", to="annotate.annotator"
            ),
        ),
        migrations.AddField(
            model_name="qualification",
            name="granted_by",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="qualification",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="qualifications", to="annotate.task"
            ),
        ),
        migrations.AddField(
            model_name="trial",
            name="annotator",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="trials", to="annotate.annotator"
            ),
        ),
        migrations.AddField(
            model_name="trial",
            name="guidelines",
            field=models.ForeignKey(
                help_text="the version it was taken under",
                on_delete=django.db.models.deletion.PROTECT,
                to="annotate.guidelines",
            ),
        ),
        migrations.AddField(
            model_name="trial",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="trials", to="annotate.task"
            ),
        ),
        migrations.AddField(
            model_name="qualification",
            name="trial",
            field=models.OneToOneField(
                blank=True,
                help_text="that was passed",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="annotate.trial",
            ),
        ),
        migrations.AddField(
            model_name="trialanswer",
            name="gold_answer",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="trial_answers", to="annotate.goldanswer"
            ),
        ),
        migrations.AddField(
            model_name="trialanswer",
            name="trial",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="answers", to="annotate.trial"
            ),
        ),
        migrations.AddConstraint(
            model_name="goldanswer",
            constraint=models.UniqueConstraint(fields=("task", "item"), name="gold_answer_once_in_task"),
        ),
        migrations.AddConstraint(
            model_name="guidelines",
            constraint=models.UniqueConstraint(
                fields=("task", "language", "major", "minor"), name="version_once_in_task_and_language"
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.UniqueConstraint(
                condition=models.Q(("lifted_at__isnull", True)), fields=("annotator", "task"), name="one_running_pause"
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.CheckConstraint(
                condition=models.Q(("right__lte", models.F("asked"))), name="right_of_those_asked"
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.UniqueConstraint(
                condition=models.Q(("finished_at__isnull", True)),
                fields=("annotator", "task", "language", "kind"),
                name="one_open_trial",
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at__isnull", True), ("passed__isnull", True), ("right__isnull", True)),
                    models.Q(("finished_at__isnull", False), ("passed__isnull", False), ("right__isnull", False)),
                    _connector="OR",
                ),
                name="trial_judged_when_finished",
            ),
        ),
        migrations.AddConstraint(
            model_name="qualification",
            constraint=models.UniqueConstraint(
                fields=("annotator", "task", "language", "major"), name="qualified_once_under_a_version"
            ),
        ),
        migrations.AddConstraint(
            model_name="qualification",
            constraint=models.CheckConstraint(
                condition=models.Q(("trial__isnull", False), ("granted_by__isnull", False), _connector="OR"),
                name="qualified_by_test_or_manager",
            ),
        ),
        migrations.AddConstraint(
            model_name="trialanswer",
            constraint=models.UniqueConstraint(fields=("trial", "position"), name="one_question_per_position"),
        ),
        migrations.AddConstraint(
            model_name="trialanswer",
            constraint=models.UniqueConstraint(fields=("trial", "gold_answer"), name="question_once_in_trial"),
        ),
        migrations.AddConstraint(
            model_name="trialanswer",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("answered_at__isnull", True), ("label", "")),
                    models.Q(models.Q(("label", ""), _negated=True), ("answered_at__isnull", False)),
                    _connector="OR",
                ),
                name="trial_answer_has_a_time",
            ),
        ),
    ]
