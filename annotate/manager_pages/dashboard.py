"""The manager dashboard with all tasks, forecasts, people and working hours.

This module also contains the parts that all managers' pages share: the frame, the page shown while figures are
computed, and the download of tables. Reports on a single task are in task_reports.py.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import date
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.cache import cache
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from annotate.actions.registry import by_name
from annotate.core.refusals import Refusal
from annotate.figures import annotator_statistics, progress_report, task_statistics
from annotate.figures.attention import COUNT, all_tasks, attention
from annotate.figures.figure_cache import StatisticsPending, cached_forecast, figures
from annotate.figures.overview_report import managers_table
from annotate.figures.people_report import everybody_table, timesheet_csv
from annotate.figures.queue_states import queue_states_of
from annotate.kinds.interface_language import label_name
from annotate.manager_pages import action_forms, setup_steps
from annotate.models import Task
from annotate.pages.access import Guard, UserRequest, View, may, status_of
from annotate.pages.account import nearest_page
from annotate.pages.error_responses import refusal_page
from annotate.pages.middleware import NOT_KEPT
from annotate.reports.tables import LazyList, Table, as_csv
from annotate.work import membership
from annotate.work.accounts import managers
from annotate.work.task_settings import is_extendable

# --- Tables that can be filtered, sorted or downloaded with a query string

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # byte order mark, so that Excel recognizes UTF-8


def add_address(value: Any, path: str, parameters: Mapping[str, str]) -> Any:
    """Return a page's context with the URL's path and query added to every table, also in nested containers.

    The tables need the path and query for their filters and links.

    path: path of the URL
    parameters: parameters of the query string
    """
    if isinstance(value, Table):
        return replace(value, path=path, parameters=parameters)
    if type(value) is dict:
        return {key: add_address(item, path, parameters) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(add_address(item, path, parameters) for item in value)
    return value


def find_table(context: Any, name: str) -> Table:
    """Find a table in a page's context. Raise Http404 if the page has no table with this name."""
    for table in _tables(context):
        if table.name == name:
            return table
    raise Http404("This page does not contain this table.")


def csv_response(name: str, text: str) -> HttpResponse:
    """Return a CSV file as a download.

    name: file name
    text: content
    """
    reply = HttpResponse(f"{MARK}{text}", content_type="text/csv; charset=utf-8")
    reply["Content-Disposition"] = f'attachment; filename="{name}"'
    return reply


def _tables(value: Any) -> Iterator[Table]:
    if isinstance(value, Table):
        yield value
    elif type(value) in (dict, list, tuple):
        for item in value.values() if type(value) is dict else value:
            yield from _tables(item)


# --- The frame of all manager pages

# (URL name, title) of the managers' pages that do not belong to a task.
SECTIONS = (
    ("manage", "Tasks"),
    ("manage-everybody", "People"),
    ("manage-questions", "Questions and flags"),
    ("manage-corpora", "Corpora"),
    ("manage-routes", "Routes"),
    ("manage-jobs", "Jobs"),
)


def sort_of(request: HttpRequest) -> str:
    return request.GET.get("sort", "")


def manage_page(
    request: UserRequest,
    name: str,
    task: Task | None = None,
    /,
    *,
    refusal: Exception | None = None,
    status: int = 0,
    **context: Any,
) -> HttpResponse:
    """Render a manager page, or return one of its tables as CSV if the query string asks for it.

    name: name of the page's template
    task: the task that the page belongs to, whose tabs it shows; None if there is none
    refusal: error to show; also determines the default HTTP status
    status: HTTP status; 0 for the default
    """
    context |= {"task": task, "kind": task.kind, **_tabs(request, task)} if task else {}
    context |= {"sections": SECTIONS if request.user.is_staff else ()}
    context = add_address(context, request.path, request.GET.dict())
    if name != "counting" and "csv" in request.GET:
        table = find_table(context, request.GET["csv"])
        return csv_response(f"{table.name}.csv", as_csv(table))
    if name != "counting" and "table" in request.GET:
        name, context = "one_table", context | {"table": find_table(context, request.GET["table"])}
    context |= {"page": name, "refusal": refusal}
    return render(request, f"annotate/manage/{name}.html", context, status=status or status_of(refusal))


# --- Forms whose page must survive the browser's Back button

AGAIN = "again"  # query parameter of a page that responds to a form, and session key of these pages
FORMS_KEPT = 3  # number of such pages that a session keeps
# Pages that show a secret once, so that sessions must not keep them.
SECRET = ("manage-job-share", "manage-new-manager", "manage-new-webhook")


