"""Access rights, which are decided only here; tests/annotate/access/test_access.py walks the whole matrix. Also who
asks, by session or token, and how many requests of the API are accepted.

A person is an annotator if they have an Annotator row, an adjudicator if that row says so, a manager if they are staff
(work/accounts.py, which commands ask too). Managers may look at everything; the admin's own permissions decide what
they may change here as well: a manager who may change tasks may also pause people, let them go on, void their answers,
reply to what they flag and write them notes. Whose account may be changed is decided by `may_change` in
work/accounts.py, which the table of people asks too; managers are made by superusers alone. What a person flagged, and
the replies and notes to them, are shown to them alone (work/flags.py, notes.py). The login and the documentation
(annotate/manual/views.py), which holds no secret, are open to everybody.
"""

import binascii
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from knox import auth
from knox.crypto import hash_token
from knox.models import AuthToken
from knox.settings import CONSTANTS
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.metadata import BaseMetadata
from rest_framework.throttling import BaseThrottle

from annotate.actions.action import ActionError
from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound
from annotate.models import Annotator, Job, Task
from annotate.work.accounts import is_manager, may_change_all
from annotate.work.people_file import BadTable
from annotate.work.permit import NO_ANNOTATOR, check_willing, permit_of
from corpora.database.statements import prepared
from corpora.system import is_storage_fault


def annotator_of(user) -> Annotator | None:
    return next(iter(_annotator(user.pk)), None) if user.is_authenticated else None


@prepared
def _annotator(user) -> QuerySet[Annotator]:
    return Annotator.objects.filter(user=user).select_related("user").order_by()


@prepared
def _task(name) -> QuerySet[Task]:
    return Task.objects.filter(name=name)


@prepared
def _task_for_work(annotator, name) -> QuerySet[Task]:
    return Task.objects.for_work(annotator).filter(name=name)


def _only(rows) -> Any:
    for row in rows:
        return row
    raise Http404("There is no such thing.")


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


# What an address names -> how it is looked up. A view gets the thing under the same name.
NAMED: dict[str, Callable[[Any], Any]] = {
    "task": lambda name: _only(_task(name)),
    "person": lambda pk: _only(Annotator.objects.filter(pk=pk).select_related("user")),
    "job": lambda pk: _only(Job.objects.filter(pk=pk).select_related("by")),
}
OF_ANNOTATORS = ("annotate", "read", "adjudicate")


def with_right(right: str):
    """Makes view(request, ...) of a view, for people who have the right; it gets what the address names. A right of
    annotators also hands on the annotator, who is None for a manager who only reads.
    """

    def decorate(view):
        @wraps(view)
        def checked(request, **named):
            annotator = check_right(request.user, right)
            named |= {name: look_up(named[name]) for name, look_up in NAMED.items() if name in named}
            if right == "adjudicate":
                check_willing(annotator, named["task"])
            return view(request, *([annotator] if right in OF_ANNOTATORS else []), **named)

        return checked

    return decorate


def with_permit(view):
    """Makes view(request, permit, ...) of an annotator's address that names a task; it only shows."""

    @wraps(view)
    def checked(request, task, **named):
        annotator = check_right(request.user, "annotate")
        return view(request, permit_of(annotator, _only(_task_for_work(annotator.pk, task))), **named)

    return checked


# --- Numbers sent by forms


def whole_number(text: str | None) -> int | None:
    """A non-negative number from a form; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def active_seconds(request) -> float | None:
    """The working time that the page has measured, None if it has not."""
    milliseconds = whole_number(request.POST.get("active_ms"))
    return None if milliseconds is None else milliseconds / 1000


# --- Refusals (annotate/core/refusals.py) as statuses of HTTP

API = "/api/"
# Refusal -> its status; any other is a conflict with what has happened meanwhile.
STATUSES = {InvalidAnswer: 400, ActionError: 400, BadTable: 400, NotAllowed: 403, NotFound: 404}
CONFLICT = 409


def status_of(refusal: Exception | None) -> int:
    """The status of a page that shows the refusal, if there is one."""
    if refusal is None:
        return 200
    return next((status for kind, status in STATUSES.items() if isinstance(refusal, kind)), CONFLICT)


# --- Who asks: tokens of the API


class TokenAuthentication(auth.TokenAuthentication):
    """Knox's, which fails on a token that is no UTF-8, and with every request looks for tokens that have expired."""

    def authenticate_credentials(self, token: bytes):
        if not token.isascii():
            raise AuthenticationFailed
        text = token.decode()
        for found in _tokens(text[: CONSTANTS.TOKEN_KEY_LENGTH], timezone.now()):
            with suppress(TypeError, binascii.Error):  # it is no token, which Knox says
                if compare_digest(hash_token(text), found.digest):
                    return self.validate_user(found)
        return super().authenticate_credentials(token)


