"""Access rights, which are decided only here; tests/annotate/access/test_access.py walks the whole matrix.

A person is an annotator if they have an Annotator row, an adjudicator if that row says so, a manager if they are staff
(work/accounts.py, which commands ask too). Managers may look at everything; the admin's own permissions decide what
they may change here as well: a manager who may change tasks may also pause people, let them go on, void their answers,
reply to what they flag and write them notes. Whose account may be changed is decided by `may_change` in
work/accounts.py, which the table of people asks too; managers are made by superusers alone. What a person flagged, and
the replies and notes to them, are shown to them alone (work/flags.py, notes.py). The login and the documentation
(annotate/manual/views.py), which holds no secret, are open to everybody.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from django.core.exceptions import DisallowedHost
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import get_language_from_request, gettext_noop, override
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled, ValidationError
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler

from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound, Refusal
from annotate.models import Annotator, Task
from annotate.pages.credentials import PerMinute
from annotate.work.accounts import is_manager, may_change_all
from annotate.work.permit import NO_ANNOTATOR, check_willing, permit_of
from corpora.database.statements import prepared
from corpora.system import is_storage_fault


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


# --- Numbers sent by forms


def whole_number(text: str | None) -> int | None:
    """A non-negative number from a form; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def active_seconds(request) -> float | None:
    """The working time that the page has measured, None if it has not."""
    milliseconds = whole_number(request.POST.get("active_ms"))
    return None if milliseconds is None else milliseconds / 1000


# --- Refusals (annotate/core/refusals.py) and errors as HTTP: a page, or JSON under /api/

API = "/api/"
# Refusal -> its HTTP status; any other is a conflict with what has happened meanwhile.
STATUSES = {InvalidAnswer: 400, NotAllowed: 403, NotFound: 404}
CONFLICT = 409
WAIT = 5  # seconds after which a request for which there was no room is sent again
# Of what is not there, and what is hidden, the same is told.
NOTHING_SEEN = "There is no such task or unit, or it is not open to you. The address tasks/ lists your tasks."
# What a program may be told besides, where a request does not get as far as an operation: code -> its status, when, and
# what to do.
OTHER_CODES: dict[str, tuple[int, str, str]] = {
    "parse_error": (400, "The body of the request is no JSON, or is nested too deeply.", "Send valid JSON."),
    "authentication_failed": (
        401,
        "The token is not valid: it expired or was revoked, the password was changed since, or its owner is locked "
        "out.",
        "Make a new one on the account's page, or ask the manager.",
    ),
    "not_authenticated": (
        401,
        "The request has no token, or has it behind another word than Token, such as Bearer.",
        "Send the header `Authorization: Token …`; the account page makes a token.",
    ),
    "permission_denied": (
        403,
        "The request comes with a session and without the token that forms have.",
        "Send an API token instead of the cookie of a browser.",
    ),
    "method_not_allowed": (
        405,
        "The address does not take this method.",
        "Use the method that the reference of the API names.",
    ),
    "not_acceptable": (
        406,
        "The request asks for a reply of another type than JSON.",
        "Leave the header `Accept` out, or send `Accept: application/json`.",
    ),
    "unsupported_media_type": (
        415,
        "The body of the request is of another type than JSON.",
        "Send the header `Content-Type: application/json`.",
    ),
    "throttled": (
        429,
        "More requests came within a minute than the API takes from one account, or without a token from one address.",
        "Wait for as many seconds as the header `Retry-After` says, and send the request again.",
    ),
    "server_error": (500, "Something went wrong on the server.", "Send the request again, or tell the manager."),
    "storage": (
        507,
        "The server cannot save anything just now: its disk is full or read-only, or its database is away. Nothing was "
        "saved.",
        "Tell the manager, and send the request again later.",
    ),
    "busy": (
        503,
        "Too many requests wait for the database, which a long command is writing to. Nothing was saved.",
        "Wait for as many seconds as the header `Retry-After` says, and send the request again.",
    ),
}


