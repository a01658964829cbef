"""Concepts that people choose for documents, and the concepts that systems suggest to them.

The suggestions of several systems are merged into one list, ranked by the sum of 1/rank. For a random share of the
combinations of annotator and document (BLIND_SHARE), the suggestions are hidden. Reports can therefore compare choices
with and without suggestions.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pyarrow as pa

from annotate.core.agreement.coefficients import f1
from annotate.core.draws import splits
from annotate.core.draws.committed_draws import BLIND
from annotate.core.draws.hash_order import hit
from annotate.core.draws.splits import SPLITS, TRAIN
from annotate.kinds import Answer
from annotate.kinds.concept_kind import BLIND_SHARE, newest, version_of
from annotate.kinds.control import QualityControl, register
from annotate.kinds.kind import SUGGESTED, WAYS
from annotate.models import Annotator, ChosenConcept, Judgment, Suggestion, Task, Unit
from annotate.reports.numbers import NOT_MEASURED, percent
from annotate.reports.tables import NUMBER, Cell, Column, Table, numbered, table
from corpora.database.bulk_rows import listed
from corpora.models import Vocabulary
from corpora.predictions.rankings import joined
from corpora.vocabulary.concept_index import concepts_of, descriptors, names_in
from corpora.vocabulary.thesaurus import VocabularyError

SHOWN = 10  # maximum number of suggested concepts for a document


def suggested(unit: Unit) -> list[str]:
    """Return the ids of the concepts suggested for a unit, best first, even if they are hidden from the annotator."""
    lists = Suggestion.objects.filter(unit=unit).order_by("system").values_list("ranked", flat=True)
    return joined(lists)[:SHOWN]


def all_suggested(task: Task) -> dict[int, list[str]]:
    """Return the ids of the suggested concepts, by unit key, for all units of a task that have suggestions."""
    lists: dict[int, list[list[str]]] = {}
    rows = Suggestion.objects.filter(unit__task=task).order_by("unit", "system").values_list("unit", "ranked")
    for unit, ranked in rows:
        lists.setdefault(unit, []).append(ranked)
    return {unit: joined(unit_lists)[:SHOWN] for unit, unit_lists in lists.items()}


def shown_to(annotator: Annotator, unit: Unit) -> list[str]:
    """Return the ids of the suggestions that an annotator sees. The list is empty if they are hidden (is_blind).

    Adjudicators always see the suggestions, so use `suggested` for them.
    """
    return [] if is_blind(annotator.pseudonym, unit.task, unit.item.key) else suggested(unit)


def is_blind(pseudonym: str, task: Task, key: str) -> bool:
    """Return whether the suggestions for a document are hidden from an annotator.

    This is decided at random for each combination of annotator and document. The result is the same if the annotator
    opens the document again.

    key: id of the document.
    """
    return hit(BLIND_SHARE, lots=task.lots, purpose=BLIND, key=f"{pseudonym} {key}")


# --- Columns and files of an exported set


CHOSEN = pa.struct([("concept", pa.string()), ("way", pa.string()), ("rank", pa.int32())])
# Name of the file with the vocabulary's descriptors. It is written if the set's published format has no such file.
DESCRIPTORS = "concepts.json"


def chosen(rows: Any) -> pa.Array:
    """Return the concepts of each judgment, with the method by which each was chosen and its rank if suggested."""
    judgments, concepts = rows.judgments.values["pk"].to_pylist(), dict[int, list[tuple[str, str | None, int | None]]]()
    chosen_concepts = ChosenConcept.objects.filter(judgment__in=listed(judgments)).order_by(
        "judgment_id", "concept__key"
    )
    for judgment, key, way, rank in chosen_concepts.values_list("judgment_id", "concept__key", "way", "rank"):
        concepts.setdefault(judgment, []).append((key, way or None, rank))
    return pa.array([concepts.get(judgment, []) for judgment in judgments], pa.list_(CHOSEN))


def suggestions_shown(rows: Any) -> pa.Array:
    """Return whether the author of each judgment saw suggestions.

    The value is None if nothing was suggested, or if the judgment is a skip or an adjudicator's decision.
    """
    export, shown = rows.export, []
    keys = zip(rows.judged["pk"].to_pylist(), rows.judged["item__key"].to_pylist(), strict=True)
    for (unit, key), answers in zip(keys, rows.judgments.tuples("kind", "annotator"), strict=True):
        suggestions = export.suggested.get(unit)
        for kind, annotator in answers:
            has_suggestions = kind == Judgment.ANSWER and suggestions
            shown.append(not is_blind(export.pseudonyms[annotator], export.task, key) if has_suggestions else None)
    return pa.array(shown, pa.bool_())


def buckets(export: Any) -> dict[str, list[str]]:
    """Return the labels in each frequency bucket, sorted."""
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
    """Write a table of all labels that documents have, the most frequent label first.

    The columns are the id, the label, the number of documents in train, dev and test, and the frequency bucket. They
    are separated by tabs, because labels do not contain tabs. The first line is a header.
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


