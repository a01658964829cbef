"""The rows of an exported set, of any kind of question. It only reads; the same database gives the same rows.

They come column by column, for CHUNK units at a time: records.py reads what they are made of in a query for each table.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

from annotate.core import stages
from annotate.goldsets import left_out, records
from annotate.goldsets.arrays import Values
from annotate.goldsets.columns import columns_of
from annotate.goldsets.export import CHUNK, Export, Source


@dataclass(frozen=True)
class Rows:
    """Some rows, in the order of the draw. columns: name -> the values, in the terms of arrays.py. told: whether each
    may be told yet.
    """

    sources: Sequence[Source]
    columns: Mapping[str, Values]
    told: Sequence[bool]

    @cached_property
    def in_set(self) -> list[bool]:
        return [not source.left_out for source in self.sources]

    def of_set(self, column: str) -> Iterable[Any]:
        """The values of a column, of the rows in the set."""
        return compress(self.columns[column], self.in_set)


def rows(export: Export) -> Iterator[Rows]:
    """A row for each drawn item and question.

    A copy has the label, judgments and transitions of the unit with the same text, which `judged_as` names. Items with
    known answers that were hidden among the work are not there, nor are their answers. If the text may not leave, a
    row has neither the text nor what leads to it (author, url) or may quote it (comments).
    """
    columns = columns_of(export.kind, with_text=export.with_text)
    for sources in _sources(export):
        values = {name: column.values(sources) for name, column in columns.items()}
        # Of what still waits, annotators would learn what others say, and gold answers as what is not among it.
        told = [not (export.task.is_open and each.judged.stage not in stages.FINISHED) for each in sources]
        yield Rows(sources, values, told)


def _sources(export: Export) -> Iterator[list[Source]]:
    """What each row is made of."""
    people = records.people()
    reason = export.left_out.reason
    for units in records.units_of(export.task, CHUNK, sided=export.kind.form.SIDED):
        judged = [unit.copy_of or unit for unit in units]
        keys = {each.pk for each in judged}
        reused = {each.reused_from for each in judged} - {None}
        said = records.judgments_of(keys | reused, people, with_concepts=bool(export.kind.thesaurus))
        moves = records.transitions_of(keys, people)
        found = []
        for unit, one in zip(units, judged, strict=True):
            own, moved = said.get(one.pk, ()), moves.get(one.pk, ())
            decided = said.get(one.reused_from, ()) if one.reused_from else own
            found.append(Source(export, unit, one, unit.item, reason(unit, moved), own, decided, moved))
        yield found


def words(source: Source) -> dict[str, Any]:
    """What is told of a row that is left out, besides its columns."""
    if not source.export.kind.tells_why:
        return {}
    return {"left_out": source.left_out, "left_out_why": left_out.adjudicators_words(source)}
