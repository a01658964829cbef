"""Validate source records and convert them to the form in which a corpus stores them. This module reads no files.

A record is either a post, which is a single text, or a set of named fields with a declared language. A record that
breaks a rule is rejected with a message for the source's maintainer.
"""

import hmac
import json
import math
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from corpora.core.languages import LANGUAGES, UND, code_of, unknown_code
from corpora.core.masking import mask_mentions
from corpora.core.values import ValueFault, is_empty, is_missing, is_removed, is_respelled, read_value

FIELDS = ("id", "text", "author", "posted_at", "url")
OBLIGATORY = ("id", "text")
# Names of columns that every corpus has. They cannot be used as field names.
RESERVED = (*FIELDS, "language", "declared", "fields", "line")
FIELD_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")

DECLARED = "declared"  # the column with the records' labels from the source

MAX_ID = 200
MAX_LABEL = 100
MAX_URL = 2000

# Spreadsheets run a cell as a formula if it starts with one of these characters. Exports put AS_TEXT before such cells.
FORMULA = ("=", "+", "-", "@")
AS_TEXT = "'"
TEXT_COLUMNS = "begins_with_apostrophe"  # in exported tables, the column that lists each row's protected columns
_SURROGATE = re.compile("[\ud800-\udfff]")
_URL = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]{9,}(?:\.[0-9]+)?")
_TWITTER_TIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d\d) (\d\d:\d\d:\d\d) ([+-]\d{4}) (\d{4})")
_DOTTED_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905


class RecordError(ValueError):
    """Raised for a rejected record. The message states the reason in a sentence."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as a corpus stores it: the author is hashed and the time is in UTC. Missing values are "" or None.

    text: post with mentions masked, or the values of all fields joined with newlines
    fields: unchanged values of the record's fields, in order; empty for a post
    declared: the record's labels in the source
    """

    id: str
    text: str
    author: str
    posted_at: datetime | None
    url: str
    language: str = ""
    fields: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()


def columns_of(fields: tuple[str, ...], declared: bool = False) -> tuple[str, ...]:
    """Return the columns to read from a source.

    fields: names of the records' fields; empty for posts
    declared: whether the source has a column of labels
    """
    labels = (DECLARED,) if declared else ()
    return ("id", "language", *fields, *labels, "author", "posted_at", "url") if fields else FIELDS


def needed_of(fields: tuple[str, ...], language: str, declared: bool = False) -> tuple[str, ...]:
    """Return the columns that a source must have.

    fields: names of the records' fields; empty for posts
    language: language declared for the whole source; if "", the source must have a language column
    declared: whether the source has a column of labels
    """
    if not fields:
        return OBLIGATORY
    return ("id", *(() if language else ("language",)), *fields, *((DECLARED,) if declared else ()))


def read_record(
    raw: Mapping[str, object],
    author_key: bytes,
    fields: tuple[str, ...] = (),
    language: str = "",
    declared: bool = False,
    may_be_empty: Collection[str] = (),
) -> Record:
    """Convert a row of a source to a record.

    raw: values of the row by column; the columns are those in columns_of(fields, declared)
    author_key: the installation's key for hashing authors
    fields: names of the record's fields; empty for a post
    language: language declared for the whole source; "" if there is none
    declared: whether the source has a column of labels
    may_be_empty: names of fields that may be empty

    Raise RecordError for the first rule that the row breaks.
    """
    key = read_id(raw.get("id"))
    values = tuple(_text(field, raw.get(field), field in may_be_empty) for field in fields or ("text",))
    return Record(
        id=key,
        # Mentions are masked only in posts. In a record with fields, such as an ad, they belong to the published text.
        text="\n".join(values) if fields else mask_mentions(values[0]),
        author=read_author(raw.get("author"), author_key),
        posted_at=read_time(raw.get("posted_at")),
        url=read_url(raw.get("url")),
        language=_language(raw.get("language"), language) if fields else "",
        fields=values if fields else (),
        declared=read_labels(raw.get(DECLARED)) if declared else (),
    )


