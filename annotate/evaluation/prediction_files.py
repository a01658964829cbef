"""Prediction files: tables with one row per unit, and files with one line per row of a published test file.

A table has a column for the unit's id, and either a column for its label or a score column for each label. It is a TSV,
CSV, JSONL or Parquet file, plain or compressed. A TSV file without a header has the columns `id` and `label`.
"""

import math
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.evaluation.subjects import NAMED, EvaluationError, check_corpus, list_ids
from annotate.reports.tables import many
from corpora.core import CorpusError, listed
from corpora.core.languages import UND
from corpora.core.records import RecordError, read_id
from corpora.core.values import each_once, is_missing, matching, read_value
from corpora.predictions.prediction_rows import Mapped
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, header_of, read_rows
from corpora.sources.text import Fault

ROUNDING_ERROR = 0.005  # of a score with two decimals
SUFFIX = ".prediction"
REFUSED = ""  # replaces the label if the system gave none, which counts as a wrong answer


@dataclass(frozen=True)
class Predictions:
    """A system's predictions for the units of a set, in unit order.

    labels: predicted label of each unit, REFUSED if there is none, (n,).
    scores: probability of each of the set's labels, (n, K); None if the file has only labels.
    notes: sentences for the report about the file.
    others: for each label, the number of items outside the set that have it, if requested.
    mapping: for an imported predictor, the labels that each coarse label includes.
    """

    name: str
    labels: Sequence[str]
    scores: Floats | None
    notes: Sequence[str] = ()
    others: Counter[str] = field(default_factory=Counter)
    mapping: Mapped = field(default_factory=dict)


def read_predictor(
    corpus: str, name: str, ids: Sequence[str], labels: Sequence[str], others: Iterable[str] = ()
) -> Predictions:
    """Return an imported predictor's labels of the units.

    corpus: corpus name.
    name: predictor name.
    ids: ids of the units.
    labels: the set's labels.
    others: ids of items outside the set. Their labels are only counted.

    Raise EvaluationError or CorpusError if the predictor has no label for a unit, or a label that is not in the set.
    """
    check_corpus(name, corpus)
    predictor = find_predictor(corpus, name)
    labels = [*labels, *predictor.mapping]
    predictions = predicted_labels(corpus, predictor, ids, others)
    spellings = {label: _in_set_spelling(label, labels) for label in set(predictions.values())}
    if unknown := {label: 0 for label in spellings.values() if label and label not in labels}:
        raise EvaluationError(_unknown_labels(name, unknown, labels))
    counted = Counter(spellings[label] for label in predictions.values())
    unit_labels = [spellings[predictions[key]] for key in ids]
    counted.subtract(unit_labels)
    refused = unit_labels.count(REFUSED)
    notes = [f"{name}: {_refusals(refused, len(unit_labels))}"] if refused else []
    return Predictions(name, unit_labels, None, notes, +counted, predictor.mapping)


def read_table(
    path: Path,
    ids: Sequence[str],
    labels: Sequence[str],
    *,
    columns: Mapping[str, str],
    format: str | None,
    others: Container[str] = frozenset(),
) -> Predictions:
    """Read predictions for units from a file.

    path: the file.
    ids: ids of the units, (n,).
    labels: the set's labels, (K,).
    columns: mapping from field to column of the file.
    format: format of the file; None to derive it from the file's name.
    others: ids of items outside the set. Their labels are only counted.

    Raise EvaluationError if the file lacks or repeats a unit, or has invalid values.
    """
    try:
        reader = _Reader(path, ids, labels, others)
        reader.read(columns, format)
        reader.check()
        return Predictions(path.name, list(map(str, reader.predicted)), reader.scores, reader.notes(), reader.others)
    except (CorpusError, RecordError) as error:
        raise EvaluationError(str(error).replace("--format ", "--file-format ")) from error


