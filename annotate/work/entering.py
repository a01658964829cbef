"""How units enter a task: each item becomes a unit, which gets its label, goes to people, or becomes a copy."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from django.db import transaction

from annotate.core import lottery, stages
from annotate.core.aggregation import at_first
from annotate.kinds import preferences
from annotate.kinds.preferences import Compared
from annotate.models import Comparison, Task, Transition, Unit
from annotate.quality.audits import choose_audits, choose_rechecks
from annotate.quality.checks import choose_checks, choose_overlap
from annotate.work.moving import moved, send_to_people, to_people
from annotate.work.routes import Routes
from corpora.inserting import insert
from corpora.models import Item, same

# The places of a unit that everybody answers: the largest number that the column holds.
EVERYBODY = 32767


@transaction.atomic
def add_units(
    task: Task,
    items: list[Item],
    *,
    asked: str = "",
    known_answers: Mapping[int, str] = MappingProxyType({}),
    honeypots: bool = False,
    reuse: Mapping[int, tuple[Unit, str]] = MappingProxyType({}),
    predicted: Mapping[str, str] = MappingProxyType({}),
    suggested: Mapping[str, Mapping[str, list[str]]] = MappingProxyType({}),
) -> Counter[str]:
    """Make a unit of each item, in order, and route it. Returns how many units are at each stage.

    asked: the language that they all ask about, empty if any language may be answered. known_answers: item -> its
    known answer, for items hidden among the work. reuse: item -> a unit of another task that people have labelled, and
    what its label means here. predicted: id -> the class by which a predictor found the item; people label all of
    these, whatever came with them. suggested: id -> system -> replies, where people compare two systems: then there is
    a unit for each two of them.

    Items whose text the task already has become copies: people judge a text once. A disputed unit goes to the queue
    of its most likely language even while nobody reads it; the manager is warned, and can reroute it.
    """
    kind, routes = task.kind, Routes.load(task)
    overlap = choose_overlap(task, () if honeypots else (item.key for item in items))
    originals = {
        same(unit.item): unit for unit in task.units.exported().filter(copy_of=None, asked=asked).select_related("item")
    }
    pairs: list[tuple[Unit, Compared]] = []
    transitions: list[Transition] = []
    units: list[Unit] = []
    asking: list[Unit] = []
    for position, (item, pair, sets) in enumerate(_questions(task, items, suggested), task.units.count() + 1):
        unit = Unit(task=task, item=item, asked=asked, pair=pair, position=position)
        unit.redundancy = 2 if item.key in overlap else at_first(task.redundancy, stop_early=task.stop_early)
        units.append(unit)
        if sets:
            pairs.append((unit, sets))
        unit.known_answer = known_answers.get(item.pk, "")
        unit.predicted = predicted.get(item.key, "")
        if honeypots:
            unit.honeypot, unit.redundancy = True, EVERYBODY
        if not unit.known_answer and (original := originals.setdefault(_shown(task, item, sets), unit)) is not unit:
            unit.copy_of, unit.agreed_label = original, original.agreed_label
            transitions.append(moved(unit, "copied", stages.COPIED))
        elif item.pk in reuse:
            unit.reused_from, label = reuse[item.pk]
            transitions.append(moved(unit, "reused", stages.LABELLED, label=label))
        elif not unit.predicted and (label := _agreed(unit, sets)):
            unit.agreed_label = label
            transitions.append(moved(unit, "agreed", stages.AGREED, label=label))
        else:
            transitions.append(to_people(unit, kind.enters_by, routes))
            asking.append(unit)
    choose_checks(task, asking)
    earlier: list[int] = []
    audited: list[Unit] = []
    for unit in choose_audits(task, units):
        judged = unit.copy_of or unit
        if judged.stage == stages.AGREED and judged.pk is None:
            audited.append(judged)
            transitions.append(to_people(judged, "audited", routes))
        elif judged.stage == stages.AGREED:
            earlier.append(judged.pk)
    choose_rechecks(task, audited)
    insert(units)
    insert(transitions)
    insert(Comparison(unit=unit, **sets._asdict()) for unit, sets in pairs)
    send_to_people(task.units.filter(pk__in=earlier), "audited", routes)
    return Counter(unit.stage for unit in units)


def _questions(
    task: Task, items: Iterable[Item], suggested: Mapping[str, Mapping[str, list[str]]]
) -> list[tuple[Item, int, Compared | None]]:
    """What is asked of the items: each by itself, or about each two systems, in an order that tells nothing of them."""
    if not suggested:
        return [(item, 0, None) for item in items]
    found = [
        (item, number, sets)
        for item in items
        for number, sets in enumerate(preferences.compared(suggested[item.key]), 1)
    ]
    return sorted(found, key=lambda each: lottery.lot(task.seed, "place", f"{each[0].key} {each[1]}"))


def _agreed(unit: Unit, sets: Compared | None) -> str | None:
    """The label on which machines agree; a known answer is asked for all the same."""
    if sets is None:
        return unit.task.kind.agreed(unit.item, unit.task)
    return "" if unit.known_answer else preferences.agreed(sets)


def _shown(task: Task, item: Item, sets: Compared | None) -> tuple[Any, ...]:
    """The key that two units share if they are the same to a reader."""
    if sets is None:
        return same(item)
    return item.language, *(item.fields[name] for name in task.kind.fields), *map(str, sets)
