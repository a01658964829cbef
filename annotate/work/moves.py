"""Moves of units from stage to stage. Only this module writes Unit.stage, each move together with its Transition.

Callers hold the unit's row lock (or, when a task is opened, are the only ones to know the units). Where a unit goes is
decided in routing.py.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from annotate.core import stages
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.work.routes import Routes
from annotate.work.sql import sql
from corpora.database.bulk_rows import insert, plain
from corpora.database.statements import insert_one, update_one

BATCH = 2000
PLAIN = plain(Transition)
# The fields of a unit that change when it is sent to people.
CHANGED = ("stage", "label", "round", "language", "visited", "candidates", "recheck")
# Where a new unit may begin, and what led there; in a queue it is what its kind says.
_BEGINNINGS = {stages.COPIED: "copied", stages.LABELLED: "reused", stages.AGREED: "agreed"}
_BEGUN = sql("begun")
# The key of no row: keys begin at 1.
NO_ROW = 0


def move(
    unit: Unit, event: str, to_stage: str, *, by=None, judgment: Judgment | None = None, keep: bool = True, **changes
) -> None:
    """Move a unit whose row the caller has locked, and write down that it moved.

    changes: label, round, language, visited, redundancy; unless a label is given, the unit loses its own. keep: unless
    nothing is to come of it; then the same statements are run, and change nothing.
    """
    transition = moved(unit, event, to_stage, by=by, judgment=judgment, **changes)
    update_one(unit, "stage", "label", "round", "language", "visited", "redundancy", keep=keep)
    insert_one(transition, keep=keep)


def moved(unit, event, to_stage, *, by=None, judgment=None, label="", of: type[Any] = Transition, **changes) -> Any:
    """The transition of a move, which the caller saves with the unit. of: PLAIN where there are many."""
    stages.check_move(unit.stage, event, to_stage)
    from_stage = unit.stage
    begin(unit, to_stage, label, **changes)
    return of(
        unit=unit,
        event=event,
        from_stage=from_stage,
        to_stage=to_stage,
        round=unit.round,
        language=unit.language,
        label=label,
        judgment=judgment,
        by=by,
        at=timezone.now(),
    )


def to_people(unit: Unit, event: str, routes: Routes) -> Any:
    """Put a unit into the queue of its most likely language; the caller saves both."""
    return moved(unit, event, stages.QUEUED, of=PLAIN, **_first_queue(unit, routes))


def _first_queue(unit: Any, routes: Routes) -> dict[str, Any]:
    candidates = unit.task.kind.routing.candidates(unit, routes)
    queue = routes.queue_in(candidates[0])
    return {"candidates": candidates, "round": 1, "language": queue, "visited": [queue]}


def begin(unit: Any, stage: str, label: str = "", **changes: Any) -> None:
    """Set the stage where a new unit begins, and other fields. The caller saves the unit, and then calls `begun`."""
    unit.stage, unit.label = stage, label
    for field, value in changes.items():
        setattr(unit, field, value)


def begin_with_people(unit: Any, routes: Routes) -> None:
    """The same of one that goes to people at once."""
    begin(unit, stages.QUEUED, **_first_queue(unit, routes))


def begun(task: Task, first: int) -> None:
    """Write down how units got to where they begin: those of a task from the position `first` on, all by one statement,
    since a task may have a million.
    """
    events = {**_BEGINNINGS, stages.QUEUED: task.kind.routing.enters_by}
    for stage, event in events.items():
        stages.check_move(stages.NEW, event, stage)
    with connection.cursor() as cursor:
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        cursor.execute(_BEGUN, [*chain(*events.items()), stages.NEW, now, task.pk, first])


def seen(annotator: Annotator, labelled: Iterable[tuple[Unit, str]]) -> list[str]:
    """The labels of units, as they are told to a person."""
    said = list(labelled)
    for control in dict.fromkeys(control for unit, _ in said for control in unit.task.controls):
        said = [(unit, label) for (unit, _), label in zip(said, control.seen(annotator, said), strict=True)]
    return [label for _, label in said]


def locked(task: Task) -> Task:
    """The task, locked, so that only one transaction at a time judges its agreement or adds to it."""
    return Task.objects.select_for_update(no_key=True).get(pk=task.pk)


def send_to_people(units: QuerySet[Unit], event: str, routes: Routes) -> int:
    """Take AGREED units out of their stage. Returns how many."""
    units = units.filter(stage=stages.AGREED).select_related("item", "task")
    # no_key: otherwise they and an extension that is about to add copies of them would wait for each other.
    found = list(units.select_for_update(of=("self",), no_key=True))
    transitions = [to_people(unit, event, routes) for unit in found]
    for control in routes.task.controls:
        control.queued(routes.task, found, event)
    save_all(found, transitions, CHANGED)
    return len(found)


def save_all(units: list[Unit], transitions: Iterable[Any], fields: Iterable[str]) -> None:
    # Written as insertions that conflict with their rows: bulk_update takes many times as long, and people wait for
    # this.
    Unit.objects.bulk_create(units, batch_size=BATCH, update_conflicts=True, unique_fields=["pk"], update_fields=fields)
    insert(transitions)


def contested_labels(task: Task) -> set[str]:
    """The labels on which the detectors agreed but which people now label in full, because their audit failed."""
    contested = task.units.filter(transitions__event="contested")
    return set(contested.order_by().values_list("agreed_label", flat=True).distinct())


def unread(task: Task) -> QuerySet[Unit]:
    """The posts whose label is the detectors' agreement alone: neither chosen for the audit nor contested (stratum
    `agreed` of an exported set). Posts are counted, so one of them may have a text that was read as another post.
    """
    alone = Q(stage=stages.AGREED) | Q(copy_of__stage=stages.AGREED) | ~Q(agreed_label__in=contested_labels(task))
    return task.units.exclude(agreed_label="").filter(alone, audited=False)
