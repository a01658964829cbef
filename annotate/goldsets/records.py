"""What the rows of an export are made of, as the database has it: a query for each table and some thousand units at a
time, into tuples. They are named as the models name them, and have no way back to the database.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from annotate.models import Annotator, ChosenConcept, Comparison, Judgment, Task, Transition, Unit
from corpora.fetching import fetched, listed

Made = TypeVar("Made")


class ItemRow(NamedTuple):
    """votes: JSON, which few columns need."""

    key: str
    language: str
    text: str
    fields: Mapping[str, str]
    declared: list[str]
    author: str
    url: str
    posted_at: datetime | None
    letters: int
    votes: str


class Compared(NamedTuple):
    system_a: str
    system_b: str
    replies_a: list[str]
    replies_b: list[str]


class UnitRow(NamedTuple):
    """reused_from: the key of the unit, reused_in: the name of its task."""

    pk: int
    asked: str
    stage: str
    label: str
    round: int
    candidates: list[str]
    visited: list[str]
    agreed_label: str
    predicted: str
    audited: bool
    recheck: bool
    reused_from: int | None
    reused_in: str | None
    item: ItemRow
    copy_of: "UnitRow | None" = None
    comparison: Compared | None = None


class ChosenRow(NamedTuple):
    concept: str
    way: str | None
    rank: int | None


class JudgmentRow(NamedTuple):
    """round, queue: of its lease. by_manager: who voided it, if it is voided."""

    pk: int
    annotator: Annotator
    kind: str
    label: str
    reason: str
    comment: str
    leased: bool
    round: int | None
    queue: str | None
    shown_at: datetime | None
    answered_at: datetime
    active_seconds: float | None
    voided_at: datetime | None
    by_manager: bool
    chosen: Sequence[ChosenRow] = ()


class TransitionRow(NamedTuple):
    """by: a pseudonym, or "manager"."""

    event: str
    from_stage: str
    to_stage: str
    round: int
    queue: str | None
    label: str | None
    by: str | None
    at: datetime


_ITEM = [f"item__{name}" for name in ItemRow._fields[:-1]]
_UNIT = [*UnitRow._fields[:12], "reused_from__task__name"]
_JUDGMENT = (
    *("unit_id", "pk", "annotator_id", "kind", "label", "reason", "comment", "lease_id", "lease__round"),
    *("lease__queue", "shown_at", "answered_at", "active_seconds", "voided_at", "voided_by_id"),
)
_TRANSITION = ("unit_id", "event", "from_stage", "to_stage", "round", "language", "label", "by_id", "at")


class People(NamedTuple):
    """Annotators by their keys, and pseudonyms by those of users."""

    annotators: Mapping[int, Annotator]
    pseudonyms: Mapping[int | None, str]


def people() -> People:
    annotators = {annotator.pk: annotator for annotator in Annotator.objects.all()}
    return People(annotators, {each.user_id: each.pseudonym for each in annotators.values()})


def units_of(task: Task, size: int, *, sided: bool = False) -> Iterator[list[UnitRow]]:
    """The units that are exported, `size` at a time, in the order of the draw. sided: with what they compare."""
    for columns in fetched(_with_items(task.units.exported().order_by("position"), "copy_of_id"), size):
        originals = _originals(set(columns[-1]) - {None})
        compared = _comparisons(columns[0]) if sided else {}
        yield [
            unit._replace(copy_of=originals.get(copy), comparison=compared.get(unit.pk)) if copy or sided else unit
            for unit, copy in zip(_made(columns[:-1]), columns[-1], strict=True)
        ]


def _with_items(units: QuerySet[Unit], *more: str) -> QuerySet:
    return units.values_list(*_UNIT, *_ITEM, Cast("item__votes", TextField()), *more)


def _made(columns: Sequence[Sequence[Any]]) -> Iterator[UnitRow]:
    """Units of the columns of _with_items."""
    own, of_item = columns[: len(_UNIT)], columns[len(_UNIT) :]
    return map(UnitRow, *own, map(ItemRow, *of_item))


def _originals(keys: Collection[int]) -> dict[int, UnitRow]:
    found = fetched(_with_items(Unit.objects.filter(pk__in=listed(keys)).order_by()), len(keys)) if keys else ()
    return {unit.pk: unit for columns in found for unit in _made(columns)}


def _comparisons(units: Iterable[int]) -> dict[int, Compared]:
    rows = Comparison.objects.filter(unit__in=listed(units)).values_list("unit_id", *Compared._fields)
    return {unit: Compared(*values) for unit, *values in rows}


def judgments_of(units: Collection[int], people: People, *, with_concepts: bool) -> dict[int, list[JudgmentRow]]:
    """Unit -> what people said of it, in order. with_concepts: with the concepts of each, by their ids."""
    chosen = _chosen(units) if with_concepts else {}
    found: list[tuple[int, JudgmentRow]] = []
    for unit, pk, annotator, kind, label, reason, comment, lease, *when, voided_at, voided_by in _rows(
        Judgment.objects.filter(unit__in=listed(units)).order_by("unit_id", "pk").values_list(*_JUDGMENT), len(units)
    ):
        said = (pk, people.annotators[annotator], kind, label, reason, comment, lease is not None)
        found.append((unit, JudgmentRow(*said, *when, voided_at, voided_by is not None, chosen.get(pk, ()))))
    return _by_first(found)


def _chosen(units: Collection[int]) -> dict[int, list[ChosenRow]]:
    chosen = ChosenConcept.objects.filter(judgment__unit__in=listed(units)).order_by("judgment_id", "concept__key")
    return _by_first(
        (judgment, ChosenRow(key, way or None, rank))
        for judgment, key, way, rank in chosen.values_list("judgment_id", "concept__key", "way", "rank")
    )


def transitions_of(units: Collection[int], people: People) -> dict[int, list[TransitionRow]]:
    """Unit -> how it moved, in order."""
    moves = Transition.objects.filter(unit__in=listed(units)).order_by("unit_id", "pk").values_list(*_TRANSITION)
    who = people.pseudonyms
    return _by_first(
        (
            unit,
            TransitionRow(event, start, end, number, queue or None, label or None, by and who.get(by, "manager"), at),
        )
        for unit, event, start, end, number, queue, label, by, at in _rows(moves, len(units))
    )


def _rows(query: QuerySet, size: int) -> Iterator[tuple[Any, ...]]:
    for columns in fetched(query, size or 1):
        yield from zip(*columns, strict=True)


def _by_first(pairs: Iterable[tuple[int, Made]]) -> dict[int, list[Made]]:
    """pairs: those of one key stand together."""
    return {key: [value for _, value in found] for key, found in groupby(pairs, itemgetter(0))}
