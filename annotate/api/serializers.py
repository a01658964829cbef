"""Serializers for annotators in the API.

They omit votes, other people's judgments, and the queue and stage of a unit, because annotators must not see these. The
serializers for adjudicators are in adjudication_api.py.
"""

# Django REST framework has no types.
# mypy: disallow-subclassing-any=False

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view, parser_classes
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.request import Request
from rest_framework.response import Response

from annotate.controls import qualification
from annotate.controls.pair_order import Sides, sides_of, sides_of_question
from annotate.controls.suggestions import seen_by
from annotate.kinds import Kind
from annotate.kinds.kind import BESIDE_BROADER, ENGLISH
from annotate.models import Flag, Judgment, Lease, Task, Trial, TrialAnswer, Unit
from annotate.pages.access import View, with_permit, with_right
from annotate.quality.guideline_versions import current
from annotate.work.backlog import Progress
from annotate.work.flags import MESSAGE_LENGTH
from annotate.work.moves import labels_as_seen
from corpora.core.languages import LANGUAGES
from corpora.models import Item

SETS = "the two sets of replies to compare, in the order shown to you; empty for other tasks"
SEVERAL = "for concepts, the ids of all chosen concepts, separated by spaces"


# --- Fields


def _short(field: type[serializers.Field]) -> Callable[..., serializers.Field]:
    return lambda help_text=None, **options: field(help_text=help_text, **options)


string, integer, boolean = map(_short, (serializers.CharField, serializers.IntegerField, serializers.BooleanField))
method = serializers.SerializerMethodField
OPTIONAL: dict[str, Any] = {"required": False, "allow_blank": True, "default": ""}


def strings(help_text: str | None = None) -> serializers.Field:
    return serializers.ListField(child=serializers.CharField(), help_text=help_text)


def string_map(help_text: str | None = None) -> serializers.Field:
    return serializers.DictField(child=serializers.CharField(), help_text=help_text)


# --- Requests and responses of annotators


class ProgressSerializer(serializers.Serializer):
    answered_today = integer()
    skipped_today = integer()
    waiting = integer(
        "the number of units in your languages that you have not judged; other people's work is counted with a delay "
        "of up to ten minutes"
    )


class TaskSerializer(serializers.Serializer):
    name = serializers.SlugField()
    title = string()
    type = string()
    labels = strings(
        "the languages that the task asks about, or the labels of records; GET the task for all possible answers"
    )
    languages = strings("the languages of the task's records; empty if the task asks about languages")
    guidelines = string("the guidelines for records in English, as Markdown; see qualification for other languages")
    version = string(allow_blank=True, help_text="version of the guidelines: MAJOR.MINOR")
    progress = ProgressSerializer()

    @staticmethod
    def row(task: Task, progress: Progress) -> dict[str, Any]:
        guidelines = current(task)
        return {
            "name": task.name,
            "title": task.title,
            "type": task.kind_slug,
            "labels": task.kind.form.sent(task.labels, task.kind.answers),
            "languages": task.languages,
            "guidelines": guidelines.text if guidelines else "",
            "version": guidelines.version if guidelines else "",
            "progress": progress,
        }


class OfferedSerializer(serializers.Serializer):
    label = string("the value to send in an answer, such as de, not-de, und or 1")
    asked = string(allow_blank=True, help_text="only units with the same value of `asked` accept this answer")
    name = string("the English name of the label on the pages")
    names = string_map("the name of the label on pages with records of each language")
    autonym = string(allow_blank=True, help_text="if the label is a language, its name in the language itself")


class VocabularySerializer(serializers.Serializer):
    name = string()
    version = integer()
    least = integer("the minimum number of concepts in an answer")
    most = integer(allow_null=True, help_text="the maximum number of concepts in an answer; null if there is no limit")
    beside_broader = serializers.ChoiceField(
        list(BESIDE_BROADER),
        help_text="whether a concept can be chosen together with a broader one; for ask, confirm with `sure`",
    )


