"""Access rights, which are decided only here; tests/annotate/access/test_access.py walks the whole matrix.

A person is an annotator if they have an Annotator row, an adjudicator if that row says so, a manager if they are staff
(work/accounts.py, which commands ask too). Managers may look at everything; the admin's own permissions decide what
they may change here as well: a manager who may change tasks may also pause people, let them go on, void their answers,
reply to what they flag and write them notes. Whose account may be changed is decided by `may_change` in
work/accounts.py, which the table of people asks too; managers are made by superusers alone. What a person flagged, and
the replies and notes to them, are shown to them alone (work/flagging.py, notes.py). The documentation (docs.py), which
holds no secret, and the log-in are open to everybody.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotate.core.refusals import NotAllowed
from annotate.models import Annotator, Task
from annotate.work.accounts import is_manager, may_change_all
from annotate.work.permit import NO_ANNOTATOR, check_willing, permit_of
from corpora.database.prepared import prepared


def annotator_of(user) -> Annotator | None:
    return next(iter(_annotator(user.pk)), None) if user.is_authenticated else None


@prepared
def _annotator(user) -> QuerySet[Annotator]:
    return Annotator.objects.filter(user=user).select_related("user").order_by()


@prepared
def _named(name) -> QuerySet[Task]:
    return Task.objects.filter(name=name)


@prepared
def _named_for_work(annotator, name) -> QuerySet[Task]:
    return Task.objects.for_work(annotator).filter(name=name)


def _nothing() -> NoReturn:
    raise Http404("There is no such task.")


def _manager_with(*permissions: str) -> Callable[[Any, Annotator | None], bool]:
    needed = [f"annotate.{each}" for each in permissions]
    return lambda user, annotator: is_manager(user) and user.has_perms(needed)


RIGHTS: dict[str, Callable[[Any, Annotator | None], bool]] = {
    "annotate": lambda user, annotator: annotator is not None,
    "read": lambda user, annotator: annotator is not None or is_manager(user),
    "adjudicate": lambda user, annotator: annotator is not None and annotator.adjudicates,
    "manage": lambda user, annotator: is_manager(user),
    "decide": _manager_with("change_task"),
    "invite": _manager_with("add_annotator", "change_annotator"),
    "people": _manager_with("change_annotator"),
    "guide": _manager_with("add_guidelines"),
    "route": _manager_with("add_languageroute", "change_languageroute", "delete_languageroute"),
    "raise": lambda user, annotator: may_change_all(user),
}
LOOK_ONLY = "Your account may look at this, but not change it: it lacks the permission to"
REFUSALS = {
    "annotate": NO_ANNOTATOR,
    "read": gettext_noop("This is for annotators and managers only."),
    "adjudicate": gettext_noop("This is for adjudicators only."),
    "manage": gettext_noop("This is for managers only."),
    "decide": gettext_noop(
        "Your account may look at this, but not change it: it lacks the permission to change tasks."
    ),
    "invite": f"{LOOK_ONLY} add and change annotators.",
    "people": f"{LOOK_ONLY} change annotators.",
    "guide": f"{LOOK_ONLY} add guidelines.",
    "route": f"{LOOK_ONLY} add, change and delete language routes.",
    "raise": "Only a superuser makes managers.",
}


def may(user, right: str) -> bool:
    return RIGHTS[right](user, annotator_of(user))


def check_right(user, right: str) -> Annotator | None:
    """The person's Annotator row, which a manager need not have. NotAllowed if the person does not have the right."""
    annotator = annotator_of(user)
    if not RIGHTS[right](user, annotator):
        # Whoever may not look either is told that.
        may_look = right in ("annotate", "read", "adjudicate") or is_manager(user)
        raise NotAllowed(_(REFUSALS[right if may_look else "manage"]))
    return annotator


def with_right(right: str):
    """Make view(request, annotator, ...) of an address that names no task."""

    def decorate(view):
        @wraps(view)
        def checked(request, *args, **kwargs):
            return view(request, check_right(request.user, right), *args, **kwargs)

        return checked

    return decorate


def with_task(right: str):
    """Make view(request, annotator, task, ...) of an address that names a task; works for pages and API alike.

    annotator: None for a manager who is not an annotator.
    """

    def decorate(view):
        @wraps(view)
        def checked(request, task, *args, **kwargs):
            annotator = check_right(request.user, right)
            [found] = _named(task) or _nothing()
            if right == "adjudicate":
                check_willing(annotator, found)
            return view(request, annotator, found, *args, **kwargs)

        return checked

    return decorate


def with_permit(view):
    """Make view(request, permit, ...) of an annotator's address that names a task; it only shows."""

    @wraps(view)
    def checked(request, task, *args, **kwargs):
        annotator = check_right(request.user, "annotate")
        [found] = _named_for_work(annotator.pk, task) or _nothing()
        return view(request, permit_of(annotator, found), *args, **kwargs)

    return checked
