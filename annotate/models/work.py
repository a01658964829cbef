"""Models for work: units, and their leases, judgments and transitions.

Constraints make the database reject invalid states; the modules of work/ explain which states are invalid. Judgments
and transitions are never changed or deleted, except that a judgment is marked as voided when it no longer counts.
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
    """Return the condition that a field has one of these values.

    In a constraint, it takes SQLite less time than `field__in`, for which each statement fills a table with the values.
    """
    return Q(*((field, value) for value in values), _connector=Q.OR)


class Units(models.QuerySet["Unit"]):
    """Queries for units that meet common conditions."""

    def work(self) -> Self:
        """Return units that need a label. Hidden gold answers do not need one, because their label is known."""
        return self.filter(honeypot=False)

    def hidden(self) -> Self:
        """Return hidden gold answers, all of which wait in a queue.

        The condition on `language` makes the database use the index of gold answers. Without it, SQLite would read all
        units of a task, because it does not know how few of them are hidden gold answers.
        """
        return self.filter(honeypot=True, language__gt="")

    def exported(self) -> Self:
        """Return units that can be exported. Units with an answer that was known from the start are never exported."""
        return self.filter(known_answer="")

    def queued(self) -> Self:
        return self.filter(stage=stages.QUEUED)

    def finished(self) -> Self:
        return self.filter(stage__in=stages.FINISHED)

    def ended_by(self, *events: str) -> Self:
        """Return units whose last transition was one of these events."""
        last = Transition.objects.filter(unit=OuterRef("pk")).order_by("-pk").values("event")[:1]
        return self.annotate(last=Subquery(last)).filter(last__in=events)

    def waiting_copies(self) -> Self:
        """Return copies without a label, because their originals are still waiting for people."""
        return self.filter(stage=stages.COPIED, copy_of__stage__in=stages.WAITING)


class Unit(LoadedRow):
    """An item in a task. Only work/moves.py writes its stage."""

    # Some foreign keys have no separate index, because another index begins with the same column or there is a partial
    # index below. An additional index would have to be updated whenever a unit is added or moved.
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="units", db_index=False)
    item = models.ForeignKey("corpora.Item", on_delete=models.PROTECT, related_name="units", db_index=False)
    asked = models.CharField(
        max_length=16,
        blank=True,
        help_text="the language in the question (Is this X?); empty if annotators may choose any language",
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
            # After every answer, this index is used to find out whether the audit of a language is finished.
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
    def in_a_line(self) -> str:
        """The text of the unit for a row in a list: the text of a post, or the fields of a record in order."""
        fields = self.task.kind.fields
        return " · ".join(self.item.fields[name] for name in fields) if fields else self.item.text


class Reserve(models.Model):
    """A document with a predicted class. It is drawn if the class has too few documents."""

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
    """A record that an annotator has received a unit.

    A unit has one place for each person who is asked about it. An open lease holds one of the places, and its holder
    can answer the unit. An answered lease keeps its place.

    An annotator can get a gold answer instead of a unit of work. While the lease of the gold answer is open, it
    reserves a place on the unit of work. work/eligible.py decides what happens if the gold answer is returned.
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
    # A number from 1 to the unit's redundancy while the lease is open or answered. It is NULL if the unit was returned,
    # and for gold answers.
    place = models.PositiveSmallIntegerField(null=True, blank=True)
    round = models.PositiveSmallIntegerField()
    queue = models.CharField(max_length=16)
    sheet = models.BooleanField(default=False, help_text="assigned together with others on a sheet")
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
        default=False, help_text="opened when an answer was withdrawn; it can be answered even if the unit changes"
    )
    back_after = models.PositiveSmallIntegerField(
        default=0,
        help_text="after a return, the number of other answers before the unit comes back",
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
            # When a person gets a unit, this index is used to find out what they have recently returned.
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
            # Several leases of a unit can have the place NULL, because NULL values never conflict.
            models.UniqueConstraint(fields=["unit", "place"], name="one_holder_per_place"),
            models.CheckConstraint(
                # State explicitly that a place is not null, because a check also passes if its result is NULL.
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
        """The unit of work on which the lease holds or reserves a place.

        This is the leased unit or, for a gold answer, the unit of work that the gold answer replaces.
        """
        return self.instead_of or self.unit

    @property
    def is_wanted(self) -> bool:
        """Whether the lease can still be answered."""
        return self.again or self.work.stage == stages.QUEUED


class Backlog(models.Model):
    """The number of units that wait for a person in a task, and how many the person has answered and skipped on a day.

    work/backlog.py counts these units from time to time, and explains why it does not count after every answer. Between
    two counts, it adds the person's own judgments.
    """

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="backlogs")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="backlogs")
    waiting = models.PositiveIntegerField()
    behind_tests = models.JSONField(
        default=dict,
        help_text="language -> number of units that would follow after passing the test",
    )
    queues = models.JSONField(default=list, help_text="the queues in which the person can work")
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
    """Queries for judgments that count for a certain purpose."""

    def live(self) -> Self:
        """Return judgments that were not voided."""
        return self.filter(voided_at=None)

    def binding(self) -> Self:
        """Return judgments after which the person is not asked about the unit again.

        These are judgments that were not voided, and judgments that a manager voided.
        """
        return self.filter(BINDING)

    def answers(self) -> Self:
        return self.filter(kind=Judgment.ANSWER)

    def decisions(self) -> Self:
        """Return judgments by adjudicators."""
        return self.filter(kind__in=[Judgment.SETTLE, Judgment.DISCARD])

    def numbered(self, annotator: Annotator, number: int) -> Self:
        """Return the judgment with a number and, if the person changed their answer, the judgments that replaced it.

        Only the number of the first judgment is valid, so that a changed answer keeps its number. A new number would
        reveal whether other people have judged the unit.

        number: primary key of the first judgment.
        """
        judgments = Judgment.objects.filter(annotator=annotator).order_by()
        same = {"unit": models.OuterRef("unit"), "answered_at": models.OuterRef("answered_at")}
        first = judgments.filter(~models.Exists(judgments.filter(pk__lt=models.OuterRef("pk"), **same)), pk=number)
        return self.filter(
            annotator=annotator, unit__in=first.values("unit"), answered_at__in=first.values("answered_at")
        )

    def of_work(self) -> Self:
        """Return judgments of units that need a label, which excludes hidden gold answers."""
        return self.filter(unit__honeypot=False)


