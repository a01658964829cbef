"""The `concepts` quality control: the concepts that annotators choose for documents, and how they found each one."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from annotate.controls.suggestions import shown_to, suggested
from annotate.core.draws import splits
from annotate.core.draws.splits import SPLITS, TRAIN
from annotate.kinds import Answer
from annotate.kinds.concept_kind import newest_version, version_of
from annotate.kinds.control import QualityControl, register
from annotate.kinds.kind import SUGGESTED, WAYS
from annotate.models import ChosenConcept, Judgment, Task
from corpora.database.bulk_rows import listed
from corpora.models import Vocabulary
from corpora.vocabulary.concept_index import concepts_of, descriptors, names_in
from corpora.vocabulary.thesaurus import VocabularyError

# --- Columns and files of an exported set


CHOSEN = pa.struct([("concept", pa.string()), ("way", pa.string()), ("rank", pa.int32())])
# The file of the vocabulary's descriptors. It isn't written if a published format of the set includes such a file.
DESCRIPTORS = "concepts.json"


def chosen_by_judgment(rows: Any) -> pa.Array:
    """Return each judgment's concepts, how each was chosen, and the ranks of concepts that were suggested."""
    judgments, concepts = rows.judgments.values["pk"].to_pylist(), dict[int, list[tuple[str, str | None, int | None]]]()
    chosen_concepts = ChosenConcept.objects.filter(judgment__in=listed(judgments)).order_by(
        "judgment_id", "concept__key"
    )
    for judgment, key, way, rank in chosen_concepts.values_list("judgment_id", "concept__key", "way", "rank"):
        concepts.setdefault(judgment, []).append((key, way or None, rank))
    return pa.array([concepts.get(judgment, []) for judgment in judgments], pa.list_(CHOSEN))


def buckets(export: Any) -> dict[str, list[str]]:
    """Return the sorted labels in each frequency bucket."""
    labels_by_bucket = splits.buckets(export.label_sets, TRAIN, frequent_over=export.frequent_over)
    return {bucket: sorted(labels) for bucket, labels in labels_by_bucket.items()}


def write_descriptors(path: Path, vocabulary: Vocabulary) -> int:
    """Write the names, parents and related concepts of all concepts, by id, as ASCII JSON.

    Return the number of concepts.
    """
    concepts = descriptors(vocabulary)
    path.write_text(json.dumps(concepts, indent=1), encoding="ascii")
    return len(concepts)


def write_labels(path: Path, export: Any) -> None:
    """Write a tab-separated table of the labels that documents have, the most frequent label first.

    The columns are the id, the label, the number of documents in train, dev and test, and the frequency bucket. The
    first line is a header. Labels don't contain tabs.
    """
    label_counts = {split: splits.counts(label_sets) for split, label_sets in export.label_sets.items()}
    bucket_of = {label: bucket for bucket, labels in buckets(export).items() for label in labels}
    total = sum(label_counts.values(), Counter[str]())
    names = names_in(export.task.vocabulary, "en")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(["id", "label", *SPLITS, "bucket"]) + "\n")
        for key in sorted(total, key=lambda key: (-total[key], key)):
            numbers = [str(label_counts[split][key]) for split in SPLITS]
            file.write("\t".join([key, names[key].text, *numbers, bucket_of[key]]) + "\n")


# --- Quality control


def rows_of(judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
    """Return unsaved database rows for the concepts chosen in a judgment.

    API clients can send any text to state how a concept was chosen. Texts that are not in WAYS are not stored, and
    `suggested` is only stored if the annotator saw the concept as a suggestion.
    """
    unit, task = judgment.unit, judgment.unit.task
    visible = shown_to(judgment.annotator, unit) if judgment.lease_id else suggested(unit)
    ranks = {key: rank for rank, key in enumerate(visible, 1)}
    rows = []
    for key, concept in concepts_of(version_of(task), task.kind.form.facets(answer.label)).items():
        way = answer.ways.get(key, "")
        rank = ranks.get(key) if way == SUGGESTED else None
        is_valid = way in WAYS and (way != SUGGESTED or rank is not None)
        rows.append(ChosenConcept(judgment=judgment, concept=concept, way=way if is_valid else "", rank=rank))
    return rows


class Concepts(QualityControl):
    name = "concepts"
    inputs = ("reuse", "frequent_over")

    def prepare(self, task: Task, reuse: bool) -> None:
        task.options["keep_declared"] = reuse
        try:
            task.vocabulary = newest_version(task.kind)
        except VocabularyError as error:
            raise ValueError(f"{error} Import it with import_vocabulary.") from error

    def judged(self, judgment: Judgment, answer: Answer | None) -> None:
        if answer and answer.label and (rows := rows_of(judgment, answer)):
            ChosenConcept.objects.bulk_create(rows)

    def parts(self, judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
        return rows_of(judgment, answer)

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        return (("concepts", pa.list_(CHOSEN), chosen_by_judgment),)

    def files(self, export: Any) -> Mapping[str, tuple[str, Any]]:
        """Return the file of labels and, unless a published format includes it, the file of descriptors."""
        labels = {"labels": (f"labels{export.mark}.tsv", partial(write_labels, export=export))}
        if export.kind.publication.formats:
            return labels
        write = partial(write_descriptors, vocabulary=export.task.vocabulary)
        return labels | {"descriptors": (DESCRIPTORS, write)}


register(Concepts())
