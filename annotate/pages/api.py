"""The REST API: the same operations as the pages, for programs that annotate in somebody's name.

Whatever is refused is refused with {"code", "detail"}; the codes are those of annotate/core/refusals.py, and Django
REST framework's where a request does not get as far. Posting an answer twice is safe: the second time returns the
first.
"""

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_update
from django.urls import include, path
from django.views import View
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.response import Response

from annotate.controls import qualification
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import personal_progress
from annotate.kinds.concept_kind import version_of
from annotate.kinds.kind import ENGLISH
from annotate.models import Task, Trial
from annotate.pages.access import check_right, with_permit, with_right
from annotate.pages.concept_picker import Listing
from annotate.pages.serializers import (
    REFUSED,
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
)
from annotate.work import flags, judgments, queue
from annotate.work.permit import acting, permit_of, permits
from corpora.vocabulary.thesaurus import VocabularyError

# --- Concepts by the API: what a program finds by what somebody types, as the pages find it.


class TypedSerializer(serializers.Serializer):
    typed = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="beginnings of words, in any order"
    )
    language = serializers.CharField(
        required=False,
        default=ENGLISH,
        max_length=16,
        help_text="of the document; labels in English and in the languages that you read are found too",
    )


class ConceptSerializer(serializers.Serializer):
    id = serializers.CharField(source="key", help_text="send it as the answer, with those of other concepts")
    label = serializers.CharField(source="name", help_text="its name on the pages")
    path = serializers.ListField(
        child=serializers.CharField(), help_text="its scheme and the labels of broader concepts, broadest first"
    )


@extend_schema(
    parameters=[TypedSerializer],
    responses={200: ConceptSerializer(many=True), **REFUSED},
    summary="Search the concepts of a task",
    description="At most ten, best first; none if nothing was typed.",
)
@api_view(["GET"])
@with_permit
def concepts(request, permit):
    wanted = TypedSerializer(data=request.query_params)
    wanted.is_valid(raise_exception=True)
    task, language = permit.task, wanted.validated_data["language"]
    if task.vocabulary_id is None:
        raise NotFound("The answers of this task are no concepts; its address lists them.")
    try:
        rows = Listing(version_of(task), language).found(wanted.validated_data["typed"], list(permit.levels))
    except VocabularyError as error:
        raise InvalidAnswer(str(error)) from error
    return Response(ConceptSerializer(rows, many=True).data)


@extend_schema(responses={200: TaskSerializer(many=True), **REFUSED}, summary="List open tasks with your progress")
@api_view(["GET"])
def tasks(request):
    annotator = check_right(request.user, "annotate")
    found = permits(annotator, Task.objects.for_work(annotator).filter(is_open=True))
    rows = [
        TaskSerializer.row(permit.task, own)
        for permit, own in zip(found, personal_progress.progress_in(found), strict=True)
    ]
    return Response(TaskSerializer(rows, many=True).data)


@extend_schema(
    responses={200: TaskInFullSerializer, **REFUSED},
    summary="Get a task with all its possible answers",
    description="Request it once, before the first unit; units do not repeat the answers.",
)
@api_view(["GET"])
@with_permit
def task_in_full(request, permit):
    row = TaskInFullSerializer.row(permit.task, personal_progress.own_progress(permit))
    return Response(TaskInFullSerializer(row).data)


@extend_schema(responses={200: ProgressSerializer, **REFUSED}, summary="Get your progress in a task")
@api_view(["GET"])
@with_permit
def own_progress(request, permit):
    return Response(ProgressSerializer(personal_progress.own_progress(permit)).data)


@extend_schema(
    request=None,
    responses={200: NextSerializer, **REFUSED},
    summary="Take the next unit",
    description="Returns the unit that you already hold, if any. `lease` is null if there is none, and `why` gives "
    "the reason.",
)
@api_view(["POST"])
@with_right("annotate")
def take(request, annotator, task):
    lease = queue.take(annotator, task)
    if lease is None and task.kind.sensitive and (stopped := permit_of(annotator, task).stopped):
        raise stopped
    return Response(NextSerializer(_taken(annotator, task, lease)).data)


def _taken(annotator, task, lease):
    return {"lease": lease, "why": "" if lease else personal_progress.why_empty(permit_of(annotator, task))}


@extend_schema(request=AnswerSerializer, responses={200: ClosedSerializer, **REFUSED}, summary="Answer a unit")
@api_view(["POST"])
def judge(request, lease):
    def answer(kind, said):
        label, reason, comment, sure = (said[name] for name in ("label", "reason", "comment", "sure"))
        return judgments.read_answer(kind, [label], reason, comment, is_sure=sure)

    return _close(request, lease, AnswerSerializer, answer)


@extend_schema(request=SkipSerializer, responses={200: ClosedSerializer, **REFUSED}, summary="Skip a unit")
@api_view(["POST"])
def skip(request, lease):
    return _close(request, lease, SkipSerializer, lambda kind, said: None)


