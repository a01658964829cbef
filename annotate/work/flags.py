"""Messages between annotators and managers: flags about units, what managers do about them, and managers' notes.

A unit that is flagged as disturbing is passed on to other people at once (judgments.close). A unit that is flagged for
any other reason stays with the annotator.
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
from annotate.work.moves import NO_ROW, move
from annotate.work.permit import Permit, permit_of
from annotate.work.queue import close

MOST_WORDS = 2000  # characters
_MARKS = re.compile(r"([\\`*_\[\]<>&|#~])")
_BEGINS = re.compile(r"^(\d*)([-+=.)])")
# Kinds of flags and their labels, in the order in which the panel shows them.
KINDS = {
    Flag.DISTURBING: gettext_lazy("Disturbing: hide it and pass it on"),
    Flag.PERSONAL: gettext_lazy("Personal data"),
    Flag.BROKEN: gettext_lazy("Broken text"),
    Flag.QUESTION: gettext_lazy("A question, which you write below"),
}


@dataclass(frozen=True)
class Flagged:
    """A stored flag.

    closed: result of passing the unit on, None if the unit stays with the annotator.
    """

    flag: Flag
    closed: judgments.Closed | None = None


def flag(permit: Permit, lease_id: int, kind: str, words: str = "", active_seconds: float | None = None) -> Flagged:
    """Flag the unit of a lease, within the annotator's transaction. A retry changes nothing.

    permit: the annotator's permit.
    lease_id: primary key of the lease. The lease may have ended already, unless the text is flagged as disturbing.
    kind: one of KINDS.
    words: the annotator's message, required for a question.
    active_seconds: see `judgments.judge`.
    """
    words = words.replace("\r\n", "\n").strip()
    if kind == Flag.QUESTION and not words:
        raise InvalidAnswer(_("Write your question first, so that the manager can answer it."))
    if len(words) > MOST_WORDS:
        raise InvalidAnswer(
            _("What you wrote is longer than %(most)s characters. Please shorten it.") % {"most": f"{MOST_WORDS:,}"}
        )
    if "\x00" in words:
        raise InvalidAnswer(_("What you wrote has a NUL character in it. Please remove it."))
    if kind not in KINDS:
        raise InvalidAnswer(_("Say what you flag: disturbing, personal, broken or question."))
    closed: judgments.Closed | None = None
    unit: int | None
    if kind == Flag.DISTURBING:
        closed = judgments.close(permit, lease_id, None, active_seconds, is_disturbing=True)
        lease_id, unit = closed.judgment.lease_id or lease_id, closed.judgment.unit_id
    else:
        leases = Lease.objects.filter(pk=lease_id, annotator=permit.annotator, unit__task=permit.task)
        unit = leases.values_list("unit", flat=True).first()
    if unit is None:
        raise NotFound(_("You have not been given such a unit."))
    values = {"unit_id": unit, "annotator": permit.annotator, "words": words, "at": timezone.now()}
    values["judgment"] = closed and closed.judgment
    stored, is_new = Flag.objects.get_or_create(lease_id=lease_id, kind=kind, defaults=values)
    if not is_new and stored.words != words:
        raise AlreadyAnswered(_("You have flagged this one so before, and the manager has what you wrote then."))
    return Flagged(stored, closed)


def take_disturbing(annotator: Annotator, *, takes: bool) -> None:
    """Accept or decline units that others found disturbing. A retry changes nothing.

    If the annotator declines them, their open disturbing units return to the queues, including gold answers. The
    backlog is not counted again at once, because an exact count would reveal gold answers.
    """
    with transaction.atomic():
        annotator.one_at_a_time()
        annotator.takes_disturbing = takes
        annotator.save(update_fields=["takes_disturbing"])
        if not takes:
            close(Lease.objects.filter(annotator=annotator, closed_at=None, unit__disturbing=True), [], "released")


# --- managers' replies


def replies(annotator: Annotator) -> QuerySet[Flag]:
    """Return the replies that an annotator has not dismissed, newest first."""
    found = Flag.objects.answered().filter(annotator=annotator)
    return found.select_related("unit__item", "unit__task").order_by("-replied_at")


def put_away(annotator: Annotator, flag_id: int) -> None:
    """Dismiss a reply. A retry changes nothing.

    Raises NotFound if the annotator has no such reply.
    """
    own = Flag.objects.filter(pk=flag_id, annotator=annotator, replied_at__isnull=False)
    if not own.exists():
        raise NotFound(_("There is no such reply to you."))
    own.filter(put_away_at=None).update(put_away_at=timezone.now())


# --- managers' actions


def reply(flag_id: int, words: str, *, by: User) -> Flag:
    """Reply to a flag, which settles it. A retry changes nothing. A second reply with a different text is refused."""
    words = words.replace("\r\n", "\n").strip()
    if not words:
        raise InvalidAnswer("The reply is empty. Write what the annotator should know.")
    if len(words) > MOST_WORDS or "\x00" in words:
        raise InvalidAnswer(f"The reply has a NUL character or more than {MOST_WORDS:,} characters. Please correct it.")
    with transaction.atomic():
        found = _locked(flag_id)
        if found.reply and found.reply != words:
            raise AlreadyAnswered(f"{found.settled_by} has replied already. The annotator has that reply.")
        if not found.reply:
            found.reply, found.replied_at = words, timezone.now()
            _settle(found, by, found.replied_at)
    return found


def dismiss(flag_id: int, *, by: User) -> Flag:
    """Settle a flag without action. A retry changes nothing."""
    with transaction.atomic():
        found = _locked(flag_id)
        _settle(found, by, timezone.now())
    return found


def discard(flag_id: int, *, by: User) -> Flag:
    """Exclude a flagged unit from the gold set, whatever its answers, and settle the flag. A retry changes nothing."""
    with transaction.atomic():
        unit_id = Flag.objects.filter(pk=flag_id).values_list("unit", flat=True).first() or NO_ROW
        # no_key: see judgments.py. Lock the unit before the flag, in the same order as when a disturbing unit is
        # flagged.
        units = Unit.objects.select_for_update(of=("self",), no_key=True).select_related("task", "item")
        unit = units.filter(pk=unit_id).first()
        stored = _locked(flag_id)
        assert unit  # the flag has one
        if unit.honeypot:
            raise NotAllowed(
                "This is a hidden gold answer, which is in no set. Take it out of the gold answers instead."
            )
        if not unit.transitions.filter(event="withdrawn").exists():
            move(unit, "withdrawn", stages.DISCARDED, by=by)
            for control in unit.task.controls:
                control.moved(unit)
        _settle(stored, by, timezone.now())
    return stored


def make_example(flag_id: int, *, by: User) -> Guidelines:
    """Add the text of a flagged unit, the annotator's question and the reply to the guidelines, as an example.

    This makes a new minor version of the guidelines that apply to the unit. A retry changes nothing.
    """
    with transaction.atomic():
        found = _locked(flag_id)
        if found.example:
            return found.example
        unit = found.unit
        if not found.reply or found.kind != Flag.QUESTION:
            raise WrongStage("Only a question that was answered can become an example. Reply first.")
        if unit.known_answer:
            raise NotAllowed("This is a hidden known answer: as an example it would give itself away to everybody.")
        held = current(unit.task, unit.item.language or ENGLISH)
        language = held.language if held else ENGLISH
        text = f"{held.text.rstrip() if held else ''}\n\n{_example(found)}".lstrip()
        found.example = new_version(unit.task, language, text, major=False)
        found.save(update_fields=["example"])
    return found.example


def _example(found: Flag) -> str:
    """Return the example as Markdown: the item as a quotation, the question in italics, and the reply.

    Markdown in these texts is escaped. No other words are added, because guidelines are in many languages.
    """
    asked = _plain(" ".join(found.words.split()))
    return f"{_quoted(found.unit.in_a_line)}\n\n*{asked}*\n\n{_plain(found.reply)}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {_plain(line)}".rstrip() for line in text.splitlines())


def _plain(text: str) -> str:
    """Escape Markdown, and strip white space at the start of lines, which would turn them into code."""
    escaped = (_MARKS.sub(r"\\\1", line.strip()) for line in text.splitlines())
    return "\n".join(_BEGINS.sub(r"\1\\\2", line) for line in escaped)


def _settle(found: Flag, by: User, at: datetime) -> None:
    if found.settled_at is None:
        found.settled_at, found.settled_by = at, by
    found.save(update_fields=["reply", "replied_at", "settled_at", "settled_by"])


def _locked(flag_id: int) -> Flag:
    flags = Flag.objects.select_for_update(of=("self",)).select_related(
        "unit__item", "unit__task", "annotator__user", "settled_by", "example"
    )
    found = flags.filter(pk=flag_id).first()
    if found is None:
        raise NotFound("There is no such flag.")
    return found


# --- Managers' notes to everyone who works in a task, or in one of its languages.


LONGEST_NOTE = 2000  # greatest length of a note, in characters


def write_note(task: Task, text: str, *, by: User, language: str = "") -> Note:
    """Publish a note to everyone who works in a task, or to the readers of one of its languages."""
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise InvalidAnswer("The note is empty. Write what people should know.")
    if len(text) > LONGEST_NOTE or "\x00" in text:
        raise InvalidAnswer(
            f"The note has a NUL character or more than {LONGEST_NOTE:,} characters. Please correct it."
        )
    if language and language not in task.read_in:
        raise InvalidAnswer(f"Nobody reads {label_name(language)} for this task, so nobody would be told.")
    return Note.objects.create(task=task, language=language, text=text, by=by, at=timezone.now())


def withdraw_note(task: Task, note_id: int) -> None:
    """Withdraw a note. A retry changes nothing."""
    own = task.notes.filter(pk=note_id)
    if not own.exists():
        raise NotFound("There is no such note in this task.")
    own.filter(withdrawn_at=None).update(withdrawn_at=timezone.now())


def notes_of(task: Task) -> QuerySet[Note]:
    """Return all notes of a task, newest first. The annotation `readers` counts the people who dismissed a note."""
    return task.notes.select_related("by").annotate(readers=Count("reads")).order_by("-pk")


def notes_to_read(permits: Sequence[Permit]) -> list[Note]:
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


def put_away_note(annotator: Annotator, note_id: int) -> Note:
    """Dismiss a note. A retry changes nothing.

    Raises NotFound if the annotator has no such note.
    """
    note = Note.objects.filter(pk=note_id).select_related("task").first()
    if note is None or not _is_for(note, permit_of(annotator, note.task)):
        raise NotFound(_("There is no such note to you."))
    NoteRead.objects.get_or_create(note=note, annotator=annotator, defaults={"at": timezone.now()})
    return note
