"""An annotator's backlog: the number of units waiting for them, and how many they have judged today.

The units are counted occasionally, and the counts are cached. An exact count after each answer would reveal gold
answers, because the unit of work that a gold answer replaced would still be counted. Instead, the cached count drops by
one with each answer, and changes by other annotators show up only in the next full count.
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
from corpora.database.statements import prepared, run_sql
from corpora.system import Occupied, not_waiting

_UPDATE = sql("update_backlog")
_COUNTED = ("waiting", "behind_tests", "queues", "day", "answered", "skipped")
MAX_AGE = timedelta(minutes=10)


@dataclass(frozen=True)
class Progress:
    """An annotator's progress in a task.

    answered_today, skipped_today: number of units answered and skipped today.
    waiting: number of units waiting in the annotator's queues, at most what is left of their quota.
    behind_tests: number of units that the annotator could get by passing a test, by the test's language.
    """

    answered_today: int
    skipped_today: int
    waiting: int
    behind_tests: dict[str, int] = field(default_factory=dict)


def progress_of(permit: Permit) -> Progress:
    [progress] = progress_in([permit])
    return progress


def progress_in(permits: Sequence[Permit]) -> list[Progress]:
    """Return an annotator's progress for each of their permits. The number of queries is constant.

    A cached count is renewed if it is older than ten minutes, if it is zero (but see `is_empty`), or if the annotator's
    queues have changed. If the new count can't be stored because another process is writing to the database, the old
    count is returned.

    Annotators must not be able to force a recount before the cached count expires. While they may not work, `waiting`
    is 0, but the cached row is kept. Otherwise, they could get an exact count by withdrawing their consent and giving
    it again.
    """
    if not permits:
        return []
    annotator, tasks, now = permits[0].annotator, [permit.task.pk for permit in permits], timezone.now()
    rows: Iterable[Backlog] = (
        _load_cached(annotator.pk, *tasks)
        if len(tasks) == 1
        else Backlog.objects.filter(annotator=annotator, task__in=tasks)
    )
    cached, today = {row.task_id: row for row in rows}, midnight().date()
    if old := [permit for permit in permits if not _is_current(cached.get(permit.task.pk), permit, now)]:
        cached |= _recount(cached, old)
    return [_progress(permit, cached[permit.task.pk], today) for permit in permits]


def _progress(permit: Permit, row: Backlog, today: date) -> Progress:
    today_counts = (row.answered, row.skipped) if row.day == today else (0, 0)
    waiting = 0 if permit.stopped else row.waiting if permit.left is None else min(row.waiting, permit.left)
    return Progress(*today_counts, waiting, row.behind_tests)


def is_empty(annotator: Annotator) -> Q:
    """Return the condition that a task's queues are empty and the annotator has no open unit in it.

    If a task is annotated with this condition as `is_empty`, a count of zero is cached for as long as any other count.
    """
    work = Unit.objects.work().queued().filter(task=OuterRef("pk"))
    held = Lease.objects.filter(annotator=annotator, closed_at=None, unit__task=OuterRef("pk"))
    return Q(~Exists(work), ~Exists(held))


def _is_usable(row: Backlog | None, permit: Permit) -> bool:
    if row is None or row.queues != permit.queues:
        return False
    return row.waiting > 0 or (getattr(permit.task, "is_empty", False) and not any(row.behind_tests.values()))


def _is_current(row: Backlog | None, permit: Permit, now: datetime) -> bool:
    if row is None or permit.stopped:
        return row is not None
    return _is_usable(row, permit) and now - MAX_AGE < row.counted_at <= now


@prepared
def _load_cached(annotator: int, task: int) -> QuerySet[Backlog]:
    return Backlog.objects.filter(annotator=annotator, task=task)


def _recount(cached: Mapping[int, Backlog], permits: Sequence[Permit]) -> dict[int, Backlog]:
    """Recount, and return the new rows by task. If a task's cached row stays in use, the task is left out."""
    counted = count_backlogs(permits)
    usable = {permit.task.pk for permit in permits if _is_usable(cached.get(permit.task.pk), permit)}
    new = [row for row in counted if row.waiting or _must_save(row, cached.get(row.task_id))]
    # Wait to store a first count. Without a stored count, the next answer would trigger an exact one.
    is_saved = _save(new, wait=any(row.waiting and row.task_id not in usable for row in counted))
    return {row.task_id: row for row in counted if is_saved or row.task_id not in usable}


def _must_save(row: Backlog, cached: Backlog | None) -> bool:
    """Return whether a count of zero must be stored. Zero may be recounted on every request, but rarely changes."""
    if cached is None or row.counted_at - cached.counted_at >= MAX_AGE:
        return True
    return any(getattr(row, name) != getattr(cached, name) for name in _COUNTED)


def _save(counted: Sequence[Backlog], *, wait: bool) -> bool:
    """Save the counts. If `wait` is False and another process is writing, nothing is saved and False is returned."""
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


def clear_count(annotator: Annotator, task: Task) -> None:
    """Delete the cached count, so that the backlog is recounted on the next request."""
    Backlog.objects.filter(annotator=annotator, task=task).delete()


def count_answers(permit: Permit, judgment: Judgment, number: int = 1) -> None:
    """Update the cached backlog after a judgment. A flag counts neither as an answer nor as a skip.

    number: 1, or -1 if the judgment is undone.
    """
    zone = timezone.get_default_timezone()
    today = timezone.localdate(timezone=zone)
    today_counts = number if timezone.localdate(judgment.answered_at, zone) == today else 0
    answered, skipped = (today_counts * (judgment.kind == kind) for kind in (Judgment.ANSWER, Judgment.SKIP))
    parameters = [permit.annotator.pk, permit.task.pk, max(number, 0)]
    run_sql(_UPDATE, [number, today, answered, today, skipped, today, *parameters])
