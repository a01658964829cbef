"""All of annotate's tables, and the routing that the article's label list asks for.

That list is finer than the detectors in places, or unknown to them.
"""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import annotate.models.people
import annotate.models.tasks

# language, queue, tried after it, never agree
ROUTES = [
    ("zh-CN", "zh", [], False),
    ("zh-TW", "zh", [], False),
    # The detectors tell these apart by spelling alone; people who read one read all three.
    ("bs", "hr", [], True),
    ("hr", "hr", [], True),
    ("sr", "hr", [], True),
    # No detector names Hindi in Latin script.
    ("hi", "hi", ["hi-Latn"], False),
    # Posts in which no detector sees a language: emoticons, links, names.
    ("und", "en", [], False),
]


def add(apps, schema_editor):
    route = apps.get_model("annotate", "LanguageRoute")
    route.objects.bulk_create(
        route(language=language, queue=queue, extra_candidates=extra, never_agree=never)
        for language, queue, extra, never in ROUTES
    )


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("corpora", "0001_corpora"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LanguageRoute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16, unique=True)),
                (
                    "queue",
                    models.CharField(
                        help_text="the queue in which its posts wait; languages that name the same queue share it",
                        max_length=16,
                    ),
                ),
                (
                    "extra_candidates",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="languages to try after this one although no detector names them: hi-Latn after hi",
                    ),
                ),
                (
                    "never_agree",
                    models.BooleanField(
                        default=False,
                        help_text="in tasks opened from now on, the detectors' agreement on this language does not count",
                    ),
                ),
            ],
            options={
                "ordering": ["language"],
            },
        ),
        migrations.CreateModel(
            name="Annotator",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "pseudonym",
                    models.CharField(
                        default=annotate.models.people.new_pseudonym, editable=False, max_length=40, unique=True
                    ),
                ),
                (
                    "adjudicates",
                    models.BooleanField(
                        default=False,
                        help_text="may open the adjudication list, where votes and others' judgments are shown",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "ordering": ["user__username"],
            },
        ),
        migrations.CreateModel(
            name="Invite",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="invites", to="annotate.annotator"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("place", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("round", models.PositiveSmallIntegerField()),
                ("queue", models.CharField(max_length=16)),
                ("sheet", models.BooleanField(default=False, help_text="handed out with others on one sheet")),
                ("opened_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "outcome",
                    models.CharField(
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
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="leases", to="annotate.annotator"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Judgment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
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
                ("label", models.TextField(blank=True, help_text="the canonical text of the answer")),
                ("reason", models.CharField(blank=True, max_length=200)),
                ("comment", models.TextField(blank=True)),
                ("shown_at", models.DateTimeField(null=True)),
                ("answered_at", models.DateTimeField()),
                (
                    "active_seconds",
                    models.FloatField(
                        help_text="working time on it without idle time; null if not measured", null=True
                    ),
                ),
                ("voided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="judgments", to="annotate.annotator"
                    ),
                ),
                (
                    "voided_by",
                    models.ForeignKey(
                        blank=True,
                        help_text="the manager who voided it; empty if the annotator took it back",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "lease",
                    models.OneToOneField(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to="annotate.lease"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=64, unique=True)),
                ("title", models.CharField(max_length=200)),
                ("kind_slug", models.CharField(max_length=64, verbose_name="kind")),
                (
                    "kind_file",
                    models.TextField(
                        blank=True,
                        help_text="the TOML file of its kind when the task was opened; later edits of the file change nothing",
                    ),
                ),
                (
                    "labels",
                    models.JSONField(
                        help_text="what may be answered: language codes, in addition to und, or a record's labels"
                    ),
                ),
                (
                    "languages",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="the records' languages; empty if the labels are the languages",
                    ),
                ),
                ("is_open", models.BooleanField(default=True, help_text="a closed task hands out no more work")),
                ("options", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "draws",
                    models.ManyToManyField(
                        help_text="draws from one corpus and by one design", related_name="tasks", to="corpora.draw"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
            bases=(annotate.models.tasks._Options, models.Model),
        ),
        migrations.CreateModel(
            name="Guidelines",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16)),
                (
                    "major",
                    models.PositiveSmallIntegerField(
                        default=1, help_text="a new major version changes what is right: everybody takes the test again"
                    ),
                ),
                (
                    "minor",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="a new minor version says the same thing better"
                    ),
                ),
                ("text", models.TextField(help_text="Markdown")),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="guidelines", to="annotate.task"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "guidelines",
                "ordering": ["language", "-major", "-minor"],
            },
        ),
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
                ("label", models.TextField(help_text="the canonical text of the right answer")),
                (
                    "explanation",
                    models.TextField(blank=True, help_text="why it is right, in the language of the record"),
                ),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="gold_answers", to="corpora.item"
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="gold_answers", to="annotate.task"
                    ),
                ),
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
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="trials", to="annotate.annotator"
                    ),
                ),
                (
                    "guidelines",
                    models.ForeignKey(
                        help_text="the version under which it was taken",
                        on_delete=django.db.models.deletion.PROTECT,
                        to="annotate.guidelines",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="trials", to="annotate.task"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Qualification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16)),
                ("major", models.PositiveSmallIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="qualifications",
                        to="annotate.annotator",
                    ),
                ),
                (
                    "granted_by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="qualifications", to="annotate.task"
                    ),
                ),
                (
                    "trial",
                    models.OneToOneField(
                        blank=True,
                        help_text="the test that was passed",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="annotate.trial",
                    ),
                ),
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
                ("label", models.TextField(blank=True)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "gold_answer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="trial_answers",
                        to="annotate.goldanswer",
                    ),
                ),
                (
                    "trial",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="answers", to="annotate.trial"
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="Unit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "asked",
                    models.CharField(
                        blank=True,
                        help_text="the language that the question names (Is this X?); empty if any language may be answered",
                        max_length=16,
                    ),
                ),
                (
                    "position",
                    models.PositiveBigIntegerField(help_text="rank in the draw, by which it is handed out"),
                ),
                (
                    "stage",
                    models.CharField(
                        choices=[
                            ("NEW", "NEW"),
                            ("COPIED", "COPIED"),
                            ("AGREED", "AGREED"),
                            ("QUEUED", "QUEUED"),
                            ("ADJUDICATION", "ADJUDICATION"),
                            ("LABELLED", "LABELLED"),
                            ("DISCARDED", "DISCARDED"),
                        ],
                        default="NEW",
                        max_length=16,
                    ),
                ),
                ("redundancy", models.PositiveSmallIntegerField(help_text="how many answers it asks for")),
                ("candidates", models.JSONField(default=list, help_text="languages, most likely first")),
                ("visited", models.JSONField(default=list, help_text="queues that the unit has been in")),
                ("round", models.PositiveSmallIntegerField(default=0)),
                (
                    "language",
                    models.CharField(blank=True, help_text="the queue in which it is, or was last", max_length=16),
                ),
                ("label", models.TextField(blank=True, help_text="the canonical text of its final answer")),
                (
                    "agreed_label",
                    models.CharField(
                        blank=True, help_text="the label on which the detectors agreed, if they did", max_length=64
                    ),
                ),
                (
                    "audited",
                    models.BooleanField(default=False, help_text="chosen by chance to audit the detectors' agreement"),
                ),
                (
                    "recheck",
                    models.BooleanField(
                        default=False, help_text="an adjudicator checks it in any case, if it is audited"
                    ),
                ),
                (
                    "known_answer",
                    models.TextField(
                        blank=True,
                        help_text="the known answer of a hidden decoy or gold answer; such a unit is never exported",
                    ),
                ),
                (
                    "honeypot",
                    models.BooleanField(
                        default=False,
                        help_text="a gold answer that is asked of everybody and never gets a label",
                    ),
                ),
                (
                    "copy_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="copies",
                        to="annotate.unit",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="units", to="corpora.item"
                    ),
                ),
                (
                    "reused_from",
                    models.ForeignKey(
                        blank=True,
                        help_text="the unit of another task from which it took its label",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reused_as",
                        to="annotate.unit",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="units", to="annotate.task"
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
            },
        ),
        migrations.CreateModel(
            name="Transition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event", models.CharField(max_length=16)),
                ("from_stage", models.CharField(max_length=16)),
                ("to_stage", models.CharField(max_length=16)),
                ("round", models.PositiveSmallIntegerField()),
                ("language", models.CharField(blank=True, max_length=16)),
                ("label", models.TextField(blank=True)),
                ("at", models.DateTimeField()),
                (
                    "by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "judgment",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to="annotate.judgment"
                    ),
                ),
                (
                    "unit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="transitions", to="annotate.unit"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddField(
            model_name="lease",
            name="unit",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="leases", to="annotate.unit"
            ),
        ),
        migrations.AddField(
            model_name="judgment",
            name="unit",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="judgments", to="annotate.unit"
            ),
        ),
        migrations.CreateModel(
            name="AnnotatorLanguage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16)),
                (
                    "level",
                    models.PositiveSmallIntegerField(
                        default=5,
                        help_text="0 (none) to 5 (native); a task serves those at its least level and above",
                        validators=[django.core.validators.MaxValueValidator(5)],
                    ),
                ),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="languages", to="annotate.annotator"
                    ),
                ),
            ],
            options={
                "ordering": ["-level", "language"],
                "constraints": [
                    models.UniqueConstraint(fields=("annotator", "language"), name="language_once_per_annotator"),
                    models.CheckConstraint(condition=models.Q(("level__lte", 5)), name="level_0_to_5"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "right",
                    models.PositiveIntegerField(
                        help_text="how many known answers were given rightly since the previous pause"
                    ),
                ),
                ("asked", models.PositiveIntegerField(help_text="how many known answers were asked for")),
                (
                    "reason",
                    models.TextField(blank=True, help_text="the managers' reasons; empty if the rule paused"),
                ),
                ("at", models.DateTimeField()),
                ("lifted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="pauses", to="annotate.annotator"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pauses_ordered",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "lifted_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pauses_lifted",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="pauses", to="annotate.task"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("lifted_at__isnull", True)),
                        fields=("annotator", "task"),
                        name="one_running_pause",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("right__lte", models.F("asked"))), name="right_of_those_asked"
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="guidelines",
            constraint=models.UniqueConstraint(
                fields=("task", "language", "major", "minor"), name="version_once_in_task_and_language"
            ),
        ),
        migrations.AddConstraint(
            model_name="goldanswer",
            constraint=models.UniqueConstraint(fields=("task", "item"), name="gold_answer_once_in_task"),
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
        migrations.AddIndex(
            model_name="unit",
            index=models.Index(fields=["task", "stage", "language", "position"], name="queue"),
        ),
        migrations.AddIndex(
            model_name="unit",
            index=models.Index(condition=models.Q(("honeypot", True)), fields=["task", "language"], name="honeypots"),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.UniqueConstraint(fields=("task", "item", "asked"), name="item_asked_once_in_task"),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("stage__in", ["NEW", "COPIED", "AGREED", "QUEUED", "ADJUDICATION", "LABELLED", "DISCARDED"])
                ),
                name="known_stage",
            ),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("stage__in", ("AGREED", "LABELLED")), models.Q(("label", ""), _negated=True)),
                    models.Q(models.Q(("stage__in", ("AGREED", "LABELLED")), _negated=True), ("label", "")),
                    _connector="OR",
                ),
                name="label_only_where_labelled",
            ),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("stage", "QUEUED"), _negated=True),
                    models.Q(models.Q(("language", ""), _negated=True), ("round__gte", 1)),
                    _connector="OR",
                ),
                name="queued_somewhere",
            ),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("copy_of__isnull", False), ("stage", "COPIED")),
                    models.Q(models.Q(("stage", "COPIED"), _negated=True), ("copy_of__isnull", True)),
                    _connector="OR",
                ),
                name="copied_has_original",
            ),
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
                    ("known_answer", ""),
                    models.Q(("copy_of__isnull", True), ("reused_from__isnull", True)),
                    _connector="OR",
                ),
                name="known_answer_stands_alone",
            ),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(condition=models.Q(("redundancy__gte", 1)), name="unit_asks_somebody"),
        ),
        migrations.AddConstraint(
            model_name="unit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("honeypot", False),
                    models.Q(("stage", "QUEUED"), models.Q(("known_answer", ""), _negated=True)),
                    _connector="OR",
                ),
                name="honeypot_stays_queued",
            ),
        ),
        migrations.AddIndex(
            model_name="transition",
            index=models.Index(fields=["to_stage", "language"], name="queues_visited"),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(fields=["annotator", "closed_at"], name="open_leases"),
        ),
        migrations.AddConstraint(
            model_name="lease",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at__isnull", True)),
                fields=("unit", "annotator"),
                name="one_open_lease_per_annotator",
            ),
        ),
        migrations.AddConstraint(
            model_name="lease",
            constraint=models.UniqueConstraint(fields=("unit", "place"), name="one_holder_per_place"),
        ),
        migrations.AddConstraint(
            model_name="lease",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at__isnull", True), ("outcome", ""), ("place__gte", 1), ("place__isnull", False)),
                    models.Q(
                        ("closed_at__isnull", False),
                        ("outcome", "answered"),
                        ("place__gte", 1),
                        ("place__isnull", False),
                    ),
                    models.Q(
                        ("closed_at__isnull", False),
                        ("place__isnull", True),
                        models.Q(("outcome__in", ["", "answered"]), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="place_kept_by_open_or_answered",
            ),
        ),
        migrations.AddIndex(
            model_name="judgment",
            index=models.Index(fields=["annotator", "answered_at"], name="own_answers"),
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
            model_name="judgment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("shown_at__isnull", True), ("shown_at__lte", models.F("answered_at")), _connector="OR"
                ),
                name="shown_before_answered",
            ),
        ),
        migrations.RunPython(add, migrations.RunPython.noop),
    ]