def status_of(refusal: Refusal) -> int:
    return next((status for kind, status in STATUSES.items() if isinstance(refusal, kind)), CONFLICT)


def bad_request(request, exception):
    """The answer to a form that Django does not read, such as one of thousands of fields, and to a foreign Host."""
    if isinstance(exception, DisallowedHost):
        said = "This site is not served under this name. Use the address that you were given.\n"
        return HttpResponse(said, content_type="text/plain", status=400)
    if request.path.startswith(API):
        detail = "The body of the request holds more than the site takes, so nothing was done. Send less."
        return JsonResponse({"code": InvalidAnswer.code, "detail": detail}, status=400)
    told = InvalidAnswer(
        _("The form holds more than the site takes, so nothing was done. Reload the page, and send less.")
    )
    return render(request, "annotate/refusal.html", {"refusal": told}, status=400)


def page_not_found(request, exception):
    """The answer to an address that leads nowhere: a page, or for a program the refusal that it expects."""
    if not request.path.startswith(API):
        return defaults.page_not_found(request, exception)
    return JsonResponse({"code": NotFound.code, "detail": "There is nothing at this address."}, status=404)


def server_error(request):
    if is_storage_fault(sys.exc_info()[1]):
        return _told_briefly(request, "storage", "507.html")
    if not request.path.startswith(API):
        return defaults.server_error(request)
    detail = "Something went wrong here. What was saved before is safe; send this again, or tell the manager."
    return JsonResponse({"code": "server_error", "detail": detail}, status=500)


def busy(request):
    """The answer to a form or an act for which there is no room now; whoever sent it has it still."""
    response = _told_briefly(request, "busy", "503.html")
    response.headers["Retry-After"] = str(WAIT)
    return response


def _told_briefly(request, code: str, template: str):
    """One of OTHER_CODES, as JSON for a program and else as a page."""
    status, *sentences = OTHER_CODES[code]
    if request.path.startswith(API):
        return JsonResponse({"code": code, "detail": " ".join(sentences)}, status=status)
    with override(get_language_from_request(request)):  # it may not be known who asks
        return render(request, template, status=status)


def api_exception_handler(error, context):
    """Every refusal in our own words, but for broken JSON: the parser names the place."""
    if isinstance(error, Refusal):
        return Response({"code": error.code, "detail": str(error)}, status=status_of(error))
    if isinstance(error, RecursionError):
        return Response({"code": "parse_error", "detail": "The JSON is nested too deeply."}, status=400)
    if isinstance(error, AuthenticationFailed | NotAuthenticated):
        # What gets no further is counted here: elsewhere only requests of those who are let in are.
        throttle = PerMinute()
        if not throttle.allow_request(context["request"], context["view"]):
            error = Throttled(throttle.wait())
    response = exception_handler(error, context)
    if isinstance(error, ValidationError):
        faults = [f"{field}: {' '.join(sentences)}" for field, sentences in response.data.items()]
        detail = " ".join(fault.removeprefix(f"{api_settings.NON_FIELD_ERRORS_KEY}: ") for fault in faults)
        response.data = {"code": InvalidAnswer.code, "detail": detail}
    elif isinstance(error, Http404):
        response.data = {"code": NotFound.code, "detail": _no_such_format(context) or NOTHING_SEEN}
    elif response is not None:
        detail = response.data["detail"]
        response.data = {"code": detail.code, "detail": _own_words(detail.code) or detail}
    return response


def _no_such_format(context) -> str:
    """The library takes an unknown ?format= for an address that leads nowhere."""
    asked = context["request"].query_params.get(api_settings.URL_FORMAT_OVERRIDE)
    known = {renderer.format for renderer in context["view"].renderer_classes}
    return f"There is no format {asked[:20]!r} here. Leave ?format= out." if asked and asked not in known else ""


def _own_words(code: str) -> str:
    return "" if code == "parse_error" or code not in OTHER_CODES else " ".join(OTHER_CODES[code][1:])
