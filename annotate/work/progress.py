"""How far the work is: for an annotator, and for a manager. Reads only."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Q, Value
from django.utils import timezone

from annotate.core import stages
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.quality.checks import adjudicators
from annotate.quality.honeypots import to_come
from annotate.quality.qualification import FAILED, Standing, states
from annotate.work.permit import Permit, midnight
from annotate.work.queue import unjudged, waiting, with_free_place
from annotate.work.routes import Routes
from annotate.work.routing import lacking_readers
from annotate.work.tally import Tally, tallies


def today(annotator: Annotator, task: Task):
    """The annotator's judgments since midnight in the installation's time zone, newest first."""
    own = Judgment.objects.live().filter(annotator=annotator, unit__task=task, answered_at__gte=midnight())
    return own.filter(lease__isnull=False).select_related("unit__item").order_by("-answered_at", "-pk")


@dataclass(frozen=True)
class Progress:
    """answered, skipped: by the annotator today; waiting: units in their queues. behind_tests: language -> how many
    units would wait there for them, once they have passed its test.
    """

    answered_today: int
    skipped_today: int
    waiting: int
    behind_tests: dict[str, int] = field(default_factory=dict)


def own_progress(permit: Permit, tally: Tally | None = None, on_screen: Unit | None = None) -> Progress:
    """tally, on_screen: what the annotator has done and the unit that they have open, if the caller has read them."""
    if tally is None and (permit.task.gold_share or on_screen is None):
        (found,) = progress_in([permit])
        return found
    if tally is None:
        tally, left = _day_and_waiting(permit)
    else:
        left = _left([permit], _waiting([permit]))[permit.task.pk]
    return _progress(permit, tally, left, on_screen)


def _day_and_waiting(permit: Permit) -> tuple[Tally, Counter[tuple[str, bool]]]:
    """What the annotator has done today and what waits for them, in one statement; for tasks without gold answers."""
    done = today(permit.annotator, permit.task).order_by().select_related(None)
    day = done.values_list(Value(0), "kind", Value(False)).annotate(Count("pk"))
    left = _waiting([permit]).values_list("task", "language", "honeypot", "number")
    tally, waits = Tally(), Counter()
    for task, name, honeypot, number in left.union(day, all=True):
        if task:
            waits[name, honeypot] = number
        else:
            tally.today[name] = number
    return tally, waits


def progress_in(permits: Sequence[Permit]) -> list[Progress]:
    """The same for several tasks, in as many statements as for one."""
    if not permits:
        return []
    annotator = permits[0].annotator
    done, left = tallies(permits), _left(permits, _waiting(permits))
    running = Lease.objects.filter(annotator=annotator, closed_at=None, expires_at__gt=timezone.now())
    running = running.filter(unit__task__in=[permit.task.pk for permit in permits]).select_related("unit")
    on_screen = {lease.unit.task_id: lease.unit for lease in running.order_by("-pk")}
    return [
        _progress(permit, tally, left[permit.task.pk], on_screen.get(permit.task.pk))
        for permit, tally in zip(permits, done, strict=True)
    ]


def _waiting(permits: Sequence[Permit]):
    """Rows of task, language (the queue), honeypot and number of units that one person has not judged, in all queues
    that they read.
    """
    anywhere = Q(pk=None)
    for permit in permits:
        anywhere |= Q(task=permit.task, language__in=list(permit.read_queues))
    units = unjudged(permits[0], Unit.objects.queued().filter(anywhere)).order_by()
    return units.values("task", "language", "honeypot").annotate(number=Count("pk"))


def _left(permits: Sequence[Permit], rows) -> dict[int, Counter[tuple[str, bool]]]:
    """Task -> (queue, honeypot) -> units."""
    found: dict[int, Counter[tuple[str, bool]]] = {permit.task.pk: Counter() for permit in permits}
    for row in rows:
        found[row["task"]][row["language"], row["honeypot"]] = row["number"]
    return found


def _progress(permit: Permit, tally: Tally, left: Counter[tuple[str, bool]], on_screen: Unit | None) -> Progress:
    def count(queues: Iterable[str], shown: Unit | None) -> int:
        work = Counter({queue: left[queue, False] for queue in queues})
        pool = Counter({queue: left[queue, True] for queue in queues})
        return work.total() + to_come(permit, tally, work, pool, shown)

    behind = {
        language: count([queue], None)
        for language in permit.majors
        if (queue := permit.routes.queue_in(language)) in permit.read_queues and queue not in permit.queues
    }
    return Progress(
        answered_today=tally.today[Judgment.ANSWER],
        skipped_today=tally.today[Judgment.SKIP],
        waiting=count(permit.queues, on_screen),
        behind_tests=behind,
    )


def why_empty(permit: Permit) -> str:
    """Why there is no unit for this annotator now, in a sentence."""
    task = permit.task
    if not task.is_open:
        return "This task is closed."
    if permit.stopped:
        return str(permit.stopped)
    if permit.read_queues and not permit.queues:
        return _why_not_qualified(states(permit))
    if not permit.queues:
        return "You are not down as a reader of any language of this task. The manager can add your languages."
    own = waiting(permit)
    if with_free_place(own).exists():
        return "Something has just come free. Look again."
    if own.exists():
        return (
            "What is left in your languages is open with other readers. "
            f"What they leave comes back within {task.lease_minutes} minutes."
        )
    queued = task.units.work().queued()
    if queued.filter(language__in=list(permit.queues)).exists():
        return "You have judged everything that waits in your languages. Other people still have answers to give there."
    if queued.exists():
        return (
            "Nothing waits in your languages now. Others are still at work in theirs; what they skip may come to you."
        )
    return "All done. Everything in this task has been read."


def _why_not_qualified(found: list[Standing]) -> str:
    if all(each.step == FAILED for each in found):
        return "You have not passed the test, and have no tries left. The manager can still let you in."
    if any(each.earlier for each in found):
        return "The guidelines have changed, and with them what is right. Read them and take the new test."
    return "Before you begin, there is a short test. Read the guidelines and take it."


def stage_counts(task: Task) -> dict[str, int]:
    """Units at each stage, in the order of the machine."""
    counts = dict(task.units.work().order_by().values_list("stage").annotate(Count("pk")))
    return {stage: counts.get(stage, 0) for stage in stages.STAGES if stage != stages.NEW}


def undecidable(task: Task) -> int:
    """Units that wait for an adjudicator although every active one has judged them: nobody may decide these."""
    active = adjudicators()
    judged = Judgment.objects.binding().filter(annotator__in=active).order_by().values("unit", "annotator")
    by_unit = Counter(row["unit"] for row in judged.filter(unit__task=task, unit__stage=stages.ADJUDICATION).distinct())
    number = active.count()
    if not number:
        return task.units.filter(stage=stages.ADJUDICATION).count()
    return sum(by >= number for by in by_unit.values())


@dataclass(frozen=True)
class QueueRow:
    """One queue of a task. readers are names, sorted.

    waiting includes units that are leased, and those that too few people may still judge; lacking counts the latter.
    """

    queue: str
    labels: list[str]
    waiting: int
    leased: int
    lacking: int
    readers: list[str]


def queues_by_use(task: Task) -> dict[str, list[QueueRow]]:
    """The queues in which something waits, and the others, which a page folds."""
    rows = queue_table(task)
    return {"busy": [row for row in rows if row.waiting], "idle": [row for row in rows if not row.waiting]}


def queue_table(task: Task) -> list[QueueRow]:
    """Every queue in which something waits or for which somebody reads, fullest first."""
    routes = Routes.load(task)
    queued = task.units.work().queued()
    counts = dict(queued.order_by().values_list("language").annotate(Count("pk")))
    open_now = Q(closed_at=None, expires_at__gt=timezone.now(), unit__in=queued.order_by())
    leased = Counter(Lease.objects.filter(open_now).values_list("unit__language", flat=True))
    readers = routes.readers()
    lacking = Counter(lacking_readers(task, readers).values())
    names = {annotator.pk: str(annotator) for annotator in Annotator.objects.select_related("user")}
    rows = [
        QueueRow(
            queue=queue,
            labels=routes.labels_of(queue),
            waiting=counts.get(queue, 0),
            leased=leased[queue],
            lacking=lacking[queue],
            readers=sorted(names[pk] for pk in readers.get(queue, ())),
        )
        for queue in counts.keys() | readers.keys()
    ]
    return sorted(rows, key=lambda row: (-row.waiting, row.queue))
