"""What people see of a post, and what detectors read of it. Nothing here depends on languages.

People see the post with every mention replaced: usernames cannot be translated and have no language, as the
2015 article argues. Detectors read it without mentions and addresses, on one line.
"""

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

MASK = "@xzy"

_HOST = r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
# A username is ASCII, so in "@userさん" it ends at the first kana; "＠" is the sign's fullwidth twin. A sign
# after a letter or digit is the middle of an e-mail address, unless that letter ends a retweet's bare "RT".
_MENTION = re.compile(
    rf"(?:(?<![A-Za-z0-9_])|(?i:(?<=\brt)))[@＠]"
    rf"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?[@＠]{_HOST}(?![A-Za-z0-9_])"  # @user@host.tld
    rf"|[A-Za-z0-9_]+(?:[@＠][A-Za-z0-9_]+)*)",  # one username, or several run together
)

# A URL ends at a space, or where a script without spaces begins: "http://t.co/a1見た".
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"
_URL = re.compile(
    rf"https?://[^\s{_UNSPACED}]*"
    rf"|\bwww\.[^\s{_UNSPACED}]+"
    rf"|\b(?:pic\.twitter\.com|t\.co|bit\.ly|youtu\.be)/[A-Za-z0-9_-]+",
    re.IGNORECASE,
)
_EMAIL = re.compile(rf"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{{1,64}}@{_HOST}")

# Controls (fastText stops at a newline) and Unicode's non-characters: CLD2 takes both for broken UTF-8.
# Variation selectors pick a picture for an emoji; as marks they would count among the letters.
_SELECTORS = re.compile("[\ufe00-\ufe0f]")  # of all of these, only they are printable
_UNREADABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufe00-\ufe0f"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
    + "\ud800-\udfff]"
)


def mask_mentions(text: str) -> str:
    """The text with mentions as `@xzy`; hashtags and e-mail addresses stay. Masking again changes nothing."""
    return _MENTION.sub(MASK, text) if "@" in text or "＠" in text else text


def clean_for_detectors(text: str) -> str:
    """The text as detectors read it: one line without mentions, addresses, controls; may be empty.

    A pattern is looked for only where a sign that it cannot do without is there, since most texts have none.
    """
    if "/" in text or "www." in text.lower():
        text = _URL.sub(" ", text)
    if "@" in text or "＠" in text:
        text = _EMAIL.sub(" ", _MENTION.sub(" ", text))
    if not text.isprintable() or (not text.isascii() and _SELECTORS.search(text)):
        text = _UNREADABLE.sub(" ", text)
    return " ".join(text.split())


def count_letters(cleaned: Sequence[str]) -> NDArray[np.int64]:
    """(texts,): how many code points of each text, as detectors read it, are letters or marks (categories L and M)."""
    lengths = np.fromiter(map(len, cleaned), np.int64, len(cleaned))
    read = np.frombuffer("".join(cleaned).encode("utf-32-le", "surrogatepass"), np.uint32)
    found = np.append(0, np.cumsum(_letters().take(read)))
    ends = np.cumsum(lengths)
    return found[ends] - found[ends - lengths]  # type: ignore[no-any-return]


@cache
def _letters() -> NDArray[np.bool_]:
    """Of each code point, whether it is a letter or a mark."""
    return np.fromiter((unicodedata.category(chr(point))[0] in "LM" for point in range(sys.maxunicode + 1)), np.bool_)
