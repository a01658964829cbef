"""The rows of an exported set, of any kind of question. It only reads; the same database gives the same rows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from django.db.models import Prefetch, QuerySet

from annotate.core import stages
from annotate.goldsets import left_out
from annotate.goldsets.columns import columns_of
from annotate.goldsets.export import CHUNK, Export, Source
from annotate.models import ChosenConcept, Judgment, Transition, Unit

Done = TypeVar("Done", Judgment, Transition)


def rows(export: Export) -> Iterator[tuple[dict, str, bool]]:
    """A row for each drawn item and question, in the order of the draw; why it is left out, empty if it is not; and
    whether it may be told yet.

    A copy has the label, judgments and transitions of the unit with the same text, which `judged_as` names. Items with
    known answers that were hidden among the work are not there, nor are their answers. If the text may not leave, a
    row has neither the text nor what leads to it (author, url) or may quote it (comments).
    """
    columns = columns_of(export.kind, with_text=export.with_text)
    for source in _sources(export):
        row = {name: column.value(source) for name, column in columns.items()}
        if source.left_out and export.kind.tells_why:
            row |= {"left_out": source.left_out, "left_out_why": left_out.adjudicators_words(source)}
        # Of what still waits, annotators would learn what others say, and gold answers as what is not among it.
        waits = source.judged.stage not in stages.FINISHED
        yield row, source.left_out, not (waits and export.task.is_open)


def _sources(export: Export) -> Iterator[Source]:
    """What each row is made of. What belongs to units is read for CHUNK of them at a time, in a statement for each
    table: a prefetch makes a queryset for each unit, and a join reads the columns of all tables for each, which takes
    longer than all else."""
    related = ("item", "comparison") if export.kind.form.SIDED else ("item",)
    units = export.task.units.exported().order_by("position").select_related(*related).iterator(chunk_size=CHUNK)
    judgments = _judgments(of_concepts=bool(export.kind.thesaurus))
    transitions = Transition.objects.select_related("by__annotator")
    reason = export.left_out.reason
    while some := list(islice(units, CHUNK)):
        _refer(some, "copy_of", Unit.objects.select_related("item"))
        judged = {unit.pk: unit.copy_of or unit for unit in some}
        _refer(judged.values(), "reused_from", Unit.objects.select_related("task"))
        keys = {each.pk for each in judged.values()}
        said = _by_unit(judgments, keys | {each.reused_from_id for each in judged.values()} - {None})
        moves = _by_unit(transitions, keys)
        for unit in some:
            one = judged[unit.pk]
            yield Source(
                export,
                unit,
                one,
                unit.item,
                reason(unit, moves[one.pk]),
                said[one.pk],
                said[one.reused_from_id or one.pk],
                moves[one.pk],
            )


def _refer(units: Iterable[Unit], name: str, others: QuerySet[Unit]) -> None:
    """Read what these units refer to by this name."""
    referring = [unit for unit in units if getattr(unit, f"{name}_id")]
    found = others.in_bulk({getattr(unit, f"{name}_id") for unit in referring}) if referring else {}
    for unit in referring:
        setattr(unit, name, found[getattr(unit, f"{name}_id")])


def _judgments(*, of_concepts: bool) -> QuerySet[Judgment]:
    """of_concepts: with the concepts of each too."""
    judgments = Judgment.objects.select_related("annotator", "lease")
    if of_concepts:
        chosen = ChosenConcept.objects.select_related("concept").order_by("concept__key")
        judgments = judgments.prefetch_related(Prefetch("chosen", chosen))
    return judgments


def _by_unit(done: QuerySet[Done], units: Iterable[int]) -> dict[int, list[Done]]:
    found: dict[int, list[Done]] = defaultdict(list)
    for each in done.filter(unit__in=sorted(units)).order_by("pk"):
        found[each.unit_id].append(each)
    return found