@prepared
def _tokens(key, now) -> QuerySet[AuthToken]:
    return AuthToken.objects.filter(token_key=key, expiry__gt=now).select_related("user")


class TokenScheme(KnoxTokenScheme):
    """How the reference of the API tells of it."""

    target_class = TokenAuthentication


# --- The session and the account of a request, which every one asks for: Django's own, by statements built once.


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        found = _session(self.session_key, timezone.now())
        if not found:
            self._session_key = None
            return None
        return found[0]

    def save(self, must_create=False):
        try:
            super().save(must_create)
        except UpdateError as error:
            # Django takes it for a session that was ended meanwhile.
            fault = error.__context__
            if fault and is_storage_fault(fault):
                raise fault from fault.__cause__
            raise


class PasswordBackend(ModelBackend):
    def get_user(self, user_id) -> User | None:
        found = _user(user_id)
        return found[0] if found and self.user_can_authenticate(found[0]) else None


@prepared
def _session(key, now) -> QuerySet[Session]:
    return Session.objects.filter(session_key=key, expire_date__gt=now)


@prepared
def _user(key) -> QuerySet[User]:
    return User.objects.filter(pk=key)


# --- Answers to OPTIONS


class NoMetadata(BaseMetadata):
    """The header Allow says which methods an address takes; what it takes and gives is said once, in the schema."""

    def determine_metadata(self, request, view) -> None:
        return None


# --- Requests a minute that the API accepts from one person, or from one address without a login
#
# They are counted in files of the data folder. Memory belongs to one worker, so three workers would accept three times
# as many. A cache that is read and then written loses simultaneous requests, which are the ones to limit. A row of the
# database would add a commit to each request, and on SQLite the answers of others would wait for it.

NETWORK = 64  # bits: of IPv6, one customer has as many addresses as they like behind these


def address_of(request) -> str | None:
    """The address of the browser or program; of IPv6 its network. None where there is none, as behind a local socket.

    Behind proxies it is the one that the outermost of them was reached from (ASSAY_PROXIES in deploy/env.example).
    """
    try:
        address = ip_address(BaseThrottle().get_ident(request) or "")
    except ValueError:
        return None
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, NETWORK), strict=False).network_address)


MINUTE = 60  # seconds
# A person has the place of their number. Addresses share these places, so that whoever has many fills no disk.
ADDRESSES = 1 << 16
# In a place: the minute, counted from the epoch, and the requests in it.
NUMBER = 4  # bytes of each


class PerMinute(BaseThrottle):
    """Refuses what is beyond ASSAY_API_RATE in the minute of the clock, or beyond ASSAY_API_RATE_UNKNOWN."""

    def allow_request(self, request, view) -> bool:
        if request.user.is_authenticated:
            return _allows(settings.API_RATE, "people", request.user.pk)
        address = sha256((address_of(request) or "").encode()).digest()
        return _allows(settings.API_RATE_UNKNOWN, "addresses", int.from_bytes(address[:8], "big") % ADDRESSES)

    def wait(self) -> float:
        return MINUTE - time.time() % MINUTE


def _allows(rate: int, name: str, place: int) -> bool:
    """rate: requests a minute; with 0 there is no limit."""
    try:
        return not rate or _count(settings.DATA_DIR / "requests" / name, place, int(time.time() // MINUTE)) <= rate
    except OSError:
        return True  # On a full disk the API is better without a limit than without answers.


def _count(path: Path, place: int, minute: int) -> int:
    """How many requests of the minute have come in a place of the file, with this one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        stored = os.pread(file, 2 * NUMBER, 2 * NUMBER * place)
        count = 1 + int.from_bytes(stored[NUMBER:]) * (int.from_bytes(stored[:NUMBER]) == minute)
        os.pwrite(file, minute.to_bytes(NUMBER) + count.to_bytes(NUMBER), 2 * NUMBER * place)
        return count
    finally:
        os.close(file)  # and with it goes the lock
