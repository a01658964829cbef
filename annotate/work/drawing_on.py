"""Balanced sets whose documents people label: where a class turns out to be short, more is drawn, in the same order.

A predictor found the documents, and those are with people that the sets need if it is right in all of them. A document
of which people find another class, or none, leaves its own class short, so the next one in the order of the lots
follows it. This goes on until each class has its number or nothing is left that the predictor finds to be of it.
"""

from collections.abc import Collection, Iterable, Mapping

from django.db import transaction

from annotate.core import stages
from annotate.core.lottery import lot
from annotate.models import Reserve, Task, Unit
from annotate.quality.classes import standing
from annotate.work.contesting import locked
from annotate.work.entering import add_units
from corpora.inserting import insert
from corpora.items import items_of
from corpora.models import Item

# More is drawn in lots, of this share of what waits in the language: people who are told how much waits for them would
# otherwise see after each answer whether it was what the predictor had said. Nobody is left without work for that.
DRAWN_AT = 0.1
Orders = Mapping[str, Mapping[str, list[str]]]  # language -> class -> ids


def store_orders(task: Task, orders: Orders, taken: Collection[str]) -> dict[str, str]:
    """Keep what may be drawn later, without what is `taken` now. Returns id -> class, of all."""
    insert(
        Reserve(task=task, language=language, predicted=label, place=place, key=key)
        for language, of_class in orders.items()
        for label, order in of_class.items()
        for place, key in enumerate(order)
        if key not in taken
    )
    return {key: label for of_class in orders.values() for label, order in of_class.items() for key in order}


def shuffled(items: Iterable[Item], seed: str) -> list[Item]:
    """The items in an order that tells nothing. Items that were drawn together are separated: among the pages of one
    query, a page of another query would stand out as a hidden gold answer, and neighbours would tell a class.
    """
    return sorted(items, key=lambda item: lot(seed, "place", item.key))


def draw_on(unit: Unit) -> None:
    """Called when somebody has said something of a unit: once it is done, draw what is short in its language."""
    if unit.predicted and unit.stage in stages.FINISHED:
        draw_later(unit.task_id, unit.item.language)


def draw_later(task_id: int, language: str) -> None:
    """Draw what is short once all that was done until now is kept. That is a transaction of its own, so that nothing is
    lost where the corpus cannot be read; the next one tries again.
    """

    def draw() -> None:  # which has a name, for the log, as a partial function has not
        draw_short(task_id, language)

    transaction.on_commit(draw, robust=True)


@transaction.atomic
def draw_short(task_id: int, language: str) -> int:
    """Draw what the classes of a language lack, as far as there is some, once it is a DRAWN_AT of what waits there.
    Returns how many documents.
    """
    task = locked(Task(pk=task_id))
    cells = standing(task, language)
    if not task.is_open or sum(cell["short"] for cell in cells) < DRAWN_AT * sum(cell["waiting"] for cell in cells):
        return 0
    rows = [
        row
        for cell in cells
        for row in task.reserve.filter(language=language, predicted=cell["class"])[: cell["short"]]
    ]
    if not rows:
        return 0
    predicted = {row.key: row.predicted for row in rows}
    items = shuffled(items_of(task.draw.corpus, predicted), task.seed)
    add_units(task, items, predicted=predicted)
    task.reserve.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)
