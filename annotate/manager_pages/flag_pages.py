"""Managers' pages for annotators' questions and flags, and for notes to the annotators of a task.

The operations are in work/flags.py.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from annotate.actions.user_accounts import FAILED, REFUSED, mail_reply
from annotate.core.refusals import InvalidAnswer
from annotate.figures.figure_cache import forget
from annotate.kinds.interface_language import label_name
from annotate.manager_pages.dashboard import done, manage_page
from annotate.models import Flag, Judgment, Task
from annotate.pages.access import UserRequest, may, whole_number
from annotate.pages.adjudicators import DONE
from annotate.work import flags

ON_A_PAGE = 25
# Kind of flag -> its name in the list.
CALLED = {
    Flag.DISTURBING: "Disturbing",
    Flag.PERSONAL: "Personal data",
    Flag.BROKEN: "Broken text",
    Flag.QUESTION: "Question",
}


def questions(request: UserRequest) -> HttpResponse:
    """List the flags.

    ?kind=: list only flags of this kind
    ?task=: list only flags in the task with this name
    ?all=: also list resolved flags
    """
    kind, name, everything = (request.GET.get(name, "") for name in ("kind", "task", "all"))
    flags_shown = Flag.objects.standing() if everything else Flag.objects.open()
    if kind in Flag.KINDS:
        flags_shown = flags_shown.filter(kind=kind)
    tasks = Task.objects.filter(units__flags__isnull=False).distinct()
    if task := next((task for task in tasks if task.name == name), None):
        flags_shown = flags_shown.filter(unit__task=task)
    listed = flags_shown.select_related("unit__item", "unit__task", "annotator__user", "settled_by", "example")
    page = Paginator(listed.order_by(F("settled_at").desc(nulls_first=True), "pk"), ON_A_PAGE).get_page(
        request.GET.get("page")
    )
    context: dict[str, Any] = {
        "page": page,
        "rows": _rows(page),
        "called": CALLED,
        "kind": kind,
        "of": task,
        "tasks": tasks,
        "everything": everything,
        "decides": may(request.user, "decide"),
    }
    return manage_page(request, "questions", **context)


def _rows(flags: Iterable[Flag]) -> list[dict[str, Any]]:
    """Return a row for each flag. A row includes the unit's judgments as (annotator, action, answer) tuples."""
    listed = list(flags)
    live = Judgment.objects.live().filter(unit__in={flag.unit_id for flag in listed}).order_by("pk")
    by_unit = defaultdict(list)
    for judgment in live.select_related("annotator__user"):
        by_unit[judgment.unit_id].append(judgment)
    rows = []
    for flag in listed:
        item, kind = flag.unit.item, flag.unit.task.kind
        answers = [
            (answer.annotator, DONE[answer.kind], answer.label and kind.name(answer.label, item.language))
            for answer in by_unit[flag.unit_id]
        ]
        veiled = flag.kind == Flag.DISTURBING or flag.unit.disturbing or bool(kind.sensitive)
        rows.append({"flag": flag, "called": CALLED[flag.kind], "answers": answers, "veiled": veiled})
    return rows


def decide(request: UserRequest, flag: int) -> HttpResponse:
    """Perform an action on a flag.

    POST fields:
    do: a key of DOES
    reply: text of the reply, if the action is a reply
    """
    act = DOES.get(request.POST.get("do", ""))
    if act is None:
        raise InvalidAnswer("The form does not contain an action. Reload the page.")
    act(request, flag)
    query = f"?{request.GET.urlencode()}" if request.GET else ""
    return redirect(f"{reverse('manage-questions')}{query}")


def _reply(request: UserRequest, flag: int) -> None:
    answered = flags.reply(flag, request.POST.get("reply", ""), by=request.user)
    messages.success(request, f"{answered.annotator} will see the reply on their start page.")
    if mail_reply(answered) in (FAILED, REFUSED):
        messages.warning(request, "The reply was saved, but the mail about it could not be sent.")


def _dismiss(request: UserRequest, flag: int) -> None:
    flags.dismiss(flag, by=request.user)
    messages.success(request, "The flag was dismissed.")


def _discard(request: UserRequest, flag: int) -> None:
    discarded = flags.discard(flag, by=request.user)
    forget(discarded.unit.task)
    messages.success(request, "The item was excluded from the gold set.")


def _make_example(request: UserRequest, flag: int) -> None:
    version = flags.make_example(flag, by=request.user)
    messages.success(
        request,
        f"The item was added as an example to the guidelines, in version {version.version} ({version.language}).",
    )


DOES = {"reply": _reply, "dismiss": _dismiss, "discard": _discard, "example": _make_example}


# --- Notes


def list_notes(request: UserRequest, task: Task) -> HttpResponse:
    codes = sorted(set(task.read_in), key=label_name)
    languages = [(code, label_name(code)) for code in codes]
    listed = [(note, label_name(note.language) if note.language else "everybody") for note in flags.notes_of(task)]
    context: dict[str, Any] = {
        "notes": listed,
        "languages": languages,
        "longest": flags.MOST_WORDS,
        "decides": may(request.user, "decide", task.name),
    }
    return manage_page(request, "notes", task, **context)


def note(request: UserRequest, task: Task) -> HttpResponse:
    """Write or withdraw a note.

    POST fields:
    withdraw: primary key of a note to withdraw
    text: text of a new note
    language: code of a language, to show the new note only to its readers; empty for all annotators
    """
    if "withdraw" in request.POST:
        flags.withdraw_note(task, whole_number(request.POST["withdraw"]) or 0)
        return done(request, "The note was withdrawn.", "manage-notes", task.name)
    flags.write_note(task, request.POST.get("text", ""), by=request.user, language=request.POST.get("language", ""))
    sentence = "The note is shown on the annotators' start page and above their queue until they dismiss it."
    return done(request, sentence, "manage-notes", task.name)