class _Reader:
    """Reader of one prediction file.

    predicted: label of each unit.
    scores: probability of each label for each unit, (n, K); None if the file has no score columns.
    others: for each label, the number of items outside the set that have it.
    lines: line number of each id.
    unknown: for each label that is not in the set, the first line with this label.
    outside: number of rows about items that are neither units nor counted.
    swapped: whether one of these rows has a unit's id in place of its label.
    """

    def __init__(self, path: Path, ids: Sequence[str], labels: Sequence[str], counted: Container[str]) -> None:
        self.path, self.ids, self.labels, self.counted = path, ids, labels, counted
        self.place, self.set_labels = {key: number for number, key in enumerate(ids)}, frozenset(labels)
        self.label_of = each_once(lambda value: _in_set_spelling(read_value(value, labels), labels))
        self.slack = ROUNDING_ERROR * len(labels) + 1e-9
        self.columns = [f"score {label}" for label in labels]  # field names of the scores
        self.predicted: list[str | None] = [None] * len(ids)
        self.scores: Floats | None = None
        self.others: Counter[str] = Counter()
        self.lines: dict[str, int] = {}
        self.repeats: list[tuple[str, int, int]] = []
        self.unknown: dict[str, int] = {}
        self.outside, self.first_id, self.swapped = 0, "", False

    def read(self, named_columns: Mapping[str, str], format: str | None) -> None:
        """Read the file.

        named_columns: mapping from field to the column that the user specified for it.
        format: format of the file; None to derive it from the file's name.
        """
        check_file(self.path, format)
        format = format or format_of(self.path) or ""
        header = header_of(self.path, format)
        id_column, label_column = named_columns.get("id", "id"), named_columns.get("label", "label")
        if format != "jsonl" and (
            missing_columns := [column for column in named_columns.values() if column not in header]
        ):
            raise EvaluationError(
                f"{self.path} has no column {missing_columns[0]!r}, which is named in --column. Its columns are "
                f"{', '.join(header[:20])}."
            )
        # In a table with only an id and a label column, a label can have the same name as a column.
        is_plain = sorted(header) == sorted([id_column, label_column]) and "label" not in named_columns
        scored = [label for label in self.labels if label in header] if id_column in header and not is_plain else []
        has_scores = bool(scored) and len(scored) == len(self.labels)
        if has_scores and id_column in self.labels:
            raise EvaluationError(
                f"The column {id_column!r} of {self.path} contains the ids, but the set has a label with the same "
                "name. Rename the column, for example to item, and specify it with --column id=item."
            )
        if id_column in header and label_column not in named_columns.values():
            _check_header(self.path, header, self.labels, scored)
        is_label_column = label_column in header and not (has_scores and label_column in self.labels)
        self.has_label_column = id_column not in header or is_label_column or "label" in named_columns
        fields = {"id": id_column} | ({"label": label_column} if self.has_label_column else {})
        needed = tuple(fields)
        if has_scores:
            fields |= dict(zip(self.columns, self.labels, strict=True))
            self.scores = np.full((len(self.ids), len(self.labels)), np.nan)
        else:
            fields["score"] = named_columns.get("score", "score")
        for row in read_id_rows(self.path, format, Columns(fields, needed, bare=self.scores is None)):
            self._add(*row)

    def _add(self, line: int, key: str, raw: Mapping[str, Any]) -> None:
        self.first_id = self.first_id or key
        if key not in self.place and key not in self.counted:
            self.outside += 1
            self.swapped = self.swapped or str(raw.get("label", "")).strip() in self.place
            return
        if key in self.lines:
            self.repeats.append((key, line, self.lines[key]))
            return
        self.lines[key] = line
        scores = self._scores(line, raw) if self.scores is not None else []
        if self.has_label_column:
            try:
                label = self.label_of(raw.get("label"))
            except ValueError as error:
                raise EvaluationError(f"{self.path}, line {line:,}: The label {error}.") from error
        else:
            label = self.labels[scores.index(max(scores))] if scores else REFUSED
        if label and label not in self.set_labels:
            self.unknown.setdefault(label, line)
        if key not in self.place:
            self.others[label] += 1
            return
        self.predicted[self.place[key]] = label
        if self.scores is not None:
            self.scores[self.place[key]] = scores or 1 / len(self.labels)

    def _scores(self, line: int, raw: Mapping[str, Any]) -> list[float]:
        """Return a row's scores, scaled to add up to 1. The list is empty if all cells are empty.

        Raise EvaluationError if the cells are not probabilities.
        """
        values = [raw[column] for column in self.columns]
        if all(map(is_missing, values)):
            return []
        scores = [math.nan if isinstance(value, bool) else parse_number(value) for value in values]
        if min(scores) >= 0 and max(scores) <= 1 and abs((total := math.fsum(scores)) - 1) <= self.slack:
            return [score / total for score in scores]
        for label, value, score in zip(self.labels, values, scores, strict=True):
            if not 0 <= score <= 1:
                raise EvaluationError(
                    f"{self.path}, line {line:,}: the score of {label} is {str(value)[:40]!r}. It must be a "
                    "probability from 0 to 1."
                )
        raise EvaluationError(
            f"{self.path}, line {line:,}: the scores add up to {math.fsum(scores):.4g}, not 1. Each score must be the "
            "probability of its label."
        )

    def check(self) -> None:
        """Raise EvaluationError unless each unit has exactly one prediction and all labels are in the set."""
        path, ids = self.path, self.ids
        if self.repeats:
            repeats = [f"{key} (line {line:,}, first in line {first:,})" for key, line, first in self.repeats[:NAMED]]
            raise EvaluationError(f"{path} repeats {listed(repeats, len(self.repeats), 'id')}. Keep one row per item.")
        if self.unknown:
            raise EvaluationError(_unknown_labels(str(path), self.unknown, self.labels))
        if not self.first_id:
            raise EvaluationError(f"{path} contains no rows.")
        missing = [key for key in ids if key not in self.lines]
        if len(missing) == len(ids) and self.swapped:
            raise EvaluationError(
                f"The columns of {path} seem to be swapped, because the label column contains ids of the set. Put "
                "the id first, or specify --column id=COLUMN and --column label=COLUMN."
            )
        if len(missing) == len(ids):
            raise EvaluationError(
                f"{path} has no predictions for the {len(ids):,} items of the set: its first id is {self.first_id}, "
                f"but the first id of the set is {ids[0]}. Specify a file with predictions for these items."
            )
        if missing:
            raise EvaluationError(
                f"{path} has no prediction for {len(missing):,} of the {len(ids):,} items of the "
                f"set{list_ids(missing)}. Add a row for each, with an empty label if the system gave none, or "
                "predict this version of the set."
            )
        if not any(self.predicted):
            raise EvaluationError(
                f"{path} has an empty label for all {len(ids):,} items of the set. Specify the label column with "
                "--column label=COLUMN, or add the labels."
            )

    def notes(self) -> list[str]:
        """Return sentences for the report about the file."""
        sentences = []
        if self.outside:
            sentences.append(f"ignored {many(self.outside, 'row')} for items outside the set.")
        if self.scores is not None and self.has_label_column:
            best = zip(self.scores.argmax(axis=1), self.predicted, strict=True)
            if mismatches := sum(self.labels[index] != label for index, label in best):
                sentences.append(
                    f"in {many(mismatches, 'row')} the label does not have the highest score. Accuracy and similar "
                    "measures use the label; calibration, thresholds and coverage use the scores."
                )
        elif self.scores is not None:
            scores = self.scores[list(map(bool, self.predicted))]
            highest = (scores == scores.max(axis=1, keepdims=True)).sum(axis=1)
            if ties := int((highest > 1).sum()):
                sentences.append(
                    f"in {many(ties, 'row')} several labels have the highest score. The first of these in the task's "
                    "order was used."
                )
        if refused := self.predicted.count(REFUSED):
            sentences.append(_refusals(refused, len(self.predicted)))
        return [f"{self.path.name}: {note}" for note in sentences]


