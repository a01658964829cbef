"""The concepts that an answer consists of, each with what led to it, stored beside the judgment's text."""

from annotate.kinds import Answer
from annotate.kinds.control import QualityControl, register
from annotate.kinds.kind import SUGGESTED, WAYS
from annotate.models import ChosenConcept, Judgment, Task
from annotate.quality.suggestions import shown_to, suggested
from corpora.vocabulary.concept_index import concepts_of


def rows_of(judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
    """The concepts of a judgment, to be stored.

    What is said to have been suggested and is not in what its author is shown has no known way: a program may say
    anything.
    """
    unit, kind = judgment.unit, judgment.unit.task.kind
    shown = shown_to(judgment.annotator, unit) if judgment.lease_id else suggested(unit)
    ranks = {key: rank for rank, key in enumerate(shown, 1)}
    rows = []
    for key, concept in concepts_of(kind.thesaurus.version, kind.form.facets(answer.label)).items():
        way = answer.ways.get(key, "")
        rank = ranks.get(key) if way == SUGGESTED else None
        known = way in WAYS and (way != SUGGESTED or rank is not None)
        rows.append(ChosenConcept(judgment=judgment, concept=concept, way=way if known else "", rank=rank))
    return rows


class Concepts(QualityControl):
    name = "concepts"
    inputs = ("suggest_from", "reuse")

    def applies(self, task: Task) -> bool:
        return task.vocabulary_id is not None

    def judged(self, judgment: Judgment, answer: Answer | None) -> None:
        if answer and answer.label and (rows := rows_of(judgment, answer)):
            ChosenConcept.objects.bulk_create(rows)

    def parts(self, judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
        return rows_of(judgment, answer)


register(Concepts())
