"""Prepare the text of a post for annotators and for language detectors.

Annotators see the post with every mention masked, because usernames cannot be translated and have no language, as the
2015 article argues. Detectors get the post on one line, without mentions, addresses or invisible characters, and with
plain letters instead of styled ones (Unicode NFKC). Neither form depends on the language.
"""

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MASK = "@xzy"
# Normalization of the detectors' input. It is part of the version stored with their votes.
FORM = "text in NFKC"

_HOST = r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
# Usernames are ASCII, so in "@userさん" the name ends before the first kana. "＠" is the fullwidth form of "@". An "@"
# after a letter or digit belongs to an e-mail address, unless it follows the "RT" of a retweet.
_MENTION = re.compile(
    rf"(?:(?<![A-Za-z0-9_])|(?i:(?<=\brt)))[@＠]"
    rf"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?[@＠]{_HOST}(?![A-Za-z0-9_])"  # @user@host.tld
    rf"|[A-Za-z0-9_]+(?:[@＠][A-Za-z0-9_]+)*)",  # one username, or several without spaces between them
)

# A URL ends at a space, or where a script that does not use spaces begins, as in "http://t.co/a1見た".
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"
_URL = re.compile(
    rf"(?i:https?)://[^\s{_UNSPACED}]*"
    rf"|\b(?i:www)\.[^\s{_UNSPACED}]+"
    rf"|(?i:\b(?:pic\.twitter\.com|t\.co|bit\.ly|youtu\.be)/[A-Za-z0-9_-]+)"
)
_EMAIL = re.compile(rf"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{{1,64}}@{_HOST}")

# Control characters, noncharacters and surrogates. CLD2 treats them as invalid UTF-8, and fastText stops at a newline.
_UNREADABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
    + "\ud800-\udfff]"
)

# Invisible characters (Unicode's Default_Ignorable_Code_Point and category Cf), such as soft hyphens, bidirectional and
# zero-width controls, variation selectors, fillers and tags. The last line lists the combining marks that strike
# through, underline or enclose letters.
_INVISIBLE = (
    "\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\u0305\u0332-\u0338\u20d0-\u20f0"
)
# Scripts that need zero-width joiners and non-joiners for spelling, for example in Persian and Malayalam. In these
# scripts, joiners are kept, because the detectors were trained on them. Elsewhere, as in emoji, they are removed.
_JOINED = "\u0600-\u109f\u1780-\u18af\ua840-\ua9ff\uaa60-\uaa7f\U00011000-\U00011fff"
_UNSEEN = re.compile(f"[{_INVISIBLE}]|(?<![{_JOINED}])[\u200c\u200d]+|[\u200c\u200d]+(?![{_JOINED}\u200c\u200d])")

# Characters that are not normalized, because the detectors were trained on them. NFKC would split signs such as ´ and
# the Thai and Lao vowel am, replace the jamo of ㅋㅋ, and narrow the wide punctuation of Chinese and Japanese. If they
# were normalized, fastText would get 46 more of 75,000 texts wrong, and 8 more right.
_AS_WRITTEN = re.compile(
    "([\xa8\xaf\xb4\xb8\u02d8-\u02dd\u037a\u0384\u0385\u1fbd\u1fbf-\u1fc1\u1fcd-\u1fcf\u1fdd-\u1fdf\u1fed-\u1fef\u1ffd\u1ffe"
    "\u2017\u203e\u309b\u309c\ufe49-\ufe4c\uffe3\u0e33\u0eb3\u2026\u3131-\u3163\u3165-\u318e]"
    "|(?<=[\u3000-\u9fff\uac00-\ud7ff])[\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+)"
)

_HASHTAG = re.compile(r"[#＃]\S+")
# A sequence of one to four characters that occurs at least three times in a row, with or without spaces, as in laughter
# and drawn-out vowels.
_REPEATED = re.compile(r"(\S{1,4}?)(?:\s*\1){2,}", re.IGNORECASE)
_REPEATED_UNSPACED = re.compile(r"(\S{1,4}?)\1\1")


def mask_mentions(text: str) -> str:
    """Replace each mention with `@xzy`. Hashtags and e-mail addresses are kept. Idempotent."""
    return _MENTION.sub(MASK, text) if "@" in text or "＠" in text else text


def clean_for_detectors(text: str) -> str:
    """Return the text that detectors get. It may be empty."""
    # Addresses with styled letters or invisible characters can only be recognized after `readable` has replaced them,
    # so addresses are removed a second time.
    return " ".join(_without_addresses(readable(_without_addresses(text))).split())


def readable(text: str) -> str:
    """Return the text on one line, in plain letters (NFKC), without control characters or invisible characters."""
    if not text.isascii():
        text = _UNSEEN.sub("", text)
        if not unicodedata.is_normalized("NFKC", text):
            text = "".join(
                piece if number % 2 else unicodedata.normalize("NFKC", piece)
                for number, piece in enumerate(_AS_WRITTEN.split(text))
            )
    if not text.isprintable():
        text = _UNREADABLE.sub(" ", text)
    return " ".join(text.split())


def _without_addresses(text: str) -> str:
    """Replace addresses and mentions with spaces.

    For speed, each pattern is applied only if the text contains a substring required for a match.
    """
    if "/" in text or "www." in text.lower():
        text = _URL.sub(" ", text)
    if "@" in text or "＠" in text:
        text = _EMAIL.sub(" ", _MENTION.sub(" ", text))
    return text


def letters_alone(cleaned: Sequence[str]) -> list[str]:
    """Strip everything except letters, marks and joiners from each text. Runs of other characters become one space."""
    ends, points = _code_points(cleaned)
    spaced = np.where(_letters().take(points) | (points == 0x200C) | (points == 0x200D), points, np.uint32(0x20))
    joined = spaced.tobytes().decode("utf-32-le", "surrogatepass")
    return [" ".join(joined[start:end].split()) for start, end in pairwise([0, *ends.tolist()])]


def count_letters(cleaned: Sequence[str]) -> NDArray[np.int64]:
    """Count the letters and marks (Unicode categories L and M) that are evidence of each cleaned text's language.

    Hashtags are not counted, because they are used across languages. A sequence that is repeated three or more times in
    a row is counted once. Otherwise, detectors could agree on laughter or bare hashtags, which have no language.

    Return one count for each text (texts,).
    """
    ends, points = _code_points([_collapse_repeats(_HASHTAG.sub(" ", text)) for text in cleaned])
    counts = np.append(0, np.cumsum(_letters().take(points)))
    return np.diff(counts[ends], prepend=0)


def _collapse_repeats(text: str) -> str:
    # Every text that _REPEATED matches is also matched by the faster _REPEATED_UNSPACED, which serves as a filter.
    return _REPEATED.sub(r"\1", text) if _REPEATED_UNSPACED.search(text.lower().replace(" ", "")) else text


def _code_points(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return each text's end index, and the code points of all texts in a single array."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    return ends, np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def _letters() -> NDArray[np.bool_]:
    """Return a lookup table of whether each Unicode code point is a letter or a mark (code points,)."""
    return np.fromiter((unicodedata.category(chr(point))[0] in "LM" for point in range(sys.maxunicode + 1)), np.bool_)
