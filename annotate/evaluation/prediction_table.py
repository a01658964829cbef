"""Prediction tables, which have one row per unit with its id and a label, or with a score for each label.

The table is a TSV, CSV, JSONL or Parquet file, plain or compressed. A TSV file may lack a header; its columns are then
id and label.
"""

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.evaluation.prediction_files import number_in, rows_of
from annotate.evaluation.subjects import NAMED, EvaluationError, check_corpus, first_of
from annotate.reports.tables import many
from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.core.records import RecordError
from corpora.core.values import is_missing, matching, read_value
from corpora.predictions.prediction_rows import Mapped
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, header_of
from corpora.sources.rejects import repeated

ROUNDED = 0.005  # rounding error of a score with two decimals
REFUSED = ""  # stands in place of a label if the system gave none, which counts as a wrong answer


@dataclass(frozen=True)
class Predictions:
    """A system's predictions for the units of a set, in the order of the units.

    labels: predicted label of each unit, REFUSED if there is none, (n,).
    scores: probability of each label of the set, (n, K); None if the file has only labels.
    notes: sentences for the report about the file.
    others: number of items outside the set with each label, if these are counted.
    mapping: the labels that each coarse label of an imported predictor stands for.
    """

    name: str
    labels: Sequence[str]
    scores: Floats | None
    notes: Sequence[str] = ()
    others: Counter[str] = field(default_factory=Counter)
    mapping: Mapped = field(default_factory=dict)


