"""Files of predictions: which label a classifier gives each post, read line by line.

core/predictions.py decides which labels are valid. A file may be about a corpus (import_predictions.py), or about
posts that are in no corpus.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from corpora.core import NAMED, CorpusError, listed
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
from corpora.sources.text import MAX_LINE, Fault


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
    repeated: list[str] = []
    total, told = 0, Told()
    for line, (key, label, _) in read_lines(path, declared, columns, format, told, also=also, only=only):
        if key in labels:
            total += 1
            if len(repeated) < NAMED:
                repeated.append(repeat_told(key, line, first[key]))
            continue
        labels[key], first[key] = label, line
    if total:
        raise CorpusError(repeats_told(path, repeated, total))
    if not labels and not told.outside:
        raise CorpusError(f"{path} holds no rows.")
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
    places = Columns({field: field for field in FIELDS} | (columns or {}), OBLIGATORY, bare=True)
    unknown: dict[str, tuple[int, str]] = {}
    rows = swapped = first = 0
    for line, raw in read_rows(path, format or format_of(path) or "", places, MAX_LINE, progress):
        is_wanted = True
        try:
            if isinstance(raw, Fault):
                raise RecordError(raw.reason)
            key = read_id(raw.get("id"))
            is_wanted = only is None or key in only
            told.outside += not is_wanted
            label, is_understood = read_label(raw.get("label"), declared, also)
            score = read_score(raw.get("score"))
            if is_wanted:
                if is_understood:
                    told.understood[raw["label"].strip(), label] += 1
                yield line, (key, label, score)
        except UnknownLabel as error:
            rows += 1
            first = first or line
            swapped += _is_code(raw.get("id"), declared, also)
            if is_wanted and len(unknown) <= NAMED:
                unknown.setdefault(error.label, (line, str(error)))
        except RecordError as error:
            if not is_wanted:
                continue
            raise CorpusError(f"{path}, line {line:,}: {error} Nothing of the file was taken.") from error
    if swapped * 2 > rows:
        raise CorpusError(
            f"{path}: the columns seem to be swapped: in {swapped:,} rows, the first in line {first:,}, the id is a "
            "language code and the label is none. Put the id first, then the label; or name the columns of a file "
            "with a header with --column id=COLUMN and --column label=COLUMN. Nothing of the file was taken."
        )
    if unknown:
        told = " ".join(f"Line {line:,}: {why}" for line, why in list(unknown.values())[:NAMED])
        more = " There are more." if len(unknown) > NAMED else ""
        raise CorpusError(
            f"{path} has labels that are not known here. {told}{more} Say what they stand for with --map "
            f"{_example(next(iter(unknown)))}; if line 1 is a header, name its columns with --column. "
            "Nothing of the file was taken."
        )


def _is_code(value: object, declared: Mapped, also: Collection[str]) -> bool:
    return isinstance(value, str) and (is_label(value.strip()) or value.strip() in {*declared, *also})


def _example(label: str) -> str:
    """How an unknown label may be declared, such as zh=zh-CN,zh-TW; for most labels the meaning is left open."""
    finer = LANGUAGES[label].labels if label in LANGUAGES else ()
    return f"{label}={','.join(finer) or f'LABEL, or --map {label}={UND} if it is not a language'}"


def repeat_told(key: str, line: int, first_line: int) -> str:
    """An id that came before, with both lines."""
    return f"{key} (line {line:,}, first in line {first_line:,})"


def repeats_told(path: Path, told: list[str], total: int) -> str:
    """The sentence that refuses a file for such ids."""
    return f"{path} repeats {listed(told, total, 'id')}. Keep one row for each post. Nothing of the file was taken."
