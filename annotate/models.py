"""People, work and labels.

The database refuses what must never be; annotate/queue.py, judging.py and adjudication.py explain why. Judgments and
transitions are only ever added: a judgment that no longer counts is voided.
"""

import secrets

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from annotate.core import stages
from annotate.core.aggregation import AGGREGATIONS
from corpora.models import Draw


def new_pseudonym() -> str:
    """A name for exports that tells nothing about the person."""
    return f"annotator-{secrets.token_hex(4)}"


class Annotator(models.Model):
    """A person who answers, and settles if they are an adjudicator. Managers are Django's staff users."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    pseudonym = models.CharField(max_length=40, unique=True, default=new_pseudonym, editable=False)
    adjudicates = models.BooleanField(
        default=False, help_text="may open the adjudication list, where votes and others' judgments are shown"
    )

    class Meta:
        ordering = ["user__username"]

    def __str__(self) -> str:
        return self.user.get_full_name() or self.user.username


class AnnotatorLanguage(models.Model):
    """That a person reads a language, and how well."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="languages")
    language = models.CharField(max_length=16)
    level = models.PositiveSmallIntegerField(
        default=5,
        validators=[MaxValueValidator(5)],
        help_text="0 (none) to 5 (native); a task serves those at its least level and above",
    )

    class Meta:
        ordering = ["-level", "language"]
        constraints = [
            models.UniqueConstraint(fields=["annotator", "language"], name="language_once_per_annotator"),
            models.CheckConstraint(condition=Q(level__lte=5), name="level_0_to_5"),
        ]

    def __str__(self) -> str:
        return f"{self.language}:{self.level}"


class LanguageRoute(models.Model):
    """Where posts go that the detectors think are in a language. A language without a row has a queue of its own."""

    language = models.CharField(max_length=16, unique=True)
    queue = models.CharField(
        max_length=16, help_text="the queue that its posts wait in; languages that name one queue share it"
    )
    extra_candidates = models.JSONField(
        default=list,
        blank=True,
        help_text="languages to try after this one though no detector names them: hi-Latn after hi",
    )
    never_agree = models.BooleanField(
        default=False, help_text="in tasks opened from now on, the detectors' agreement on it counts for nothing"
    )

    class Meta:
        ordering = ["language"]

    def __str__(self) -> str:
        return f"{self.language} → {self.queue}"


KNOB = [MinValueValidator(1), MaxValueValidator(99)]
SHARE = [MinValueValidator(0.0), MaxValueValidator(1.0)]