def read_labels(value: object) -> tuple[str, ...]:
    """Return a record's labels from the source, in order and without duplicates.

    value: a list, a string with a JSON array, or a string of labels separated by semicolons; an empty list or string
        means no labels

    Raise RecordError if the value is missing or has another type, or if a label is invalid.
    """
    if value is None or (isinstance(value, float) and is_missing(value)):
        raise RecordError("The label is missing. Write an empty string or list if a record has no label.")
    if not isinstance(value, str | list | tuple):
        raise RecordError(f"The label is {kind_of(value)}. It must be a string or a list of strings.")
    parts = _parse_array(value) or value.split(";") if isinstance(value, str) else list(value)
    return tuple(dict.fromkeys(label for part in parts if (label := _label(part))))


def _parse_array(text: str) -> list[str]:
    """Parse a JSON array of strings. Return an empty list if the text isn't such an array."""
    try:
        value = json.loads(text) if text.startswith("[") else None
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) and all(isinstance(part, str) for part in value) else []


def _label(value: object) -> str:
    if isinstance(value, float) and is_missing(value):
        return ""
    if not isinstance(value, str):
        raise RecordError(f"The labels contain {kind_of(value)}. Each label must be a string.")
    label = read_text("label", checked("label", value))
    if len(label) > MAX_LABEL:
        raise RecordError(f"A label has {len(label):,} characters. The limit is {MAX_LABEL}.")
    if not label.isprintable():
        raise RecordError("A label contains a tab, a newline or another invisible character.")
    return label


def read_text(what: str, value: object, accepted_values: Collection[str] = ()) -> str:
    """Return a label, worker or author as text, or "" if it is missing. See read_value in values.py.

    what: the kind of value, for the error message
    accepted_values: values to accept unchanged

    Raise RecordError if the value cannot be accepted.
    """
    try:
        return read_value(value, accepted_values, is_name=what in ("author", "worker"))
    except ValueFault as fault:
        raise RecordError(f"The {what} {fault}.") from fault


def checked(field: str, value: str) -> str:
    """Return the value unchanged.

    Raise RecordError if it contains a NUL character or half of a surrogate pair.
    """
    if "\0" in value:
        raise RecordError(f"The {field} contains a NUL character, which databases cannot store.")
    if not value.isascii() and _SURROGATE.search(value):
        raise RecordError(f"The {field} contains half of a surrogate pair, which is not a character.")
    return value


def read_string(field: str, value: object) -> str:
    """Return the value unchanged.

    Raise RecordError if it is not a string, or if it contains a character that cannot be stored.
    """
    if not isinstance(value, str):
        raise RecordError(f"The {field} is {kind_of(value)}. It must be a string.")
    return checked(field, value)


def for_spreadsheet(cell: str) -> str:
    """Return the text of a cell, with a prefix if a spreadsheet would run it as a formula."""
    return f"{AS_TEXT}{cell}" if cell.startswith(FORMULA) else cell


def read_id(value: object, what: str = "id") -> str:
    """Return an id in NFC.

    value: a string or an integer
    what: the kind of id, for the error message

    Raise RecordError if the value is missing, of a different type or not usable as an id.
    """
    if value is None:
        raise RecordError(f"The {what} is missing.")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError(f"The {what} is {kind_of(value)}. It must be a string or an integer.")
    key = unicodedata.normalize("NFC", checked(what, str(value))).strip()
    if not key:
        raise RecordError(f"The {what} is empty.")
    if len(key) > MAX_ID:
        raise RecordError(f"The {what} has {len(key):,} characters. The limit is {MAX_ID}.")
    if not key.isprintable():
        raise RecordError(f"The {what} contains a tab, a newline or another invisible character.")
    if is_respelled(key):
        raise RecordError(
            f"The {what} {key} is a number that another program has rewritten. Save the original ids as text."
        )
    if is_missing(key):
        raise RecordError(
            f"The {what} is {key}, which other programs write for a missing value. Each "
            f"{'row' if what == 'id' else what} must have an id."
        )
    return key