class TaskInFullSerializer(TaskSerializer):
    answers = OfferedSerializer(
        many=True, help_text="all possible answers, because units do not repeat them; empty for concepts"
    )
    vocabulary = VocabularySerializer(
        allow_null=True, help_text="the vocabulary with the concepts to choose; null if `answers` lists the answers"
    )

    @staticmethod
    def row(task: Task, progress: Progress) -> dict[str, Any]:
        more = {"answers": offered(task), "vocabulary": task.kind.form.vocabulary(task.kind)}
        return TaskSerializer.row(task, progress) | more


def offered(task: Task) -> list[dict[str, Any]]:
    """Return the possible answers to a task's question. If it asks about each language separately, return all.

    Each answer is a dictionary with the fields of OfferedSerializer.
    """
    kind = task.kind
    return [
        {
            "label": label,
            "asked": language,
            "name": kind.name_in(ENGLISH, label),
            "names": {code: kind.name_in(code, label) for code in task.languages},
            "autonym": LANGUAGES[label].autonym if kind.labels_are_languages and label in LANGUAGES else "",
        }
        for language in (task.labels if kind.asks_each else [""])
        for label in kind.rules.offered(Unit(task=task, asked=language))
    ]


def fields_of(item: Item, kind: Kind) -> dict[str, str]:
    """Return the fields of a record in the order that the kind defines. The result is empty for a post."""
    return {name: item.fields[name] for name in kind.fields}


def text_of(item: Item, kind: Kind) -> str:
    """Return the text that annotators see. The text of a record consists of its shown fields, each on its own line."""
    return "\n".join(fields_of(item, kind).values()) if kind.fields else item.text


def sets_of(sides: Sides | None) -> list[list[str]]:
    """Return the two sets of replies in the order that the annotator sees, or an empty list if there are no sets."""
    return list(sides.sets) if sides else []


class LeaseSerializer(serializers.Serializer):
    """A unit that was handed out to an annotator. It omits the id of the item, because ids come from the manager's
    files, and an id such as gold-17 would reveal that the answer is already known. Only adjudicators get the id.
    """

    id = integer(source="pk", help_text="the id of the lease, for the URLs of other requests")
    text = method(help_text="the text; for a record, the values of the fields, one per line")
    language = string(source="unit.item.language", allow_blank=True, help_text="the language of a record")
    fields = method("get_record", help_text="the fields of a record by name")
    asked = string(
        source="unit.asked",
        allow_blank=True,
        help_text="the language in a question such as “Is this German?”; empty if the question is “Which language is "
        "this?”. Send one of the task's answers with the same value of `asked`",
    )
    sets = method(help_text=SETS)
    written = method(
        help_text="a text by somebody else for you to review: send it as the label to accept it, your own version to "
        "correct it, or <rejected>; empty if you write the text, and for other questions"
    )
    expires_at = serializers.DateTimeField(help_text="after this time, others can receive the unit")

    suggestions = method(
        help_text="the labels that a machine suggests, or the ids of concepts, best first; empty if there are none, or "
        "if you work without suggestions"
    )

    def get_text(self, lease: Lease) -> str:
        return text_of(lease.unit.item, lease.unit.task.kind)

    def get_record(self, lease: Lease) -> dict[str, str]:
        return fields_of(lease.unit.item, lease.unit.task.kind)

    def get_sets(self, lease: Lease) -> list[list[str]]:
        return sets_of(sides_of(lease.annotator, lease.unit))

    def get_written(self, lease: Lease) -> str:
        return lease.unit.task.kind.form.written(lease.unit, lease.annotator)

    def get_suggestions(self, lease: Lease) -> list[str]:
        return seen_by(lease.annotator, lease.unit)


class NextSerializer(serializers.Serializer):
    lease = LeaseSerializer(allow_null=True)
    why = string(allow_blank=True, help_text="the reason why there is no lease")


class SkipSerializer(serializers.Serializer):
    take_next = boolean(required=False, default=False, help_text="also take the next unit in the same request")
    active_seconds = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        help_text="working time without idle time; at most the time since you received the unit",
    )


