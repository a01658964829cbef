"""The rows of an exported set, of any kind of question. It only reads; the same database gives the same rows.

They come column by column, for CHUNK units at a time: records.py reads what they are made of in a query for each table.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from annotate.core import stages
from annotate.goldsets import records
from annotate.goldsets.columns import columns_of, schema
from annotate.goldsets.export import CHUNK, Export, Source


@dataclass(frozen=True)
class Rows:
    """Some rows, in the order of the draw, and what they are made of."""

    source: Source
    columns: pa.RecordBatch

    @property
    def told(self) -> pa.Array:
        """Whether each row may be told yet: of what still waits, annotators would learn what others say, and gold
        answers as what is not among it.
        """
        finished = pc.is_in(self.source.judged["stage"], pa.array(sorted(stages.FINISHED)))
        return pc.or_(finished, not self.source.export.task.is_open)

    def of_set(self, column: str) -> pa.Array:
        """The values of a column, of the rows in the set."""
        return self.columns[column].filter(self.source.in_set)


def rows(export: Export) -> Iterator[Rows]:
    """A row for each drawn item and question.

    A copy has the label, judgments and transitions of the unit with the same text, which `judged_as` names. Items with
    known answers that were hidden among the work are not there, nor are their answers. If the text may not leave, a
    row has neither the text nor what leads to it (author, url) or may quote it (comments).
    """
    columns = columns_of(export.kind, with_text=export.with_text)
    for source in _sources(export):
        values = [column.values(source) for column in columns.values()]
        yield Rows(source, pa.RecordBatch.from_arrays(values, schema=schema(columns)))


def _sources(export: Export) -> Iterator[Source]:
    for units in records.units_of(export.task, CHUNK):
        keys, reused = units.judged["pk"], units.judged["reused_from"]
        said, moved = (of(keys.to_numpy()) for of in (records.judgments_of, records.transitions_of))
        is_own = reused.null_count == len(reused)
        decided = said if is_own else records.judgments_of(pc.coalesce(reused, keys).to_numpy())
        yield Source(export, units.own, units.judged, export.left_out.reasons(units, moved), said, decided, moved)
