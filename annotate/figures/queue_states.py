"""The state of each queue in a task, with a sentence for managers, and the annotators without work.

This module only reads data.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import Any

from django.db.models import Count, Max, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.figures.annotator_statistics import names_of
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.reports.tables import are, many
from annotate.work.routes import Readers, Routes, readers_of, route_rows
from annotate.work.routing import lacking_readers

# The states of stalled queues, on which a manager must act.
UNREAD, UNTESTED, NOT_AGREED, PAUSED = "unread", "untested", "not agreed", "paused"
JUDGED, LACKING = "judged", "lacking"
STUCK = (UNREAD, UNTESTED, NOT_AGREED, PAUSED, JUDGED, LACKING)
DONE, CLOSED, LEASED, GOING = "done", "closed", "leased", "going"
AT_WORK = timedelta(hours=1)
FEW_READERS = 10  # maximum number of names in a queue's list of readers
KEYS = 5_000  # maximum number of primary keys per query


@dataclass
class _Queue:
    """A queue with its waiting units and its annotators.

    touched: number of required answers by unit, for units that were judged or assigned.
    untouched: number of all other units, by their number of required answers. They are only counted, because a queue
        can have a million of them.
    readers: annotators who read the queue's languages.
    passed: readers who passed the test.
    agreed: annotators in `passed` who consented to sensitive work.
    able: annotators in `agreed` who may work now.
    """

    touched: dict[int, int] = field(default_factory=dict)
    untouched: Counter[int] = field(default_factory=Counter)
    readers: set[int] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)
    agreed: set[int] = field(default_factory=set)
    able: set[int] = field(default_factory=set)

    @property
    def waiting(self) -> int:
        return len(self.touched) + self.untouched.total()

    @property
    def missing(self) -> int:
        """The total number of required answers, including existing ones."""
        return sum(self.touched.values()) + sum(needed * number for needed, number in self.untouched.items())


@dataclass
class _Tables:
    """Data on several tasks and their waiting units. Tasks, units and annotators are identified by primary key.

    queues: queues by task and name.
    adjudication: number of units waiting for an adjudicator, by task and queue.
    lasts: time of the last judgment, by task, annotator and queue.
    held: number of places occupied by answers and active leases, by unit.
    open_now: units with an active lease.
    judged: annotators who must not be assigned a unit, by unit.
    answers: number of answers by unit.
    labels: names of the queues' languages.
    """

    queues: dict[int, dict[str, _Queue]]
    adjudication: dict[int, dict[str, int]]
    lasts: dict[int, dict[tuple[int, str], datetime]]
    held: Counter[int]
    open_now: set[int]
    judged: dict[int, set[int]]
    answers: Counter[int]
    labels: dict[str, str]

    def places(self, queue: _Queue) -> tuple[int, set[int]]:
        """Return the number of units with too few annotators, and the annotators who can be assigned a unit now."""
        lacking = sum(number for needed, number in queue.untouched.items() if len(queue.able) < needed)
        free, taken = queue.untouched.total(), Counter[int]()
        for unit, needed in queue.touched.items():
            may_not = queue.able & self.judged[unit] if unit in self.judged else ()
            lacking += len(queue.able) - len(may_not) < needed - self.answers[unit]
            if self.held[unit] < needed:
                free += 1
                taken.update(may_not)
        return lacking, queue.able - {person for person, number in taken.items() if number == free} if free else set()

    def has_left(self, person: int, queue: _Queue) -> bool:
        """Return whether a queue has a unit that an annotator has not judged."""
        return queue.untouched.total() > 0 or any(person not in self.judged.get(unit, ()) for unit in queue.touched)


def queue_states(task: Task) -> dict[str, Any]:
    """Return the states of a task's queues, as a dict with `queues`, `idle` and `stuck`.

    queues: a row for each queue, stalled queues first, then by number of waiting units.
    idle: a row for each annotator who may work but has no unit available: `annotator`, `name`, `queues`, `last`,
        `at_work` (whether the last judgment was within the last hour) and `said` (the reason, as a sentence).
    stuck: number of stalled queues.

    A row for a queue has:

    queue, name: code and name.
    waiting: number of waiting units.
    leased: number of waiting units that are assigned to an annotator now.
    missing: number of missing answers.
    lacking: number of units that need more answers than there are annotators who may still judge them.
    readers, passed, agreed, able: annotator counts, see _Queue.
    adjudication: number of this queue's units that are waiting for an adjudicator.
    last: time of the last judgment.
    state, stuck, said: the state, whether the queue is stalled, and a sentence about it.
    """
    return _states(task, _load_tables([task]), with_idle=True)


def queue_states_of(tasks: Iterable[Task]) -> dict[int, dict[str, Any]]:
    """Return the states of several tasks' queues by primary key, without `idle`, which is slow with many annotators.

    The number of queries does not depend on the number of tasks.
    """
    task_list = list(tasks)
    tables = _load_tables(task_list)
    return {task.pk: _states(task, tables) for task in task_list}


def _states(task: Task, tables: _Tables, *, with_idle: bool = False) -> dict[str, Any]:
    queues, lasts = tables.queues[task.pk], tables.lasts[task.pk]
    busy: set[int] = set()  # annotators who can be assigned a unit now
    rows: list[dict[str, Any]] = []
    for name, queue in queues.items():
        lacking, may_take = tables.places(queue)
        busy |= may_take
        counts = {
            "waiting": queue.waiting,
            "leased": sum(unit in tables.open_now for unit in queue.touched),
            "missing": queue.missing - sum(tables.answers[unit] for unit in queue.touched),
            "lacking": lacking,
            **{people: len(getattr(queue, people)) for people in ("readers", "passed", "agreed", "able")},
            "adjudication": tables.adjudication[task.pk].get(name, 0),
        }
        unjudged = bool(queue.waiting) and any(tables.has_left(person, queue) for person in queue.able)
        state = _state(task, counts, unjudged=unjudged, is_available=bool(may_take))
        rows.append(
            {
                "queue": name,
                "name": tables.labels[name],
                **counts,
                "last": max((at for (_, of), at in lasts.items() if of == name), default=None),
                "state": state,
                "stuck": state in STUCK,
                "said": _sentence(task, tables.labels[name], state, counts),
            }
        )
    rows.sort(key=lambda row: (not row["stuck"], -row["waiting"], row["queue"]))
    states = {"queues": rows, "stuck": sum(row["stuck"] for row in rows)}
    return states | ({"idle": _idle(tables, queues, busy, lasts)} if with_idle else {})


# --- Data


def _load_tables(tasks: list[Task]) -> _Tables:
    held, open_now = _count_held(tasks)
    judged, answers = _load_judged(tasks)
    adjudication: dict[int, dict[str, int]] = defaultdict(dict)
    waiting = Unit.objects.filter(task__in=tasks, stage=stages.ADJUDICATION).order_by()
    for task, queue, number in waiting.values_list("task_id", "language").annotate(Count("pk")):
        adjudication[task][queue] = number
    queues = _load_queues(tasks, judged.keys() | held.keys())
    # Find each annotator's last judgment in each queue. A unit counts for its current queue.
    judgments = Judgment.objects.filter(unit__task__in=tasks, lease__isnull=False).order_by()
    rows = judgments.values_list("unit__task_id", "annotator_id", "unit__language").annotate(Max("answered_at"))
    lasts: dict[int, dict[tuple[int, str], datetime]] = defaultdict(dict)
    for task, person, queue, at in rows:
        lasts[task][person, queue] = at
    labels = {name: label_name(name) for name in {name for of_task in queues.values() for name in of_task}}
    return _Tables(queues, adjudication, lasts, held, open_now, judged, answers, labels)


def _load_queues(tasks: list[Task], touched: Collection[int]) -> dict[int, dict[str, _Queue]]:
    """Return all queues with units, including those whose units are all finished.

    touched: units that were judged or assigned.
    """
    queues: dict[int, dict[str, _Queue]] = {task.pk: {} for task in tasks}
    units = Unit.objects.work().filter(task__in=tasks).exclude(language="").order_by()
    for task, queue in units.values_list("task_id", "language").distinct():
        queues[task][queue] = _Queue()
    queued = units.filter(stage=stages.QUEUED)
    for task, queue, needed, number in queued.values_list("task_id", "language", "redundancy").annotate(Count("pk")):
        queues[task][queue].untouched[needed] = number
    keys = sorted(touched)
    for start in range(0, len(keys), KEYS):
        batch = queued.filter(pk__in=keys[start : start + KEYS])
        for task, queue, unit, needed in batch.values_list("task_id", "language", "pk", "redundancy"):
            queues[task][queue].touched[unit] = needed
            queues[task][queue].untouched[needed] -= 1
    rows = route_rows()
    for task, people in readers_of([Routes(rows, task) for task in tasks]).items():
        for queue, queue_data in queues[task].items():
            by_state = (people.reads, people.passed, people.agreed, people.able)
            queue_data.readers, queue_data.passed, queue_data.agreed, queue_data.able = (
                by_queue.get(queue, set()) for by_queue in by_state
            )
    return queues


def _count_held(tasks: list[Task]) -> tuple[Counter[int], set[int]]:
    """Return the number of occupied places of each unit, and the set of units with an active lease.

    Each answer and each active lease occupies a place.
    """
    held: Counter[int] = Counter()
    open_now = set()
    now = timezone.now()
    running = Q(closed_at=None, expires_at__gt=now)
    held_places = Q(unit__honeypot=False, unit__stage=stages.QUEUED, place__isnull=False)
    # While an annotator has a gold item open, the lease occupies a place of the unit that the item replaces.
    stands_in = Q(instead_of__stage=stages.QUEUED) & running
    places = Lease.objects.filter(
        held_places & (Q(closed_at__isnull=False) | running) | stands_in, unit__task__in=tasks
    )
    for unit, closed in places.order_by().values_list(Coalesce("instead_of_id", "unit_id"), "closed_at"):
        held[unit] += 1
        if closed is None:
            open_now.add(unit)
    return held, open_now


def _load_judged(tasks: list[Task]) -> tuple[dict[int, set[int]], Counter[int]]:
    """Return the annotators who must not be assigned each waiting unit, and each unit's number of answers.

    These annotators have already judged the unit, or have opted out of units that were flagged as disturbing.
    """
    judged: dict[int, set[int]] = defaultdict(set)
    answers: Counter[int] = Counter()
    live = Judgment.objects.binding().of_work().filter(unit__task__in=tasks, unit__stage=stages.QUEUED)
    disturbing = set()
    columns = ("unit_id", "annotator_id", "kind", "voided_at", "unit__disturbing")
    for unit, person, kind, voided, is_disturbing in live.order_by().values_list(*columns):
        judged[unit].add(person)
        answers[unit] += kind == Judgment.ANSWER and voided is None
        if is_disturbing:
            disturbing.add(unit)
    if disturbing:
        leave = set(Annotator.objects.filter(takes_disturbing=False).order_by().values_list("pk", flat=True))
        for unit in disturbing:
            judged[unit] |= leave
    return judged, answers


# --- States


def _state(task: Task, counts: dict[str, Any], *, unjudged: bool, is_available: bool) -> str:
    """Return the state of a queue.

    unjudged: whether there is a unit that an annotator who may work has not judged.
    is_available: whether such a unit has a free place.
    """
    if not counts["waiting"]:
        return DONE
    if not task.is_open:
        return CLOSED
    if not counts["readers"]:
        return UNREAD
    if not counts["passed"]:
        return UNTESTED
    if not counts["agreed"]:
        return NOT_AGREED
    if not counts["able"]:
        return PAUSED
    if not unjudged:
        return JUDGED
    if not is_available:
        return LEASED
    return LACKING if counts["lacking"] else GOING


def _sentence(task: Task, name: str, state: str, counts: dict[str, Any]) -> str:
    """Return a sentence about the state of a queue.

    name: name of the queue's language.
    """
    if state in (JUDGED, LEASED, LACKING, GOING):
        return _sentence_if_able(task, state, counts)
    items, one = many(counts["waiting"], "item"), counts["waiting"] == 1
    if state == DONE:
        left = counts["adjudication"]
        return f"Done, except for {many(left, 'item')} in adjudication." if left else "Done."
    if state == CLOSED and not task.kind.answered_here:
        return f"{items} {'needs' if one else 'need'} more answers. Import them."
    if state == CLOSED:
        wait = "waits" if one else "wait"
        return (
            f"The task is closed, so annotators do not receive the {items} that {wait}. Reopen the task in its "
            "settings."
        )
    if state == UNREAD:
        return (
            f"No active annotator reads {name} at level {task.least_level} or better. Invite a reader, or add the "
            "language to an annotator."
        )
    readers = are(counts["readers" if state == UNTESTED else "passed"], "person reads", "people read")
    if state == UNTESTED:
        return f"{readers} {name}, but nobody has passed the test yet. Ask them to take it."
    if state == NOT_AGREED:
        return (
            f"{readers} {name}, but nobody has agreed to work with distressing content. They can agree on the task's "
            "page."
        )
    able = "has passed the test" if task.test_items else f"reads {name}"
    able += " and has agreed to the work" if task.kind.sensitive else ""
    return f"Everybody who {able} is paused ({counts['agreed']:,}). Lift a pause, or invite other readers."


def _sentence_if_able(task: Task, state: str, counts: dict[str, Any]) -> str:
    """Return a sentence about the state of a queue where annotators may work."""
    items, one = many(counts["waiting"], "item"), counts["waiting"] == 1
    people = are(counts["able"], "person", "people")
    if state == JUDGED:
        everybody = "the only person" if counts["able"] == 1 else f"each of the {people}"
        return (
            f"{items} {'needs' if one else 'need'} {many(counts['missing'], 'more answer')}, but {everybody} who can "
            f"work has already answered {'it' if one else 'them'}, or does not accept disturbing items. Invite another "
            "person."
        )
    if state == LEASED:
        return (
            f"The remaining {items} {'is' if one else 'are'} open with annotators now, for at most "
            f"{task.kind.lease_minutes} minutes."
        )
    if state == LACKING:
        part = "All " if counts["lacking"] == counts["waiting"] else f"{counts['lacking']:,} of the "
        need = "needs" if counts["lacking"] == 1 else "need"
        return (
            f"{'' if one else part}{items} {need} answers from more people than can work here "
            f"({counts['able']:,}). Invite more."
        )
    a_day = (
        f" Each of them receives at most {task.kind.sensitive.a_day:,} items per day." if task.kind.sensitive else ""
    )
    return f"{people.capitalize()} can work on {items}. Answers needed: {counts['missing']:,}.{a_day}"


def _idle(
    tables: _Tables, queues: Mapping[str, _Queue], busy: set[int], lasts: Mapping[tuple[int, str], datetime]
) -> list[dict[str, Any]]:
    """Return the annotators who may work but have no unit available. Those with recent work come first.

    busy: annotators who can be assigned a unit now.
    lasts: time of each annotator's last judgment in each queue.
    """
    queues_of: dict[int, list[str]] = defaultdict(list)
    for queue in sorted(queues):
        for person in queues[queue].able - busy:
            queues_of[person].append(queue)
    current_time, people, rows = timezone.now(), names_of(), []
    for person, names in queues_of.items():
        waiting = [tables.labels[queue] for queue in names if queues[queue].waiting]
        reason = "No items are waiting in their languages."
        if waiting and any(tables.has_left(person, queues[queue]) for queue in names):
            reason = "The remaining items are open with other annotators."
        elif waiting:
            reason = f"They have answered all waiting items in {', '.join(waiting)}."
        last = max((at for (of, _), at in lasts.items() if of == person), default=None)
        at_work = last is not None and current_time - last < AT_WORK
        row = {"annotator": person, "name": people[person], "queues": names, "last": last}
        rows.append(row | {"at_work": at_work, "said": reason})
    return sorted(rows, key=lambda row: (not row["at_work"], row["name"].casefold(), row["annotator"]))


# --- The queues of a task with their readers


@dataclass(frozen=True)
class QueueRow:
    """A queue of a task.

    waiting: number of waiting units, including leased and lacking units.
    leased: number of leased units.
    lacking: number of units that need more annotators than may still judge them.
    readers: names of the first FEW_READERS readers, sorted.
    reader_count: number of readers.
    """

    queue: str
    labels: list[str]
    waiting: int
    leased: int
    lacking: int
    readers: list[str]
    reader_count: int


People = tuple[dict[int, Readers], dict[int, str]]  # readers by task, and names by annotator


def people_of(tasks: Iterable[Task]) -> People:
    """Return the annotators for several tasks' queue tables, with the same number of queries as for a single task."""
    rows = route_rows()
    return readers_of([Routes(rows, task) for task in tasks]), names_of()


