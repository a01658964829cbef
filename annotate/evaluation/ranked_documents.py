"""Evaluation of ranked labels on an exported set of multi-label documents.

This module reads the predictions, and kinds/forms/labels.py computes the measures.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

from annotate.core.draws.splits import BUCKETS, FEW, FREQUENT, TEST, TRAIN, ZERO, buckets
from annotate.core.estimation.proportions import LEAST_COUNT
from annotate.core.measures import ranked_labels as measures
from annotate.core.measures.ranked_labels import Answered, Judged
from annotate.evaluation.blind_arm import build_reference, has_suggested, statement, suggesters, warning
from annotate.evaluation.prediction_files import describe_system, parse_number, read_id_rows, system_names
from annotate.evaluation.record_sets import AGREED, PublishedSet, unfinished_warnings
from annotate.evaluation.subjects import EvaluationError, check_corpus, is_file
from annotate.goldsets.gold_set import objects_in
from annotate.goldsets.set_folder import RESTORE, GoldSetError, get
from annotate.kinds.forms.labels import ALL, PLAIN, WIDENED, Measures
from annotate.reports.evaluation_report import texts
from annotate.reports.tables import are, many
from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.predictions.prediction_rows import FIELDS
from corpora.predictions.predictor_labels import Predictor, find_imported, predicted_labels
from corpora.predictions.rankings import Run, load_rankings, read_run
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, header_of, named_columns

# File with each concept's label and parents. EURLEX57K's file has the first of these names, other sets' the second.
DESCRIPTORS = ("EURLEX57K/EURLEX57K.json", "concepts.json")
FIRST = 5  # number of top labels taken as the answer, roughly the number of labels of a document in EURLEX57K
TEXTS = texts("ranked")
# Names of the buckets, after Chalkidis et al. 2019.
NAMES = {
    ALL: "all labels",
    FREQUENT: "frequent labels",
    FEW: "few-shot labels",
    ZERO: "zero-shot labels",
    PLAIN: "labels as they are",
    WIDENED: "with all ancestors",
}


@dataclass(frozen=True)
class LabelledDocuments:
    """The documents of one split of a set.

    truth: mapping from document to its labels.
    parents: mapping from label to its direct parents in the vocabulary.
    buckets: mapping from bucket to its labels; empty if there are no training documents.
    frequent_over: a label is frequent if more than this many training documents have it.
    """

    gold: PublishedSet
    split: str
    truth: Mapping[str, frozenset[str]]
    parents: Mapping[str, list[str]]
    buckets: Mapping[str, frozenset[str]]
    frequent_over: int


def read_documents(
    gold: PublishedSet, split: str, frequent_over: int | None, *, blind: bool = False
) -> LabelledDocuments:
    """Read the documents of a split.

    gold: the set.
    split: name of the split.
    frequent_over: a label is frequent if more than this many training documents have it; None for the number in the
        set's manifest.
    blind: whether to compute the labels from answers given without suggestions, see `blind_arm`.

    Raise EvaluationError if the split is empty or the buckets cannot be counted, and GoldSetError if the set is
    damaged.
    """
    manifest_path, manifest = gold.folder / "manifest.json", dict(gold.manifest)
    over = frequent_over or get(manifest_path, get(manifest_path, manifest, "concepts", dict), "frequent_over", int)
    names = [name for name in DESCRIPTORS if name in get(manifest_path, manifest, "files", dict)]
    if not names:
        raise GoldSetError(f"{manifest_path} does not list {' or '.join(DESCRIPTORS)} among its files. {RESTORE}")
    path = gold.folder / names[0]
    concepts: dict[str, Any] = json.loads(path.read_bytes())
    parents = {
        concept: get(f"{path}, concept {concept}", entry, "parents", list) for concept, entry in concepts.items()
    }
    splits = _splits(gold.folder / f"gold{gold.mark}.jsonl", parents)
    counted: Mapping[str, frozenset[str]] = {}
    if TRAIN in splits or frequent_over is not None:
        try:
            counted = buckets({name: rows.values() for name, rows in splits.items()}, TRAIN, frequent_over=over)
        except ValueError as error:
            raise EvaluationError(
                f"--frequent-over cannot be used with the set {gold.name} in {gold.folder}: {error}"
            ) from None
    if split not in splits:
        available_splits = ", ".join(sorted(splits)) or "none"
        raise EvaluationError(
            f"The set {gold.name} in {gold.folder} has no documents in the split {split}. Its splits are: "
            f"{available_splits}. Choose one with --split, or export the set with this split."
        )
    truth = _blind_labels(gold, splits[split]) if blind else splits[split]
    return LabelledDocuments(gold, split, truth, parents, counted, over)


def _blind_labels(gold: PublishedSet, truth: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return labels computed from answers without suggestions, by id. Documents without such answers are left out."""
    reference = build_reference(gold.manifest)
    rows = (row for _, row in objects_in(gold.folder / f"gold{gold.mark}.jsonl") if row["id"] in truth)
    labels = {row["id"]: frozenset(answer.label.split()) for row in rows if (answer := reference(row))}
    if not labels:
        raise EvaluationError(
            f"{', '.join(suggesters(gold.manifest))} suggested labels in {gold.name}, and nobody has answered without "
            "seeing them, so it cannot be measured on this set. Open a task with a larger --blind-share."
        )
    return labels


