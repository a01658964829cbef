"""Models for units, their leases, judgments and transitions.

Database constraints reject invalid states, which the modules of work/ explain. Judgments and transitions are an
append-only log: the only change is that a judgment is marked as voided when it no longer counts.
"""

from collections.abc import Iterable
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import F, OuterRef, Q, Subquery

from annotate.core import stages
from annotate.models.people import Annotator
from annotate.models.tasks import Task
from corpora.database.statements import LoadedRow


def any_of(field: str, values: Iterable[str]) -> Q:
    """Return the condition that a field has one of these values, as a disjunction.

    In constraints, SQLite evaluates it faster than `field__in`, for which every statement builds a temporary table.
    """
    return Q(*((field, value) for value in values), _connector=Q.OR)


class Units(models.QuerySet["Unit"]):
    def work(self) -> Self:
        """Return the units to label. Hidden gold answers are left out, because their label is known."""
        return self.filter(honeypot=False)

    def hidden(self) -> Self:
        """Return hidden gold answers, all of which are in a queue.

        The condition on `language` is always true. It makes SQLite use the partial index `honeypots` instead of
        scanning all units of a task.
        """
        return self.filter(honeypot=True, language__gt="")

    def exported(self) -> Self:
        """Return the units that can be exported. Decoys and hidden gold answers are left out."""
        return self.filter(known_answer="")

    def queued(self) -> Self:
        return self.filter(stage=stages.QUEUED)

    def finished(self) -> Self:
        return self.filter(stage__in=stages.FINISHED)

    def ended_by(self, *events: str) -> Self:
        """Return units whose latest transition has one of these events."""
        last = Transition.objects.filter(unit=OuterRef("pk")).order_by("-pk").values("event")[:1]
        return self.annotate(last=Subquery(last)).filter(last__in=events)

    def waiting_copies(self) -> Self:
        """Return copies that have no label yet, because their originals are still in progress."""
        return self.filter(stage=stages.COPIED, copy_of__stage__in=stages.WAITING)


class Unit(LoadedRow):
    """An item in a task. Only work/moves.py writes its stage."""

    # Some foreign keys have db_index=False, because another index starts with the column or Meta has a partial index.
    # Each additional index would slow down adding and moving units.
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="units", db_index=False)
    item = models.ForeignKey("corpora.Item", on_delete=models.PROTECT, related_name="units", db_index=False)
    asked = models.CharField(
        max_length=16,
        blank=True,
        help_text="the language in the question (Is this X?); empty if annotators can choose any language",
    )
    pair = models.PositiveSmallIntegerField(
        default=0,
        help_text="the pair of systems to compare, 1 for the first pair; 0 if nothing is compared",
    )
    position = models.PositiveBigIntegerField(help_text="rank in the draw, which is the order of assignment")
    stage = models.CharField(max_length=16, choices=[(s, s) for s in stages.STAGES], default=stages.NEW)
    redundancy = models.PositiveSmallIntegerField(help_text="number of answers required")
    candidates = models.JSONField(default=list, help_text="languages, most likely first")
    visited = models.JSONField(default=list, help_text="queues that the unit has been in")
    round = models.PositiveSmallIntegerField(default=0)
    language = models.CharField(max_length=16, blank=True, help_text="current or last queue")
    label = models.TextField(blank=True, help_text="the canonical text of the final answer")
    copy_of = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="copies", db_index=False
    )
    reused_from = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="reused_as",
        db_index=False,
        help_text="the unit of another task from which the label was copied",
    )
    agreed_label = models.TextField(
        blank=True, help_text="the label on which the detectors agreed, or the declared label"
    )
    predicted = models.CharField(
        max_length=64,
        blank=True,
        help_text="the class that a predictor assigned, if it selects the units; annotators never see it",
    )
    audited = models.BooleanField(default=False, help_text="randomly selected to audit the detectors' agreement")
    recheck = models.BooleanField(
        default=False, help_text="randomly selected: an adjudicator always decides it, without seeing the answers"
    )
    known_answer = models.TextField(
        blank=True,
        help_text="the known answer of a hidden decoy or gold answer; such a unit is never exported",
    )
    honeypot = models.BooleanField(
        default=False, help_text="a gold answer that all annotators receive and that never gets a label"
    )
    disturbing = models.BooleanField(
        default=False,
        help_text="flagged as disturbing: only annotators who accept such units receive it",
    )

    objects = Units.as_manager()

    class Meta:
        ordering = ["position"]
        indexes = [
            models.Index(fields=["task", "stage", "language", "position"], name="queue"),
            # Used after every answer to check whether the audit of a language is complete.
            models.Index(fields=["task", "agreed_label", "stage"], name="agreement"),
            models.Index(fields=["task", "language"], condition=Q(honeypot=True), name="honeypots"),
            models.Index(fields=["copy_of"], condition=Q(copy_of__isnull=False), name="copies"),
            models.Index(fields=["reused_from"], condition=Q(reused_from__isnull=False), name="reused"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["item", "task", "asked", "pair"], name="item_asked_once_in_task"),
            models.CheckConstraint(condition=any_of("stage", stages.STAGES), name="known_stage"),
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
                condition=~Q(agreed_label="") | ~Q(stage=stages.AGREED) & Q(audited=False),
                name="agreed_on_a_label",
            ),
            models.CheckConstraint(
                condition=Q(known_answer="") | Q(copy_of__isnull=True, reused_from__isnull=True),
                name="known_answer_stands_alone",
            ),
            models.CheckConstraint(condition=Q(redundancy__gte=1), name="unit_asks_somebody"),
            models.CheckConstraint(
                condition=Q(honeypot=False) | (Q(stage=stages.QUEUED) & ~Q(known_answer="")),
                name="honeypot_stays_queued",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task.name} #{self.position}"

    @property
    def one_line_text(self) -> str:
        """The unit's text for a row in a list: a post's text, or a record's fields joined by dots."""
        fields = self.task.kind.fields
        return " · ".join(self.item.fields[name] for name in fields) if fields else self.item.text