class FlagSerializer(SkipSerializer):
    kind = serializers.ChoiceField(list(Flag.KINDS), help_text="the kind of problem that you report")
    words = string(
        max_length=MESSAGE_LENGTH, **OPTIONAL, help_text="your message to the manager; required for a question"
    )


class SureSerializer(serializers.Serializer):
    sure = boolean(
        required=False,
        default=False,
        help_text="for concepts: confirms the choice of a concept together with a broader one, if the task asks for "
        "confirmation",
    )


class AnswerSerializer(SureSerializer, SkipSerializer):
    label = string(f"one of the task's answers for the unit, such as de, not-de or und; {SEVERAL}")
    reason = string(
        max_length=200,
        **OPTIONAL,
        help_text="for the answer und: several, mixed, gibberish or, if the question asks for the language, unlisted",
    )
    comment = string(max_length=2000, **OPTIONAL, help_text="required for the reason unlisted")


class JudgmentSerializer(serializers.ModelSerializer):
    label = method(help_text="the label in canonical form; empty for a skip or a flag")

    class Meta:
        model = Judgment
        fields = ["id", "kind", "label", "reason", "comment", "answered_at", "active_seconds"]

    def get_label(self, judgment: Judgment) -> str:
        [label] = labels_as_seen(judgment.annotator, [(judgment.unit, judgment.label)])
        return label


class ClosedSerializer(JudgmentSerializer):
    """The stored answer or skip, and the next unit if it was requested."""

    next = NextSerializer(
        allow_null=True, default=None, help_text="the next unit if you sent `take_next`, otherwise null"
    )

    class Meta(JudgmentSerializer.Meta):
        fields = [*JudgmentSerializer.Meta.fields, "next"]


class FlaggedSerializer(serializers.ModelSerializer):
    """The stored flag, and the next unit if the flagged unit went to another annotator."""

    next = NextSerializer(
        allow_null=True,
        default=None,
        help_text="the next unit if you flagged this unit as disturbing and sent `take_next`, otherwise null",
    )

    class Meta:
        model = Flag
        fields = ["kind", "words", "at", "next"]


class StandingSerializer(serializers.Serializer):
    language = string()
    state = serializers.ChoiceField(list(qualification.STEPS), source="step", help_text="your next step")
    version = string(source="guidelines.version", default="", help_text="version of the guidelines")
    guidelines = string(source="guidelines.text", default="", help_text="Markdown")
    tries_left = integer()


class QuestionSerializer(serializers.Serializer):
    id = integer(source="pk", help_text="the id of the question, for the URL of the answer")
    number = integer(source="position")
    of = method()
    fields = method("get_record", help_text="the fields of the record by name")
    sets = method(help_text=SETS)

    def get_of(self, question: TrialAnswer) -> int:
        return question.trial.answers.count()

    def get_record(self, question: TrialAnswer) -> dict[str, str]:
        return fields_of(question.gold_answer.item, question.trial.task.kind)

    def get_sets(self, question: TrialAnswer) -> list[list[str]]:
        return sets_of(sides_of_question(question))


class MissedSerializer(serializers.Serializer):
    fields = string_map()
    sets = serializers.ListField(child=strings(), help_text=SETS)
    said = string()
    label = string("the correct answer")
    explanation = string(allow_blank=True)


class ResultSerializer(serializers.Serializer):
    """The result of practice or of a test. It is available after the last question."""

    kind = string("practice or test")
    passed = boolean()
    right = integer()
    asked = integer()
    needed = integer("the number of correct answers required to pass")
    missed = MissedSerializer(many=True)

    @staticmethod
    def row(trial: Trial | None) -> dict[str, Any] | None:
        if trial is None or trial.finished_at is None:
            return None
        return {
            "kind": trial.kind,
            "passed": trial.passed,
            "right": trial.right,
            "asked": trial.answers.count(),
            "needed": qualification.needed(trial) if trial.kind == Trial.TEST else 0,
            "missed": [
                {
                    "fields": fields_of(question.gold_answer.item, trial.task.kind),
                    "sets": sets_of(sides_of_question(question)),
                    "said": qualification.seen_label(question, question.label),
                    "label": qualification.seen_label(question, question.gold_answer.label),
                    "explanation": question.gold_answer.explanation,
                }
                for question in qualification.missed(trial)
            ],
        }