class Task(models.Model):
    """One question asked of a draw, or of one draw a language, with its guidelines and its routing."""

    CONFLICTS = [(stages.ADJUDICATION, "send to adjudication"), (stages.DISCARDED, "discard")]

    name = models.SlugField(unique=True, max_length=64)
    title = models.CharField(max_length=200)
    task_type = models.CharField(max_length=32)
    draws = models.ManyToManyField("corpora.Draw", related_name="tasks", help_text="of one corpus and one design")
    labels = models.JSONField(help_text="what may be answered: codes of languages, besides und, or a record's labels")
    languages = models.JSONField(
        default=list, blank=True, help_text="of the records; empty where the labels are the languages"
    )
    is_open = models.BooleanField(default=True, help_text="a closed task hands out no more work")
    # the agreement policy, fixed when the task was opened
    least_letters = models.PositiveIntegerField(default=20, help_text="on shorter texts agreement counts for nothing")
    never_agree = models.JSONField(default=list, blank=True)
    # the audit of what the detectors agree on; what it chose stays chosen
    audit_share = models.FloatField(
        default=0.02, validators=SHARE, help_text="of the posts that the detectors agree on, how many people check"
    )
    audit_least = models.PositiveIntegerField(
        default=30, help_text="and how many in each language at least, if there are as many"
    )
    audit_recheck = models.FloatField(
        default=0.2, validators=SHARE, help_text="of those, how many an adjudicator checks though the reader confirms"
    )
    audit_limit = models.FloatField(
        default=0.1,
        validators=SHARE,
        help_text="where more than this may be wrong in a language (upper end of 95%), people label all of it",
    )
    decoy_share = models.FloatField(
        default=0.05, validators=SHARE, help_text="posts with a known answer, for each post that is verified"
    )
    overlap_share = models.FloatField(
        default=0.0, validators=SHARE, help_text="of the posts that one person reads, how many a second one reads too"
    )
    # routing knobs, for what happens from now on
    redundancy = models.PositiveSmallIntegerField(default=1, validators=KNOB)
    stop_early = models.BooleanField(
        default=False, help_text="ask only as many people as can settle it, and the others where they do not agree"
    )
    extra_answers = models.PositiveSmallIntegerField(
        default=0, validators=[MaxValueValidator(2)], help_text="answers asked for beyond that, where none prevails"
    )
    aggregation = models.CharField(
        max_length=16,
        choices=[(name, name) for name in AGGREGATIONS],
        default="majority",
        help_text="from answers to a label; the median is for grades",
    )
    rounds = models.PositiveSmallIntegerField(
        default=2, validators=KNOB, help_text="languages tried before adjudication"
    )
    skip_limit = models.PositiveSmallIntegerField(default=1, validators=KNOB, help_text="skips that end a unit's round")
    least_level = models.PositiveSmallIntegerField(
        default=4,
        validators=[MaxValueValidator(5)],
        help_text="who reads a language less well is not served it",
    )
    lease_minutes = models.PositiveSmallIntegerField(
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(1440)],
        help_text="how long a unit is kept for who has it open",
    )
    on_conflict = models.CharField(
        max_length=16,
        choices=CONFLICTS,
        default=stages.ADJUDICATION,
        help_text="when the answers give no label",
    )
    # who may work: proven by a test, and by the gold answers among the work
    test_items = models.PositiveSmallIntegerField(default=0, help_text="questions of the test; 0: nobody is tested")
    pass_mark = models.FloatField(default=0.8, validators=SHARE, help_text="share of them to be answered rightly")
    tries = models.PositiveSmallIntegerField(default=3, validators=KNOB, help_text="tests that one person may take")
    gold_share = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(0.5)],
        help_text="of what a person is given, how much has a known answer",
    )
    pause_below = models.FloatField(
        default=0.7, validators=SHARE, help_text="pause who answers less than this share of the known ones rightly"
    )
    pause_confidence = models.FloatField(
        default=0.95,
        validators=[MinValueValidator(0.5), MaxValueValidator(0.999)],
        help_text="once it is so certain",
    )
    pause_least = models.PositiveSmallIntegerField(
        default=8, validators=KNOB, help_text="and they have answered so many"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.CheckConstraint(condition=Q(redundancy__gte=1), name="task_asks_somebody")]

    def __str__(self) -> str:
        return f"{self.title} ({self.name})"  # several tasks may ask the same

    @property
    def read_in(self) -> list[str]:
        """The languages that people must read to work in it."""
        return self.languages or self.labels

    @property
    def draw(self) -> Draw:
        """The draw of a uniform task, or the first of one that has a draw a language."""
        return self.draws.select_related("corpus").earliest("pk")


