"""The manager's pages of all tasks: what needs a decision, forecasts, people and their hours; and what every manager's
page shares: its frame, its cached figures and the download of its tables. Pages of one task are in task_reports.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import wraps
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.core.cache import cache
from django.db.models import Model
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from annotate.actions.registry import by_name
from annotate.figures import annotator_statistics, progress_report, task_statistics
from annotate.figures.figure_cache import BeingCountedError, figures, foretold
from annotate.figures.people_report import everybody_table, timesheet_csv
from annotate.figures.queue_states import queue_states_of
from annotate.models import Flag, Job, Task
from annotate.pages import action_forms
from annotate.pages.access import check_right
from annotate.reports.tables import Table, as_csv
from annotate.work.accounts import waiting_requests
from annotate.work.adjudication import adjudicators

# --- Tables, filtered and downloaded by the query of a page's address

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # by which Excel knows UTF-8


def offered(value: Any, path: str, given: Mapping[str, str]) -> Any:
    """What a page is made of, with its tables, wherever they lie in it, told what stands in the page's address."""
    if isinstance(value, Table):
        return replace(value, path=path, given=given)
    if type(value) is dict:
        return {key: offered(each, path, given) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(offered(each, path, given) for each in value)
    return value


def downloaded(context: Any, name: str) -> HttpResponse:
    """The table of that name, of those that a page is made of, as a file."""
    for table in _tables(context):
        if table.name == name:
            return csv_reply(f"{name}.csv", as_csv(table))
    raise Http404("This page has no such table.")


def csv_reply(name: str, text: str) -> HttpResponse:
    """name: of the file."""
    reply = HttpResponse(f"{MARK}{text}", content_type="text/csv; charset=utf-8")
    reply["Content-Disposition"] = f'attachment; filename="{name}"'
    return reply


def _tables(value: Any) -> Iterator[Table]:
    if isinstance(value, Table):
        yield value
    elif type(value) in (dict, list, tuple):
        for each in value.values() if type(value) is dict else value:
            yield from _tables(each)


# --- The frame of all managers' pages

# Addresses and names of the pages that belong to no task.
DESK = (
    ("manage", "Tasks"),
    ("manage-everybody", "People"),
    ("manage-questions", "Questions"),
    ("manage-corpora", "Corpora"),
    ("manage-accounts", "Accounts"),
    ("manage-routes", "Routes"),
    ("manage-jobs", "Jobs"),
)


def sort_of(request) -> str:
    return request.GET.get("sort", "")


def manage_page(request, name: str, task: Task | None = None, /, *, status: int = 200, **context):
    """A page by the name of its template; of a task, it has the task's tabs."""
    context |= {"task": task, "tabs": tabs(task), "kind": task.kind} if task else {"desk": DESK}
    context = offered(context, request.path, request.GET.dict())
    if "csv" in request.GET and name != "counting":
        return downloaded(context, request.GET["csv"])
    return render(request, f"annotate/manage/{name}.html", {"page": name, **context}, status=status)


def being_counted(request, task: Task | None):
    """In place of a page whose figures are still being counted; the browser asks again."""
    page = manage_page(request, "counting", task)
    page["Refresh"] = "1"
    return page


def shows_figures(view):
    """Make a view of a page whose figures may still have to be counted."""

    @wraps(view)
    def shown(request, *args, **named):
        try:
            return view(request, *args, **named)
        except BeingCountedError:
            return being_counted(request, next((each for each in args if isinstance(each, Task)), None))

    return shown


def note(request, thing: Model, words: str, act: int = CHANGE) -> None:
    """Keep in the log of changed settings who did this to it. act: Django's ADDITION, CHANGE or DELETION."""
    LogEntry.objects.log_actions(request.user.pk, [thing], act, words, single_object=True)


# --- The first page, dates and people


def tabs(task: Task) -> list[tuple[str, str]]:
    """Addresses of a task's pages and their names; pages that have nothing to show for it are left out."""
    return [
        ("manage-task", "Progress"),
        ("manage-people", "People"),
        ("manage-comments", "Comments"),
        ("manage-notes", "Notes"),
        ("manage-guidelines", "Guidelines"),
        *(tab for control in task.kind.quality_controls for tab in control.tabs),
        ("manage-agreement", "Agreement"),
    ]


FEW = 5  # stuck queues of a task, and jobs that failed, on the page of all tasks, at most
FORETOLD = 12  # open tasks, the newest, of which it is told when they are done
# Seconds for which the live counts are those of whoever asked first.
LIVELY = 5


@require_GET
@shows_figures
def manage(request):
    check_right(request.user, "manage")
    open_tasks = Task.objects.filter(is_open=True)
    (rows, states), counted_at = all_tasks(open_tasks)
    # One that was opened since the figures were counted has none yet.
    open_tasks, sort = [task for task in open_tasks if task.pk in states], sort_of(request)
    counts = {task.name: states[task.pk]["stuck"] for task in open_tasks}
    rows = [{**row, "stuck": counts.get(row["name"])} for row in rows]
    return manage_page(
        request,
        "tasks",
        table=progress_report.tasks_table(rows, _task_page, sort),
        waiting=list(_stuck(open_tasks, states)),
        new=[row for row in rows if row["newly_paused"]],
        unadjudicated=[row for row in rows if row["is_open"] and row["adjudication"]] if not adjudicators() else [],
        flags=Flag.objects.open().count(),
        asking=waiting_requests().count(),
        failed=[(job, _why(job)) for job in Job.objects.failed()[:FEW]],
        now=live_counts(),
        open_tasks=open_tasks,
        counted_at=counted_at,
    )


def all_tasks(open_tasks: Iterable[Task]) -> tuple[Any, datetime | None]:
    """A row for each task, and the states of the queues of those that are open; and when, if they were kept."""
    return figures("tasks", None, lambda: (task_statistics.overview(), queue_states_of(open_tasks)))


def _why(job: Job) -> str:
    return action_forms.in_words_of_page(job.warned[0], by_name()[job.action]) if job.warned else ""


def _stuck(open_tasks: list[Task], states: dict[int, Any]) -> Iterator[tuple[Task, list[Any], int]]:
    """Tasks with queues that stand still: the first FEW of these, and how many more there are."""
    for task in open_tasks:
        stuck = [row for row in states[task.pk]["queues"] if row["stuck"]]
        if stuck:
            yield task, stuck[:FEW], len(stuck) - FEW


@require_GET
@shows_figures
def dates(request):
    """When the open tasks will be done, the newest FORETOLD; the first page fetches it, since it takes longer."""
    check_right(request.user, "manage")
    open_tasks = list(Task.objects.filter(is_open=True))
    found, counted_at = figures("dates", None, lambda: _foretold(open_tasks[:FORETOLD]))
    told = [(task, of) for task in open_tasks if (of := found.get(task.pk))]
    return manage_page(
        request,
        "dates",
        table=progress_report.dates_table(told, _task_page, sort_of(request)),
        untold=len(open_tasks) - FORETOLD,
        counted_at=counted_at,
    )


def _foretold(tasks: list[Task]) -> dict[int, Any]:
    states = queue_states_of(tasks)
    return {task.pk: foretold(task, states[task.pk]) for task in tasks}


def _task_page(name: str) -> str:
    return reverse("manage-task", args=[name])


@require_GET
@shows_figures
def everybody(request):
    check_right(request.user, "manage")
    found, counted_at = figures("everybody", None, annotator_statistics.everybody)
    return manage_page(
        request,
        "everybody",
        table=everybody_table(found, sort_of(request)),
        months=annotator_statistics.months(),
        counted_at=counted_at,
    )


@require_GET
def timesheet(request):
    """Field: month, as in 2026-11; this one without it."""
    check_right(request.user, "manage")
    try:
        month = date.fromisoformat(f"{request.GET.get('month') or f'{timezone.localdate():%Y-%m}'}-01")
    except ValueError:
        raise Http404("There is no such month: the address names one as in month=2026-11.") from None
    return csv_reply(f"hours-{month:%Y-%m}.csv", timesheet_csv(annotator_statistics.timesheet(month)))


@require_GET
def now(request):
    """The live counts alone, which the first page asks for again and again."""
    check_right(request.user, "manage")
    return render(request, "annotate/manage/_now.html", {"now": live_counts()})


def live_counts():
    """For all managers together, so that many who look cost no more than one."""
    return cache.get_or_set("at-work-now", annotator_statistics.at_work_now, LIVELY)
