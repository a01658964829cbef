"""Parse the messages of threads, and decide which messages and replies form a pair.

The rules follow Zhang et al. (2021, A Dataset and Baselines for Multilingual Reply Suggestion). This module reads no
files.
"""

import html
import math
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from corpora.core.languages import code_of, finer
from corpora.core.masking import readable
from corpora.core.records import (
    RecordError,
    checked,
    kind_of,
    read_author,
    read_id,
    read_number,
    read_string,
    read_time,
)
from corpora.core.values import is_missing, is_removed, tidy

# The fields of a pair's record. Annotators see only the message and the reply. The certainty is the detector's score
# for the record's language, from 0 to 1 with six decimal places.
FIELDS = ("message", "reply", "thread", "message_id", "certainty")
# A row of a file contains either a message or a whole thread. A thread is a list of turns, each of which replies to the
# previous one. These are the columns and the required columns for messages and for threads.
MESSAGE = ("id", "parent_id", "text", "thread", "score", "deleted", "language", "author", "posted_at")
MESSAGE_NEEDS = ("id", "parent_id", "text")
TURNS = ("thread", "turns", "language")
TURNS_NEED = ("thread", "turns")

# A text that starts with one of these notices belongs to a removed message. Other notices, such as
# [ Removed by Reddit ], must be the whole text.
REMOVED = ("[removed]", "[deleted]")
LEAST_SCORE = 1.0
LEAST_CERTAINTY = 0.7

# The reasons why a reply does not become a pair of the corpus. If several reasons apply, the first is recorded.
# messages_paired.sql checks all reasons except the last two, in this order.
UNKNOWN, CIRCLE, DELETED, LOW, EMPTY = "unknown_parent", "circle", "deleted", "low", "empty"
UNCERTAIN, OUTSIDE = "uncertain", "outside_dates"
REASONS = {
    UNKNOWN: "answers a message that is not in the files",
    CIRCLE: "is part of a cycle of replies",
    DELETED: "the message or reply was deleted or removed",
    LOW: "the message or reply has a score below 1",
    EMPTY: "the message or reply is empty",
    UNCERTAIN: "the language is too uncertain",
    OUTSIDE: "the reply is outside the dates of its language, or has no date",
}
# Reasons why a reply has no valid parent, so there is no pair.
NO_PAIR = (UNKNOWN, CIRCLE)

# The dates of the replies to keep. The keys are `from` (inclusive) and `until` (exclusive), and each value maps
# languages to a day such as 2018-01-01. The day for "" applies to all languages that are not listed.
Dates = Mapping[str, Mapping[str, str]]
FROM, UNTIL = "from", "until"

_BOOLEANS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


class Message(NamedTuple):
    """A message in a thread.

    parent: id of the message that it replies to, or "" for the first message in a thread
    low: whether the message has a score below LEAST_SCORE
    language: language stated in the file; "" if there is none
    """

    id: str
    parent: str
    text: str
    thread: str
    low: bool
    deleted: bool
    language: str
    author: str
    posted_at: datetime | None = None


def read_message(raw: Mapping[str, Any], author_key: bytes, *, unescape: bool = False) -> Message:
    """Parse a row that contains a message. If the message was deleted, its text is "".

    raw: values of the row by column; the columns are those in MESSAGE
    author_key: the installation's key for hashing authors
    unescape: whether to decode HTML entities such as &amp; in the text

    Raise RecordError for the first rule that the row breaks.
    """
    text = "" if is_missing(raw.get("text")) else _text(raw.get("text"), unescape=unescape)
    deleted = _deleted(raw.get("deleted")) or is_notice(text)
    return Message(
        id=message_id(raw.get("id")),
        parent=_parent(raw.get("parent_id")),
        text="" if deleted else text,
        thread=_name("thread", raw.get("thread")),
        low=_is_low(raw.get("score")),
        deleted=deleted,
        language=_name("language", raw.get("language")),
        author=read_author(raw.get("author"), author_key),
        posted_at=None if is_missing(raw.get("posted_at")) else read_time(raw.get("posted_at")),
    )


