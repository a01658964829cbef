"""The API for adjudicators: list units that need a decision, get a unit, and decide it.

Operations, rights and errors are the same as on the pages (pages/adjudicators.py), and so is the information about a
unit: if the unit is decided blind, votes, judgments and history are hidden.
"""

# Django REST framework has no types.
# mypy: disallow-subclassing-any=False

from typing import Any

from django.core.paginator import EmptyPage, Paginator
from django.shortcuts import get_object_or_404
from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request

from annotate.api.serializers import (
    OPTIONAL,
    SETS,
    SEVERAL,
    JudgmentSerializer,
    SureSerializer,
    boolean,
    fields_of,
    integer,
    method,
    resource,
    sets_of,
    string,
    string_map,
    strings,
    text_of,
    validate_data,
)
from annotate.controls.pair_order import sides_of
from annotate.core.refusals import NotFound
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.pages import adjudicators
from annotate.reports.tables import many
from annotate.work import adjudication
from annotate.work.routes import is_language, to_language_code, unknown_code

PER_PAGE = 50


# --- Requests


class WantedSerializer(serializers.Serializer):
    language = string(
        required=False,
        default="",
        help_text="only units from this language's queue; units that are checked blind have no queue",
    )
    case = serializers.ChoiceField(
        adjudication.CASES,
        required=False,
        allow_blank=True,
        default="",
        help_text="only units that are checked blind, or only other units that have no answers, equal answers or "
        "different answers",
    )
    page = integer(required=False, default=1, min_value=1, help_text=f"the page number; a page has {PER_PAGE} units")

    def validate_language(self, code: str) -> str:
        if code and not is_language(read := to_language_code(code)):
            raise serializers.ValidationError(unknown_code(code))
        return code and read


class DiscardSerializer(serializers.Serializer):
    reason = string(max_length=200, help_text="the reason for the decision, in a few words")
    comment = string(max_length=2000, **OPTIONAL)


class SettleSerializer(SureSerializer, DiscardSerializer):
    label = string(f"one of the task's answers for the unit, such as de or und; {SEVERAL}")


# --- Responses


class DisputedSerializer(serializers.Serializer):
    unit = integer("the unit's id, for the URLs of other requests")
    item = string("the id of the post or record in its source")
    text = string("the text; for a record, the values of the fields, one per line")
    language = string(allow_blank=True, help_text="the language of a record")
    fields = string_map("a record's fields by name")
    asked = string(
        allow_blank=True, help_text="the language in the question, if any; the task lists the possible answers"
    )

    @staticmethod
    def row(unit: Unit) -> dict[str, Any]:
        item = unit.item
        return {
            "unit": unit.pk,
            "item": item.key,
            "text": text_of(item, unit.task.kind),
            "language": item.language,
            "fields": fields_of(item, unit.task.kind),
            "asked": unit.asked,
        }


class WaitingSerializer(DisputedSerializer):
    blind = boolean("whether the unit is checked blind; if so, votes, judgments and history are hidden")
    told = string_map("cells of the list of cases by heading, such as candidate languages; empty if blind")


class WaitingListSerializer(serializers.Serializer):
    waiting = integer("the number of units that you can decide, in all languages")
    for_others = integer(
        "the number of units that another adjudicator must decide, because you have judged them; 0 while the task is "
        "open"
    )
    pages = integer()
    units = WaitingSerializer(
        many=True, help_text="the units on this page: units checked blind first, then the longest waiting units"
    )


class SaidSerializer(serializers.ModelSerializer):
    annotator = string("the pseudonym that the page shows", source="annotator.pseudonym")
    label = string(source="seen", allow_blank=True)
    queue = string(source="lease.queue", default="", help_text="the unit's queue; empty for decisions")

    class Meta:
        model = Judgment
        fields = [
            "annotator",
            "queue",
            "kind",
            "label",
            "reason",
            "comment",
            "answered_at",
            "active_seconds",
            "voided_at",
        ]


class MoveSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    event = string()
    stage = string(source="to_stage")
    language = string(allow_blank=True, help_text="the language of the queue")
    round = integer()
    by = method(help_text="the pseudonym of the annotator or adjudicator, or the name of a manager; null for a machine")

    def get_by(self, move: Transition) -> str | None:
        if move.judgment:
            return move.judgment.annotator.pseudonym
        return (move.by.get_full_name() or move.by.username) if move.by else None


class OtherPostSerializer(serializers.Serializer):
    id = string()
    text = string()
    posted_at = serializers.DateTimeField(allow_null=True)
    url = string(allow_blank=True)


