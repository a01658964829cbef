"""Routes of languages in the browser: which queue serves which, beside what waits there and who reads it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.core.option import codes
from annotate.core.refusals import Refusal
from annotate.figures import progress_report
from annotate.figures.figure_cache import figures, forget
from annotate.figures.queue_states import queues_by_use
from annotate.models import LanguageRoute, Task
from annotate.pages.access import may, with_right
from annotate.pages.around import manage_page as page
from annotate.pages.around import note, shows_figures
from annotate.pages.errors import status_of
from annotate.reports.tables import Table, many
from annotate.work import routes as language_routes
from annotate.work.languages import learn_languages


@require_GET
@with_right("manage")
@shows_figures
def routes(request, _):
    learn_languages()
    routed, sort = may(request.user, "route"), request.GET.get("sort", "")
    address = lambda language: reverse("manage-route", args=[language]) if routed else ""  # noqa: E731 - handed on
    return page(
        request,
        "routes",
        table=progress_report.routes_table(LanguageRoute.objects.all(), address, sort),
        waiting=[(task, _queues(task)) for task in Task.objects.filter(is_open=True)],
        routes=routed,
    )


def _queues(task: Task) -> list[tuple[str, Table]]:
    """The queues in which something waits, and those that the page folds, with the words over them."""
    use, _ = figures("queues", task, partial(queues_by_use, task))
    folded = f"{many(len(use['idle']), 'queue')} with nothing waiting"
    parts = (("", f"Queues of {task.name}", use["busy"]), (folded, f"{folded}, of {task.name}", use["idle"]))
    return [(words, progress_report.route_queues_table(caption, rows)) for words, caption, rows in parts if rows]


@require_http_methods(["GET", "POST"])
@with_right("route")
def new_route(request, _):
    """Fields: language, queue, extra_candidates (codes with spaces between), never_agree."""
    if request.method == "GET":
        return page(request, "route", said={})
    said = _said(request.POST)
    try:
        route = language_routes.add_route(request.POST.get("language", "").strip(), **said)
    except Refusal as refusal:
        return page(request, "route", said=request.POST, refusal=str(refusal), status=status_of(refusal))
    _noted(request, route, "Added.", ADDITION)
    messages.success(request, f"{route}: this holds from now on.")
    return redirect("manage-routes")


@require_http_methods(["GET", "POST"])
@with_right("route")
def route(request, _, language):
    """Fields: those of `new_route`, without the language, which stays."""
    found = language_routes.route_of(language)
    if request.method == "GET":
        known = {
            "queue": found.queue,
            "extra_candidates": " ".join(found.extra_candidates),
            "never_agree": found.never_agree,
        }
        return page(request, "route", route=found, said=known)
    try:
        changed_route, changed = language_routes.change_route(language, **_said(request.POST))
    except Refusal as refusal:
        return page(request, "route", route=found, said=request.POST, refusal=str(refusal), status=status_of(refusal))
    if changed:
        _noted(request, changed_route, f"Changed {', '.join(changed).replace('_', ' ')}.")
    messages.success(request, f"{changed_route}: this holds from now on.")
    return redirect("manage-routes")


@require_POST
@with_right("route")
def remove_route(request, _, language):
    route = language_routes.remove_route(language)
    _noted(request, route, "Removed.", DELETION)
    messages.success(request, f"{language} has no route any more.")
    return redirect("manage-routes")


def _noted(request, route: LanguageRoute, words: str, act: int = CHANGE) -> None:
    """Keep who did it; and since other people may read a queue now, all figures are counted again."""
    note(request, route, words, act)
    for task in Task.objects.filter(is_open=True):
        forget(task)


def _said(posted: Mapping[str, str]) -> dict[str, Any]:
    return {
        "queue": posted.get("queue", "").strip(),
        "extra_candidates": codes(posted.get("extra_candidates", "")),
        "never_agree": "never_agree" in posted,
    }
