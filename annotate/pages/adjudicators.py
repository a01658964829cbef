"""The adjudicators' pages: the list of what waits, and one unit with what is known of it."""

from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Count
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds.languages import Choice
from annotate.models import Transition
from annotate.pages import bench, choosing, keys
from annotate.pages.access import with_task
from annotate.pages.errors import status_of
from annotate.pages.forms import whole_number
from annotate.work import adjudication as adjudicating
from annotate.work.languages import is_language


def _language_code(text: str | None) -> str:
    """A language code from an address; empty for anything else."""
    return text if text and is_language(text) else ""


@require_GET
@with_task("adjudicate")
def adjudication(request, annotator, task):
    language = _language_code(request.GET.get("language"))
    everything = adjudicating.to_adjudicate(task, annotator)
    told = everything.filter(blind=False).order_by().values("pk")
    visited = Transition.objects.filter(unit__in=told, to_stage="QUEUED").order_by()
    languages = visited.values_list("language").annotate(Count("unit", distinct=True)).order_by("language")
    units = adjudicating.to_adjudicate(task, annotator, language)
    page = Paginator(units, 50).get_page(request.GET.get("page"))
    context = {
        "task": task,
        "language": language,
        "languages": [(Choice(code), count) for code, count in languages],
        "waiting": everything.count(),
        "blind": everything.filter(blind=True).count(),
        "for_another": bench.for_another(adjudicating.for_others(task, annotator), task),
        "heads": task.kind.list_heads,
        "page": page,
        "rows": bench.waiting_rows(page, annotator),
        "decided": bench.decided_rows(adjudicating.decisions(annotator, task)[:50], annotator, task),
        **_just_decided(request, annotator, task),
    }
    return render(request, "annotate/adjudication.html", context)


@require_http_methods(["GET", "POST"])
@with_task("adjudicate")
def adjudicate(request, annotator, task, unit):
    """One unit with all that is known of it; never a unit that readers may still be given.

    POST settles or discards it and goes on to the next of the list.
    """
    language = _language_code(request.GET.get("language"))
    found = get_object_or_404(adjudicating.adjudicated(task), pk=unit)
    refusal = None
    if request.method == "POST":
        discard = "discard" in request.POST
        sent = [] if discard else request.POST.getlist("answer") or [request.POST.get("label", "")]
        reason, comment = request.POST.get("reason", ""), request.POST.get("comment", "")
        try:
            how = {"ways": choosing.read_ways(request.POST), "is_sure": "is_sure" in request.POST}
            said = adjudicating.read_decision(task.kind, sent, reason, comment, **how)
            if discard:
                judgment = adjudicating.discard(annotator, unit, said.reason, said.comment)
            else:
                judgment = adjudicating.settle(annotator, unit, said)
        except InvalidAnswer as error:
            refusal = error
        else:
            return redirect(bench.next_to_adjudicate(annotator, task, language, judgment))
    return _bench(request, annotator, found, refusal)


def _bench(request, annotator, unit, refusal=None):
    task, posted = unit.task, request.POST if request.method == "POST" else None
    language = _language_code(request.GET.get("language"))
    context = {
        "task": task,
        "query": f"?{urlencode({'language': language})}" if language else "",
        "place": bench.place(unit, annotator, language),
        "unit": unit,
        "refusal": refusal,
        "keys": keys.of_bench(task),
        "posted": request.POST,
        **bench.dossier(unit, annotator, posted),
        **_just_decided(request, annotator, task),
    }
    return render(request, task.kind.bench, context, status=status_of(refusal) if refusal else 200)


@require_POST
@with_task("adjudicate")
def choose(request, annotator, task, unit):
    """Where several labels are chosen from many: a step on the way to a decision, of which nothing is stored."""
    found = get_object_or_404(adjudicating.adjudicated(task), pk=unit)
    if task.vocabulary_id is None:
        raise NotFound("In this task a label is one of a few, and is not looked for.")
    if request.htmx:
        panel = choosing.of_decision(found, annotator, adjudicating.is_blind(found), request.POST)
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
