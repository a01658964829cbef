"""The adjudicators' pages: the list of what waits, and one unit with what is known of it."""

from django.core.paginator import Paginator
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.models import Judgment
from annotate.pages import bench, choosing, keys
from annotate.pages.access import with_task
from annotate.pages.errors import CONFLICT, status_of
from annotate.pages.forms import whole_number
from annotate.work import adjudication as adjudicating
from annotate.work import together


@require_GET
@with_task("adjudicate")
def adjudication(request, annotator, task):
    return _list(request, annotator, task)


@require_POST
@with_task("adjudicate")
def settle_together(request, annotator, task):
    """Settle what is marked in the list with what all who answered it said, each case by itself."""
    marked = (sent.partition(" ") for sent in request.POST.getlist("case"))
    chosen = {unit: label for key, _, label in marked if (unit := whole_number(key)) is not None}
    try:
        found = together.settle_together(annotator, task, chosen, request.POST.get("reason", ""))
    except InvalidAnswer as error:
        return _list(request, annotator, task, refusal=error)
    if found.refused:
        return _list(request, annotator, task, found=found)
    cut = bench.Cut.asked(request.GET)
    return redirect(reverse("adjudication", args=[task.name]) + cut.query(settled=len(found.settled)))


def _list(request, annotator, task, *, refusal=None, found=None):
    """The list of what waits. refusal, found: what came of the cases that were to be settled together."""
    cut = bench.Cut.asked(request.GET)
    page = Paginator(cut.units(task, annotator), 50).get_page(request.GET.get("page"))
    rows = bench.waiting_rows(page, annotator)
    settled = len(found.settled) if found else whole_number(request.GET.get("settled"))
    context = {
        "task": task,
        "cut": cut,
        "query": cut.query(),
        **bench.filters(task, annotator, cut),
        "for_another": bench.for_another(adjudicating.for_others_told(task, annotator)),
        "heads": task.kind.list_heads,
        "page": page,
        "rows": rows,
        "some_agree": any(row.agreed for row in rows),
        "own_reasons": adjudicating.own_reasons(annotator, task),
        "posted": request.POST,
        "marked": request.POST.getlist("case"),
        "refusal": refusal,
        "settled": bench.settled(settled) if settled else "",
        "refused": found.refused if found else [],
        "decided": bench.decided_rows(adjudicating.decisions(annotator, task)[:50], annotator, task),
        **_just_decided(request, annotator, task),
    }
    status = status_of(refusal) if refusal else CONFLICT if found else 200
    return render(request, "annotate/adjudication.html", context, status=status)


@require_http_methods(["GET", "POST"])
@with_task("adjudicate")
def adjudicate(request, annotator, task, unit):
    """One unit with all that is known of it; never a unit that readers may still be given.

    POST settles or discards it and goes on to the next of the list.
    """
    found = adjudicating.shown(task, annotator, unit)
    if request.method == "GET":
        return _bench(request, annotator, found)
    cut = bench.Cut.asked(request.GET)
    before = bench.place(found, annotator, cut)
    try:
        judgment = _decide(request, annotator, found)
    except InvalidAnswer as error:
        return _bench(request, annotator, found, error)
    return redirect(bench.next_to_adjudicate(task, cut, before, judgment))


def _decide(request, annotator, unit) -> Judgment:
    discard = "discard" in request.POST
    sent = [] if discard else request.POST.getlist("answer") or [request.POST.get("label", "")]
    reason, comment = request.POST.get("reason", ""), request.POST.get("comment", "")
    how = {"ways": choosing.read_ways(request.POST), "is_sure": "is_sure" in request.POST}
    said = adjudicating.read_decision(unit.task.kind, sent, reason, comment, **how)
    if discard:
        return adjudicating.discard(annotator, unit.pk, said.reason, said.comment)
    return adjudicating.settle(annotator, unit.pk, said)


def _bench(request, annotator, unit, refusal=None):
    task, posted = unit.task, request.POST if request.method == "POST" else None
    cut = bench.Cut.asked(request.GET)
    context = {
        "task": task,
        "query": cut.query(),
        "place": bench.place(unit, annotator, cut),
        "unit": unit,
        "refusal": refusal,
        "keys": keys.of_bench(task),
        "posted": request.POST,
        "own_reasons": adjudicating.own_reasons(annotator, task),
        **bench.dossier(unit, annotator, posted),
        **_just_decided(request, annotator, task),
    }
    return render(request, task.kind.bench, context, status=status_of(refusal) if refusal else 200)


@require_POST
@with_task("adjudicate")
def choose(request, annotator, task, unit):
    """Where several labels are chosen from many: a step on the way to a decision, of which nothing is stored."""
    found = adjudicating.shown(task, annotator, unit)
    if task.vocabulary_id is None:
        raise NotFound(_("In this task a label is one of a few, and is not looked for."))
    if request.htmx:
        panel = choosing.of_decision(found, annotator, adjudicating.is_blind(found, annotator), request.POST)
        return render(request, "annotate/_chosen_and_found.html", panel)
    return _bench(request, annotator, found)


def _just_decided(request, annotator, task) -> dict:
    """The decision that the adjudicator made just before this page."""
    unit = whole_number(request.GET.get("decided"))
    just = adjudicating.decisions(annotator, task).filter(unit=unit).first() if unit is not None else None
    return {"just": just, "just_said": bench.decision(just, task) if just else ""}


@require_POST
@with_task("adjudicate")
def unsettle(request, annotator, task, unit):
    get_object_or_404(task.units, pk=unit)
    adjudicating.unsettle(annotator, unit)
    return redirect("adjudicate", task=task.name, unit=unit)
