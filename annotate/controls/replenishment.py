"""Balanced sets whose documents people label: where a class turns out to be short, more is drawn, in the same order.

A predictor found the documents, and those are with people that the sets need if it is right in all of them. A document
of which people find another class, or none, leaves its own class short, so the next one in the order of the lots
follows it. This goes on until each class has its number or nothing is left that the predictor finds to be of it.
"""

from django.db import transaction

from annotate.core import stages
from annotate.kinds.control import QualityControl, register
from annotate.models import Task, Unit
from annotate.quality.classes import standing
from annotate.work.moves import locked
from annotate.work.unit_entry import add_units, shuffled
from corpora.draws.items import items_of

# More is drawn in lots, of this share of what waits in the language: people who are told how much waits for them would
# otherwise see after each answer whether it was what the predictor had said. Nobody is left without work for that.
DRAWN_AT = 0.1


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


class Replenishment(QualityControl):
    name = "replenishment"

    def moved(self, unit: Unit) -> None:
        if unit.predicted and unit.stage in stages.FINISHED:
            draw_later(unit.task_id, unit.item.language)

    def reopened(self, task: Task) -> None:
        for language in task.languages:
            draw_later(task.pk, language)


register(Replenishment())
