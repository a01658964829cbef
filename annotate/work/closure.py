"""Closes a task, so that it assigns no more work, reopens it, or deletes a task without answers.

Closing and reopening keep all answers.
"""

import fcntl
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import NotFound, WrongStage
from annotate.models import Flag, Judgment, Lease, Task, Transition, Unit
from annotate.quality import commitments
from annotate.reports.tables import many
from annotate.work.adjudication import has_other_adjudicator, resolve_decisions
from annotate.work.moves import BATCH, PLAIN, apply_move, decide_now, is_audit, lock_task, move, save_all
from annotate.work.routing import has_majority, is_unconfirmed
from corpora.database.bulk_rows import batched
from corpora.models import Corpus, Draw, Item


def close(task: Task, *, leave_out: bool = False) -> dict[str, Any]:
    """Close a task, and label the units that can be decided from their answers.

    leave_out: whether to exclude all other units from the gold set.

    Returns a dict with these keys:
    task: the task's name.
    is_open: whether the task is open, here False.
    changed: whether the task was open before.
    unfinished: number of units without a label.
    in_hand: number of units that annotators have open and can still answer.
    decided: number of units labelled by closing.
    unconfirmed: number of units labelled by closing although only one annotator named the language.
    left_out: number of units excluded by closing.
    digest: digest of the outcomes of units drawn with the secret; "" if there are none.
    """
    was_open = _set_open(task, is_open=False)
    # Use separate transactions, because answers lock their unit before the task.
    with transaction.atomic():
        counts = _finish_units(task, leave_out=leave_out) if task.kind.answered_here else {}
    with transaction.atomic():
        lock_task(task)
        result = _status(task, was_open) | {"decided": 0, "unconfirmed": 0, "left_out": 0} | counts
        return result | {"digest": commitments.record_outcomes(task)}


@transaction.atomic
def fix_outcomes(task: Task) -> None:
    """Record the outcomes of a closed task's randomly drawn units. Unchanged outcomes aren't recorded again."""
    if not lock_task(task).is_open:
        commitments.record_outcomes(task)


@transaction.atomic
def _set_open(task: Task, *, is_open: bool) -> bool:
    """Open or close a task. Returns whether it was open before.

    Raise WrongStage if the task must not be reopened because its secret was published.
    """
    locked_task = lock_task(task)
    if is_open and locked_task.secret_told_at:
        raise WrongStage(
            f"An export has disclosed the secret of {task.name}, so its gold answers, audits and checks would be "
            "predictable. Open a new task instead."
        )
    was_open = locked_task.is_open
    task.is_open = is_open
    task.save(update_fields=["is_open"])
    return was_open


def _finish_units(task: Task, *, leave_out: bool) -> Counter[str]:
    """Label or exclude the units of a closed task. Returns the number of units by outcome, see `close`.

    Units that annotators have open don't change. Adjudicators can still work in a closed task, so units in adjudication
    stay there unless they are excluded.
    """
    counts = Counter[str]()
    waiting = task.units.work().filter(stage__in=(stages.QUEUED, stages.ADJUDICATION)).order_by("pk")
    waiting = waiting.exclude(pk__in=_open_leases(task).values("unit"))
    judged = Judgment.objects.live().exclude(kind=Judgment.SKIP).filter(unit=OuterRef("pk"))
    # no_key: see judgments.py.
    for unit in waiting.filter(Exists(judged)).select_for_update(of=("self",), no_key=True).select_related("item"):
        unit.task = task
        counts[_finish_unit(unit, leave_out=leave_out)] += 1
    while leave_out and (batch := list(waiting.select_for_update(of=("self",), no_key=True)[:BATCH])):
        save_all(
            batch, [apply_move(unit, "left_out", stages.DISCARDED, of=PLAIN) for unit in batch], ["stage", "label"]
        )
        counts["left_out"] += len(batch)
    counts.pop("", None)
    return counts


def _finish_unit(unit: Unit, *, leave_out: bool) -> str:
    """Label a unit based on its current answers, if possible.

    Returns the outcome to count, "decided" or "unconfirmed", or "" if the unit gets no label.
    """
    answers = list(unit.judgments.live().answers().order_by("pk").select_related("lease"))
    if unit.stage == stages.QUEUED and has_majority(unit, answers):
        decide_now(unit, answers)
        return "decided"
    if unit.stage == stages.ADJUDICATION and not leave_out and has_other_adjudicator(unit):
        return ""
    if leave_out and unit.judgments.live().decisions().exists():
        event, stage, label = resolve_decisions(unit, is_final=True)
        move(unit, event, stage, label=label)
        return "decided"
    if is_unconfirmed(unit, answers):
        if not is_audit(unit):
            move(unit, "unconfirmed", stages.LABELLED, label=answers[0].label)
            return "unconfirmed"
        if unit.stage == stages.QUEUED:
            # Adjudicators decide doubted posts of the audit even in a closed task.
            move(unit, "doubted", stages.ADJUDICATION)
    return ""