def _text(field: str, value: object, may_be_empty: bool) -> str:
    if value is None:
        raise RecordError(f"The {field} is missing.")
    text = read_string(field, value)
    if not may_be_empty and is_empty(text):
        raise RecordError(f"The {field} is empty.")
    return text


def read_language(value: object) -> str:
    """Return the label code for a source's language code. Mixed or unknown languages have the code UND.

    Raise RecordError if the value is missing or is not a known language code.
    """
    if value is None or (isinstance(value, float) and is_missing(value)):
        raise RecordError("The language is missing.")
    code = read_string("language", value).strip()
    if not code:
        raise RecordError("The language is empty.")
    if code == UND or code in LANGUAGES:
        return code
    if is_missing(code):
        raise RecordError(f"The language is {code}, which other programs write for a missing value.")
    if label_code := code_of(code):
        return label_code
    raise RecordError(f"The language {code[:40]!r} {unknown_code(code)}")


def _language(value: object, declared: str) -> str:
    code = declared if declared and is_missing(value) else read_language(value)
    if declared and code != declared:
        raise RecordError(f"The language is {code}, but {declared} is declared for the whole file.")
    return code


def read_author(value: object, key: bytes) -> str:
    """Return a keyed hash of the author, or "" if the author is missing or only a notice such as [deleted].

    The hash is HMAC-SHA256 with the installation's key, truncated to 32 hex digits. Without the key, accounts cannot be
    identified by hashing guesses.
    """
    if is_missing(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RecordError(f"The author is {kind_of(value)}. It must be a string or an integer.")
    author = read_text("author", checked("author", value) if isinstance(value, str) else value)
    return "" if is_removed(author) else hmac.digest(key, author.encode(), "sha256").hex()[:32]


def read_url(value: object) -> str:
    """Return the value as a web address, or "" if it is missing. Raise RecordError if it is not valid."""
    if is_missing(value):
        return ""
    if not isinstance(value, str) or not _URL.fullmatch(checked("url", value)):
        raise RecordError("The url is not a web address. It must begin with http:// or https:// and contain no spaces.")
    if len(value) > MAX_URL:
        raise RecordError(f"The url has {len(value):,} characters. The limit is {MAX_URL:,}.")
    return value


def read_time(value: object) -> datetime | None:
    """Parse a time and convert it to UTC. Return None if the value is None or "".

    Accepts ISO 8601, Twitter's format, dates such as 31.12.2024, and epoch seconds (a number, or a string that begins
    with at least nine digits). A time without an offset is taken as UTC, and a date without a time as midnight.

    Raise RecordError if the value cannot be parsed.
    """
    if value in (None, ""):
        return None
    try:
        moment = _moment(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        excerpt = str(value)[:40]
        advice = "Use 2014-07-01T12:00:00Z, 2014-07-01, 01.07.2014 or epoch seconds."
        raise RecordError(f"The time {excerpt!r} is not valid. {advice}") from None


def _moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str):
        raise ValueError
    written = value.strip()
    if _DIGITS.fullmatch(written):
        return datetime.fromtimestamp(float(written), UTC)
    if match := _TWITTER_TIME.fullmatch(written):
        month, day, clock, offset, year = match.groups()
        return datetime.fromisoformat(f"{year}-{_MONTHS.index(month) + 1:02}-{day}T{clock}{offset}")
    if match := _DOTTED_DATE.fullmatch(written):
        day, month, year = map(int, match.groups())
        return datetime(year, month, day)
    return datetime.fromisoformat(written)


_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}


def read_number(value: object) -> float | None:
    """Return the value as a number. Return None for an empty value, and NaN for a value that is not a number."""
    if value in (None, ""):
        return None
    try:
        return math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def kind_of(value: object) -> str:
    """Return the JSON type of a value for an error message, such as `a string`."""
    return "null" if value is None else _KINDS.get(type(value), "an object")
