"""The items of a task for managers: pages of units, and the number of units in each state and with each label.

This module only reads data. The cost of a page does not depend on the number of units: the list follows the index of
queues, and a search for words reads at most SCANNED units and then continues on the next page.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Count, Q, QuerySet

from annotate.core import stages
from annotate.models import Judgment, Task, Unit
from corpora.models import Item

ON_A_PAGE = 30  # maximum number of units on a page
SCANNED = 2_000  # maximum number of units that a search reads for a page


class Place(NamedTuple):
    """The position of a unit in the list, which has the same order as the index of queues."""

    stage: str
    language: str
    position: int
    pk: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


def place_from(text: str) -> Place | None:
    """Parse a position from a URL. Return None if the text is not a position."""
    match = re.fullmatch(r"([A-Z]{1,16})\.([\w-]{0,16})\.(\d{1,18})\.(\d{1,18})", text, re.ASCII)
    return Place(match[1], match[2], int(match[3]), int(match[4])) if match else None


@dataclass(frozen=True)
class Filter:
    """Which units to list. Empty fields match all units.

    state: a stage.
    language: the current or last queue.
    label: one of the labels of an answer.
    words: the id of an item, or words of its text.
    """

    state: str = ""
    language: str = ""
    label: str = ""
    words: str = ""


def page_of(task: Task, chosen: Filter, after: Place | None) -> tuple[list[tuple[Unit, int]], Place | None]:
    """Return a page as (unit, number of answers) tuples, and the position after which the next page begins.

    The position is None if no units follow. Units of the item whose id was searched for come first.

    after: position after which the page begins.
    """
    units = _chosen(task, chosen)
    limit = SCANNED if chosen.words else ON_A_PAGE + 1
    places = list(_places(units, after, limit))
    rows = Unit.objects.order_by(*Place._fields).select_related("item", "task")
    matches, named = rows.filter(pk__in=[place.pk for place in places]), list[Unit]()
    if chosen.words:
        matches = matches.filter(item__text__icontains=chosen.words).exclude(item__key=chosen.words)
        named = list(rows.filter(pk__in=_with_id(task, units, chosen.words))) if after is None else []
    listed = list(matches[: ON_A_PAGE + 1])
    units_shown = [*named, *listed[:ON_A_PAGE]]
    answers = Judgment.objects.live().answers().filter(unit__in=units_shown).order_by()
    counts = dict(answers.values_list("unit").annotate(Count("pk")))
    shown = [(unit, counts.get(unit.pk, 0)) for unit in units_shown]
    if len(listed) > ON_A_PAGE:
        last = units_shown[-1]
        return shown, Place(last.stage, last.language, last.position, last.pk)
    return shown, places[-1] if chosen.words and len(places) == SCANNED else None


def _chosen(task: Task, chosen: Filter) -> QuerySet[Unit]:
    units = task.units.work()
    if chosen.state:
        units = units.filter(stage=chosen.state)
    if chosen.language:
        units = units.filter(language=chosen.language)
    if chosen.label and task.kind.form.several:
        units = units.filter(stage=stages.LABELLED, label__regex=rf"(^| ){re.escape(chosen.label)}( |$)")
    elif chosen.label:
        # Auto-labelled units are found by the index of agreed labels. There may be millions of them.
        agreed = Q(stage=stages.AGREED, agreed_label=chosen.label)
        units = units.filter(agreed | Q(stage=stages.LABELLED), label=chosen.label)
    return units


def _places(units: QuerySet[Unit], after: Place | None, limit: int) -> Iterator[Place]:
    """Yield the positions of the first units after a position. Each query reads a range of the index."""
    keys, parts = Place._fields, [units]
    if after is not None:
        parts = [
            units.filter(**dict(zip(keys[:number], after, strict=False)), **{f"{keys[number]}__gt": after[number]})
            for number in reversed(range(len(keys)))
        ]
    for part in parts:
        rows = list(part.order_by(*keys).values_list(*keys)[:limit])
        limit -= len(rows)
        yield from map(Place._make, rows)
        if not limit:
            return


def _with_id(task: Task, units: QuerySet[Unit], key: str) -> list[int]:
    items = Item.objects.filter(corpus__in=task.draws.values("corpus"), key=key)
    return list(units.filter(item__in=items).values_list("pk", flat=True))


def composition(task: Task) -> dict[str, Any]:
    """Return how many units there are in each state, in each queue, and with each label.

    The result has `states`, `languages` and `labels`, which map codes to numbers of units, and `labelled`, the number
    of units that have a label. A unit with several labels counts for each of them.
    """
    units, states, languages = task.units.work().order_by(), Counter[str](), Counter[str]()
    for stage, language, number in units.values_list("stage", "language").annotate(Count("pk")):
        states[stage] += number
        languages[language] += number
    del languages[""]
    labels = Counter[str]()
    for label, number in units.filter(stage__in=stages.WITH_LABEL).values_list("label").annotate(Count("pk")):
        labels.update(dict.fromkeys(task.kind.form.facets(label), number))
    labelled = sum(states[stage] for stage in stages.WITH_LABEL)
    return {"states": states, "languages": languages, "labels": labels, "labelled": labelled}
