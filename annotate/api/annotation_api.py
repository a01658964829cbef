"""The REST API, which lets programs do on an annotator's behalf what the annotator can do on the pages.

An error response is a JSON object with the keys `code` and `detail`. annotate/core/refusals.py defines the codes. If an
error occurs before the view runs, its code is Django REST framework's. Programs can safely retry an answer: the
response is then the judgment that was stored first.
"""

# Django REST framework has no types.
# mypy: disallow-subclassing-any=False

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpResponseBase
from django.urls import include, path
from django.views import View
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import serializers
from rest_framework.request import Request

from annotate.api.serializers import (
    OPTIONAL,
    AnsweredSerializer,
    AnswerSerializer,
    ClosedSerializer,
    FlaggedSerializer,
    FlagSerializer,
    NextSerializer,
    ProgressSerializer,
    ResultSerializer,
    SkipSerializer,
    StandingSerializer,
    TaskInFullSerializer,
    TaskSerializer,
    TrialAnswerSerializer,
    TrialSerializer,
    resource,
    string,
    strings,
    validate_data,
)
from annotate.controls import qualification
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import personal_progress
from annotate.kinds import Answer, Kind
from annotate.kinds.concept_kind import version_of
from annotate.kinds.kind import ENGLISH
from annotate.models import Annotator, Flag, Judgment, Lease, Task, Trial
from annotate.pages import concept_picker
from annotate.pages.concept_picker import Listing
from annotate.work import answer_changes, flags, judgments, queue
from annotate.work.assignment import lease_next
from annotate.work.backlog import Progress, progress_in, progress_of
from annotate.work.permit import Permit, acting, open_permits, permit_of
from corpora.vocabulary.thesaurus import VocabularyError

Fields = dict[str, Any]  # validated data of a request

# --- Tasks and their concepts


class TypedSerializer(serializers.Serializer):
    typed = string("the beginnings of one or more words, in any order", **OPTIONAL)
    language = string(
        "the language of the document; the search includes labels in English and in the languages that you read",
        required=False,
        default=ENGLISH,
        max_length=16,
    )


class ConceptSerializer(serializers.Serializer):
    id = string("the id to send in an answer, possibly with other concepts' ids", source="key")
    label = string("the concept's name on the pages", source="name")
    path = strings("the concept's scheme and the labels of broader concepts, broadest first")


@resource("GET", "permit", "Search the concepts of a task", ConceptSerializer, many=True, parameters=[TypedSerializer])
def concepts(request: Request, permit: Permit) -> list[concept_picker.Row]:
    """Returns up to ten concepts, best match first, or an empty list if `typed` is empty."""
    query = validate_data(TypedSerializer, request.query_params)
    if permit.task.vocabulary_id is None:
        raise NotFound("The answers of this task are not concepts. GET the task for a list of its answers.")
    try:
        return Listing(version_of(permit.task), query["language"]).search(query["typed"], list(permit.levels))
    except VocabularyError as error:
        raise InvalidAnswer(str(error)) from error


@resource("GET", "annotate", "List your open tasks with your progress", TaskSerializer, many=True)
def tasks(request: Request, annotator: Annotator) -> list[dict[str, Any]]:
    permits = open_permits(annotator)
    progress = progress_in(permits)
    return [TaskSerializer.row(permit.task, done) for permit, done in zip(permits, progress, strict=True)]


@resource("GET", "permit", "Get a task with all its possible answers", TaskInFullSerializer)
def task_in_full(request: Request, permit: Permit) -> dict[str, Any]:
    """Request this once, before the first unit. Units do not repeat the possible answers."""
    return TaskInFullSerializer.row(permit.task, progress_of(permit))


@resource("GET", "permit", "Get your progress in a task", ProgressSerializer)
def own_progress(request: Request, permit: Permit) -> Progress:
    return progress_of(permit)


# --- Units


