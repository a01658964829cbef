"""What a kind of question consists of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annotate.models import Task, Unit
    from corpora.models import Item


@dataclass(frozen=True)
class Answer:
    """What an annotator says of a unit. label: a code; reason: why undefined; comment: free text."""

    label: str
    reason: str = ""
    comment: str = ""


@dataclass(frozen=True)
class TaskType:
    slug: str
    title: str
    # Template of the question, the one of a sheet of units (empty: they come one by one only), and the Markdown that a
    # new task's guidelines begin with, by language.
    template: str
    sheet: str
    guidelines: Mapping[str, str]
    # The labels of a task that names none.
    labels: Sequence[str]
    # Fields of Task whose defaults differ.
    knobs: Mapping[str, object]
    # Unit -> languages whose readers may be asked, most likely first.
    candidates: Callable[["Unit"], list[str]]
    # Item -> the label on which machines agree under the task's policy, or None.
    agreed: Callable[["Item", "Task"], str | None]
    # Unit -> the labels that may be given to it.
    offered: Callable[["Unit"], Sequence[str]]
    # Why a post may be undefined: what is sent, and the words on its button.
    reasons: Mapping[str, str]
    # Raises InvalidAnswer.
    check: Callable[[Answer, "Unit"], None]
    # Whether it is about records, which have a language already, and whose labels are no languages.
    records: bool = False
    # The fields of its records, in the order in which they are shown and exported; none where posts are asked about.
    fields: Sequence[str] = ()
    # Label -> what it is called, and what it means, where the labels are not languages.
    answers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Whether the labels are grades, best first: then a median is one, and near misses are nearer.
    ordered: bool = False
    # The field whose records are drawn all together, and those of which equal values never part in a split.
    together: str = ""
    apart: Sequence[str] = ()
    # What XGLUE calls it in the names of its files; empty where it publishes no such files.
    published: str = ""

    @property
    def has_pages(self) -> bool:
        """Whether people answer it here; if not, what they said elsewhere is imported."""
        return bool(self.template)