def keeps_form(view: View, guard: Guard) -> View:
    """Decorate a view so that a form is redirected to its response, which the browser then loads with GET.

    If the page were the direct response to POST, the Back button would show a browser error instead of the form. The
    session keeps the page with the entered values.

    guard: decorator that checks the right to view the page; it also runs before a kept page is shown
    """

    @wraps(view)
    def shown(request: UserRequest, **arguments: Any) -> HttpResponseBase:
        query = request.GET.copy()
        is_again = bool(query.pop(AGAIN, None))
        address = f"{request.path}?{query.urlencode()}" if query else request.path
        pages: dict[str, str] = request.session.get(AGAIN, {})
        if request.method == "GET" and is_again:
            if address not in pages:
                return redirect(nearest_page(address))
            return guard(lambda *_args, **_arguments: HttpResponse(pages[address]))(request, **arguments)
        is_from_browser = "text/html" in request.headers.get("Accept", "") and not request.htmx
        if request.method != "POST" or not is_from_browser:
            return view(request, **arguments)
        try:
            page = view(request, **arguments)
        except Refusal as error:
            page = refusal_page(request, error)
        is_html, match = page.headers["Content-Type"].startswith("text/html"), request.resolver_match
        is_secret = match is not None and match.url_name in SECRET
        if not isinstance(page, HttpResponse) or not is_html or 300 <= page.status_code < 400 or is_secret:
            return page
        others = [(key, value) for key, value in pages.items() if key != address]
        request.session[AGAIN] = dict([*others, (address, page.text)][-FORMS_KEPT:])
        response = redirect(f"{address}{'&' if query else '?'}{AGAIN}=1")
        # With this header, LogInMiddleware doesn't tell the browser to drop the draft.
        response.headers["Cache-Control"] = NOT_KEPT
        return response

    return shown


def redirect_with_message(request: UserRequest, sentence: str, target: str, *args: Any) -> HttpResponse:
    """Redirect to a page that shows a message.

    sentence: the message
    target, args: URL or view, as for django.shortcuts.redirect
    """
    messages.success(request, sentence)
    cache.delete(COUNT)
    return redirect(target, *args)


