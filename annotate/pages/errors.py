"""Refusals, addresses that lead nowhere and errors as HTTP: a page, or under /api/ JSON.

Operations raise what is in annotate/core/refusals.py; the middleware and the API's exception handler answer with it.
"""

from django.http import JsonResponse
from django.views import defaults
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound, Refusal

API = "/api/"
# Refusal -> its HTTP status; any other is a conflict with what has happened meanwhile.
STATUSES = {InvalidAnswer: 400, NotAllowed: 403, NotFound: 404}
CONFLICT = 409


def status_of(refusal: Refusal) -> int:
    return next((status for kind, status in STATUSES.items() if isinstance(refusal, kind)), CONFLICT)


def page_not_found(request, exception):
    """An address that leads nowhere: a page, or for a program the refusal that it expects."""
    if not request.path.startswith(API):
        return defaults.page_not_found(request, exception)
    return JsonResponse({"code": NotFound.code, "detail": "There is nothing at this address."}, status=404)


def server_error(request):
    if not request.path.startswith(API):
        return defaults.server_error(request)
    detail = "Something went wrong here. What was saved before is safe; send this again, or tell the manager."
    return JsonResponse({"code": "server_error", "detail": detail}, status=500)


def api_exception_handler(error, context):
    if isinstance(error, Refusal):
        return Response({"code": error.code, "detail": str(error)}, status=status_of(error))
    if isinstance(error, RecursionError):
        return Response({"code": "parse_error", "detail": "The JSON is nested too deeply."}, status=400)
    response = exception_handler(error, context)
    if isinstance(error, ValidationError):
        faults = (f"{field}: {' '.join(sentences)}" for field, sentences in response.data.items())
        response.data = {"code": InvalidAnswer.code, "detail": " ".join(faults)}
    elif response is not None:
        detail = response.data["detail"]
        response.data = {"code": detail.code, "detail": detail}
    return response
