"""Refusals, addresses that lead nowhere and errors as HTTP: a page, or under /api/ JSON.

Operations raise what is in annotate/core/refusals.py; the middleware and the API's exception handler answer with it.
"""

from django.http import Http404, JsonResponse
from django.shortcuts import render
from django.views import defaults
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound, Refusal

API = "/api/"
# Refusal -> its HTTP status; any other is a conflict with what has happened meanwhile.
STATUSES = {InvalidAnswer: 400, NotAllowed: 403, NotFound: 404}
CONFLICT = 409
# Of what is not there, and what is hidden, the same is told.
NOTHING_SEEN = "There is no such task or unit, or it is not open to you. The address tasks/ lists your tasks."
# What a program may be told besides, where a request does not get as far as an operation: code -> its status, when, and
# what to do.
OTHER_CODES: dict[str, tuple[int, str, str]] = {
    "parse_error": (400, "The body of the request is no JSON, or is nested too deeply.", "Send valid JSON."),
    "authentication_failed": (
        401,
        "The token is not valid: it was revoked, or its owner is locked out.",
        "Ask the manager for a new token.",
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
    "unsupported_media_type": (
        415,
        "The body of the request is of another type than JSON.",
        "Send the header `Content-Type: application/json`.",
    ),
    "server_error": (500, "Something went wrong on the server.", "Send the request again, or tell the manager."),
}


def status_of(refusal: Refusal) -> int:
    return next((status for kind, status in STATUSES.items() if isinstance(refusal, kind)), CONFLICT)


def bad_request(request, exception):
    """The answer to a form that Django does not read, such as one of thousands of fields."""
    told = InvalidAnswer(
        "The form holds more than the site takes, so nothing was done. Reload the page, and send less."
    )
    if request.path.startswith(API):
        return JsonResponse({"code": told.code, "detail": str(told)}, status=400)
    return render(request, "annotate/refusal.html", {"refusal": told}, status=400)


def page_not_found(request, exception):
    """The answer to an address that leads nowhere: a page, or for a program the refusal that it expects."""
    if not request.path.startswith(API):
        return defaults.page_not_found(request, exception)
    return JsonResponse({"code": NotFound.code, "detail": "There is nothing at this address."}, status=404)


def server_error(request):
    if not request.path.startswith(API):
        return defaults.server_error(request)
    detail = "Something went wrong here. What was saved before is safe; send this again, or tell the manager."
    return JsonResponse({"code": "server_error", "detail": detail}, status=500)


def api_exception_handler(error, context):
    """Every refusal in our own words, but for broken JSON: the parser names the place."""
    if isinstance(error, Refusal):
        return Response({"code": error.code, "detail": str(error)}, status=status_of(error))
    if isinstance(error, RecursionError):
        return Response({"code": "parse_error", "detail": "The JSON is nested too deeply."}, status=400)
    response = exception_handler(error, context)
    if isinstance(error, ValidationError):
        faults = (f"{field}: {' '.join(sentences)}" for field, sentences in response.data.items())
        response.data = {"code": InvalidAnswer.code, "detail": " ".join(faults)}
    elif isinstance(error, Http404):
        response.data = {"code": NotFound.code, "detail": NOTHING_SEEN}
    elif response is not None:
        detail = response.data["detail"]
        response.data = {"code": detail.code, "detail": _own_words(detail.code) or detail}
    return response


def _own_words(code: str) -> str:
    return "" if code == "parse_error" or code not in OTHER_CODES else " ".join(OTHER_CODES[code][1:])
