"""Normalize ids, labels, workers and authors from files written by other programs. All importers use this module.

pandas and R write missing values as NaN or NA, which must not be imported as values. They also turn 1 into 1.0 in a
column with gaps. Spreadsheets round long numbers. Finally, a letter such as é can be encoded in two ways (NFC and NFD).
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

# How pandas, R, databases and spreadsheets write a missing value. The list deliberately excludes `none`, which is a
# common label.
_PLACEHOLDERS = (
    "nan NaN NAN -nan -NaN <NA> NA NaT None NULL null Null (null) <null> \\N N/A n/a #N/A #NA "
    "#REF! #NAME? #VALUE! #NUM! #NULL! #DIV/0! 1.#IND -1.#IND 1.#QNAN -1.#QNAN"
)
MISSING = frozenset(_PLACEHOLDERS.split()) | {"", "#N/A N/A"}

# A notice that a site shows in place of a removed user or text, such as `[ Removed by Reddit ]` or `This message was
# deleted.` A notice without brackets must name what was removed.
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
_MARKS = re.compile(r"[\\*_~`\u200b]+|\s+")  # Markdown markup, and runs of white space
_EXPONENT = re.compile(r"[+-]?\d(?:[.,]\d*)?e[+-]?\d{1,3}", re.IGNORECASE)
_FRACTION = re.compile(r"([+-]?\d+)[.,]0+")
_EXACT = 1 << 53  # a float can represent every integer up to this number
# Runs of spaces and of characters that look like a space.
_SPACES = re.compile("[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_ZERO_WIDTH = re.compile("[\u200b\u2060\ufeff]+")
_TRUTH = frozenset({"TRUE", "FALSE", "True", "False"})  # what spreadsheets and pandas write for true and false

_WORD = f"[{UNSPACED}]|[^\\s{UNSPACED}]+"


class ValueFault(ValueError):
    """Raised for a rejected value. Callers complete the message to a sentence, as in `The label` + message."""


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
    """Cache the results of `read` for strings, because most values occur in many rows."""
    cached_read = lru_cache(100_000)(read)
    return lambda value: cached_read(value) if type(value) is str else read(value)


def is_empty(text: str) -> bool:
    """Return whether the text contains no visible character."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def word_count(text: str) -> int:
    """Count the words in a text, separated by white space. In scripts without spaces, count the characters."""
    return len(text.split()) if text.isascii() else sum(1 for _ in re.finditer(_WORD, text))


def is_removed(text: str) -> bool:
    """Return whether the text is only a notice that a user or text was removed, such as `[deleted]`."""
    if len(text) > _LONGEST_NOTICE:
        return False
    plain = _MARKS.sub(lambda mark: " " if mark[0].isspace() else "", html.unescape(text))
    return _REMOVED.fullmatch(plain.strip()) is not None


def is_respelled(text: str) -> bool:
    """Return whether the text looks like a number reformatted by another program, such as 9.06E+17, or 1.0 for 1."""
    return bool(_EXPONENT.fullmatch(text) or _FRACTION.fullmatch(text))


def rewritten(text: str) -> bool:
    """Return whether the text looks like a number that lost its exact value in another program, such as 9.06E+17."""
    if _EXPONENT.fullmatch(text):
        return True
    match = _FRACTION.fullmatch(text)
    return match is not None and abs(int(match[1])) >= _EXACT


def whole(text: str) -> str:
    """Remove a zero fraction: 1.0 becomes 1, because pandas writes integers as 1.0 if the column has gaps."""
    match = _FRACTION.fullmatch(text)
    return match[1] if match else text


def read_value(value: object, accepted: Collection[str] = (), *, is_name: bool = False) -> str:
    """Return a label, worker or author as text, or "" if it is missing.

    accepted: values to accept unchanged, even if they look like `None` or `1.0`
    is_name: whether the value identifies a person, and so cannot be TRUE or FALSE

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
    """Return the accepted value equivalent to a text, such as 1 for 1.0. If there is none, return the text."""
    if not accepted or text in accepted:
        return text
    values = {whole(tidy(value)): value for value in accepted}
    return values.get(whole(tidy(text)), text)


class Respelled:
    """Collects the values corrected during an import, for the import's report.

    rows: number of rows for each (original value, stored value) pair
    first: line number of the first row with the same pair; 0 if unknown
    """

    def __init__(self) -> None:
        self.rows: Counter[tuple[str, str]] = Counter()
        self.first: dict[tuple[str, str], int] = {}

    def note(self, written: object, stored: str, line: int = 0) -> None:
        if written != stored and stored and str(written) != stored:
            self.rows[str(written), stored] += 1
            self.first.setdefault((str(written), stored), line)

    def sentences(self, what: str, done: str = "corrected") -> list[str]:
        """Return sentences that report the corrections, or an empty list if there were none.

        what: the kind of value, such as `label`
        done: the participle for the correction, such as `corrected`
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
    """Format a value so that unusual spaces and decomposed accents (NFD) can be seen."""
    normalized = written if unicodedata.is_normalized("NFC", written) else f"{written} (NFD)"
    return repr(normalized) if written != written.strip() or _SPACES.sub(" ", written) != written else normalized


# --- Licences: how they are spelled, and whether they permit publication of the text.


# Licences that permit redistribution, as SPDX names without versions. Licences with NC or ND are not listed, because
# they need a case-by-case decision.
FREE_LICENCES = ("CC0", "CC-BY", "CC-BY-SA", "PDDL", "ODC-BY", "ODBL", "PUBLIC-DOMAIN")


def licence_key(licence: str) -> str:
    """Normalize the spelling of a licence: `CC BY 4.0`, `cc-by-4.0` and `CC_BY_4.0` become `CC-BY-4.0`."""
    return re.sub(r"[\s_-]+", "-", licence.strip().upper())


def is_free(licence: str) -> bool:
    """Return whether a licence is known to permit publication of the text. Its version does not matter."""
    return re.sub(r"-\d+(\.\d+)*$", "", licence_key(licence)) in FREE_LICENCES
