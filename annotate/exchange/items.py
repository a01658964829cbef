"""The items of an export, which the module of each tool yields: texts, answers of people, predictions of models."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotate.kinds.forms.spans import Span
from corpora.core import CorpusError
from corpora.core.values import is_missing

UNKNOWN = "unknown"  # the person whose answers name nobody
GOLD = "gold"  # the person whose answers are labels, in files that Assay writes for other tools
SPOILED = "labels such as nan, which programs write for a missing value"  # what is lost with them
LANGUAGE_NAMES = ("language", "lang", "locale")
SENTENCE = 4  # a label with this many words may be a sentence


class ProjectError(CorpusError):
    """Raised if an export cannot be imported. The message states why and what to do. Nothing was imported."""


@dataclass(frozen=True)
class Answer:
    """An answer of a person, or a prediction of a model.

    by: the person or the model
    question: name of the question; "" if the tool has only one; None if the answer is empty, so that it names none
    labels: the chosen labels, or the labelled ranges
    field: name of the text that the ranges mark; "" if unknown
    is_grade: whether the label is a number on a scale
    at: time of the answer, as the tool writes it; None if the export does not state it
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

    key: its id in the tool
    texts: its texts and other data, by name
    offered: the labels that people could choose, if the export states them
    """

    key: str
    texts: Mapping[str, Any]
    answers: list[Answer] = field(default_factory=list)
    predictions: list[Answer] = field(default_factory=list)
    offered: tuple[str, ...] = ()


def person_of(named: Any) -> str:
    """Return the name of a person, who is named by a text, a number, or an object with an address, a name or an id."""
    if isinstance(named, dict):
        named = next((named[key] for key in ("email", "username", "name", "id") if named.get(key)), None)
    return UNKNOWN if is_missing(named) else str(named)


def item_in(by_key: dict[str, Item], key: str, texts: Mapping[str, Any]) -> Item:
    """Return the item with a key. An export may have several rows for it.

    Raise ProjectError if an earlier row has different texts.
    """
    item = by_key.setdefault(key, Item(key, texts))
    if any(as_text(item.texts[name]) != as_text(texts[name]) for name in item.texts.keys() & texts.keys()):
        raise ProjectError(f"Several items of the export have the id {key}, with different texts. Give each its own.")
    return item


Object = dict[str, Any]
FILE_NAME = "\0file"  # key under which an object has the name of its file, without the suffix


@dataclass(frozen=True)
class Tool:
    """An annotation tool whose exports can be read.

    recognizes: returns whether an object, the first of a file, is from this tool's export
    items: yields the items of an export, and counts in the counter what each cannot keep
    takes_questions: whether `items` also takes the names of questions that the user stated
    """

    name: str
    recognizes: Callable[[Object], bool]
    items: Callable[..., Iterator[Item]]
    takes_questions: bool = False


def as_text(value: Any) -> str:
    """Return a value as text. Lists are joined by line breaks."""
    if isinstance(value, list):
        return "\n".join(map(as_text, value))
    if isinstance(value, dict):
        return "\n".join(f"{key}: {as_text(content)}" for key, content in value.items())
    return "" if value is None or value != value else str(value)  # only NaN differs from itself
