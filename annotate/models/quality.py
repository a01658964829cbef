"""Models for quality control, for comparisons and concepts, and for flags and notes."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from annotate.core.draws.committed_draws import RECORDED as PURPOSES
from annotate.kinds.kind import WAYS
from annotate.models.people import Annotator
from annotate.models.tasks import Guidelines, Task
from annotate.models.work import Judgment, Lease, Unit


class GoldAnswer(models.Model):
    """An item with a known label for practice, for the test, or to hide in the queue. It is never exported."""

    PRACTICE, TEST, QUEUE = "practice", "test", "queue"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="gold_answers")
    item = models.ForeignKey("corpora.Item", on_delete=models.PROTECT, related_name="gold_answers")
    purpose = models.CharField(max_length=8, choices=[(p, p) for p in (PRACTICE, TEST, QUEUE)])
    label = models.TextField(help_text="the canonical text of the right answer")
    explanation = models.TextField(blank=True, help_text="why the label is right, in the language of the record")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["task", "item"], name="gold_answer_once_in_task")]

    def __str__(self) -> str:
        return f"{self.item.key}: {self.label}"


class Trial(models.Model):
    """An annotator's practice round or qualification test, in one of a task's languages."""

    PRACTICE, TEST = "practice", "test"

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="trials")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="trials")
    language = models.CharField(max_length=16)
    kind = models.CharField(max_length=8, choices=[(k, k) for k in (PRACTICE, TEST)])
    guidelines = models.ForeignKey(
        Guidelines, on_delete=models.PROTECT, help_text="the version that applied when the trial was taken"
    )
    number = models.PositiveSmallIntegerField(help_text="1 for the first trial of this kind under a major version")
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
    """A question in a trial, with the annotator's answer once there is one."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="answers")
    gold_answer = models.ForeignKey(GoldAnswer, on_delete=models.PROTECT, related_name="trial_answers")
    position = models.PositiveSmallIntegerField()
    first = models.CharField(max_length=40, blank=True, help_text="the system shown first, if two are compared")
    label = models.TextField(blank=True)
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
    """An annotator's permission to work in one of a task's languages, under a major version of its guidelines."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="qualifications")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="qualifications")
    language = models.CharField(max_length=16)
    major = models.PositiveSmallIntegerField()
    trial = models.OneToOneField(
        Trial, on_delete=models.PROTECT, null=True, blank=True, help_text="the test that was passed"
    )
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True)
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


class Lot(models.Model):
    """A record of a random draw, so that others can verify the draw later.

    A draw is recorded if it affects which units an annotator gets or how reliable the results are.
    core/draws/committed_draws.py describes the draw for each purpose.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="drawn_lots")
    purpose = models.CharField(max_length=16, choices=[(purpose, purpose) for purpose in PURPOSES])
    of = models.JSONField(default=list, help_text="the stratum, queue, language or annotator of the draw")
    how = models.JSONField(default=dict, help_text="the share or number that determined the size")
    frame = models.JSONField(help_text="the ids that could be drawn")
    drawn = models.JSONField(help_text="the ids that were drawn")

    class Meta:
        ordering = ["pk"]
        constraints = [models.CheckConstraint(condition=Q(purpose__in=PURPOSES), name="known_purpose")]

    def __str__(self) -> str:
        return f"{self.purpose} {' '.join(self.of)} of {self.task.name}".replace("  ", " ")


