"""Predictions for documents with several labels, read and measured on an exported set: ranked labels, or sets of them.

A file is a TREC run, or a table with the column id and a column of scores for each label, or the columns id and label,
where a cell has the labels of a document, or a row has one of them. kinds/forms/labels.py has the measures.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

from annotate.core import ranked_labels as measures
from annotate.core.estimation import LEAST_COUNT
from annotate.core.label_shares import BUCKETS, FEW, FREQUENT, ZERO, buckets
from annotate.core.ranked_labels import Answered, Judged
from annotate.core.splits import TEST, TRAIN
from annotate.evaluation.given import EvaluationError, is_file
from annotate.evaluation.prediction_files import PublishedSet, described, system_names, unfinished_ones
from annotate.goldsets.manifest import RESTORE, GoldSetError, get
from annotate.kinds.forms.labels import ALL, PLAIN, TESTED, WIDENED, Measures
from annotate.reports import evaluation_report
from annotate.reports.tables import are, many
from corpora.columns import Columns, named_columns
from corpora.core.errors import CorpusError
from corpora.core.predictions import FIELDS
from corpora.core.records import RecordError, read_id
from corpora.files import check_file, format_of
from corpora.lines import Fault
from corpora.ranked import ranked_for
from corpora.readers import header_of, read_rows
from corpora.trec_run import Run, read_run

# Concept -> its label and its parents: all concepts of the vocabulary. The file of EURLEX57K, or that of other sets.
DESCRIPTORS = ("EURLEX57K/EURLEX57K.json", "concepts.json")
FIRST = 5  # labels that are taken for an answer; about as many as a document of EURLEX57K has
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
    """splits: split -> document -> its labels. parents: each label of the vocabulary -> the labels right above it.
    buckets: bucket -> its labels, frequent ones being those of more than `frequent_over` documents of train."""

    splits: Mapping[str, Mapping[str, frozenset[str]]]
    parents: Mapping[str, list[str]]
    buckets: Mapping[str, frozenset[str]]
    frequent_over: int


def read_documents(gold: PublishedSet, frequent_over: int | None = None) -> LabelledDocuments:
    """The documents of a set. frequent_over: over how many train documents a label is frequent; None for the number of
    the set. A set without train documents has no buckets.

    EvaluationError if they cannot be counted as wished, GoldSetError if the set is not as it should be.
    """
    place = gold.folder / "manifest.json"
    over = frequent_over or get(place, get(place, dict(gold.manifest), "concepts", dict), "frequent_over", int)
    parents = _parents(gold)
    splits = _splits(gold.folder / f"gold{gold.mark}.jsonl", parents)
    if TRAIN not in splits and frequent_over is None:
        return LabelledDocuments(splits, parents, {}, over)
    try:
        counted = buckets({name: rows.values() for name, rows in splits.items()}, TRAIN, frequent_over=over)
    except ValueError as error:
        raise EvaluationError(
            f"--frequent-over cannot be had on the set {gold.name} in {gold.folder}: {error}"
        ) from None
    return LabelledDocuments(splits, parents, counted, over)


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


# --- rankings


@dataclass(frozen=True)
class Ranked(Run):
    """has_scores: whether labels have scores; else they only have an order."""

    has_scores: bool = True


def read_ranking(
    path: Path,
    documents: Collection[str],
    labels: Collection[str],
    columns: Mapping[str, str] | None = None,
    format: str | None = None,
) -> Run:
    """What a system says of the documents. columns: field -> the column of the file; format: where the file's name does
    not tell it. EvaluationError, a sentence, if the file is neither a run nor a table, or has none of the documents."""
    if path.is_dir():
        raise EvaluationError(
            f"{path} is a folder, and labels of documents are in one file, a TREC run or a table; name that file."
        )
    try:
        format = format or (format_of(path) if path.is_file() else None)
        header = []
        if format:
            check_file(path, format)
            header = header_of(path, format)
        table = _Table(path, format or "", documents, labels, columns or {})
        # A run has six cells, in a file of any name.
        is_run = not format or (format == "tsv" and table.id not in header and len(header) not in (2, 3))
        if is_run and columns:
            raise CorpusError(f"{path} is a TREC run, which has no columns to name; leave --column out.")
        run = read_run(path, documents, labels) if is_run else table.read(header)
    except CorpusError as error:
        raise EvaluationError(str(error).replace("--format ", "--file-format ")) from error
    if run.without == len(documents):
        raise EvaluationError(
            f"{path} has no line of any of the {len(documents):,} documents measured; give the run of these documents."
        )
    return run


class _Table:
    """A table of labels while it is read. scores: document -> label -> score; of labels without scores the place in
    their order, below 0."""

    def __init__(
        self, path: Path, format: str, documents: Collection[str], labels: Collection[str], columns: Mapping[str, str]
    ) -> None:
        self.path, self.format, self.documents, self.labels, self.columns = path, format, documents, labels, columns
        self.id, self.label = columns.get("id", "id"), columns.get("label", "label")
        self.scores: dict[str, dict[str, float]] = {}

    def read(self, header: Sequence[str]) -> Ranked:
        others = [column for column in header if column != self.id]
        strange = [column for column in others if column not in self.labels]
        if not strange and others != [self.label] and "label" not in self.columns:
            self._read_scores(header)
            return self._ranked(has_scores=True)
        if self.id in header and self.label not in header and "label" not in self.columns:
            raise CorpusError(
                f"{self.path} has the column {strange[0][:40]!r}, which is not one of the {len(self.labels):,} labels; "
                "correct it, or leave it out."
            )
        return self._ranked(has_scores=self._read_labels())

    def _ranked(self, *, has_scores: bool) -> Ranked:
        found = {document: self.scores.get(document, {}) for document in self.documents}
        outside = [document for document in self.scores if document not in found]
        return Ranked(self.path.name, found, outside, sum(not each for each in found.values()), has_scores)

    def _rows(self, columns: Columns) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Where each row is, its document, and its cells."""
        for line, raw in read_rows(self.path, self.format, columns):
            where = f"{self.path}, line {line:,}:"
            if isinstance(raw, Fault):
                raise CorpusError(f"{where} {raw.reason}")
            try:
                yield where, read_id(raw.get("id")), raw
            except RecordError as error:
                raise CorpusError(f"{where} {error}") from error

    def _read_scores(self, header: Sequence[str]) -> None:
        """An empty cell is no score."""
        # Objects of JSON need not have the same labels.
        scored = self.labels if self.format == "jsonl" else [column for column in header if column in self.labels]
        columns = Columns({"id": self.id} | {f"score {label}": label for label in scored}, ("id",))
        for where, document, raw in self._rows(columns):
            if document in self.scores:
                raise CorpusError(f"{where} {document} has a row already; give each document one.")
            said = {label: raw.get(f"score {label}") for label in scored}
            self.scores[document] = {
                label: _score(score, f"{where} the score of {label}")
                for label, score in said.items()
                if score not in (None, "")
            }

    def _read_labels(self) -> bool:
        """Rows of one or several labels. Returns whether they have scores."""
        score = self.columns.get("score", "score")
        columns = Columns({"id": self.id, "label": self.label, "score": score}, ("id", "label"), bare=True)
        scored: set[bool] = set()
        for where, document, raw in self._rows(columns):
            cell, score = raw.get("label"), raw.get("score")
            labels = [str(each) for each in cell] if isinstance(cell, list) else str(cell or "").split()
            found = self.scores.setdefault(document, {})
            has_score = score not in (None, "")
            if has_score and len(labels) != 1:
                raise CorpusError(f"{where} {len(labels)} labels have one score; write a row for each label.")
            if labels:
                scored.add(has_score)
            if len(scored) > 1:
                raise CorpusError(f"{where} some labels have scores and others none; give each a score, or none.")
            for label in labels:
                if label not in self.labels:
                    raise CorpusError(f"{where} {_unknown(label, self.labels)}")
                if label in found:
                    raise CorpusError(f"{where} {document} has the label {label} twice; give it once.")
                found[label] = _score(score, f"{where} the score of {label}") if has_score else float(-len(found))
        return scored == {True}


