"""One prediction: which label a classifier gives a post, and what its labels mean here. Reads no files.

A classifier may say `nb` where the label is `no`, or `zh` where people tell zh-CN from zh-TW. Such labels are
declared: one target renames the label; several targets make it a coarse class that stands for them and is kept.
"""

import math
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from corpora.core import NAMED, CorpusError
from corpora.core.language_codes import FASTTEXT_PREFIX, code_of, hint
from corpora.core.languages import LANGUAGES, UND, finer
from corpora.core.records import RecordError, read_id
from corpora.core.values import is_missing, tidy, whole
from corpora.sources.compression import Progress, check_file, format_of
from corpora.sources.readers import Columns, read_rows
from corpora.sources.rejects import repeated
from corpora.sources.text import MAX_LINE
from corpora.storage.intake import all_sound, judged

FIELDS = ("id", "label", "score")
OBLIGATORY = ("id", "label")

Mapped = Mapping[str, tuple[str, ...]]  # the classifier's label -> the labels that it stands for
Prediction = tuple[str, str, float | None]  # id, label, score


class _Every(frozenset[str]):
    """Holds whatever it is asked for."""

    def __contains__(self, label: object) -> bool:
        return True


# The labels that are right of records, whose classes are no languages.
EVERY_LABEL: Collection[str] = _Every()


class UnknownLabel(RecordError):
    """A label that is neither a language's code, nor und, nor declared."""

    def __init__(self, label: str) -> None:
        coarse = LANGUAGES[label].labels if label in LANGUAGES else ()
        near = f" ({near})" if (near := hint(label)) else ""
        why = f"stands for {', '.join(coarse)}" if coarse else f"is not a language code known here{near}"
        super().__init__(f"The label {label!r} {why}.")
        self.label, self.is_wanted = label, True


def is_label(code: str) -> bool:
    """Whether a code is a label that people may give: that of one language, or und."""
    return code == UND or (code in LANGUAGES and not LANGUAGES[code].labels)


