"""How far the classes are of balanced sets whose documents people label (kinds/predicted_draw.py)."""

from typing import Any

from django.db.models import Count, F, Q, QuerySet

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
    # Each language has its own queue, so the unit's own column will do, by which there is an index.
    units = task.units.exported().filter(language__in=found).order_by()
    of_label = units.filter(stage=stages.LABELLED).values_list("language", "label").annotate(Count("pk"))
    labelled = {(language, label): number for language, label, number in of_label}
    of_predicted = units.values_list("language", "predicted").annotate(
        drawn=Count("pk"),
        waiting=Count("pk", filter=~Q(stage__in=stages.FINISHED)),
        right=Count("pk", filter=Q(label=F("predicted"))),
    )
    given = {(language, label): numbers for language, label, *numbers in of_predicted}
    of_reserve = task.reserve.order_by().values_list("language", "predicted").annotate(Count("pk"))
    left = {(language, label): number for language, label, number in of_reserve}
    rows = []
    for language, label in ((language, label) for language, told in found.items() for label in told["classes"]):
        cell, needed = (language, label), found[language][NEEDED]
        drawn, waiting, right = given.get(cell, (0, 0, 0))
        short = max(0, needed - labelled.get(cell, 0) - waiting)
        rows.append(
            {
                "language": language,
                "class": label,
                "needed": needed,
                "labelled": labelled.get(cell, 0),
                "drawn": drawn,
                "waiting": waiting,
                "right": right,
                "left": left.get(cell, 0),
                "short": short,
                "over": bool(short) and cell not in left and not waiting,
            }
        )
    return rows
