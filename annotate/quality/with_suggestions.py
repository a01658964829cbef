"""What people chose where suggestions were shown to them, and where, by lot, none were (suggestions.py).

Only documents count of which something was suggested, and answers that stand. Hidden gold answers do not count.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from annotate.core.agreement.label_sets import f1
from annotate.models import Judgment, Task
from annotate.quality.suggestions import all_suggested, is_blind
from annotate.reports.numbers import NOT_MEASURED, percent
from annotate.reports.tables import NUMBER, Cell, Column, Table, numbered, table

FIRST = 5  # suggestions that are held against what was chosen
SHOWN_TO, BLIND = "shown", "blind"


@dataclass(frozen=True)
class _Given:
    """An answer: what was chosen, the first suggestions of its document, and its F1 with each other answer to it."""

    person: str
    blind: bool
    chosen: frozenset[str]
    first: frozenset[str]
    with_others: list[float]


def report(task: Task) -> dict[str, Any] | None:
    """{"first", "shown", "blind", "people"}: of how many first suggestions it tells, the figures of all answers where
    suggestions were shown and where none were, and a row for each person with both; None if nothing was suggested.

    The figures: answers; concepts, how many an answer has on average; taken, the share of the first suggestions that
    were chosen; among, the share of the concepts chosen that were among them, in blind answers too; exactly, how many
    answers are just these; f1, the mean F1 of an answer with each other answer to its document. None of no answer.
    """
    given = _given(task)
    if given is None:
        return None
    by_person: dict[str, list[_Given]] = defaultdict(list)
    for each in given:
        by_person[each.person].append(each)
    people = [{"annotator": person, **_both(of)} for person, of in sorted(by_person.items())]
    return {"first": FIRST, **_both(given), "people": people}


def _given(task: Task) -> list[_Given] | None:
    suggested = all_suggested(task)
    if not suggested:
        return None
    facets = task.kind.form.facets
    answers = Judgment.objects.answers().live().filter(unit__in=task.units.exported()).order_by("unit", "pk")
    by_unit: dict[int, list[Judgment]] = defaultdict(list)
    for judgment in answers.select_related("annotator", "unit__item"):
        if judgment.unit_id in suggested:
            by_unit[judgment.unit_id].append(judgment)
    found = []
    for unit, judgments in by_unit.items():
        first = frozenset(suggested[unit][:FIRST])
        sets = [frozenset(facets(each.label)) for each in judgments]
        for place, (judgment, chosen) in enumerate(zip(judgments, sets, strict=True)):
            others = [f1(chosen, other) for number, other in enumerate(sets) if number != place]
            blind = is_blind(judgment.annotator.pseudonym, task, judgment.unit.item.key)
            found.append(_Given(judgment.annotator.pseudonym, blind, chosen, first, others))
    return found


def _both(given: Iterable[_Given]) -> dict[str, dict[str, Any]]:
    arms: dict[bool, list[_Given]] = {False: [], True: []}
    for each in given:
        arms[each.blind].append(each)
    return {SHOWN_TO: _figures(arms[False]), BLIND: _figures(arms[True])}


def _figures(given: list[_Given]) -> dict[str, Any]:
    concepts = sum(len(each.chosen) for each in given)
    both = sum(len(each.chosen & each.first) for each in given)
    agreeing = [fmean(each.with_others) for each in given if each.with_others]
    return {
        "answers": len(given),
        "concepts": concepts / len(given) if given else None,
        "taken": both / sum(len(each.first) for each in given) if given else None,
        "among": both / concepts if given else None,
        "exactly": sum(each.chosen == each.first for each in given),
        "f1": fmean(agreeing) if agreeing else None,
    }


# --- a table for the card


ALL = "all"


def suggestion_table(found: dict[str, Any]) -> Table:
    """Two rows for each person and for all: where suggestions were shown, and where none were."""
    rows = [
        {"annotator": of.get("annotator", ALL), "arm": arm, **of[arm]}
        for of in (found, *found["people"])
        for arm in ("shown", "blind")
        if of[arm]["answers"]
    ]
    first = found["first"]
    columns = (
        Column("annotator", "annotator"),
        Column("arm", "suggestions", says=lambda row: {"shown": "shown", "blind": "not shown"}[row["arm"]]),
        numbered("answers", "answers"),
        _decimal("concepts", "labels an answer", 1),
        _share("taken", f"of the first {first}, chosen"),
        _share("among", f"of the chosen, among the first {first}"),
        Column("exactly", f"just the first {first}", NUMBER, _exactly),
        _decimal("f1", "F1 with others", 2),
    )
    return table("Suggestions", columns, rows)


def _exactly(row: dict[str, Any]) -> Cell:
    return Cell(f"{row['exactly']:,} of {row['answers']:,}", row["exactly"])


def _share(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: Cell(percent(row[key]), row[key]))


def _decimal(key: str, heading: str, places: int) -> Column:
    def says(row: dict[str, Any]) -> Cell:
        value = row[key]
        return Cell(NOT_MEASURED if value is None else f"{value:.{places}f}", value)

    return Column(key, heading, NUMBER, says)