def _splits(path: Path, vocabulary: Mapping[str, Any]) -> dict[str, dict[str, frozenset[str]]]:
    splits: dict[str, dict[str, frozenset[str]]] = {}
    for location, row in objects_in(path):
        labels = get(location, row, "concepts", list)
        if unknown := [label for label in labels if label not in vocabulary]:
            raise GoldSetError(
                f"{location} contains the concept {unknown[0]!r}, which is not in the vocabulary. {RESTORE}"
            )
        splits.setdefault(get(location, row, "split", str), {})[get(location, row, "id", str)] = frozenset(labels)
    return splits


# --- the report


def grade(
    source: str,
    sets: Sequence[PublishedSet],
    against: str = "",
    *,
    split: str = TEST,
    first: int | None = None,
    threshold: float | None = None,
    frequent_over: int | None = None,
    **reading: Any,
) -> dict[str, Any]:
    """Evaluate rankings and return the report.

    source: path of a file, or name of a ranked predictor in the corpus.
    sets: a sequence with the gold set as its only element.
    against: path or name of a second system's rankings; "" for no comparison.
    split: name of the split to measure.
    first: number of top labels taken as the answer. By default FIRST, or all labels if they have no scores.
    threshold: minimum score of the labels taken as the answer, instead of `first`.
    frequent_over: see `read_documents`.
    reading: options for reading the rankings, see `ranking_of`.

    Raise EvaluationError if the predictions cannot be measured.
    """
    documents, spellings = read_documents(sets[0], split, frequent_over), [name for name in (source, against) if name]
    reading.setdefault("corpus", (sets[0].manifest.get("corpus") or {}).get("name", ""))
    runs = [ranking_of(spelling, documents.truth, documents.parents, **reading) for spelling in spellings]
    warnings = [*unfinished_warnings(sets), *_automatic_labels(documents, spellings)]
    suggested_by = suggesters(sets[0].manifest)
    if any(_has_suggested(documents, reading["corpus"], *system) for system in zip(spellings, runs, strict=True)):
        documents = read_documents(sets[0], split, frequent_over, blind=True)
        runs = [ranking_of(spelling, documents.truth, documents.parents, **reading) for spelling in spellings]
        warnings.insert(0, statement(suggested_by, len(documents.truth), "document"))
    elif suggested_by:
        warnings.insert(0, warning(suggested_by))
    if first is not None and threshold is not None:
        raise EvaluationError(TEXTS.words["both"])
    firsts = [first or (FIRST if run.has_scores else None) for run in runs]
    systems = [_measures(*run_and_first, threshold, documents) for run_and_first in zip(runs, firsts, strict=True)]
    names = system_names(spellings, [run.system for run in runs])
    test, comparison = TEXTS.words["randomization"], None
    if against:
        comparison = {"other": describe_system(names[1]), "test": test, "rows": systems[0].compared(systems[1])}
    return {
        "form": "labels",
        "unit": "document",
        "sections": TEXTS.sections,
        "names": NAMES,
        "head": list(Measures.head),
        "words": _words(documents, firsts[0], threshold),
        "reading": [sentence.format(least=LEAST_COUNT) for sentence in TEXTS.reading],
        "predictor": describe_system(names[0]),
        "rows": list(systems[0].rows()),
        "comparison": comparison,
        "told": [f"{name}: {sentence}" for name, run in zip(names, runs, strict=True) for sentence in sentences(run)],
        "warnings": warnings,
    }