def _unknown(label: str, labels: Collection[str]) -> str:
    near = get_close_matches(label, labels, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{label[:40]!r} is not one of the {len(labels):,} labels; correct it, or leave it out.{hint}"


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


def grade(
    spelled: str,
    sets: Sequence[PublishedSet],
    against: str = "",
    *,
    corpus: str = "",
    column: Sequence[str] = (),
    file_format: str | None = None,
    split: str | None = None,
    first: int | None = None,
    threshold: float | None = None,
    frequent_over: int | None = None,
) -> dict[str, Any]:
    """The report. spelled, against: files, or the names of ranked predictors of the corpus. column, file_format: how
    tables are read. split: whose documents are measured, TEST unless another is named. first, threshold: an answer is
    so many first labels, or those with such a score; else FIRST of them, or all of labels without scores.
    frequent_over: counts the buckets anew.

    EvaluationError if the predictions do not fit the set.
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
    documents = read_documents(gold, frequent_over)
    truth = _truth(gold, documents, split)
    every = [each for each in (spelled, against) if each]
    columns = named_columns(column, FIELDS)
    corpus = corpus or (gold.manifest.get("corpus") or {}).get("name", "")
    runs = [
        read_ranking(Path(each), truth, documents.parents, columns, file_format)
        if is_file(each)
        else _of_predictor(each, corpus, truth)
        for each in every
    ]
    answers = [_answer(run, first, threshold) for run in runs]
    systems = [_measures(*each, truth, documents, f"{gold.digest}:{split}") for each in zip(runs, answers, strict=True)]
    names = system_names(every, [run.system for run in runs])
    comparison = {"test": RANDOMIZATION, "rows": systems[0].compared(systems[1])} if against else None
    return {
        "kind": evaluation_report.KIND,
        "form": "labels",
        "unit": "document",
        "sections": SECTIONS,
        "names": NAMES,
        "head": list(Measures.head),
        "words": _words(gold, truth, split, documents, answers[0]),
        "reading": list(READING),
        "predictor": described(names[0]),
        "gold": [gold.described()],
        "rows": list(systems[0].rows()),
        "comparison": comparison and {"other": described(names[1])} | comparison,
        "told": [f"{name}: {said}" for name, run in zip(names, runs, strict=True) for said in sentences(run)],
        "warnings": unfinished_ones(sets),
    }


def _of_predictor(spelled: str, corpus: str, documents: Collection[str]) -> Ranked:
    """What a ranked predictor of a corpus says. EvaluationError where there is none."""
    if not corpus:
        raise EvaluationError(
            f"{spelled} is no file, and the set names no corpus whose predictor it could be; name a file, or the "
            "corpus with --corpus."
        )
    try:
        found = ranked_for(corpus, spelled, documents)
    except CorpusError as error:
        raise EvaluationError(str(error)) from error
    scores = {key: {label: float(-place) for place, label in enumerate(labels)} for key, labels in found.items()}
    return Ranked(spelled, scores, [], sum(not each for each in scores.values()), has_scores=False)


def _answer(run: Run, first: int | None, threshold: float | None) -> tuple[int | None, float | None]:
    """How many first labels, and which least score, make a label part of an answer."""
    has_scores = not isinstance(run, Ranked) or run.has_scores
    if threshold is not None and not has_scores:
        raise EvaluationError(f"--threshold is for scores, and {run.system} has labels without; leave it out.")
    return (first or (FIRST if has_scores else None) if threshold is None else None), threshold


def _measures(
    run: Run,
    answer: tuple[int | None, float | None],
    truth: Mapping[str, frozenset[str]],
    documents: LabelledDocuments,
    seed: str,
) -> Measures:
    """What a system says of the documents measured."""
    (first, threshold), rankings = answer, run.rankings()
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
    return Measures(groups, answers, seed)


def _truth(gold: PublishedSet, documents: LabelledDocuments, split: str) -> Mapping[str, frozenset[str]]:
    if split in documents.splits:
        return documents.splits[split]
    there = ", ".join(sorted(documents.splits)) or "no documents at all"
    raise EvaluationError(
        f"The set {gold.name} in {gold.folder} has no documents in the split {split}, only in: {there}; name another "
        "with --split, or export the set with one."
    )


def _words(
    gold: PublishedSet,
    truth: Mapping[str, frozenset[str]],
    split: str,
    documents: LabelledDocuments,
    answer: tuple[int | None, float | None],
) -> dict[str, list[str]]:
    vocabulary, (first, threshold) = gold.manifest["concepts"]["vocabulary"], answer
    if threshold is not None:
        taken = f"with a score of {threshold:g} or more"
    else:
        taken = f"ranked among the first {first}" if first else "in the predictions, all of them"
    without = sum(not labels for labels in truth.values())
    unlabelled = f"{are(without, 'document has', 'documents have')} no gold label, and no part in the measures at K."
    return {
        "gold": [
            f"Measured on {many(len(truth), 'document')} of the split {split}, with labels of the vocabulary "
            f"{vocabulary['name']}, version {vocabulary['version']} ({many(vocabulary['concepts'], 'concept')}).",
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
