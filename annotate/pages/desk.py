"""What all of the manager's pages have around them: the desk's own pages, or those of a task."""

from django.shortcuts import render

from annotate.models import Task

# Addresses of the pages of the desk, and their names.
DESK = (
    ("manage", "Tasks"),
    ("manage-corpora", "Corpora"),
    ("manage-jobs", "Jobs"),
)


def page(request, page: str, task: Task | None = None, *, status: int = 200, **context):
    """A page by the name of its template; of a task, it has the task's tabs."""
    around = {"task": task, "tabs": _tabs(task), "kind": task.kind} if task else {"desk": DESK}
    return render(request, f"annotate/manage/{page}.html", {"page": page, **around, **context}, status=status)


def _tabs(task: Task) -> list[tuple[str, str]]:
    """Addresses of a task's pages and their names; pages that have nothing to show for it are left out."""
    tested = "test" in task.kind.protections
    return [
        ("manage-task", "Progress"),
        ("manage-people", "People"),
        ("manage-comments", "Comments"),
        *([("manage-tests", "Test and gold answers")] if tested else []),
        ("manage-agreement", "Agreement"),
        *([("manage-rule", "Pause rule")] if tested else []),
    ]