def _automatic_labels(documents: LabelledDocuments, spellings: Sequence[str]) -> list[str]:
    """Warn if some documents were labelled only by voters, who agree on their labels.

    Raise EvaluationError if one of the systems is a voter, because these labels are its own.
    """
    gold, voters = documents.gold, documents.gold.manifest["task"].get("voters", ())
    if not voters:
        return []
    rows = objects_in(gold.folder / f"gold{gold.mark}.jsonl")
    unread = sum(row["stratum"] == AGREED and row["id"] in documents.truth for _, row in rows)
    names = {*voters, *(voter.partition("@")[0] for voter in voters)}
    if unread and (system := next((name for name in spellings if name in names and not is_file(name)), "")):
        raise EvaluationError(TEXTS.words["voted"].format(system=system, name=gold.name, unread=f"{unread:,}"))
    return [TEXTS.words["unread"].format(unread=f"{unread:,}", name=gold.name)] if unread else []


def _has_suggested(documents: LabelledDocuments, corpus: str, source: str, run: "Ranked") -> bool:
    """Return whether a system's first labels were shown to the annotators as suggestions."""
    gold = documents.gold

    def is_same() -> bool:
        rankings = run.rankings()
        rows = (row for _, row in objects_in(gold.folder / f"gold{gold.mark}.jsonl") if row["id"] in rankings)
        pairs = [(row["suggested"], rankings[row["id"]]) for row in rows if row.get("suggested")]
        return bool(pairs) and all(suggested == ranking[: len(suggested)] for suggested, ranking in pairs)

    return has_suggested(gold.manifest, corpus, source, is_same)


def _measures(run: "Ranked", top_count: int | None, threshold: float | None, documents: LabelledDocuments) -> Measures:
    """Return a system's measures on the documents.

    run: the system's rankings.
    top_count: number of top labels taken as the answer if `threshold` is None; None for all labels.
    threshold: minimum score of the labels taken as the answer.
    """
    if threshold is not None and not run.has_scores:
        raise EvaluationError(
            f"--threshold requires scores, but the labels of {run.system} have none. Remove the option."
        )
    rankings, truth = run.rankings(), documents.truth
    judged = [Judged(labels, rankings[key]) for key, labels in truth.items()]
    if threshold is None:
        answered = measures.first_of(judged, top_count)
    else:
        answered = [Answered(labels, measures.above(run.scores[key], threshold)) for key, labels in truth.items()]
    groups = {ALL: measures.with_gold(judged)}
    groups |= {name: measures.within(judged, labels) for name, labels in documents.buckets.items()}
    answers = {PLAIN: answered}
    if any(documents.parents.values()):
        answers[WIDENED] = measures.add_ancestors(answered, documents.parents)
    return Measures(groups, answers, f"{documents.gold.digest}:{documents.split}")


def _words(documents: LabelledDocuments, top_count: int | None, threshold: float | None) -> dict[str, list[str]]:
    vocabulary = documents.gold.manifest["concepts"]["vocabulary"]
    if threshold is not None:
        criterion = f"with a score of at least {threshold:g}"
    else:
        criterion = f"ranked among the first {top_count}" if top_count else "in the predictions"
    without = sum(not labels for labels in documents.truth.values())
    unlabelled = (
        f"{are(without, 'document has', 'documents have')} no gold label. The measures at K ignore such documents."
    )
    buckets_used = "The split train has no documents, so labels are not grouped by how often they occur in it."
    if documents.buckets:
        frequent, few, zero = (f"{len(documents.buckets[name]):,}" for name in BUCKETS)
        over = many(documents.frequent_over, "document")
        buckets_used = (
            f"Labels used: {frequent} frequent (in more than {over} of train), {few} few-shot (in fewer, but "
        )
        buckets_used += f"at least one) and {zero} zero-shot (in none)."
    return {
        "gold": [
            f"Measured on {many(len(documents.truth), 'document')} of the split {documents.split}, with labels from "
            f"the vocabulary {vocabulary['name']}, version {vocabulary['version']} "
            f"({many(vocabulary['concepts'], 'concept')}).",
            *[unlabelled] * bool(without),
            buckets_used,
        ],
        "answers": [TEXTS.words["answer"].format(taken=criterion), TEXTS.words["ancestors"]],
    }


