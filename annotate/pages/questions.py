"""The manager's side of the channel: what annotators flagged, replies to it, and notes to them.

What is done about a flag is done by work/flags.py, notes by work/notes.py.
"""

from collections import defaultdict
from collections.abc import Iterable

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import F
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from annotate.actions.user_accounts import FAILED, REFUSED, mail_reply
from annotate.core.refusals import InvalidAnswer
from annotate.figures.figure_cache import forget
from annotate.kinds.language_labels import label_name
from annotate.models import Flag, Judgment, Task
from annotate.pages.access import check_right, may, whole_number, with_task
from annotate.pages.adjudicators import DONE
from annotate.pages.dashboard import manage_page
from annotate.work import flags, notes
from annotate.work.routes import read_in

ON_A_PAGE = 25
# What a flag is called in the list.
CALLED = {
    Flag.DISTURBING: "Disturbing",
    Flag.PERSONAL: "Personal data",
    Flag.BROKEN: "Broken text",
    Flag.QUESTION: "Question",
}


@require_GET
def questions(request):
    """Filters: kind, task (its name), all (those that were dealt with, too)."""
    check_right(request.user, "manage")
    kind, task, everything = (request.GET.get(name, "") for name in ("kind", "task", "all"))
    found = Flag.objects.standing() if everything else Flag.objects.open()
    if kind in Flag.KINDS:
        found = found.filter(kind=kind)
    tasks = Task.objects.filter(units__flags__isnull=False).distinct()
    if task := next((each for each in tasks if each.name == task), None):
        found = found.filter(unit__task=task)
    listed = found.select_related("unit__item", "unit__task", "annotator__user", "settled_by", "example")
    page = Paginator(listed.order_by(F("settled_at").desc(nulls_first=True), "pk"), ON_A_PAGE).get_page(
        request.GET.get("page")
    )
    context = {
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


def _rows(flags: Iterable[Flag]) -> list[dict]:
    """Each flag with what people said of its unit so far: name, what they did, and the answer in words."""
    listed = list(flags)
    live = Judgment.objects.live().filter(unit__in={flag.unit_id for flag in listed}).order_by("pk")
    said = defaultdict(list)
    for judgment in live.select_related("annotator__user"):
        said[judgment.unit_id].append(judgment)
    rows = []
    for flag in listed:
        item, kind = flag.unit.item, flag.unit.task.kind
        answers = [
            (each.annotator, DONE[each.kind], each.label and kind.name(each.label, item.language))
            for each in said[flag.unit_id]
        ]
        veiled = flag.kind == Flag.DISTURBING or flag.unit.disturbing or bool(kind.sensitive)
        rows.append({"flag": flag, "called": CALLED[flag.kind], "answers": answers, "veiled": veiled})
    return rows


@require_POST
def decide(request, flag):
    """Field: do, one of DOES; for reply also reply."""
    check_right(request.user, "decide")
    act = DOES.get(request.POST.get("do", ""))
    if act is None:
        raise InvalidAnswer("The form did not say what is to be done. Reload the page.")
    act(request, flag)
    query = f"?{request.GET.urlencode()}" if request.GET else ""
    return redirect(f"{reverse('manage-questions')}{query}")


def _reply(request, flag):
    found = flags.reply(flag, request.POST.get("reply", ""), by=request.user)
    messages.success(request, f"{found.annotator} finds the reply on their first page.")
    if mail_reply(found) in (FAILED, REFUSED):
        messages.warning(request, "The mail that tells them of it could not be sent. The reply stands all the same.")


def _dismiss(request, flag):
    flags.dismiss(flag, by=request.user)
    messages.success(request, "Nothing more is done about it.")


def _discard(request, flag):
    found = flags.discard(flag, by=request.user)
    forget(found.unit.task)
    messages.success(request, "The unit is left out, whatever people say of it.")


def _make_example(request, flag):
    made = flags.make_example(flag, by=request.user)
    messages.success(
        request, f"It is an example of the guidelines now, in their version {made.version} ({made.language})."
    )


DOES = {"reply": _reply, "dismiss": _dismiss, "discard": _discard, "example": _make_example}


# --- notes


@require_GET
@with_task("manage")
def list_notes(request, _, task):
    codes = sorted(set(read_in(task)), key=label_name)
    languages = [(code, label_name(code)) for code in codes]
    listed = [(note, label_name(note.language) if note.language else "everybody") for note in notes.notes_of(task)]
    context = {
        "notes": listed,
        "languages": languages,
        "longest": notes.LONGEST,
        "decides": may(request.user, "decide"),
    }
    return manage_page(request, "notes", task, **context)


@require_POST
@with_task("decide")
def note(request, _, task):
    """Fields: withdraw, a note; or text and language."""
    if "withdraw" in request.POST:
        notes.withdraw(task, whole_number(request.POST["withdraw"]) or 0)
        messages.success(request, "Nobody is shown that note any more.")
    else:
        notes.write(task, request.POST.get("text", ""), by=request.user, language=request.POST.get("language", ""))
        messages.success(request, "It stands on their first page, and above their queue, until they put it away.")
    return redirect("manage-notes", task.name)