def reopen(task: Task) -> dict[str, Any]:
    """Reopen a task, and return units that were labelled or excluded by closing to their earlier stage.

    Returns a dict with the first five keys of `close`.

    Raise WrongStage if the task consists of imported judgments, or if its secret was published.
    """
    if not task.kind.answered_here:
        raise WrongStage(
            f"{task.name} contains imported judgments, so annotators cannot receive its items. Import more with "
            "import_judgments."
        )
    was_open = _set_open(task, is_open=True)
    with transaction.atomic():
        last = Transition.objects.filter(unit=OuterRef("pk")).order_by("-pk").values("from_stage")[:1]
        ended: QuerySet[Any] = (
            task.units.work().ended_by(*stages.BY_CLOSING).annotate(before=Subquery(last)).order_by("pk")
        )
        while batch := list(ended.select_for_update(of=("self",), no_key=True)[:BATCH]):
            save_all(batch, [apply_move(unit, "resumed", unit.before, of=PLAIN) for unit in batch], ["stage", "label"])
    for control in task.hooks["reopened"]:
        control.reopened(task)
    return _status(task, was_open)


def reopening_advice(task: Task) -> str:
    """Return a sentence that tells managers how to get more units of a closed task labelled."""
    if task.secret_told_at:
        return "The task cannot be reopened, because an export has disclosed its secret. Open a new task for the rest."
    return f"To reopen it, run `assay reopen {task.name}`."


@transaction.atomic
def mark_secret_published(task: Task) -> None:
    """Record that an export publishes the task's secret, so that the task can never be reopened.

    Raise WrongStage if the task is open.
    """
    locked_task = lock_task(task)
    if locked_task.is_open:
        raise WrongStage(
            f"{task.name} is open, so its secret would make future random draws predictable. Close the task first, or "
            "remove --tell-secret."
        )
    if not locked_task.secret_told_at:
        locked_task.secret_told_at = timezone.now()
        locked_task.save(update_fields=["secret_told_at"])


def _open_leases(task: Task) -> QuerySet[Lease]:
    work = task.units.work().order_by()
    return Lease.objects.filter(unit__in=work, closed_at=None, expires_at__gt=timezone.now()).order_by()


def unfinished(task: Task) -> int:
    """Return the number of units without a label."""
    work = task.units.work().order_by()
    return work.filter(stage__in=stages.WAITING).count() + work.waiting_copies().count()


def _status(task: Task, was_open: bool) -> dict[str, Any]:
    """Return the first five keys of `close`.

    was_open: whether the task was open before.
    """
    return {
        "task": task.name,
        "is_open": task.is_open,
        "changed": was_open != task.is_open,
        "unfinished": unfinished(task),
        "in_hand": _open_leases(task).values("unit").distinct().count(),
    }


# --- additions to an open task


def locked_open(task: Task, units: QuerySet[Unit]) -> Task:
    """Lock the units and then the task, in the same order as answers do. Returns the task.

    Raise WrongStage if the task is closed.
    """
    list(units.order_by("pk").select_for_update(of=("self",), no_key=True))
    task = lock_task(task)
    if not task.is_open:
        raise WrongStage(f"Task {task.name} is closed, so no one would label the posts. {reopening_advice(task)}")
    return task


def check_languages(languages: Collection[str], available: Collection[str], reason: str) -> None:
    """Raise NotFound if a language is not available.

    reason: start of the error message; the missing languages are appended.
    """
    if missing := [label for label in languages if label not in available]:
        raise NotFound(
            f"{reason} in {', '.join(missing)}. Available languages: "
            f"{', '.join(sorted(filter(None, available))) or 'none'}."
        )


def where(languages: Collection[str]) -> str:
    """Return " in" and the languages, for messages; "" if there are none."""
    return f" in {', '.join(languages)}" if languages else ""


def units_of(task: Task, unit_ids: dict[str, list[int]]) -> list[Unit]:
    return list(task.units.in_bulk([unit for units in unit_ids.values() for unit in units]).values())


# --- deletion of tasks without answers
#
# A task is deleted with its units, draws, guidelines and drawn items, unless another task uses the draws or items.
# Answers are never deleted.


def task_to_delete(task: Task) -> dict[str, Any]:
    """Return a task's name and how many units, draws, gold answers and guidelines would be deleted with it.

    Raise WrongStage if the task cannot be deleted.
    """
    if reason := _reason_to_keep(task):
        raise WrongStage(f"Task {task.name} cannot be deleted: {reason}")
    return {
        "task": task.name,
        "units": task.units.count(),
        "draws": task.draws.count(),
        "gold_answers": task.gold_answers.count(),
        "guidelines": task.guidelines.count(),
    }


