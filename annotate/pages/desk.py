"""What all of the manager's pages have around them: the desk's own pages, or those of a task."""

from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Model
from django.shortcuts import render

from annotate.models import Task

# Addresses of the pages of the desk, and their names.
DESK = (
    ("manage", "Tasks"),
    ("manage-corpora", "Corpora"),
    ("manage-accounts", "Accounts"),
    ("manage-routes", "Routes"),
    ("manage-jobs", "Jobs"),
)


def page(request, page: str, task: Task | None = None, *, status: int = 200, **context):
    """A page by the name of its template; of a task, it has the task's tabs."""
    around = {"task": task, "tabs": _tabs(task), "kind": task.kind} if task else {"desk": DESK}
    return render(request, f"annotate/manage/{page}.html", {"page": page, **around, **context}, status=status)


def note(request, thing: Model, words: str, act: int = CHANGE) -> None:
    """Keep in the log of changed settings who did this to it. act: Django's ADDITION, CHANGE or DELETION."""
    LogEntry.objects.log_actions(request.user.pk, [thing], act, words, single_object=True)


def _tabs(task: Task) -> list[tuple[str, str]]:
    """Addresses of a task's pages and their names; pages that have nothing to show for it are left out."""
    tested = "test" in task.kind.protections
    return [
        ("manage-task", "Progress"),
        ("manage-people", "People"),
        ("manage-comments", "Comments"),
        ("manage-guidelines", "Guidelines"),
        *([("manage-tests", "Test and gold answers")] if tested else []),
        ("manage-agreement", "Agreement"),
        *([("manage-rule", "Pause rule")] if tested else []),
    ]