def queues_by_use(task: Task, people: Callable[[], People]) -> dict[str, list[QueueRow]]:
    """Return the queues with waiting units as `busy`, and all others as `idle`. Pages collapse the idle queues.

    people: function that returns the result of people_of; its tasks must include this task.
    """
    rows = queue_table(task, people())
    return {"busy": [row for row in rows if row.waiting], "idle": [row for row in rows if not row.waiting]}


def queue_table(task: Task, people: People | None = None) -> list[QueueRow]:
    """Return all queues with waiting units or readers, most waiting units first."""
    by_task, names = people or people_of([task])
    routes, readers = Routes.load(task), by_task[task.pk].able
    queued = task.units.work().queued()
    counts = dict(queued.order_by().values_list("language").annotate(Count("pk")))
    open_now = Q(closed_at=None, expires_at__gt=timezone.now(), unit__in=queued.order_by())
    leased = Counter(Lease.objects.filter(open_now).values_list("unit__language", flat=True))
    lacking = Counter(lacking_readers(task, readers).values())
    rows = []
    for queue in counts.keys() | readers.keys():
        able = readers.get(queue, ())
        rows.append(
            QueueRow(
                queue,
                routes.labels.get(queue, []),
                counts.get(queue, 0),
                leased[queue],
                lacking[queue],
                nsmallest(FEW_READERS, (names[pk] for pk in able)),
                len(able),
            )
        )
    return sorted(rows, key=lambda row: (-row.waiting, row.queue))