@resource("POST", "annotate", "Take the next unit", NextSerializer)
def take(request: Request, annotator: Annotator, task: Task) -> dict[str, Any]:
    """Returns the unit that you already have, if any. If no unit is available, `lease` is null and `why` says why."""
    lease = queue.take(annotator, task)
    if lease is None and task.kind.sensitive and (stopped := permit_of(annotator, task).stopped):
        raise stopped
    return _next_unit(annotator, task, lease)


def _next_unit(annotator: Annotator, task: Task, lease: Lease | None) -> dict[str, Any]:
    return {"lease": lease, "why": "" if lease else personal_progress.why_empty(permit_of(annotator, task))}


@resource("POST", "annotate", "Answer a unit", ClosedSerializer, AnswerSerializer)
def judge(request: Request, annotator: Annotator, lease: int) -> Judgment:
    def answer(kind: Kind, fields: Fields) -> Answer:
        label, reason, comment, sure = (fields[name] for name in ("label", "reason", "comment", "sure"))
        return judgments.read_answer(kind, [label], reason, comment, is_sure=sure)

    return _close(annotator, lease, validate_data(AnswerSerializer, request.data), answer)


@resource("POST", "annotate", "Skip a unit", ClosedSerializer, SkipSerializer)
def skip(request: Request, annotator: Annotator, lease: int) -> Judgment:
    return _close(annotator, lease, validate_data(SkipSerializer, request.data), lambda kind, fields: None)


def _close(
    annotator: Annotator, lease: int, fields: Fields, answer: Callable[[Kind, Fields], Answer | None]
) -> Judgment:
    """Store an answer or a skip. If the next unit is requested, lease it in the same transaction if possible.

    fields: the request's validated data
    answer: takes the task's kind and `fields`, and returns the answer (None for a skip)
    """
    with acting(annotator.user, judgments.task_of(annotator, lease).name) as permit:
        closed = judgments.close(permit, lease, answer(permit.task.kind, fields), fields["active_seconds"])
        next_lease = None
        if fields["take_next"]:
            next_lease = lease_next(closed.permit, closed.held)
    judgment: Any = closed.judgment
    if fields["take_next"]:
        task = permit.task
        # If lease_next found only units that other transactions have locked, `take` waits for them.
        judgment.next = _next_unit(annotator, task, next_lease or queue.take(annotator, task))
    return closed.judgment


@resource("POST", "annotate", "Flag a unit for the manager", FlaggedSerializer, FlagSerializer)
def flag(request: Request, annotator: Annotator, lease: int) -> Flag:
    """A unit flagged as disturbing goes to another annotator and does not count as skipped. With any other flag, you
    keep the unit.
    """
    fields, next_lease = validate_data(FlagSerializer, request.data), None
    with acting(annotator.user, judgments.task_of(annotator, lease).name) as permit:
        result = flags.flag(permit, lease, fields["kind"], fields["words"], fields["active_seconds"])
        closed = result.closed if fields["take_next"] else None
        if closed:
            next_lease = lease_next(closed.permit, closed.held)
    flag: Any = result.flag
    if closed:
        flag.next = _next_unit(annotator, permit.task, next_lease or queue.take(annotator, permit.task))
    return result.flag


@resource("POST", "annotate", "Return a unit without an answer")
def release(request: Request, annotator: Annotator, lease: int) -> None:
    queue.release(annotator, lease)


@resource("POST", "annotate", "Undo your last answer or skip", NextSerializer)
def undo(request: Request, annotator: Annotator, task: Task) -> dict[str, Any]:
    """Returns the unit, for you to answer again."""
    return {"lease": answer_changes.undo(annotator, task), "why": ""}


# --- Practice and tests


@resource("GET", "permit", "Get your qualification for each of your languages in a task", StandingSerializer, many=True)
def standing(request: Request, permit: Permit) -> list[qualification.Standing]:
    return qualification.states(permit, texts=True)


