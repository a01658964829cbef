"""The difference between two versions of a text, word by word. Scripts without spaces are compared by character."""

import difflib
import re
from typing import NamedTuple

from corpora.core.graphemes import UNSPACED

SAME, ADDED, REMOVED = "same", "added", "removed"
# Characters of scripts without spaces, each with the vowel signs and tone marks that follow it.
_UNSPACED = f"[{UNSPACED}]"
_SIGNS = r"[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b6-\u17d3\u3099\u309a]"
_MARKS = r"""[.,;:!?؟،؛।。！？、¿¡…"“”„«»‹›()\[\]]"""
_WORD = re.compile(rf"\s+|{_UNSPACED}{_SIGNS}*|{_MARKS}|(?:(?!\s|{_UNSPACED}|{_MARKS}).)+", re.DOTALL)


class Part(NamedTuple):
    """A part of the new or old text: SAME, ADDED or REMOVED."""

    change: str
    text: str


def differences(old: str, new: str) -> list[Part]:
    """Return the parts of both texts in order. Removed parts come before the parts that replace them."""
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    parts: list[Part] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old_words, new_words, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append(Part(SAME, "".join(old_words[i:j])))
        else:
            texts = (REMOVED, "".join(old_words[i:j])), (ADDED, "".join(new_words[k:m]))
            parts += [Part(*part) for part in texts if part[1]]
    return parts
