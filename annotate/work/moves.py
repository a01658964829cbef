"""Moves of units between stages. Only this module writes Unit.stage, and it stores a Transition for each move.

Callers must have locked the unit's row. This is not necessary while a task is being opened, because no other
transaction can see the units yet. decisions.py and routing.py decide where a unit goes.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial, reduce
from itertools import chain
from operator import or_
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from annotate.core import stages
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.work.routes import Routes
from annotate.work.sql import sql
from corpora.database.bulk_rows import insert, plain, update
from corpora.database.statements import insert_one, new_row, update_one

BATCH = 2000
PLAIN = plain(Transition)
# Fields of a unit that change when it is sent to people.
CHANGED = ("stage", "label", "round", "language", "visited", "candidates", "recheck")
# The event for each first stage of a new unit. If the unit starts in a queue, the task's kind defines the event.
_BEGINNINGS = {stages.COPIED: "copied", stages.LABELLED: "reused", stages.AGREED: "agreed"}
_BEGUN = sql("begun")
# A primary key that no row has, because primary keys start at 1.
NO_ROW = 0


def move(
    unit: Unit,
    event: str,
    to_stage: str,
    *,
    by: User | None = None,
    judgment: Judgment | None = None,
    keep: bool = True,
    **changes: Any,
) -> None:
    """Move a unit whose row the caller has locked, and store the transition.

    changes: new values of label, round, language, visited and redundancy. Without a new label, the unit has no label
        afterwards.
    keep: whether to store the move. If not, the same statements run without effect.
    """
    transition = moved(unit, event, to_stage, by=by, judgment=judgment, of=partial(new_row, Transition), **changes)
    update_one(unit, "stage", "label", "round", "language", "visited", "redundancy", keep=keep)
    insert_one(transition, keep=keep)


def moved(
    unit: Any,
    event: str,
    to_stage: str,
    *,
    by: User | None = None,
    judgment: Judgment | None = None,
    label: str = "",
    of: Callable[..., Any] = Transition,
    **changes: Any,
) -> Any:
    """Move a unit in memory and return the transition. The caller saves both.

    of: constructor of the transition; PLAIN is a faster one for bulk insertion.
    """
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
    """Move a unit to the queue for its most likely language and return the transition. The caller saves both."""
    return moved(unit, event, stages.QUEUED, of=PLAIN, **first_queue(unit, routes))


def first_queue(unit: Any, routes: Routes) -> dict[str, Any]:
    """Return the values of a unit's fields in the queue of its most likely language."""
    candidates = unit.task.kind.routing.candidates(unit, routes)
    queue = routes.queue_in(candidates[0])
    return {"candidates": candidates, "round": 1, "language": queue, "visited": [queue]}


def begin(unit: Any, stage: str, label: str = "", **changes: Any) -> None:
    """Set the first stage of a new unit, and other fields. The caller saves the unit and then calls `begun`."""
    unit.stage, unit.label = stage, label
    for field, value in changes.items():
        setattr(unit, field, value)


def begun(task: Task, first: int) -> None:
    """Store the first transitions of a task's new units in a single statement.

    first: position of the first new unit.
    """
    events = {**_BEGINNINGS, stages.QUEUED: task.kind.routing.enters_by}
    for stage, event in events.items():
        stages.check_move(stages.NEW, event, stage)
    with connection.cursor() as cursor:
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        cursor.execute(_BEGUN, [*chain(*events.items()), stages.NEW, now, task.pk, first])


def seen(annotator: Annotator, labelled: Iterable[tuple[Unit, str]]) -> list[str]:
    """Return the labels of units in the form that an annotator sees."""
    pairs = list(labelled)
    for control in dict.fromkeys(control for unit, _ in pairs for control in unit.task.hooks["seen"]):
        pairs = [(unit, label) for (unit, _), label in zip(pairs, control.seen(annotator, pairs), strict=True)]
    return [label for _, label in pairs]


def locked(task: Task) -> Task:
    """Return the task with its row locked, so that only one transaction at a time evaluates agreement or adds units."""
    return Task.all_objects.select_for_update(no_key=True).get(pk=task.pk)


def send_to_people(units: QuerySet[Unit], event: str, routes: Routes) -> int:
    """Move units from the stage AGREED into queues. Returns their number."""
    units = units.filter(stage=stages.AGREED).select_related("item", "task")
    # no_key prevents a deadlock with an extension that adds copies of the units.
    unit_list = list(units.select_for_update(of=("self",), no_key=True))
    transitions = [to_people(unit, event, routes) for unit in unit_list]
    for control in routes.task.hooks["queued"]:
        control.queued(routes.task, unit_list, event)
    save_all(unit_list, transitions, CHANGED)
    return len(unit_list)


def save_all(units: list[Unit], transitions: Iterable[Any], fields: Collection[str]) -> None:
    update(units, fields)
    insert(transitions)


def strata(task: Task, units: QuerySet[Unit]) -> set[str]:
    """Return the strata of automatically labelled units, each as its values separated by spaces.

    In most tasks, a stratum is a label. In others, it is a language and a label, such as `de sports`.
    """
    rows = units.exclude(agreed_label="").order_by().values_list(*task.kind.statistics.audit_strata)
    return {" ".join(values) for values in rows.distinct()}


def in_strata(task: Task, names: Iterable[str]) -> Q:
    """Return a filter for units in strata, which are named as in `strata`."""
    paths = task.kind.statistics.audit_strata
    if len(paths) == 1:
        return Q(**{f"{paths[0]}__in": list(names)})
    each = (Q(**dict(zip(paths, name.split(" ", len(paths) - 1), strict=True))) for name in names)
    return reduce(or_, each, Q(pk__in=[]))


def contested_strata(task: Task) -> set[str]:
    """Return the strata that failed their audit. People label all items of such a stratum."""
    return strata(task, task.units.filter(transitions__event="contested"))


def unread(task: Task) -> QuerySet[Unit]:
    """Return the posts that have a label only from the detectors' agreement (stratum `agreed` of an exported set).

    These posts were not chosen for the audit, and people do not label them because of a failed audit either. However,
    people may have read the text of such a post in another post.
    """
    alone = Q(stage=stages.AGREED) | Q(copy_of__stage=stages.AGREED) | ~in_strata(task, contested_strata(task))
    return task.units.exclude(agreed_label="").filter(alone, audited=False)