# --- Choices with and without suggestions
#
# Only answers in force to documents with suggestions count. Answers to hidden gold items do not count.


FIRST = 5  # number of suggestions at the top of the list with which the chosen concepts are compared


class _SuggestedAnswer(NamedTuple):
    """An answer to a document with suggestions.

    person: pseudonym of the annotator.
    blind: whether the suggestions were hidden.
    chosen: ids of the chosen concepts.
    first: ids of the first suggestions for the document.
    with_others: F1 between this answer and each of the other answers to the document.
    """

    person: str
    blind: bool
    chosen: frozenset[str]
    first: frozenset[str]
    with_others: list[float]


def report(task: Task) -> dict[str, Any] | None:
    """Return how people used suggestions, as JSON data; None if nothing was suggested.

    first: number of suggestions at the top of the list to which the figures refer.
    shown: figures for answers given with suggestions.
    blind: figures for answers given without suggestions.
    people: a row for each annotator, with `shown` and `blind` figures for their answers.

    The figures are as follows. Means and shares are None if there are no answers.

    answers: number of answers.
    concepts: mean number of concepts per answer.
    taken: share of the first suggestions that people chose.
    among: share of the chosen concepts that are among the first suggestions, even if these were hidden.
    exactly: number of answers that consist of exactly the first suggestions.
    f1: mean F1 between an answer and the other answers to the same document.
    """
    suggested = all_suggested(task)
    if not suggested:
        return None
    by_person: dict[str, list[_SuggestedAnswer]] = {}
    answers = list(_suggested_answers(task, suggested))
    for answer in answers:
        by_person.setdefault(answer.person, []).append(answer)
    people = [{"annotator": person, **_both(person_answers)} for person, person_answers in sorted(by_person.items())]
    return {"first": FIRST, **_both(answers), "people": people}


def _suggested_answers(task: Task, suggested: Mapping[int, list[str]]) -> Iterator[_SuggestedAnswer]:
    answers = Judgment.objects.answers().live().filter(unit__in=task.units.exported()).order_by("unit", "pk")
    rows = answers.values_list("unit", "label", "annotator__pseudonym", "unit__item__key")
    for unit, group in groupby(rows, key=itemgetter(0)):
        unit_answers = [
            (frozenset(task.kind.form.facets(label)), person, key)
            for _, label, person, key in group
            if unit in suggested
        ]
        for index, (chosen, person, key) in enumerate(unit_answers):
            f1s = [f1(chosen, other) for number, (other, *_) in enumerate(unit_answers) if number != index]
            yield _SuggestedAnswer(person, is_blind(person, task, key), chosen, frozenset(suggested[unit][:FIRST]), f1s)


