"""Split text into words and user-perceived characters.

User-perceived characters are grapheme clusters, as defined by rules GB3 to GB13 of Unicode Standard Annex 29. Examples
are a letter with its accents and vowel signs, a Hangul syllable of several jamo, a flag, or an emoji with its skin
tone. The rules build on general categories, which come from Python's unicodedata.
"""

import re
import unicodedata
from itertools import pairwise

_ZWNJ, _ZWJ = "\u200c", "\u200d"
# Characters that continue a cluster, in addition to those in the categories Mn, Me and Mc.
_CONTINUING = re.compile("[\u0e33\u0eb3\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
# Characters in category Mc that begin a new cluster.
_BEGINNING = re.compile(
    "[\u102b\u102c\u1038\u1062-\u1064\u1067-\u106d\u1083\u1087-\u108c\u108f\u109a-\u109c\u1a61\u1a63\u1a64\uaa7b\uaa7d"
    "\U00011720\U00011721]"
)
# Characters that join the following character's cluster, such as the Arabic number sign.
_PREPENDED = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3\U0001193f\U00011941"
    "\U00011a84-\U00011a89\U00011d46\U00011f02]"
)
_FLAG_LETTER = re.compile("[\U0001f1e6-\U0001f1ff]")
_SYMBOL = re.compile(
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23fa\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5\U0001f201-\U0001f3fa\U0001f400-\U0001faff\U0001fc00-\U0001fffd]"
)
# Consonants that a virama joins, by script: Devanagari, Bengali, Gujarati, Oriya, Telugu, Malayalam.
_CONSONANT = re.compile(
    "[\u0915-\u0939\u0958-\u095f\u0978-\u097f\u0995-\u09a8\u09aa-\u09b0\u09b2\u09b6-\u09b9\u09dc\u09dd\u09df\u09f0\u09f1"
    "\u0a95-\u0aa8\u0aaa-\u0ab0\u0ab2\u0ab3\u0ab5-\u0ab9\u0af9\u0b15-\u0b28\u0b2a-\u0b30\u0b32\u0b33\u0b35-\u0b39\u0b5c"
    "\u0b5d\u0b5f\u0b71\u0c15-\u0c28\u0c2a-\u0c39\u0c58-\u0c5a\u0d15-\u0d3a]"
)
_VIRAMAS = "\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d"
# Scripts without spaces between words, as a character set for patterns: Thai, Lao, Myanmar, Khmer, Kana, Han.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED = re.compile(f"[{UNSPACED}]")
_L, _V, _T, _LV, _LVT = "L", "V", "T", "LV", "LVT"
# The types of Hangul syllable or jamo that can follow each type in the same cluster.
_FOLLOWING = {_L: (_L, _V, _LV, _LVT), _LV: (_V, _T), _V: (_V, _T), _LVT: (_T,), _T: (_T,)}


def is_within_character(text: str, place: int) -> bool:
    """Return whether the position between text[place - 1] and text[place] is inside a grapheme cluster."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before == "\r" and after == "\n":
        return True
    if _is_control(before) or _is_control(after):
        return False
    if _extends(after) or _PREPENDED.match(before) or _hangul(after) in _FOLLOWING.get(_hangul(before), ()):
        return True
    if _FLAG_LETTER.match(before) and _FLAG_LETTER.match(after):
        return _number_of_flag_letters(text, place) % 2 == 1
    return _is_joined(text, place)


def words_in(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the tokens in a text. White space and format characters are skipped.

    A token is a run of letters, digits and marks, or a single other character. In scripts without spaces between words,
    every character is a token.
    """
    places: list[tuple[int, int]] = []
    is_in_word = False
    for start, end in pairwise(place for place in range(len(text) + 1) if not is_within_character(text, place)):
        is_word = unicodedata.category(text[start])[0] in "LNM" and not is_unspaced(text[start])
        if is_word and is_in_word and places[-1][1] == start:
            places[-1] = (places[-1][0], end)
        elif not (text[start].isspace() or is_invisible(text[start])):
            places.append((start, end))
        is_in_word = is_word
    return places


def is_unspaced(letter: str) -> bool:
    """Return whether a character belongs to a script without spaces between words."""
    return _UNSPACED.match(letter) is not None


def is_invisible(letter: str) -> bool:
    """Return whether a character is a stand-alone format character, such as a directional mark."""
    return unicodedata.category(letter) == "Cf" and not (_extends(letter) or _PREPENDED.match(letter))


def _is_control(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Zl", "Zp") or is_invisible(letter)


def _extends(letter: str) -> bool:
    category = unicodedata.category(letter)
    if category == "Mc":
        return not _BEGINNING.match(letter)
    return category in ("Mn", "Me") or _CONTINUING.match(letter) is not None


def _is_vowel_sign(letter: str) -> bool:
    return unicodedata.category(letter) == "Mc" or letter in "\u0e33\u0eb3"


def _hangul(letter: str) -> str:
    code = ord(letter)
    if 0xAC00 <= code <= 0xD7A3:
        return _LVT if (code - 0xAC00) % 28 else _LV
    ranges = (_L, 0x1100, 0x115F), (_L, 0xA960, 0xA97C), (_V, 0x1160, 0x11A7), (_V, 0xD7B0, 0xD7C6)
    ranges_of_t = (_T, 0x11A8, 0x11FF), (_T, 0xD7CB, 0xD7FB)
    return next((name for name, first, last in (*ranges, *ranges_of_t) if first <= code <= last), "")


def _number_of_flag_letters(text: str, place: int) -> int:
    start = place
    while start and _FLAG_LETTER.match(text[start - 1]):
        start -= 1
    return place - start


def _is_joined(text: str, place: int) -> bool:
    """Return whether a zero-width joiner connects two symbols at this position, or a virama two consonants."""
    symbol, consonant = _SYMBOL.match(text[place]), _CONSONANT.match(text[place])
    if not consonant and not (symbol and text[place - 1] == _ZWJ):
        return False
    start = place
    while start and _extends(text[start - 1]) and not _is_vowel_sign(text[start - 1]):
        start -= 1
    first, between = text[start - 1 : start], text[start:place]
    if symbol:
        return _SYMBOL.match(first) is not None and between.count(_ZWJ) == 1
    return _CONSONANT.match(first) is not None and any(sign in _VIRAMAS for sign in between) and _ZWNJ not in between
