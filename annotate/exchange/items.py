"""The items that a tool's module reads from an export: texts, annotators' answers and models' predictions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotate.kinds.forms.spans import Span
from corpora.core import CorpusError
from corpora.core.values import is_missing

UNKNOWN = "unknown"  # the annotator of an answer if the export doesn't name one
GOLD = "gold"  # the annotator of the gold labels, in files that Assay writes for other tools
SPOILED = "labels such as nan, which programs write for a missing value"  # a key of `Project.not_kept`
LANGUAGE_NAMES = ("language", "lang", "locale")
SENTENCE = 4  # a label with this many words may be a sentence


class ProjectError(CorpusError):
    """Raised if an export cannot be imported. The message states why and what to do."""


@dataclass(frozen=True)
class Answer:
    """An annotator's answer, or a model's prediction.

    by: the annotator or the model
    question: name of the question; "" if the tool has only one question; None for an empty answer without a question
    labels: the chosen labels or the labelled spans
    field: name of the text that the spans mark; "" if unknown
    is_grade: whether the label is a number on a scale
    at: time of the answer, as the tool writes it; None if unknown
    """

    by: str
    question: str | None
    labels: tuple[str, ...] | tuple[Span, ...]
    field: str = ""
    is_grade: bool = False
    at: Any = None

    @property
    def has_spans(self) -> bool:
        return any(isinstance(label, Span) for label in self.labels)


@dataclass
class Item:
    """An item of an export.

    key: id of the item in the tool
    texts: texts and other data, by name
    possible_labels: the labels that annotators could choose; empty if the export doesn't list them
    """

    key: str
    texts: Mapping[str, Any]
    answers: list[Answer] = field(default_factory=list)
    predictions: list[Answer] = field(default_factory=list)
    possible_labels: tuple[str, ...] = ()


def person_name(named: Any) -> str:
    """Return a person's name, from a text, a number, or an object with an email address, a name or an id."""
    if isinstance(named, dict):
        named = next((named[key] for key in ("email", "username", "name", "id") if named.get(key)), None)
    return UNKNOWN if is_missing(named) else str(named)


def get_item(by_key: dict[str, Item], key: str, texts: Mapping[str, Any]) -> Item:
    """Return the item with a key. Create it if it is new. An export can have several rows per item.

    Raise ProjectError if an earlier row has different texts.
    """
    item = by_key.setdefault(key, Item(key, texts))
    if any(as_text(item.texts[name]) != as_text(texts[name]) for name in item.texts.keys() & texts.keys()):
        raise ProjectError(f"Several items of the export have the id {key}, with different texts. Give each its own.")
    return item


Object = dict[str, Any]
FILE_NAME = "\0file"  # the key of an object's file name (without the suffix)


@dataclass(frozen=True)
class Tool:
    """An annotation tool whose exports can be read.

    recognizes: function that takes an export's first object, and returns whether the export is from this tool
    items: function that takes an export's objects and the counter `Project.not_kept`, and yields the items
    takes_questions: whether `items` also takes the names of the questions that the user wants to import
    """

    name: str
    recognizes: Callable[[Object], bool]
    items: Callable[..., Iterator[Item]]
    takes_questions: bool = False


def as_text(value: Any) -> str:
    """Convert a value to text. The elements of lists and objects are joined by line breaks."""
    if isinstance(value, list):
        return "\n".join(map(as_text, value))
    if isinstance(value, dict):
        return "\n".join(f"{key}: {as_text(content)}" for key, content in value.items())
    return "" if value is None or value != value else str(value)  # only NaN differs from itself
