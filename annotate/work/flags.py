"""Messages between annotators and managers: flags on units, managers' responses to flags, and managers' notes.

A unit flagged as disturbing is immediately passed on to other annotators (judgments.close). A unit flagged for another
reason stays with the annotator.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotate.core import stages
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer, NotAllowed, NotFound, WrongStage
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Flag, Guidelines, Lease, Note, NoteRead, Task, Unit
from annotate.quality.guideline_versions import ENGLISH, current, new_version
from annotate.work import judgments
from annotate.work.assignment import close
from annotate.work.moves import NO_ROW, move
from annotate.work.permit import Permit, permit_of

MESSAGE_LENGTH = 2000  # maximum length of a message, reply or note, in characters
_MARKS = re.compile(r"([\\`*_\[\]<>&|#~])")
_BEGINS = re.compile(r"^(\d*)([-+=.)])")
# Kinds of flags and their labels, in the order that the panel shows them.
KINDS = {
    Flag.DISTURBING: gettext_lazy("Disturbing: hide this item and pass it on"),
    Flag.PERSONAL: gettext_lazy("Personal data"),
    Flag.BROKEN: gettext_lazy("Broken text"),
    Flag.QUESTION: gettext_lazy("Ask a question"),
}


@dataclass(frozen=True)
class FlagResult:
    """A stored flag.

    closed: result of passing the unit on; None if it stays with the annotator.
    """

    flag: Flag
    closed: judgments.Closed | None = None


def flag(
    permit: Permit, lease_id: int, kind: str, message: str = "", active_seconds: float | None = None
) -> FlagResult:
    """Flag a leased unit, within the annotator's transaction. Idempotent for the same message.

    permit: the annotator's permit.
    lease_id: primary key of the lease. It may have ended, unless the unit is flagged as disturbing.
    kind: one of KINDS.
    message: the annotator's message, required for a question.
    active_seconds: see `judgments.judge`.
    """
    message = message.replace("\r\n", "\n").strip()
    if kind == Flag.QUESTION and not message:
        raise InvalidAnswer(_("Write your question, so that the manager can answer it."))
    if len(message) > MESSAGE_LENGTH:
        raise InvalidAnswer(
            _("Your message is longer than %(most)s characters. Please shorten it.") % {"most": f"{MESSAGE_LENGTH:,}"}
        )
    if "\x00" in message:
        raise InvalidAnswer(_("Your message contains a NUL character. Please remove it."))
    if kind not in KINDS:
        raise InvalidAnswer(_("Choose the kind of flag: disturbing, personal, broken or question."))
    closed: judgments.Closed | None = None
    unit: int | None
    if kind == Flag.DISTURBING:
        closed = judgments.close(permit, lease_id, None, active_seconds, is_disturbing=True)
        lease_id, unit = closed.judgment.lease_id or lease_id, closed.judgment.unit_id
    else:
        leases = Lease.objects.filter(pk=lease_id, annotator=permit.annotator, unit__task=permit.task)
        unit = leases.values_list("unit", flat=True).first()
    if unit is None:
        raise NotFound(_("You do not have this item."))
    values = {"unit_id": unit, "annotator": permit.annotator, "words": message, "at": timezone.now()}
    values["judgment"] = closed and closed.judgment
    stored, is_new = Flag.objects.get_or_create(lease_id=lease_id, kind=kind, defaults=values)
    if not is_new and stored.words != message:
        raise AlreadyAnswered(_("You have already flagged this item, and the manager has your first message."))
    return FlagResult(stored, closed)


def set_takes_disturbing(annotator: Annotator, *, takes: bool) -> None:
    """Opt in or out of units that other annotators flagged as disturbing. Idempotent.

    Opting out returns the annotator's open disturbing units, including gold answers, to their queues. The backlog isn't
    recounted immediately, because an exact count would reveal gold answers.
    """
    with transaction.atomic():
        annotator.lock()
        annotator.takes_disturbing = takes
        annotator.save(update_fields=["takes_disturbing"])
        if not takes:
            close(Lease.objects.filter(annotator=annotator, closed_at=None, unit__disturbing=True), [], "released")


# --- managers' replies


def replies(annotator: Annotator) -> QuerySet[Flag]:
    """Return the replies that an annotator has not dismissed, newest first."""
    answered_flags = Flag.objects.answered().filter(annotator=annotator)
    return answered_flags.select_related("unit__item", "unit__task").order_by("-replied_at")


def dismiss_reply(annotator: Annotator, flag_id: int) -> None:
    """Dismiss a manager's reply, so that the annotator no longer sees it. Idempotent.

    Raise NotFound if the annotator has no such reply.
    """
    flags = Flag.objects.filter(pk=flag_id, annotator=annotator, replied_at__isnull=False)
    if not flags.exists():
        raise NotFound(_("You do not have this reply."))
    flags.filter(put_away_at=None).update(put_away_at=timezone.now())


# --- managers' actions


def reply(flag_id: int, message: str, *, by: User) -> Flag:
    """Reply to a flag, which also resolves it. Idempotent for the same message; a different second reply is refused."""
    message = _clean_text(message, "reply", "the annotator")
    with transaction.atomic():
        stored = _lock_flag(flag_id)
        if stored.reply and stored.reply != message:
            raise AlreadyAnswered(f"{stored.settled_by} has already replied, and the annotator has that reply.")
        if not stored.reply:
            stored.reply, stored.replied_at = message, timezone.now()
            _resolve(stored, by, stored.replied_at)
    return stored


def _clean_text(text: str, name: str, readers: str) -> str:
    """Normalize and check the text of a reply or note.

    name: "reply" or "note", for error messages.
    readers: who will read the text, for error messages.

    Raise InvalidAnswer if the text is empty or cannot be stored.
    """
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise InvalidAnswer(f"The {name} is empty. Write what {readers} should know.")
    if len(text) > MESSAGE_LENGTH or "\x00" in text:
        raise InvalidAnswer(
            f"The {name} contains a NUL character or more than {MESSAGE_LENGTH:,} characters. Please correct it."
        )
    return text


def dismiss(flag_id: int, *, by: User) -> Flag:
    """Resolve a flag without action. Idempotent."""
    with transaction.atomic():
        stored = _lock_flag(flag_id)
        _resolve(stored, by, timezone.now())
    return stored


def discard(flag_id: int, *, by: User) -> Flag:
    """Exclude a flagged unit from the gold set, regardless of its answers, and resolve the flag. Idempotent."""
    with transaction.atomic():
        unit_id = Flag.objects.filter(pk=flag_id).values_list("unit", flat=True).first() or NO_ROW
        # no_key: see judgments.py. Lock the unit before the flag, in the same order as `flag` does.
        units = Unit.objects.select_for_update(of=("self",), no_key=True).select_related("task", "item")
        unit = units.filter(pk=unit_id).first()
        stored = _lock_flag(flag_id)
        assert unit  # every flag has a unit
        if unit.honeypot:
            raise NotAllowed(
                "This item is a hidden gold answer, which is not part of any gold set. Remove it from the gold "
                "answers instead."
            )
        if not unit.transitions.filter(event="withdrawn").exists():
            move(unit, "withdrawn", stages.DISCARDED, by=by)
            for control in unit.task.hooks["moved"]:
                control.moved(unit)
        _resolve(stored, by, timezone.now())
    return stored


def make_example(flag_id: int, *, by: User) -> Guidelines:
    """Add a flagged unit's text, the annotator's question and the reply to the guidelines, as an example.

    This creates a new minor version of the guidelines that apply to the unit. Idempotent.
    """
    with transaction.atomic():
        stored = _lock_flag(flag_id)
        if stored.example:
            return stored.example
        unit = stored.unit
        if not stored.reply or stored.kind != Flag.QUESTION:
            raise WrongStage("Only a question with a reply can become an example. Reply first.")
        if unit.known_answer:
            raise NotAllowed(
                "This item has a hidden known answer. As an example, it would reveal the answer to all annotators."
            )
        guidelines = current(unit.task, unit.item.language or ENGLISH)
        language = guidelines.language if guidelines else ENGLISH
        text = f"{guidelines.text.rstrip() if guidelines else ''}\n\n{_example(stored)}".lstrip()
        stored.example = new_version(unit.task, language, text, major=False)
        stored.save(update_fields=["example"])
    return stored.example


def _example(stored: Flag) -> str:
    """Return the example as Markdown: the item as a quotation, the question in italics, and the reply, all escaped.

    The example has no other text, such as headings, because guidelines are written in many languages.
    """
    question = _escaped(" ".join(stored.words.split()))
    return f"{_quotation(stored.unit.one_line_text)}\n\n*{question}*\n\n{_escaped(stored.reply)}"


def _quotation(text: str) -> str:
    return "\n".join(f"> {_escaped(line)}".rstrip() for line in text.splitlines())


def _escaped(text: str) -> str:
    """Escape Markdown. Indentation is stripped, because it would turn lines into code blocks."""
    escaped = (_MARKS.sub(r"\\\1", line.strip()) for line in text.splitlines())
    return "\n".join(_BEGINS.sub(r"\1\\\2", line) for line in escaped)


def _resolve(stored: Flag, by: User, time: datetime) -> None:
    if stored.settled_at is None:
        stored.settled_at, stored.settled_by = time, by
    stored.save(update_fields=["reply", "replied_at", "settled_at", "settled_by"])


def _lock_flag(flag_id: int) -> Flag:
    flags = Flag.objects.select_for_update(of=("self",)).select_related(
        "unit__item", "unit__task", "annotator__user", "settled_by", "example"
    )
    stored = flags.filter(pk=flag_id).first()
    if stored is None:
        raise NotFound("This flag does not exist.")
    return stored


# --- managers' notes, each to everyone in a task or to the readers of one of its languages


def write_note(task: Task, text: str, *, by: User, language: str = "") -> Note:
    """Publish a note to everyone who works in a task, or only to those who read a given language."""
    text = _clean_text(text, "note", "people")
    if language and language not in task.reading_languages:
        raise InvalidAnswer(f"Nobody reads {label_name(language)} for this task, so nobody would see the note.")
    return Note.objects.create(task=task, language=language, text=text, by=by, at=timezone.now())


def withdraw_note(task: Task, note_id: int) -> None:
    """Withdraw a note. Idempotent."""
    notes = task.notes.filter(pk=note_id)
    if not notes.exists():
        raise NotFound("The task does not have this note.")
    notes.filter(withdrawn_at=None).update(withdrawn_at=timezone.now())


def notes_of(task: Task) -> QuerySet[Note]:
    """Return a task's notes, newest first. The annotation `readers` is the number of people who dismissed the note."""
    return task.notes.select_related("by").annotate(readers=Count("reads")).order_by("-pk")


def notes_to_read(permits: Sequence[Permit]) -> list[Note]:
    """Return the notes that an annotator has not dismissed, newest first.

    permits: the annotator's permits for the tasks to include.
    """
    if not permits:
        return []
    by_task = {permit.task.pk: permit for permit in permits}
    notes = Note.objects.filter(task__in=by_task, withdrawn_at=None).exclude(reads__annotator=permits[0].annotator)
    return [note for note in notes.select_related("task") if _is_for(note, by_task[note.task_id])]


def _is_for(note: Note, permit: Permit) -> bool:
    if note.language:
        return note.language in permit.reads
    return bool(permit.reads) or permit.adjudicates


def dismiss_note(annotator: Annotator, note_id: int) -> Note:
    """Dismiss a note, so that the annotator no longer sees it. Idempotent.

    Raise NotFound if the annotator has no such note.
    """
    note = Note.objects.filter(pk=note_id).select_related("task").first()
    if note is None or not _is_for(note, permit_of(annotator, note.task)):
        raise NotFound(_("You do not have this note."))
    NoteRead.objects.get_or_create(note=note, annotator=annotator, defaults={"at": timezone.now()})
    return note
