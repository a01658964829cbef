"""Top-up sampling, which draws more documents for balanced sets whose classes were predicted.

Initially, annotators get just enough documents to fill the sets if every prediction is right. Whenever they reject a
prediction, its class is one document short, so it gets the next document in random order. This continues until each
class is complete or no documents with the prediction are left.
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

# Draw missing documents once their number reaches this share of the unfinished documents in the language. If we drew
# each missing document immediately, a growing queue would reveal that the last prediction was wrong. Annotators don't
# run out of work, because the threshold falls with the number of unfinished documents.
DRAWN_AT = 0.1


def balanced_tasks() -> QuerySet[Task]:
    """Return the tasks whose documents are drawn for balanced sets by predicted class."""
    return Task.objects.filter(draws__parameters__has_key=NEEDED).distinct()


def class_progress(task: Task, only: str = "") -> list[dict[str, Any]]:
    """Return the progress of each class in each language, as JSON data; empty for tasks without predicted classes.

    only: language code to restrict the result to; empty for all languages.

    Each row has:

    needed: number of documents of the class that the sets need.
    labelled: number of documents that annotators have labelled with the class, regardless of the prediction.
    drawn: number of documents with this predicted class that have been drawn for annotators.
    waiting: number of drawn documents that annotators have not finished.
    right: number of drawn documents that annotators have labelled with the class.
    left: number of documents with this predicted class that can still be drawn.
    short: number of documents that must still be drawn to complete the class.
    over: whether the class can't be completed, because no document is unfinished and none is left to draw.
    """
    draws = task.draws.filter(parameters__has_key=NEEDED).order_by("language")
    draw_parameters = {draw.language: draw.parameters for draw in (draws.filter(language=only) if only else draws)}
    if not draw_parameters:
        return []
    # In these tasks, a unit's queue is its language, so the query can use the indexed language column. A single
    # statement counts everything. Between two statements, somebody could answer a document, and it would count neither
    # as waiting nor as labelled.
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
    """Draw a language's missing documents once the current transaction has been committed.

    The draw has its own transaction, so that an answer isn't lost if the corpus can't be read. The next draw then
    includes the documents that this draw has missed.
    """

    def draw() -> None:  # a named function, because the log shows its name
        draw_short(task_id, language)

    transaction.on_commit(draw, robust=True)


@transaction.atomic
def draw_short(task_id: int, language: str) -> int:
    """Draw the documents that a language's classes are short of. Return the number of documents drawn.

    Nothing is drawn until the number of missing documents reaches DRAWN_AT times the number of unfinished documents in
    the language. If a class has too few documents left, all of them are drawn.
    """
    task = lock_task(Task(pk=task_id))
    cells = class_progress(task, language)
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
    """Return sentences about problems with a language's balanced sets.

    results: `short` and `faults`, as in the parameters of a balanced draw (kinds/balanced_draw.py). For exported sets,
        `taken_out` is the number of documents that are in no set.
    """
    return [
        *(_exclusion_sentence(language, number) for number in [results.get("taken_out", 0)] if number),
        *(_shortage_sentence(language, short) for short in results["short"]),
        *(_fault_sentence(language, fault) for fault in results["faults"]),
    ]


def class_progress_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of each class's progress.

    rows: result of `class_progress`.
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


def _exclusion_sentence(language: str, number: int) -> str:
    return (
        f"{language}: {many(number, 'document')} that were drawn {'is' if number == 1 else 'are'} in no set, because "
        "people found none of the classes in them, or could not decide."
    )


def _shortage_sentence(language: str, short: Mapping[str, Any]) -> str:
    return (
        f"{language}, {short['set']}: the class {short['label']} has {short['available']:,} documents, not "
        f"{short['requested']:,}."
    )


def _fault_sentence(language: str, fault: Mapping[str, Any]) -> str:
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
