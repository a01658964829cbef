"""How far the classes are of balanced sets whose documents people label (kinds/predicted_draw.py)."""

from collections import Counter
from typing import Any

from django.db.models import Count, QuerySet

from annotate.core import stages
from annotate.kinds.predicted_draw import NEEDED
from annotate.models import Task


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
    labelled, drawn, waiting, right = (Counter[tuple[str, str]]() for _ in range(4))
    for language, predicted, stage, label, number in units.values_list(
        "language", "predicted", "stage", "label"
    ).annotate(Count("pk")):
        drawn[language, predicted] += number
        waiting[language, predicted] += number * (stage not in stages.FINISHED)
        right[language, predicted] += number * (label == predicted)
        labelled[language, label] += number * (stage == stages.LABELLED)
    of_reserve = task.reserve.order_by().values_list("language", "predicted").annotate(Count("pk"))
    left = {(language, label): number for language, label, number in of_reserve}
    rows = []
    for language, label in ((language, label) for language, told in found.items() for label in told["classes"]):
        cell, needed = (language, label), found[language][NEEDED]
        short = max(0, needed - labelled[cell] - waiting[cell])
        rows.append(
            {
                "language": language,
                "class": label,
                "needed": needed,
                "labelled": labelled[cell],
                "drawn": drawn[cell],
                "waiting": waiting[cell],
                "right": right[cell],
                "left": left.get(cell, 0),
                "short": short,
                "over": bool(short) and cell not in left and not waiting[cell],
            }
        )
    return rows