class Consent(models.Model):
    """An annotator's consent to work with texts that may be distressing.

    In a task with such texts, annotators get no work unless they have consented and not withdrawn.
    """

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="consents")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="consents")
    at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["annotator", "task"], condition=Q(withdrawn_at__isnull=True), name="one_running_consent"
            ),
            models.CheckConstraint(
                condition=Q(withdrawn_at__isnull=True) | Q(withdrawn_at__gte=F("at")), name="withdrawn_after_agreed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.task.name}"


class Pause(models.Model):
    """A period in which an annotator gets no work from a task. It lasts until a manager ends it."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="pauses")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="pauses")
    right = models.PositiveIntegerField(help_text="correct answers to known units since the last pause")
    asked = models.PositiveIntegerField(help_text="all answers to known units since the last pause")
    reason = models.TextField(blank=True, help_text="the manager's reason; empty if automatic")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="pauses_ordered"
    )
    at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="pauses_lifted"
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


# --- Comparisons of two systems, and concepts from a vocabulary


class Comparison(models.Model):
    """Two systems to compare, with each system's replies to a message. `system_a` precedes `system_b` in the alphabet.

    The message belongs to a unit or, in practice rounds and tests, to a gold answer.
    """

    unit = models.OneToOneField(Unit, on_delete=models.CASCADE, null=True, blank=True, related_name="comparison")
    gold_answer = models.OneToOneField(
        GoldAnswer, on_delete=models.CASCADE, null=True, blank=True, related_name="comparison"
    )
    system_a = models.CharField(max_length=40)
    system_b = models.CharField(max_length=40)
    replies_a = models.JSONField(default=list, blank=True, help_text="the replies of system a, best first")
    replies_b = models.JSONField(default=list, blank=True)

    class Meta:
        constraints = [
            # The order of the systems has no constraint, because collations differ between databases.
            models.CheckConstraint(condition=~Q(system_a=F("system_b")), name="two_systems_compared"),
            models.CheckConstraint(
                condition=Q(unit__isnull=True, gold_answer__isnull=False)
                | Q(unit__isnull=False, gold_answer__isnull=True),
                name="compared_for_a_unit_or_a_gold_answer",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.system_a} and {self.system_b}"

    @property
    def systems(self) -> tuple[str, str]:
        return self.system_a, self.system_b


class Side(models.Model):
    """The system that an annotator sees first in a unit. Practice and test questions store it in TrialAnswer instead.

    It is stored when the annotator gets the unit, so that they see the same order after they reload the page, return
    the unit or undo their answer.
    """

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="sides")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="sides")
    first = models.CharField(max_length=40, help_text="the system that was shown first")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["unit", "annotator"], name="sides_drawn_once")]

    def __str__(self) -> str:
        return f"{self.first} first for {self.annotator}"


class ChosenConcept(models.Model):
    """A concept in an annotator's answer, and how they found it. A judgment's label consists of all its concepts."""

    judgment = models.ForeignKey(Judgment, on_delete=models.PROTECT, related_name="chosen")
    concept = models.ForeignKey("corpora.Concept", on_delete=models.PROTECT, related_name="+")
    way = models.CharField(
        max_length=9,
        blank=True,
        choices=[(way, way) for way in WAYS],
        help_text="empty if unknown, for example for answers by the API or from files",
    )
    rank = models.PositiveSmallIntegerField(null=True, help_text="rank of a suggestion in the list, from 1")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judgment", "concept"], name="concept_chosen_once"),
            models.CheckConstraint(condition=Q(way__in=["", *WAYS]), name="known_way"),
            models.CheckConstraint(
                condition=Q(way="suggested", rank__isnull=False, rank__gte=1) | ~Q(way="suggested") & Q(rank=None),
                name="suggestion_has_a_rank",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.concept} {self.way} {self.rank or ''}".strip()


class Suggestion(models.Model):
    """The ids of the concepts that a system suggests for a unit, best first.

    Hidden gold answers have suggestions too, because annotators must not be able to tell them from units of work.
    """

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="suggestions")
    system = models.CharField(max_length=200, help_text="the ranked predictor: NAME@VERSION")
    ranked = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["unit", "system"], name="one_list_of_a_system")]

    def __str__(self) -> str:
        return f"{self.system}: {', '.join(self.ranked)}"


# --- Messages between annotators and managers: flags with replies, and notes.


class Flags(models.QuerySet["Flag"]):
    def active(self) -> Self:
        """Return flags that were not withdrawn."""
        return self.filter(judgment__voided_at=None)

    def open(self) -> Self:
        """Return active flags that no manager has resolved."""
        return self.active().filter(settled_at=None)

    def answered(self) -> Self:
        """Return active flags with a reply that the annotator has not dismissed."""
        return self.active().filter(replied_at__isnull=False, put_away_at=None)


class Flag(models.Model):
    """An annotator's report or question to the managers about a unit they received."""

    DISTURBING, PERSONAL, BROKEN, QUESTION = "disturbing", "personal", "broken", "question"
    KINDS = (DISTURBING, PERSONAL, BROKEN, QUESTION)

    unit = models.ForeignKey(Unit, on_delete=models.PROTECT, related_name="flags")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="flags")
    lease = models.ForeignKey(Lease, on_delete=models.PROTECT, related_name="flags")
    judgment = models.OneToOneField(
        Judgment,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        help_text="the judgment that passed a disturbing unit on to others; empty for other flags",
    )
    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in KINDS])
    words = models.TextField(blank=True, help_text="the annotator's comment; required for questions")
    at = models.DateTimeField()
    reply = models.TextField(blank=True)
    replied_at = models.DateTimeField(null=True, blank=True)
    put_away_at = models.DateTimeField(null=True, blank=True, help_text="when the annotator dismissed the reply")
    settled_at = models.DateTimeField(null=True, blank=True, help_text="when a manager resolved the flag")
    settled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="flags_settled"
    )
    example = models.ForeignKey(
        Guidelines,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="examples",
        help_text="the version of the guidelines that includes the question and reply as an example",
    )

    objects = Flags.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["id"], condition=Q(settled_at=None), name="open_flags"),
            models.Index(
                fields=["annotator"], condition=Q(replied_at__isnull=False, put_away_at=None), name="unread_replies"
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["lease", "kind"], name="flagged_once"),
            models.CheckConstraint(
                condition=Q(kind__in=["disturbing", "personal", "broken", "question"]), name="known_flag"
            ),
            models.CheckConstraint(condition=~Q(kind="question") | ~Q(words=""), name="question_has_words"),
            models.CheckConstraint(
                condition=Q(kind="disturbing", judgment__isnull=False) | (~Q(kind="disturbing") & Q(judgment=None)),
                name="disturbing_is_handed_on",
            ),
            models.CheckConstraint(
                condition=Q(settled_at=None, settled_by=None) | Q(settled_at__isnull=False, settled_by__isnull=False),
                name="settled_by_somebody",
            ),
            models.CheckConstraint(
                condition=Q(reply="", replied_at=None, put_away_at=None)
                | (~Q(reply="") & Q(replied_at__isnull=False, settled_at__isnull=False)),
                name="reply_settles",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.unit}"


class Note(models.Model):
    """A manager's message to a task's annotators, or only to those in one of its languages."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="notes")
    language = models.CharField(
        max_length=16, blank=True, help_text="show the note only to annotators in this language; empty: all"
    )
    text = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="notes")
    at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="note_says_something")]

    def __str__(self) -> str:
        return f"{self.task.name}: {self.text}"


class NoteRead(models.Model):
    """A record that an annotator has dismissed a note."""

    note = models.ForeignKey(Note, on_delete=models.CASCADE, related_name="reads")
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="notes_read")
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["note", "annotator"], name="note_read_once")]

    def __str__(self) -> str:
        return f"{self.note} by {self.annotator}"
