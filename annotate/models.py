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
    guidelines = models.TextField(help_text="Markdown; always at hand beside the queue")
    labels = models.JSONField(help_text="the codes that may be answered, besides und")
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
    # routing knobs, for what happens from now on
    redundancy = models.PositiveSmallIntegerField(default=1, validators=KNOB)
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
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.CheckConstraint(condition=Q(redundancy__gte=1), name="task_asks_somebody")]

    def __str__(self) -> str:
        return f"{self.title} ({self.name})"  # several tasks may ask the same

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

    class Meta:
        ordering = ["position"]
        indexes = [
            models.Index(fields=["task", "stage", "language", "position"], name="queue"),
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
        ]

    def __str__(self) -> str:
        return f"{self.task.name} #{self.position}"


class Lease(models.Model):
    """A unit handed to an annotator. Holding a place is what entitles to answer; the answer keeps the place."""

    OUTCOMES = ["answered", "skipped", "released", "expired", "undone"]

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
    """What one person said of one unit: an answer or a skip, or as an adjudicator a settlement or a discard."""

    ANSWER, SKIP, SETTLE, DISCARD = "answer", "skip", "settle", "discard"

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="judgments")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="judgments")
    # An adjudicator needs no lease.
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, null=True, blank=True)
    kind = models.CharField(max_length=8, choices=[(k, k) for k in (ANSWER, SKIP, SETTLE, DISCARD)])
    label = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=200, blank=True)
    comment = models.TextField(blank=True)
    shown_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField()
    active_seconds = models.FloatField(null=True, help_text="time at work on it, idling cut off; null if not measured")
    voided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["annotator", "answered_at"], name="own_answers")]
        constraints = [
            # Also keeps an adjudicator from settling what they have judged.
            models.UniqueConstraint(
                fields=["unit", "annotator"], condition=Q(voided_at__isnull=True), name="one_live_judgment"
            ),
            models.CheckConstraint(
                condition=(Q(kind__in=["answer", "settle"]) & ~Q(label=""))
                | (Q(kind__in=["skip", "discard"]) & Q(label="")),
                name="answer_or_skip",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["answer", "skip"], lease__isnull=False)
                | Q(kind__in=["settle", "discard"], lease__isnull=True),
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
