"""The API's serializers for annotators, and the decorator for its views.

The serializers leave out votes, other people's judgments, and a unit's queue and stage, because annotators must not see
them. Serializers for adjudicators are in adjudication_api.py.
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
        "the number of units in your languages that you have not judged; work by other annotators is counted with a "
        "delay of up to ten minutes"
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
    name = string("the label's English name, as on the pages")
    names = string_map("the label's name on pages with records in each language, by language")
    autonym = string(allow_blank=True, help_text="the name of a language in the language itself, if the label is one")


class VocabularySerializer(serializers.Serializer):
    name = string()
    version = integer()
    least = integer("the minimum number of concepts in an answer")
    most = integer(allow_null=True, help_text="the maximum number of concepts in an answer; null if there is no limit")
    beside_broader = serializers.ChoiceField(
        list(BESIDE_BROADER),
        help_text="whether a concept can be chosen together with a broader one; if ask, confirm with `sure`",
    )


class TaskInFullSerializer(TaskSerializer):
    answers = OfferedSerializer(
        many=True, help_text="all possible answers, which units do not repeat; empty for concepts"
    )
    vocabulary = VocabularySerializer(
        allow_null=True, help_text="the vocabulary of concepts to choose from; null if `answers` lists the answers"
    )

    @staticmethod
    def row(task: Task, progress: Progress) -> dict[str, Any]:
        in_full = {"answers": possible_answers(task), "vocabulary": task.kind.form.vocabulary(task.kind)}
        return TaskSerializer.row(task, progress) | in_full


def possible_answers(task: Task) -> list[dict[str, Any]]:
    """Return the possible answers to a task's question, as dicts with the fields of OfferedSerializer.

    If the task asks about each language separately, the answers for all languages are returned.
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
    """Return a record's fields in the order that the kind defines; an empty dict for a post."""
    return {name: item.fields[name] for name in kind.fields}


def text_of(item: Item, kind: Kind) -> str:
    """Return the text that annotators see: a post's text, or a record's fields, one per line."""
    return "\n".join(fields_of(item, kind).values()) if kind.fields else item.text


def sets_of(sides: Sides | None) -> list[list[str]]:
    """Return the two sets of replies in the order that the annotator sees. The list is empty if there are none."""
    return list(sides.sets) if sides else []


class LeaseSerializer(serializers.Serializer):
    """A unit that is assigned to an annotator. The item's id is left out, because it comes from the manager's files,
    where an id such as gold-17 would reveal a known answer. Only adjudicators see the id.
    """

    id = integer(source="pk", help_text="the lease's id, for the URLs of other requests")
    text = method(help_text="the text; for a record, the values of the fields, one per line")
    language = string(source="unit.item.language", allow_blank=True, help_text="the language of a record")
    fields = method("get_record", help_text="a record's fields by name")
    asked = string(
        source="unit.asked",
        allow_blank=True,
        help_text="the language in a question such as “Is this German?”; empty if the question is “Which language is "
        "this?”. Send one of the task's answers with the same value of `asked`",
    )
    sets = method(help_text=SETS)
    written = method(
        help_text="another annotator's text for you to review: as the label, send this text to accept it, your own "
        "version to correct it, or <rejected>; empty if you write the text, and for other questions"
    )
    expires_at = serializers.DateTimeField(help_text="when the unit becomes available to others")

    suggestions = method(
        help_text="labels or concept ids suggested by a machine, best first; empty if there are none, or if you work "
        "without suggestions"
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
    why = string(allow_blank=True, help_text="why there is no lease")


class SkipSerializer(serializers.Serializer):
    take_next = boolean(required=False, default=False, help_text="also take the next unit in the same request")
    active_seconds = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        help_text="working time without idle time (seconds); capped at the time since the unit was assigned to you",
    )


class FlagSerializer(SkipSerializer):
    kind = serializers.ChoiceField(list(Flag.KINDS), help_text="the kind of problem")
    words = string(
        max_length=MESSAGE_LENGTH, **OPTIONAL, help_text="your message to the manager; required for a question"
    )


class SureSerializer(serializers.Serializer):
    sure = boolean(
        required=False,
        default=False,
        help_text="for concepts: true to confirm the choice of a concept together with a broader one, if the task "
        "requires it",
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
    """The stored flag, and the next unit if the flagged unit was passed on and you requested it."""

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
    id = integer(source="pk", help_text="the question's id, for the URL of the answer")
    number = integer(source="position")
    of = method()
    fields = method("get_record", help_text="the record's fields by name")
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
    """The result of practice or a test, available after the last question."""

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
    """In practice, `right` tells whether your answer is correct, and `label` and `explanation` give the correct one. In
    a test, they are null.
    """

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


def validate_data(serializer: type[serializers.Serializer], data: Any) -> dict[str, Any]:
    """Validate a request's data with a serializer, and return the validated data."""
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
    """Decorate a function to make it an API view.

    The function's docstring becomes the view's description in the schema.

    method: allowed HTTP method
    right: a key of access.RIGHTS, or "permit" for a function that takes the annotator's permit
    summary: the view's summary in the schema
    response: the response's serializer. For a file, it is a mapping from (status, media type) to the schema type; for a
        response without a body, it is None
    body: the request body's serializer
    many: whether the response is a list
    status: HTTP status of a response with a body
    parsers: parsers for the request body
    schema: other arguments of drf_spectacular's extend_schema
    """

    def decorate(view: Callable[..., Any]) -> View:
        guarded = (with_permit if right == "permit" else with_right(right))(view)

        @wraps(view)
        def api_view_function(request: Request, **arguments: Any) -> Any:
            result = guarded(request, **arguments)
            if isinstance(result, HttpResponseBase):
                return result
            return Response(response(result, many=many).data, status) if response else Response(status=204)

        responses = {status: response(many=True) if many else response} if response else {204: None}
        if isinstance(response, Mapping):
            responses = dict(response)
        description = " ".join((view.__doc__ or "").split())
        with_schema = extend_schema(
            request=body, responses=responses | REFUSED, summary=summary, description=description, **schema
        )
        api: View = with_schema(api_view([method])(parser_classes(parsers)(api_view_function)))
        return api

    return decorate