def _close(request, lease, serializer, answer):
    """One transaction for the answer, or the skip, and what comes next if that was asked for."""
    annotator = check_right(request.user, "annotate")
    sent = serializer(data=request.data)
    sent.is_valid(raise_exception=True)
    said = sent.validated_data
    with acting(annotator.user, judgments.task_of(annotator, lease).name) as permit:
        closed = judgments.close(permit, lease, answer(permit.task.kind, said), said["active_seconds"])
        following = None
        if said["take_next"]:
            following = queue.hand_out(closed.permit, closed.held)
    if said["take_next"]:
        task = permit.task
        # Units that others had locked could not be handed out at once; here they are waited for.
        closed.judgment.next = _taken(annotator, task, following or queue.take(annotator, task))
    return Response(ClosedSerializer(closed.judgment).data)


@extend_schema(
    request=FlagSerializer,
    responses={200: FlaggedSerializer, **REFUSED},
    summary="Flag a unit for the manager",
    description="A disturbing unit goes to another person and does not count as a skip; any other stays with you.",
)
@api_view(["POST"])
def flag(request, lease):
    annotator = check_right(request.user, "annotate")
    sent = FlagSerializer(data=request.data)
    sent.is_valid(raise_exception=True)
    said, following = sent.validated_data, None
    with acting(annotator.user, judgments.task_of(annotator, lease).name) as permit:
        done = flags.flag(permit, lease, said["kind"], said["words"], said["active_seconds"])
        takes_next = done.closed is not None and said["take_next"]
        if takes_next:
            following = queue.hand_out(done.closed.permit, done.closed.held)
    if takes_next:
        done.flag.next = _taken(annotator, permit.task, following or queue.take(annotator, permit.task))
    return Response(FlaggedSerializer(done.flag).data)


@extend_schema(request=None, responses={204: None, **REFUSED}, summary="Give a unit back without an answer")
@api_view(["POST"])
def release(request, lease):
    queue.release(check_right(request.user, "annotate"), lease)
    return Response(status=204)


@extend_schema(
    request=None,
    responses={200: NextSerializer, **REFUSED},
    summary="Undo your last answer or skip",
    description="Returns its unit, which is open again.",
)
@api_view(["POST"])
@with_right("annotate")
def undo(request, annotator, task):
    return Response(NextSerializer({"lease": judgments.undo(annotator, task), "why": ""}).data)


@extend_schema(
    responses={200: StandingSerializer(many=True), **REFUSED},
    summary="Get your qualification for each language of a task that you read",
)
@api_view(["GET"])
@with_permit
def standing(request, permit):
    return Response(StandingSerializer(qualification.states(permit, texts=True), many=True).data)


def _begin(annotator, task, language, kind):
    with acting(annotator.user, task.name) as permit:
        found = qualification.state(permit, language)
        if kind == Trial.TEST and found.step == qualification.PASSED:
            trial = found.last if found.last and found.last.passed else None
        else:
            trial = qualification.begin(permit, language, kind)
    if trial:
        trial.task = task
    question = qualification.next_question(trial) if trial else None
    if trial and question is None:
        trial.refresh_from_db()  # another tab may have finished it just now
    result = None if question else ResultSerializer.row(trial)
    return Response(TrialSerializer({"question": question, "result": result}).data)


@extend_schema(
    request=None,
    responses={200: TrialSerializer, **REFUSED},
    summary="Begin or continue practice",
    description="Practice comes before the first test and must be completed.",
)
@api_view(["POST"])
@with_right("annotate")
def practise(request, annotator, task, language):
    return _begin(annotator, task, language, Trial.PRACTICE)


@extend_schema(
    request=None,
    responses={200: TrialSerializer, **REFUSED},
    summary="Begin or continue the test",
    description="Begins another test if you failed and have tries left; once you have passed, reports that.",
)
@api_view(["POST"])
@with_right("annotate")
def take_test(request, annotator, task, language):
    return _begin(annotator, task, language, Trial.TEST)


@extend_schema(
    request=TrialAnswerSerializer,
    responses={200: AnsweredSerializer, **REFUSED},
    summary="Answer a question of practice or test",
    description="Practice returns the right answer at once, a test at its end with the result.",
)
@api_view(["POST"])
def answer_question(request, question):
    annotator = check_right(request.user, "annotate")
    said = TrialAnswerSerializer(data=request.data)
    said.is_valid(raise_exception=True)
    with acting(annotator.user, qualification.task_of(annotator, question)) as permit:
        label = judgments.read_answer(permit.task.kind, [said.validated_data["label"]]).label
        answered = qualification.answer(permit, question, label, is_sure=said.validated_data["sure"])
    return Response(AnsweredSerializer(AnsweredSerializer.row(answered)).data)


# Both render what OPTIONS has not: by a template, and as YAML.
class Docs(SpectacularSwaggerSplitView):
    options = View.options


class Schema(SpectacularAPIView):
    options = View.options


# Swagger's own page sets styles on its elements; its scripts come from this installation.
docs = csp_update({"style-src": [SELF, UNSAFE_INLINE]})(Docs.as_view(url_name="api-schema"))

urlpatterns = [
    path("", docs, name="api-docs"),
    path("schema/", Schema.as_view(), name="api-schema"),
    path("tasks/", tasks, name="api-tasks"),
    path("tasks/<slug:task>/", task_in_full, name="api-task"),
    path("tasks/<slug:task>/adjudication/", include("annotate.pages.api_adjudication")),
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