def _refusals(number: int, units: int) -> str:
    subject = "1 item has" if number == 1 else f"{number:,} of {units:,} items have"
    return f"{subject} no label (a refusal), which counts as a wrong answer."


def _check_header(path: Path, header: Sequence[str], labels: Sequence[str], scored: Sequence[str]) -> None:
    """Raise EvaluationError if a header has an id column but neither a label column nor a score column per label."""
    if "id" not in header:
        return
    missing = [label for label in labels if label not in scored]
    if scored and missing and (len(scored) > 1 or "label" not in header):
        raise EvaluationError(
            f"{path} has scores for {', '.join(scored[:NAMED])}, but no column {missing[0]!r}. Add a column for each "
            f"label of the set: {', '.join(labels[:20])}."
        )
    if not scored and "label" not in header:
        near = [name for name in header if get_close_matches(name.casefold(), ["label", *map(str.casefold, labels)])]
        hint = f"; check the spelling of {near[0]!r}" if near else ""
        raise EvaluationError(
            f"{path} has neither a column `label` nor a column for each label of the set, "
            f"{', '.join(labels[:20])}. Its columns are {', '.join(header[:20])}{hint}."
        )


def _in_set_spelling(label: str, labels: Sequence[str]) -> str:
    """Return the set's spelling of a label; REFUSED for an empty label, or for `und` if it is not in the set."""
    label = matching(label, labels)
    return REFUSED if label == UND and UND not in labels else label


