"""The concepts that an answer consists of, each with what led to it, stored beside the judgment's text."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from annotate.goldsets import form_extras
from annotate.goldsets.export import Export
from annotate.kinds import Answer
from annotate.kinds.concept_kind import newest, version_of
from annotate.kinds.control import QualityControl, register
from annotate.kinds.kind import SUGGESTED, WAYS
from annotate.models import ChosenConcept, Judgment, Task
from annotate.quality.suggestions import shown_to, suggested
from corpora.vocabulary.concept_index import concepts_of
from corpora.vocabulary.thesaurus import VocabularyError


def rows_of(judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
    """The concepts of a judgment, to be stored.

    What is said to have been suggested and is not in what its author is shown has no known way: a program may say
    anything.
    """
    unit, task = judgment.unit, judgment.unit.task
    shown = shown_to(judgment.annotator, unit) if judgment.lease_id else suggested(unit)
    ranks = {key: rank for rank, key in enumerate(shown, 1)}
    rows = []
    for key, concept in concepts_of(version_of(task), task.kind.form.facets(answer.label)).items():
        way = answer.ways.get(key, "")
        rank = ranks.get(key) if way == SUGGESTED else None
        known = way in WAYS and (way != SUGGESTED or rank is not None)
        rows.append(ChosenConcept(judgment=judgment, concept=concept, way=way if known else "", rank=rank))
    return rows


class Concepts(QualityControl):
    name = "concepts"
    inputs = ("suggest_from", "reuse", "frequent_over")

    def prepare(self, task: Task) -> None:
        try:
            task.vocabulary = newest(task.kind)
        except VocabularyError as error:
            raise ValueError(f"{error} Import it with import_vocabulary.") from error

    def applies(self, task: Task) -> bool:
        return task.vocabulary_id is not None

    def judged(self, judgment: Judgment, answer: Answer | None) -> None:
        if answer and answer.label and (rows := rows_of(judgment, answer)):
            ChosenConcept.objects.bulk_create(rows)

    def parts(self, judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
        return rows_of(judgment, answer)

    def reuse(self, task: Task, is_wanted: bool) -> None:
        task.options["keep_declared"] = is_wanted

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        shown = ("suggestions_shown", pa.bool_(), form_extras.suggestions_shown)
        return (("concepts", pa.list_(form_extras.CHOSEN), form_extras.chosen), shown)

    def files(self, export: Export) -> Mapping[str, tuple[str, Any]]:
        """The published format of such sets has the descriptors in a file of its own."""
        labels = {"labels": (f"labels{export.mark}.tsv", partial(form_extras.write_labels, export=export))}
        if export.kind.publication.formats:
            return labels
        write = partial(form_extras.write_descriptors, vocabulary=export.task.vocabulary)
        return labels | {"descriptors": (form_extras.DESCRIPTORS, write)}


register(Concepts())
