"""The prompt that asks a language model for an item's label, the label in its answer, and the stored answers.

    <corpus>/answers/<digest of the question>.jsonl            one line for each request and each answer
                     <digest of the question>-rejects.jsonl    the items without a valid answer, with reasons

The file is only appended to. A request is recorded with an upper bound of its cost before it is sent, so that its cost
is counted even if the program is killed. An answer is synced to disk before it is counted. The file contains digests of
the prompts, but neither prompts nor texts.
"""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from corpora.core import CorpusError
from corpora.core.records import RecordError
from corpora.predictions.chat_endpoint import Reply, Token
from corpora.predictions.prediction_rows import EVERY_LABEL, read_label
from corpora.storage.layout import sync

TEXT, LABELS, LANGUAGE = "text", "labels", "language"
_PLACEHOLDER = re.compile(r"\{ *(\w+) *\}")
_THOUGHTS = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_MARKS = " \t\r\n\"'`*“”‘’«»."  # characters around a label that do not belong to it
LONGEST = 100_000  # the maximum size of a prompt file (bytes)
MARGIN = 256  # the number of tokens that a server may add to a prompt, such as those that mark its turns


@dataclass(frozen=True)
class Question:
    """What a model is asked about each item.

    template: the prompt with placeholders
    labels: the valid answers
    answer_tokens: the maximum number of tokens of an answer
    """

    model: str
    template: str
    labels: tuple[str, ...]
    answer_tokens: int

    def prompt(self, values: Mapping[str, str]) -> str:
        """Return the prompt for an item. Placeholders within the item's own text stay as they are."""
        replacements = {LABELS: ", ".join(self.labels), **values}
        return _PLACEHOLDER.sub(lambda match: replacements[match[1]], self.template)

    def key(self, prompt: str) -> str:
        """Return the key under which the answer to a prompt is stored."""
        return _digest(self.model, prompt)

    def bound(self, prompt: str) -> int:
        """Return an upper bound of the tokens of a request. Each token stands for at least one byte of the prompt."""
        return len(prompt.encode()) + MARGIN + self.answer_tokens

    @property
    def asked_as(self) -> str:
        """A digest of everything that decides what is asked."""
        return _digest(self.model, self.template, self.answer_tokens)

    @property
    def version(self) -> str:
        """The version of the predictor, which changes with the model's name, the prompt and the labels."""
        return _digest(self.asked_as, *self.labels)[:8]

    @property
    def template_sha256(self) -> str:
        return hashlib.sha256(self.template.encode()).hexdigest()


def _digest(*values: str | int) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def read_template(path: Path, fields: Sequence[str]) -> str:
    """Return the prompt in a file.

    fields: the fields of the corpus's records; empty for posts

    Raise CorpusError if the file cannot be read, or if a placeholder is unknown or missing.
    """
    try:
        with path.open("rb") as file:
            template = file.read(LONGEST + 1).decode()
    except OSError as error:
        raise CorpusError(f"The prompt {path} cannot be read: {error.strerror}.", "prompt") from error
    except UnicodeDecodeError as error:
        raise CorpusError(f"The prompt {path} is not UTF-8. Save it as UTF-8.", "prompt") from error
    if len(template) > LONGEST:
        raise CorpusError(f"The prompt {path} is longer than {LONGEST:,} bytes.", "prompt")
    of_items = [TEXT, *([LANGUAGE, *fields] if fields else [])]
    placeholders, available = _PLACEHOLDER.findall(template), [*of_items, LABELS]
    if unknown := [name for name in placeholders if name not in available]:
        names = ", ".join(f"{{{name}}}" for name in available)
        raise CorpusError(f"{path}: the placeholder {{{unknown[0]}}} is unknown. Available: {names}.", "prompt")
    if not set(placeholders) & set(of_items):
        raise CorpusError(
            f"{path} contains no placeholder such as {{{of_items[-1]}}}, so it would ask the same about each item.",
            "prompt",
        )
    return template


def valid_labels(labels: Collection[str], *, of_records: bool) -> tuple[str, ...]:
    """Return the labels in the form in which they are stored. Raise CorpusError if they are not valid."""
    try:
        valid = tuple(read_label(label, {}, EVERY_LABEL if of_records else ())[0] for label in labels)
    except RecordError as error:
        raise CorpusError(f"--labels: {error}", "labels") from error
    if len({label.casefold() for label in valid}) < max(2, len(labels)):
        raise CorpusError("--labels requires at least two labels that differ in more than case.", "labels")
    return valid


def without_thoughts(answer: str) -> str:
    """Return an answer without the block of thoughts with which some models begin."""
    return _THOUGHTS.sub("", answer, count=1).strip()


def label_in(answer: str, labels: Collection[str]) -> str | None:
    """Return the label that an answer consists of, or None if the answer is anything else.

    White space, quotation marks, emphasis, a full stop and case are ignored.
    """
    if answer in labels:
        return answer
    bare = answer.strip(_MARKS).casefold()
    return next((label for label in labels if label.casefold() == bare or label.strip(_MARKS).casefold() == bare), None)


