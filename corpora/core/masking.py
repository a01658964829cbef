"""What people see of a post, and what detectors read of it. Nothing here depends on languages.

People see the post with every mention replaced: usernames cannot be translated and have no language, as the
2015 article argues. Detectors read it without mentions and addresses, on one line.
"""

import re
import unicodedata

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
_UNREADABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufe00-\ufe0f"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
    + "\ud800-\udfff]"
)
_SPACES = re.compile(r"\s+")


def mask_mentions(text: str) -> str:
    """The text with mentions as `@xzy`; hashtags and e-mail addresses stay. Masking again changes nothing."""
    return _MENTION.sub(MASK, text) if "@" in text or "＠" in text else text


def clean_for_detectors(text: str) -> str:
    """The text as detectors read it: one line without mentions, addresses, controls; may be empty."""
    for pattern in (_URL, _MENTION, _EMAIL, _UNREADABLE, _SPACES):
        text = pattern.sub(" ", text)
    return text.strip()


def count_letters(text: str) -> int:
    """How many code points of the text, as detectors read it, are letters or marks (categories L and M)."""
    return sum(unicodedata.category(character)[0] in "LM" for character in clean_for_detectors(text))
