"""Prompts that ask a language model for an item's label, the parsing of its answers, and the log of answers.

    <corpus>/answers/<digest of the question>.jsonl            one line for each request and each answer
                     <digest of the question>-rejects.jsonl    items without a valid answer, with reasons

The log is append-only. A request is logged with an upper bound of its cost before it is sent, so that its cost counts
even if the program is killed. An answer is synced to disk before it is counted. The log contains digests of the
prompts, but neither prompts nor texts.
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
_MARKS = " \t\r\n\"'`*“”‘’«»."  # characters to strip from both ends of an answer
LONGEST = 100_000  # maximum size of a prompt file (bytes)
MARGIN = 256  # number of tokens that a server may add to a prompt, such as chat template tokens


@dataclass(frozen=True)
class Question:
    """The question that a model is asked about each item.

    template: prompt with placeholders
    labels: valid answers
    answer_tokens: maximum number of tokens in an answer
    """

    model: str
    template: str
    labels: tuple[str, ...]
    answer_tokens: int

    def prompt(self, values: Mapping[str, str]) -> str:
        """Return the prompt for an item. Placeholders in the item's own text are not replaced."""
        replacements = {LABELS: ", ".join(self.labels), **values}
        return _PLACEHOLDER.sub(lambda match: replacements[match[1]], self.template)

    def key(self, prompt: str) -> str:
        """Return the key of the answer to a prompt."""
        return _digest(self.model, prompt)

    def bound(self, prompt: str) -> int:
        """Return an upper bound on a request's tokens. Each token covers at least one byte of the prompt."""
        return len(prompt.encode()) + MARGIN + self.answer_tokens

    @property
    def request_digest(self) -> str:
        """A digest of everything that affects the requests."""
        return _digest(self.model, self.template, self.answer_tokens)

    @property
    def version(self) -> str:
        """The version of the predictor, which changes with the model's name, the prompt and the labels."""
        return _digest(self.request_digest, *self.labels)[:8]

    @property
    def template_sha256(self) -> str:
        return hashlib.sha256(self.template.encode()).hexdigest()


def _digest(*values: str | int) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def read_template(path: Path, fields: Sequence[str]) -> str:
    """Load a prompt from a file.

    fields: fields of the corpus's records; empty for posts

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
    """Return the labels as they are stored. Raise CorpusError if they are not valid."""
    try:
        valid = tuple(read_label(label, {}, EVERY_LABEL if of_records else ())[0] for label in labels)
    except RecordError as error:
        raise CorpusError(f"--labels: {error}", "labels") from error
    if len({label.casefold() for label in valid}) < max(2, len(labels)):
        raise CorpusError("--labels requires at least two labels that differ in more than case.", "labels")
    return valid


def strip_thoughts(answer: str) -> str:
    """Remove the <think> block that some models put at the start of an answer."""
    return _THOUGHTS.sub("", answer, count=1).strip()


def label_in(answer: str, labels: Collection[str]) -> str | None:
    """Return the label in an answer, or None if the answer contains anything else.

    Case is ignored, and so are white space, quotation marks, emphasis and full stops around the label.
    """
    if answer in labels:
        return answer
    bare = answer.strip(_MARKS).casefold()
    return next((label for label in labels if label.casefold() == bare or label.strip(_MARKS).casefold() == bare), None)


def log_probability(tokens: Sequence[Token], label: str) -> float | None:
    """Return the sum of the log-probabilities of a label's tokens, or None if the label is not found."""
    text = "".join(token for token, _ in tokens)
    start = text.lower().rfind(label.lower())
    if start < 0 or len(text.lower()) != len(text):
        return None
    end, place, total = start + len(label), 0, 0.0
    for token, value in tokens:
        total += value if place < end and place + len(token) > start else 0
        place += len(token)
    return total


# --- The log of answers and their costs in tokens.


LONGEST_ANSWER = 500  # stored answers are truncated to this length (characters)


@dataclass(frozen=True)
class Answer:
    """A parsed answer.

    label: label of the answer; "" if it is rejected
    score: log-probability of the label; None if unknown
    reason: reason for a rejection; "" if the answer is valid
    text: text of a rejected answer
    """

    label: str
    score: float | None = None
    reason: str = ""
    text: str = ""


@dataclass
class Ledger:
    """The logged answers to a question, and the tokens spent on them.

    answers: answers by the prompt's key
    faulty: keys of prompts with an unreadable reply, for example from a proxy
    spent: tokens used by all completed requests; if the endpoint doesn't report a request's tokens, their upper bound
    reported: how many of these tokens the endpoint reported
    held: upper bounds of the pending requests' tokens, by the prompt's key
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
        """Log a request before it is sent."""
        self._append({"asked": key, "bound": bound})

    def release(self, key: str, *, is_free: bool) -> None:
        """Log that a request failed.

        is_free: whether the request cost nothing; otherwise its upper bound counts
        """
        self._append({"failed": key, "used": 0 if is_free else self.held[key]})

    def store(self, key: str, reply: Reply, host: str) -> Answer:
        """Log a reply, sync it to disk, and return the parsed answer."""
        used = self.held.get(key, 0) if reply.used is None else reply.used
        text, at = strip_thoughts(reply.text), datetime.now(UTC).isoformat(timespec="seconds")
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
        """Forget unreadable replies, so that their prompts are sent again. Their tokens still count."""
        for key in self.faulty:
            del self.answers[key]
        self.faulty.clear()

    def _append(self, entry: dict[str, Any]) -> None:
        self.file.write(json.dumps(entry, ensure_ascii=False).encode(errors="replace") + b"\n")
        self.file.flush()
        self.read(entry)

    def read(self, entry: dict[str, Any]) -> None:
        """Process a line of the log."""
        if key := entry.get("asked"):
            # An earlier request for this prompt that never completed counts with its upper bound.
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
def open_ledger(path: Path, labels: tuple[str, ...]) -> Iterator[Ledger]:
    """Open, lock and load the log of answers to a question, or create it. An incomplete last line is removed.

    Raise CorpusError if another process has locked the log, or if it is damaged.
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
        # Requests that an earlier run didn't complete may have cost as much as their upper bounds.
        ledger.spent, ledger.held = ledger.spent + ledger.reserved, {}
        yield ledger
