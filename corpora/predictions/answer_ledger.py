"""The answers of a language model about a corpus, stored one by one, and the tokens that they cost.

    <corpus>/answers/<digest of the question>.jsonl            one line for each request and each answer
                     <digest of the question>-rejects.jsonl    the items without a valid answer, with reasons

The file is only appended to. A request is recorded with an upper bound of its cost before it is sent, so that its cost
is counted even if the program is killed. An answer is synced to disk before it is counted. The file contains digests of
the prompts, but neither prompts nor texts.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from corpora.core import CorpusError
from corpora.predictions.chat_endpoint import Reply
from corpora.predictions.label_prompt import label_in, log_probability, without_thoughts
from corpora.storage.layout import sync

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
