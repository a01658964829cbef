"""Managers' notes to everyone who works in a task, or in one of its languages."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Note, NoteRead, Task
from annotate.work.permit import Permit, permit_of

LONGEST = 2000  # greatest length of a note, in characters


def write(task: Task, text: str, *, by: User, language: str = "") -> Note:
    """Publish a note to everyone who works in a task, or to the readers of one of its languages."""
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise InvalidAnswer("The note is empty. Write what people should know.")
    if len(text) > LONGEST or "\x00" in text:
        raise InvalidAnswer(f"The note has a NUL character or more than {LONGEST:,} characters. Please mend it.")
    if language and language not in task.read_in:
        raise InvalidAnswer(f"Nobody reads {label_name(language)} for this task, so nobody would be told.")
    return Note.objects.create(task=task, language=language, text=text, by=by, at=timezone.now())


def withdraw(task: Task, note_id: int) -> None:
    """Withdraw a note. A retry changes nothing."""
    own = task.notes.filter(pk=note_id)
    if not own.exists():
        raise NotFound("There is no such note in this task.")
    own.filter(withdrawn_at=None).update(withdrawn_at=timezone.now())


def notes_of(task: Task) -> QuerySet[Note]:
    """Return all notes of a task, newest first. The annotation `readers` counts the people who dismissed a note."""
    return task.notes.select_related("by").annotate(readers=Count("reads")).order_by("-pk")


def to_read(permits: Sequence[Permit]) -> list[Note]:
    """Return the notes that an annotator has not dismissed, newest first.

    permits: the annotator's permits, one for each task whose notes are wanted.
    """
    if not permits:
        return []
    by_task = {permit.task.pk: permit for permit in permits}
    standing = Note.objects.filter(task__in=by_task, withdrawn_at=None).exclude(reads__annotator=permits[0].annotator)
    return [note for note in standing.select_related("task") if _is_for(note, by_task[note.task_id])]


def _is_for(note: Note, permit: Permit) -> bool:
    if note.language:
        return note.language in permit.reads
    return bool(permit.reads) or permit.annotator.adjudicates


def put_away(annotator: Annotator, note_id: int) -> Note:
    """Dismiss a note. A retry changes nothing.

    Raises NotFound if the annotator has no such note.
    """
    note = Note.objects.filter(pk=note_id).select_related("task").first()
    if note is None or not _is_for(note, permit_of(annotator, note.task)):
        raise NotFound(_("There is no such note to you."))
    NoteRead.objects.get_or_create(note=note, annotator=annotator, defaults={"at": timezone.now()})
    return note
