"""Detect the format of a file of posts or records, and guess which column contains each field."""

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

# Common column names for each field, in lower case, besides the field's own name.
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
# Functions that parse a field's values, or raise RecordError.
READERS: Mapping[str, Callable[[Any], Any]] = {"posted_at": read_time, "url": read_url, "language": read_language}
_FORMAT_NAMES: Mapping[str, str] = {"jsonl": "JSON", "parquet": "Parquet", "arrow": "Arrow", "xlsx": "Excel"}
SAMPLES = 3  # number of sample values per column
LONGEST_NAME = 50  # maximum length of a suggested name, which leaves room for a number


def candidates(field: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that may contain a field, most likely first.

    A column in a nested object, such as data.text, is matched by its last part.
    """
    by_name = {column.lower(): column for column in reversed(columns)}
    nested = {column.lower().rpartition(".")[2]: column for column in reversed(columns) if "." in column}
    ending = [name for name in by_name if name.endswith(f"_{field}")]  # such as review_id
    names = (field, *ALSO.get(field, ()), *(ending if len(ending) == 1 else ()))
    matches = [index[name] for index in (by_name, nested) for name in names if name in index]
    return list(dict.fromkeys(matches))


def guess(field: str, columns: Sequence[str]) -> str:
    """Return the column that most likely contains a field; "" if there is none."""
    return next(iter(candidates(field, columns)), "")


def fault_of(field: str, column: str, preview: Sample) -> tuple[str, bool]:
    """Check whether the previewed values of a column can be parsed as a field.

    Return the error message for the first faulty value ("" if there is none), and whether any value can be parsed.
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
    """Return the values of a column in the preview's readable rows."""
    index = preview.columns.index(column)
    return [row[index] for row in preview.rows if not isinstance(row, str)]


@dataclass(frozen=True)
class Recognition:
    """The detected format of a file, and the likely columns of a post's fields.

    columns: column by field, for each field with a single likely column
    doubtful: columns by field, for each field with several likely columns
    """

    path: Path
    format: str
    text_format: TextFormat
    sample: Sample
    columns: dict[str, str]
    doubtful: dict[str, list[str]]

    @property
    def missing(self) -> list[str]:
        """Required fields without a likely column."""
        return [field for field in OBLIGATORY if field not in {*self.columns, *self.doubtful}]

    def samples(self, column: str) -> list[str]:
        """Return the first non-empty values of a column, as text."""
        values = (str(value) for value in values_of(column, self.sample) if value not in (None, ""))
        return list(dict.fromkeys(values))[:SAMPLES]

    def field_of(self, column: str) -> str:
        """Return the field that a column likely contains; "" if there is none."""
        return next((field for field, named in self.columns.items() if named == column), "")


def describe_format(format: str, text_format: TextFormat) -> str:
    """Describe a format, such as "CSV, UTF-8, with columns separated by semicolons"."""
    return ", ".join(filter(None, [_FORMAT_NAMES.get(format, format.upper()), str(text_format)]))


def recognize(path: Path, format: str | None = None, encoding: str = "", delimiter: str = "") -> Recognition:
    """Detect a file's format and the columns of a post's fields.

    format, encoding, delimiter: the user's choice, or None or "" to detect it

    Raise CorpusError if the file cannot be read, contains no rows, or has an unknown format.
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
    return Recognition(path, format, text_format, preview, columns, doubtful)


# --- Names for corpora, tasks and kinds.


def name_from(path: Path) -> str:
    """Derive a corpus name from a file name."""
    # Strip accents: Beiträge.csv becomes beitrage.
    letters = unicodedata.normalize("NFKD", path.name.partition(".")[0]).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", letters).strip("-").lower()[:LONGEST_NAME] or "corpus"


def unused_name(stem: str, names: Iterable[str], mark: str = "-") -> str:
    """Return a name that is not in `names`: the stem or, if it is taken, the stem followed by the mark and a number."""
    taken = set(names)
    return next(name for number in count(1) if (name := stem if number == 1 else f"{stem}{mark}{number}") not in taken)