# --- rankings of labels: TREC runs, tables, and ranked predictors of a corpus
#
# A table has either an id column and a score column for each label, or the columns `id` and `label`. With `id` and
# `label`, a row contains one or all of a document's labels.


@dataclass(frozen=True)
class Ranked(Run):
    """A ranking of labels for each document.

    has_scores: whether labels have scores and not just an order.
    """

    has_scores: bool = True


def ranking_of(
    source: str,
    documents: Collection[str],
    labels: Collection[str],
    *,
    corpus: str,
    column: Sequence[str] = (),
    file_format: str | None = None,
) -> Ranked:
    """Return the documents' rankings from a file or from a ranked predictor of a corpus.

    source: path of a file, or name of a predictor.
    documents: ids of the documents.
    labels: all labels of the vocabulary.
    corpus: corpus name.
    column: columns of a table, as specified with --column.
    file_format: format of the file; None to derive it from the file's name.

    Raise EvaluationError if there is nothing to measure.
    """
    if is_file(source):
        return read_ranking(Path(source), documents, labels, named_columns(column, FIELDS), file_format)
    check_corpus(source, corpus)
    try:
        rankings = _of_predictor(corpus, source, documents)
    except CorpusError as error:
        raise EvaluationError(str(error)) from error
    scores = {key: {label: float(-rank) for rank, label in enumerate(labels)} for key, labels in rankings.items()}
    return Ranked(source, scores, [], sum(not ranking for ranking in scores.values()), has_scores=False)


def _of_predictor(corpus: str, source: str, documents: Collection[str]) -> Mapping[str, Sequence[str]]:
    """Return a predictor's labels of each document. The predictor either ranks labels or assigns a set of them."""
    predictions = find_imported(corpus, source)
    if predictions.ranked:
        return load_rankings(corpus, source, documents)
    sets = predicted_labels(corpus, Predictor(predictions.name, predictions.version), documents)
    return {key: [] if labels == UND else labels.split() for key, labels in sets.items()}


def read_ranking(
    path: Path,
    documents: Collection[str],
    labels: Collection[str],
    columns: Mapping[str, str] | None = None,
    format: str | None = None,
) -> Ranked:
    """Read a system's rankings of the documents from a run or a table.

    path: the file.
    documents: ids of the documents.
    labels: all labels of the vocabulary.
    columns: mapping from field to column of the file.
    format: format of the file; None to derive it from the file's name.

    Raise EvaluationError if the file is neither a run nor a table, or contains none of the documents.
    """
    if path.is_dir():
        raise EvaluationError(f"{path} is a folder. Specify a file: a TREC run or a table.")
    try:
        format = format or (format_of(path) if path.is_file() else None)
        header = []
        if format:
            check_file(path, format)
            header = header_of(path, format)
        table = _Table(path, format or "", documents, labels, columns or {})
        # A TREC run can have any file name. It has six columns, while a TSV table without an id column has two or
        # three.
        is_run = not format or (format == "tsv" and table.id not in header and len(header) not in (2, 3))
        if is_run and columns:
            raise CorpusError(f"{path} is a TREC run, which has no named columns. Remove --column.")
        run = Ranked(*vars(read_run(path, documents, labels)).values()) if is_run else table.read(header)
    except CorpusError as error:
        raise EvaluationError(str(error).replace("--format ", "--file-format ")) from error
    if run.without == len(documents):
        raise EvaluationError(
            f"{path} contains none of the {len(documents):,} documents that are measured. Specify a file with "
            "rankings of these documents."
        )
    return run


