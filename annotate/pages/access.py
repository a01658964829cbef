"""Access rights, and a request's session and user.

This module defines all rights; tests/annotate/access/test_access.py tests every combination. A user with an Annotator
row is an annotator, and also an adjudicator if the row's `adjudicates` is set. Staff are managers (work/accounts.py).
Managers can see everything, and the permissions of the admin site determine what they can change. A manager who may
change tasks may also pause annotators and lift pauses, void answers, reply to flags and write notes. `may_change` in
work/accounts.py determines which accounts a manager may change. Only superusers can create managers. A member with the
role manager has the rights `manage`, `decide` and `guide`, but only in the task and its jobs. An annotator's flags, and
the replies and notes to the annotator, are visible only to the annotator and to managers (work/flags.py). The login and
the documentation (annotate/manual/views.py) are public.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache, wraps
from typing import Any, TypeVar

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from annotate.actions.action import ActionError
from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound
from annotate.models import Annotator, Delivery, Job, Membership, Task, Webhook
from annotate.work.accounts import is_manager, may_change_all
from annotate.work.adjudication import check_may_adjudicate
from annotate.work.membership import check_member
from annotate.work.people_file import BadTable
from annotate.work.permit import NO_ADJUDICATOR, NO_ANNOTATOR, NOT_A_MEMBER, permit_of, task_for_work
from corpora.database.statements import prepared
from corpora.system import is_storage_fault

R = TypeVar("R")
View = Callable[..., HttpResponseBase]
Guard = Callable[[View], View]  # decorator that checks a right


class PageRequest(HttpRequest):
    """A request with the attributes that the middleware and the upload handler add. The user may be anonymous."""

    htmx: bool
    preferences: dict[str, Any]
    too_large: str  # name of an uploaded file that was rejected


class UserRequest(PageRequest):
    """A request from a logged-in user."""

    user: User


def annotator_of(user: User | AnonymousUser) -> Annotator | None:
    return next(iter(_annotator(user.pk)), None) if user.is_authenticated else None


@prepared
def _annotator(user: int) -> QuerySet[Annotator]:
    return Annotator.objects.filter(user=user).select_related("user").order_by()


@prepared
def _task(name: str) -> QuerySet[Task]:
    return Task.objects.filter(name=name)


def _get_or_404(rows: Iterable[Any]) -> Any:
    for row in rows:
        return row
    raise Http404("This object does not exist.")


OF_ANNOTATORS = ("annotate", "read", "adjudicate")
# Function of (user, the user's Annotator row, whether the user manages the task) -> whether the user has the right.
Right = Callable[[Any, Annotator | None, bool], bool]


def _manager_with(*permissions: str, in_task: bool = False) -> Right:
    """Return a right for managers with these permissions and, if `in_task`, also for the task's own managers."""
    required = [f"annotate.{permission}" for permission in permissions]
    return lambda user, annotator, manages: (in_task and manages) or (is_manager(user) and user.has_perms(required))


RIGHTS: dict[str, Right] = {
    "annotate": lambda user, annotator, manages: annotator is not None,
    "read": lambda user, annotator, manages: annotator is not None or is_manager(user),
    # check_may_adjudicate also checks the role in the task.
    "adjudicate": lambda user, annotator, manages: annotator is not None,
    "manage": lambda user, annotator, manages: is_manager(user) or manages,
    "decide": _manager_with("change_task", in_task=True),
    "start": _manager_with("change_task"),  # jobs other than an export
    "invite": _manager_with("add_annotator", "change_annotator"),
    "people": _manager_with("change_annotator"),
    "guide": _manager_with("add_guidelines", in_task=True),
    "route": _manager_with("add_languageroute", "change_languageroute", "delete_languageroute"),
    "raise": lambda user, annotator, manages: may_change_all(user),
}
IN_OWN_TASK = ("export_gold", "close", "reopen")  # actions that a task's own managers may start in it
LOOK_ONLY = "You can view this but not change it, because your account lacks the permission to"
REFUSALS = {
    "annotate": NO_ANNOTATOR,
    "read": gettext_noop("This is for annotators and managers only."),
    "adjudicate": NO_ADJUDICATOR,
    "manage": gettext_noop("This is for managers only."),
    "decide": gettext_noop(
        "You can view this but not change it, because your account lacks the permission to change tasks."
    ),
    "start": f"{LOOK_ONLY} change tasks.",
    "invite": f"{LOOK_ONLY} add and change annotators.",
    "people": f"{LOOK_ONLY} change annotators.",
    "guide": f"{LOOK_ONLY} add guidelines.",
    "route": f"{LOOK_ONLY} add, change and delete language routes.",
    "raise": "Only superusers can create managers.",
}


def may(user: User | AnonymousUser, right: str, task: str = "") -> bool:
    """Return whether a user has a right.

    task: name of the task that the user needs the right for; has an effect only if the right can be limited to a task
    """
    annotator = annotator_of(user)
    return RIGHTS[right](user, annotator, _manages(annotator, right, task))


def _manages(annotator: Annotator | None, right: str, task: str) -> bool:
    """Return whether an annotator manages only this task, as a member. Always False for annotators' rights."""
    if annotator is None or not task or right in OF_ANNOTATORS or is_manager(annotator.user):
        return False
    return annotator.memberships.filter(task__name=task, role=Membership.MANAGER).exists()


