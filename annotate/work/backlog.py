"""How many units wait for a person, and what they did today: counted now and then, and kept.

From an exact count after each answer one could tell gold answers from work: others still take a unit of work for which
a gold answer stood, and then it is gone from the count. So it goes down by one with each answer of one's own, and what
others did shows when it is counted again, in one step that many units share.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from datetime import timedelta

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from annotate.models import Annotator, Backlog, Judgment, Lease, Task, Unit
from annotate.quality.honeypots import Turn, to_come, turns
from annotate.work.eligible import beyond
from annotate.work.permit import Permit, day_of, midnight
from annotate.work.queue import WANTED
from annotate.work.sql import sql
from corpora.occupied import Occupied, not_waiting
from corpora.prepared import prepared, tell

_SAID = sql("said")
KEPT = timedelta(minutes=10)


def backlogs(permits: Sequence[Permit]) -> list[Backlog]:
    """What waits for one person in the tasks of their permits. It is counted again if it is older than ten minutes,
    says that nothing waits, or is of other queues than the person has now. Nobody waits for that to be kept: as long as
    somebody else is writing, what was kept before is told again.
    """
    if not permits:
        return []
    tasks, annotator = [permit.task for permit in permits], permits[0].annotator
    if len(tasks) == 1:
        rows = _kept(annotator.pk, tasks[0].pk)
    else:
        rows = Backlog.objects.filter(annotator=annotator, task__in=tasks)
    kept = {row.task_id: row for row in rows}
    old = [permit for permit in permits if not _holds(kept.get(permit.task.pk), permit)]
    before = {permit.task.pk for permit in old if _tells(kept.get(permit.task.pk), permit)}
    counted = _counted(old)
    # What is told for the first time is kept, so that the next answer does not show in an exact count.
    first = any(row.waiting and row.task_id not in before for row in counted)
    is_kept = _keep(counted, wait=first)
    kept |= {row.task_id: row for row in counted if is_kept or row.task_id not in before}
    return [kept[task.pk] for task in tasks]


def _tells(row: Backlog | None, permit: Permit) -> bool:
    return row is not None and bool(row.waiting) and row.queues == list(permit.queues)


def _holds(row: Backlog | None, permit: Permit) -> bool:
    return _tells(row, permit) and timezone.now() - KEPT < row.counted_at <= timezone.now()


def said(permit: Permit, judgment: Judgment, number: int = 1) -> None:
    """After an answer, a skip or a flag, which counts as neither; -1 when it is taken back."""
    today = day_of()
    of_today = number if day_of(judgment.answered_at) == today else 0
    answered, skipped = (of_today * (judgment.kind == kind) for kind in (Judgment.ANSWER, Judgment.SKIP))
    own = [permit.annotator.pk, permit.task.pk, max(number, 0)]
    tell(_SAID, [number, today, answered, today, skipped, today, *own])


def forget(annotator: Annotator, task: Task) -> None:
    """Have all of it counted again."""
    Backlog.objects.filter(annotator=annotator, task=task).delete()


@prepared
def _kept(annotator, task) -> QuerySet[Backlog]:
    return Backlog.objects.filter(annotator=annotator, task=task)


# --- counting


def _counted(permits: Sequence[Permit]) -> list[Backlog]:
    """Counted now for one person."""
    if not permits:
        return []
    annotator, tasks = permits[0].annotator, [permit.task.pk for permit in permits]
    left: dict[int, Counter[tuple[str, bool]]] = {task: Counter() for task in tasks}
    for (task, *queue), number in _units(permits).items():
        left[task][tuple(queue)] = number
    running = Lease.objects.filter(WANTED, annotator=annotator, closed_at=None, expires_at__gt=timezone.now())
    running = running.filter(unit__task__in=tasks).select_related("unit")
    on_screen = {lease.unit.task_id: lease.unit for lease in running.order_by("-pk")}
    turn, done = turns(permits), _today(annotator, tasks)
    return [
        _backlog(permit, left[permit.task.pk], turn, on_screen.get(permit.task.pk), done[permit.task.pk])
        for permit in permits
    ]


def _keep(counted: Sequence[Backlog], *, wait: bool) -> bool:
    """Whether they are kept: not where that has to wait for somebody else who is writing, and shall not."""
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


def _today(annotator: Annotator, tasks: list[int]) -> dict[int, Counter[str]]:
    """Task -> how many answers and skips of today stand, by kind."""
    own = Judgment.objects.live().filter(annotator=annotator, unit__task__in=tasks, lease__isnull=False)
    rows = own.filter(answered_at__gte=midnight()).order_by().values_list("unit__task", "kind")
    found: dict[int, Counter[str]] = {task: Counter() for task in tasks}
    for task, kind, number in rows.annotate(Count("pk")):
        found[task][kind] = number
    return found


def _units(permits: Sequence[Permit]) -> Counter[tuple[int, str, bool]]:
    """Task, language (the queue), honeypot and number of units that one person has not judged, in all queues that they
    read.
    """
    anywhere = Q(pk=None)
    for permit in permits:
        anywhere |= Q(task=permit.task, language__in=list(permit.read_queues))
    queued = Unit.objects.queued().filter(anywhere).order_by()
    annotator = permits[0].annotator
    left = _by_queue(queued, annotator)
    # Not one by one: a million may wait, of which the person has judged a few.
    left.subtract(_by_queue(queued.filter(beyond(annotator)), annotator))
    return left


def _by_queue(units: QuerySet[Unit], annotator: Annotator) -> Counter[tuple[int, str, bool]]:
    """Without those that others found disturbing, unless the annotator takes such."""
    found: Counter[tuple[int, str, bool]] = Counter()
    rows = units.values_list("task", "language", "honeypot", "disturbing").annotate(Count("pk"))
    for *queue, disturbing, number in rows:
        if annotator.takes_disturbing or not disturbing:
            found[tuple(queue)] += number
    return found


def _backlog(
    permit: Permit,
    left: Counter[tuple[str, bool]],
    turn: Callable[[Task, str], Turn],
    on_screen: Unit | None,
    done: Counter[str],
) -> Backlog:
    def count(queues: Iterable[str], shown: Unit | None) -> int:
        work = Counter({queue: left[queue, False] for queue in queues})
        pool = Counter({queue: left[queue, True] for queue in queues})
        return work.total() + to_come(permit, turn, work, pool, shown)

    behind = {
        language: count([queue], None)
        for language in permit.majors
        if (queue := permit.routes.queue_in(language)) in permit.read_queues and queue not in permit.queues
    }
    return Backlog(
        annotator=permit.annotator,
        task=permit.task,
        waiting=count(permit.queues, on_screen),
        behind_tests=behind,
        queues=list(permit.queues),
        day=day_of(),
        answered=done[Judgment.ANSWER],
        skipped=done[Judgment.SKIP],
        counted_at=timezone.now(),
    )
