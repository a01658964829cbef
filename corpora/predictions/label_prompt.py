"""The prompt that asks a language model for an item's label, and the label in its answer."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpora.core import CorpusError
from corpora.core.records import RecordError
from corpora.predictions.chat_endpoint import Token
from corpora.predictions.prediction_rows import EVERY_LABEL, read_label

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
        known = {LABELS: ", ".join(self.labels), **values}
        return _PLACEHOLDER.sub(lambda match: known[match[1]], self.template)

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
    found, known = _PLACEHOLDER.findall(template), [*of_items, LABELS]
    if unknown := [name for name in found if name not in known]:
        names = ", ".join(f"{{{name}}}" for name in known)
        raise CorpusError(f"{path}: the placeholder {{{unknown[0]}}} is unknown. Available: {names}.", "prompt")
    if not set(found) & set(of_items):
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