def log_probability(tokens: Sequence[Token], label: str) -> float | None:
    """Return the sum of the log-probabilities of the tokens that contain a label, or None if there are none."""
    text = "".join(token for token, _ in tokens)
    start = text.lower().rfind(label.lower())
    if start < 0 or len(text.lower()) != len(text):
        return None
    end, place, total = start + len(label), 0, 0.0
    for token, value in tokens:
        total += value if place < end and place + len(token) > start else 0
        place += len(token)
    return total


# --- Stored answers, and the tokens that they cost


LONGEST_ANSWER = 500  # the number of characters of an answer that are stored


@dataclass(frozen=True)
class Answer:
    """An answer as it is counted.

    label: the answer's label, "" if it is rejected
    score: the log-probability of the label, None if it is unknown
    reason: why the answer is rejected, "" if it is not
    text: the text of a rejected answer
    """

    label: str
    score: float | None = None
    reason: str = ""
    text: str = ""


@dataclass
class Ledger:
    """The stored answers to a question.

    answers: a mapping from the key of a prompt to its answer
    faulty: the keys of prompts whose reply could not be read, for example because a proxy sent it
    spent: the number of tokens of all requests that have ended
    reported: those of them that the endpoint reported; the others are upper bounds
    held: the upper bounds of the requests that have not ended, by the key of the prompt
    """

    file: BinaryIO
    labels: tuple[str, ...]
    answers: dict[str, Answer] = field(default_factory=dict)
    faulty: set[str] = field(default_factory=set)
    spent: int = 0
    reported: int = 0
    held: dict[str, int] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)
    times: list[str] = field(default_factory=list)

    def reserve(self, key: str, bound: int) -> None:
        """Record a request before it is sent."""
        self._append({"asked": key, "bound": bound})

    def release(self, key: str, *, is_free: bool) -> None:
        """Record that a request failed.

        is_free: whether it cost nothing; otherwise its upper bound counts
        """
        self._append({"failed": key, "used": 0 if is_free else self.held[key]})

    def store(self, key: str, reply: Reply, host: str) -> Answer:
        """Store a reply durably, and return it as it is counted."""
        used = self.held.get(key, 0) if reply.used is None else reply.used
        text, at = without_thoughts(reply.text), datetime.now(UTC).isoformat(timespec="seconds")
        label = label_in(text, self.labels)
        score = log_probability(reply.tokens, label) if label else None
        entry = {
            "answered": key,
            "used": used,
            "is_reported": reply.used is not None,
            "text": text[:LONGEST_ANSWER],
            "fault": reply.fault,
            "score": score,
        }
        self._append(entry | {"model": reply.model, "host": host, "at": at})
        os.fsync(self.file.fileno())
        return self.answers[key]

    @property
    def reserved(self) -> int:
        return sum(self.held.values())

    def forget_faults(self) -> None:
        """Forget the replies that could not be read, so that their prompts are asked again.

        Their tokens still count.
        """
        for key in self.faulty:
            del self.answers[key]
        self.faulty.clear()

    def _append(self, entry: dict[str, Any]) -> None:
        self.file.write(json.dumps(entry, ensure_ascii=False).encode(errors="replace") + b"\n")
        self.file.flush()
        self.read(entry)

    def read(self, entry: dict[str, Any]) -> None:
        """Count a line of the file."""
        if key := entry.get("asked"):
            # A request about this prompt whose end was not recorded counts with its upper bound.
            self.spent += self.held.pop(key, 0)
            self.held[key] = entry["bound"]
            return
        key = entry.get("failed") or entry["answered"]
        self.held.pop(key, None)
        self.spent += entry["used"]
        if "answered" in entry:
            self.answers[key] = self._answer(entry)
            self.reported += entry["used"] if entry["is_reported"] else 0
            (self.faulty.add if entry["fault"] else self.faulty.discard)(key)
            self.models |= {entry["model"]} - {""}
            self.hosts |= {entry["host"]} - {""}
            self.times[1:] = [entry["at"]]

    def _answer(self, entry: dict[str, Any]) -> Answer:
        if entry["fault"]:
            return Answer("", reason=entry["fault"])
        if (label := label_in(entry["text"], self.labels)) is None:
            return Answer("", reason="The answer is not one of the labels.", text=entry["text"])
        return Answer(label, entry["score"])


@contextmanager
def opened(path: Path, labels: tuple[str, ...]) -> Iterator[Ledger]:
    """Open and lock the file with the answers to a question, and read it. Create it if it does not exist.

    A line that a crash left incomplete is removed.

    Raise CorpusError if another process uses the file, or if the file is damaged.
    """
    path.parent.mkdir(exist_ok=True)
    with path.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CorpusError("Another command is asking the same question. Wait until it has finished.") from None
        ledger, end = Ledger(file, labels), 0
        file.seek(0)
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                ledger.read(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise CorpusError(f"{path}, line {number:,} is damaged. Restore the file or delete it.") from error
            end += len(line)
        file.truncate(end)
        file.seek(end)
        sync(path.parent)
        # Requests that an earlier run did not finish may have cost as much as their upper bounds.
        ledger.spent, ledger.held = ledger.spent + ledger.reserved, {}
        yield ledger
