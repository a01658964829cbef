"""Ids, labels, workers and authors from files that other programs have written, normalised for every importer.

pandas and R write a word for a missing value, and turn 1 into 1.0 in a column with gaps. Spreadsheets round long
numbers. The same é can be encoded in two ways (NFC and NFD). A missing value never counts as a value.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection

from corpora.core import NAMED

# What pandas, R, databases and spreadsheets write for a missing value. `none` is deliberately not here, because people
# use it as a label.
_WORDS = (
    "nan NaN NAN -nan -NaN <NA> NA NaT None NULL null Null (null) <null> \\N N/A n/a #N/A #NA #REF! #NAME? #VALUE! "
    "1.#IND -1.#IND 1.#QNAN -1.#QNAN"
)
MISSING = frozenset(_WORDS.split()) | {"", "#N/A N/A"}

# Notices that sites show in place of a removed user or text, such as `[ Removed by Reddit ]`.
_REMOVED = re.compile(
    r"[\[(<]\s*(?:this )?(?:(?:comment|post|message|user|account|content) )?(?:was |has been )?(?:deleted|removed)"
    r"(?:\s+(?:reddit|by|in|on|due|because|for|per|at|from|as)\b[^\n]{0,300})?[\s.!]*[\])>]",
    re.IGNORECASE,
)
_EXPONENT = re.compile(r"[+-]?\d(?:[.,]\d*)?e[+-]?\d{1,3}", re.IGNORECASE)
_FRACTION = re.compile(r"([+-]?\d+)[.,]0+")
_EXACT = 1 << 53  # largest range in which a float represents every integer
# Characters that look like a plain space.
_SPACES = re.compile("[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")


class ValueFault(ValueError):
    """The reason why a value is rejected, as the end of a sentence that starts with the kind of value."""


def tidy(text: str) -> str:
    """Return the text in NFC, stripped, with plain single spaces."""
    if text.isascii():
        return text.strip() if "  " not in text else _SPACES.sub(" ", text).strip()
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()


def is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_removed(text: str) -> bool:
    """Return whether a text is only a notice that a user or a text was removed."""
    return _REMOVED.fullmatch(text.strip()) is not None


def is_respelled(text: str) -> bool:
    """Return whether another program may have rewritten a number, as 9.06E+17 or as 1.0 for 1."""
    return bool(_EXPONENT.fullmatch(text) or _FRACTION.fullmatch(text))


def rewritten(text: str) -> bool:
    """Return whether another program has rewritten a number so that its value is lost, such as 9.06E+17."""
    if _EXPONENT.fullmatch(text):
        return True
    found = _FRACTION.fullmatch(text)
    return found is not None and abs(int(found[1])) >= _EXACT


def whole(text: str) -> str:
    """Return 1 for 1.0, which pandas writes if a column has gaps; return any other text unchanged."""
    found = _FRACTION.fullmatch(text)
    return found[1] if found else text


def read_value(value: object, known: Collection[str] = ()) -> str:
    """Return a label, worker or author as text, or "" if it is missing.

    known: values to accept as written, even `None` or `1.0`
    ValueFault: the value is neither a string nor an integer, or another program has corrupted it
    """
    if isinstance(value, float) and value.is_integer():
        value = f"{value:.1f}"
    if is_missing(value) and not (isinstance(value, str) and value.strip() in known):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueFault("is neither a string nor a whole number")
    try:
        text = tidy(str(value))
    except ValueError:
        raise ValueFault("is a number of thousands of digits; save it as text") from None
    if text in known:
        return text
    if rewritten(text):
        raise ValueFault(f"{text} is a number that another program has rewritten; save it as text")
    return matching(whole(text), known)


def matching(text: str, known: Collection[str]) -> str:
    """Return the known value that a text means, such as 1.0 for 1, or the text itself if there is none."""
    if not known or text in known:
        return text
    same = {whole(tidy(each)): each for each in known}
    return same.get(whole(tidy(text)), text)


class Respelled:
    """The values that were corrected during an import, for the report.

    rows: number of rows by (value as written, value as stored)
    """

    def __init__(self) -> None:
        self.rows: Counter[tuple[str, str]] = Counter()

    def note(self, written: object, taken: str) -> None:
        if taken and str(written) != taken:
            self.rows[str(written), taken] += 1

    def sentences(self, what: str) -> list[str]:
        """Return the report.

        what: the kind of values, in the plural
        """
        if not self.rows:
            return []
        pairs = [f"{_shown(written)} as {taken}" for (written, taken), _ in self.rows.most_common(NAMED)]
        more = f", and {len(self.rows) - NAMED:,} more" if len(self.rows) > NAMED else ""
        total = self.rows.total()
        rows = "1 row" if total == 1 else f"{total:,} rows"
        return [f"The {what} of {rows} were corrected: {', '.join(pairs)}{more}."]


def _shown(written: str) -> str:
    """Return a value with its spaces visible, and marked if its accents are decomposed (NFD)."""
    shown = written if unicodedata.is_normalized("NFC", written) else f"{written} (NFD)"
    return repr(shown) if written != written.strip() or _SPACES.sub(" ", written) != written else shown


# --- Licences: their normal spelling, and whether they permit publication of the text.


# Licences that allow redistribution, as SPDX names without versions. Licences with NC or ND are left out, because a
# person must decide about them.
FREE_LICENCES = ("CC0", "CC-BY", "CC-BY-SA", "PDDL", "ODC-BY", "ODBL", "PUBLIC-DOMAIN")


def licence_key(licence: str) -> str:
    """Return a normal spelling: `CC BY 4.0`, `cc-by-4.0` and `CC_BY_4.0` all become `CC-BY-4.0`."""
    return re.sub(r"[\s_-]+", "-", licence.strip().upper())


def is_free(licence: str) -> bool:
    """Return whether a licence, in any version, is known to permit publication of the text."""
    return re.sub(r"-\d+(\.\d+)*$", "", licence_key(licence)) in FREE_LICENCES
