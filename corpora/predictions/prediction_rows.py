"""Read predictions from a file, and map a classifier's labels to ours.

A prediction is a classifier's label for a post or record. A classifier may use `nb` for our label `no`, or `zh` where
annotators distinguish zh-CN and zh-TW. The user must declare the equivalents of such labels. A label with a single
equivalent is renamed, and a label with several equivalents is kept as a coarse class.
"""

import math
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from corpora.core import NAMED, CorpusError
from corpora.core.languages import FASTTEXT_PREFIX, LANGUAGES, UND, code_of, finer, unknown_code
from corpora.core.records import RecordError, read_id, read_number
from corpora.core.values import Respelled, each_once, is_missing, tidy, whole
from corpora.sources.compression import Progress, check_file, format_of
from corpora.sources.readers import Columns, read_rows
from corpora.sources.text import MAX_LINE
from corpora.storage.intake import duplicate_ids, require_valid, validate_rows

FIELDS = ("id", "label", "score")
OBLIGATORY = ("id", "label")

Mapped = Mapping[str, tuple[str, ...]]  # classifier's label -> our equivalent labels
Prediction = tuple[str, str, float | None]  # id, label, score


class _Every(frozenset[str]):
    """A set that contains everything."""

    def __contains__(self, label: object) -> bool:
        return True


# The valid labels for records. Their classes are not languages, so any label is valid.
EVERY_LABEL: Collection[str] = _Every()


class UnknownLabel(RecordError):
    """Raised for a label that is neither a language code, nor `und`, nor declared by the user."""

    def __init__(self, label: str) -> None:
        coarse = LANGUAGES[label].labels if label in LANGUAGES else ()
        reason = f"stands for {', '.join(coarse)}." if coarse else unknown_code(label)
        super().__init__(f"The label {label!r} {reason}")
        self.label, self.is_requested = label, True


def is_label(code: str) -> bool:
    """Return whether annotators can choose a code: `und`, or any code of a single language."""
    return code == UND or (code in LANGUAGES and not LANGUAGES[code].labels)