def _reason_to_keep(task: Task) -> str:
    """Return why a task cannot be deleted and what to do instead, or "" if it can be deleted."""
    instead = f"To end the work on the task, run `assay close {task.name}`."
    for rows, action in (
        (Judgment.objects.filter(unit__task=task), "answered its items"),
        (task.trials, "taken its practice or test"),
        (Flag.objects.filter(unit__task=task), "flagged its items"),
    ):
        if number := rows.count():
            return f"annotators have {action} ({many(number, 'time')}), and these records must be kept. {instead}"
    if Unit.objects.filter(reused_from__task=task).exclude(task=task).exists():
        return f"another task has reused its labels. {instead}"
    open_leases = Lease.objects.filter(unit__task=task, closed_at=None, expires_at__gt=timezone.now())
    if open_leases.exists():
        return (
            f"an annotator has one of its items open. Close the task with `assay close {task.name}`, and delete it "
            "after the item is returned."
        )
    return ""


@transaction.atomic
def delete_task(task: Task) -> dict[str, Any]:
    """Delete a task. Returns the result of `task_to_delete`."""
    _lock_for_deletion(task)
    counts = task_to_delete(task)
    _delete(task)
    return counts


def _delete(task: Task) -> None:
    """Delete a task without answers, BATCH units per transaction, so that others can write in between."""
    draws, gold_items = list(task.draws.all()), task.gold_answers.values_list("item", flat=True)
    items = {*task.units.order_by().values_list("item", flat=True), *gold_items}
    for units in (task.units.exclude(copy_of=None), task.units.all()):
        for keys in batched(list(units.order_by("pk").values_list("pk", flat=True)), BATCH):
            with transaction.atomic():
                for model in (Transition, Lease):
                    model.objects.filter(unit__in=keys).delete()
                Unit.objects.filter(pk__in=keys).delete()
    with transaction.atomic():
        _delete_with_draws(task, draws)
    for keys in batched(items, BATCH):
        Item.objects.filter(pk__in=keys, units=None, gold_answers=None).delete()


def _delete_with_draws(task: Task, draws: list[Draw]) -> None:
    task.delete()
    for task_draw in draws:
        draw: Draw | None = task_draw
        # Also delete the draws that this draw extends, unless another task or draw uses them.
        while draw is not None and not draw.tasks.exists() and not Draw.objects.filter(extends=draw).exists():
            extended = draw.extends
            draw.delete()
            draw = extended


def _lock_for_deletion(task: Task) -> None:
    """Lock the task, its corpora and its units, so that no one can take a unit, start a test or draw the same items.

    Raise WrongStage if someone is working in the task.
    """
    Task.objects.select_for_update().get(pk=task.pk)
    list(Corpus.objects.select_for_update().filter(draws__tasks=task))
    try:
        # Don't wait for a locked unit. Its transaction may be waiting for the task, which would be a deadlock.
        list(task.units.order_by("pk").select_for_update(nowait=True).values_list("pk", flat=True))
    except OperationalError as error:
        raise WrongStage(
            f"Somebody is working in {task.name}. Close it with `assay close {task.name}`, and try again."
        ) from error


# --- tasks that are being opened
#
# SQLite allows one writer at a time. Opening a large task in one transaction would block all answers, so its units are
# added in many short transactions. `Task.objects` hides the task until the last one commits.


@contextmanager
def hide_until_complete(task: Task) -> Iterator[None]:
    """Context manager that hides a new task until the block ends. If the block fails, the task is deleted."""
    opened_at, task.created_at = task.created_at, None
    if connection.vendor == "postgresql" or connection.in_atomic_block:
        with transaction.atomic():
            yield
            _unhide(task, opened_at)
        return
    with _opening_lock():
        try:
            yield
            _unhide(task, opened_at)
        except BaseException:
            _delete_interrupted()
            raise


def _unhide(task: Task, opened_at: datetime | None) -> None:
    task.created_at = opened_at
    task.save(update_fields=["created_at"])


def delete_interrupted() -> None:
    """Delete tasks whose opening was interrupted, unless another process is currently opening a task."""
    if connection.vendor == "sqlite" and Task.all_objects.filter(created_at=None).exists():
        with suppress(BlockingIOError), _opening_lock(fcntl.LOCK_NB):
            pass


@contextmanager
def _opening_lock(wait: int = 0) -> Iterator[None]:
    """Context manager that lets one process at a time open tasks. Deletes any task whose opening was interrupted.

    wait: fcntl.LOCK_NB to raise BlockingIOError instead of waiting for another process.
    """
    path = Path(settings.DATA_DIR) / "tmp" / "opening.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | wait)
        _delete_interrupted()
        yield


def _delete_interrupted() -> None:
    for task in Task.all_objects.filter(created_at=None):
        _delete(task)
