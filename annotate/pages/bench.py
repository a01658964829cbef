"""What adjudicators' pages show: what waits for them, one unit with what is known of it, and what they decided."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from annotate.core import stages
from annotate.kinds.labels import label_name
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.pages import choosing
from annotate.pages.showing import record, sets
from annotate.quality.sides import seen, sides_of
from annotate.work import adjudication, changing
from annotate.work.permit import check_willing

# What a person did, for a page.
DONE = {
    Judgment.ANSWER: "answered",
    Judgment.REPEAT: "answered again",
    Judgment.SKIP: "skipped",
    Judgment.SETTLE: "settled as",
    Judgment.DISCARD: "discarded",
}


def dossier(unit: Unit, annotator: Annotator, posted: QueryDict | None = None) -> dict[str, Any]:
    """What an adjudicator sees of a unit: everything; but for one that is checked, nothing of what detectors and people
    said.

    Otherwise the check would lean towards what it checks. It stays hidden after the decision, which may be taken back.
    posted: what the unit's form says, if it is shown again.
    """
    blind, kind = adjudication.is_blind(unit), unit.task.kind
    judgments = list(unit.judgments.select_related("annotator__user", "lease"))
    own = unit.judgments.live().filter(annotator=annotator).first()
    if unit.stage == stages.ADJUDICATION and not own:
        check_willing(annotator, unit.task, to_read_more=True)
    *labels, own_label, label = seen(
        annotator,
        ((unit, said) for said in (*(each.label for each in judgments), own.label if own else "", unit.label)),
    )
    changes = [] if blind else list(changing.of_unit(unit))
    moves = unit.transitions.select_related("by", "judgment")
    for judgment, as_seen in zip(judgments, labels, strict=True):
        judgment.seen = as_seen
    known = {
        "judgments": [(judgment, DONE[judgment.kind], kind.short(judgment.seen)) for judgment in judgments],
        "changes": [
            (change, kind.name(said, unit.item.language))
            for change, said in zip(changes, seen(annotator, ((unit, each.label) for each in changes)), strict=True)
        ],
        "transitions": moves,
        "history": [
            (move, stages.happened(move.from_stage, move.event, move.to_stage), _came_to(move)) for move in moves
        ],
    }
    return {
        "blind": blind,
        "decides": True,
        **({} if blind else known),
        **record(unit.item, kind),
        **sets(sides_of(annotator, unit), unit.item, kind),
        **kind.advise(unit, blind),
        **choosing.of_decision(unit, annotator, blind, posted),
        "own": own,
        "own_said": kind.short(own_label),
        "label": label,
        "came_to": kind.short(label),
        "open": unit.stage == stages.ADJUDICATION,
    }


def _came_to(move: Transition) -> str:
    """Where a unit came, for a page."""
    if move.to_stage == stages.QUEUED:
        return f"waits for readers of {label_name(move.language)}, round {move.round}"
    return stages.STAGES[move.to_stage]


def waiting_rows(units: Iterable[Unit], annotator: Annotator) -> list[tuple[Unit, str, list[str]]]:
    """A row for each unit: its text, and what the kind tells of it; nothing of a unit that is checked blind."""
    return [(unit, unit.in_a_line, cells) for unit, cells in adjudication.told(units, annotator)]


def decided_rows(judgments: Iterable[Judgment], annotator: Annotator, task: Task) -> list[tuple[Judgment, str, str]]:
    """A row for each decision of an adjudicator: the text of its unit, and the label."""
    listed = list(judgments)
    labels = seen(annotator, ((each.unit, each.label) for each in listed))
    return [(each, each.unit.in_a_line, task.kind.short(said)) for each, said in zip(listed, labels, strict=True)]


def decision(judgment: Judgment, task: Task) -> str:
    if judgment.kind == Judgment.DISCARD:
        return "Discarded."
    [label] = seen(judgment.annotator, [(judgment.unit, judgment.label)])
    return f"Settled as {task.kind.name(label)}."


def place(unit: Unit, annotator: Annotator, language: str) -> dict[str, Any]:
    """Where a unit stands in the list that the adjudicator works through: its number, if it waits there, of how many,
    and the keys of the one before and the one after.
    """
    units = adjudication.to_adjudicate(unit.task, annotator, language)
    before, after = units.filter(position__lt=unit.position), units.filter(position__gt=unit.position)
    waits = units.filter(pk=unit.pk).exists()
    previous, following = before.last(), after.first()
    return {
        "number": before.count() + 1 if waits else None,
        "of": units.count(),
        "previous": previous.pk if previous else None,
        "next": following.pk if following else None,
    }


def next_to_adjudicate(annotator: Annotator, task: Task, language: str, decided: Judgment) -> str:
    """The address of the next unit of the list that the adjudicator works through, after the last one of the first that
    was passed over; or of the list.
    """
    query = {"language": language} if language else {}
    units = adjudication.to_adjudicate(task, annotator, language)
    unit = units.filter(position__gt=decided.unit.position).first() or units.first()
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