class _Table:
    """Reader of one table of labels.

    scores: mapping from document to {label: score}. If the file has no scores, a label's score is its negative rank.
    """

    def __init__(
        self, path: Path, format: str, documents: Collection[str], labels: Collection[str], columns: Mapping[str, str]
    ) -> None:
        self.path, self.format, self.documents, self.labels, self.columns = path, format, documents, labels, columns
        self.id, self.label = columns.get("id", "id"), columns.get("label", "label")
        self.scores: dict[str, dict[str, float]] = {}

    def read(self, header: Sequence[str]) -> Ranked:
        columns = [column for column in header if column != self.id]
        unknown = [column for column in columns if column not in self.labels]
        if not unknown and columns != [self.label] and "label" not in self.columns:
            self._read_scores(header)
            return self._ranked(has_scores=True)
        if self.id in header and self.label not in header and "label" not in self.columns:
            raise CorpusError(
                f"{self.path} has the column {unknown[0][:40]!r}, which is not one of the {len(self.labels):,} "
                "labels. Correct or remove it."
            )
        return self._ranked(has_scores=self._read_labels())

    def _ranked(self, *, has_scores: bool) -> Ranked:
        scores = {document: self.scores.get(document, {}) for document in self.documents}
        outside = [document for document in self.scores if document not in scores]
        return Ranked(self.path.name, scores, outside, sum(not ranking for ranking in scores.values()), has_scores)

    def _rows(self, columns: Columns) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Yield the location, the document and the cells of each row."""
        for line, document, raw in read_id_rows(self.path, self.format, columns):
            yield f"{self.path}, line {line:,}:", document, raw

    def _read_scores(self, header: Sequence[str]) -> None:
        """Read a table with a score column for each label. An empty cell means that the label has no score."""
        # JSONL has no header, because each line may have different labels.
        scored = self.labels if self.format == "jsonl" else [column for column in header if column in self.labels]
        columns = Columns({"id": self.id} | {f"score {label}": label for label in scored}, ("id",))
        for where, document, raw in self._rows(columns):
            if document in self.scores:
                raise CorpusError(f"{where} {document} already has a row. Write one row per document.")
            cells = {label: raw.get(f"score {label}") for label in scored}
            self.scores[document] = {
                label: _score(score, f"{where} the score of {label}")
                for label, score in cells.items()
                if score not in (None, "")
            }

    def _read_labels(self) -> bool:
        """Read a table whose rows contain one or several labels. Return whether the labels have scores."""
        score = self.columns.get("score", "score")
        columns = Columns({"id": self.id, "label": self.label, "score": score}, ("id", "label"), bare=True)
        scored: set[bool] = set()
        for where, document, raw in self._rows(columns):
            cell, value = raw.get("label"), raw.get("score")
            labels = [str(item) for item in cell] if isinstance(cell, list) else str(cell or "").split()
            scores = self.scores.setdefault(document, {})
            has_score = value not in (None, "")
            if has_score and len(labels) != 1:
                raise CorpusError(
                    f"{where} there is only one score for {len(labels)} labels. Write a row for each label."
                )
            if labels:
                scored.add(has_score)
            if len(scored) > 1:
                raise CorpusError(
                    f"{where} some labels have scores and others do not. Add the missing scores, or remove all scores."
                )
            for label in labels:
                if label not in self.labels:
                    near = get_close_matches(label, self.labels, 1)
                    hint = f" Did you mean {near[0]!r}?" if near else ""
                    problem = f"is not one of the {len(self.labels):,} labels. Correct or remove it.{hint}"
                    raise CorpusError(f"{where} {label[:40]!r} {problem}")
                if label in scores:
                    raise CorpusError(f"{where} {document} has the label {label} twice. Remove one of them.")
                scores[label] = _score(value, f"{where} the score of {label}") if has_score else float(-len(scores))
        return scored == {True}


def _score(value: Any, where: str) -> float:
    if not isfinite(score := parse_number(value)):
        raise CorpusError(f"{where} is {str(value)[:40]!r}, which is not a finite number such as 0.93.")
    return score


def sentences(run: Run) -> list[str]:
    """Return the report's sentences on documents without a ranking and on rankings of documents outside the set."""
    notes = []
    if outside := len(run.outside):
        notes.append(f"ignored {many(outside, 'document')} outside the set.")
    if run.without:
        documents = are(run.without, "measured document has", "measured documents have")
        notes.append(f"{documents} no ranking, so no labels count as predicted there.")
    return notes
