"""How far the work is: for an annotator, and for a manager. Reads only."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Max, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.core import stages
from annotate.kinds.labels import label_name
from annotate.models import Annotator, Backlog, Judgment, Lease, Task
from annotate.quality.checks import adjudicators
from annotate.quality.qualification import FAILED, Standing, states
from annotate.work.backlog import backlogs
from annotate.work.eligible import waiting, with_free_place
from annotate.work.permit import Permit, day_of
from annotate.work.routes import Routes, read_in
from annotate.work.routing import lacking_readers


@dataclass(frozen=True)
class Progress:
    """answered, skipped: by the annotator today; waiting: units in their queues, as backlog.py tells them.
    behind_tests: language -> how many units would wait there for them, once they have passed its test.
    """

    answered_today: int
    skipped_today: int
    waiting: int
    behind_tests: dict[str, int] = field(default_factory=dict)


def own_progress(permit: Permit) -> Progress:
    [own] = progress_in([permit])
    return own


def progress_in(permits: Sequence[Permit]) -> list[Progress]:
    """The same for several tasks, in as many statements as for one."""
    return [_progress(backlog) for backlog in backlogs(permits)]


def _progress(backlog: Backlog) -> Progress:
    is_today = backlog.day == day_of()
    return Progress(
        answered_today=backlog.answered if is_today else 0,
        skipped_today=backlog.skipped if is_today else 0,
        waiting=backlog.waiting,
        behind_tests=backlog.behind_tests,
    )


def last_used(annotator: Annotator) -> dict[int, float]:
    """Task -> when the annotator judged in it last, in seconds since 1970."""
    own = Judgment.objects.filter(annotator=annotator).order_by().values_list("unit__task")
    return {task: last.timestamp() for task, last in own.annotate(Max("answered_at"))}


def why_empty(permit: Permit) -> str:
    """Why there is no unit for this annotator now, in a sentence."""
    task = permit.task
    if not task.is_open:
        return _("This task is closed.")
    if permit.stopped:
        return str(permit.stopped)
    if permit.read_queues and not permit.queues:
        return _why_not_qualified(states(permit))
    if told := not_a_reader(permit):
        return told
    own = waiting(permit)
    if with_free_place(own).exists():
        return _("Something has just come free. Look again.")
    if own.exists():
        return ngettext(
            "What is left in your languages is open with other readers. What they leave comes back within "
            "%(number)s minute.",
            "What is left in your languages is open with other readers. What they leave comes back within "
            "%(number)s minutes.",
            task.lease_minutes,
        ) % {"number": task.lease_minutes}
    queued = task.units.work().queued()
    if queued.filter(language__in=list(permit.queues)).exists():
        return _(
            "You have judged everything that waits in your languages. Other people still have answers to give there."
        )
    if queued.exists():
        return _(
            "Nothing waits in your languages now. Others are still at work in theirs; what they skip may come to you."
        )
    return _("All done. Everything in this task has been read.")


def not_a_reader(permit: Permit) -> str:
    """Why no language of the task is the annotator's to read, in a sentence; empty where one is."""
    if permit.reads:
        return ""
    wanted = set(read_in(permit.task))
    if known := [label_name(code) for code in permit.levels if code in wanted]:
        return _(
            "This task asks for readers of level %(level)s or more, and you are down with less in %(languages)s. The "
            "manager can change that."
        ) % {"level": permit.task.least_level, "languages": ", ".join(known)}
    return _("You are not down as a reader of any language of this task. The manager can add your languages.")


def _why_not_qualified(found: list[Standing]) -> str:
    if all(each.step == FAILED for each in found):
        return _("You have not passed the test, and have no tries left. The manager can still let you in.")
    if any(each.earlier for each in found):
        return _("The guidelines have changed, and with them what is right. Read them and take the new test.")
    return _("Before you begin, there is a short test. Read the guidelines and take it.")


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
