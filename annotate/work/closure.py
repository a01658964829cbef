"""Closing a task so that it assigns no more work, reopening it, and deleting an unused one.

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
from annotate.work.moves import BATCH, PLAIN, decide_without_more, is_audit, locked, move, moved, save_all
from annotate.work.routing import is_settled_by_most, is_unconfirmed
from corpora.database.bulk_rows import batched
from corpora.models import Corpus, Draw, Item


def close(task: Task, *, leave_out: bool = False) -> dict[str, Any]:
    """Close a task, and label the units that can be decided from their answers.

    leave_out: whether to exclude all other units from the gold set.

    Returns a dict with these keys:
    task: name of the task.
    is_open: whether the task is open now.
    changed: whether the task was open before.
    unfinished: number of units without a label.
    in_hand: number of units that annotators have open and may still answer.
    decided: number of units labelled now.
    unconfirmed: number of units labelled now with a language that only one reader named.
    left_out: number of units excluded now.
    digest: digest of the outcomes of units drawn with the secret, "" if there are none.
    """
    was = _set_open(task, is_open=False)
    # Separate transactions, because an answer locks its unit before the task.
    with transaction.atomic():
        ended = _end(task, leave_out=leave_out) if task.kind.answered_here else {}
    with transaction.atomic():
        locked(task)
        result = _status(task, was) | {"decided": 0, "unconfirmed": 0, "left_out": 0} | ended
        return result | {"digest": commitments.fix(task)}


@transaction.atomic
def fix_outcomes(task: Task) -> None:
    """Record the outcomes of a closed task's randomly drawn units, if they have changed since the last record."""
    if not locked(task).is_open:
        commitments.fix(task)


@transaction.atomic
def _set_open(task: Task, *, is_open: bool) -> bool:
    """Open or close a task. Returns whether it was open before.

    Raise WrongStage if the task must not be reopened.
    """
    locked_task = locked(task)
    if is_open and locked_task.secret_told_at:
        raise WrongStage(
            f"An export has disclosed the secret of {task.name}, so its gold answers, audits and checks would be "
            "predictable. Open a new task instead."
        )
    was = locked_task.is_open
    task.is_open = is_open
    task.save(update_fields=["is_open"])
    return was


def _end(task: Task, *, leave_out: bool) -> Counter[str]:
    """Label or exclude the units of a closed task. Returns the number of units per outcome.

    Units that annotators have open do not change. Adjudicators can continue to work in a closed task, so units that
    wait for an adjudicator keep waiting unless they are excluded.
    """
    done = Counter[str]()
    waiting = task.units.work().filter(stage__in=(stages.QUEUED, stages.ADJUDICATION)).order_by("pk")
    waiting = waiting.exclude(pk__in=_open_now(task).values("unit"))
    judged = Judgment.objects.live().exclude(kind=Judgment.SKIP).filter(unit=OuterRef("pk"))
    # no_key: see judgments.py.
    for unit in waiting.filter(Exists(judged)).select_for_update(of=("self",), no_key=True).select_related("item"):
        unit.task = task
        done[_end_of(unit, leave_out=leave_out)] += 1
    while leave_out and (batch := list(waiting.select_for_update(of=("self",), no_key=True)[:BATCH])):
        save_all(batch, [moved(unit, "left_out", stages.DISCARDED, of=PLAIN) for unit in batch], ["stage", "label"])
        done["left_out"] += len(batch)
    done.pop("", None)
    return done


def _end_of(unit: Unit, *, leave_out: bool) -> str:
    """Label a unit based on the answers that it has, if possible.

    Returns the name of the counter to increase, or "" if the unit does not get a label.
    """
    answers = list(unit.judgments.live().answers().order_by("pk").select_related("lease"))
    if unit.stage == stages.QUEUED and is_settled_by_most(unit, answers):
        decide_without_more(unit, answers)
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
            # Adjudicators decide doubted units of the audit even in a closed task.
            move(unit, "doubted", stages.ADJUDICATION)
    return ""


