"""The responses to refusals and errors: a page, or JSON under /api/."""

import sys
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import get_language_from_request, override
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled, ValidationError
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import exception_handler

from annotate.core.refusals import EnoughToday, InvalidAnswer, NotAgreed, NotAllowed, NotFound, Paused, Refusal
from annotate.pages.access import API, PageRequest, may, status_of
from annotate.pages.account import previous_page
from annotate.pages.api_access import PerMinute
from corpora.system import is_storage_fault

LONG = f"{API}v1/manage/"  # URL prefix of managers' requests, which can be slow

WAIT = 5  # seconds after which a client should repeat a request that was refused because the server is busy
# Objects that are hidden from a user are reported as missing.
NOTHING_SEEN = "The task or item does not exist, or you do not have access to it. Send GET tasks/ to list your tasks."
NOTHING_MANAGED = "The task, job or file does not exist. Send GET manage/tasks/ or manage/jobs/ for a list."
# Error codes of the API for requests that do not reach an operation: code -> (status, cause, what to do).
OTHER_CODES: dict[str, tuple[int, str, str]] = {
    "parse_error": (400, "The request body is not valid JSON, or is nested too deeply.", "Send valid JSON."),
    "authentication_failed": (
        401,
        "The token is invalid: it has expired or was revoked, the password was changed, or the owner's account is "
        "locked.",
        "Create a new token on the account page, or ask the manager.",
    ),
    "not_authenticated": (
        401,
        "The request has no token, or its prefix is not Token (for example, Bearer).",
        "Send the header `Authorization: Token …`. Create a token on the account page.",
    ),
    "permission_denied": (
        403,
        "The request uses a browser session and has no CSRF token.",
        "Send an API token instead of a browser's cookie.",
    ),
    "method_not_allowed": (
        405,
        "The address does not support this method.",
        "Use a method that the API reference lists for the address.",
    ),
    "not_acceptable": (
        406,
        "The header `Accept` of the request does not allow JSON.",
        "Omit the header `Accept`, or send `Accept: application/json`.",
    ),
    "unsupported_media_type": (
        415,
        "The content type of the request is not JSON.",
        "Send the header `Content-Type: application/json`.",
    ),
    "throttled": (
        429,
        "The account (or the IP address, if there is no token) has exceeded the request limit per minute.",
        "Wait for the number of seconds in the header `Retry-After`, then send the request again.",
    ),
    "server_error": (500, "Something went wrong on the server.", "Send the request again, or contact the manager."),
    "storage": (
        507,
        "The server cannot save anything at the moment: its disk is full or read-only, or its database is "
        "unavailable. Nothing was saved.",
        "Contact the manager, and send the request again later.",
    ),
    "busy": (
        503,
        "Too many requests are waiting for the database, because a long command is writing to it. Nothing was saved.",
        "Wait for the number of seconds in the header `Retry-After`, then send the request again.",
    ),
}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the response to a request that Django rejects, such as a form with thousands of fields."""
    if isinstance(exception, DisallowedHost):
        sentence = "This site is not available under this host name. Use the address that you received.\n"
        return HttpResponse(sentence, content_type="text/plain", status=400)
    if request.path.startswith(API):
        detail = "The request body is too large, so nothing was saved. Send less data."
        return JsonResponse({"code": InvalidAnswer.code, "detail": detail}, status=400)
    refusal = InvalidAnswer(_("The form is too large, so nothing was saved. Reload the page, and send less data."))
    return render(request, "annotate/refusal.html", {"refusal": refusal}, status=400)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the response to an unknown URL: JSON for the API, otherwise a page."""
    if not request.path.startswith(API):
        return defaults.page_not_found(request, exception)
    return JsonResponse({"code": NotFound.code, "detail": "This address does not exist."}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    if is_storage_fault(sys.exc_info()[1]):
        return _short_response(request, "storage", "507.html")
    if not request.path.startswith(API):
        return defaults.server_error(request)
    detail = (
        "Something went wrong on the server. Previously saved data is safe. Send the request again, or contact "
        "the manager."
    )
    return JsonResponse({"code": "server_error", "detail": detail}, status=500)


def busy(request: HttpRequest) -> HttpResponse:
    """Refuse a request because too many are running. The client can send the request again, so no data is lost."""
    response = _short_response(request, "busy", "503.html")
    response.headers["Retry-After"] = str(WAIT)
    return response


def _short_response(request: HttpRequest, code: str, template: str) -> HttpResponse:
    """Return the response for an error code: JSON for the API, otherwise a page.

    code: a key of OTHER_CODES
    template: template of the page
    """
    status, *sentences = OTHER_CODES[code]
    if request.path.startswith(API):
        return JsonResponse({"code": code, "detail": " ".join(sentences)}, status=status)
    with override(get_language_from_request(request)):  # the user may be unknown
        return render(request, template, status=status)


def api_exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the API's response to an error.

    The message is Assay's own. For invalid JSON, it is the parser's, which contains the position of the error.
    """
    if isinstance(error, Refusal):
        return Response({"code": error.code, "detail": str(error)}, status=status_of(error))
    if isinstance(error, RecursionError):
        return Response({"code": "parse_error", "detail": "The JSON is nested too deeply."}, status=400)
    if isinstance(error, AuthenticationFailed | NotAuthenticated):
        # DRF throttles requests only after authentication, so count failed authentications here.
        throttle = PerMinute()
        if not throttle.allow_request(context["request"], context["view"]):
            error = Throttled(throttle.wait())
    response = exception_handler(error, context)
    if isinstance(error, ValidationError):
        faults = [f"{field}: {' '.join(_sentences(errors))}" for field, errors in response.data.items()]
        detail = " ".join(fault.removeprefix(f"{api_settings.NON_FIELD_ERRORS_KEY}: ") for fault in faults)
        response.data = {"code": InvalidAnswer.code, "detail": detail}
    elif isinstance(error, Http404):
        nothing = NOTHING_MANAGED if context["request"].path.startswith(LONG) else NOTHING_SEEN
        response.data = {"code": NotFound.code, "detail": _no_such_format(context) or nothing}
    elif response is not None:
        detail = response.data["detail"]
        response.data = {"code": detail.code, "detail": _api_message(detail.code) or detail}
    return response


def _sentences(errors: Any) -> list[str]:
    """Flatten the error messages of a field. A list field's errors are a mapping from index to messages."""
    if isinstance(errors, dict):
        return [sentence for inside in errors.values() for sentence in _sentences(inside)]
    return list(errors)


def _no_such_format(context: dict[str, Any]) -> str:
    """Return an error message if the request has ?format= with an unknown format; otherwise "".

    Django REST framework would report a missing page instead.
    """
    format = context["request"].query_params.get(api_settings.URL_FORMAT_OVERRIDE)
    formats = {renderer.format for renderer in context["view"].renderer_classes}
    return (
        f"The format {format[:20]!r} does not exist. Remove ?format= from the address."
        if format and format not in formats
        else ""
    )


def _api_message(code: str) -> str:
    return "" if code == "parse_error" or code not in OTHER_CODES else " ".join(OTHER_CODES[code][1:])


def refusal_page(request: PageRequest, error: Refusal, way: tuple[str, str] | None = None) -> HttpResponse:
    """Return the page that shows a refusal.

    way: URL and text of the link on the page; by default, a link back to the task
    """
    # With htmx, the refusal appears above the current unit, so that a comment typed there is kept.
    template = "annotate/_refusal.html" if request.htmx else "annotate/refusal.html"
    # In a task, link back to its queue, sheet or test.
    address = request.resolver_match
    assert address  # the URL was resolved
    name = address.url_name or ""
    on_sheet = name.startswith("sheet")
    # Show the typed text, so that it isn't lost.
    typed = "\n".join(
        filter(None, (request.POST.get(field, "").strip() for field in ("reason", "comment", "words", "reply", "text")))
    )
    context = {"refusal": error, "queue_of": address.kwargs.get("task"), "on_sheet": on_sheet, "typed": typed}
    # Don't link to a page that would refuse a stopped annotator again.
    context["paused"] = isinstance(error, Paused | EnoughToday)
    context["consent"] = isinstance(error, NotAgreed)
    # If an operation of a test was refused, link to the qualification page, which shows the next step. Don't link to
    # that page if the page itself was refused.
    if name.startswith("qualification-"):
        context["qualification"] = reverse("qualification", args=[address.kwargs["task"], address.kwargs["language"]])
    if not request.htmx:
        context["way"] = way or _next_link(request, context, name)
    response = render(request, template, context, status=status_of(error))
    if request.htmx:
        response["HX-Retarget"] = "#notice"
        response["HX-Reswap"] = "innerHTML"
    return response


def _next_link(request: PageRequest, context: dict[str, Any], name: str) -> tuple[str, str]:
    """Return the URL and text of the link on a refusal's page. If both are empty, the page links to the start page.

    name: name of the requested URL
    """
    task = context["queue_of"]
    if "qualification" in context:
        return context["qualification"], _("To the test")
    if task and context["consent"]:
        return reverse("consent", args=[task]), _("Read the warning")
    if name.startswith("manage-question") and may(request.user, "manage"):
        return reverse("manage-questions"), "Back to the questions"
    if task and name.startswith("manage-") and may(request.user, "manage", task):
        return reverse("manage-task", args=[task]), _("Back to the task")
    # Users without a queue would be refused there again, so link to the start page.
    if not task or context["paused"] or not may(request.user, "annotate"):
        return "", ""
    if context["on_sheet"]:
        return reverse("sheet", args=[task]), _("Back to the sheet")
    return reverse("queue", args=[task]), _("Back to the task")


def csrf_failure(request: PageRequest, reason: str = "") -> HttpResponse:
    """Return the response to a form with a wrong CSRF token.

    The usual cause is a page older than the session, so the message asks the user to reload it. Django's default page
    mentions cookies and DEBUG instead.
    """
    sentence = _("This page is older than your session, so nothing was saved. Reload it and try again.")
    return refusal_page(request, NotAllowed(sentence), (previous_page(request), _("Reload the page")))
