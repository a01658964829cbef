"""Ranked labels of documents, measured on an exported set: P@K, R@K, RP@K and nDCG@K for all labels and for each
bucket, and precision, recall and F1 of the labels that are taken for a document's answer.

A ranking is a TREC run, or a table with the column id and a column of scores for each label.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from annotate.core import ranked_labels as measures
from annotate.core.comparing import Difference
from annotate.core.figure_rows import NO_UNITS, Row, difference_row, holm_corrected, row
from annotate.core.label_shares import BUCKETS, FEW, FREQUENT, ZERO, buckets
from annotate.core.ranked_labels import Answered, Judged, Share
from annotate.core.resampling import LEAST_UNITS
from annotate.core.splits import TEST, TRAIN
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import PublishedSet, described, system_names, unfinished_ones
from annotate.goldsets.manifest import RESTORE, GoldSetError, get
from annotate.reports import evaluation_report
from annotate.reports.tables import are, many
from corpora.columns import Columns
from corpora.core.errors import CorpusError
from corpora.core.records import RecordError, read_id
from corpora.files import check_file, format_of
from corpora.lines import MAX_LINE, Fault
from corpora.readers import header_of, read_rows
from corpora.trec_run import Run, read_run

# Concept -> its label and its parents: all concepts of the vocabulary, as the published reader has them.
DESCRIPTORS = "EURLEX57K/EURLEX57K.json"
FIRST = 5  # labels that are taken for an answer; about as many as a document of EURLEX57K has
ALL, PLAIN, WIDENED = "all", "plain", "with_ancestors"
# The measures in which two systems are tested, and at which K: the figures that the article compares.
TESTED, AT = ("RP", "nDCG"), 5
SECTIONS = [
    {
        "slug": "by-k",
        "title": "By K",
        "of": ["labels", "k"],
        "measures": ["P", "R", "RP", "nDCG"],
        "plotted": [*TESTED],
        "apart": True,
    },
    {
        "slug": "answers",
        "title": "Labels taken for the answer",
        "of": ["answers"],
        "measures": ["micro_precision", "micro_recall", "micro_f1"],
    },
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
    "Jeffreys’ interval, micro precision, recall and F1 that of the bootstrap.",
    "The measures at K are means over documents with gold labels (Chalkidis et al. 2019). For frequent, few-shot and "
    "zero-shot labels only these are kept, in gold and in ranking.",
    "Labels are ranked by their scores, and those of equal scores by their ids as text.",
)
RANDOMIZATION = (
    "the two-sided randomization test: how often the two are as far apart if a coin decides for each document which "
    "system said what"
)


@dataclass(frozen=True)
class LabelledDocuments:
    """splits: split -> document -> its labels. parents: each label of the vocabulary -> the labels right above it.
    buckets: bucket -> its labels, frequent ones being those of more than `frequent_over` documents of train."""

    splits: Mapping[str, Mapping[str, frozenset[str]]]
    parents: Mapping[str, list[str]]
    buckets: Mapping[str, frozenset[str]]
    frequent_over: int


def read_documents(gold: PublishedSet, frequent_over: int | None = None) -> LabelledDocuments:
    """The documents of a set. frequent_over: where the buckets are to be counted anew; None for those of the set.

    EvaluationError if they cannot be counted, GoldSetError if the set is not as it should be.
    """
    place, published = gold.folder / "manifest.json", gold.manifest["published"]
    parents = _parents(gold)
    splits = _splits(gold.folder / f"gold{gold.mark}.jsonl", parents)
    if frequent_over is None:
        told = get(place, published, "buckets", dict)
        found = {name: frozenset(get(place, told, name, list)) for name in BUCKETS}
        return LabelledDocuments(splits, parents, found, get(place, published, "frequent_over", int))
    try:
        counted = buckets({name: rows.values() for name, rows in splits.items()}, TRAIN, frequent_over=frequent_over)
    except ValueError as error:
        raise EvaluationError(
            f"--frequent-over cannot be had on the set {gold.name} in {gold.folder}: {error}"
        ) from None
    return LabelledDocuments(splits, parents, counted, frequent_over)


def _parents(gold: PublishedSet) -> dict[str, list[str]]:
    if DESCRIPTORS not in gold.files:
        raise GoldSetError(f"{gold.folder / 'manifest.json'} names no {DESCRIPTORS} among its files. {RESTORE}")
    path = gold.folder / DESCRIPTORS
    concepts: dict[str, Any] = json.loads(path.read_bytes())
    return {concept: get(f"{path}, concept {concept}", told, "parents", list) for concept, told in concepts.items()}


def _splits(path: Path, known: Mapping[str, Any]) -> dict[str, dict[str, frozenset[str]]]:
    found: dict[str, dict[str, frozenset[str]]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            row, place = json.loads(line), f"{path}, line {number:,}"
            labels = get(place, row, "concepts", list)
            if strange := [label for label in labels if label not in known]:
                raise GoldSetError(f"{place} has the concept {strange[0]!r}, which {DESCRIPTORS} lacks. {RESTORE}")
            found.setdefault(get(place, row, "split", str), {})[get(place, row, "id", str)] = frozenset(labels)
    return found


# --- rankings


def read_ranking(path: Path, documents: Collection[str], labels: Collection[str]) -> Run:
    """What a system says of the documents, from a TREC run or a table of scores. EvaluationError, a sentence, if it is
    neither, or says nothing of any of them."""
    if path.is_dir():
        raise EvaluationError(
            f"{path} is a folder, and ranked labels are in one file, a TREC run with a line for each label of each "
            "document; name that file."
        )
    try:
        format, run = format_of(path) if path.is_file() else None, None
        if format:
            check_file(path, format)
            header = header_of(path, format)
            run = _table_of(path, format, header, documents, labels) if "id" in header else None
        run = run or read_run(path, documents, labels)
    except CorpusError as error:
        raise EvaluationError(str(error)) from error
    if run.without == len(documents):
        raise EvaluationError(
            f"{path} has no line of any of the {len(documents):,} documents measured; give the run of these documents."
        )
    return run


def _table_of(
    path: Path, format: str, header: Sequence[str], documents: Collection[str], labels: Collection[str]
) -> Run:
    """An empty cell is no score."""
    if strange := [column for column in header if column not in labels and column != "id"]:
        raise CorpusError(
            f"{path} has the column {strange[0][:40]!r}, which is not one of the {len(labels):,} labels; correct it, "
            "or leave it out."
        )
    # Objects of JSON need not have the same labels.
    scored = labels if format == "jsonl" else [column for column in header if column in labels]
    columns = Columns({"id": "id"} | {f"score {label}": label for label in scored}, ("id",))
    scores: dict[str, dict[str, float]] = {}
    for line, raw in read_rows(path, format, columns, MAX_LINE, lambda count: None):
        where = f"{path}, line {line:,}:"
        if isinstance(raw, Fault):
            raise CorpusError(f"{where} {raw.reason}")
        try:
            document = read_id(raw.get("id"))
        except RecordError as error:
            raise CorpusError(f"{where} {error}") from error
        if document in scores:
            raise CorpusError(f"{where} {document} has a row already; give each document one.")
        said = {label: raw.get(f"score {label}") for label in scored}
        scores[document] = {
            label: _score(score, f"{where} the score of {label}")
            for label, score in said.items()
            if score not in (None, "")
        }
    found = {document: scores.get(document, {}) for document in documents}
    outside = [document for document in scores if document not in found]
    return Run(path.name, found, outside, sum(not each for each in found.values()))


def _score(value: Any, where: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = float("nan")
    if not isfinite(score):
        raise CorpusError(f"{where} is {str(value)[:40]!r}; write a finite number such as 0.93.")
    return score


def sentences(run: Run) -> list[str]:
    """What is reported of documents without a ranking, and of rankings of other documents."""
    told = []
    if outside := len(run.outside):
        documents = are(outside, "document is", "documents are")
        told.append(f"{documents} not among those measured, without effect on any figure.")
    if run.without:
        documents = are(run.without, "document measured has", "documents measured have")
        told.append(f"{documents} no line; there nothing counts as found.")
    return told


# --- the report


@dataclass(frozen=True)
class System:
    """What a system says of the documents measured. groups: ALL or a bucket -> those that have gold labels of it.
    answers: PLAIN, WIDENED -> what is taken for its answers, to all documents."""

    run: Run
    groups: Mapping[str, Sequence[Judged]]
    answers: Mapping[str, Sequence[Answered]]


def grade(
    predictions: Path,
    sets: Sequence[PublishedSet],
    against: Path | None = None,
    *,
    split: str | None = None,
    first: int | None = None,
    threshold: float | None = None,
    frequent_over: int | None = None,
) -> dict[str, Any]:
    """The report. split: whose documents are measured, TEST unless another is named. first, threshold: an answer is so
    many first labels, FIRST of them, or those with such a score. frequent_over: counts the buckets anew.

    EvaluationError if the runs do not fit the set.
    """
    if len(sets) > 1:
        raise EvaluationError(
            f"{len(sets)} sets of documents are given, and a run is for one; measure on each by itself."
        )
    if first is not None and threshold is not None:
        raise EvaluationError(
            "--first and --threshold both say which labels are taken for a document's answer; give one of them."
        )
    [gold], split = sets, split or TEST
    first = FIRST if threshold is None and first is None else first
    documents = read_documents(gold, frequent_over)
    truth = _truth(gold, documents, split)
    paths = [path for path in (predictions, against) if path]
    of_files = system_names(paths)
    runs = [read_ranking(path, truth, documents.parents) for path in paths]
    systems = [_system(each, truth, documents, first, threshold) for each in runs]
    names = [run.system for run in runs] if len({run.system for run in runs}) == len(runs) else of_files
    seed = f"{gold.digest}:{split}"
    comparison = {"test": RANDOMIZATION, "rows": _compared(*systems, seed=seed)} if against else None
    return {
        "kind": evaluation_report.KIND,
        "form": "labels",
        "unit": "document",
        "sections": SECTIONS,
        "names": NAMES,
        "head": [
            *({"measure": measure, "of": {"labels": ALL, "k": str(AT)}} for measure in TESTED),
            {"measure": "micro_f1", "of": {"answers": PLAIN}},
        ],
        "words": _words(gold, truth, split, documents, first, threshold),
        "reading": list(READING),
        "predictor": described(names[0]),
        "gold": [gold.described()],
        "rows": list(_rows(systems[0], seed)),
        "comparison": comparison and {"other": described(names[1])} | comparison,
        "told": [f"{name}: {said}" for name, run in zip(names, runs, strict=True) for said in sentences(run)],
        "warnings": unfinished_ones(sets),
    }


def _truth(gold: PublishedSet, documents: LabelledDocuments, split: str) -> Mapping[str, frozenset[str]]:
    if split in documents.splits:
        return documents.splits[split]
    there = ", ".join(sorted(documents.splits)) or "no documents at all"
    raise EvaluationError(
        f"The set {gold.name} in {gold.folder} has no documents in the split {split}, only in: {there}; name another "
        "with --split, or export the set with one."
    )


def _system(
    run: Run,
    truth: Mapping[str, frozenset[str]],
    documents: LabelledDocuments,
    first: int | None,
    threshold: float | None,
) -> System:
    rankings = run.rankings()
    judged = [Judged(labels, rankings[key]) for key, labels in truth.items()]
    if threshold is None:
        answers = measures.first_of(judged, first or FIRST)
    else:
        answers = [Answered(labels, measures.above(run.scores[key], threshold)) for key, labels in truth.items()]
    groups = {ALL: measures.with_gold(judged)}
    groups |= {name: measures.within(judged, labels) for name, labels in documents.buckets.items()}
    return System(run, groups, {PLAIN: answers, WIDENED: measures.widened(answers, documents.parents)})


def _words(
    gold: PublishedSet,
    truth: Mapping[str, frozenset[str]],
    split: str,
    documents: LabelledDocuments,
    first: int | None,
    threshold: float | None,
) -> dict[str, list[str]]:
    vocabulary = gold.manifest["published"]["vocabulary"]
    frequent, few, zero = (f"{len(documents.buckets[name]):,}" for name in BUCKETS)
    taken = f"with a score of {threshold:g} or more" if threshold is not None else f"ranked among the first {first}"
    without = sum(not labels for labels in truth.values())
    unlabelled = f"{are(without, 'document has', 'documents have')} no gold label, and no part in the measures at K."
    return {
        "gold": [
            f"Measured on {many(len(truth), 'document')} of the split {split}, with labels of the vocabulary "
            f"{vocabulary['name']}, version {vocabulary['version']} ({many(vocabulary['concepts'], 'concept')}).",
            *[unlabelled] * bool(without),
            f"Labels used: {frequent} frequent (in more than {many(documents.frequent_over, 'document')} of train), "
            f"{few} few-shot (in fewer, at least one), {zero} zero-shot (in none).",
        ],
        "answers": [
            f"A document’s answer is its labels {taken}.",
            "With all ancestors: those of each label are added on both sides, so that a label near the right one costs "
            "less than one far from it.",
        ],
    }


# --- rows


def _at(labels: str, k: int) -> dict[str, str]:
    return {"labels": labels, "k": str(k)}


def _rows(system: System, seed: str) -> Iterator[Row]:
    for labels, judged in system.groups.items():
        note = "" if judged else "no document has such a label"
        for measure, of_each in measures.means(judged).items():
            for k, found in enumerate(of_each, 1):
                yield row(measure, _at(labels, k), found, len(judged), note)
    for answers, answered in system.answers.items():
        found = measures.micro(answered, seed=seed)
        for measure, counts in (
            ("precision", f"{found.hits:,} of {found.said:,}"),
            ("recall", f"{found.hits:,} of {found.gold:,}"),
            ("f1", ""),
        ):
            share = getattr(found, measure)
            told = "; ".join(filter(None, (counts, _why_none(share, answered))))
            yield row(f"micro_{measure}", {"answers": answers}, _apart(share), len(answered), told)


def _apart(found: Share) -> Difference | None:
    if found.value is None:
        return None
    return Difference(found.value, -1.0 if found.low is None else found.low, 1.0 if found.high is None else found.high)


def _why_none(found: Share, answered: Sequence[Answered]) -> str:
    """Why a figure of answers has no value or no interval."""
    if found.value is None:
        return NO_UNITS
    if found.low is not None:
        return ""
    return (
        f"fewer than {LEAST_UNITS} documents" if len(answered) < LEAST_UNITS else "too little variation for an interval"
    )


def _compared(first: System, second: System, *, seed: str) -> list[Row]:
    rows = []
    for labels, ones in first.groups.items():
        if ones:
            others = second.groups[labels]
            p_values = measures.p_values(ones, others, AT, seed=f"{seed}:{labels}")
            for measure, of_each in measures.differences(ones, others).items():
                for k, found in enumerate(of_each, 1):
                    p = p_values[measure] if k == AT and measure in TESTED else None
                    rows.append(difference_row(measure, _at(labels, k), found, len(ones), "", p))
    for answers, ones in first.answers.items():
        others = second.answers[answers]
        p = measures.micro_p_value(ones, others, seed=f"{seed}:{answers}")
        for measure, share in measures.micro_differences(ones, others, seed=seed).items():
            tested = p if measure == "f1" else None
            rows.append(
                difference_row(
                    f"micro_{measure}", {"answers": answers}, _apart(share), len(ones), _why_none(share, ones), tested
                )
            )
    return holm_corrected(rows)
