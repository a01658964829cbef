"""Adjudication by the API: what waits, one unit with what is known of it, and the decisions about it.

The operations, the rights and the refusals are those of the pages (adjudicators.py), and what is told of a unit is what
they show of it: nothing of votes, judgments or history where it is checked blind.
"""

from django.core.paginator import EmptyPage, Paginator
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.response import Response

from annotate.core.refusals import NotFound
from annotate.models import Judgment
from annotate.pages import adjudicators
from annotate.pages.access import with_right
from annotate.pages.item_view import sides_of
from annotate.pages.serializers import (
    REFUSED,
    SETS,
    SEVERAL,
    JudgmentSerializer,
    SureSerializer,
    fields_of,
    sets_of,
    text_of,
)
from annotate.work import adjudication
from annotate.work.routes import is_language, unknown_code

PER_PAGE = 50


# --- what it takes


class WantedSerializer(serializers.Serializer):
    language = serializers.CharField(
        required=False, default="", help_text="only units that were in its queue; those checked blind are in none"
    )
    case = serializers.ChoiceField(
        adjudication.CASES,
        required=False,
        default="",
        help_text="only units that are checked blind, or of all others those that nobody answered, that all answered "
        "alike, or of which the answers differ",
    )
    page = serializers.IntegerField(required=False, default=1, min_value=1, help_text=f"of {PER_PAGE} units each")

    def validate_language(self, code: str) -> str:
        if code and not is_language(code):
            raise serializers.ValidationError(unknown_code(code))
        return code


class DiscardSerializer(serializers.Serializer):
    reason = serializers.CharField(max_length=200, help_text="how you know, in a few words")
    comment = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")


class SettleSerializer(SureSerializer, DiscardSerializer):
    label = serializers.CharField(help_text=f"one of the task's answers to the unit, such as de or und; {SEVERAL}")


# --- what it gives


class DisputedSerializer(serializers.Serializer):
    unit = serializers.IntegerField(help_text="use it to decide")
    item = serializers.CharField(help_text="the id of the post or record in its source")
    text = serializers.CharField(help_text="for a record, its fields one after another")
    language = serializers.CharField(allow_blank=True, help_text="the language of a record")
    fields = serializers.DictField(child=serializers.CharField(), help_text="the fields of a record by name")
    asked = serializers.CharField(
        allow_blank=True,
        help_text="the language asked about, if any; the task lists the answers to it",
    )

    @staticmethod
    def row(unit):
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
    blind = serializers.BooleanField(help_text="checked blind: votes, judgments and history are hidden")
    told = serializers.DictField(
        child=serializers.CharField(),
        help_text="what the page lists, such as candidates or answers so far; empty if blind",
    )


class WaitingListSerializer(serializers.Serializer):
    waiting = serializers.IntegerField(help_text="units that you may decide, in all languages")
    for_others = serializers.IntegerField(
        help_text="units that another adjudicator must decide, because you have judged them; 0 while the task is open"
    )
    pages = serializers.IntegerField()
    units = WaitingSerializer(
        many=True, help_text="the units of this page: first those checked blind, then those that wait longest"
    )


class SaidSerializer(serializers.ModelSerializer):
    annotator = serializers.StringRelatedField()
    label = serializers.CharField(source="seen", allow_blank=True)
    queue = serializers.CharField(source="lease.queue", default="", help_text="the unit's queue; empty for decisions")

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
    event = serializers.CharField()
    stage = serializers.CharField(source="to_stage")
    language = serializers.CharField(allow_blank=True, help_text="the queue")
    round = serializers.IntegerField()
    by = serializers.StringRelatedField(allow_null=True)


class OtherPostSerializer(serializers.Serializer):
    id = serializers.CharField()
    text = serializers.CharField()
    posted_at = serializers.DateTimeField(allow_null=True)
    url = serializers.CharField(allow_blank=True)


class DossierSerializer(DisputedSerializer):
    """Of a unit that is checked blind, votes, judgments and history are empty, and the outcome is null for good."""

    url = serializers.CharField(allow_blank=True, help_text="its source")
    sets = serializers.ListField(child=serializers.ListField(child=serializers.CharField()), help_text=SETS)
    blind = serializers.BooleanField()
    open = serializers.BooleanField(help_text="whether it waits for an adjudicator")
    own = JudgmentSerializer(allow_null=True, help_text="your own valid answer, skip or decision, if any")
    outcome = serializers.CharField(allow_null=True, help_text="its current label; empty if it was discarded")
    votes = serializers.DictField(help_text="each detector's languages with scores, best first")
    judgments = SaidSerializer(many=True)
    history = MoveSerializer(many=True)
    posts = OtherPostSerializer(many=True, help_text="other posts of the author")
    searches = serializers.DictField(child=serializers.CharField(), help_text="addresses to look it up, by name")

    @staticmethod
    def row(unit, annotator):
        known = adjudicators.dossier(unit, annotator)
        hidden = known["open"] or known["blind"]
        return DisputedSerializer.row(unit) | {
            **{name: known[name] for name in ("blind", "open", "own")},
            "url": unit.item.url,
            "sets": sets_of(sides_of(annotator, unit)),
            "outcome": None if hidden else known["label"],
            "votes": dict(known.get("votes", ())),
            "judgments": [judgment for judgment, *_ in known.get("judgments", ())],
            "history": known.get("transitions", []),
            "posts": known.get("posts", []),
            "searches": dict(known["searches"]),
        }


