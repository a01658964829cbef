"""Pauses, by which a person is given no more work of a task: the rule on gold answers, and the rows that record them.

What the rule does to people of any accuracy is in core/pause_rule.py, and what a manager decides in
work/interventions.py.
"""

from collections import Counter

from django.utils import timezone
from django.utils.translation import gettext_noop

from annotate.core import pause_rule
from annotate.core.pause_rule import Rule, pauses
from annotate.models import Annotator, Pause, Task

PAUSED = gettext_noop(
    "Your work in this task is paused, and the manager has been told. What you answered before is kept."
)


def rule(task: Task) -> Rule:
    return Rule(task.pause_below, pause_rule.CONFIDENCE, pause_rule.LEAST)


def running(annotator: Annotator, task: Task) -> Pause | None:
    return Pause.objects.filter(annotator=annotator, task=task, lifted_at=None).first()


def score(task: Task, known: Counter[tuple[str, str]]) -> tuple[int, int]:
    """How many gold answers were answered rightly, and how many were answered in all.

    known: (what was said, what is right) -> how often.
    """
    agrees = task.kind.rules.agrees
    return sum(number for (said, right), number in known.items() if agrees(said, right)), known.total()


def fails(task: Task, right: int, asked: int) -> bool:
    """Whether the task's rule pauses somebody with these."""
    return pauses(right, asked, rule(task))


def store(annotator: Annotator, task: Task, right: int, asked: int, *, by=None, reason: str = "") -> Pause:
    """by, reason: the manager's; empty if the rule pauses. The caller closes what the annotator has open."""
    return Pause.objects.create(
        annotator=annotator, task=task, right=right, asked=asked, by=by, reason=reason, at=timezone.now()
    )