def _both(answers: list[_SuggestedAnswer]) -> dict[str, dict[str, Any]]:
    arms = {"shown": False, "blind": True}
    return {arm: _figures([answer for answer in answers if answer.blind == blind]) for arm, blind in arms.items()}


def _figures(answers: list[_SuggestedAnswer]) -> dict[str, Any]:
    concepts = sum(len(answer.chosen) for answer in answers)
    common = sum(len(answer.chosen & answer.first) for answer in answers)
    agreeing = [fmean(answer.with_others) for answer in answers if answer.with_others]
    return {
        "answers": len(answers),
        "concepts": concepts / len(answers) if answers else None,
        "taken": common / sum(len(answer.first) for answer in answers) if answers else None,
        "among": common / concepts if answers else None,
        "exactly": sum(answer.chosen == answer.first for answer in answers),
        "f1": fmean(agreeing) if agreeing else None,
    }


# --- Table for the card


ALL = "all"


def suggestion_table(results: Mapping[str, Any]) -> Table:
    """Return a table with two rows for each annotator and for all annotators together.

    One row is for answers given with suggestions, and the other for answers given without suggestions. A row is omitted
    if it would contain no answers.
    """
    rows = [
        {"annotator": figures.get("annotator", ALL), "arm": arm, **figures[arm]}
        for figures in (results, *results["people"])
        for arm in ("shown", "blind")
        if figures[arm]["answers"]
    ]
    first = results["first"]
    columns = (
        Column("annotator", "annotator"),
        Column("arm", "suggestions", says=lambda row: {"shown": "shown", "blind": "not shown"}[row["arm"]]),
        numbered("answers", "answers"),
        _number("concepts", "labels per answer", "{:.1f}".format),
        _number("taken", f"share of the first {first} that were chosen", percent),
        _number("among", f"share of chosen labels among the first {first}", percent),
        Column(
            "exactly",
            f"answers that equal the first {first}",
            NUMBER,
            lambda row: Cell(f"{row['exactly']:,} of {row['answers']:,}", row["exactly"]),
        ),
        _number("f1", "F1 with other answers", "{:.2f}".format),
    )
    return table("Suggestions", columns, rows)


def _number(key: str, heading: str, format_value: Callable[[float], str]) -> Column:
    def says(row: dict[str, Any]) -> Cell:
        return Cell(NOT_MEASURED if row[key] is None else format_value(row[key]), row[key])

    return Column(key, heading, NUMBER, says)


# --- Quality control


def rows_of(judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
    """Return unsaved database rows for the concepts that were chosen in a judgment.

    An API client can send any value for the method by which a concept was chosen. The value is stored only if it is in
    WAYS. The value `suggested` is stored only if the concept was among the suggestions that the author saw.
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
    inputs = ("suggest_from", "reuse", "frequent_over")

    def prepare(self, task: Task, reuse: bool) -> None:
        task.options["keep_declared"] = reuse
        try:
            task.vocabulary = newest(task.kind)
        except VocabularyError as error:
            raise ValueError(f"{error} Import it with import_vocabulary.") from error

    def judged(self, judgment: Judgment, answer: Answer | None) -> None:
        if answer and answer.label and (rows := rows_of(judgment, answer)):
            ChosenConcept.objects.bulk_create(rows)

    def parts(self, judgment: Judgment, answer: Answer) -> list[ChosenConcept]:
        return rows_of(judgment, answer)

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        shown = ("suggestions_shown", pa.bool_(), suggestions_shown)
        return (("concepts", pa.list_(CHOSEN), chosen), shown)

    def files(self, export: Any) -> Mapping[str, tuple[str, Any]]:
        """Return the file of labels and, unless a published format includes one, the file of descriptors."""
        labels = {"labels": (f"labels{export.mark}.tsv", partial(write_labels, export=export))}
        if export.kind.publication.formats:
            return labels
        write = partial(write_descriptors, vocabulary=export.task.vocabulary)
        return labels | {"descriptors": (DESCRIPTORS, write)}


register(Concepts())
