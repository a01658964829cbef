"""Closing a task, so that it hands out no more work, and opening it again. What was answered stays either way."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import WrongStage
from annotate.models import Lease, Task
from annotate.work.contesting import locked
from annotate.work.drawing_on import draw_later


@transaction.atomic
def close(task: Task) -> dict[str, Any]:
    """{"task", "is_open", "changed", "unfinished", "in_hand"}: whether it was not so before, how many units have no
    label yet, and how many are open with somebody now, who may still answer.
    """
    return _switch(task, is_open=False)


@transaction.atomic
def reopen(task: Task) -> dict[str, Any]:
    """The same; WrongStage where nobody can be asked here."""
    if not task.kind.answered_here:
        raise WrongStage(
            f"{task.name} holds judgments that were made elsewhere, so nobody can be given its units. Import further "
            "ones with import_judgments."
        )
    told = _switch(task, is_open=True)
    for language in task.languages:
        draw_later(task.pk, language)
    return told


def _switch(task: Task, *, is_open: bool) -> dict[str, Any]:
    was = locked(task).is_open
    task.is_open = is_open
    task.save(update_fields=["is_open"])
    work = task.units.work().order_by()
    held = Lease.objects.filter(unit__in=work, closed_at=None, expires_at__gt=timezone.now()).order_by()
    return {
        "task": task.name,
        "is_open": is_open,
        "changed": was != is_open,
        "unfinished": work.exclude(stage__in=stages.FINISHED).count(),
        "in_hand": held.values("unit").distinct().count(),
    }
