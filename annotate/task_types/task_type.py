"""What a kind of question consists of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    # new task's guidelines begin with.
    template: str
    sheet: str
    guidelines: str
    # The labels of a task that names none.
    labels: Sequence[str]
    # Fields of Task whose defaults differ.
    knobs: Mapping[str, int]
    # Unit -> languages whose readers may be asked, most likely first.
    candidates: Callable[["Unit"], list[str]]
    # Item -> the label on which machines agree under the task's policy, or None.
    agreed: Callable[["Item", "Task"], str | None]
    # Unit -> the labels that may be given to it, besides und.
    offered: Callable[["Unit"], Sequence[str]]
    # Why a post may be undefined: what is sent, and the words on its button.
    reasons: Mapping[str, str]
    # Raises InvalidAnswer.
    check: Callable[[Answer, "Unit"], None]
    # Answers of one unit -> label, or None where they give none.
    aggregate: Callable[[Sequence[str]], str | None]
