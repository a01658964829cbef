"""Moves of units from stage to stage. Only this module writes Unit.stage, each move together with its Transition.

Callers hold the unit's row lock (or, when a task is opened, are the only ones to know the units). Where a unit goes is
decided in routing.py.
"""

from collections.abc import Iterable
from copy import copy
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from annotate.core import stages
from annotate.models import Judgment, Transition, Unit
from annotate.quality.audits import choose_rechecks
from annotate.quality.checks import choose_checks
from annotate.work.routes import Routes
from corpora.inserting import insert, plain
from corpora.prepared import insert_one, update_one

BATCH = 2000
PLAIN = plain(Transition)
# The fields of a unit that change when it is sent to people.
CHANGED = ("stage", "label", "round", "language", "visited", "candidates", "recheck")
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


def stay(unit: Unit, *, by, judgment: Judgment) -> None:
    """Leave a unit in its queue, by the statements of a move."""
    move(copy(unit), "skipped", stages.QUEUED, by=by, judgment=judgment, keep=False)


def moved(
    unit, event, to_stage, *, by=None, judgment=None, label="", at=None, of: type[Any] = Transition, **changes
) -> Any:
    """The transition of a move, which the caller saves with the unit. of: PLAIN where there are many; at: now."""
    stages.check_move(unit.stage, event, to_stage)
    from_stage, unit.stage, unit.label = unit.stage, to_stage, label
    for field, value in changes.items():
        setattr(unit, field, value)
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
        at=at or timezone.now(),
    )


def to_people(unit: Unit, event: str, routes: Routes, at: datetime | None = None) -> Any:
    """Put a unit into the queue of its most likely language; the caller saves both. at: now."""
    unit.candidates = unit.task.kind.candidates(unit, routes)
    queue = routes.queue_in(unit.candidates[0])
    return moved(unit, event, stages.QUEUED, of=PLAIN, at=at, round=1, language=queue, visited=[queue])


def send_to_people(units: QuerySet[Unit], event: str, routes: Routes) -> int:
    """Take AGREED units out of their stage. Returns how many."""
    units = units.filter(stage=stages.AGREED).select_related("item", "task")
    # no_key: otherwise they and an extension that is about to add copies of them would wait for each other.
    found = list(units.select_for_update(of=("self",), no_key=True))
    transitions = [to_people(unit, event, routes) for unit in found]
    if event == "audited":
        choose_rechecks(routes.task, found)
    else:
        choose_checks(routes.task, found)
    save_all(found, transitions, CHANGED)
    return len(found)


def save_all(units: list[Unit], transitions: Iterable[Any], fields: Iterable[str]) -> None:
    # Written as insertions that conflict with their rows: bulk_update takes many times as long, and people wait for
    # this.
    Unit.objects.bulk_create(units, batch_size=BATCH, update_conflicts=True, unique_fields=["pk"], update_fields=fields)
    insert(transitions)