def read_turns(raw: Mapping[str, Any], *, unescape: bool = False) -> Iterator[Message]:
    """Parse a row that contains a thread, and yield its messages. Each message replies to the previous one.

    A message's id consists of the thread's id and the number of the turn, starting from 1.

    raw: values of the row by column; the columns are those in TURNS
    unescape: whether to decode HTML entities such as &amp; in the texts

    Raise RecordError if the row does not contain a list of turns.
    """
    thread = read_id(raw.get("thread"), "thread")
    turns = raw.get("turns")
    if not isinstance(turns, list):
        raise RecordError(f"The turns are {kind_of(turns)}. They must be a list of strings.")
    language = _name("language", raw.get("language"))
    texts = [_text(turn, unescape=unescape) for turn in turns]
    for number, text in enumerate(texts, start=1):
        deleted = is_notice(text)
        parent = turn_id(thread, number - 1) if number > 1 else ""
        yield Message(
            read_id(turn_id(thread, number)), parent, "" if deleted else text, thread, False, deleted, language, ""
        )


def turn_id(thread: str, number: int) -> str:
    return f"{thread}#{number}"


def message_id(value: object, what: str = "id") -> str:
    """Return a message's id without the prefix t1_, which Reddit adds only in some places."""
    return read_id(value, what).removeprefix("t1_")


def _parent(value: object) -> str:
    """Return the parent's id, or "" for the first message of a thread.

    On Reddit, the first message of a thread replies to a post, whose id starts with t3_.
    """
    if is_missing(value):
        return ""
    parent = message_id(value, "parent_id")
    return "" if parent.startswith("t3_") else parent


def _text(value: object, *, unescape: bool) -> str:
    """Return the text, or "" if it is missing."""
    text = "" if value is None else read_string("text", value)
    return checked("text", html.unescape(text)) if unescape and "&" in text else text


def _name(field: str, value: object) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError(f"The {field} is {kind_of(value)}. It must be a string.")
    return tidy(checked(field, str(value)))


def _is_low(value: object) -> bool:
    score = read_number(value)
    if score is not None and math.isnan(score):
        raise RecordError(f"The score {str(value)[:40]!r} is not a number. Leave the cell empty if there is no score.")
    return score is not None and score < LEAST_SCORE


def _deleted(value: object) -> bool:
    deleted = _BOOLEANS.get("" if value is None else str(value).strip().lower())
    if deleted is None:
        raise RecordError(f"The value of deleted is {str(value)[:40]!r}. It must be true or false.")
    return deleted


def is_within(dates: Dates, language: str, posted_at: datetime | None) -> bool:
    """Return whether a reply is within the dates for its language. If dates are set, an undated reply is not."""
    start, end = (dates.get(bound, {}).get(language, dates.get(bound, {}).get("", "")) for bound in (FROM, UNTIL))
    day = f"{posted_at:%Y-%m-%d}" if posted_at else ""
    return start <= day and (not end or "" < day < end)


def is_notice(text: str) -> bool:
    """Return whether the text is only a notice that a message was deleted or removed."""
    return text.lstrip().lower().startswith(REMOVED) or is_removed(text)


def pair_text(message: str, reply: str) -> str:
    """Return the text for detecting a pair's language: the message and the reply on one line.

    Addresses and mentions are kept, as in the article. Removing them would hardly matter. Only one more of the 1,791
    oasst1 pairs without a deleted side would exceed the minimum certainty of 0.7 (its reply consists of two links), and
    none of the 11,926 pairs in the chatterbot corpus.
    """
    return readable(f"{message} {reply}")


def cell(text: str) -> str:
    """Return the text as a cell of a published file. Texts with the same cell are treated as equal.

    White space is normalized, and byte order marks are removed, because some readers drop them.
    """
    return " ".join(text.replace("\ufeff", " ").split())


def comparison_key(text: str) -> str:
    """Return a key for comparing texts between files: the cell in NFC, because some programs decompose accents."""
    return unicodedata.normalize("NFC", cell(text))


def matches_language(declared: str, detected: str) -> bool:
    """Return whether a detected language is the declared language, or a coarser code that covers it."""
    code = code_of(declared) or declared
    return detected in (code, code.split("-")[0]) or code in finer(detected)
