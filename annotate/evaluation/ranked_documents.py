"""Ranked labels of documents, measured on an exported set whose documents have several labels each.

label_rankings.py reads the predictions, kinds/forms/labels.py has the measures.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.core.draws.label_shares import BUCKETS, FEW, FREQUENT, ZERO, buckets
from annotate.core.draws.splits import TEST, TRAIN
from annotate.core.estimation.proportions import LEAST_COUNT
from annotate.core.measures import ranked_labels as measures
from annotate.core.measures.ranked_labels import Answered, Judged
from annotate.evaluation.label_rankings import Ranked, ranking_of, sentences
from annotate.evaluation.prediction_files import PublishedSet, described, system_names, unfinished_ones
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.set_folder import RESTORE, GoldSetError, get
from annotate.kinds.forms.labels import ALL, PLAIN, TESTED, WIDENED, Measures
from annotate.reports.evaluation_report import section
from annotate.reports.tables import are, many
from corpora.predictions.rankings import Run

# Concept -> its label and its parents: all concepts of the vocabulary. The file of EURLEX57K, or that of other sets.
DESCRIPTORS = ("EURLEX57K/EURLEX57K.json", "concepts.json")
FIRST = 5  # labels that are taken for an answer; about as many as a document of EURLEX57K has
SECTIONS = [
    section("by-k", "By K", "labels k", "P R RP nDCG", plotted=[*TESTED], apart=True),
    section("answers", "Labels taken for the answer", "answers", "micro_precision micro_recall micro_f1"),
]
# Buckets as Chalkidis et al. 2019 call them.
NAMES = {
    ALL: "all labels",
    FREQUENT: "frequent labels",
    FEW: "few-shot labels",
    ZERO: "zero-shot labels",
    PLAIN: "labels as they are",
    WIDENED: "with all ancestors",
}
READING = (
    "A number with two in brackets is an estimate with its 95% interval, for other documents like these. Means have "
    f"Jeffreys’ interval, or that of the Bayesian bootstrap if all documents add up to less than {LEAST_COUNT} hits; "
    "micro precision, recall and F1 have that of the bootstrap.",
    "The measures at K are means over documents with gold labels (Chalkidis et al. 2019). For frequent, few-shot and "
    "zero-shot labels only these are kept, in gold and in ranking.",
    "Labels are ranked by their scores, and those of equal scores by their ids as text. Labels without scores are "
    "ranked in the order of the file.",
)
RANDOMIZATION = (
    "the two-sided randomization test: how often the two are as far apart if a coin decides for each document which "
    "system said what"
)


@dataclass(frozen=True)
class LabelledDocuments:
    """The documents of one split of a set. truth: document -> its labels. parents: each label of the vocabulary -> the
    labels right above it. buckets: bucket -> its labels, frequent ones being those of more than `frequent_over`
    documents of train; empty without documents of train."""

    gold: PublishedSet
    split: str
    truth: Mapping[str, frozenset[str]]
    parents: Mapping[str, list[str]]
    buckets: Mapping[str, frozenset[str]]
    frequent_over: int


def read_documents(gold: PublishedSet, split: str, frequent_over: int | None) -> LabelledDocuments:
    """The documents of a split. frequent_over: over how many train documents a label is frequent; None for the number
    of the set.

    EvaluationError where the split has none, or buckets cannot be counted as wished; GoldSetError if the set is not as
    it should be.
    """
    place = gold.folder / "manifest.json"
    over = frequent_over or get(place, get(place, dict(gold.manifest), "concepts", dict), "frequent_over", int)
    parents = _parents(gold)
    splits = _splits(gold.folder / f"gold{gold.mark}.jsonl", parents)
    counted: Mapping[str, frozenset[str]] = {}
    if TRAIN in splits or frequent_over is not None:
        try:
            counted = buckets({name: rows.values() for name, rows in splits.items()}, TRAIN, frequent_over=over)
        except ValueError as error:
            raise EvaluationError(
                f"--frequent-over cannot be had on the set {gold.name} in {gold.folder}: {error}"
            ) from None
    if split not in splits:
        there = ", ".join(sorted(splits)) or "no documents at all"
        raise EvaluationError(
            f"The set {gold.name} in {gold.folder} has no documents in the split {split}, only in: {there}; name "
            "another with --split, or export the set with one."
        )
    return LabelledDocuments(gold, split, splits[split], parents, counted, over)


def _parents(gold: PublishedSet) -> dict[str, list[str]]:
    place = gold.folder / "manifest.json"
    names = [name for name in DESCRIPTORS if name in get(place, dict(gold.manifest), "files", dict)]
    if not names:
        raise GoldSetError(f"{place} names no {' or '.join(DESCRIPTORS)} among its files. {RESTORE}")
    path = gold.folder / names[0]
    concepts: dict[str, Any] = json.loads(path.read_bytes())
    return {concept: get(f"{path}, concept {concept}", told, "parents", list) for concept, told in concepts.items()}


def _splits(path: Path, known: Mapping[str, Any]) -> dict[str, dict[str, frozenset[str]]]:
    found: dict[str, dict[str, frozenset[str]]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            row, place = json.loads(line), f"{path}, line {number:,}"
            labels = get(place, row, "concepts", list)
            if strange := [label for label in labels if label not in known]:
                raise GoldSetError(f"{place} has the concept {strange[0]!r}, which the vocabulary lacks. {RESTORE}")
            found.setdefault(get(place, row, "split", str), {})[get(place, row, "id", str)] = frozenset(labels)
    return found


# --- the report


def grade(
    spelled: str,
    sets: Sequence[PublishedSet],
    against: str = "",
    *,
    split: str = TEST,
    first: int | None = None,
    threshold: float | None = None,
    frequent_over: int | None = None,
    **reading: Any,
) -> dict[str, Any]:
    """The report. spelled, against: files, or the names of ranked predictors of the corpus. split: whose documents are
    measured. first, threshold: an answer is so many first labels, or those with such a score; else FIRST of them, or
    all of labels without scores. frequent_over: counts the buckets anew. reading: see ranking_of. EvaluationError if
    the predictions do not fit the set.
    """
    documents = read_documents(sets[0], split, frequent_over)
    reading.setdefault("corpus", (sets[0].manifest.get("corpus") or {}).get("name", ""))
    every = [each for each in (spelled, against) if each]
    runs = [ranking_of(each, documents.truth, documents.parents, **reading) for each in every]
    answers = [_answer(run, first, threshold) for run in runs]
    systems = [_measures(*each, documents) for each in zip(runs, answers, strict=True)]
    names = system_names(every, [run.system for run in runs])
    comparison = None
    if against:
        comparison = {"other": described(names[1]), "test": RANDOMIZATION, "rows": systems[0].compared(systems[1])}
    return {
        "form": "labels",
        "unit": "document",
        "sections": SECTIONS,
        "names": NAMES,
        "head": list(Measures.head),
        "words": _words(documents, answers[0]),
        "reading": list(READING),
        "predictor": described(names[0]),
        "rows": list(systems[0].rows()),
        "comparison": comparison,
        "told": [f"{name}: {said}" for name, run in zip(names, runs, strict=True) for said in sentences(run)],
        "warnings": unfinished_ones(sets),
    }


def _answer(run: Run, first: int | None, threshold: float | None) -> tuple[int | None, float | None]:
    """How many first labels, and which least score, make a label part of an answer."""
    if first is not None and threshold is not None:
        raise EvaluationError(
            "--first and --threshold both say which labels are taken for a document's answer; give one of them."
        )
    has_scores = not isinstance(run, Ranked) or run.has_scores
    if threshold is not None and not has_scores:
        raise EvaluationError(f"--threshold is for scores, and {run.system} has labels without; leave it out.")
    return (first or (FIRST if has_scores else None) if threshold is None else None), threshold


def _measures(run: Run, answer: tuple[int | None, float | None], documents: LabelledDocuments) -> Measures:
    """What a system says of the documents measured."""
    (first, threshold), rankings, truth = answer, run.rankings(), documents.truth
    judged = [Judged(labels, rankings[key]) for key, labels in truth.items()]
    if threshold is None:
        answered = measures.first_of(judged, first)
    else:
        answered = [Answered(labels, measures.above(run.scores[key], threshold)) for key, labels in truth.items()]
    groups = {ALL: measures.with_gold(judged)}
    groups |= {name: measures.within(judged, labels) for name, labels in documents.buckets.items()}
    answers = {PLAIN: answered}
    if any(documents.parents.values()):
        answers[WIDENED] = measures.widened(answered, documents.parents)
    return Measures(groups, answers, f"{documents.gold.digest}:{documents.split}")


def _words(documents: LabelledDocuments, answer: tuple[int | None, float | None]) -> dict[str, list[str]]:
    vocabulary, (first, threshold) = documents.gold.manifest["concepts"]["vocabulary"], answer
    if threshold is not None:
        taken = f"with a score of {threshold:g} or more"
    else:
        taken = f"ranked among the first {first}" if first else "in the predictions, all of them"
    without = sum(not labels for labels in documents.truth.values())
    unlabelled = f"{are(without, 'document has', 'documents have')} no gold label, and no part in the measures at K."
    return {
        "gold": [
            f"Measured on {many(len(documents.truth), 'document')} of the split {documents.split}, with labels of the "
            f"vocabulary {vocabulary['name']}, version {vocabulary['version']} "
            f"({many(vocabulary['concepts'], 'concept')}).",
            *[unlabelled] * bool(without),
            *_words_on_buckets(documents),
        ],
        "answers": [
            f"A document’s answer is its labels {taken}.",
            "With all ancestors: those of each label are added on both sides, so that a label near the right one costs "
            "less than one far from it.",
        ],
    }


def _words_on_buckets(documents: LabelledDocuments) -> list[str]:
    if not documents.buckets:
        return ["No document is in the split train, so labels are not divided by how often they are there."]
    frequent, few, zero = (f"{len(documents.buckets[name]):,}" for name in BUCKETS)
    return [
        f"Labels used: {frequent} frequent (in more than {many(documents.frequent_over, 'document')} of train), "
        f"{few} few-shot (in fewer, at least one), {zero} zero-shot (in none)."
    ]
