"""The manager dashboard, with all tasks, forecasts, people, hours, flags and notes.

This module also holds what all managers' pages share: the frame, the page that waits for figures, and the download of
tables. The reports about one task are in task_reports.py.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.cache import cache
from django.core.paginator import Paginator
from django.db.models import F, Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from annotate.actions.registry import by_name
from annotate.actions.user_accounts import FAILED, REFUSED, mail_reply
from annotate.core.refusals import InvalidAnswer
from annotate.figures import annotator_statistics, progress_report, task_statistics
from annotate.figures.figure_cache import BeingCountedError, figures, foretold, forget
from annotate.figures.people_report import everybody_table, timesheet_csv
from annotate.figures.queue_states import queue_states_of
from annotate.kinds.interface_language import label_name
from annotate.models import Flag, Job, Judgment, Task
from annotate.pages import action_forms
from annotate.pages.access import UserRequest, may, status_of, whole_number
from annotate.pages.adjudicators import DONE
from annotate.reports.tables import Table, as_csv
from annotate.work import flags
from annotate.work.accounts import waiting_requests
from annotate.work.adjudication import adjudicator_counts

# --- Tables that the query string of a URL filters, sorts or downloads

MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # tells Excel that the file is UTF-8


def with_address(value: Any, path: str, parameters: Mapping[str, str]) -> Any:
    """Return the context of a page after giving the path and query of its URL to every table in it.

    The tables need both for their filters and links. Tables in nested containers are included.

    path: path of the URL
    parameters: parameters of the query string
    """
    if isinstance(value, Table):
        return replace(value, path=path, given=parameters)
    if type(value) is dict:
        return {key: with_address(item, path, parameters) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(with_address(each, path, parameters) for each in value)
    return value


def downloaded(context: Any, name: str) -> HttpResponse:
    """Return a table of a page as a CSV file. Raise Http404 if the page has no table with this name.

    context: template context of the page
    name: name of the table
    """
    for table in _tables(context):
        if table.name == name:
            return csv_reply(f"{name}.csv", as_csv(table))
    raise Http404("This page does not contain this table.")


def csv_reply(name: str, text: str) -> HttpResponse:
    """Return a CSV file as a download.

    name: name of the file
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