# The condition of Judgments.binding, which subqueries and counts also use.
BINDING = Q(voided_at=None) | Q(voided_by__isnull=False)


class Judgment(LoadedRow):
    """A person's answer to a unit, or other decision about it. The kinds of judgments are:

    - ANSWER: the person answered the unit.
    - SKIP: the person skipped the unit.
    - FLAG: the person found the unit disturbing and passed it on. This counts neither as an answer nor as a skip.
    - SETTLE: an adjudicator decided the label of the unit.
    - DISCARD: an adjudicator decided that the unit gets no label.
    - REPEAT: an additional answer by a person who has already answered the unit, from an imported file. It is kept, but
      counts only on request.
    """

    ANSWER, SKIP, FLAG = "answer", "skip", "flag"
    SETTLE, DISCARD, REPEAT = "settle", "discard", "repeat"
    KINDS = (ANSWER, SKIP, FLAG, SETTLE, DISCARD, REPEAT)

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="judgments")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="judgments", db_index=False)
    # The lease is null for decisions by adjudicators, who need no lease, and for imported repeats.
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
            # This constraint also prevents adjudicators from settling units that they have already judged.
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
    """A new answer by which a person changed an earlier answer.

    If nothing else has happened to the unit since the earlier answer, a new judgment replaces the old one. Otherwise,
    the old answer counts until an adjudicator has decided between the two. The change is stored in both cases.
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
    """A record of a unit's move from one stage to another, stored in the same transaction as the move."""

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
            # The indexes are partial, because most transitions happen when a task is opened and have neither a judgment
            # nor a user.
            models.Index(fields=["judgment"], condition=Q(judgment__isnull=False), name="moved_by_judgment"),
            models.Index(fields=["by"], condition=Q(by__isnull=False), name="moved_by"),
        ]

    def __str__(self) -> str:
        return f"{self.from_stage} → {self.to_stage} ({self.event})"
