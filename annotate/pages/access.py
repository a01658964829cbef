"""Who may do what, decided here and nowhere else; tests/annotate/test_access.py walks the whole matrix.

A person is an annotator if they have an Annotator row, an adjudicator if that row says so, a manager if they are
staff. All of these may look at everything; what a manager may change, the admin's own permissions decide, and who may
change tasks may pause people, let them go on and void their answers.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.shortcuts import get_object_or_404

from annotate.core.refusals import NotAllowed
from annotate.models import Annotator, Task
from annotate.work.permit import NO_ANNOTATOR, permit_of


def annotator_of(user) -> Annotator | None:
    return Annotator.objects.filter(user=user).select_related("user").first() if user.is_authenticated else None


RIGHTS: dict[str, Callable[[Any, Annotator | None], bool]] = {
    "annotate": lambda user, annotator: annotator is not None,
    "read": lambda user, annotator: annotator is not None or user.is_staff,
    "adjudicate": lambda user, annotator: annotator is not None and annotator.adjudicates,
    "manage": lambda user, annotator: user.is_staff,
    "decide": lambda user, annotator: user.is_staff and user.has_perm("annotate.change_task"),
}
REFUSALS = {
    "annotate": NO_ANNOTATOR,
    "read": "Only annotators and managers may see this page.",
    "adjudicate": "Only adjudicators may see this page.",
    "manage": "Only managers may see this page.",
    "decide": "Your account may look at this, but not change it: it lacks the permission to change tasks.",
}


def may(user, right: str) -> bool:
    return RIGHTS[right](user, annotator_of(user))


def check_right(user, right: str) -> Annotator | None:
    """The person's Annotator row, which a manager need not have. NotAllowed for who has not the right."""
    annotator = annotator_of(user)
    if not RIGHTS[right](user, annotator):
        raise NotAllowed(REFUSALS[right])
    return annotator


def with_task(right: str):
    """Make view(request, annotator, task, ...) of an address that names a task; works for pages and API alike.

    annotator: None for a manager who is none.
    """

    def decorate(view):
        @wraps(view)
        def checked(request, task, *args, **kwargs):
            annotator = check_right(request.user, right)
            return view(request, annotator, get_object_or_404(Task, name=task), *args, **kwargs)

        return checked

    return decorate


def with_permit(view):
    """Make view(request, permit, ...) of an annotator's address that names a task; it only shows."""

    @wraps(view)
    def checked(request, task, *args, **kwargs):
        annotator = check_right(request.user, "annotate")
        return view(
            request,
            permit_of(annotator, get_object_or_404(Task.objects.for_work(annotator), name=task)),
            *args,
            **kwargs,
        )

    return checked
