"""What an annotator answered, by day: searched, filtered, changed, and what adjudicators decided otherwise."""

from itertools import groupby
from typing import Any

from django.core.paginator import Paginator
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import personal_progress
from annotate.kinds.labels import label_name
from annotate.models import Judgment, Lease, Task
from annotate.pages import choosing, keys, showing
from annotate.pages.access import check_right, with_permit
from annotate.pages.annotators import may_do
from annotate.pages.errors import status_of
from annotate.quality.sides import seen
from annotate.work import changing, judging
from annotate.work.permit import permits

PAGE = 50
LONGEST = 100  # characters of a search
FEW = 12  # answers of a task that are offered as a filter, at most


@require_GET
def history(request):
    """All of them, in all tasks; those of one by ?task=."""
    annotator = check_right(request.user, "annotate")
    used = personal_progress.last_used(annotator)
    tasks = sorted(Task.objects.filter(pk__in=used), key=lambda task: -used[task.pk])
    chosen = next((task for task in tasks if task.name == request.GET.get("task")), None)
    return _listed(request, annotator, chosen, {"tasks": tasks, "chosen": chosen})


@require_GET
@with_permit
def answers(request, permit):
    """Those of one task."""
    task = permit.task
    may = may_do(permit, personal_progress.own_progress(permit))
    return _listed(request, permit.annotator, task, {"task": task, "has_sheets": bool(task.kind.sheet), **may})


def _listed(request, annotator, task, context):
    asked = {
        "said": request.GET.get("said", "").replace("\x00", ""),
        "words": request.GET.get("q", "").replace("\x00", "").strip()[:LONGEST],
        "commented": "commented" in request.GET,
    }
    offered = _offered(task)
    if asked["said"] not in offered:
        asked["said"] = ""
    own = personal_progress.own_answers(annotator, task=task, **asked)
    if differing := "differs" in request.GET:
        own = personal_progress.overruled(annotator, own)
    page = Paginator(own, PAGE).get_page(request.GET.get("page"))
    context |= {
        "page": page,
        "days": _by_day(_rows(annotator, list(page))),
        "asked": asked,
        "offered": offered.items(),
        "differing": differing,
        "is_asked": differing or any(asked.values()),
        "searched": personal_progress.SEARCHED,
    }
    return render(request, "annotate/history.html", context)


def _offered(task: Task | None) -> dict[str, str]:
    """The answers by which a list can be filtered, with their words. What is stored of two sides names systems, which
    nobody is told.
    """
    few = task is not None and not task.vocabulary_id and not task.kind.form.SIDED and len(task.labels) <= FEW
    labels = {label: task.kind.name(label) for label in task.labels} if few else {}
    return {"answered": _("answered"), "skipped": _("skipped"), **labels}


def _rows(annotator, judgments: list[Judgment]) -> list[dict[str, Any]]:
    """A row for each judgment, in order; each statement once for all of them, but for each task on the page."""
    allowed = {permit.task.pk: permit for permit in permits(annotator, {each.unit.task for each in judgments})}
    changes = changing.latest(judgments)
    numbers = changing.numbers(annotator, changes)
    decisions = personal_progress.decided(judgments, changes)
    rows = {}
    for pk, permit in allowed.items():
        of_task = [each for each in judgments if each.unit.task_id == pk]
        for each in of_task:
            each.unit.task = permit.task
        words = showing.said(of_task, annotator, permit.task.kind)
        sets = showing.sets_answered(of_task, annotator, permit.task.kind)
        for each, said, two in zip(of_task, words, sets, strict=True):
            change, decision = changes.get(each.unit_id), decisions.get(each.unit_id)
            rows[each.pk] = _row(each, said, two, permit, change, decision)
            rows[each.pk]["number"] = numbers.get(each.unit_id, each.pk)
    return [rows[each.pk] for each in judgments]


def _row(judgment, said: str, sets: list, permit, change, decision) -> dict[str, Any]:
    task, unit = permit.task, judgment.unit
    may_act = task.is_open and not permit.stopped
    fresh = judging.may_be_taken_back(judgment, task)
    may_change = may_act and not fresh and judgment.kind == Judgment.ANSWER
    return {
        "judgment": judgment,
        "task": task,
        "text": unit.in_a_line,
        "said": _word(permit.annotator, unit, change.label) if change else said,
        "changed": change,
        "reason": showing.reason(change or judgment, task.kind),
        "comment": (change or judgment).comment,
        "asked": label_name(unit.asked),
        "sets": sets,
        "may_read": permit.has_agreed,
        "may_take_back": may_act and fresh and not change,
        "may_change": may_change or (may_act and bool(change)),
        "decided": _word(permit.annotator, unit, decision.label) if decision else "",
        "why": decision.reason if decision else "",
    }


def _word(annotator, unit, label: str) -> str:
    [as_seen] = seen(annotator, [(unit, label)])
    return unit.task.kind.name(as_seen, unit.item.language)


def _by_day(rows: list[dict]) -> list[tuple]:
    """(day in the person's time zone, rows)."""
    return [
        (day, list(of_day))
        for day, of_day in groupby(rows, lambda row: timezone.localdate(row["judgment"].answered_at))
    ]


@require_http_methods(["GET", "POST"])
@with_permit
def change(request, permit, judgment):
    """One answer, to be given otherwise. Fields: as annotators.judge."""
    own, refusal = _own(permit, judgment), None
    if request.method == "POST":
        comment = request.POST.get("comment", "").replace("\r\n", "\n")
        try:
            said = choosing.read_answer(permit.task.kind, request.POST, comment)
            changing.change(permit.annotator, permit.task, judgment, said)
        except InvalidAnswer as error:
            refusal = error
        else:
            return redirect("answers", task=permit.task.name)
    return _to_change(request, permit, own, refusal)


@require_POST
@with_permit
def choose(request, permit, judgment):
    """Where several labels are chosen from many: a step on the way to another answer, of which nothing is stored."""
    own = _own(permit, judgment)
    if permit.task.vocabulary_id is None:
        raise NotFound(_("There is no such answer of yours."))
    if request.htmx:
        panel = choosing.of_change(own, judgment, changing.latest([own]).get(own.unit_id), permit, request.POST)
        return render(request, "annotate/_chosen_and_found.html", panel)
    return _to_change(request, permit, own)


def _own(permit, number) -> Judgment:
    own = changing.changeable(permit.annotator, permit.task).select_related("unit__item")
    own = own.numbered(permit.annotator, number).first()
    if own is None:
        raise NotFound(_("There is no such answer of yours."))
    own.unit.task = permit.task
    return own


def _to_change(request, permit, own: Judgment, refusal: InvalidAnswer | None = None):
    permit.check_not_stopped()
    asked = showing.question(Lease(pk=0, unit=own.unit), permit)
    [row] = _rows(permit.annotator, [own])
    posted = request.POST if request.method == "POST" else None
    context = {"task": permit.task, "row": row, "refusal": refusal, "keys": keys.of_test(permit.task), **asked}
    context |= choosing.of_change(own, row["number"], row["changed"], permit, posted)
    context |= {
        "changing": reverse("change", args=[permit.task.name, row["number"]]),
        "comment": request.POST.get("comment", row["comment"]),
    }
    return render(request, "annotate/change.html", context, status=status_of(refusal) if refusal else 200)
