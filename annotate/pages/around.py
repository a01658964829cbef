"""What all of the manager's pages have around them: the desk's own pages, or those of a task; and what is offered with
their tables.
"""

from functools import wraps

from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Model
from django.shortcuts import render

from annotate.figures.figure_cache import BeingCountedError
from annotate.models import Task
from annotate.pages.offering import downloaded, offered

# Addresses of the pages of the desk, and their names.
DESK = (
    ("manage", "Tasks"),
    ("manage-everybody", "People"),
    ("manage-questions", "Questions"),
    ("manage-corpora", "Corpora"),
    ("manage-accounts", "Accounts"),
    ("manage-routes", "Routes"),
    ("manage-jobs", "Jobs"),
)


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


def tabs(task: Task) -> list[tuple[str, str]]:
    """Addresses of a task's pages and their names; pages that have nothing to show for it are left out."""
    tested = "test" in task.kind.controls
    return [
        ("manage-task", "Progress"),
        ("manage-people", "People"),
        ("manage-comments", "Comments"),
        ("manage-notes", "Notes"),
        ("manage-guidelines", "Guidelines"),
        *([("manage-tests", "Test and gold answers")] if tested else []),
        ("manage-agreement", "Agreement"),
        *([("manage-rule", "Pause rule")] if tested else []),
    ]
