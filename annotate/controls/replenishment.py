"""Top-up sampling, which draws additional documents for balanced sets whose classes were predicted.

At first, people get just enough documents to fill the sets if all predictions are right. If people decide that a
document does not belong to its predicted class, the class is short of a document, so the next document in random order
is drawn for it. This continues until each class is complete or no document with the prediction is left.
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
from annotate.work.moves import lock_task
from annotate.work.unit_entry import add_units, shuffle
from corpora.draws.samples import items_of

# Missing documents are drawn once their number reaches this share of the documents that wait in the language. If each
# document were drawn immediately, people could infer from the number of waiting documents whether the last prediction
# was right. People do not run out of work, because the limit falls with the number of waiting documents.
DRAWN_AT = 0.1


def of_classes() -> QuerySet[Task]:
    """Return the tasks that draw documents for balanced sets by their predicted class."""
    return Task.objects.filter(draws__parameters__has_key=NEEDED).distinct()


def standing(task: Task, only: str = "") -> list[dict[str, Any]]:
    """Return the progress of each class in each language, as JSON data; empty for tasks without predicted classes.

    only: language code to restrict the result to; empty for all languages.

    Each row has:

    needed: number of documents of the class that the sets need.
    labelled: number of documents that people have labelled with the class, regardless of the prediction.
    drawn: number of documents that were predicted as the class and given to people.
    waiting: number of drawn documents that people have not finished.
    right: number of drawn documents that people have labelled with the class.
    left: number of documents that were predicted as the class and can still be drawn.
    short: number of documents that must still be drawn to complete the class.
    over: whether the class cannot be completed, because no document waits or can be drawn.
    """
    draws = task.draws.filter(parameters__has_key=NEEDED).order_by("language")
    draw_parameters = {draw.language: draw.parameters for draw in (draws.filter(language=only) if only else draws)}
    if not draw_parameters:
        return []
    # The queue of a unit is its language here, so the query can use the units' language column, which has an index. A
    # single statement counts everything. With two statements, a document that is answered between them could be counted
    # neither as waiting nor as labelled.
    units = task.units.exported().filter(language__in=draw_parameters).order_by()
    counts = {name: Counter[tuple[str, str]]() for name in ("labelled", "drawn", "waiting", "right")}
    columns = ("language", "predicted", "stage", "label")
    for language, predicted, stage, label, number in units.values_list(*columns).annotate(Count("pk")):
        counts["labelled"][language, label] += number * (stage == stages.LABELLED)
        counts["drawn"][language, predicted] += number
        counts["waiting"][language, predicted] += number * (stage not in stages.FINISHED)
        counts["right"][language, predicted] += number * (label == predicted)
    reserve_counts = task.reserve.order_by().values_list("language", "predicted").annotate(Count("pk"))
    left = {(language, label): number for language, label, number in reserve_counts}
    rows = []
    for cell in (
        (language, label) for language, parameters in draw_parameters.items() for label in parameters["classes"]
    ):
        row = {name: counted[cell] for name, counted in counts.items()}
        needed = draw_parameters[cell[0]][NEEDED]
        short = max(0, needed - row["labelled"] - row["waiting"])
        over = bool(short) and cell not in left and not row["waiting"]
        row |= {"left": left.get(cell, 0), "short": short, "over": over}
        rows.append({"language": cell[0], "class": cell[1], "needed": needed, **row})
    return rows


# --- Drawing


def draw_later(task_id: int, language: str) -> None:
    """Draw the missing documents of a language after the current transaction is committed.

    The draw has its own transaction, so that an answer is not lost if the corpus cannot be read. In that case, the next
    draw makes up for the missing documents.
    """

    def draw() -> None:  # a named function, because the log shows its name
        draw_short(task_id, language)

    transaction.on_commit(draw, robust=True)


@transaction.atomic
def draw_short(task_id: int, language: str) -> int:
    """Draw the documents that the classes of a language need.

    Nothing is drawn if fewer documents are needed than DRAWN_AT times the number of documents that wait in the
    language. If a class has too few documents left, all of them are drawn.

    Return the number of documents drawn.
    """
    task = lock_task(Task(pk=task_id))
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
    items = shuffle(items_of(task.draw.corpus, predicted), task.seed)
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


# --- Text and table of balanced sets


SHOWN = 3  # maximum number of ids that a sentence names


def remarks(language: str, results: Mapping[str, Any]) -> list[str]:
    """Return sentences about problems with the balanced sets of a language.

    results: `short` and `faults`, as in the parameters of a balanced draw (kinds/balanced_draw.py), and for an exported
        set also `taken_out`, the number of documents that are in no set.
    """
    return [
        *(_taken_out(language, number) for number in [results.get("taken_out", 0)] if number),
        *(_short(language, short) for short in results["short"]),
        *(_fault(language, fault) for fault in results["faults"]),
    ]


def standing_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of the progress of each class.

    rows: result of `standing`.
    """
    columns = (
        *LANGUAGE,
        Column("class", "class"),
        Column("labelled", "labelled", NUMBER, lambda row: f"{count(row['labelled'])} of {count(row['needed'])}"),
        numbered("drawn", "drawn"),
        numbered("right", "as predicted"),
        numbered("waiting", "with people"),
        numbered("left", "left to draw"),
        Column("note", "", NOTE, lambda row: "incomplete: no documents are left to draw" if row["over"] else ""),
    )
    return table("Classes: documents needed and labelled", columns, rows)


def _taken_out(language: str, number: int) -> str:
    return (
        f"{language}: {many(number, 'document')} that were drawn {'is' if number == 1 else 'are'} in no set, because "
        "people found none of the classes in them, or could not decide."
    )


def _short(language: str, short: Mapping[str, Any]) -> str:
    return (
        f"{language}, {short['set']}: the class {short['label']} has {short['available']:,} documents, not "
        f"{short['requested']:,}."
    )


def _fault(language: str, fault: Mapping[str, Any]) -> str:
    ids, first, second = fault["ids"], fault["first"], fault["second"]
    shown_ids = ", ".join(ids[:SHOWN]) + (" …" if len(ids) > SHOWN else "")
    if first == second:
        problem = f"{many(len(ids), 'repeated id')} in {first}"
    elif first.startswith("train") and second.startswith("train"):
        problem = f"{many(len(ids), 'id')} of {first} that {second} does not contain"
    else:
        problem = f"{many(len(ids), 'id')} in both {first} and {second}"
    return f"the lists in {language} have {problem} ({shown_ids})."


register(Replenishment())
