"""Refusals, addresses that lead nowhere and errors as HTTP: a page, or under /api/ JSON.

Operations raise what is in annotate/core/refusals.py; the middleware and the API's exception handler answer with it.
"""

import sys

from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import get_language_from_request, override
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled, ValidationError
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler

from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound, Refusal
from annotate.pages.throttles import PerMinute
from corpora.system import is_storage_fault

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
