"""Normalization of ids, labels, workers and authors in files that other programs have written.

All importers use this module. pandas and R write a word such as NaN for a missing value, and this word must not be
imported as a value. They also turn 1 into 1.0 in a column with gaps. Spreadsheets round long numbers. Finally, a letter
such as é can be encoded in two ways (NFC and NFD).
"""

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, TypeVar

from corpora.core import NAMED
from corpora.core.graphemes import UNSPACED

Value = TypeVar("Value")

# What pandas, R, databases and spreadsheets write for a missing value. The list deliberately excludes `none`, because
# people use it as a label.
_WORDS = (
    "nan NaN NAN -nan -NaN <NA> NA NaT None NULL null Null (null) <null> \\N N/A n/a #N/A #NA "
    "#REF! #NAME? #VALUE! #NUM! #NULL! #DIV/0! 1.#IND -1.#IND 1.#QNAN -1.#QNAN"
)
MISSING = frozenset(_WORDS.split()) | {"", "#N/A N/A"}

# A notice that a site shows in place of a removed user or text, such as `[ Removed by Reddit ]` or `This message was
# deleted.` Without brackets, it must name what was removed.
_NOUN = r"(?:comment|post|message|user|account|content|submission|reply|thread|tweet)"
_SUBJECT = rf"(?:sorry,? )?(?:(?:this|the) )?{_NOUN} "
_AUXILIARY = "(?:(?:was|is|has been|has) )?"
_STATE = "(?:deleted|removed|redacted|unavailable|flagged|dead|gelöscht|entfernt|supprimée?|eliminado|removido|удалено)"
_BY = (
    "(?: by (?:the |its |their )?(?:user|author|owner|poster|op|reddit|admin|staff|moderation|mod|moderator"
    "|automoderator)s?(?: of .{1,40}| team)?)?"
)
_WHO = r"(?:reddit|by|in|on|due|because|for|per|at|from|as|too|via)\b"
_REMOVED = re.compile(
    rf"[\[(<{{] ?(?:{_SUBJECT})?{_AUXILIARY}{_STATE}(?: {_NOUN}| their account)?"
    rf"(?:(?: {_WHO}| ?[:–-] ).{{0,300}})?[ .!]*[\])>}}]"
    rf"|{_SUBJECT}{_AUXILIARY}(?:deleted|removed){_BY}[ .!]*",
    re.IGNORECASE,
)
_LONGEST_NOTICE = 400  # characters
_MARKS = re.compile(r"[\\*_~`\u200b]+|\s+")  # the marks of Markdown, and runs of spaces
_EXPONENT = re.compile(r"[+-]?\d(?:[.,]\d*)?e[+-]?\d{1,3}", re.IGNORECASE)
_FRACTION = re.compile(r"([+-]?\d+)[.,]0+")
_EXACT = 1 << 53  # Up to this number, a float can represent every integer.
# Runs of plain spaces and of characters that look like one.
_SPACES = re.compile("[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_ZERO_WIDTH = re.compile("[\u200b\u2060\ufeff]+")
_TRUTH = frozenset({"TRUE", "FALSE", "True", "False"})  # what spreadsheets and pandas write for true and false

_WORD = f"[{UNSPACED}]|[^\\s{UNSPACED}]+"


class ValueFault(ValueError):
    """The error for a rejected value. The message is the end of a sentence that starts with the kind of value."""


def tidy(text: str) -> str:
    """Return the text in NFC, with whitespace collapsed to single spaces and stripped from both ends.

    Zero-width spaces and byte order marks are removed, because they are invisible.
    """
    if text.isascii():
        return text.strip() if "  " not in text else _SPACES.sub(" ", text).strip()
    return _SPACES.sub(" ", _ZERO_WIDTH.sub("", unicodedata.normalize("NFC", text))).strip()


def is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def each_once(read: Callable[[Any], Value]) -> Callable[[Any], Value]:
    """Return a function that reads each text only once, because most values occur in many rows."""
    read_once = lru_cache(100_000)(read)
    return lambda value: read_once(value) if type(value) is str else read(value)


def is_empty(text: str) -> bool:
    """Return whether a text contains no visible character."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def word_count(text: str) -> int:
    """Return the number of words, which are separated by white space.

    In scripts without spaces between words, each character counts.
    """
    return len(text.split()) if text.isascii() else sum(1 for _ in re.finditer(_WORD, text))


def is_removed(text: str) -> bool:
    """Return whether a text consists only of a notice that a user or a text was removed."""
    if len(text) > _LONGEST_NOTICE:
        return False
    plain = _MARKS.sub(lambda mark: " " if mark[0].isspace() else "", html.unescape(text))
    return _REMOVED.fullmatch(plain.strip()) is not None


def is_respelled(text: str) -> bool:
    """Return whether a text looks like a number that another program has rewritten, such as 9.06E+17, or 1.0 for 1."""
    return bool(_EXPONENT.fullmatch(text) or _FRACTION.fullmatch(text))


def rewritten(text: str) -> bool:
    """Return whether another program has rewritten a number so that its exact value is lost, as in 9.06E+17."""
    if _EXPONENT.fullmatch(text):
        return True
    match = _FRACTION.fullmatch(text)
    return match is not None and abs(int(match[1])) >= _EXACT


def whole(text: str) -> str:
    """Return 1 for 1.0, because pandas writes integers in this way if a column has gaps.

    Return other texts unchanged.
    """
    match = _FRACTION.fullmatch(text)
    return match[1] if match else text


def read_value(value: object, accepted: Collection[str] = (), *, is_name: bool = False) -> str:
    """Return a label, worker or author as text, or "" if it is missing.

    accepted: values to accept as they are written, even if they look like `None` or `1.0`
    is_name: whether the value identifies somebody, so that it cannot be TRUE or FALSE

    Raise ValueFault if the value is neither a string nor an integer, or if another program has corrupted it.
    """
    if isinstance(value, float) and value.is_integer():
        value = f"{value:.1f}"
    if is_missing(value) and not (isinstance(value, str) and value.strip() in accepted):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueFault(f"is {value!r:.40}, neither a string nor an integer; save it as text")
    try:
        text = tidy(str(value))
    except ValueError:
        raise ValueFault("is a number with thousands of digits; save it as text") from None
    if text in accepted:
        return text
    if is_name and text in _TRUTH:
        raise ValueFault(f"{text} is a truth value, perhaps rewritten by another program; save it as text")
    if rewritten(text):
        raise ValueFault(f"{text} is a number that another program has rewritten; save it as text")
    return matching(whole(text), accepted)


def matching(text: str, accepted: Collection[str]) -> str:
    """Return the accepted value that a text stands for, as 1.0 stands for 1. If there is none, return the text."""
    if not accepted or text in accepted:
        return text
    values = {whole(tidy(value)): value for value in accepted}
    return values.get(whole(tidy(text)), text)


class Respelled:
    """The values that were corrected during an import, for the import's report.

    rows: the number of rows for each (value as written, value as stored) pair
    first: the line of the first of these rows, 0 if unknown
    """

    def __init__(self) -> None:
        self.rows: Counter[tuple[str, str]] = Counter()
        self.first: dict[tuple[str, str], int] = {}

    def note(self, written: object, stored: str, line: int = 0) -> None:
        if written != stored and stored and str(written) != stored:
            self.rows[str(written), stored] += 1
            self.first.setdefault((str(written), stored), line)

    def sentences(self, what: str, done: str = "corrected") -> list[str]:
        """Return the sentences for the report. The list is empty if no value was corrected.

        what: the kind of value, such as `label`
        done: the word for the correction
        """
        if not self.rows:
            return []
        total, many = self.rows.total(), len(self.rows) > 1
        pairs = [
            f"{_visible(written)} as {stored}{self._place((written, stored), rows, many=many)}"
            for (written, stored), rows in self.rows.most_common(NAMED)
        ]
        remaining = f", and {len(self.rows) - NAMED:,} more" if len(self.rows) > NAMED else ""
        subject = f"{what} of 1 row was" if total == 1 else f"{what}s of {total:,} rows were"
        return [f"The {subject} {done}: {', '.join(pairs)}{remaining}."]

    def _place(self, pair: tuple[str, str], rows: int, *, many: bool) -> str:
        line = f"line {self.first[pair]:,}" if self.first[pair] else ""
        parts = [f"{rows:,}"] * many + ([f"first in {line}" if rows > 1 else line] if line else [])
        return f" ({', '.join(parts)})" if parts else ""


def _visible(written: str) -> str:
    """Return a value in a form that makes unusual spaces visible and marks decomposed accents (NFD)."""
    normalized = written if unicodedata.is_normalized("NFC", written) else f"{written} (NFD)"
    return repr(normalized) if written != written.strip() or _SPACES.sub(" ", written) != written else normalized


# --- Licences: how they are spelled, and whether they permit publication of the text.


# Licences that permit redistribution, as SPDX names without versions. Licences with NC or ND are not listed, because a
# person must decide about each of them.
FREE_LICENCES = ("CC0", "CC-BY", "CC-BY-SA", "PDDL", "ODC-BY", "ODBL", "PUBLIC-DOMAIN")


def licence_key(licence: str) -> str:
    """Return a normalized spelling of a licence.

    For example, `CC BY 4.0`, `cc-by-4.0` and `CC_BY_4.0` become `CC-BY-4.0`.
    """
    return re.sub(r"[\s_-]+", "-", licence.strip().upper())


def is_free(licence: str) -> bool:
    """Return whether a licence is known to permit publication of the text. Its version does not matter."""
    return re.sub(r"-\d+(\.\d+)*$", "", licence_key(licence)) in FREE_LICENCES