class DossierSerializer(DisputedSerializer):
    """If the unit is checked blind, votes, judgments and history are empty, and the outcome stays null even after the
    decision.
    """

    url = string(allow_blank=True, help_text="the URL of the source")
    sets = serializers.ListField(child=strings(), help_text=SETS)
    blind = boolean()
    open = boolean("whether the unit is waiting for an adjudicator")
    own = JudgmentSerializer(allow_null=True, help_text="your valid answer, skip or decision, if any")
    outcome = string(allow_null=True, help_text="the current label; empty if the unit was discarded")
    votes = serializers.DictField(help_text="the languages and scores of each detector, best first")
    judgments = SaidSerializer(many=True)
    history = MoveSerializer(many=True)
    posts = OtherPostSerializer(many=True, help_text="other posts by the same author")
    searches = string_map("URLs for searching the text, by name")


def dossier_row(unit: Unit, annotator: Annotator) -> dict[str, Any]:
    details = adjudicators.dossier(unit, annotator)
    hidden = details["open"] or details["blind"]
    return DisputedSerializer.row(unit) | {
        **{name: details[name] for name in ("blind", "open")},
        "own": details["own_judgment"],
        "url": unit.item.url,
        "sets": sets_of(sides_of(annotator, unit)),
        "outcome": None if hidden else details["label"],
        "votes": dict(details.get("votes", ())),
        "judgments": [judgment for judgment, *_ in details.get("judgments", ())],
        "history": [move for move, _ in details.get("history", ())],
        "posts": details.get("posts", []),
        "searches": dict(details["searches"]),
    }


# --- Views


@resource(
    "GET",
    "adjudicate",
    "List the units that you can adjudicate",
    WaitingListSerializer,
    operation_id="tasks_adjudication_list",
    parameters=[WantedSerializer],
)
def waiting(request: Request, annotator: Annotator, task: Task) -> dict[str, Any]:
    """Units that you have judged as an annotator are left out."""
    query = validate_data(WantedSerializer, request.query_params)
    pages = Paginator(adjudication.to_adjudicate(task, annotator, query["language"], query["case"]), PER_PAGE)
    try:
        page = pages.page(query["page"])
    except EmptyPage as error:
        raise NotFound(f"This page does not exist. The list has {many(pages.num_pages, 'page')}.") from error
    heads = task.kind.pages.list_heads
    units = [
        # A unit that is decided blind has no cells, so its `told` is empty.
        WaitingSerializer.row(unit) | {"blind": unit.blind, "told": dict(zip(heads, cells, strict=False))}
        for unit, cells in adjudication.rows(page, annotator)
    ]
    return {
        "waiting": adjudication.to_adjudicate(task, annotator).count(),
        "for_others": adjudication.visible_for_others(task, annotator),
        "pages": pages.num_pages,
        "units": units,
    }


@resource("GET", "adjudicate", "Get a unit with all information that an adjudicator may see", DossierSerializer)
def dossier(request: Request, annotator: Annotator, task: Task, unit: int) -> dict[str, Any]:
    """The unit must be waiting for an adjudicator or must have been decided by one."""
    return dossier_row(adjudication.visible_unit(task, annotator, unit), annotator)


@resource("POST", "adjudicate", "Settle a unit's label", JudgmentSerializer, SettleSerializer)
def settle(request: Request, annotator: Annotator, task: Task, unit: int) -> Judgment:
    """A random sample of settled units goes to a second adjudicator. If you retry the same decision, the response is
    the stored decision. A different decision is refused until you undo the first one.
    """
    case, fields = adjudication.visible_unit(task, annotator, unit), validate_data(SettleSerializer, request.data)
    label, reason, comment, sure = (fields[name] for name in ("label", "reason", "comment", "sure"))
    answer = adjudication.read_decision(task.kind, [label], reason, comment, is_sure=sure)
    return adjudication.settle(annotator, case.pk, answer)


@resource("POST", "adjudicate", "Exclude an undecidable unit from the gold set", JudgmentSerializer, DiscardSerializer)
def discard(request: Request, annotator: Annotator, task: Task, unit: int) -> Judgment:
    """If you retry the same decision, the response is the stored decision. A different decision is refused until you
    undo the first one.
    """
    case, fields = adjudication.visible_unit(task, annotator, unit), validate_data(DiscardSerializer, request.data)
    return adjudication.discard(annotator, case.pk, fields["reason"], fields["comment"])


@resource("POST", "adjudicate", "Undo your decision")
def unsettle(request: Request, annotator: Annotator, task: Task, unit: int) -> None:
    """The unit returns to adjudication."""
    get_object_or_404(task.units, pk=unit)
    adjudication.unsettle(annotator, unit)


urlpatterns = [
    path("", waiting, name="api-adjudication"),
    path("<int:unit>/", dossier, name="api-dossier"),
    path("<int:unit>/settle/", settle, name="api-settle"),
    path("<int:unit>/discard/", discard, name="api-discard"),
    path("<int:unit>/unsettle/", unsettle, name="api-unsettle"),
]
