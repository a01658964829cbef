"""Rankings of labels for documents, as systems give them: TREC runs, tables, and ranked predictors of a corpus.

A table has the column id and a column of scores for each label, or the columns id and label, where a cell has the
labels of a document, or a row has one of them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any

from annotate.evaluation.subjects import EvaluationError, is_file
from annotate.reports.tables import are
from corpora.core import CorpusError
from corpora.core.records import RecordError, read_id
from corpora.predictions.prediction_rows import FIELDS
from corpora.predictions.rankings import Run, ranked_for, read_run
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, header_of, named_columns, read_rows
from corpora.sources.text import Fault


@dataclass(frozen=True)
class Ranked(Run):
    """has_scores: whether labels have scores; else they only have an order."""

    has_scores: bool = True


def ranking_of(
    spelled: str,
    documents: Collection[str],
    labels: Collection[str],
    *,
    corpus: str,
    column: Sequence[str] = (),
    file_format: str | None = None,
) -> Run:
    """What a file, or a ranked predictor of a corpus, says of the documents. labels: all that there are. column,
    file_format: how tables are read. EvaluationError, a sentence, where there is nothing that can be measured."""
    if is_file(spelled):
        return read_ranking(Path(spelled), documents, labels, named_columns(column, FIELDS), file_format)
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