def read_map(pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Parse declared labels from options such as `zh=zh-CN,zh-TW`.

    Raise RecordError if a declaration is invalid.
    """
    declared: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        label, _, written = pair.partition("=")
        label, targets = label.strip(), tuple(target.strip() for target in written.split(","))
        if not label or not all(targets):
            raise RecordError(f"--map {pair}: expected LABEL=LABEL, or LABEL=LABEL,LABEL for a class of labels.")
        if label in declared:
            raise RecordError(f"--map declares {label} twice. Write all its labels in one option.")
        if invalid := [target for target in targets if not is_label(target)]:
            raise RecordError(f"--map {pair}: {invalid[0]!r} is not a known label, such as de, zh-CN or und.")
        if len(set(targets)) < len(targets):
            raise RecordError(f"--map {pair}: a label occurs twice.")
        # The code of a single language cannot be a class, unless the targets were added under it. For example, pt can
        # be declared as pt-BR,pt-PT if an installation has added these two under pt.
        if len(targets) > 1 and is_label(label) and not set(targets) <= set(finer(label)):
            raise RecordError(
                f"--map {pair}: {label} is the code of one language and cannot stand for several. Rename the class in "
                "the file, for example to sh."
            )
        if len(targets) > 1 and UND in targets:
            raise RecordError(f"--map {pair}: a class must contain only languages, and {UND} is not a language.")
        declared[label] = targets
    return declared


def classes(declared: Mapped) -> dict[str, tuple[str, ...]]:
    """Return the declared labels that are coarse classes, sorted by name."""
    return {label: tuple(sorted(targets)) for label, targets in sorted(declared.items()) if len(targets) > 1}


def read_label(value: object, declared: Mapped, also: Collection[str] = ()) -> tuple[str, bool]:
    """Return the label in a source row, and whether it was converted to a known code.

    A declared label with a single target is renamed to its target.

    also: valid labels in addition to language codes, `und` and declared labels; EVERY_LABEL for records. An empty label
        of a record means `und`

    Raise RecordError for the first fault in the label.
    """
    of_records = also is EVERY_LABEL
    if (isinstance(value, float) and is_missing(value)) or (value is None and of_records):
        value = ""
    if not isinstance(value, str):
        raise RecordError("The label is missing." if value is None else "The label must be a string.")
    label = tidy(value)
    if not label and of_records:
        return UND, False
    noun = "class" if of_records else "language"
    if not label:
        raise RecordError(f"The label is empty. Write {UND} if the classifier assigns no {noun}.")
    bare = label.removeprefix(FASTTEXT_PREFIX)
    code: str | None
    if of_records:
        code = whole(bare) if label in declared or not is_missing(label) else None
    else:
        # Look up the label as a code of another standard only if it isn't valid as written.
        codes = chain((label, bare), map(code_of, (label,)))
        code = next((code for code in codes if code in declared or is_label(code) or code in also), None)
    if code is None and is_missing(label):
        raise RecordError(
            f"The label is {label}, which other programs write for a missing value. Write {UND} if the classifier "
            f"assigns no {noun}."
        )
    if code is None:
        raise UnknownLabel(bare[:40])
    if code in declared:
        targets = declared[code]
        return targets[0] if len(targets) == 1 else code, False
    return code, not of_records and code != value.strip()


def read_score(value: object) -> float | None:
    score = read_number(value)
    if score is not None and not math.isfinite(score):
        raise RecordError(f"The score {str(value)[:40]!r} is not a number.")
    return score


def coarse_by_label(mappings: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, str]:
    """Map each finer label to the coarse class that contains it.

    Labels are mapped before they are compared, so a predictor that returns zh is right on a post with the label zh-CN.

    mappings: for each predictor, the labels in each of its coarse classes

    Raise CorpusError if a label belongs to two classes.
    """
    labels_of: dict[str, set[str]] = {}
    for mapping in mappings:
        for coarse, labels in mapping.items():
            labels_of.setdefault(coarse, set()).update(labels)
    folded: dict[str, str] = {}
    for coarse in sorted(labels_of):
        for label in sorted(labels_of[coarse] - {coarse}):
            previous = folded.setdefault(label, coarse)
            if previous != coarse:
                raise CorpusError(
                    f"The label {label} is in two classes, {previous} and {coarse}. Declare it in only one of them."
                )
    for coarse, holder in folded.items():
        if coarse in labels_of:
            raise CorpusError(f"The class {coarse} is itself part of the class {holder}. Declare a single class.")
    return folded


# --- Reading a file of predictions line by line.
#
# The predictions can be for a corpus (prediction_import.py) or for posts that are not in a corpus.


@dataclass
class Notes:
    """Notes for the user about an imported file.

    outside: number of rows skipped because their ids were not requested
    understood: labels that were converted to known codes
    """

    outside: int = 0
    understood: Respelled = field(default_factory=Respelled)

    def sentences(self) -> list[str]:
        sentences = self.understood.sentences("label", "converted without --map")
        return [f"{sentence} Use --map if this is wrong." for sentence in sentences]


def read_predictions(
    path: Path,
    declared: Mapped,
    *,
    columns: dict[str, str] | None = None,
    format: str | None = None,
    also: Collection[str] = (),
    only: Container[str] | None = None,
) -> tuple[dict[str, str], Notes]:
    """Read predictions that are not imported into a corpus. Return labels by id, and notes on the file.

    Labels are renamed and checked in the same way as in import_predictions.

    also: additional valid labels (see read_label)
    only: ids of the rows to read; None for all

    Raise CorpusError if the file has a fault.
    """
    check_file(path, format)
    labels: dict[str, str] = {}
    first_lines: dict[str, int] = {}
    repeats: list[tuple[str, int, int]] = []
    total, notes = 0, Notes()
    for line, (key, label, _) in read_lines(path, declared, columns, format, notes, also=also, only=only):
        if key in labels:
            total += 1
            if len(repeats) < NAMED:
                repeats.append((key, line, first_lines[key]))
            continue
        labels[key], first_lines[key] = label, line
    if total:
        raise duplicate_ids(path, repeats, total)
    return labels, notes


def read_lines(
    path: Path,
    declared: Mapped,
    columns: dict[str, str] | None,
    format: str | None,
    notes: Notes,
    *,
    progress: Progress | None = None,
    also: Collection[str] = (),
    only: Container[str] | None = None,
) -> Iterator[tuple[int, Prediction]]:
    """Yield each prediction in a file with its line number.

    notes: collects the notes on the file
    only: ids of the rows to read; None for all

    Raise CorpusError if a row is invalid. Unknown labels are reported in a single error.
    """
    file_format = format or format_of(path) or ""
    file_columns = Columns({field: field for field in FIELDS} | (columns or {}), OBLIGATORY, bare=True)
    unknown = _UnknownLabels()
    label_of = each_once(partial(read_label, declared=declared, also=also))
    read_row = partial(_read, label_of, {*declared, *also}, only, notes, unknown)
    rows = validate_rows(read_rows(path, file_format, file_columns, MAX_LINE, progress), read_row)
    for line, prediction in require_valid(path, file_format, rows):
        if isinstance(prediction, UnknownLabel):
            unknown.add(line, prediction)
        elif prediction:
            yield line, prediction
    if unknown.rows:
        unknown.check(path)


def _read(
    label_of: Callable[[object], tuple[str, bool]],
    further_labels: Container[str],
    only: Container[str] | None,
    notes: Notes,
    unknown: "_UnknownLabels",
    raw: Mapping[str, Any],
) -> Prediction | UnknownLabel | None:
    """Parse a row. Return None if its id was not requested.

    label_of: parses a label, see read_label
    further_labels: additional valid labels

    Raise RecordError if the id was requested but the row is invalid.
    """
    key = read_id(raw.get("id"))
    is_requested = only is None or key in only
    notes.outside += not is_requested
    try:
        label, is_understood = label_of(raw.get("label"))
        score = read_score(raw.get("score"))
    except UnknownLabel as error:
        unknown.swapped += is_label(key) or key in further_labels
        error.is_requested = is_requested
        return error
    except RecordError:
        if is_requested:
            raise
        return None
    if is_requested and is_understood:
        notes.understood.note(raw["label"].strip(), label)
    return (key, label, score) if is_requested else None


@dataclass
class _UnknownLabels:
    """The unknown labels in a file.

    rows: number of rows with an unknown label
    line: line number of the first such row
    swapped: number of such rows whose id is a label, which suggests that the columns are swapped
    first: line number and error message of the first row with each unknown label
    """

    rows: int = 0
    line: int = 0
    swapped: int = 0
    first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, line: int, error: UnknownLabel) -> None:
        self.rows += 1
        self.line = self.line or line
        if error.is_requested and len(self.first) <= NAMED:
            self.first.setdefault(error.label, (line, str(error)))

    def check(self, path: Path) -> None:
        """Raise CorpusError if there are unknown labels, or if the columns seem to be swapped."""
        lines = list(self.first.values())[:NAMED]
        if self.swapped * 2 > self.rows:
            raise CorpusError(
                f"The columns of {path} seem to be swapped: in {self.swapped:,} rows (the first is line "
                f"{self.line:,}), the id is a language code but the label is not. Write the id before the label, or "
                "map the columns with --column id=COLUMN and --column label=COLUMN. Nothing was imported from the file."
            )
        if self.first:
            reasons = " ".join(f"Line {line:,}: {reason}" for line, reason in lines)
            remaining = " There are more." if len(self.first) > NAMED else ""
            raise CorpusError(
                f"{path} contains unknown labels. {reasons}{remaining} Declare them with --map "
                f"{_example(next(iter(self.first)))}. If line 1 is a header, map its columns with --column. "
                "Nothing was imported from the file."
            )


def _example(label: str) -> str:
    """Return an example of a declaration for an unknown label, such as `zh=zh-CN,zh-TW`."""
    finer = LANGUAGES[label].labels if label in LANGUAGES else ()
    return f"{label}={','.join(finer) or f'LABEL, or --map {label}={UND} if it is not a language'}"