# (URL name, title) of the managers' pages that are not about one task.
DESK = (
    ("manage", "Tasks"),
    ("manage-everybody", "People"),
    ("manage-questions", "Questions"),
    ("manage-corpora", "Corpora"),
    ("manage-accounts", "Accounts"),
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
    task: the task whose tabs the page shows, if any
    refusal: error to show; it also sets the HTTP status unless `status` is given
    status: HTTP status
    """
    context |= {"task": task, "tabs": tabs(task), "kind": task.kind} if task else {"desk": DESK}
    context = with_address(context, request.path, request.GET.dict())
    if "csv" in request.GET and name != "counting":
        return downloaded(context, request.GET["csv"])
    context |= {"page": name, "refusal": refusal}
    return render(request, f"annotate/manage/{name}.html", context, status=status or status_of(refusal))


def done(request: UserRequest, sentence: str, target: str, *args: Any) -> HttpResponse:
    """Redirect to a page, which shows the sentence as a message.

    to, args: URL or view, as for django.shortcuts.redirect
    """
    messages.success(request, sentence)
    return redirect(target, *args)


def shows_figures(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view whose figures might not be computed yet. Until they are, show a page that reloads itself."""

    @wraps(view)
    def shown(request: UserRequest, *args: Any, **arguments: Any) -> HttpResponse:
        try:
            return view(request, *args, **arguments)
        except BeingCountedError:
            page = manage_page(request, "counting", arguments.get("task"))
            page["Refresh"] = "1"
            return page

    return shown


def log_change(request: UserRequest, object_: Model, message: str, act: int = CHANGE) -> None:
    """Log that the user changed an object.

    act: Django's ADDITION, CHANGE or DELETION
    """
    LogEntry.objects.log_actions(request.user.pk, [object_], act, message, single_object=True)


# --- Start page, dates and people


def tabs(task: Task) -> list[tuple[str, str]]:
    """Return the tabs of a task's pages as (URL name, title) tuples.

    Pages about quality controls are included only if the task's kind has these controls.
    """
    return [
        ("manage-task", "Progress"),
        ("manage-people", "People"),
        ("manage-comments", "Comments"),
        ("manage-notes", "Notes"),
        ("manage-guidelines", "Guidelines"),
        *(tab for control in task.kind.quality_controls for tab in control.tabs),
        ("manage-agreement", "Agreement"),
    ]


FEW = 5  # maximum number of stalled queues of each task, and of failed jobs, on the dashboard
FORETOLD = 12  # number of open tasks for which the dashboard makes forecasts; they are the newest
LIVELY = 5  # time for which the live counts are cached, in seconds


@shows_figures
def manage(request: UserRequest) -> HttpResponse:
    tasks = Task.objects.filter(is_open=True)
    (rows, states), counted_at = all_tasks(tasks)
    # If a task was opened after the figures were computed, they do not include it yet.
    open_tasks, sort = [task for task in tasks if task.pk in states], sort_of(request)
    counts = {task.name: states[task.pk]["stuck"] for task in open_tasks}
    rows = [{**row, "stuck": counts.get(row["name"])} for row in rows]
    able = adjudicator_counts(open_tasks)
    unadjudicated = {task.name for task in open_tasks if not able[task.pk]}
    return manage_page(
        request,
        "tasks",
        table=progress_report.tasks_table(rows, _task_page, sort),
        waiting=list(_stuck(open_tasks, states)),
        new=[row for row in rows if row["newly_paused"]],
        unadjudicated=[row for row in rows if row["name"] in unadjudicated and row["adjudication"]],
        flags=Flag.objects.open().count(),
        asking=waiting_requests().count(),
        failed=[
            (job, action_forms.as_on_page(job.warned[0], by_name()[job.action].options) if job.warned else "")
            for job in Job.objects.failed()[:FEW]
        ],
        now=live_counts(),
        open_tasks=open_tasks,
        counted_at=counted_at,
    )


def all_tasks(open_tasks: Iterable[Task]) -> tuple[Any, datetime | None]:
    """Return ((rows, states), counted_at): a row for each task, the queue states of each open task, and the time at
    which these figures were computed if they come from the cache.
    """
    return figures("tasks", None, lambda: (task_statistics.overview(), queue_states_of(open_tasks)))


def _stuck(open_tasks: list[Task], states: dict[int, Any]) -> Iterator[tuple[Task, list[Any], int]]:
    """Yield (task, first FEW stalled queues, number of stalled queues beyond these) for each task that has any.

    The number is negative if the task has fewer than FEW stalled queues.
    """
    for task in open_tasks:
        stuck = [row for row in states[task.pk]["queues"] if row["stuck"]]
        if stuck:
            yield task, stuck[:FEW], len(stuck) - FEW


@shows_figures
def dates(request: UserRequest) -> HttpResponse:
    """Show when the newest FORETOLD open tasks will be finished.

    The start page loads these forecasts separately, because they take longer to compute.
    """
    open_tasks = list(Task.objects.filter(is_open=True))
    forecasts, counted_at = figures("dates", None, lambda: _forecasts(open_tasks[:FORETOLD]))
    rows = [(task, forecast) for task in open_tasks if (forecast := forecasts.get(task.pk))]
    return manage_page(
        request,
        "dates",
        table=progress_report.dates_table(rows, _task_page, sort_of(request)),
        untold=len(open_tasks) - FORETOLD,
        counted_at=counted_at,
    )


def _forecasts(tasks: list[Task]) -> dict[int, Any]:
    states = queue_states_of(tasks)
    return {task.pk: foretold(task, states[task.pk]) for task in tasks}


def _task_page(name: str) -> str:
    return reverse("manage-task", args=[name])


@shows_figures
def everybody(request: UserRequest) -> HttpResponse:
    rows, counted_at = figures("everybody", None, annotator_statistics.everybody)
    return manage_page(
        request,
        "everybody",
        table=everybody_table(rows, sort_of(request)),
        months=annotator_statistics.months(),
        counted_at=counted_at,
    )


def timesheet(request: UserRequest) -> HttpResponse:
    """Download the hours that people worked in a month, as a CSV file.

    ?month=: the month in the form 2026-11; by default the current month
    """
    try:
        month = date.fromisoformat(f"{request.GET.get('month') or f'{timezone.localdate():%Y-%m}'}-01")
    except ValueError:
        raise Http404("This month does not exist. Specify a month in the form month=2026-11.") from None
    return csv_reply(f"hours-{month:%Y-%m}.csv", timesheet_csv(annotator_statistics.timesheet(month)))


def now(request: UserRequest) -> HttpResponse:
    """Show the live counts, which the start page requests repeatedly."""
    return render(request, "annotate/manage/_now.html", {"now": live_counts()})


def live_counts() -> Any:
    """Return the current activity of annotators. It is cached, so that all managers share one computation."""
    return cache.get_or_set("at-work-now", annotator_statistics.at_work_now, LIVELY)


# --- Annotators' flags and the replies to them. The operations are in work/flags.py.

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
    ?task=: list only flags of the task with this name
    ?all=: also list flags that are settled
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
    """Return a row for each flag. It has the judgments of the flagged unit as (annotator, action, answer) tuples."""
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
    """Act on a flag.

    POST fields:
    do: a key of DOES
    reply: text of the reply, if the action is to reply
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
    messages.success(request, "The unit was excluded, regardless of its answers.")


def _make_example(request: UserRequest, flag: int) -> None:
    version = flags.make_example(flag, by=request.user)
    messages.success(
        request,
        f"The unit was added as an example to the guidelines, in version {version.version} ({version.language}).",
    )


DOES = {"reply": _reply, "dismiss": _dismiss, "discard": _discard, "example": _make_example}


# --- Managers' notes to annotators. The operations are in work/flags.py.


def list_notes(request: UserRequest, task: Task) -> HttpResponse:
    codes = sorted(set(task.read_in), key=label_name)
    languages = [(code, label_name(code)) for code in codes]
    listed = [(note, label_name(note.language) if note.language else "everybody") for note in flags.notes_of(task)]
    context: dict[str, Any] = {
        "notes": listed,
        "languages": languages,
        "longest": flags.LONGEST_NOTE,
        "decides": may(request.user, "decide"),
    }
    return manage_page(request, "notes", task, **context)


def note(request: UserRequest, task: Task) -> HttpResponse:
    """Write or withdraw a note.

    POST fields:
    withdraw: primary key of a note to withdraw
    text: text of a new note
    language: code of the language whose readers see the new note; empty for all annotators
    """
    if "withdraw" in request.POST:
        flags.withdraw_note(task, whole_number(request.POST["withdraw"]) or 0)
        return done(request, "The note was withdrawn.", "manage-notes", task.name)
    flags.write_note(task, request.POST.get("text", ""), by=request.user, language=request.POST.get("language", ""))
    sentence = "The note is shown on the annotators' start page and above their queue until they dismiss it."
    return done(request, sentence, "manage-notes", task.name)
