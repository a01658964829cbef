"""Ids, labels, workers and authors as other programs leave them, and as every importer reads them.

pandas and R write a word where there is no value, and 1.0 for 1 in a column with gaps. Spreadsheets round long numbers.
Two keyboards may write the same é in two ways (NFC and NFD). A missing value is never a value of its own.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection

from corpora.core import NAMED

# What pandas, R, databases and spreadsheets write where there is no value. `none` is missing here on purpose: people
# use it as a label.
_WORDS = (
    "nan NaN NAN -nan -NaN <NA> NA NaT None NULL null Null (null) <null> \\N N/A n/a #N/A #NA #REF! #NAME? #VALUE! "
    "1.#IND -1.#IND 1.#QNAN -1.#QNAN"
)
MISSING = frozenset(_WORDS.split()) | {"", "#N/A N/A"}

# What sites write in place of a person or a text that is gone, such as `[ Removed by Reddit ]`.
_REMOVED = re.compile(
    r"[\[(<]\s*(?:this )?(?:(?:comment|post|message|user|account|content) )?(?:was |has been )?(?:deleted|removed)"
    r"(?:\s+(?:reddit|by|in|on|due|because|for|per|at|from|as)\b[^\n]{0,300})?[\s.!]*[\])>]",
    re.IGNORECASE,
)
_EXPONENT = re.compile(r"[+-]?\d(?:[.,]\d*)?e[+-]?\d{1,3}", re.IGNORECASE)
_FRACTION = re.compile(r"([+-]?\d+)[.,]0+")
_EXACT = 1 << 53  # beyond it, a float no longer holds every whole number
# Spaces that look like the plain one.
_SPACES = re.compile("[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")


class ValueFault(ValueError):
    """Why a value cannot be taken, as the end of a sentence that begins with what it is."""


def tidy(text: str) -> str:
    """The text in NFC, without white space at its ends, and with plain single spaces."""
    if text.isascii():
        return text.strip() if "  " not in text else _SPACES.sub(" ", text).strip()
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()


def is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip() in MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_removed(text: str) -> bool:
    """Whether a text is only a notice that a person or a text is gone."""
    return _REMOVED.fullmatch(text.strip()) is not None


def is_respelled(text: str) -> bool:
    """Whether another program may have written a number so: as 9.06E+17, or 1.0 for 1."""
    return bool(_EXPONENT.fullmatch(text) or _FRACTION.fullmatch(text))


def rewritten(text: str) -> bool:
    """Whether another program has rewritten a number, such as 9.06E+17, so that the value is lost."""
    if _EXPONENT.fullmatch(text):
        return True
    found = _FRACTION.fullmatch(text)
    return found is not None and abs(int(found[1])) >= _EXACT


def whole(text: str) -> str:
    """1 for 1.0, which pandas writes once a column has a gap; any other text as it is."""
    found = _FRACTION.fullmatch(text)
    return found[1] if found else text


def read_value(value: object, known: Collection[str] = ()) -> str:
    """A label, worker or author as text; "" if it is missing. ValueFault if it is neither a string nor a whole number,
    or if another program has spoilt it.

    known: values that are right as they stand, even `None` or `1.0`.
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
    """The known value that a text stands for: itself, or 1.0 for 1; the text where there is none."""
    if not known or text in known:
        return text
    same = {whole(tidy(each)): each for each in known}
    return same.get(whole(tidy(text)), text)


class Respelled:
    """The values that were not taken as a file has them, to be reported: (as written, as taken) -> rows."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[str, str]] = Counter()

    def note(self, written: object, taken: str) -> None:
        if taken and str(written) != taken:
            self.rows[str(written), taken] += 1

    def sentences(self, what: str) -> list[str]:
        """what: the values, in the plural."""
        if not self.rows:
            return []
        pairs = [f"{_shown(written)} as {taken}" for (written, taken), _ in self.rows.most_common(NAMED)]
        more = f", and {len(self.rows) - NAMED:,} more" if len(self.rows) > NAMED else ""
        total = self.rows.total()
        rows = "1 row" if total == 1 else f"{total:,} rows"
        return [f"The {what} of {rows} were corrected: {', '.join(pairs)}{more}."]


def _shown(written: str) -> str:
    """With its spaces, and with accents apart where that is what was corrected."""
    shown = written if unicodedata.is_normalized("NFC", written) else f"{written} (NFD)"
    return repr(shown) if written != written.strip() or _SPACES.sub(" ", written) != written else shown


# --- Licences of texts: one spelling for each, and which of them let the text leave.


# Licences that allow passing the text on, by SPDX name without its version. Those with NC or ND are left out:
# a person must decide whether they do.
FREE_LICENCES = ("CC0", "CC-BY", "CC-BY-SA", "PDDL", "ODC-BY", "ODBL", "PUBLIC-DOMAIN")


def licence_key(licence: str) -> str:
    """One spelling for each licence: `CC BY 4.0`, `cc-by-4.0` and `CC_BY_4.0` are `CC-BY-4.0`."""
    return re.sub(r"[\s_-]+", "-", licence.strip().upper())


def is_free(licence: str) -> bool:
    """Whether a licence, of whatever version, is known to let the text leave."""
    return re.sub(r"-\d+(\.\d+)*$", "", licence_key(licence)) in FREE_LICENCES
