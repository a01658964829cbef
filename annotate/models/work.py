"""Models for work: units, their leases, judgments and transitions.

The database rejects invalid states; the modules of work/ explain them. Judgments and transitions are only ever added. A
judgment that no longer counts is voided.
"""

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery

from annotate.core import stages
from annotate.models.people import BY, Annotator
from annotate.models.tasks import Task


class Units(models.QuerySet):
    """Queries that define which units count."""

    def work(self):
        """Return units that need a label. Hidden gold answers, which everyone is asked, do not need one."""
        return self.filter(honeypot=False)

    def hidden(self):
        """Return the hidden gold answers of a task, each of which waits in a queue.

        The condition on `language` selects their index. Without it, SQLite would read all units of the task, because it
        does not know how few of them are hidden.
        """
        return self.filter(honeypot=True, language__gt="")

    def exported(self):
        """Return units that are published: those whose answer was not known beforehand."""
        return self.filter(known_answer="")

    def queued(self):
        return self.filter(stage=stages.QUEUED)

    def finished(self):
        return self.filter(stage__in=stages.FINISHED)

    def ended_by(self, *events):
        """Return units whose last transition was one of these events."""
        last = Transition.objects.filter(unit=OuterRef("pk")).order_by("-pk").values("event")[:1]
        return self.annotate(last=Subquery(last)).filter(last__in=events)

    def waiting_copies(self):
        """Return copies that have no label because their originals are still waiting."""
        return self.filter(stage=stages.COPIED, copy_of__stage__in=stages.WAITING)