def check_right(user: User | AnonymousUser, right: str, task: str = "") -> Annotator | None:
    """Return the user's Annotator row, or None if the user is not an annotator.

    Raise NotAllowed if the user lacks the right. The arguments are the same as for `may`.
    """
    annotator = annotator_of(user)
    manages = _manages(annotator, right, task)
    if not RIGHTS[right](user, annotator, manages):
        # If users can't even view the page, that refusal takes precedence over the one about the missing permission.
        may_view = right in OF_ANNOTATORS or is_manager(user) or manages
        raise NotAllowed(_(REFUSALS[right if may_view else "manage"]))
    return annotator


# Name of a URL argument -> function that looks up the object. The view receives the object instead of the argument.
LOOKUPS: dict[str, Callable[[Any], Any]] = {
    "task": lambda name: _get_or_404(_task(name)),
    "person": lambda pk: _get_or_404(Annotator.objects.filter(pk=pk).select_related("user")),
    "delivery": lambda pk: _get_or_404(Delivery.objects.filter(pk=pk)),
    "webhook": lambda pk: _get_or_404(Webhook.objects.filter(pk=pk).select_related("task")),
    "job": lambda pk: _get_or_404(Job.objects.filter(pk=pk).select_related("by")),
}


def _task_of(arguments: Mapping[str, Any]) -> str:
    """Return the name of the task that a URL names, directly or by one of its jobs; "" if there is none."""
    if "job" in arguments:
        job = Job.objects.filter(pk=arguments["job"]).first()
        return job.task_name if job else ""
    return str(arguments.get("task", ""))


def with_right(right: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator that checks a right and looks up the objects named by the URL.

    For the rights in OF_ANNOTATORS, the view also receives the user's Annotator row. For the right `read`, this is None
    if the user is a manager but not an annotator.
    """

    def decorate(view: Callable[..., R]) -> Callable[..., R]:
        @wraps(view)
        def checked(request: UserRequest, **arguments: Any) -> R:
            annotator = check_right(request.user, right, _task_of(arguments))
            arguments |= {name: look_up(arguments[name]) for name, look_up in LOOKUPS.items() if name in arguments}
            task = arguments.get("task")
            if annotator and isinstance(task, Task) and right in OF_ANNOTATORS and not is_manager(request.user):
                check_member(annotator, task)
            if right == "adjudicate":
                assert annotator is not None
                check_may_adjudicate(annotator, arguments["task"])
            return view(request, *([annotator] if right in OF_ANNOTATORS else []), **arguments)

        return checked

    return decorate


def with_permit(view: Callable[..., R]) -> Callable[..., R]:
    """Decorate a view so that it receives the annotator's permit for the task named by the URL.

    The view is called as view(request, permit, ...). It must not change data, because operations that change data must
    obtain the permit in their own transaction.
    """

    @wraps(view)
    def checked(request: UserRequest, task: str, **arguments: Any) -> R:
        annotator = check_right(request.user, "annotate")
        assert annotator is not None
        permit = permit_of(annotator, _get_or_404(task_for_work(annotator.pk, task)))
        if permit.is_outsider:
            raise NotAllowed(_(NOT_A_MEMBER))
        return view(request, permit, **arguments)

    return checked


# --- Values in forms


def text_of(values: Mapping[str, str], name: str) -> str:
    """Return a value from a form or query string; "" if it is missing. NUL is removed: PostgreSQL can't store it."""
    return values.get(name, "").replace("\0", "").strip()


def whole_number(text: str | None) -> int | None:
    """Parse a non-negative integer from a form. Return None for any other text."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def active_seconds(request: HttpRequest) -> float | None:
    """Return the working time measured by the page (seconds); None if the page didn't measure it."""
    milliseconds = whole_number(request.POST.get("active_ms"))
    return None if milliseconds is None else milliseconds / 1000


# --- Refusals (annotate/core/refusals.py) as HTTP status codes

API = "/api/"
# Class of a refusal -> HTTP status. All other refusals are conflicts with an earlier change.
STATUSES = {InvalidAnswer: 400, ActionError: 400, BadTable: 400, NotAllowed: 403, NotFound: 404}
CONFLICT = 409


def status_of(refusal: Exception | None) -> int:
    """Return the HTTP status of a page that shows this refusal; 200 if there is no refusal."""
    if refusal is None:
        return 200
    return next((status for kind, status in STATUSES.items() if isinstance(refusal, kind)), CONFLICT)


# --- Session and user. Every request loads them, so prepared statements replace Django's queries.


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        sessions: list[Session] = _session(self.session_key, timezone.now())
        if not sessions:
            self._session_key = None
            return None
        return sessions[0]

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(_decode_session(session_data))
        return decoded

    def save(self, must_create: bool = False) -> None:
        try:
            super().save(must_create)
        except UpdateError as error:
            # Django reports storage faults as a deleted session. Raise the original error instead.
            fault = error.__context__
            if fault and is_storage_fault(fault):
                raise fault from fault.__cause__
            raise


@lru_cache(maxsize=1024)
def _decode_session(session_data: bytes | str) -> str:
    """Return a session's data as JSON. The signature is checked only once for the same data."""
    return json.dumps(db.SessionStore().decode(session_data))


class PasswordBackend(ModelBackend):
    def get_user(self, user_id: int) -> User | None:
        user = next(iter(_user(user_id)), None)
        return user if user and self.user_can_authenticate(user) else None


@prepared
def _session(key: str, now: datetime) -> QuerySet[Session]:
    return Session.objects.filter(session_key=key, expire_date__gt=now)


@prepared
def _user(key: int) -> QuerySet[User]:
    return User.objects.filter(pk=key)
