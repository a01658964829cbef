"""The REST API: the same operations as the pages, for programs that annotate in somebody's name.

Whatever is refused is refused with {"code", "detail"}; the codes are those of annotate/errors.py, and Django REST
framework's where a request does not get as far. Posting an answer twice is
safe: the second time returns the first.
"""

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_update
from django.urls import path
from drf_spectacular.utils import OpenApiResponse, extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.decorators import api_view
from rest_framework.response import Response

from annotate import judging, progress, queue
from annotate.access import check_right, with_task
from annotate.models import Task
from annotate.serializers import (
    AnswerSerializer,
    JudgmentSerializer,
    NextSerializer,
    ProgressSerializer,
    RefusalSerializer,
    SkipSerializer,
    TaskSerializer,
)

REFUSED = {
    400: OpenApiResponse(RefusalSerializer, "the answer is not one that the task takes"),
    401: OpenApiResponse(RefusalSerializer, "no token, or one that was revoked or whose owner is locked out"),
    403: OpenApiResponse(RefusalSerializer, "not an annotator"),
    404: OpenApiResponse(RefusalSerializer, "no such task, or not a lease of yours"),
    409: OpenApiResponse(RefusalSerializer, "too late, or already answered otherwise"),
}


@extend_schema(responses=TaskSerializer(many=True), summary="Tasks that are open, with your progress")
@api_view(["GET"])
def tasks(request):
    annotator = check_right(request.user, "annotate")
    found = [(task, progress.own_progress(annotator, task)) for task in Task.objects.filter(is_open=True)]
    return Response(TaskSerializer([TaskSerializer.row(task, own) for task, own in found], many=True).data)


@extend_schema(responses={200: ProgressSerializer, **REFUSED}, summary="Your progress in a task")
@api_view(["GET"])
@with_task("annotate")
def own_progress(request, annotator, task):
    return Response(ProgressSerializer(progress.own_progress(annotator, task)).data)


@extend_schema(
    request=None,
    responses={200: NextSerializer, **REFUSED},
    summary="Take the next unit",
    description="Gives the unit you hold already, if you do. `lease` is null when there is none, and `why` says why.",
)
@api_view(["POST"])
@with_task("annotate")
def take(request, annotator, task):
    lease = queue.take(annotator, task)
    why = "" if lease else progress.why_empty(annotator, task)
    return Response(NextSerializer({"lease": lease, "why": why}).data)


@extend_schema(request=AnswerSerializer, responses={200: JudgmentSerializer, **REFUSED}, summary="Answer a unit")
@api_view(["POST"])
def judge(request, lease):
    annotator = check_right(request.user, "annotate")
    said = AnswerSerializer(data=request.data)
    said.is_valid(raise_exception=True)
    active = said.validated_data.pop("active_seconds")
    answer = judging.read_answer(**said.validated_data)
    return Response(JudgmentSerializer(judging.judge(annotator, lease, answer, active)).data)


@extend_schema(request=SkipSerializer, responses={200: JudgmentSerializer, **REFUSED}, summary="Skip a unit")
@api_view(["POST"])
def skip(request, lease):
    annotator = check_right(request.user, "annotate")
    said = SkipSerializer(data=request.data)
    said.is_valid(raise_exception=True)
    return Response(JudgmentSerializer(judging.skip(annotator, lease, said.validated_data["active_seconds"])).data)


@extend_schema(request=None, responses={204: None, **REFUSED}, summary="Give a unit back unjudged")
@api_view(["POST"])
def release(request, lease):
    queue.release(check_right(request.user, "annotate"), lease)
    return Response(status=204)


@extend_schema(
    request=None,
    responses={200: NextSerializer, **REFUSED},
    summary="Take your last answer or skip back",
    description="Its unit is open again and is returned.",
)
@api_view(["POST"])
@with_task("annotate")
def undo(request, annotator, task):
    return Response(NextSerializer({"lease": judging.undo(annotator, task), "why": ""}).data)


# Swagger's own page sets styles on its elements; its scripts come from this installation.
docs = csp_update({"style-src": [SELF, UNSAFE_INLINE]})(SpectacularSwaggerSplitView.as_view(url_name="api-schema"))

urlpatterns = [
    path("", docs, name="api-docs"),
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("tasks/", tasks, name="api-tasks"),
    path("tasks/<slug:task>/progress/", own_progress, name="api-progress"),
    path("tasks/<slug:task>/next/", take, name="api-next"),
    path("tasks/<slug:task>/undo/", undo, name="api-undo"),
    path("leases/<int:lease>/judge/", judge, name="api-judge"),
    path("leases/<int:lease>/skip/", skip, name="api-skip"),
    path("leases/<int:lease>/release/", release, name="api-release"),
]