class Unit(models.Model):
    """An item in a task. Only work/moves.py writes its stage."""

    # Foreign keys without an index of their own use the first column of another index, or a partial index below. Each
    # further index would be written whenever a unit is added or moved.
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="units", db_index=False)
    item = models.ForeignKey("corpora.Item", on_delete=models.PROTECT, related_name="units", db_index=False)
    asked = models.CharField(
        max_length=16,
        blank=True,
        help_text="the language that the question names (Is this X?); empty if any language may be answered",
    )
    pair = models.PositiveSmallIntegerField(
        default=0,
        help_text="which two of the task's systems it compares, 1 for the first two; 0 where nothing is compared",
    )
    position = models.PositiveBigIntegerField(help_text="rank in the draw, by which it is handed out")
    stage = models.CharField(max_length=16, choices=[(s, s) for s in stages.STAGES], default=stages.NEW)
    redundancy = models.PositiveSmallIntegerField(help_text="how many answers it asks for")
    candidates = models.JSONField(default=list, help_text="languages, most likely first")
    visited = models.JSONField(default=list, help_text="queues that the unit has been in")
    round = models.PositiveSmallIntegerField(default=0)
    language = models.CharField(max_length=16, blank=True, help_text="the queue in which it is, or was last")
    label = models.TextField(blank=True, help_text="the canonical text of its final answer")
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
        help_text="the unit of another task from which it took its label",
    )
    agreed_label = models.TextField(
        blank=True, help_text="the label on which the detectors agreed, if they did, or that was declared"
    )
    predicted = models.CharField(
        max_length=64,
        blank=True,
        help_text="the class by which a predictor found it, where people label what it finds; they never see it",
    )
    audited = models.BooleanField(default=False, help_text="chosen by chance to audit the detectors' agreement")
    recheck = models.BooleanField(
        default=False, help_text="chosen by chance: an adjudicator decides it in any case, blind"
    )
    known_answer = models.TextField(
        blank=True,
        help_text="the known answer of a hidden decoy or gold answer; such a unit is never exported",
    )
    honeypot = models.BooleanField(
        default=False, help_text="a gold answer that is asked of everybody and never gets a label"
    )
    disturbing = models.BooleanField(
        default=False, help_text="somebody found it so: it is given only to people who take such, gold answers too"
    )

    objects = Units.as_manager()

    class Meta:
        ordering = ["position"]
        indexes = [
            models.Index(fields=["task", "stage", "language", "position"], name="queue"),
            # Used by every answer, to see whether a language's audit is finished.
            models.Index(fields=["task", "agreed_label", "stage"], name="agreement"),
            models.Index(fields=["task", "language"], condition=Q(honeypot=True), name="honeypots"),
            models.Index(fields=["copy_of"], condition=Q(copy_of__isnull=False), name="copies"),
            models.Index(fields=["reused_from"], condition=Q(reused_from__isnull=False), name="reused"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["item", "task", "asked", "pair"], name="item_asked_once_in_task"),
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
        """Text for one row of a list: the post, or the fields of the record in order."""
        fields = self.task.kind.fields
        return " · ".join(self.item.fields[name] for name in fields) if fields else self.item.text


class Reserve(models.Model):
    """A document that a predictor assigned to a class, drawn if the class falls short."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="reserve")
    language = models.CharField(max_length=16)
    predicted = models.CharField(max_length=64)
    place = models.PositiveIntegerField(help_text="its place in the order of the lots, in its language and class")
    key = models.CharField("id", max_length=200)

    class Meta:
        ordering = ["place"]
        constraints = [
            models.UniqueConstraint(fields=["task", "language", "predicted", "place"], name="one_in_each_place"),
        ]

    def __str__(self) -> str:
        return self.key


class Lease(models.Model):
    """A unit handed to an annotator. Only the holder of a place may answer, and the answer keeps the place.

    A gold answer is handed out instead of a unit of work, on which it reserves a place while it is open.
    work/eligible.py decides what happens to it when it is returned.
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
        help_text="the unit of work that the person would have been given in place of this gold answer",
    )
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="leases", db_index=False)
    # 1..redundancy while the lease is open or answered; NULL once the place is returned, and for a gold answer.
    place = models.PositiveSmallIntegerField(null=True, blank=True)
    round = models.PositiveSmallIntegerField()
    queue = models.CharField(max_length=16)
    sheet = models.BooleanField(default=False, help_text="handed out with others on one sheet")
    turn = models.JSONField(
        null=True,
        blank=True,
        help_text="where the lot of gold answers stood when it was handed out: how many units of the language it "
        "had given the person, how many gold answers among them, and one gold answer in how many units; null where no "
        "lot decided",
    )
    in_place = models.BooleanField(
        default=False,
        help_text="a gold answer that somebody gave back, handed out in place of the unit for which it stands: the "
        "person is not asked about that unit, unless nothing else is left",
    )
    again = models.BooleanField(
        default=False, help_text="opened by taking an answer back; it may be answered whatever becomes of the unit"
    )
    back_after = models.PositiveSmallIntegerField(
        default=0, help_text="if it is given back, after how many other answers of this person it comes back to them"
    )
    opened_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=16, blank=True, choices=[(o, o) for o in OUTCOMES])

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["unit", "annotator"], name="leases_of_unit"),
            models.Index(fields=["annotator", "closed_at"], name="open_leases"),
            # Used whenever a unit is handed out, to see what the person has recently returned.
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
            # NULLs do not conflict, in SQLite or PostgreSQL.
            models.UniqueConstraint(fields=["unit", "place"], name="one_holder_per_place"),
            models.CheckConstraint(
                # Not null, stated explicitly: a check accepts a result that is neither true nor false.
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
        """The unit of work that decides what happens to the lease: its own, or the one that a gold answer replaces."""
        return self.instead_of or self.unit

    @property
    def is_wanted(self) -> bool:
        """Whether the state of its unit still allows an answer."""
        return self.again or self.work.stage == stages.QUEUED


class Backlog(models.Model):
    """A person's number of waiting units in a task, and of units answered and skipped on a day.

    work/backlog.py counts them, and explains why it does not count with every answer. Between counts, the person's own
    judgments are added.
    """

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="backlogs")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="backlogs")
    waiting = models.PositiveIntegerField()
    behind_tests = models.JSONField(
        default=dict, help_text="language -> how many more would wait, once the person has passed its test"
    )
    queues = models.JSONField(default=list, help_text="the queues that the person could work in")
    day = models.DateField(help_text="in the installation's time zone")
    answered = models.IntegerField(help_text="answers of the day that stand")
    skipped = models.IntegerField(help_text="skips of the day that stand")
    counted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["annotator", "task"], name="one_backlog"),
        ]

    def __str__(self) -> str:
        return f"{self.waiting} of {self.task} for {self.annotator}"