def reopen(task: Task) -> dict[str, Any]:
    """Reopen a task, and return units that were labelled or excluded by closing it to their earlier stage.

    Returns a dict with the first five keys of `close`.

    Raise WrongStage if the task consists of imported judgments, or if its secret was published.
    """
    if not task.kind.answered_here:
        raise WrongStage(
            f"{task.name} contains imported judgments, so annotators cannot receive its items. Import more with "
            "import_judgments."
        )
    was = _set_open(task, is_open=True)
    with transaction.atomic():
        last = Transition.objects.filter(unit=OuterRef("pk")).order_by("-pk").values("from_stage")[:1]
        ended: QuerySet[Any] = (
            task.units.work().ended_by(*stages.BY_CLOSING).annotate(before=Subquery(last)).order_by("pk")
        )
        while batch := list(ended.select_for_update(of=("self",), no_key=True)[:BATCH]):
            save_all(batch, [moved(unit, "resumed", unit.before, of=PLAIN) for unit in batch], ["stage", "label"])
    for control in task.hooks["reopened"]:
        control.reopened(task)
    return _status(task, was)


def how_to_go_on(task: Task) -> str:
    """Return a sentence for managers about how people can read more units of a closed task."""
    if task.secret_told_at:
        return "The task cannot be reopened, because an export has disclosed its secret. Open a new task for the rest."
    return f"To reopen it, run `assay reopen {task.name}`."


@transaction.atomic
def tell_secret(task: Task) -> None:
    """Record that an export publishes the secret, so that the task is never reopened.

    Raise WrongStage if the task is open.
    """
    locked_task = locked(task)
    if locked_task.is_open:
        raise WrongStage(
            f"{task.name} is open, so its secret would make future random draws predictable. Close the task first, or "
            "remove --tell-secret."
        )
    if not locked_task.secret_told_at:
        locked_task.secret_told_at = timezone.now()
        locked_task.save(update_fields=["secret_told_at"])


def _open_now(task: Task) -> QuerySet[Lease]:
    work = task.units.work().order_by()
    return Lease.objects.filter(unit__in=work, closed_at=None, expires_at__gt=timezone.now()).order_by()


def unfinished(task: Task) -> int:
    """Return the number of units without a label."""
    work = task.units.work().order_by()
    return work.filter(stage__in=stages.WAITING).count() + work.waiting_copies().count()


def _status(task: Task, was: bool) -> dict[str, Any]:
    """Return the status of a task.

    was: whether the task was open before.
    """
    return {
        "task": task.name,
        "is_open": task.is_open,
        "changed": was != task.is_open,
        "unfinished": unfinished(task),
        "in_hand": _open_now(task).values("unit").distinct().count(),
    }


# --- additions to an open task


def locked_open(task: Task, units: QuerySet[Unit]) -> Task:
    """Lock the units and then the task, in the order in which answers lock them.

    Returns the task.

    Raise WrongStage if the task is closed.
    """
    list(units.order_by("pk").select_for_update(of=("self",), no_key=True))
    task = locked(task)
    if not task.is_open:
        raise WrongStage(f"Task {task.name} is closed, so nobody would read the posts. {how_to_go_on(task)}")
    return task


def check_languages(languages: Collection[str], available: Collection[str], reason: str) -> None:
    """Check that all languages are available.

    reason: start of the error message; the missing languages are appended.

    Raise NotFound if a language is not available.
    """
    if missing := [label for label in languages if label not in available]:
        raise NotFound(
            f"{reason} in {', '.join(missing)}. Available languages: "
            f"{', '.join(sorted(filter(None, available))) or 'none'}."
        )


def where(languages: Collection[str]) -> str:
    return f" in {', '.join(languages)}" if languages else ""


def units_of(task: Task, unit_ids: dict[str, list[int]]) -> list[Unit]:
    return list(task.units.in_bulk([unit for units in unit_ids.values() for unit in units]).values())