def of_predictor(
    corpus: str, spelled: str, ids: Sequence[str], labels: Sequence[str], others: Iterable[str] = ()
) -> Predictions:
    """Return the labels that an imported predictor gives to the units.

    corpus: name of the corpus.
    spelled: name of the predictor.
    ids: ids of the units.
    labels: labels of the set.
    others: ids of items outside the set whose labels are counted as well.

    Raises EvaluationError or CorpusError if the predictor has no label for a unit, or a label that is not in the set.
    """
    check_corpus(spelled, corpus)
    found = find_predictor(corpus, spelled)
    labels = [*labels, *found.mapping]
    said = predicted_labels(corpus, found, ids, others)
    taken = {label: _taken(label, labels) for label in set(said.values())}
    if strange := {label: 0 for label in taken.values() if label and label not in labels}:
        raise EvaluationError(_strange(spelled, strange, labels))
    counted = Counter(taken[label] for label in said.values())
    listed = [taken[said[key]] for key in ids]
    counted.subtract(listed)
    refused = listed.count(REFUSED)
    notes = [f"{spelled}: {_refusals(refused, len(listed))}"] if refused else []
    return Predictions(spelled, listed, None, notes, +counted, found.mapping)


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
    labels: labels of the set, (K,).
    columns: mapping from field to column of the file.
    format: format of the file, None to derive it from the file's name.
    others: ids of items outside the set whose labels are counted as well.

    Raises EvaluationError if the file lacks or repeats a unit, or has invalid values.
    """
    try:
        reader = _Reader(path, ids, labels, others)
        reader.read(columns, format)
        reader.check()
        return Predictions(path.name, list(map(str, reader.said)), reader.scores, reader.notes(), reader.others)
    except (CorpusError, RecordError) as error:
        raise EvaluationError(str(error).replace("--format ", "--file-format ")) from error


class _Reader:
    """Reader of one file of predictions.

    said: label of each unit.
    scores: probability of each label for each unit, (n, K); None if the file has no score columns.
    others: number of items outside the set with each label.
    lines: line number of each id.
    strange: for each label that is not in the set, the line on which it first occurs.
    outside: number of rows about items that are not counted.
    swapped: whether one of these rows has a unit's id where the label should be.
    """

    def __init__(self, path: Path, ids: Sequence[str], labels: Sequence[str], further: Container[str]) -> None:
        self.path, self.ids, self.labels, self.further = path, ids, labels, further
        self.place, self.known = {key: number for number, key in enumerate(ids)}, frozenset(labels)
        self.slack = ROUNDED * len(labels) + 1e-9
        self.columns = [f"score {label}" for label in labels]  # field names of the scores
        self.said: list[str | None] = [None] * len(ids)
        self.scores: Floats | None = None
        self.others: Counter[str] = Counter()
        self.lines: dict[str, int] = {}
        self.repeats: list[tuple[str, int, int]] = []
        self.strange: dict[str, int] = {}
        self.outside, self.first_id, self.swapped = 0, "", False

    def read(self, own: Mapping[str, str], format: str | None) -> None:
        """Read the file.

        own: mapping from field to the column that the user named for it.
        format: format of the file, None to derive it from the file's name.
        """
        check_file(self.path, format)
        format = format or format_of(self.path) or ""
        header = header_of(self.path, format)
        id_column, label_column = own.get("id", "id"), own.get("label", "label")
        if format != "jsonl" and (lacking := [column for column in own.values() if column not in header]):
            raise EvaluationError(
                f"{self.path} has no column {lacking[0]!r}, which --column names; its first line has: "
                f"{', '.join(header[:20])}."
            )
        # A label may have the same name as a column of a plain table.
        is_plain = sorted(header) == sorted([id_column, label_column]) and "label" not in own
        scored = [label for label in self.labels if label in header] if id_column in header and not is_plain else []
        has_scores = bool(scored) and len(scored) == len(self.labels)
        if has_scores and id_column in self.labels:
            raise EvaluationError(
                f"{self.path}: the column {id_column!r} has the ids, and the set has a label of that name. Rename the "
                "column of the ids, for example to unit, and name it with --column id=unit."
            )
        if id_column in header and label_column not in own.values():
            _check_header(self.path, header, self.labels, scored)
        is_label_said = label_column in header and not (has_scores and label_column in self.labels)
        self.says_label = id_column not in header or is_label_said or "label" in own
        named = {"id": id_column} | ({"label": label_column} if self.says_label else {})
        needed = tuple(named)
        if has_scores:
            named |= dict(zip(self.columns, self.labels, strict=True))
            self.scores = np.full((len(self.ids), len(self.labels)), np.nan)
        else:
            named["score"] = own.get("score", "score")
        for row in rows_of(self.path, format, Columns(named, needed, bare=self.scores is None)):
            self._take(*row)

    def _take(self, line: int, key: str, raw: Mapping[str, Any]) -> None:
        self.first_id = self.first_id or key
        if key not in self.place and key not in self.further:
            self.outside += 1
            self.swapped = self.swapped or str(raw.get("label", "")).strip() in self.place
            return
        if key in self.lines:
            self.repeats.append((key, line, self.lines[key]))
            return
        self.lines[key] = line
        found = self._scores(line, raw) if self.scores is not None else []
        if self.says_label:
            try:
                label = _taken(read_value(raw.get("label"), self.labels), self.labels)
            except ValueError as error:
                raise EvaluationError(f"{self.path}, line {line:,}: The label {error}.") from error
        else:
            label = self.labels[found.index(max(found))] if found else REFUSED
        if label and label not in self.known:
            self.strange.setdefault(label, line)
        if key not in self.place:
            self.others[label] += 1
            return
        self.said[self.place[key]] = label
        if self.scores is not None:
            self.scores[self.place[key]] = found or 1 / len(self.labels)

    def _scores(self, line: int, raw: Mapping[str, Any]) -> list[float]:
        """Return the scores of a row, scaled to add up to 1, or an empty list if all cells are empty.

        Raises EvaluationError if the cells are not probabilities.
        """
        values = [raw[column] for column in self.columns]
        if all(map(is_missing, values)):
            return []
        found = [math.nan if isinstance(value, bool) else number_in(value) for value in values]
        if min(found) >= 0 and max(found) <= 1 and abs((total := math.fsum(found)) - 1) <= self.slack:
            return [score / total for score in found]
        for label, value, score in zip(self.labels, values, found, strict=True):
            if not 0 <= score <= 1:
                raise EvaluationError(
                    f"{self.path}, line {line:,}: the score of {label} is {str(value)[:40]!r}; it must be a "
                    "probability, from 0 to 1."
                )
        raise EvaluationError(
            f"{self.path}, line {line:,}: the scores add up to {math.fsum(found):.4g}, not 1; give a probability for "
            "each label."
        )

    def check(self) -> None:
        """Check that each unit has exactly one prediction and that all labels are in the set.

        Raises EvaluationError otherwise.
        """
        path, ids = self.path, self.ids
        if self.repeats:
            told = str(repeated(path, self.repeats[:NAMED], len(self.repeats)))
            raise EvaluationError(told.replace("each id. Nothing was imported.", "each unit."))
        if self.strange:
            raise EvaluationError(_strange(str(path), self.strange, self.labels))
        if not self.first_id:
            raise EvaluationError(f"{path} holds no rows.")
        missing = [key for key in ids if key not in self.lines]
        if len(missing) == len(ids) and self.swapped:
            raise EvaluationError(
                f"{path}: the columns seem to be swapped, as ids of the set stand in the place of labels; put the id "
                "first, or name the columns with --column id=COLUMN and --column label=COLUMN."
            )
        if len(missing) == len(ids):
            raise EvaluationError(
                f"{path} predicts none of the {len(ids):,} units of the set: its first id is {self.first_id}, and the "
                f"set's is {ids[0]}. Give the predictions of these units, with their ids."
            )
        if missing:
            raise EvaluationError(
                f"{path} has no prediction for {len(missing):,} of the {len(ids):,} units of the set"
                f"{first_of(missing)}. Add a row for each, with an empty label where the system gave none; if the file "
                "was made for another version of the set, predict this one."
            )
        if not any(self.said):
            raise EvaluationError(
                f"{path} has an empty label for all {len(ids):,} units of the set, so there is nothing to measure; "
                "name the column of the labels with --column label=COLUMN, or predict them."
            )

    def notes(self) -> list[str]:
        """Return sentences for the report about the file."""
        found = []
        if self.outside:
            rows = "1 row is about a unit" if self.outside == 1 else f"{self.outside:,} rows are about units"
            found.append(f"{rows} outside the set, without effect on any figure.")
        if self.scores is not None and self.says_label:
            best = zip(self.scores.argmax(axis=1), self.said, strict=True)
            if unlike := sum(self.labels[place] != label for place, label in best):
                found.append(
                    f"in {many(unlike, 'row')} the label is not the one with the highest score. Accuracy and the like "
                    "go by the label; calibration, thresholds and coverage by the scores."
                )
        elif self.scores is not None:
            scores = self.scores[list(map(bool, self.said))]
            highest = (scores == scores.max(axis=1, keepdims=True)).sum(axis=1)
            if ties := int((highest > 1).sum()):
                found.append(
                    f"in {many(ties, 'row')} several labels have the highest score; the first of them in the task's "
                    "order was taken."
                )
        if refused := self.said.count(REFUSED):
            found.append(_refusals(refused, len(self.said)))
        return [f"{self.path.name}: {words}" for words in found]


def _refusals(number: int, units: int) -> str:
    found = "1 unit has" if number == 1 else f"{number:,} of {units:,} units have"
    return f"{found} no label, a refusal, which counts as a wrong answer."


def _check_header(path: Path, header: Sequence[str], labels: Sequence[str], scored: Sequence[str]) -> None:
    """Check that a header with an id column also has a label column, or a score column for each label.

    Raises EvaluationError otherwise.
    """
    if "id" not in header:
        return
    lacking = [label for label in labels if label not in scored]
    if scored and lacking and (len(scored) > 1 or "label" not in header):
        raise EvaluationError(
            f"{path} has scores for {', '.join(scored[:NAMED])}, but no column {lacking[0]!r}; give a column for each "
            f"label of the set: {', '.join(labels[:20])}."
        )
    if not scored and "label" not in header:
        near = [name for name in header if get_close_matches(name.casefold(), ["label", *map(str.casefold, labels)])]
        hint = f" Is {near[0]!r} one of them?" if near else ""
        raise EvaluationError(
            f"{path} has the columns {', '.join(header[:20])}, and neither `label` nor one for each label of the set: "
            f"{', '.join(labels[:20])}.{hint}"
        )


def _taken(label: str, labels: Sequence[str]) -> str:
    """Return the set's spelling of a label; REFUSED if it is empty, or if it is und and und is not in the set."""
    label = matching(label, labels)
    return REFUSED if label == UND and UND not in labels else label


def _strange(path: str, strange: Mapping[str, int], labels: Sequence[str]) -> str:
    told = []
    for label, line in list(strange.items())[:NAMED]:
        folded = {each.casefold(): each for each in labels}
        near = get_close_matches(label.casefold(), folded, 1)
        places = [f"line {line:,}"] * bool(line) + [f"near {folded[each]!r}" for each in near]
        told.append(f"{label[:40]!r}" + (f" ({', '.join(places)})" if places else ""))
    more = f" and {len(strange) - NAMED:,} more" if len(strange) > NAMED else ""
    return (
        f"{path} has labels that are not in the set: {', '.join(told)}{more}. The set's labels are "
        f"{', '.join(labels[:20])}{' …' if len(labels) > 20 else ''}; write them so, and an empty label where the "
        "system gave none."
    )