class Unit(models.Model):
    """One item under one task. Only annotate/routing.py writes its stage."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="units")
    item = models.ForeignKey("corpora.Item", on_delete=models.PROTECT, related_name="units")
    asked = models.CharField(
        max_length=16, blank=True, help_text="the language that is asked about: Is this X?; empty where any may be said"
    )
    position = models.PositiveBigIntegerField(help_text="rank in the draw: the order in which it is served")
    stage = models.CharField(max_length=16, choices=[(s, s) for s in stages.STAGES], default=stages.NEW)
    redundancy = models.PositiveSmallIntegerField(help_text="answers asked for")
    candidates = models.JSONField(default=list, help_text="languages, most likely first")
    visited = models.JSONField(default=list, help_text="queues that the unit has been in")
    round = models.PositiveSmallIntegerField(default=0)
    language = models.CharField(max_length=16, blank=True, help_text="the queue it is in, or was in last")
    label = models.CharField(max_length=64, blank=True)
    copy_of = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="copies")
    reused_from = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="reused_as",
        help_text="the unit of another task whose label it took",
    )
    agreed_label = models.CharField(max_length=16, blank=True, help_text="what the detectors agreed on, if they did")
    audited = models.BooleanField(default=False, help_text="chosen by chance to audit the detectors' agreement")
    recheck = models.BooleanField(default=False, help_text="if audited, an adjudicator checks it in any case")
    gold_answer = models.CharField(
        max_length=64, blank=True, help_text="known beforehand: hidden among the work, and never exported"
    )
    honeypot = models.BooleanField(
        default=False, help_text="a gold answer that everybody is asked for, again and again, and that gets no label"
    )

    class Meta:
        ordering = ["position"]
        indexes = [
            models.Index(fields=["task", "stage", "language", "position"], name="queue"),
            models.Index(fields=["task", "language"], condition=Q(honeypot=True), name="honeypots"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["task", "item", "asked"], name="item_asked_once_in_task"),
            models.CheckConstraint(condition=Q(stage__in=list(stages.STAGES)), name="known_stage"),
            models.CheckConstraint(
                condition=Q(stage__in=stages.WITH_LABEL) & ~Q(label="") | ~Q(stage__in=stages.WITH_LABEL) & Q(label=""),
                name="label_only_where_labelled",
            ),
            models.CheckConstraint(
                condition=~Q(stage=stages.QUEUED) | (~Q(language="") & Q(round__gte=1)),
                name="queued_somewhere",
            ),
            models.CheckConstraint(
                condition=Q(stage=stages.COPIED, copy_of__isnull=False)
                | (~Q(stage=stages.COPIED) & Q(copy_of__isnull=True)),
                name="copied_has_original",
            ),
            models.CheckConstraint(
                condition=~Q(agreed_label="") | ~Q(stage=stages.AGREED) & Q(audited=False, recheck=False),
                name="agreed_on_a_label",
            ),
            models.CheckConstraint(
                condition=Q(gold_answer="") | Q(copy_of__isnull=True, reused_from__isnull=True),
                name="gold_answer_stands_alone",
            ),
            models.CheckConstraint(
                condition=Q(honeypot=False) | (Q(stage=stages.QUEUED) & ~Q(gold_answer="")),
                name="honeypot_stays_queued",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task.name} #{self.position}"


class Lease(models.Model):
    """A unit handed to an annotator. Holding a place is what entitles to answer; the answer keeps the place."""

    OUTCOMES = ["answered", "skipped", "released", "expired", "undone", "voided"]

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="leases")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="leases")
    # 1..redundancy while the lease is open or answered; NULL once the place is given back.
    place = models.PositiveSmallIntegerField(null=True, blank=True)
    round = models.PositiveSmallIntegerField()
    queue = models.CharField(max_length=16)
    sheet = models.BooleanField(default=False, help_text="handed out among others on one sheet")
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=16, blank=True, choices=[(o, o) for o in OUTCOMES])

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["annotator", "closed_at"], name="open_leases")]
        constraints = [
            models.UniqueConstraint(
                fields=["unit", "annotator"],
                condition=Q(closed_at__isnull=True),
                name="one_open_lease_per_annotator",
            ),
            # NULLs do not clash, in SQLite or PostgreSQL.
            models.UniqueConstraint(fields=["unit", "place"], name="one_holder_per_place"),
            models.CheckConstraint(
                # Not null, said aloud: a check lets pass what is neither true nor false.
                condition=Q(closed_at__isnull=True, outcome="", place__isnull=False, place__gte=1)
                | Q(closed_at__isnull=False, outcome="answered", place__isnull=False, place__gte=1)
                | (Q(closed_at__isnull=False, place__isnull=True) & ~Q(outcome__in=["", "answered"])),
                name="place_kept_by_open_or_answered",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.unit} to {self.annotator}"


class Judgment(models.Model):
    """What one person said of one unit: an answer or a skip, or as an adjudicator a settlement or a discard.

    A repeat is a further answer by one person that was imported: kept, and counted nowhere unless asked for.
    """

    ANSWER, SKIP, SETTLE, DISCARD, REPEAT = "answer", "skip", "settle", "discard", "repeat"

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="judgments")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="judgments")
    # An adjudicator needs no lease.
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, null=True, blank=True)
    kind = models.CharField(max_length=8, choices=[(k, k) for k in (ANSWER, SKIP, SETTLE, DISCARD, REPEAT)])
    label = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=200, blank=True)
    comment = models.TextField(blank=True)
    shown_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField()
    active_seconds = models.FloatField(null=True, help_text="time at work on it, idling cut off; null if not measured")
    voided_at = models.DateTimeField(null=True, blank=True)
    voided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        help_text="the manager who voided it; nobody where it was taken back",
    )

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["annotator", "answered_at"], name="own_answers")]
        constraints = [
            # Also keeps an adjudicator from settling what they have judged.
            models.UniqueConstraint(
                fields=["unit", "annotator"],
                condition=Q(voided_at__isnull=True) & ~Q(kind="repeat"),
                name="one_live_judgment",
            ),
            models.CheckConstraint(
                condition=Q(voided_by__isnull=True) | Q(voided_at__isnull=False), name="voided_by_when_voided"
            ),
            models.CheckConstraint(
                condition=(Q(kind__in=["answer", "settle", "repeat"]) & ~Q(label=""))
                | (Q(kind__in=["skip", "discard"]) & Q(label="")),
                name="answer_or_skip",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["answer", "skip"], lease__isnull=False)
                | Q(kind__in=["settle", "discard", "repeat"], lease__isnull=True),
                name="annotators_judge_by_lease",
            ),
            models.CheckConstraint(
                condition=Q(shown_at__isnull=True) | Q(shown_at__lte=F("answered_at")),
                name="shown_before_answered",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.label}".strip()


class Transition(models.Model):
    """One move of a unit from stage to stage, written with it."""

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="transitions")
    event = models.CharField(max_length=16)
    from_stage = models.CharField(max_length=16)
    to_stage = models.CharField(max_length=16)
    round = models.PositiveSmallIntegerField()
    language = models.CharField(max_length=16, blank=True)
    label = models.CharField(max_length=64, blank=True)
    judgment = models.ForeignKey(Judgment, on_delete=models.PROTECT, null=True, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["to_stage", "language"], name="queues_visited")]

    def __str__(self) -> str:
        return f"{self.from_stage} → {self.to_stage} ({self.event})"


class Guidelines(models.Model):
    """What the annotators of a task are told, in one language; a change is a new version, and what was read stays."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="guidelines")
    language = models.CharField(max_length=16)
    major = models.PositiveSmallIntegerField(
        default=1, help_text="a new one changes what is right: everybody takes the test again"
    )
    minor = models.PositiveSmallIntegerField(default=0, help_text="a new one says the same better")
    text = models.TextField(help_text="Markdown")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "guidelines"
        ordering = ["language", "-major", "-minor"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "language", "major", "minor"], name="version_once_in_task_and_language"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task.name} {self.language} {self.version}"

    @property
    def version(self) -> str:
        return f"{self.major}.{self.minor}"