# --- deletion of a task that has no answers, with its units, draws and guidelines
#
# Answers are never deleted. The drawn items are deleted unless another task uses them.


def task_to_delete(task: Task) -> dict[str, Any]:
    """Return a task's name and the numbers of units, draws, gold answers and guidelines to be deleted with the task.

    Raise WrongStage if the task cannot be deleted.
    """
    if fault := _reason_to_keep(task):
        raise WrongStage(f"Task {task.name} cannot be deleted: {fault}")
    return {
        "task": task.name,
        "units": task.units.count(),
        "draws": task.draws.count(),
        "gold_answers": task.gold_answers.count(),
        "guidelines": task.guidelines.count(),
    }


def _reason_to_keep(task: Task) -> str:
    """Return the reason why a task cannot be deleted, with advice, or "" if it can be deleted."""
    instead = f"To end the work on the task, run `assay close {task.name}`."
    for rows, action in (
        (Judgment.objects.filter(unit__task=task), "answered its items"),
        (task.trials, "taken its practice or test"),
        (Flag.objects.filter(unit__task=task), "flagged its items"),
    ):
        if number := rows.count():
            return f"people have {action} ({many(number, 'time')}), and these records must be kept. {instead}"
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
    _lock(task)
    counts = task_to_delete(task)
    _delete(task)
    return counts


def _delete(task: Task) -> None:
    """Delete a task without answers, BATCH units in a transaction, so that others can write in between."""
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
        # Also delete the draws that this draw extends, unless another task or draw needs them.
        while draw is not None and not draw.tasks.exists() and not Draw.objects.filter(extends=draw).exists():
            smaller = draw.extends
            draw.delete()
            draw = smaller


def _lock(task: Task) -> None:
    """Lock rows, so that nobody can take a unit, begin a test or draw the same items in the meantime.

    Raise WrongStage if somebody is working in the task.
    """
    Task.objects.select_for_update().get(pk=task.pk)
    list(Corpus.objects.select_for_update().filter(draws__tasks=task))
    try:
        # Do not wait for a locked unit: the transaction that holds it may be waiting for the task, which would
        # deadlock.
        list(task.units.order_by("pk").select_for_update(nowait=True).values_list("pk", flat=True))
    except OperationalError as error:
        raise WrongStage(
            f"Somebody is working in {task.name}. Close it with `assay close {task.name}`, and try again."
        ) from error


# --- tasks that are being opened
#
# SQLite allows one writer at a time. If a large task were opened in one transaction, nobody could answer meanwhile, so
# its units are added in many short transactions. `Task.objects` hides the task until the last one.


@contextmanager
def hidden(task: Task) -> Iterator[None]:
    """Hide a new task until the end of the block. If the block fails, nothing remains of the task."""
    opened_at, task.created_at = task.created_at, None
    if connection.vendor == "postgresql" or connection.in_atomic_block:
        with transaction.atomic():
            yield
            _show(task, opened_at)
        return
    with _opening():
        try:
            yield
            _show(task, opened_at)
        except BaseException:
            _delete_hidden()
            raise


def _show(task: Task, opened_at: datetime | None) -> None:
    task.created_at = opened_at
    task.save(update_fields=["created_at"])


def delete_interrupted() -> None:
    """Delete tasks whose opening was interrupted, unless another process is opening a task now."""
    if connection.vendor == "sqlite" and Task.all_objects.filter(created_at=None).exists():
        with suppress(BlockingIOError), _opening(fcntl.LOCK_NB):
            pass


@contextmanager
def _opening(wait: int = 0) -> Iterator[None]:
    """Open one task at a time. Hidden tasks that exist before the block were interrupted, and are deleted."""
    path = Path(settings.DATA_DIR) / "tmp" / "opening.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | wait)
        _delete_hidden()
        yield


def _delete_hidden() -> None:
    for task in Task.all_objects.filter(created_at=None):
        _delete(task)
