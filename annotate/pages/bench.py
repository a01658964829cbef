"""What adjudicators' pages show: what waits for them, one unit with what is known of it, and what they decided."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from annotate.core import stages
from annotate.models import Annotator, Judgment, Task, Unit
from annotate.pages.showing import in_a_line, record
from annotate.work import adjudication
from annotate.work.routing import is_audit


def dossier(unit: Unit, annotator: Annotator) -> dict[str, Any]:
    """What an adjudicator sees of a unit: everything; but of an audit nothing of what detectors and people said.

    Else the check would lean towards what it checks. Nor does it show once it is decided, for the decision may be
    taken back.
    """
    blind, kind = is_audit(unit), unit.task.kind
    judgments = unit.judgments.select_related("annotator__user", "lease")
    own = judgments.live().filter(annotator=annotator).first()
    known = {
        "judgments": [(judgment, kind.short(judgment.label)) for judgment in judgments],
        "transitions": unit.transitions.select_related("by", "judgment"),
    }
    return {
        "blind": blind,
        **({} if blind else known),
        **record(unit.item, kind),
        **kind.advise(unit, blind),
        "own": own,
        "own_said": kind.short(own.label) if own else "",
        "came_to": kind.short(unit.label),
        "open": unit.stage == stages.ADJUDICATION,
    }


def waiting_rows(units: Iterable[Unit], task: Task) -> list[tuple[Unit, str, list[str]]]:
    """A row for each unit: its text, and what the kind tells of it; nothing of one that is checked blind."""
    listed = list(units)
    answers: dict[int, list[str]] = {}
    live = Judgment.objects.live().answers().filter(unit__in=[unit.pk for unit in listed])
    for unit, label in live.order_by("pk").values_list("unit_id", "label"):
        answers.setdefault(unit, []).append(label)
    return [
        (unit, in_a_line(unit), [] if unit.blind else task.kind.list_row(unit, answers.get(unit.pk, [])))
        for unit in listed
    ]


def decided_rows(judgments: Iterable[Judgment], task: Task) -> list[tuple[Judgment, str, str]]:
    """A row for each decision: the text of its unit, and the label."""
    return [(judgment, in_a_line(judgment.unit), task.kind.short(judgment.label)) for judgment in judgments]


def decision(judgment: Judgment, task: Task) -> str:
    if judgment.kind == Judgment.DISCARD:
        return "Discarded."
    return f"Settled as {task.kind.name(judgment.label)}."


def next_to_adjudicate(annotator: Annotator, task: Task, language: str, decided: Judgment) -> str:
    """The address of the next unit of the list that the adjudicator works through, or of the list."""
    query = {"language": language} if language else {}
    unit = adjudication.to_adjudicate(task, annotator, language).first()
    address = reverse("adjudicate", args=[task.name, unit.pk]) if unit else reverse("adjudication", args=[task.name])
    return f"{address}?{urlencode({**query, 'decided': decided.unit_id})}"


def for_another(count: int, task: Task) -> str:
    """Why an adjudicator's list lacks units that wait for one."""
    noun = task.kind.noun
    if not count:
        return ""
    if count == 1:
        return f"1 {noun} waits for another adjudicator, since you have judged it."
    return f"{count:,} {noun}s wait for another adjudicator, since you have judged them."