class GoldAnswer(models.Model):
    """A record whose label is known: for practice, for the test, or hidden in the queue. Never work, never exported."""

    PRACTICE, TEST, QUEUE = "practice", "test", "queue"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="gold_answers")
    item = models.ForeignKey("corpora.Item", on_delete=models.PROTECT, related_name="gold_answers")
    purpose = models.CharField(max_length=8, choices=[(p, p) for p in (PRACTICE, TEST, QUEUE)])
    label = models.CharField(max_length=64)
    explanation = models.TextField(blank=True, help_text="why, in the language of the record")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["task", "item"], name="gold_answer_once_in_task")]

    def __str__(self) -> str:
        return f"{self.item.key}: {self.label}"


class Trial(models.Model):
    """One person's way through the practice items of a task in a language, or through one test."""

    PRACTICE, TEST = "practice", "test"

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="trials")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="trials")
    language = models.CharField(max_length=16)
    kind = models.CharField(max_length=8, choices=[(k, k) for k in (PRACTICE, TEST)])
    guidelines = models.ForeignKey(Guidelines, on_delete=models.PROTECT, help_text="the version it was taken under")
    number = models.PositiveSmallIntegerField(help_text="1 for the first of its kind under a major version")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    right = models.PositiveSmallIntegerField(null=True, blank=True)
    passed = models.BooleanField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["annotator", "task", "language", "kind"],
                condition=Q(finished_at__isnull=True),
                name="one_open_trial",
            ),
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True, right__isnull=True, passed__isnull=True)
                | Q(finished_at__isnull=False, right__isnull=False, passed__isnull=False),
                name="trial_judged_when_finished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.number} of {self.annotator} in {self.language}"


class TrialAnswer(models.Model):
    """One question of a trial, and what was answered."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="answers")
    gold_answer = models.ForeignKey(GoldAnswer, on_delete=models.PROTECT, related_name="trial_answers")
    position = models.PositiveSmallIntegerField()
    label = models.CharField(max_length=64, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["trial", "position"], name="one_question_per_position"),
            models.UniqueConstraint(fields=["trial", "gold_answer"], name="question_once_in_trial"),
            models.CheckConstraint(
                condition=Q(label="", answered_at__isnull=True) | (~Q(label="") & Q(answered_at__isnull=False)),
                name="trial_answer_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.trial}, question {self.position}"


class Qualification(models.Model):
    """That a person may work in a language of a task, under one major version of its guidelines."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="qualifications")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="qualifications")
    language = models.CharField(max_length=16)
    major = models.PositiveSmallIntegerField()
    trial = models.OneToOneField(Trial, on_delete=models.PROTECT, null=True, blank=True, help_text="that was passed")
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["annotator", "task", "language", "major"], name="qualified_once_under_a_version"
            ),
            models.CheckConstraint(
                condition=Q(trial__isnull=False) | Q(granted_by__isnull=False), name="qualified_by_test_or_manager"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.language} of {self.task.name}"


class Pause(models.Model):
    """That a person is given no more work of a task, until a manager lifts it."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="pauses")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="pauses")
    right = models.PositiveIntegerField(help_text="known answers given, since the pause before")
    asked = models.PositiveIntegerField(help_text="of so many asked for")
    reason = models.TextField(blank=True, help_text="those that managers gave; empty where the rule paused")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="pauses_ordered"
    )
    at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="pauses_lifted"
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["annotator", "task"], condition=Q(lifted_at__isnull=True), name="one_running_pause"
            ),
            models.CheckConstraint(condition=Q(right__lte=F("asked")), name="right_of_those_asked"),
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.task.name}"


class Invite(models.Model):
    """A link by which a person sets their first password. Only its hash is kept."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="invites")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"invite of {self.annotator}"