class Judgments(models.QuerySet):
    """Queries that define which judgments count."""

    def live(self):
        """Return judgments that were not voided."""
        return self.filter(voided_at=None)

    def binding(self):
        """Return judgments after which a person is not asked again: live ones, and those that a manager voided."""
        return self.filter(BINDING)

    def answers(self):
        return self.filter(kind=Judgment.ANSWER)

    def decisions(self):
        """Return judgments by adjudicators."""
        return self.filter(kind__in=[Judgment.SETTLE, Judgment.DISCARD])

    def numbered(self, annotator, number: int):
        """Return a person's judgment by number, or the one that replaced it when they changed it.

        Only the number of the first judgment is accepted, because a second number would reveal whether others had
        judged the unit.
        """
        own = Judgment.objects.filter(annotator=annotator).order_by()
        same = {"unit": models.OuterRef("unit"), "answered_at": models.OuterRef("answered_at")}
        given = own.filter(~models.Exists(own.filter(pk__lt=models.OuterRef("pk"), **same)), pk=number)
        return self.filter(
            annotator=annotator, unit__in=given.values("unit"), answered_at__in=given.values("answered_at")
        )

    def of_work(self):
        """Return judgments of units that need a label."""
        return self.filter(unit__honeypot=False)


# The condition of `binding`, for subqueries and counts.
BINDING = Q(voided_at=None) | Q(voided_by__isnull=False)


class Judgment(models.Model):
    """A person's judgment of a unit: an answer or a skip or, from an adjudicator, a settlement or a discard.

    A flag means that the person found the unit disturbing and passed it on. It counts neither as an answer nor as a
    skip.

    A repeat is an imported further answer by the same person. It is kept, and counts only on request.
    """

    ANSWER, SKIP, FLAG = "answer", "skip", "flag"
    SETTLE, DISCARD, REPEAT = "settle", "discard", "repeat"
    KINDS = (ANSWER, SKIP, FLAG, SETTLE, DISCARD, REPEAT)

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="judgments")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="judgments", db_index=False)
    # Adjudicators need no lease.
    lease = models.OneToOneField(Lease, on_delete=models.PROTECT, null=True, blank=True)
    kind = models.CharField(max_length=8, choices=[(k, k) for k in KINDS])
    label = models.TextField(blank=True, help_text="the canonical text of the answer")
    reason = models.CharField(max_length=200, blank=True)
    comment = models.TextField(blank=True)
    shown_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField()
    active_seconds = models.FloatField(
        null=True, help_text="working time on it without idle time; null if not measured"
    )
    voided_at = models.DateTimeField(null=True, blank=True)
    voided_by = models.ForeignKey(
        **BY, db_index=False, help_text="the manager who voided it; empty if the annotator took it back"
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
            # This also keeps adjudicators from settling units that they have judged.
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
                | (Q(kind__in=["skip", "flag", "discard"]) & Q(label="")),
                name="answer_or_skip",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["answer", "skip", "flag"], lease__isnull=False)
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


class Change(models.Model):
    """A person's new answer in place of an earlier one. It is always kept with the earlier answer.

    If nobody has gone on with the unit, a new judgment replaces the first. Otherwise, the first counts until an
    adjudicator has decided between the two.
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
    """A move of a unit from one stage to another, stored together with the move."""

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="transitions")
    event = models.CharField(max_length=16)
    from_stage = models.CharField(max_length=16)
    to_stage = models.CharField(max_length=16)
    round = models.PositiveSmallIntegerField()
    language = models.CharField(max_length=16, blank=True)
    label = models.TextField(blank=True)
    judgment = models.ForeignKey(Judgment, on_delete=models.PROTECT, null=True, blank=True, db_index=False)
    by = models.ForeignKey(**BY, db_index=False)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["to_stage", "language"], name="queues_visited"),
            # Most transitions occur when a task is opened, without a judgment or a user.
            models.Index(fields=["judgment"], condition=Q(judgment__isnull=False), name="moved_by_judgment"),
            models.Index(fields=["by"], condition=Q(by__isnull=False), name="moved_by"),
        ]

    def __str__(self) -> str:
        return f"{self.from_stage} → {self.to_stage} ({self.event})"
