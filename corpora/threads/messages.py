"""Messages of threads and the pairs that they make: a message, and one that answers it. What is a pair, and why one is
left out, as Zhang et al. have it (2021, A Dataset and Baselines for Multilingual Reply Suggestion). It reads no files.
"""

import math
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from corpora.core.language_codes import code_of
from corpora.core.languages import finer
from corpora.core.masking import readable
from corpora.core.records import RecordError, checked, kind_of, read_author, read_id, read_number
from corpora.core.values import is_missing, is_removed, tidy

# The fields of a record that is a pair. People are shown the first two. `certainty` is the detector's score of the
# record's language, from 0 to 1, in six digits.
FIELDS = ("message", "reply", "thread", "message_id", "certainty")
# What a file may say of a message; and of a thread, whose messages are turns that answer one another in their order.
MESSAGE = ("id", "parent_id", "text", "thread", "score", "deleted", "language", "author")
MESSAGE_NEEDS = ("id", "parent_id", "text")
TURNS = ("thread", "turns", "language")
TURNS_NEED = ("thread", "turns")

# How the texts of removed messages begin; other notices, such as [ Removed by Reddit ], are the whole text.
REMOVED = ("[removed]", "[deleted]")
LEAST_SCORE = 1.0
LEAST_CERTAINTY = 0.7

# Why a message with a parent is no pair of the corpus: reason -> in words. A pair has the first that applies; the query
# messages_paired.sql gives all but the last, in this order.
UNKNOWN, CIRCLE, DELETED, LOW, EMPTY, UNCERTAIN = "unknown_parent", "circle", "deleted", "low", "empty", "uncertain"
REASONS = {
    UNKNOWN: "answers a message that is not in the files",
    CIRCLE: "answers a message that answers it in turn",
    DELETED: "a side was deleted or removed",
    LOW: "a side has a score under 1",
    EMPTY: "a side is empty",
    UNCERTAIN: "no language is certain enough",
}
# Those of them that are no pairs at all.
NO_PAIR = (UNKNOWN, CIRCLE)

_SAID = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


class Message(NamedTuple):
    """parent: the id of the message that it answers, or empty. language: what the file says that it is in, or empty."""

    id: str
    parent: str
    text: str
    thread: str
    low: bool
    deleted: bool
    language: str
    author: str


def read_message(raw: Mapping[str, Any], author_key: bytes) -> Message:
    """The message of a row, keyed by MESSAGE. RecordError for the first rule that it breaks.

    The text of a deleted message is not kept.
    """
    text = "" if is_missing(raw.get("text")) else _text(raw.get("text"))
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
    )


def read_turns(raw: Mapping[str, Any]) -> Iterator[Message]:
    """The messages of a row, keyed by TURNS, each of which answers the one before. The id of a turn is its thread and
    its number, from 1. RecordError where it is no list of turns."""
    thread = read_id(raw.get("thread"), "thread")
    turns = raw.get("turns")
    if not isinstance(turns, list):
        raise RecordError(f"The turns are {kind_of(turns)}; they must be a list of strings.")
    language = _name("language", raw.get("language"))
    read = [_text(turn) for turn in turns]
    for number, text in enumerate(read, start=1):
        deleted = is_notice(text)
        parent = turn_id(thread, number - 1) if number > 1 else ""
        yield Message(
            read_id(turn_id(thread, number)), parent, "" if deleted else text, thread, False, deleted, language, ""
        )


def turn_id(thread: str, number: int) -> str:
    return f"{thread}#{number}"


def message_id(value: object, what: str = "id") -> str:
    """An id as a corpus of pairs has it. Reddit writes t1_ before a comment's id in some places and not in others."""
    return read_id(value, what).removeprefix("t1_")


def _parent(value: object) -> str:
    """Empty for a message that answers none; on Reddit that is one whose parent is a post, written t3_."""
    if is_missing(value):
        return ""
    parent = message_id(value, "parent_id")
    return "" if parent.startswith("t3_") else parent


def _text(value: object) -> str:
    """Empty where there is none, as of a deleted message."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RecordError(f"The text is {kind_of(value)}; it must be a string.")
    return checked("text", value)


def _name(field: str, value: object) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError(f"The {field} is {kind_of(value)}; it must be a string.")
    return tidy(checked(field, str(value)))


def _is_low(value: object) -> bool:
    score = read_number(value)
    if score is None:
        return False
    if math.isnan(score):
        raise RecordError(f"The score {str(value)[:40]!r} is not a number; leave it empty where there is none.")
    return score < LEAST_SCORE


def _deleted(value: object) -> bool:
    said = _SAID.get(str(value).strip().lower() if value is not None else "")
    if said is None:
        raise RecordError(f"Whether it is deleted is {str(value)[:40]!r}; it must be true or false.")
    return said


def is_notice(text: str) -> bool:
    """Whether a text stands only in place of a message that was deleted or removed."""
    return text.lstrip().lower().startswith(REMOVED) or is_removed(text)


def is_empty(text: str) -> bool:
    """Whether there is nothing in it that could be seen."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def joined(message: str, reply: str) -> str:
    """What the language is found in: both sides on one line, as detectors read a text, but with the addresses and
    mentions, which the article keeps. Without them, of 1,791 pairs of oasst1 without a deleted side one more would pass
    0.7, whose reply is two links; of 11,926 pairs of the chatterbot corpus none."""
    return readable(f"{message} {reply}")


def cell(text: str) -> str:
    """A text as published files have it, in a cell of a line: white space, with tabs and breaks, as one space, and no
    mark of byte order, which some readers drop. Texts that are equal as this are equal."""
    return " ".join(text.replace("\ufeff", " ").split())


def compared(text: str) -> str:
    """What texts of two files are compared as: a cell in NFC, since a program may have taken its accents apart."""
    return unicodedata.normalize("NFC", cell(text))


def agrees(declared: str, found: str) -> bool:
    """Whether a language that a file names is the one that fastText found. A finer code agrees with its coarser one."""
    code = code_of(declared) or declared
    return found in (code, code.split("-")[0]) or code in finer(found)
