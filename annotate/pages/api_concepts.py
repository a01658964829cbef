"""Concepts by the API: what a program finds by what somebody types, as the pages find it."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view
from rest_framework.response import Response

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds.kind import ENGLISH
from annotate.pages.access import with_permit
from annotate.pages.concept_rows import Listing
from annotate.pages.serializers import REFUSED
from corpora.core.thesaurus import VocabularyError


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
    id = serializers.CharField(source="key", help_text="what is sent as the answer, with those of other concepts")
    label = serializers.CharField(source="name", help_text="what the pages call it")
    path = serializers.ListField(
        child=serializers.CharField(), help_text="its scheme, and the labels of broader concepts, from the broadest on"
    )


@extend_schema(
    parameters=[TypedSerializer],
    responses={200: ConceptSerializer(many=True), **REFUSED},
    summary="Concepts that may be answered in a task, by what was typed",
    description="Ten at the most, the best first; nothing if nothing was typed.",
)
@api_view(["GET"])
@with_permit
def concepts(request, permit):
    wanted = TypedSerializer(data=request.query_params)
    wanted.is_valid(raise_exception=True)
    kind, language = permit.task.kind, wanted.validated_data["language"]
    if not kind.thesaurus:
        raise NotFound("The answers of this task are no concepts; its address lists them.")
    try:
        rows = Listing(kind.thesaurus.version, language).found(wanted.validated_data["typed"], list(permit.levels))
    except VocabularyError as error:
        raise InvalidAnswer(str(error)) from error
    return Response(ConceptSerializer(rows, many=True).data)
