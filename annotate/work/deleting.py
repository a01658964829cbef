"""Deleting a task in which nobody has said anything yet: its units, draws and guidelines, all of them or nothing.

What people said is never deleted. What was drawn for it goes too, unless another task asks about it.
"""

from typing import Any

from django.db import OperationalError, transaction
from django.utils import timezone

from annotate.core.refusals import WrongStage
from annotate.models import Flag, Judgment, Lease, Task, Transition, Unit
from annotate.reports.tables import many
from corpora.models import Corpus, Draw, Item

BATCH = 5_000  # keys in a statement


def task_to_delete(task: Task) -> dict[str, Any]:
    """{"task", "units", "draws", "gold_answers", "guidelines"}: how much there is of each. WrongStage of a task that
    stays.
    """
    if fault := _kept_by(task):
        raise WrongStage(f"Task {task.name} is not deleted: {fault}")
    return {
        "task": task.name,
        "units": task.units.count(),
        "draws": task.draws.count(),
        "gold_answers": task.gold_answers.count(),
        "guidelines": task.guidelines.count(),
    }


def _kept_by(task: Task) -> str:
    """Why it stays, and what to do instead; empty where nothing keeps it."""
    instead = f"`assay close {task.name}` ends the work on it instead."
    if judgments := Judgment.objects.filter(unit__task=task).count():
        return f"people have said something of its units ({many(judgments, 'time')}), and that is kept. {instead}"
    if tests := task.trials.count():
        return f"people have practised for it or taken its test ({many(tests, 'time')}), and that is kept. {instead}"
    if flags := Flag.objects.filter(unit__task=task).count():
        return f"people have told something of its units ({many(flags, 'time')}), and that is kept. {instead}"
    if Unit.objects.filter(reused_from__task=task).exclude(task=task).exists():
        return f"another task has taken labels from it. {instead}"
    held = Lease.objects.filter(unit__task=task, closed_at=None, expires_at__gt=timezone.now())
    if held.exists():
        return (
            f"somebody has a unit of it open just now. Close it with `assay close {task.name}`, and delete it once "
            "that is given back."
        )
    return ""


@transaction.atomic
def delete_task(task: Task) -> dict[str, Any]:
    """Delete it; returns what that was."""
    _lock(task)
    gone = task_to_delete(task)
    units = task.units.order_by()
    items = list(units.values_list("item", flat=True)) + list(task.gold_answers.values_list("item", flat=True))
    draws = list(task.draws.all())
    Transition.objects.filter(unit__in=units).delete()
    Lease.objects.filter(unit__in=units).delete()
    units.exclude(copy_of=None).delete()
    units.delete()
    task.delete()
    for draw in draws:
        _delete_unused(draw)
    for start in range(0, len(items), BATCH):
        some = Item.objects.filter(pk__in=items[start : start + BATCH])
        some.filter(units=None, gold_answers=None).delete()
    return gone


def _lock(task: Task) -> None:
    """Keep out whoever would take a unit, begin a test, or draw the same items at the same time."""
    Task.objects.select_for_update().get(pk=task.pk)
    list(Corpus.objects.select_for_update().filter(draws__tasks=task))
    try:
        # Whoever has one locked may wait for the task: waiting for them would be a deadlock.
        list(task.units.order_by("pk").select_for_update(nowait=True).values_list("pk", flat=True))
    except OperationalError as error:
        raise WrongStage(
            f"Somebody is at work in {task.name} just now. Close it with `assay close {task.name}`, and try again."
        ) from error


def _delete_unused(draw: Draw) -> None:
    """The draw and those that it extends, as far as no task and no other draw needs them."""
    while draw is not None and not draw.tasks.exists() and not Draw.objects.filter(extends=draw).exists():
        smaller = draw.extends
        draw.delete()
        draw = smaller
