"""The concepts that an answer consists of, each with what led to it, stored beside the judgment's text."""

from annotate.kinds import Answer
from annotate.kinds.kind import SUGGESTED, WAYS
from annotate.models import ChosenConcept, Judgment
from annotate.quality.suggestions import shown_to, suggested
from corpora.vocabularies import concepts_of


def keep_concepts(judgment: Judgment, answer: Answer) -> None:
    """Store the concepts of a judgment; nothing where answers are no concepts."""
    if rows := rows_of(judgment, answer):
        ChosenConcept.objects.bulk_create(rows)


def rows_of(judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
    """The concepts of a judgment, to be stored.

    What is said to have been suggested and is not in what its author is shown has no known way: a program may say
    anything.
    """
    unit, kind = judgment.unit, judgment.unit.task.kind
    if not (kind.thesaurus and kind.thesaurus.version):
        return []
    shown = shown_to(judgment.annotator, unit) if judgment.lease_id else suggested(unit)
    ranks = {key: rank for rank, key in enumerate(shown, 1)}
    rows = []
    for key, concept in concepts_of(kind.thesaurus.version, kind.form.facets(answer.label)).items():
        way = answer.ways.get(key, "")
        rank = ranks.get(key) if way == SUGGESTED else None
        known = way in WAYS and (way != SUGGESTED or rank is not None)
        rows.append(ChosenConcept(judgment=judgment, concept=concept, way=way if known else "", rank=rank))
    return rows
