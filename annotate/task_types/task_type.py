"""What a kind of question consists of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annotate.models import Task
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
    # Template of the question, and the Markdown that a new task's guidelines begin with.
    template: str
    guidelines: str
    # The labels of a task that names none.
    labels: Sequence[str]
    # Item -> languages whose readers may be asked, most likely first.
    candidates: Callable[["Item", "Task"], list[str]]
    # Item -> the label on which machines agree under the task's policy, or None.
    agreed: Callable[["Item", "Task"], str | None]
    # Raises InvalidAnswer.
    check: Callable[[Answer, "Task"], None]
    # Answers of one unit -> label, or None where they give none.
    aggregate: Callable[[Sequence[str]], str | None]