def _begin(annotator: Annotator, task: Task, language: str, kind: str) -> dict[str, Any]:
    with acting(annotator.user, task.name) as permit:
        state = qualification.state(permit, language)
        if kind == Trial.TEST and state.step == qualification.PASSED:
            trial = state.last if state.last and state.last.passed else None
        else:
            trial = qualification.begin(permit, language, kind)
    if trial:
        trial.task = task
    question = qualification.next_question(trial) if trial else None
    if trial and question is None:
        trial.refresh_from_db()  # the annotator may have just finished it in another tab
    return {"question": question, "result": None if question else ResultSerializer.row(trial)}


@resource("POST", "annotate", "Begin or continue practice", TrialSerializer)
def practise(request: Request, annotator: Annotator, task: Task, language: str) -> dict[str, Any]:
    """You must complete practice before your first test."""
    return _begin(annotator, task, language, Trial.PRACTICE)


@resource("POST", "annotate", "Begin or continue the test", TrialSerializer)
def take_test(request: Request, annotator: Annotator, task: Task, language: str) -> dict[str, Any]:
    """Begins a new test if you have failed and have tries left. Returns the result if you have already passed."""
    return _begin(annotator, task, language, Trial.TEST)


@resource("POST", "annotate", "Answer a question in practice or in a test", AnsweredSerializer, TrialAnswerSerializer)
def answer_question(request: Request, annotator: Annotator, question: int) -> dict[str, Any]:
    """In practice, the response contains the correct answer. In a test, the result after the last question contains the
    correct answers to the questions you got wrong.
    """
    fields = validate_data(TrialAnswerSerializer, request.data)
    with acting(annotator.user, qualification.task_of(annotator, question)) as permit:
        label = judgments.read_answer(permit.task.kind, [fields["label"]]).label
        answered = qualification.answer(permit, question, label, is_sure=fields["sure"])
    return AnsweredSerializer.row(answered)


# These views render a template and YAML, which can't represent DRF's metadata. Use Django's response to OPTIONS.
class Docs(SpectacularSwaggerSplitView):
    options = View.options

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().dispatch(*args, **kwargs)
        # Swagger UI sets inline styles, so allow them. Its scripts are served by this site, so they need no permission.
        policy = f"{settings.CONTENT_SECURITY_POLICY}; style-src 'self' 'unsafe-inline'"
        response.headers["Content-Security-Policy"] = policy
        return response


class Schema(SpectacularAPIView):
    options = View.options


docs = Docs.as_view(url_name="api-schema")

urlpatterns = [
    path("", docs, name="api-docs"),
    path("schema/", Schema.as_view(), name="api-schema"),
    path("manage/", include("annotate.api.manager_api")),
    path("manage/webhooks/", include("annotate.api.webhook_api")),
    path("tasks/", tasks, name="api-tasks"),
    path("tasks/<slug:task>/", task_in_full, name="api-task"),
    path("tasks/<slug:task>/adjudication/", include("annotate.api.adjudication_api")),
    path("tasks/<slug:task>/concepts/", concepts, name="api-concepts"),
    path("tasks/<slug:task>/progress/", own_progress, name="api-progress"),
    path("tasks/<slug:task>/next/", take, name="api-next"),
    path("tasks/<slug:task>/undo/", undo, name="api-undo"),
    path("tasks/<slug:task>/qualification/", standing, name="api-qualification"),
    path("tasks/<slug:task>/qualification/<str:language>/practice/", practise, name="api-practise"),
    path("tasks/<slug:task>/qualification/<str:language>/test/", take_test, name="api-test"),
    path("qualification/answers/<int:question>/", answer_question, name="api-answer"),
    path("leases/<int:lease>/judge/", judge, name="api-judge"),
    path("leases/<int:lease>/skip/", skip, name="api-skip"),
    path("leases/<int:lease>/flag/", flag, name="api-flag"),
    path("leases/<int:lease>/release/", release, name="api-release"),
]
