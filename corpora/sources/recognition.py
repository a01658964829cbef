"""What a file of posts or records seems to be: its format, its columns with samples, and the column of each field."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from corpora.core.records import FIELDS, OBLIGATORY, RecordError, read_language, read_time, read_url
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import MOST_INSPECTED, Sample, sample
from corpora.sources.text import TextFormat, text_format_of

# Field -> other common column names for the field, in lower case.
ALSO: Mapping[str, tuple[str, ...]] = {
    "id": ("tweet_id", "id_str", "post_id", "doc_id", "celex_id", "uid", "key", "nr", "nummer", "numéro", "número"),
    "text": (
        *("body", "content", "tweet", "message", "sentence", "full_text", "document"),
        *("beitrag", "inhalt", "satz", "texte", "texto"),
    ),
    "author": ("user", "user_id", "author_id", "username", "screen_name"),
    "posted_at": ("created_at", "date", "time", "timestamp", "published_at", "datum", "fecha"),
    "url": ("link", "permalink", "uri"),
    "language": ("lang", "locale", "iso", "sprache", "langue", "idioma"),
    "labels": ("label", "gold", "topic", "category", "eurovoc_concepts"),
    "label": (
        *("prediction", "predicted", "pred", "predicted_label", "answer", "class", "category", "topic"),
        *("lang", "language", "sprache", "langue", "idioma", "klasse"),
    ),
    "score": ("confidence", "probability", "prob", "wert"),
}
# Field -> function that reads its values and raises RecordError if it cannot.
READERS: Mapping[str, Callable[[Any], Any]] = {"posted_at": read_time, "url": read_url, "language": read_language}
_FORMAT_NAMES: Mapping[str, str] = {"jsonl": "JSON", "parquet": "Parquet", "arrow": "Arrow", "xlsx": "Excel"}
SAMPLES = 3  # number of values of a column that are shown
LONGEST_NAME = 50  # maximum length of a suggested name, so that a number can be added


def candidates(field: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that may contain a field, the most probable first.

    A column in a nested object, such as data.text, is identified by its last part.
    """
    by_name = {column.lower(): column for column in reversed(columns)}
    nested = {column.lower().rpartition(".")[2]: column for column in reversed(columns) if "." in column}
    ending = [name for name in by_name if name.endswith(f"_{field}")]  # such as review_id
    names = (field, *ALSO.get(field, ()), *(ending if len(ending) == 1 else ()))
    matches = [index[name] for index in (by_name, nested) for name in names if name in index]
    return list(dict.fromkeys(matches))


def guess(field: str, columns: Sequence[str]) -> str:
    """Return the column that probably contains a field, or ""."""
    return next(iter(candidates(field, columns)), "")


def fault_of(field: str, column: str, preview: Sample) -> tuple[str, bool]:
    """Return why the first faulty value in a column of the preview cannot be read as the field, or "".

    The second value is whether any value can be read.
    """
    fault, is_any_readable = "", False
    if field not in READERS or column not in preview.columns:
        return "", True
    for value in (value for value in values_of(column, preview) if value not in (None, "")):
        try:
            READERS[field](value)
            is_any_readable = True
        except RecordError as error:
            fault = fault or str(error)
    return fault, is_any_readable


def values_of(column: str, preview: Sample) -> list[Any]:
    """Return the values of a column in the rows of the preview that can be read."""
    index = preview.columns.index(column)
    return [row[index] for row in preview.rows if not isinstance(row, str)]


@dataclass(frozen=True)
class Recognized:
    """What a file seems to be.

    columns: field -> column, for each field of a post that has exactly one probable column
    doubtful: field -> columns, for each field with several probable columns
    """

    path: Path
    format: str
    text_format: TextFormat
    sample: Sample
    columns: dict[str, str]
    doubtful: dict[str, list[str]]

    @property
    def missing(self) -> list[str]:
        """The fields that a post needs, but for which the file seems to have no column."""
        return [field for field in OBLIGATORY if field not in {*self.columns, *self.doubtful}]

    def samples(self, column: str) -> list[str]:
        """Return the first values of a column that are not empty, as text."""
        values = (str(value) for value in values_of(column, self.sample) if value not in (None, ""))
        return list(dict.fromkeys(values))[:SAMPLES]

    def field_of(self, column: str) -> str:
        """Return the field that a column seems to contain, or ""."""
        return next((field for field, named in self.columns.items() if named == column), "")


def described(format: str, text_format: TextFormat) -> str:
    """Return, for example, "CSV, UTF-8, with columns separated by semicolons"."""
    return ", ".join(filter(None, [_FORMAT_NAMES.get(format, format.upper()), str(text_format)]))


def recognized(path: Path, format: str | None = None, encoding: str = "", delimiter: str = "") -> Recognized:
    """Return what a file seems to be.

    format, encoding, delimiter: the user's choice, or None or "" to recognize it

    Raise CorpusError if the file cannot be read, contains no rows, or does not show its format.
    """
    check_file(path, format := format or format_of(path) or "")
    text_format = text_format_of(path, format, encoding, delimiter, MOST_INSPECTED)
    preview = sample(path, format, text_format)
    columns, doubtful = {}, {}
    for field in FIELDS:
        matches = candidates(field, preview.columns)
        is_named_so = field in map(str.lower, matches[:1])
        probable = [name for name in matches[: 1 if is_named_so else None] if not fault_of(field, name, preview)[0]]
        if len(probable) == 1:
            columns[field] = probable[0]
        elif probable:
            doubtful[field] = probable
    return Recognized(path, format, text_format, preview, columns, doubtful)


# --- Names for corpora, tasks and kinds.


def name_from(path: Path) -> str:
    """Return a corpus name that is derived from the name of a file."""
    # Accents are dropped: Beiträge.csv becomes beitrage.
    letters = unicodedata.normalize("NFKD", path.name.partition(".")[0]).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", letters).strip("-").lower()[:LONGEST_NAME] or "corpus"


def unused(stem: str, names: Iterable[str], mark: str = "-") -> str:
    """Return the stem or, if it is one of the names, the stem followed by the mark and an unused number."""
    taken = set(names)
    return next(name for number in count(1) if (name := stem if number == 1 else f"{stem}{mark}{number}") not in taken)
