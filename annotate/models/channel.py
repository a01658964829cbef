"""Models for messages between annotators and managers: flags with replies, and notes."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotate.models.people import BY, Annotator
from annotate.models.tasks import Guidelines, Task
from annotate.models.work import Judgment, Lease, Unit


class Flags(models.QuerySet):
    """Queries for flags in different states."""

    def standing(self):
        """Return flags that were not withdrawn."""
        return self.filter(judgment__voided_at=None)

    def open(self):
        """Return flags that were not withdrawn and that no manager has settled."""
        return self.standing().filter(settled_at=None)

    def answered(self):
        """Return flags that have a reply which the annotator has not dismissed."""
        return self.standing().filter(replied_at__isnull=False, put_away_at=None)


class Flag(models.Model):
    """A message from a person to the managers about a unit that the person has received."""

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
        help_text="by which the person handed a disturbing unit on; others stay with them",
    )
    kind = models.CharField(max_length=10, choices=[(kind, kind) for kind in KINDS])
    words = models.TextField(blank=True, help_text="the person's own; a question has some")
    at = models.DateTimeField()
    reply = models.TextField(blank=True)
    replied_at = models.DateTimeField(null=True, blank=True)
    put_away_at = models.DateTimeField(null=True, blank=True, help_text="when the person had read the reply")
    settled_at = models.DateTimeField(null=True, blank=True, help_text="when a manager had dealt with it")
    settled_by = models.ForeignKey(**BY, related_name="flags_settled")
    example = models.ForeignKey(
        Guidelines,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="examples",
        help_text="the version of the guidelines in which question and reply became an example",
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
    """A message from a manager to everyone who works in a task, or only to those who work in one of its languages."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="notes")
    language = models.CharField(max_length=16, blank=True, help_text="whose readers it is for; empty: everybody")
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
    """A record that a person has read and dismissed a note."""

    note = models.ForeignKey(Note, on_delete=models.CASCADE, related_name="reads")
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="notes_read")
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["note", "annotator"], name="note_read_once")]

    def __str__(self) -> str:
        return f"{self.note} by {self.annotator}"
