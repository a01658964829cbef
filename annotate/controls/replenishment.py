"""Balanced sets whose documents people label: where a class turns out to be short, more is drawn, in the same order.

A predictor found the documents, and those are with people that the sets need if it is right in all of them. A document
of which people find another class, or none, leaves its own class short, so the next one in the order of the lots
follows it. This goes on until each class has its number or nothing is left that the predictor finds to be of it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, QuerySet

from annotate.core import stages
from annotate.kinds.balanced_draw import NEEDED
from annotate.kinds.control import QualityControl, register
from annotate.models import Task, Unit
from annotate.reports.numbers import count
from annotate.reports.tables import LANGUAGE, NOTE, NUMBER, Column, Table, many, numbered, table
from annotate.work.moves import locked
from annotate.work.unit_entry import add_units, shuffled
from corpora.draws.samples import items_of

# More is drawn in lots, of this share of what waits in the language: people who are told how much waits for them would
# otherwise see after each answer whether it was what the predictor had said. Nobody is left without work for that.
DRAWN_AT = 0.1


def of_classes() -> QuerySet[Task]:
    """The tasks that have such sets."""
    return Task.objects.filter(draws__parameters__has_key=NEEDED).distinct()


def standing(task: Task, only: str = "") -> list[dict[str, Any]]:
    """How far each class is, in each language or in one, in JSON's terms; empty for other tasks.

    needed: how many documents all sets need; labelled: found by people to be of it; drawn: predicted to be of it, and
    given to people; waiting and right, of these: still with people, and found to be of it; left: predicted so, and not
    drawn yet; short: how many must still be drawn; over: nothing is left to draw and nothing waits, so the class stays
    short.
    """
    draws = task.draws.filter(parameters__has_key=NEEDED).order_by("language")
    found = {draw.language: draw.parameters for draw in (draws.filter(language=only) if only else draws)}
    if not found:
        return []
    # Each language has its own queue, so the unit's own column will do, by which there is an index. All is counted in
    # one statement: between two, an answer could take a document out of what waits before it is among the labelled.
    units = task.units.exported().filter(language__in=found).order_by()
    counts = {name: Counter[tuple[str, str]]() for name in ("labelled", "drawn", "waiting", "right")}
    by = ("language", "predicted", "stage", "label")
    for language, predicted, stage, label, number in units.values_list(*by).annotate(Count("pk")):
        counts["labelled"][language, label] += number * (stage == stages.LABELLED)
        counts["drawn"][language, predicted] += number
        counts["waiting"][language, predicted] += number * (stage not in stages.FINISHED)
        counts["right"][language, predicted] += number * (label == predicted)
    of_reserve = task.reserve.order_by().values_list("language", "predicted").annotate(Count("pk"))
    left = {(language, label): number for language, label, number in of_reserve}
    rows = []
    for cell in ((language, label) for language, parameters in found.items() for label in parameters["classes"]):
        row = {name: counted[cell] for name, counted in counts.items()}
        needed = found[cell[0]][NEEDED]
        short = max(0, needed - row["labelled"] - row["waiting"])
        over = bool(short) and cell not in left and not row["waiting"]
        row |= {"left": left.get(cell, 0), "short": short, "over": over}
        rows.append({"language": cell[0], "class": cell[1], "needed": needed, **row})
    return rows


# --- drawing more


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


# --- balanced sets in sentences and a table


SHOWN = 3  # ids that a sentence names


def remarks(language: str, told: Mapping[str, Any]) -> list[str]:
    """told: of a language, `short` and `faults` as a balanced draw has them (kinds/balanced_draw.py), and of an
    exported set `taken_out`."""
    return [
        *(_taken_out(language, number) for number in [told.get("taken_out", 0)] if number),
        *(_short(language, short) for short in told["short"]),
        *(_fault(language, fault) for fault in told["faults"]),
    ]


def standing_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """rows: of `standing`."""
    columns = (
        *LANGUAGE,
        Column("class", "class"),
        Column("labelled", "labelled", NUMBER, lambda row: f"{count(row['labelled'])} of {count(row['needed'])}"),
        numbered("drawn", "drawn"),
        numbered("right", "as predicted"),
        numbered("waiting", "with people"),
        numbered("left", "left to draw"),
        Column("note", "", NOTE, lambda row: "stays short: nothing is left to draw" if row["over"] else ""),
    )
    return table("Classes, as the sets need them and as people found them", columns, rows)


def _taken_out(language: str, number: int) -> str:
    return (
        f"{language}: {many(number, 'document')} that were drawn {'is' if number == 1 else 'are'} in no set, since "
        "people found none of the classes in them, or could not settle which."
    )


def _short(language: str, short: Mapping[str, Any]) -> str:
    return (
        f"{language}, {short['set']}: of {short['label']} there are {short['there']:,} documents and not "
        f"{short['wanted']:,}."
    )


def _fault(language: str, fault: Mapping[str, Any]) -> str:
    ids, first, second = fault["ids"], fault["first"], fault["second"]
    named = ", ".join(ids[:SHOWN]) + (" …" if len(ids) > SHOWN else "")
    if first == second:
        found = f"{many(len(ids), 'line')} too many in {first}, whose ids it has before"
    elif first.startswith("train") and second.startswith("train"):
        found = f"{many(len(ids), 'id')} of {first} that {second} lacks"
    else:
        found = f"{many(len(ids), 'id')} in both {first} and {second}"
    return f"the lists in {language} have {found} ({named})."


register(Replenishment())
