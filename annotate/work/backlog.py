"""The backlog of an annotator: how many units wait for them, and how many they have done today.

The units are counted occasionally, and the counts are cached. An exact count after each answer would reveal gold
answers, because the unit of work that a gold answer replaced would still be counted. Therefore, the cached number drops
by one with each answer, and changes by other people appear together at the next full count.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from annotate.models import Annotator, Backlog, Judgment, Lease, Task, Unit
from annotate.work.eligible import count_backlogs
from annotate.work.permit import Permit, midnight
from annotate.work.sql import sql
from corpora.database.statements import prepared, tell
from corpora.system import Occupied, not_waiting

_COUNT = sql("update_backlog")
_COUNTED = ("waiting", "behind_tests", "queues", "day", "answered", "skipped")
KEPT = timedelta(minutes=10)


@dataclass(frozen=True)
class Progress:
    """The progress of one annotator in a task.

    answered_today, skipped_today: number of answers and of skips today.
    waiting: number of units in the annotator's queues, at most as many as their quota leaves.
    behind_tests: for each language whose test the annotator has not passed, number of units that would wait after
        passing.
    """

    answered_today: int
    skipped_today: int
    waiting: int
    behind_tests: dict[str, int] = field(default_factory=dict)


def progress_of(permit: Permit) -> Progress:
    [progress] = progress_in([permit])
    return progress


def progress_in(permits: Sequence[Permit]) -> list[Progress]:
    """Return the progress of an annotator in each task for which they have a permit, with as many queries as for one.

    A cached count is renewed if it is older than ten minutes, if it is zero (but see `is_empty`), or if the annotator's
    queues have changed. If the new count cannot be stored because a different process is writing to the database, the
    old count is returned.

    Annotators must not be able to force a recount before the cached count expires. While they are stopped, the number
    is 0, but the cached row is kept. Otherwise, they could obtain an exact count by withdrawing their consent and
    giving it again.
    """
    if not permits:
        return []
    annotator, tasks, now = permits[0].annotator, [permit.task.pk for permit in permits], timezone.now()
    rows: Iterable[Backlog] = (
        _kept(annotator.pk, *tasks) if len(tasks) == 1 else Backlog.objects.filter(annotator=annotator, task__in=tasks)
    )
    cached, today = {row.task_id: row for row in rows}, midnight().date()
    if old := [permit for permit in permits if not _is_current(cached.get(permit.task.pk), permit, now)]:
        cached |= _renewed(cached, old)
    return [_progress(permit, cached[permit.task.pk], today) for permit in permits]


def _progress(permit: Permit, row: Backlog, today: date) -> Progress:
    of_today = (row.answered, row.skipped) if row.day == today else (0, 0)
    waiting = 0 if permit.stopped else row.waiting if permit.left is None else min(row.waiting, permit.left)
    return Progress(*of_today, waiting, row.behind_tests)


def is_empty(annotator: Annotator) -> Q:
    """Return a condition for tasks in which no unit of work waits and the annotator holds no unit.

    If tasks have it as the annotation `is_empty`, a count of zero is kept as long as other counts.
    """
    work = Unit.objects.work().queued().filter(task=OuterRef("pk"))
    held = Lease.objects.filter(annotator=annotator, closed_at=None, unit__task=OuterRef("pk"))
    return Q(~Exists(work), ~Exists(held))


def _has_number(row: Backlog | None, permit: Permit) -> bool:
    if row is None or row.queues != permit.queues:
        return False
    return row.waiting > 0 or (getattr(permit.task, "is_empty", False) and not any(row.behind_tests.values()))


def _is_current(row: Backlog | None, permit: Permit, now: datetime) -> bool:
    if row is None or permit.stopped:
        return row is not None
    return _has_number(row, permit) and now - KEPT < row.counted_at <= now


@prepared
def _kept(annotator: int, task: int) -> QuerySet[Backlog]:
    return Backlog.objects.filter(annotator=annotator, task=task)


def _renewed(cached: Mapping[int, Backlog], permits: Sequence[Permit]) -> dict[int, Backlog]:
    """Count again, and return the rows by task. Tasks whose cached count remains in use are left out."""
    counted = count_backlogs(permits)
    usable = {permit.task.pk for permit in permits if _has_number(cached.get(permit.task.pk), permit)}
    new = [row for row in counted if row.waiting or _is_new(row, cached.get(row.task_id))]
    # Store a first count even if this requires waiting. Otherwise, the next answer would cause an exact count.
    is_kept = _keep(new, wait=any(row.waiting and row.task_id not in usable for row in counted))
    return {row.task_id: row for row in counted if is_kept or row.task_id not in usable}


def _is_new(row: Backlog, cached: Backlog | None) -> bool:
    """Return whether to store a count of zero, which may be renewed on every request but seldom changes."""
    if cached is None or row.counted_at - cached.counted_at >= KEPT:
        return True
    return any(getattr(row, name) != getattr(cached, name) for name in _COUNTED)


def _keep(counted: Sequence[Backlog], *, wait: bool) -> bool:
    """Store the counts. If `wait` is False and a different process is writing, store nothing and return False."""
    try:
        with nullcontext() if wait else not_waiting():
            Backlog.objects.bulk_create(
                counted,
                update_conflicts=True,
                unique_fields=["annotator", "task"],
                update_fields=[*_COUNTED, "counted_at"],
            )
    except Occupied:
        return False
    return True


def forget(annotator: Annotator, task: Task) -> None:
    """Delete the cached count, so that the backlog is counted again."""
    Backlog.objects.filter(annotator=annotator, task=task).delete()


def count_answers(permit: Permit, judgment: Judgment, number: int = 1) -> None:
    """Update the backlog after an answer, a skip or a flag. A flag counts neither as an answer nor as a skip.

    number: 1, or -1 if the judgment is taken back.
    """
    zone = timezone.get_default_timezone()
    today = timezone.localdate(timezone=zone)
    of_today = number if timezone.localdate(judgment.answered_at, zone) == today else 0
    answered, skipped = (of_today * (judgment.kind == kind) for kind in (Judgment.ANSWER, Judgment.SKIP))
    parameters = [permit.annotator.pk, permit.task.pk, max(number, 0)]
    tell(_COUNT, [number, today, answered, today, skipped, today, *parameters])