def read_map(pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What `zh=zh-CN,zh-TW` and the like declare. RecordError, a sentence, for what cannot be declared."""
    declared: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        label, _, written = pair.partition("=")
        label, targets = label.strip(), tuple(target.strip() for target in written.split(","))
        if not label or not all(targets):
            raise RecordError(f"--map {pair}: write LABEL=LABEL, or LABEL=LABEL,LABEL for a class of several.")
        if label in declared:
            raise RecordError(f"--map declares {label} twice; give everything that it stands for in one option.")
        if strange := [target for target in targets if not is_label(target)]:
            raise RecordError(f"--map {pair}: {strange[0]!r} is not a label known here, such as de, zh-CN or und.")
        if len(set(targets)) < len(targets):
            raise RecordError(f"--map {pair}: it names a label twice.")
        # A detector's pt may be declared as pt-BR,pt-PT if these were added under it.
        if len(targets) > 1 and is_label(label) and not set(targets) <= set(finer(label)):
            raise RecordError(
                f"--map {pair}: {label} is the label of one language, so a class of several cannot have it; rename the "
                "class in the file, for example to sh."
            )
        if len(targets) > 1 and UND in targets:
            raise RecordError(f"--map {pair}: a class stands for languages, and {UND} is not a language.")
        declared[label] = targets
    return declared


def classes(declared: Mapped) -> dict[str, tuple[str, ...]]:
    """The coarse classes among what is declared, in order of their names."""
    return {label: tuple(sorted(targets)) for label, targets in sorted(declared.items()) if len(targets) > 1}


def read_label(value: object, declared: Mapped, also: Collection[str] = ()) -> tuple[str, bool]:
    """The label of one source row as it counts here, renamed by --map or taken for the nearest that is known; and
    whether it was taken for that one. RecordError for the first rule that it breaks.

    also: labels that are right here although they are not known as languages; EVERY_LABEL for records, of which an
    empty label is a refusal, like UND.
    """
    of_records = also is EVERY_LABEL
    if (isinstance(value, float) and is_missing(value)) or (value is None and of_records):
        value = ""
    if not isinstance(value, str):
        raise RecordError("The label is missing." if value is None else "The label is not a string.")
    label = tidy(value)
    if not label and of_records:
        return UND, False
    instead = "class" if of_records else "language"
    if not label:
        raise RecordError(f"The label is empty; write {UND} if the classifier names no {instead}.")
    bare = label.removeprefix(FASTTEXT_PREFIX)
    way: str | None
    if of_records:
        way = whole(bare) if label in declared or not is_missing(label) else None
    else:
        # A code is looked up only where the label is not right as it stands.
        ways = chain((label, bare), map(code_of, (label,)))
        way = next((way for way in ways if way in declared or is_label(way) or way in also), None)
    if way is None and is_missing(label):
        raise RecordError(
            f"The label is {label}, which another program writes where there is none; write {UND} if the classifier "
            f"names no {instead}."
        )
    if way is None:
        raise UnknownLabel(bare[:40])
    if way in declared:
        targets = declared[way]
        return targets[0] if len(targets) == 1 else way, False
    return way, not of_records and way != value.strip()


def read_score(value: object) -> float | None:
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        score = float(value)
    except (ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise RecordError(f"The score {str(value)[:40]!r} is not a number.")
    return score


def folding(mappings: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, str]:
    """Finer label -> the class that it becomes part of; labels without an entry stay as they are. So a predictor that
    says zh is right on zh-CN and on zh-TW.

    mappings: each predictor's coarse classes with the labels that they stand for. CorpusError if a label would belong
    to two classes.
    """
    labels_of: dict[str, set[str]] = {}
    for mapping in mappings:
        for coarse, labels in mapping.items():
            labels_of.setdefault(coarse, set()).update(labels)
    folded: dict[str, str] = {}
    for coarse in sorted(labels_of):
        for label in sorted(labels_of[coarse] - {coarse}):
            other = folded.setdefault(label, coarse)
            if other != coarse:
                raise CorpusError(
                    f"The label {label} is in two classes, {other} and {coarse}; declare it in one of them."
                )
    for coarse, holder in folded.items():
        if coarse in labels_of:
            raise CorpusError(f"{coarse} stands for several labels and is part of {holder}; declare one class of all.")
    return folded


# --- Files of predictions: which label a classifier gives each post, read line by line.
#
# A file may be about a corpus (prediction_import.py), or about posts that are in no corpus.


@dataclass
class Notes:
    """What is to be told of a file that was taken. outside: rows about ids that do not count; understood: (label as
    the file has it, label that it was taken for) -> rows."""

    outside: int = 0
    understood: Counter[tuple[str, str]] = field(default_factory=Counter)

    def sentences(self) -> list[str]:
        if not self.understood:
            return []
        pairs = [f"{label} as {taken}" for (label, taken), _ in self.understood.most_common(NAMED)]
        more = f" and {len(self.understood) - NAMED:,} more" if len(self.understood) > NAMED else ""
        total = self.understood.total()
        of, them = ("label of 1 row was", "it") if total == 1 else (f"labels of {total:,} rows were", "them")
        return [
            f"The {of} understood without --map: {', '.join(pairs)}{more}. Declare {them} with --map where something "
            "else is meant."
        ]


def read_predictions(
    path: Path,
    declared: Mapped,
    *,
    columns: dict[str, str] | None = None,
    format: str | None = None,
    also: Collection[str] = (),
    only: Container[str] | None = None,
) -> tuple[dict[str, str], Notes]:
    """Id -> label from a file that is about no corpus; and what else is to be told of the file.

    Labels are renamed and checked as in import_predictions; also: further labels that are valid. only: the ids that
    count; rows about other ids are left aside. CorpusError if something is wrong with the file.
    """
    check_file(path, format)
    labels: dict[str, str] = {}
    first: dict[str, int] = {}
    repeats: list[tuple[str, int, int]] = []
    total, told = 0, Notes()
    for line, (key, label, _) in read_lines(path, declared, columns, format, told, also=also, only=only):
        if key in labels:
            total += 1
            if len(repeats) < NAMED:
                repeats.append((key, line, first[key]))
            continue
        labels[key], first[key] = label, line
    if total:
        raise repeated(path, repeats, total)
    return labels, told


def read_lines(
    path: Path,
    declared: Mapped,
    columns: dict[str, str] | None,
    format: str | None,
    told: Notes,
    *,
    progress: Progress | None = None,
    also: Collection[str] = (),
    only: Container[str] | None = None,
) -> Iterator[tuple[int, Prediction]]:
    """Every prediction of a file with its line. CorpusError for a row that is not one; unknown labels are told
    together.

    told: collects what is not a fault. only: the ids whose predictions are wanted; None for all.
    """
    written = format or format_of(path) or ""
    places = Columns({field: field for field in FIELDS} | (columns or {}), OBLIGATORY, bare=True)
    unknown = _UnknownLabels()
    read = partial(_read, declared, also, only, told, unknown)
    rows = judged(read_rows(path, written, places, MAX_LINE, progress), read)
    for line, prediction in all_sound(path, written, rows):
        if isinstance(prediction, UnknownLabel):
            unknown.add(line, prediction)
        elif prediction:
            yield line, prediction
    if unknown.rows:
        unknown.check(path)


def _read(
    declared: Mapped,
    also: Collection[str],
    only: Container[str] | None,
    told: Notes,
    unknown: "_UnknownLabels",
    raw: Mapping[str, Any],
) -> Prediction | UnknownLabel | None:
    """One row; None where its id does not count. RecordError for one that counts and has a fault."""
    key = read_id(raw.get("id"))
    is_wanted = only is None or key in only
    told.outside += not is_wanted
    try:
        label, is_understood = read_label(raw.get("label"), declared, also)
        score = read_score(raw.get("score"))
    except UnknownLabel as error:
        unknown.swapped += is_label(key) or key in {*declared, *also}
        error.is_wanted = is_wanted
        return error
    except RecordError:
        if is_wanted:
            raise
        return None
    if is_wanted and is_understood:
        told.understood[raw["label"].strip(), label] += 1
    return (key, label, score) if is_wanted else None


@dataclass
class _UnknownLabels:
    """The labels of a file that are not known here. rows: that have such a label, the first in `line`; swapped: of
    these, how many have a label in the place of the id; first: label -> line and reason of the first of them."""

    rows: int = 0
    line: int = 0
    swapped: int = 0
    first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, line: int, error: UnknownLabel) -> None:
        self.rows += 1
        self.line = self.line or line
        if error.is_wanted and len(self.first) <= NAMED:
            self.first.setdefault(error.label, (line, str(error)))

    def check(self, path: Path) -> None:
        """CorpusError for the labels, or for swapped columns."""
        lines = list(self.first.values())[:NAMED]
        if self.swapped * 2 > self.rows:
            raise CorpusError(
                f"{path}: the columns seem to be swapped: in {self.swapped:,} rows, the first in line {self.line:,}, "
                "the id is a language code and the label is none. Put the id first, then the label; or name the "
                "columns of a file with a header with --column id=COLUMN and --column label=COLUMN. Nothing of the "
                "file was taken."
            )
        if self.first:
            reasons = " ".join(f"Line {line:,}: {why}" for line, why in lines)
            more = " There are more." if len(self.first) > NAMED else ""
            raise CorpusError(
                f"{path} has labels that are not known here. {reasons}{more} Say what they stand for with --map "
                f"{_example(next(iter(self.first)))}; if line 1 is a header, name its columns with --column. "
                "Nothing of the file was taken."
            )


def _example(label: str) -> str:
    """How an unknown label may be declared, such as zh=zh-CN,zh-TW; for most labels the meaning is left open."""
    finer = LANGUAGES[label].labels if label in LANGUAGES else ()
    return f"{label}={','.join(finer) or f'LABEL, or --map {label}={UND} if it is not a language'}"
