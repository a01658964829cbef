"""How far the work is: for an annotator, and for a manager. Reads only."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Q
from django.utils import timezone

from annotate.core import stages
from annotate.models import Annotator, Judgment, Lease, Task
from annotate.quality.honeypots import to_come
from annotate.quality.pauses import PAUSED, running
from annotate.quality.qualification import FAILED, Standing, states
from annotate.work.queue import in_own_queues, unjudged, waiting, with_free_place
from annotate.work.routing import Routes, lacking_readers, queues_of, queues_read_by


def today(annotator: Annotator, task: Task):
    """The annotator's judgments since midnight in the installation's time zone, newest first."""
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return (
        Judgment.objects.filter(annotator=annotator, unit__task=task, answered_at__gte=midnight)
        .filter(lease__isnull=False, voided_at=None)
        .select_related("unit__item", "unit__task")
        .order_by("-answered_at", "-pk")
    )


def own_progress(annotator: Annotator, task: Task) -> dict[str, int]:
    """answered and skipped today, and how many posts wait in the annotator's queues."""
    kinds = Counter(today(annotator, task).values_list("kind", flat=True))
    work = waiting(annotator, task)
    count = work.count()
    return {
        "answered_today": kinds[Judgment.ANSWER],
        "skipped_today": kinds[Judgment.SKIP],
        "waiting": count + to_come(annotator, task, work, in_own_queues(annotator, task)),
    }


def behind_tests(annotator: Annotator, task: Task, found: Iterable[Standing]) -> dict[str, int]:
    """How many units would wait for the annotator in each language of which they have not passed the test."""
    routes, own = Routes.load(), queues_of(annotator, task, Routes.load())
    counts = {}
    for standing in found:
        queue = routes.queue_in(task, standing.language)
        if queue not in own:
            units = unjudged(annotator, task).filter(language=queue)
            work = units.filter(stage=stages.QUEUED, honeypot=False)
            counts[standing.language] = work.count() + to_come(annotator, task, work, units)
    return counts


def why_empty(annotator: Annotator, task: Task) -> str:
    """Why there is no unit for this annotator now, in a sentence."""
    if not task.is_open:
        return "This task is closed."
    if running(annotator, task):
        return PAUSED
    if queues_read_by(annotator, task, Routes.load()) and not queues_of(annotator, task, Routes.load()):
        return _why_not_qualified(annotator, task)
    if not queues_of(annotator, task, Routes.load()):
        return "You are not down as a reader of any language of this task. The manager can add your languages."
    own = waiting(annotator, task)
    if with_free_place(own).exists():
        return "Something has just come free. Look again."
    if own.exists():
        return (
            "What is left in your languages is open with other readers. "
            f"What they leave comes back within {task.lease_minutes} minutes."
        )
    queued = task.units.filter(stage=stages.QUEUED, honeypot=False)
    if queued.filter(language__in=queues_of(annotator, task, Routes.load())).exists():
        return "You have been through all that waits in your languages. Others still have answers to give there."
    if queued.exists():
        return (
            "Nothing waits in your languages now. Others are still at work in theirs; what they skip may come to you."
        )
    return "All done. Everything in this task has been read."


def _why_not_qualified(annotator: Annotator, task: Task) -> str:
    found = states(annotator, task)
    if all(each.step == FAILED for each in found):
        return "You have not passed the test, and have no tries left. The manager can still let you in."
    if any(each.earlier for each in found):
        return "The guidelines have changed, and with them what is right. Read them and take the new test."
    return "Before you begin, there is a short test. Read the guidelines and take it."


def stage_counts(task: Task) -> dict[str, int]:
    """Units at each stage, in the order of the machine."""
    counts = dict(task.units.filter(honeypot=False).order_by().values_list("stage").annotate(Count("pk")))
    return {stage: counts.get(stage, 0) for stage in stages.STAGES if stage != stages.NEW}


def undecidable(task: Task) -> int:
    """Units that wait for an adjudicator although every active one has judged them: nobody may decide these."""
    adjudicators = Annotator.objects.filter(adjudicates=True, user__is_active=True)
    # As routing.binding has it.
    binding = Q(judgments__voided_at=None) | Q(judgments__voided_by__isnull=False)
    judged = binding & Q(judgments__isnull=False, judgments__annotator__in=adjudicators)
    by = Count("judgments__annotator", filter=judged, distinct=True)
    return task.units.filter(stage=stages.ADJUDICATION).annotate(by=by).filter(by__gte=adjudicators.count()).count()


@dataclass(frozen=True)
class QueueRow:
    """One queue of a task. readers are names, sorted.

    waiting includes what is leased, and what too few people may still judge, which lacking counts.
    """

    queue: str
    labels: list[str]
    waiting: int
    leased: int
    lacking: int
    readers: list[str]


def queue_table(task: Task) -> list[QueueRow]:
    """Every queue in which something waits or for which somebody reads, fullest first."""
    routes = Routes.load()
    queued = task.units.filter(stage=stages.QUEUED, honeypot=False)
    counts = dict(queued.order_by().values_list("language").annotate(Count("pk")))
    open_now = Q(closed_at=None, expires_at__gt=timezone.now(), unit__in=queued.order_by())
    leased = Counter(Lease.objects.filter(open_now).values_list("unit__language", flat=True))
    readers = routes.readers(task)
    lacking = Counter(lacking_readers(task, readers).values())
    names = {annotator.pk: str(annotator) for annotator in Annotator.objects.select_related("user")}
    rows = [
        QueueRow(
            queue=queue,
            labels=routes.labels_of(queue, task),
            waiting=counts.get(queue, 0),
            leased=leased[queue],
            lacking=lacking[queue],
            readers=sorted(names[pk] for pk in readers.get(queue, ())),
        )
        for queue in counts.keys() | readers.keys()
    ]
    return sorted(rows, key=lambda row: (-row.waiting, row.queue))
