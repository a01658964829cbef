"""Files of predictions: which label a classifier gives each post, read line by line.

Which labels are right is core/predictions.py's matter. A file may be about a corpus (import_predictions.py), or about
posts that stand in none.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from corpora.core.errors import NAMED, CorpusError, listed
from corpora.core.languages import LANGUAGES, UND
from corpora.core.predictions import (
    FIELDS,
    OBLIGATORY,
    Mapped,
    Prediction,
    UnknownLabel,
    classes,
    is_label,
    read_prediction,
)
from corpora.core.records import RecordError
from corpora.readers import MAX_LINE, Columns, Fault, Progress, check_file, format_of, read_rows


def read_predictions(
    path: Path,
    declared: Mapped,
    *,
    columns: dict[str, str] | None = None,
    format: str | None = None,
    also: Collection[str] = (),
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Id -> label of a file that is about no corpus; and its coarse classes with the labels that they stand for.

    Renamed and checked as for import_predictions; also: labels that are right besides. CorpusError for what is
    wrong with the file.
    """
    check_file(path, format)
    labels: dict[str, str] = {}
    first: dict[str, int] = {}
    repeated: list[str] = []
    total = 0
    for line, (key, label, _) in read_lines(path, declared, columns, format, lambda count: None, also):
        if key in labels:
            total += 1
            if len(repeated) < NAMED:
                repeated.append(repeat_told(key, line, first[key]))
            continue
        labels[key], first[key] = label, line
    if total:
        raise CorpusError(repeats_told(path, repeated, total))
    if not labels:
        raise CorpusError(f"{path} holds no rows.")
    return labels, classes(declared)


def read_lines(
    path: Path,
    declared: Mapped,
    columns: dict[str, str] | None,
    format: str | None,
    progress: Progress,
    also: Collection[str] = (),
) -> Iterator[tuple[int, Prediction]]:
    """Every prediction of a file with its line. CorpusError for a row that is none; unknown labels are told at once."""
    places = Columns({field: field for field in FIELDS} | (columns or {}), OBLIGATORY, bare=True)
    unknown: dict[str, tuple[int, str]] = {}
    rows = swapped = 0
    for line, raw in read_rows(path, format or format_of(path) or "", places, MAX_LINE, progress):
        try:
            if isinstance(raw, Fault):
                raise RecordError(raw.reason)
            yield line, read_prediction(raw, declared, also)
        except UnknownLabel as error:
            rows += 1
            swapped += _is_code(raw.get("id"), declared, also)
            if len(unknown) <= NAMED:
                unknown.setdefault(error.label, (line, str(error)))
        except RecordError as error:
            raise CorpusError(f"{path}, line {line:,}: {error} Nothing of the file was taken.") from error
    if swapped * 2 > rows:
        line, _ = next(iter(unknown.values()))
        raise CorpusError(
            f"{path}: the columns seem to be swapped: in {swapped:,} rows, the first in line {line:,}, the id is a "
            "language code and the label is none. The id comes first, then the label; or name the columns of a file "
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
    """How an unknown label may be declared: zh=zh-CN,zh-TW; of most, nobody here knows what they mean."""
    finer = LANGUAGES[label].labels if label in LANGUAGES else ()
    return f"{label}={','.join(finer) or f'LABEL, or --map {label}={UND} where it is no language'}"


def repeat_told(key: str, line: int, first_line: int) -> str:
    """An id that came before, with both lines."""
    return f"{key} (line {line:,}, first in line {first_line:,})"


def repeats_told(path: Path, told: list[str], total: int) -> str:
    """The sentence that refuses a file for such ids."""
    return f"{path} repeats {listed(told, total, 'id')}. Keep one row for each post. Nothing of the file was taken."
