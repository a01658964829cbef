"""The backlog of an annotator: how many units wait for them, and how many they have done today.

The units are counted occasionally, and the counts are cached. An exact count after each answer would reveal gold
answers, because the unit of work that a gold answer replaced would still be counted. Therefore, the cached number drops
by one with each answer, and changes by other people appear together at the next full count.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from annotate.core import stages
from annotate.kinds.control import QualityControl
from annotate.models import Annotator, Backlog, Judgment, Lease, Task, Unit
from annotate.work.eligible import Seen, beyond, is_over, unjudged_by
from annotate.work.permit import Permit, midnight
from corpora.database.statements import prepared
from corpora.system import Occupied, not_waiting

KEPT = timedelta(minutes=10)
OUTCOME = ("answered", "skipped", "flagged")


def backlogs(permits: Sequence[Permit]) -> list[Backlog]:
    """Return the backlog of an annotator in each task for which they have a permit.

    A cached count is renewed if it is older than ten minutes, if it is zero, or if the annotator's queues have changed.
    If the new count cannot be stored because a different process is writing to the database, the old count is returned.

    Annotators must not be able to trigger an earlier count. While they are stopped, the number is 0, but the cached row
    is kept. Otherwise, they could obtain an exact count by withdrawing their consent and giving it again.
    """
    if not permits:
        return []
    tasks, annotator = [permit.task for permit in permits], permits[0].annotator
    if len(tasks) == 1:
        rows: Iterable[Backlog] = _kept(annotator.pk, tasks[0].pk)
    else:
        rows = Backlog.objects.filter(annotator=annotator, task__in=tasks)
    cached, now = {row.task_id: row for row in rows}, timezone.now()
    old, has_cached_number = [], set()
    for permit in permits:
        row = cached.get(permit.task.pk)
        has_number = row is not None and bool(row.waiting) and row.queues == permit.queues
        if row and permit.stopped:
            row.waiting = 0  # not saved, so the number is valid again when the annotator is no longer stopped
        elif not (row and has_number and now - KEPT < row.counted_at <= now):
            old.append(permit)
            has_cached_number |= {permit.task.pk} if has_number else set()
    counted = _counted(old)
    # Store a first count even if this requires waiting. Otherwise, the next answer would cause an exact count.
    first = any(row.waiting and row.task_id not in has_cached_number for row in counted)
    is_kept = _keep(counted, wait=first)
    cached |= {row.task_id: row for row in counted if is_kept or row.task_id not in has_cached_number}
    return [cached[task.pk] for task in tasks]


def forget(annotator: Annotator, task: Task) -> None:
    """Delete the cached count, so that the backlog is counted again."""
    Backlog.objects.filter(annotator=annotator, task=task).delete()


@prepared
def _kept(annotator: int, task: int) -> QuerySet[Backlog]:
    return Backlog.objects.filter(annotator=annotator, task=task)


# --- counting


def _counted(permits: Sequence[Permit]) -> list[Backlog]:
    """Count the backlogs of one annotator."""
    if not permits:
        return []
    annotator, tasks = permits[0].annotator, [permit.task.pk for permit in permits]
    left: dict[int, Counter[tuple[str, bool]]] = {task: Counter() for task in tasks}
    for (task, language, is_hidden), number in _units(permits).items():
        left[task][language, is_hidden] = number
    judgments = Judgment.objects.live().filter(annotator=annotator, unit__task__in=tasks, lease__isnull=False)
    rows = judgments.filter(answered_at__gte=midnight()).order_by().values_list("unit__task", "kind")
    done: dict[int, Counter[str]] = {task: Counter() for task in tasks}
    for task, kind, number in rows.annotate(Count("pk")):
        done[task][kind] = number
    coming, aside = _coming(permits), _aside(permits)
    return [
        _backlog(permit, left[permit.task.pk], coming, aside[permit.task.pk], done[permit.task.pk])
        for permit in permits
    ]


def _coming(permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
    """Return a function that estimates how many hidden units an annotator will still get in a task.

    The function takes the permit, the number of units of work in each queue, and the number of hidden units in each
    queue. It counts only hidden units that come before the last unit of work.
    """
    of_control: dict[QualityControl, list[Permit]] = {}
    for permit in permits:
        for control in permit.task.hooks["coming"]:
            of_control.setdefault(control, []).append(permit)
    counts = {control: control.coming(own_permits) for control, own_permits in of_control.items()}
    return lambda permit, *units: sum(counts[control](permit, *units) for control in permit.task.hooks["coming"])


def _keep(counted: Sequence[Backlog], *, wait: bool) -> bool:
    """Store the counts. If `wait` is False and a different process is writing, store nothing and return False."""
    try:
        with nullcontext() if wait else not_waiting():
            Backlog.objects.bulk_create(
                counted,
                update_conflicts=True,
                unique_fields=["annotator", "task"],
                update_fields=["waiting", "behind_tests", "queues", "day", "answered", "skipped", "counted_at"],
            )
    except Occupied:
        return False
    return True


def _units(permits: Sequence[Permit]) -> Counter[tuple[int, str, bool]]:
    """Count the units in an annotator's queues that the annotator has not judged.

    The keys of the result are (task, language, whether the unit is a honeypot) tuples.
    """
    anywhere = Q(pk=None)
    for permit in permits:
        anywhere |= Q(task=permit.task, language__in=list(permit.read_queues))
    queued = Unit.objects.queued().filter(anywhere).order_by()
    annotator = permits[0].annotator
    left = _by_queue(queued, annotator)
    # Subtract the units that the annotator has judged, which are few, instead of checking each waiting unit. A million
    # units may be waiting.
    gone = beyond(permits)
    # These tasks may have hidden units, which are not given to people who have seen the text. A task of records has
    # hidden units only if it has gold answers.
    tasks = [permit.task for permit in permits]
    if hiding := [task.pk for task in tasks if task.gold_share or not task.kind.routing.waits]:
        gone |= Q(task__in=hiding) & Q(Seen("pk", annotator.pk))
    left.subtract(_by_queue(queued.filter(gone), annotator))
    return left


def _by_queue(units: QuerySet[Unit], annotator: Annotator) -> Counter[tuple[int, str, bool]]:
    """Count units by queue. Units that were flagged as disturbing count only if the annotator accepts them."""
    counts: Counter[tuple[int, str, bool]] = Counter()
    rows = units.values_list("task", "language", "honeypot", "disturbing").annotate(Count("pk"))
    for *queue, disturbing, number in rows:
        if annotator.takes_disturbing or not disturbing:
            counts[tuple(queue)] += number
    return counts


@dataclass
class _Aside:
    """Numbers of units per queue that are counted separately, because an annotator has received them before.

    The random draw of gold answers does not apply to these units.

    work: units of work that the annotator returned or has open.
    gold: gold answers that the annotator returned or has open and that are not counted under `work`.
    used: gold answers that the draw can no longer give to the annotator.
    replaced: units of work that the annotator is not asked about, because they answered a gold answer instead.
    """

    work: Counter[str] = field(default_factory=Counter)
    gold: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)


def _aside(permits: Sequence[Permit]) -> dict[int, _Aside]:
    """Return the _Aside of each task for one annotator.

    A gold answer that the annotator returned counts as long as it waits for this annotator, like a unit of work.
    """
    annotator, now = permits[0].annotator, timezone.now()
    tasks = {permit.task.pk: permit.task for permit in permits}
    with_gold = [pk for pk, task in tasks.items() if task.gold_share]
    leases_of_annotator = Lease.objects.filter(annotator=annotator, unit__task__in=tasks).order_by("pk")
    returned = Q(outcome__in=Lease.RETURNED, unit__task__in=with_gold)
    replaced = Q(in_place=True, outcome__in=OUTCOME)
    leases = list(
        leases_of_annotator.filter(Q(closed_at=None) | returned | replaced).select_related("unit", "instead_of")
    )
    aside_by_task = {task: _Aside() for task in tasks}
    running = [lease for lease in leases if lease.closed_at is None and lease.expires_at > now]
    on_screen = {lease.unit.task_id: lease for lease in running if lease.is_wanted}
    for task, lease in on_screen.items():
        _add(aside_by_task[task], lease, waits=lease.work.stage == stages.QUEUED)
    rest = [lease for lease in leases if lease not in on_screen.values()]
    if rest:
        _add_returned(aside_by_task, rest, {lease.work.pk for lease in on_screen.values()}, permits)
    return aside_by_task


def _add(aside: _Aside, lease: Lease, *, waits: bool) -> None:
    """Count a lease that is on the annotator's screen.

    waits: whether the unit of work behind the lease is in a queue.
    """
    is_work = lease.instead_of_id is None or lease.in_place
    (aside.work if is_work and waits else aside.gold)[lease.work.language] += 1
    if lease.unit.honeypot:
        aside.used[lease.unit.language] += 1


def _add_returned(
    aside_by_task: dict[int, _Aside],
    leases: list[Lease],
    open_now: set[int],
    permits: Sequence[Permit],
) -> None:
    """Count leases that one annotator returned or let expire, and gold answers that they answered in place of work.

    leases: these leases, oldest first.
    open_now: units of work behind the leases that are on the annotator's screen.
    """
    units = Unit.objects.queued().filter(pk__in={pk for lease in leases for pk in (lease.unit_id, lease.work.pk)})
    tasks, annotator = {permit.task.pk: permit.task for permit in permits}, permits[0].annotator
    preferences = {"may_have_seen": annotator.has_seen_answers, "takes_disturbing": annotator.takes_disturbing}
    theirs = {unit.pk: unit for unit in unjudged_by(units.order_by(), annotator.pk, **preferences)}
    leases_by_unit: dict[int, list[Lease]] = {}
    stood_for = [lease.instead_of_id for lease in leases if lease.instead_of_id in theirs]
    for lease in Lease.objects.filter(Q(unit__in=stood_for) | Q(instead_of__in=stood_for)).order_by():
        leases_by_unit.setdefault(lease.instead_of_id or lease.unit_id, []).append(lease)
    replaced = {lease.instead_of_id: lease for lease in leases if lease.outcome in OUTCOME}
    for unit in theirs.keys() & replaced.keys():
        aside_by_task[theirs[unit].task_id].replaced[theirs[unit].language] += 1
    golds = {lease.unit_id for lease in leases if lease.unit.honeypot and lease.unit_id in theirs}
    for gold in golds:
        aside_by_task[theirs[gold].task_id].used[theirs[gold].language] += 1
    for lease in {lease.work.pk: lease for lease in leases if lease.outcome not in OUTCOME}.values():
        work = theirs.get(lease.work.pk)
        if work is None or work.pk in open_now or work.pk in replaced:
            continue
        work.task = tasks[work.task_id]
        if lease.instead_of_id is None:
            aside_by_task[work.task_id].work[work.language] += 1
        elif lease.unit_id in golds and not is_over(work, lease.unit_id, leases_by_unit[work.pk]):
            kind = aside_by_task[work.task_id].work if lease.in_place else aside_by_task[work.task_id].gold
            kind[work.language] += 1


def _backlog(
    permit: Permit,
    left: Counter[tuple[str, bool]],
    coming: Callable[[Permit, Counter[str], Counter[str]], int],
    aside: _Aside,
    done: Counter[str],
) -> Backlog:
    def count(queues: Iterable[str]) -> int:
        work = Counter({queue: left[queue, False] - aside.replaced[queue] for queue in queues})
        if not work.total():
            # If no other work is left, the annotator is asked about the replaced units too.
            work = Counter({queue: left[queue, False] for queue in queues})
        by_lot = Counter({queue: max(0, number - aside.work[queue]) for queue, number in work.items()})
        pool = Counter({queue: left[queue, True] - aside.used[queue] for queue in queues})
        return work.total() + sum(aside.gold[queue] for queue in queues) + coming(permit, by_lot, pool)

    behind = {
        language: count([queue])
        for language in permit.majors
        if (queue := permit.routes.queue_in(language)) in permit.read_queues and queue not in permit.queues
    }
    return Backlog(
        annotator=permit.annotator,
        task=permit.task,
        waiting=count(permit.queues),
        behind_tests=behind,
        queues=list(permit.queues),
        day=midnight().date(),
        answered=done[Judgment.ANSWER],
        skipped=done[Judgment.SKIP],
        counted_at=timezone.now(),
    )
