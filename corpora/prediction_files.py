"""Files of predictions: which label a classifier gives each post, read line by line.

core/predictions.py decides which labels are valid. A file may be about a corpus (import_predictions.py), or about
posts that are in no corpus.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpora.core import NAMED, CorpusError
from corpora.core.languages import LANGUAGES, UND
from corpora.core.predictions import (
    FIELDS,
    OBLIGATORY,
    Mapped,
    Prediction,
    UnknownLabel,
    is_label,
    read_label,
    read_score,
)
from corpora.core.records import RecordError, read_id
from corpora.sources.compression import Progress, check_file, format_of
from corpora.sources.headers import Columns
from corpora.sources.readers import read_rows
from corpora.sources.rejects import repeated
from corpora.sources.text import MAX_LINE
from corpora.storage.intake import all_sound, judged


@dataclass
class Told:
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
) -> tuple[dict[str, str], Told]:
    """Id -> label from a file that is about no corpus; and what else is to be told of the file.

    Labels are renamed and checked as in import_predictions; also: further labels that are valid. only: the ids that
    count; rows about other ids are left aside. CorpusError if something is wrong with the file.
    """
    check_file(path, format)
    labels: dict[str, str] = {}
    first: dict[str, int] = {}
    repeats: list[tuple[str, int, int]] = []
    total, told = 0, Told()
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
    told: Told,
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

    def read(raw: Mapping[str, Any]) -> Prediction | UnknownLabel | None:
        key = read_id(raw.get("id"))
        is_wanted = only is None or key in only
        told.outside += not is_wanted
        try:
            label, is_understood = read_label(raw.get("label"), declared, also)
            score = read_score(raw.get("score"))
        except UnknownLabel as error:
            unknown.rows += 1
            unknown.swapped += is_label(key) or key in {*declared, *also}
            return error if is_wanted else None
        except RecordError:
            if is_wanted:
                raise
            return None
        if is_wanted and is_understood:
            told.understood[raw["label"].strip(), label] += 1
        return (key, label, score) if is_wanted else None

    for line, prediction in all_sound(
        path, written, judged(read_rows(path, written, places, MAX_LINE, progress), read)
    ):
        if isinstance(prediction, UnknownLabel):
            unknown.add(line, prediction)
        elif prediction:
            yield line, prediction
    unknown.check(path)


@dataclass
class _UnknownLabels:
    """The labels of a file that are not known here. rows: that have such a label; swapped: of these, how many have a
    label in the place of the id; first: label -> line and reason of the first of them."""

    rows: int = 0
    swapped: int = 0
    first: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, line: int, error: UnknownLabel) -> None:
        if len(self.first) <= NAMED:
            self.first.setdefault(error.label, (line, str(error)))

    def check(self, path: Path) -> None:
        """CorpusError if there are any."""
        lines = list(self.first.values())[:NAMED]
        if self.swapped * 2 > self.rows:
            raise CorpusError(
                f"{path}: the columns seem to be swapped: in {self.swapped:,} rows, the first in line {lines[0][0]:,}, "
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