# --- views


@extend_schema(
    operation_id="tasks_adjudication_list",
    parameters=[WantedSerializer],
    responses={200: WaitingListSerializer, **REFUSED},
    summary="List what waits for you as an adjudicator",
    description="Units that you have judged as an annotator are left out.",
)
@api_view(["GET"])
@with_right("adjudicate")
def waiting(request, annotator, task):
    wanted = WantedSerializer(data=request.query_params)
    wanted.is_valid(raise_exception=True)
    cut = wanted.validated_data
    pages = Paginator(adjudication.to_adjudicate(task, annotator, cut["language"], cut["case"]), PER_PAGE)
    try:
        page = pages.page(cut["page"])
    except EmptyPage as error:
        raise NotFound(f"There is no such page: the list has {pages.num_pages:,}.") from error
    heads = task.kind.pages.list_heads
    units = [
        # Of one that is checked blind there are no cells.
        WaitingSerializer.row(unit) | {"blind": unit.blind, "told": dict(zip(heads, cells, strict=False))}
        for unit, cells in adjudication.told(page, annotator)
    ]
    found = {
        "waiting": adjudication.to_adjudicate(task, annotator).count(),
        "for_others": adjudication.for_others_told(task, annotator),
        "pages": pages.num_pages,
        "units": units,
    }
    return Response(WaitingListSerializer(found).data)


@extend_schema(
    responses={200: DossierSerializer, **REFUSED},
    summary="Get a unit with everything an adjudicator may know about it",
    description="It waits for an adjudicator, or is decided by one.",
)
@api_view(["GET"])
@with_right("adjudicate")
def dossier(request, annotator, task, unit):
    found = adjudication.shown(task, annotator, unit)
    return Response(DossierSerializer(DossierSerializer.row(found, annotator)).data)


@extend_schema(
    request=SettleSerializer,
    responses={200: JudgmentSerializer, **REFUSED},
    summary="Settle a unit's label",
    description="Some units, chosen at random, then go to a second adjudicator. Repeating a decision returns the "
    "first; a different one is refused until you take that back.",
)
@api_view(["POST"])
@with_right("adjudicate")
def settle(request, annotator, task, unit):
    found, said = _decided(request, annotator, task, unit, SettleSerializer)
    label, reason, comment, sure = (said[name] for name in ("label", "reason", "comment", "sure"))
    answer = adjudication.read_decision(task.kind, [label], reason, comment, is_sure=sure)
    return Response(JudgmentSerializer(adjudication.settle(annotator, found.pk, answer)).data)


@extend_schema(
    request=DiscardSerializer,
    responses={200: JudgmentSerializer, **REFUSED},
    summary="Leave an undecidable unit out of the gold set",
    description="Repeating a decision returns the first; a different one is refused until you take that back.",
)
@api_view(["POST"])
@with_right("adjudicate")
def discard(request, annotator, task, unit):
    found, said = _decided(request, annotator, task, unit, DiscardSerializer)
    return Response(JudgmentSerializer(adjudication.discard(annotator, found.pk, said["reason"], said["comment"])).data)


def _decided(request, annotator, task, unit, serializer):
    """The unit, if adjudicators may see it, and what was sent of it."""
    found = adjudication.shown(task, annotator, unit)
    said = serializer(data=request.data)
    said.is_valid(raise_exception=True)
    return found, said.validated_data


@extend_schema(
    request=None,
    responses={204: None, **REFUSED},
    summary="Undo your decision",
    description="The unit waits for an adjudicator again.",
)
@api_view(["POST"])
@with_right("adjudicate")
def unsettle(request, annotator, task, unit):
    get_object_or_404(task.units, pk=unit)
    adjudication.unsettle(annotator, unit)
    return Response(status=204)


urlpatterns = [
    path("", waiting, name="api-adjudication"),
    path("<int:unit>/", dossier, name="api-dossier"),
    path("<int:unit>/settle/", settle, name="api-settle"),
    path("<int:unit>/discard/", discard, name="api-discard"),
    path("<int:unit>/unsettle/", unsettle, name="api-unsettle"),
]
