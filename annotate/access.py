"""Who may do what, decided here and nowhere else; tests/annotate/test_access.py walks the whole matrix.

A person is an annotator if they have an Annotator row, an adjudicator if that row says so, a manager if they are
staff (the admin's own permissions decide what of it they may change).
"""

from collections.abc import Callable
from functools import wraps

from django.shortcuts import get_object_or_404

from annotate.errors import NotAllowed
from annotate.models import Annotator, Task


def annotator_of(user) -> Annotator | None:
    return Annotator.objects.filter(user=user).select_related("user").first() if user.is_authenticated else None


RIGHTS: dict[str, Callable[[Annotator | None], bool]] = {
    "annotate": lambda annotator: annotator is not None,
    "adjudicate": lambda annotator: annotator is not None and annotator.adjudicates,
}
REFUSALS = {
    "annotate": "Your account is not an annotator's. The manager can make it one.",
    "adjudicate": "Only adjudicators may see this page.",
}


def check_right(user, right: str) -> Annotator:
    annotator = annotator_of(user)
    if annotator is None or not RIGHTS[right](annotator):
        raise NotAllowed(REFUSALS[right])
    return annotator


def with_task(right: str):
    """Make view(request, annotator, task, ...) of an address that names a task; works for pages and API alike."""

    def decorate(view):
        @wraps(view)
        def checked(request, task, *args, **kwargs):
            annotator = check_right(request.user, right)
            return view(request, annotator, get_object_or_404(Task, name=task), *args, **kwargs)

        return checked

    return decorate
