"""Everything an operation may refuse, each with its HTTP status and a sentence for the person it is refused to.

Operations raise these; the middleware and the API's exception handler turn them into answers, once each. What no view
answers, an address that leads nowhere or an error, gets its page here, and under /api/ its JSON.
"""

from django.http import JsonResponse
from django.views import defaults
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

API = "/api/"


class Refusal(Exception):
    """An operation was refused and nothing was changed. str() is the sentence to show."""

    status = 409
    code = "refused"


class NotFound(Refusal):
    status = 404
    code = "not_found"


class NotAllowed(Refusal):
    status = 403
    code = "not_allowed"


class Paused(NotAllowed):
    code = "paused"


class NotQualified(NotAllowed):
    code = "not_qualified"


class InvalidAnswer(Refusal):
    status = 400
    code = "invalid_answer"


class LeaseExpired(Refusal):
    code = "lease_expired"


class AlreadyAnswered(Refusal):
    code = "already_answered"


class WrongStage(Refusal):
    code = "wrong_stage"


class Outdated(Refusal):
    code = "outdated"


class NothingToUndo(Refusal):
    code = "nothing_to_undo"


class TooLateToUndo(Refusal):
    code = "too_late_to_undo"


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
        return Response({"code": error.code, "detail": str(error)}, status=error.status)
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
