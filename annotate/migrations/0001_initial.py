"""All of annotate's tables, and the routing that the article's label list asks for.

That list is finer than the detectors in places, or unknown to them.
"""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
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
        ("corpora", "0001_initial"),
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
                        help_text="the queue for posts in the language; several languages can share one",
                        max_length=16,
                    ),
                ),
                (
                    "extra_candidates",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="languages to try after this one, even if no detector returned them, such as hi-Latn after hi",
                    ),
                ),
                (
                    "never_agree",
                    models.BooleanField(
                        default=False,
                        help_text="ignore the detectors' agreement on this language in tasks opened from now on",
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
                    "has_seen_answers",
                    models.BooleanField(
                        default=False,
                        editable=False,
                        help_text="has been an adjudicator or a task's manager, and may have seen other annotators' answers",
                    ),
                ),
                (
                    "takes_disturbing",
                    models.BooleanField(
                        default=False,
                        help_text="accepts disturbing units; other annotators never receive them",
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
                (
                    "sheet",
                    models.BooleanField(default=False, help_text="assigned on a sheet, together with other units"),
                ),
                (
                    "turn",
                    models.JSONField(
                        blank=True,
                        help_text="the random assignment of gold answers when this unit was assigned: the number of units in the language that the annotator had received, the number of gold answers among them, and units per gold answer; null if the assignment was not random",
                        null=True,
                    ),
                ),
                (
                    "in_place",
                    models.BooleanField(
                        default=False,
                        help_text="a returned gold answer that was assigned in place of another unit: the annotator receives that unit only if no other units are left",
                    ),
                ),
                (
                    "again",
                    models.BooleanField(
                        default=False,
                        help_text="opened when an answer was undone; it can be answered even if the unit has left the queue",
                    ),
                ),
                (
                    "back_after",
                    models.PositiveSmallIntegerField(
                        default=0,
                        help_text="the number of other answers before a returned unit is assigned again",
                    ),
                ),
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
                            ("flagged", "flagged"),
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
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="leases",
                        to="annotate.annotator",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("closed_at__isnull", True)), fields=["annotator"], name="open_leases"
                    ),
                    models.Index(fields=["annotator", "opened_at"], name="latest_leases"),
                    models.Index(condition=models.Q(("in_place", True)), fields=["annotator"], name="in_place"),
                ],
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
                            ("flag", "flag"),
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
                    models.FloatField(help_text="working time without idle time; null if not measured", null=True),
                ),
                ("voided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judgments",
                        to="annotate.annotator",
                    ),
                ),
                (
                    "voided_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="the manager who voided the judgment; empty if the annotator withdrew it",
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
                "indexes": [
                    models.Index(fields=["annotator", "answered_at"], name="own_answers"),
                    models.Index(condition=models.Q(("comment", ""), _negated=True), fields=["id"], name="commented"),
                    models.Index(condition=models.Q(("voided_by__isnull", False)), fields=["voided_by"], name="voided"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("voided_by__isnull", True), ("voided_at__isnull", False), _connector="OR"),
                        name="voided_by_when_voided",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                models.Q(("kind", "answer"), ("kind", "settle"), ("kind", "repeat"), _connector="OR"),
                                models.Q(("label", ""), _negated=True),
                            ),
                            models.Q(
                                models.Q(("kind", "skip"), ("kind", "flag"), ("kind", "discard"), _connector="OR"),
                                ("label", ""),
                            ),
                            _connector="OR",
                        ),
                        name="answer_or_skip",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                models.Q(("kind", "answer"), ("kind", "skip"), ("kind", "flag"), _connector="OR"),
                                ("lease__isnull", False),
                            ),
                            models.Q(
                                models.Q(("kind", "settle"), ("kind", "discard"), ("kind", "repeat"), _connector="OR"),
                                ("lease__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="annotators_judge_by_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("shown_at__isnull", True), ("shown_at__lte", models.F("answered_at")), _connector="OR"
                        ),
                        name="shown_before_answered",
                    ),
                ],
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
                        help_text="the content of the kind's TOML file when the task was opened; later edits have no effect",
                    ),
                ),
                (
                    "labels",
                    models.JSONField(
                        blank=True,
                        help_text="valid answers: language codes in addition to und, labels of records, or the names of systems and tie; empty if answers are concepts of a vocabulary",
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
                ("is_open", models.BooleanField(default=True, help_text="a closed task assigns no more units")),
                (
                    "members_only",
                    models.BooleanField(
                        default=False,
                        help_text="only members can work on the task; otherwise, everyone who reads one of its languages can",
                    ),
                ),
                ("options", models.JSONField(blank=True, default=dict)),
                (
                    "secret",
                    models.CharField(
                        default=annotate.models.tasks.new_secret,
                        editable=False,
                        help_text="the seed of all draws that affect annotators or quality control; its SHA-256 is published when the task is opened",
                        max_length=64,
                    ),
                ),
                (
                    "secret_told_at",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="when an export published the secret; draws are then predictable, so no more units are assigned",
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now,
                        editable=False,
                        help_text="null while the task is being opened",
                        null=True,
                    ),
                ),
                (
                    "draws",
                    models.ManyToManyField(
                        help_text="draws from one corpus with one design", related_name="tasks", to="corpora.draw"
                    ),
                ),
                (
                    "vocabulary",
                    models.ForeignKey(
                        blank=True,
                        help_text="the version of the vocabulary that contains the valid answers; later versions have no effect",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="corpora.vocabulary",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
            bases=(annotate.models.tasks._Options, models.Model),
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("annotator", "annotator"),
                            ("adjudicator", "adjudicator"),
                            ("manager", "manager"),
                        ],
                        default="annotator",
                        max_length=11,
                    ),
                ),
                (
                    "quota",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="maximum number of answers in the task; empty for no limit",
                        null=True,
                    ),
                ),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="annotate.annotator",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to="annotate.task"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("task", "annotator"), name="member_once_in_task"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["annotator", "adjudicator", "manager"])),
                        name="known_role_of_member",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("quota__isnull", True), ("quota__gte", 1), _connector="OR"),
                        name="quota_above_zero",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        help_text="show the note only to annotators in this language; empty: all",
                        max_length=16,
                    ),
                ),
                ("text", models.TextField()),
                ("at", models.DateTimeField()),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="notes", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="notes", to="annotate.task"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("text", ""), _negated=True), name="note_says_something")
                ],
            },
        ),
        migrations.CreateModel(
            name="Lot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("audit", "audit"),
                            ("recheck", "recheck"),
                            ("check", "check"),
                            ("overlap", "overlap"),
                            ("decoy", "decoy"),
                            ("decoy place", "decoy place"),
                            ("test", "test"),
                            ("nobody", "nobody"),
                            ("outcome", "outcome"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "of",
                    models.JSONField(default=list, help_text="the stratum, queue, language or annotator of the draw"),
                ),
                ("how", models.JSONField(default=dict, help_text="the share or number that determined the size")),
                ("frame", models.JSONField(help_text="the ids that could be drawn")),
                ("drawn", models.JSONField(help_text="the ids that were drawn")),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="drawn_lots", to="annotate.task"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "purpose__in",
                                (
                                    "audit",
                                    "recheck",
                                    "check",
                                    "overlap",
                                    "decoy",
                                    "decoy place",
                                    "test",
                                    "nobody",
                                    "outcome",
                                ),
                            )
                        ),
                        name="known_purpose",
                    )
                ],
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
                        default=1,
                        help_text="a new major version changes which answers are right, so all annotators repeat the test",
                    ),
                ),
                (
                    "minor",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="a new minor version only improves the wording"
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
                "constraints": [
                    models.UniqueConstraint(
                        fields=("task", "language", "major", "minor"), name="version_once_in_task_and_language"
                    )
                ],
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
                    models.TextField(blank=True, help_text="why the label is right, in the language of the record"),
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
                "constraints": [models.UniqueConstraint(fields=("task", "item"), name="gold_answer_once_in_task")],
            },
        ),
        migrations.CreateModel(
            name="Consent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="consents", to="annotate.annotator"
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="consents", to="annotate.task"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("withdrawn_at__isnull", True)),
                        fields=("annotator", "task"),
                        name="one_running_consent",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("withdrawn_at__isnull", True), ("withdrawn_at__gte", models.F("at")), _connector="OR"
                        ),
                        name="withdrawn_after_agreed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Backlog",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("waiting", models.PositiveIntegerField()),
                (
                    "behind_tests",
                    models.JSONField(
                        default=dict,
                        help_text="language -> number of units available after passing the test",
                    ),
                ),
                ("queues", models.JSONField(default=list, help_text="the queues in which the annotator can work")),
                ("day", models.DateField(help_text="in the installation's time zone")),
                ("answered", models.IntegerField(help_text="valid answers on this day")),
                ("skipped", models.IntegerField(help_text="valid skips on this day")),
                ("counted_at", models.DateTimeField()),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="backlogs", to="annotate.annotator"
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="backlogs", to="annotate.task"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("annotator", "task"), name="one_backlog")],
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
                    models.PositiveSmallIntegerField(
                        help_text="1 for the first trial of this kind under a major version"
                    ),
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
                        help_text="the version that applied when the trial was taken",
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
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=("annotator", "task", "language", "kind"),
                        name="one_open_trial",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished_at__isnull", True), ("passed__isnull", True), ("right__isnull", True)),
                            models.Q(
                                ("finished_at__isnull", False), ("passed__isnull", False), ("right__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="trial_judged_when_finished",
                    ),
                ],
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
                "constraints": [
                    models.UniqueConstraint(
                        fields=("annotator", "task", "language", "major"), name="qualified_once_under_a_version"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("trial__isnull", False), ("granted_by__isnull", False), _connector="OR"),
                        name="qualified_by_test_or_manager",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TrialAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField()),
                (
                    "first",
                    models.CharField(
                        blank=True, help_text="the system shown first, if two are compared", max_length=40
                    ),
                ),
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
                "constraints": [
                    models.UniqueConstraint(fields=("trial", "position"), name="one_question_per_position"),
                    models.UniqueConstraint(fields=("trial", "gold_answer"), name="question_once_in_trial"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("answered_at__isnull", True), ("label", "")),
                            models.Q(models.Q(("label", ""), _negated=True), ("answered_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="trial_answer_has_a_time",
                    ),
                ],
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
                        help_text="the language in the question (Is this X?); empty if annotators can choose any language",
                        max_length=16,
                    ),
                ),
                (
                    "pair",
                    models.PositiveSmallIntegerField(
                        default=0,
                        help_text="the pair of systems to compare, 1 for the first pair; 0 if nothing is compared",
                    ),
                ),
                (
                    "position",
                    models.PositiveBigIntegerField(help_text="rank in the draw, which is the order of assignment"),
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
                ("redundancy", models.PositiveSmallIntegerField(help_text="number of answers required")),
                ("candidates", models.JSONField(default=list, help_text="languages, most likely first")),
                ("visited", models.JSONField(default=list, help_text="queues that the unit has been in")),
                ("round", models.PositiveSmallIntegerField(default=0)),
                (
                    "language",
                    models.CharField(blank=True, help_text="current or last queue", max_length=16),
                ),
                ("label", models.TextField(blank=True, help_text="the canonical text of the final answer")),
                (
                    "agreed_label",
                    models.TextField(
                        blank=True,
                        help_text="the label on which the detectors agreed, or the declared label",
                    ),
                ),
                (
                    "predicted",
                    models.CharField(
                        blank=True,
                        help_text="the class that a predictor assigned, if it selects the units; annotators never see it",
                        max_length=64,
                    ),
                ),
                (
                    "audited",
                    models.BooleanField(default=False, help_text="randomly selected to audit the detectors' agreement"),
                ),
                (
                    "recheck",
                    models.BooleanField(
                        default=False,
                        help_text="randomly selected: an adjudicator always decides it, without seeing the answers",
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
                        default=False, help_text="a gold answer that all annotators receive and that never gets a label"
                    ),
                ),
                (
                    "disturbing",
                    models.BooleanField(
                        default=False,
                        help_text="flagged as disturbing: only annotators who accept such units receive it",
                    ),
                ),
                (
                    "copy_of",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="copies",
                        to="annotate.unit",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="units",
                        to="corpora.item",
                    ),
                ),
                (
                    "reused_from",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="the unit of another task from which the label was copied",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reused_as",
                        to="annotate.unit",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="units",
                        to="annotate.task",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
                "indexes": [
                    models.Index(fields=["task", "stage", "language", "position"], name="queue"),
                    models.Index(fields=["task", "agreed_label", "stage"], name="agreement"),
                    models.Index(condition=models.Q(("honeypot", True)), fields=["task", "language"], name="honeypots"),
                    models.Index(condition=models.Q(("copy_of__isnull", False)), fields=["copy_of"], name="copies"),
                    models.Index(
                        condition=models.Q(("reused_from__isnull", False)), fields=["reused_from"], name="reused"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("item", "task", "asked", "pair"), name="item_asked_once_in_task"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("stage", "NEW"),
                            ("stage", "COPIED"),
                            ("stage", "AGREED"),
                            ("stage", "QUEUED"),
                            ("stage", "ADJUDICATION"),
                            ("stage", "LABELLED"),
                            ("stage", "DISCARDED"),
                            _connector="OR",
                        ),
                        name="known_stage",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("stage__in", ("AGREED", "LABELLED")), models.Q(("label", ""), _negated=True)),
                            models.Q(models.Q(("stage__in", ("AGREED", "LABELLED")), _negated=True), ("label", "")),
                            _connector="OR",
                        ),
                        name="label_only_where_labelled",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("stage", "QUEUED"), _negated=True),
                            models.Q(models.Q(("language", ""), _negated=True), ("round__gte", 1)),
                            _connector="OR",
                        ),
                        name="queued_somewhere",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("copy_of__isnull", False), ("stage", "COPIED")),
                            models.Q(models.Q(("stage", "COPIED"), _negated=True), ("copy_of__isnull", True)),
                            _connector="OR",
                        ),
                        name="copied_has_original",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("agreed_label", ""), _negated=True),
                            models.Q(models.Q(("stage", "AGREED"), _negated=True), ("audited", False)),
                            _connector="OR",
                        ),
                        name="agreed_on_a_label",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("known_answer", ""),
                            models.Q(("copy_of__isnull", True), ("reused_from__isnull", True)),
                            _connector="OR",
                        ),
                        name="known_answer_stands_alone",
                    ),
                    models.CheckConstraint(condition=models.Q(("redundancy__gte", 1)), name="unit_asks_somebody"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("honeypot", False),
                            models.Q(("stage", "QUEUED"), models.Q(("known_answer", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="honeypot_stays_queued",
                    ),
                ],
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
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "judgment",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="annotate.judgment",
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
                "indexes": [
                    models.Index(
                        condition=models.Q(("judgment__isnull", False)), fields=["judgment"], name="moved_by_judgment"
                    ),
                    models.Index(condition=models.Q(("by__isnull", False)), fields=["by"], name="moved_by"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Suggestion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("system", models.CharField(help_text="the ranked predictor: NAME@VERSION", max_length=200)),
                ("ranked", models.JSONField()),
                (
                    "unit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="suggestions", to="annotate.unit"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("unit", "system"), name="one_list_of_a_system")],
            },
        ),
        migrations.CreateModel(
            name="Side",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("first", models.CharField(help_text="the system that was shown first", max_length=40)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="sides", to="annotate.annotator"
                    ),
                ),
                (
                    "unit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sides", to="annotate.unit"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("unit", "annotator"), name="sides_drawn_once")],
            },
        ),
        migrations.AddField(
            model_name="lease",
            name="instead_of",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="the unit that the annotator would have received instead of this gold answer",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="stand_ins",
                to="annotate.unit",
            ),
        ),
        migrations.AddField(
            model_name="lease",
            name="unit",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="leases", to="annotate.unit"
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
            name="Flag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("disturbing", "disturbing"),
                            ("personal", "personal"),
                            ("broken", "broken"),
                            ("question", "question"),
                        ],
                        max_length=10,
                    ),
                ),
                ("words", models.TextField(blank=True, help_text="the annotator's comment; required for questions")),
                ("at", models.DateTimeField()),
                ("reply", models.TextField(blank=True)),
                ("replied_at", models.DateTimeField(blank=True, null=True)),
                (
                    "put_away_at",
                    models.DateTimeField(blank=True, help_text="when the annotator dismissed the reply", null=True),
                ),
                (
                    "settled_at",
                    models.DateTimeField(blank=True, help_text="when a manager resolved the flag", null=True),
                ),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="flags", to="annotate.annotator"
                    ),
                ),
                (
                    "settled_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="flags_settled",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "example",
                    models.ForeignKey(
                        blank=True,
                        help_text="the version of the guidelines that includes the question and reply as an example",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="examples",
                        to="annotate.guidelines",
                    ),
                ),
                (
                    "judgment",
                    models.OneToOneField(
                        blank=True,
                        help_text="the judgment that passed a disturbing unit on to others; empty for other flags",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="annotate.judgment",
                    ),
                ),
                (
                    "lease",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="flags", to="annotate.lease"
                    ),
                ),
                (
                    "unit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="flags", to="annotate.unit"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(condition=models.Q(("settled_at", None)), fields=["id"], name="open_flags"),
                    models.Index(
                        condition=models.Q(("put_away_at", None), ("replied_at__isnull", False)),
                        fields=["annotator"],
                        name="unread_replies",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("lease", "kind"), name="flagged_once"),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["disturbing", "personal", "broken", "question"])),
                        name="known_flag",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "question"), _negated=True),
                            models.Q(("words", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="question_has_words",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("judgment__isnull", False), ("kind", "disturbing")),
                            models.Q(models.Q(("kind", "disturbing"), _negated=True), ("judgment", None)),
                            _connector="OR",
                        ),
                        name="disturbing_is_handed_on",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("settled_at", None), ("settled_by", None)),
                            models.Q(("settled_at__isnull", False), ("settled_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="settled_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("put_away_at", None), ("replied_at", None), ("reply", "")),
                            models.Q(
                                models.Q(("reply", ""), _negated=True),
                                ("replied_at__isnull", False),
                                ("settled_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="reply_settles",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Comparison",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("system_a", models.CharField(max_length=40)),
                ("system_b", models.CharField(max_length=40)),
                (
                    "replies_a",
                    models.JSONField(blank=True, default=list, help_text="the replies of system a, best first"),
                ),
                ("replies_b", models.JSONField(blank=True, default=list)),
                (
                    "gold_answer",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="comparison",
                        to="annotate.goldanswer",
                    ),
                ),
                (
                    "unit",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="comparison",
                        to="annotate.unit",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("system_a", models.F("system_b")), _negated=True),
                        name="two_systems_compared",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("gold_answer__isnull", False), ("unit__isnull", True)),
                            models.Q(("gold_answer__isnull", True), ("unit__isnull", False)),
                            _connector="OR",
                        ),
                        name="compared_for_a_unit_or_a_gold_answer",
                    ),
                ],
            },
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
                        help_text="0 (none) to 5 (native); a task requires a minimum level",
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
            name="Job",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "action",
                    models.CharField(help_text="the name of the action, which is also its command", max_length=40),
                ),
                (
                    "given",
                    models.JSONField(default=dict, help_text="option -> value (text, list of texts, or boolean)"),
                ),
                (
                    "corpus",
                    models.CharField(
                        blank=True,
                        help_text="the corpus that the job changes; only one job per corpus runs at a time",
                        max_length=64,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("asked_at", models.DateTimeField(auto_now_add=True)),
                ("began_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("said", models.JSONField(default=list, help_text="sentences and tables about the result")),
                (
                    "warned",
                    models.JSONField(default=list, help_text="warnings, or the reason why the job failed"),
                ),
                (
                    "data",
                    models.JSONField(
                        default=dict, help_text="the outcome, in the same form as the command's JSON output"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        help_text="who started the job; empty if the system did, such as after a failed audit",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [models.Index(fields=["state"], name="jobs_by_state")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "running"), models.Q(("corpus", ""), _negated=True)),
                        fields=("corpus",),
                        name="one_running_job_of_a_corpus",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["waiting", "running", "done", "failed", "cancelled"])),
                        name="known_state_of_job",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("began_at__isnull", True), ("ended_at__isnull", True), ("state", "waiting")),
                            models.Q(("began_at__isnull", False), ("ended_at__isnull", True), ("state", "running")),
                            models.Q(
                                ("began_at__isnull", False),
                                ("ended_at__isnull", False),
                                ("state__in", ["done", "failed"]),
                            ),
                            models.Q(("ended_at__isnull", False), ("state", "cancelled")),
                            _connector="OR",
                        ),
                        name="times_of_job",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Share",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(help_text="path of the file in the job's output folder", max_length=255)),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField()),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                ("by", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="shares", to="annotate.job"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="ChosenConcept",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "way",
                    models.CharField(
                        blank=True,
                        choices=[("suggested", "suggested"), ("searched", "searched"), ("browsed", "browsed")],
                        help_text="empty if unknown, for example for answers by the API or from files",
                        max_length=9,
                    ),
                ),
                (
                    "rank",
                    models.PositiveSmallIntegerField(help_text="rank of a suggestion in the list, from 1", null=True),
                ),
                (
                    "concept",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="corpora.concept"
                    ),
                ),
                (
                    "judgment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="chosen", to="annotate.judgment"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("judgment", "concept"), name="concept_chosen_once"),
                    models.CheckConstraint(
                        condition=models.Q(("way__in", ["", "suggested", "searched", "browsed"])), name="known_way"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("rank__gte", 1), ("rank__isnull", False), ("way", "suggested")),
                            models.Q(models.Q(("way", "suggested"), _negated=True), ("rank", None)),
                            _connector="OR",
                        ),
                        name="suggestion_has_a_rank",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.TextField(help_text="the canonical text of the new answer")),
                ("reason", models.CharField(blank=True, max_length=200)),
                ("comment", models.TextField(blank=True)),
                ("at", models.DateTimeField()),
                (
                    "judgment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="changes", to="annotate.judgment"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("label", ""), _negated=True), name="changed_to_an_answer"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LanguageRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16)),
                ("level", models.PositiveSmallIntegerField(help_text="self-assessed level, 1 to 5 (native)")),
                (
                    "words",
                    models.CharField(blank=True, help_text="how the annotator learned the language", max_length=200),
                ),
                ("asked_at", models.DateTimeField()),
                (
                    "outcome",
                    models.CharField(
                        blank=True, choices=[("granted", "granted"), ("refused", "refused")], max_length=8
                    ),
                ),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="language_requests",
                        to="annotate.annotator",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("outcome", "")),
                        fields=("annotator", "language"),
                        name="language_asked_for_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("level__gte", 1), ("level__lte", 5)), name="asked_for_level_1_to_5"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at__isnull", True), ("decided_by__isnull", True), ("outcome", "")),
                            models.Q(models.Q(("outcome", ""), _negated=True), ("decided_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="decided_by_an_outcome",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="NoteRead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="notes_read", to="annotate.annotator"
                    ),
                ),
                (
                    "note",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="reads", to="annotate.note"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [models.UniqueConstraint(fields=("note", "annotator"), name="note_read_once")],
            },
        ),
        migrations.CreateModel(
            name="Preferences",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text_size", models.CharField(blank=True, help_text="empty: the browser's setting", max_length=8)),
                ("theme", models.CharField(blank=True, help_text="empty: the system's setting", max_length=8)),
                (
                    "keys",
                    models.CharField(
                        blank=True,
                        help_text="empty: digit keys; otherwise the hand for letter keys",
                        max_length=8,
                    ),
                ),
                ("time_zone", models.CharField(blank=True, help_text="empty: the installation's", max_length=64)),
                (
                    "language",
                    models.CharField(
                        blank=True, help_text="interface language; empty: the installation's", max_length=8
                    ),
                ),
                (
                    "goal",
                    models.PositiveSmallIntegerField(
                        blank=True, help_text="the user's own goal (answers per day)", null=True
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="preferences",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "preferences",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("text_size__in", ["", "large", "larger"]),
                            ("theme__in", ["", "light", "dark"]),
                            ("keys__in", ["", "left", "right"]),
                        ),
                        name="preferences_that_pages_have",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("goal__isnull", True), models.Q(("goal__gte", 1), ("goal__lte", 10000)), _connector="OR"
                        ),
                        name="goal_of_a_day",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reserve",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(max_length=16)),
                ("predicted", models.CharField(max_length=64)),
                (
                    "place",
                    models.PositiveIntegerField(help_text="position in the random order of its language and class"),
                ),
                ("key", models.CharField(max_length=200, verbose_name="id")),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="reserve", to="annotate.task"
                    ),
                ),
            ],
            options={
                "ordering": ["place"],
                "constraints": [
                    models.UniqueConstraint(fields=("task", "language", "predicted", "place"), name="one_in_each_place")
                ],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("right", models.PositiveIntegerField(help_text="correct answers to known units since the last pause")),
                ("asked", models.PositiveIntegerField(help_text="all answers to known units since the last pause")),
                ("reason", models.TextField(blank=True, help_text="the manager's reason; empty if automatic")),
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
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(fields=["unit", "annotator"], name="leases_of_unit"),
        ),
        migrations.AddIndex(
            model_name="lease",
            index=models.Index(
                condition=models.Q(("instead_of__isnull", False)), fields=["instead_of"], name="stand_ins"
            ),
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
                        ("closed_at__isnull", True),
                        ("instead_of__isnull", False),
                        ("outcome", ""),
                        ("place__isnull", True),
                    ),
                    models.Q(
                        ("closed_at__isnull", False),
                        ("instead_of__isnull", False),
                        ("outcome", "answered"),
                        ("place__isnull", True),
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
        migrations.AddConstraint(
            model_name="judgment",
            constraint=models.UniqueConstraint(
                condition=models.Q(("voided_at__isnull", True), models.Q(("kind", "repeat"), _negated=True)),
                fields=("unit", "annotator"),
                name="one_live_judgment",
            ),
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.URLField(max_length=500)),
                (
                    "secret",
                    models.CharField(
                        editable=False, help_text="the key of the signatures, shown only once", max_length=80
                    ),
                ),
                (
                    "events",
                    models.JSONField(default=list, help_text="names of the events that are sent; empty for all"),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "seen",
                    models.PositiveBigIntegerField(
                        default=0, help_text="all transitions up to this one have been collected"
                    ),
                ),
                (
                    "collected_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now,
                        help_text="all questions and jobs up to this time have been collected",
                    ),
                ),
                (
                    "failures",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="number of failed attempts since the last success"
                    ),
                ),
                (
                    "waits_until",
                    models.DateTimeField(blank=True, help_text="nothing is sent before this time", null=True),
                ),
                ("by", models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
                (
                    "task",
                    models.ForeignKey(
                        blank=True,
                        help_text="only events of this task are sent; empty for all",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="annotate.task",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event", models.CharField(max_length=16)),
                (
                    "key",
                    models.CharField(
                        help_text="unique key of the event, so that it is stored only once", max_length=60
                    ),
                ),
                ("body", models.TextField(help_text="JSON")),
                ("at", models.DateTimeField(help_text="time of the event")),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        blank=True, help_text="HTTP status of the last response", null=True
                    ),
                ),
                ("fault", models.CharField(blank=True, help_text="why the last attempt failed", max_length=200)),
                ("delivered_at", models.DateTimeField(blank=True, null=True)),
                ("given_up_at", models.DateTimeField(blank=True, null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="annotate.webhook",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("delivered_at", None), ("given_up_at", None)),
                        fields=["webhook"],
                        name="pending_deliveries",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("webhook", "key"), name="notified_once")],
            },
        ),
        migrations.RunPython(add, migrations.RunPython.noop),
    ]