class Reserve(models.Model):
    """A document in reserve, by predicted class. It becomes a unit if annotators confirm too few of the class."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="reserve")
    language = models.CharField(max_length=16)
    predicted = models.CharField(max_length=64)
    place = models.PositiveIntegerField(help_text="position in the random order of its language and class")
    key = models.CharField("id", max_length=200)

    class Meta:
        ordering = ["place"]
        constraints = [
            models.UniqueConstraint(fields=["task", "language", "predicted", "place"], name="one_in_each_place"),
        ]

    def __str__(self) -> str:
        return self.key


class Lease(LoadedRow):
    """The assignment of a unit to an annotator.

    A unit has one place per required answer. An open lease holds a place while its annotator works on the unit, and
    an answered lease keeps the place.

    An annotator can get a gold answer instead of a unit of work. While the gold answer's lease is open, it reserves a
    place on the unit of work. work/eligible.py decides what happens if the gold answer is returned unanswered.
    """

    OUTCOMES = ["answered", "skipped", "flagged", "released", "expired", "undone", "voided"]
    RETURNED = ("released", "expired")

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="leases", db_index=False)
    instead_of = models.ForeignKey(
        Unit,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="stand_ins",
        db_index=False,
        help_text="the unit that the annotator would have received instead of this gold answer",
    )
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="leases", db_index=False)
    # From 1 to the unit's redundancy while the lease is open or answered. NULL if the unit was returned, and for gold
    # answers.
    place = models.PositiveSmallIntegerField(null=True, blank=True)
    round = models.PositiveSmallIntegerField()
    queue = models.CharField(max_length=16)
    sheet = models.BooleanField(default=False, help_text="assigned on a sheet, together with other units")
    turn = models.JSONField(
        null=True,
        blank=True,
        help_text="the random assignment of gold answers when this unit was assigned: the number of units in the "
        "language that the annotator had received, the number of gold answers among them, and units per "
        "gold answer; null if the assignment was not random",
    )
    in_place = models.BooleanField(
        default=False,
        help_text="a returned gold answer that was assigned in place of another unit: the "
        "annotator receives that unit only if no other units are left",
    )
    again = models.BooleanField(
        default=False,
        help_text="opened when an answer was undone; it can be answered even if the unit has left the queue",
    )
    back_after = models.PositiveSmallIntegerField(
        default=0,
        help_text="the number of other answers before a returned unit is assigned again",
    )
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=16, blank=True, choices=[(o, o) for o in OUTCOMES])

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["unit", "annotator"], name="leases_of_unit"),
            models.Index(fields=["annotator"], condition=Q(closed_at__isnull=True), name="open_leases"),
            # Used to find an annotator's recently returned units before assigning the next one.
            models.Index(fields=["annotator", "opened_at"], name="latest_leases"),
            models.Index(fields=["instead_of"], condition=Q(instead_of__isnull=False), name="stand_ins"),
            models.Index(fields=["annotator"], condition=Q(in_place=True), name="in_place"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["unit", "annotator"],
                condition=Q(closed_at__isnull=True),
                name="one_open_lease_per_annotator",
            ),
            # NULL values never conflict, so several leases of a unit can have no place.
            models.UniqueConstraint(fields=["unit", "place"], name="one_holder_per_place"),
            models.CheckConstraint(
                # place__isnull=False is needed, because a check constraint also passes if it evaluates to NULL.
                condition=Q(closed_at__isnull=True, outcome="", place__isnull=False, place__gte=1)
                | Q(closed_at__isnull=False, outcome="answered", place__isnull=False, place__gte=1)
                | Q(instead_of__isnull=False, place__isnull=True, closed_at__isnull=True, outcome="")
                | Q(instead_of__isnull=False, place__isnull=True, closed_at__isnull=False, outcome="answered")
                | (Q(closed_at__isnull=False, place__isnull=True) & ~Q(outcome__in=["", "answered"])),
                name="place_kept_by_open_or_answered",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.unit} to {self.annotator}"

    @property
    def work(self) -> Unit:
        """The unit of work on which the lease holds a place: the leased unit, or the one a gold answer replaces."""
        return self.instead_of or self.unit

    @property
    def is_answerable(self) -> bool:
        """Whether the lease can still be answered."""
        return self.again or self.work.stage == stages.QUEUED


class Backlog(models.Model):
    """The cached number of a task's units that an annotator can still label, and of their answers and skips that day.

    work/backlog.py counts the units periodically, and explains why it doesn't count them after every answer. Between
    counts, it only applies the annotator's own judgments.
    """

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="backlogs")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="backlogs")
    waiting = models.PositiveIntegerField()
    behind_tests = models.JSONField(
        default=dict,
        help_text="language -> number of units available after passing the test",
    )
    queues = models.JSONField(default=list, help_text="the queues in which the annotator can work")
    day = models.DateField(help_text="in the installation's time zone")
    answered = models.IntegerField(help_text="valid answers on this day")
    skipped = models.IntegerField(help_text="valid skips on this day")
    counted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["annotator", "task"], name="one_backlog"),
        ]

    def __str__(self) -> str:
        return f"{self.waiting} of {self.task} for {self.annotator}"


class Judgments(models.QuerySet["Judgment"]):
    def live(self) -> Self:
        """Return judgments that were not voided."""
        return self.filter(voided_at=None)

    def binding(self) -> Self:
        """Return live judgments and judgments that a manager voided. Their annotators must not get the unit again."""
        return self.filter(BINDING)

    def answers(self) -> Self:
        return self.filter(kind=Judgment.ANSWER)

    def decisions(self) -> Self:
        """Return judgments by adjudicators."""
        return self.filter(kind__in=[Judgment.SETTLE, Judgment.DISCARD])

    def numbered(self, annotator: Annotator, number: int) -> Self:
        """Return the judgment with a number and, if the annotator changed their answer, the judgments that replaced it.

        A changed answer keeps the number of the first judgment, and the later numbers are not valid. A new number would
        reveal whether others have judged the unit.

        number: primary key of the first judgment
        """
        judgments = Judgment.objects.filter(annotator=annotator).order_by()
        same = {"unit": models.OuterRef("unit"), "answered_at": models.OuterRef("answered_at")}
        first = judgments.filter(~models.Exists(judgments.filter(pk__lt=models.OuterRef("pk"), **same)), pk=number)
        return self.filter(
            annotator=annotator, unit__in=first.values("unit"), answered_at__in=first.values("answered_at")
        )

    def of_work(self) -> Self:
        """Return judgments of the units to label. Judgments of hidden gold answers are left out."""
        return self.filter(unit__honeypot=False)


# The condition of Judgments.binding, for subqueries and counts.
BINDING = Q(voided_at=None) | Q(voided_by__isnull=False)


class Judgment(LoadedRow):
    """An annotator's answer to a unit, or another decision about it.

    - ANSWER: the annotator answered the unit.
    - SKIP: the annotator skipped the unit.
    - FLAG: the annotator declined the unit as disturbing. It counts neither as an answer nor as a skip.
    - SETTLE: an adjudicator decided the unit's label.
    - DISCARD: an adjudicator decided that the unit gets no label.
    - REPEAT: another answer by the same annotator in an imported file. It is stored, but only counts on request.
    """

    ANSWER, SKIP, FLAG = "answer", "skip", "flag"
    SETTLE, DISCARD, REPEAT = "settle", "discard", "repeat"
    KINDS = (ANSWER, SKIP, FLAG, SETTLE, DISCARD, REPEAT)

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="judgments")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="judgments", db_index=False)
    # Null for adjudicators' decisions, which need no lease, and for imported repeats.
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, null=True, blank=True)
    kind = models.CharField(max_length=8, choices=[(k, k) for k in KINDS])
    label = models.TextField(blank=True, help_text="the canonical text of the answer")
    reason = models.CharField(max_length=200, blank=True)
    comment = models.TextField(blank=True)
    shown_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField()
    active_seconds = models.FloatField(null=True, help_text="working time without idle time; null if not measured")
    voided_at = models.DateTimeField(null=True, blank=True)
    voided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        db_index=False,
        help_text="the manager who voided the judgment; empty if the annotator withdrew it",
    )

    objects = Judgments.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["annotator", "answered_at"], name="own_answers"),
            models.Index(fields=["id"], condition=~Q(comment=""), name="commented"),
            models.Index(fields=["voided_by"], condition=Q(voided_by__isnull=False), name="voided"),
        ]
        constraints = [
            # Also prevents adjudicators from settling units they have already judged.
            models.UniqueConstraint(
                fields=["unit", "annotator"],
                condition=Q(voided_at__isnull=True) & ~Q(kind="repeat"),
                name="one_live_judgment",
            ),
            models.CheckConstraint(
                condition=Q(voided_by__isnull=True) | Q(voided_at__isnull=False), name="voided_by_when_voided"
            ),
            models.CheckConstraint(
                condition=(any_of("kind", ["answer", "settle", "repeat"]) & ~Q(label=""))
                | (any_of("kind", ["skip", "flag", "discard"]) & Q(label="")),
                name="answer_or_skip",
            ),
            models.CheckConstraint(
                condition=(any_of("kind", ["answer", "skip", "flag"]) & Q(lease__isnull=False))
                | (any_of("kind", ["settle", "discard", "repeat"]) & Q(lease__isnull=True)),
                name="annotators_judge_by_lease",
            ),
            models.CheckConstraint(
                condition=Q(shown_at__isnull=True) | Q(shown_at__lte=F("answered_at")),
                name="shown_before_answered",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.label}".strip()


class Change(models.Model):
    """An annotator's correction of their earlier answer.

    If nothing has happened to the unit since the earlier answer, a new judgment replaces the old one. Otherwise, the
    old answer counts until an adjudicator has decided between the two.
    """

    judgment = models.ForeignKey(Judgment, on_delete=models.PROTECT, related_name="changes")
    label = models.TextField(help_text="the canonical text of the new answer")
    reason = models.CharField(max_length=200, blank=True)
    comment = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.CheckConstraint(condition=~Q(label=""), name="changed_to_an_answer")]

    def __str__(self) -> str:
        return f"{self.judgment} to {self.label}"


class Transition(models.Model):
    """A unit's move from one stage to another, stored in the same transaction as the move."""

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="transitions")
    event = models.CharField(max_length=16)
    from_stage = models.CharField(max_length=16)
    to_stage = models.CharField(max_length=16)
    round = models.PositiveSmallIntegerField()
    language = models.CharField(max_length=16, blank=True)
    label = models.TextField(blank=True)
    judgment = models.ForeignKey(Judgment, on_delete=models.PROTECT, null=True, blank=True, db_index=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, db_index=False)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        indexes = [
            # Partial indexes suffice. Most transitions happen when a task is opened, so they have no judgment or user.
            models.Index(fields=["judgment"], condition=Q(judgment__isnull=False), name="moved_by_judgment"),
            models.Index(fields=["by"], condition=Q(by__isnull=False), name="moved_by"),
        ]

    def __str__(self) -> str:
        return f"{self.from_stage} → {self.to_stage} ({self.event})"