def _unknown_labels(path: str, unknown: Mapping[str, int], labels: Sequence[str]) -> str:
    """Return the error message about labels that are not in the set.

    unknown: mapping from label to its first line, 0 if the labels are not from a file.
    """
    descriptions = []
    for label, line in list(unknown.items())[:NAMED]:
        folded = {name.casefold(): name for name in labels}
        near = get_close_matches(label.casefold(), folded, 1)
        places = [f"line {line:,}"] * bool(line) + [f"similar to {folded[name]!r}" for name in near]
        descriptions.append(f"{label[:40]!r}" + (f" ({', '.join(places)})" if places else ""))
    rest = f" and {len(unknown) - NAMED:,} more" if len(unknown) > NAMED else ""
    return (
        f"{path} has labels that are not in the set: {', '.join(descriptions)}{rest}. Use only the set's labels, or "
        f"an empty label if the system gave none: {', '.join(labels[:20])}{' …' if len(labels) > 20 else ''}."
    )


# --- shared by the evaluators


def system_names(sources: Sequence[str | Path], names: Sequence[str] = ()) -> list[str]:
    """Return the names of the systems in a report.

    sources: one system or two, as specified by the user.
    names: preferred names. If they are missing or not distinct, the file or folder names are used; if these are not
        distinct either, `sources` is used.
    """
    for candidates in (list(names), [Path(system).resolve().name for system in sources]):
        if candidates and len(set(candidates)) == len(candidates):
            return candidates
    return list(map(str, sources))


def describe_system(name: str) -> dict[str, str]:
    """Return a system's description in a report."""
    return {"name": name, "version": "", "spelled": name}


def read_id_rows(path: Path, format: str, columns: Columns) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield each table row's line number, id and cells.

    Raise EvaluationError for a row that cannot be read.
    """
    for line, raw in read_rows(path, format, columns):
        try:
            if isinstance(raw, Fault):
                raise RecordError(raw.reason)
            yield line, read_id(raw.get("id")), raw
        except RecordError as error:
            raise EvaluationError(f"{path}, line {line:,}: {error}") from error


def parse_number(value: Any) -> float:
    """Parse the number in a cell. Returns NaN if the cell does not contain a number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def read_lines(path: Path, *, row_count: int, tested: str) -> list[str]:
    """Return the stripped lines of a prediction file with one line per row of a test file.

    path: the prediction file.
    row_count: number of rows of the test file.
    tested: name of the test file, for the message.

    Raise EvaluationError if the file cannot be read, or if its number of lines differs from `row_count`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise EvaluationError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise EvaluationError(f"{path} is not UTF-8. Save it as UTF-8.") from None
    lines = text.split("\n")
    lines = [line.strip() for line in (lines[:-1] if lines[-1] == "" else lines)]
    if len(lines) != row_count:
        raise EvaluationError(
            f"{path} has {len(lines):,} lines, but {tested} has {row_count:,} rows. Write one prediction per row, in "
            "the same order."
        )
    return lines


def check_labels(path: Path, predicted: Iterable[str], labels: Collection[str]) -> None:
    """Raise EvaluationError for the first line that is not one of the labels."""
    for number, value in enumerate(predicted, 1):
        if value not in labels:
            raise EvaluationError(
                f"{path}, line {number:,}: {value[:40]!r} is not a label of the task. The labels are "
                f"{', '.join(labels)}."
            )