def shows_figures(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view that needs computed figures. Until they are ready, a page that reloads itself is shown."""

    @wraps(view)
    def shown(request: UserRequest, *args: Any, **arguments: Any) -> HttpResponse:
        try:
            return view(request, *args, **arguments)
        except StatisticsPending:
            page = manage_page(request, "counting", arguments.get("task"))
            page["Refresh"] = "1"
            return page

    return shown


def log_change(request: UserRequest, object_: Model, message: str, act: int = CHANGE) -> None:
    """Log that the user has changed an object.

    act: Django's ADDITION, CHANGE or DELETION
    """
    LogEntry.objects.log_actions(request.user.pk, [object_], act, message, single_object=True)


# (URL name, title) of the tabs of a task.
TABS = (
    ("manage-task", "Overview"),
    ("manage-items", "Items"),
    ("manage-people", "People"),
    ("manage-guidelines", "Guidelines"),
    ("manage-quality", "Quality"),
    ("manage-settings", "Settings"),
)
# URL name of a page -> URL name of the tab. Pages that are not listed belong to the tab Quality.
TAB_OF = {
    **{name: name for name, _ in TABS},
    **{"manage-item": "manage-items", "manage-person": "manage-people", "manage-void": "manage-people"},
    **dict.fromkeys(["manage-extend", "manage-export", "manage-do", "manage-job", "manage-task-jobs"], "manage-task"),
    "manage-settings-change": "manage-settings",
    **{"manage-guidelines-add": "manage-guidelines", "manage-guidelines-preview": "manage-guidelines"},
}


def _tabs(request: UserRequest, task: Task) -> dict[str, Any]:
    """Return the context for a task's tabs and for the pages of the tab Quality.

    The pages on quality controls depend on the controls of the task's kind.
    """
    page = (request.resolver_match and request.resolver_match.url_name) or ""
    pages = [
        ("manage-quality", "Checks"),
        ("manage-agreement", "Agreement"),
        *(tab for control in task.kind.quality_controls for tab in control.tabs),
        ("manage-pace", "Pace"),
        ("manage-comments", "Comments"),
        ("manage-notes", "Notes"),
    ]
    tab = TAB_OF.get(page, "manage-quality")
    return {"tabs": TABS, "tab": tab, "tab_pages": pages if tab == "manage-quality" else []}


# --- Start page, dates and people


FEW = 5  # maximum number of languages in a task's row
FORETOLD = 12  # number of open tasks with a forecast on the dashboard, newest first
ON_A_PAGE = 25  # maximum number of tasks on a page
ENTRIES = 15  # maximum number of alerts on a page
LIVE_SECONDS = 5  # how long live counts are cached


@shows_figures
def manage(request: UserRequest) -> HttpResponse:
    """List the alerts and the tasks, both in pages.

    ?find=: words in the title, name or kind of the tasks to list
    ?page=, ?entries=: page number in the list of tasks, and in the list of alerts
    """
    (rows, states, activity), counted_at = all_tasks()
    wants = attention(rows, states)
    rows = [{**row, "stuck": states[row["name"]]["stuck"] if row["name"] in states else None} for row in rows]
    find = request.GET.get("find", "").strip()
    page = Paginator(_search(rows, find), ON_A_PAGE).get_page(request.GET.get("page"))
    return manage_page(
        request,
        "tasks",
        table=progress_report.tasks_table(LazyList(len(rows), rows.__getitem__), _task_page, sort_of(request)),
        find=find,
        page=page,
        rows=list(_task_rows(list(page), activity, undecided=wants.unadjudicated)),
        trend=progress_report.trend(activity["days"], f"Answers per day in the last {len(activity['days'])} days"),
        days=activity["days"],
        answers=sum(activity["days"]),
        decides=may(request.user, "decide"),
        wants=wants,
        entries=Paginator(wants.entries, ENTRIES).get_page(request.GET.get("entries")),
        failed=[
            (
                job,
                action_forms.title_of(job),
                action_forms.with_form_labels(job.warned[0], by_name()[job.action].options) if job.warned else "",
            )
            for job in wants.failed
        ],
        any_open=bool(states),
        unfinished=setup_steps.unfinished_setups(states) if may(request.user, "decide") else [],
        setup=setup_steps.STEPS,
        now=live_counts(),
        counted_at=counted_at,
    )


def _search(rows: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    """Return the rows whose title, name and kind together contain all words."""
    return [
        row
        for row in rows
        if all(word in f"{row['title']} {row['name']} {row['kind']}".casefold() for word in words.casefold().split())
    ]


def _task_rows(
    rows: Collection[dict[str, Any]], activity: Mapping[str, Any], *, undecided: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the list of tasks. Tasks that have been deleted in the meantime have no row.

    undecided: names of open tasks that have no adjudicator
    """
    shown = Task.objects.filter(name__in=[row["name"] for row in rows]).prefetch_related("draws")
    tasks = {task.name: task for task in shown}
    for row in rows:
        if task := tasks.get(row["name"]):
            languages = [label_name(code) for code in task.languages]
            yield row | {
                "languages": ", ".join(languages[:FEW])
                + (f" and {len(languages) - FEW} more" if languages[FEW:] else ""),
                "kind": "" if task.kind.title == row["title"] else task.kind.title,
                "state": task_statistics.state_of(
                    row, undecided=row["name"] in undecided and bool(row["adjudication"])
                ),
                "people": activity["people"].get(task.pk, 0),
                "extendable": is_extendable(task),
                "closable": row["is_open"] and task.kind.answered_here,
            }


@shows_figures
def dates(request: UserRequest) -> HttpResponse:
    """Show when the newest FORETOLD open tasks will be finished.

    These forecasts take longer to compute, so the dashboard loads them into its table separately.
    """
    forecasts, counted_at = figures("dates", None, _forecasts)
    open_tasks = Task.objects.filter(is_open=True)
    rows = [(task, forecast) for task in open_tasks.filter(pk__in=forecasts) if (forecast := forecasts[task.pk])]
    if request.htmx:
        days = [(task, progress_report.finish_day(of), progress_report.finish_words(of)) for task, of in rows]
        return render(request, "annotate/manage/_finish.html", {"days": days})
    return manage_page(
        request,
        "dates",
        table=progress_report.dates_table(rows, _task_page, sort_of(request)),
        untold=open_tasks.count() - FORETOLD,
        counted_at=counted_at,
    )


def _forecasts() -> dict[int, Any]:
    tasks = list(Task.objects.filter(is_open=True)[:FORETOLD])
    states = queue_states_of(tasks)
    return {task.pk: cached_forecast(task, states[task.pk]) for task in tasks}


def _task_page(name: str) -> str:
    return reverse("manage-task", args=[name])


@shows_figures
def everybody(request: UserRequest) -> HttpResponse:
    """List all annotators with their accounts and their work in all tasks, and all managers."""
    counted, counted_at = figures("everybody", None, annotator_statistics.everybody)
    sort, accounts = sort_of(request), reverse("manage-account", args=[0])
    return manage_page(
        request,
        "everybody",
        table=everybody_table(
            annotator_statistics.with_accounts(counted),
            sort,
            lambda annotator: accounts.replace("0", str(annotator)),
            grouped=membership.groups().exists(),
        ),
        managers_table=managers_table(managers().order_by("username"), sort),
        invites=may(request.user, "invite"),
        raises=may(request.user, "raise"),
        months=annotator_statistics.months(),
        counted_at=counted_at,
    )


def timesheet(request: UserRequest) -> HttpResponse:
    """Download everybody's working hours in a month, as a CSV file.

    ?month=: the month, such as 2026-11; by default the current month
    """
    try:
        month = date.fromisoformat(f"{request.GET.get('month') or f'{timezone.localdate():%Y-%m}'}-01")
    except ValueError:
        raise Http404("This month does not exist. Specify a month in the form month=2026-11.") from None
    return csv_response(f"hours-{month:%Y-%m}.csv", timesheet_csv(annotator_statistics.timesheet(month)))


def now(request: UserRequest) -> HttpResponse:
    """Show the live counts, which the dashboard polls."""
    return render(request, "annotate/manage/_now.html", {"now": live_counts()})


def live_counts() -> Any:
    """Return the annotators' current activity. It is cached, so that all managers share one computation."""
    return cache.get_or_set("at-work-now", annotator_statistics.at_work_now, LIVE_SECONDS)