class TrialSerializer(serializers.Serializer):
    question = QuestionSerializer(allow_null=True, help_text="the next question; null if there are no more questions")
    result = ResultSerializer(
        allow_null=True, help_text="null until the last question is answered, or if a manager has exempted you"
    )


class TrialAnswerSerializer(SureSerializer):
    label = string(f"one of the task's answers; {SEVERAL}")


class AnsweredSerializer(serializers.Serializer):
    """In practice, `right`, `label` and `explanation` describe the correct answer. In a test, they are null."""

    accepted = boolean()
    right = boolean(allow_null=True)
    label = string(allow_null=True, help_text="the correct answer")
    explanation = string(allow_null=True)
    result = ResultSerializer(allow_null=True, help_text="the result after the last question, otherwise null")

    @staticmethod
    def row(question: TrialAnswer) -> dict[str, Any]:
        gold, is_practice = question.gold_answer, question.trial.kind == Trial.PRACTICE
        return {
            "accepted": True,
            "right": qualification.is_right(question) if is_practice else None,
            "label": qualification.seen_label(question, gold.label) if is_practice else None,
            "explanation": gold.explanation if is_practice else None,
            "result": ResultSerializer.row(question.trial),
        }


class RefusalSerializer(serializers.Serializer):
    code = string()
    detail = string()


REFUSED = {
    status: OpenApiResponse(RefusalSerializer, why)
    for status, why in {
        400: "the task does not accept this answer, or a field of the request is missing or invalid",
        401: "the token is missing or revoked, or the account is locked",
        403: "you are not an annotator, or do not have the right for this operation",
        404: "the task or unit does not exist, or the lease is not yours",
        406: "the header Accept does not allow JSON",
        409: "the request comes too late, or the unit already has a different answer",
        415: "the content type of the request is not JSON",
        429: "you have exceeded the maximum number of requests per minute",
    }.items()
}


# --- Resources


def sent(serializer: type[serializers.Serializer], data: Any) -> dict[str, Any]:
    """Validate the data of a request with a serializer and return the validated data."""
    received = serializer(data=data)
    received.is_valid(raise_exception=True)
    validated: dict[str, Any] = received.validated_data
    return validated


def resource(
    method: str,
    right: str,
    summary: str,
    response: Any = None,
    body: Any = None,
    *,
    many: bool = False,
    status: int = 200,
    parsers: Sequence[type[BaseParser]] = (JSONParser,),
    **schema: Any,
) -> Callable[[Callable[..., Any]], View]:
    """Return a decorator that turns a function into a view of the API.

    The docstring of the function becomes the view's description in the schema.

    method: the HTTP method that the view allows
    right: a key of access.RIGHTS, or "permit" for a function that takes the annotator's permit
    summary: summary of the view in the schema
    response: serializer of the response, or a mapping from status and media type to the type of a file; without one,
        the response has no body
    body: serializer of the request body
    many: whether the response is a list
    status: HTTP status of the response, if it has a body
    parsers: parsers for the request body
    schema: other arguments of drf_spectacular's extend_schema
    """

    def decorate(view: Callable[..., Any]) -> View:
        guarded = (with_permit if right == "permit" else with_right(right))(view)

        @wraps(view)
        def answered(request: Request, **arguments: Any) -> Any:
            result = guarded(request, **arguments)
            if isinstance(result, HttpResponseBase):
                return result
            return Response(response(result, many=many).data, status) if response else Response(status=204)

        responses = {status: response(many=True) if many else response} if response else {204: None}
        if isinstance(response, Mapping):
            responses = dict(response)
        description = " ".join((view.__doc__ or "").split())
        described = extend_schema(
            request=body, responses=responses | REFUSED, summary=summary, description=description, **schema
        )
        api: View = described(api_view([method])(parser_classes(parsers)(answered)))
        return api

    return decorate
