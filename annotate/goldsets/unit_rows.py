"""What the rows of an export are made of, as the database has it: a query for each table and some thousand units at a
time, into Arrow. Columns are called by their paths from the row of the table.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import QuerySet
from numpy.typing import NDArray

from annotate.models import Judgment, Task, Transition, Unit
from corpora.database.bulk_rows import TIME, all_fetched, fetched, listed

# --- Columns of exported rows as Arrow has them, made of others; no row by itself.


Places = NDArray[np.intp]
Marks = NDArray[np.bool_]


class Lists(NamedTuple):
    """Of each row what it has several of: `held` from ends[row] to ends[row + 1]. ends: (rows + 1,)."""

    ends: Places
    held: pa.RecordBatch

    def as_array(self, values: pa.Array) -> pa.ListArray:
        """A list for each row. values: one for each that is held."""
        return pa.ListArray.from_arrays(pa.array(self.ends, pa.int32()), values)

    @property
    def sizes(self) -> Places:
        """Of each row how much it has."""
        return np.diff(self.ends)

    def marked(self, marked: Marks) -> "Lists":
        """Of each row what is marked. marked: (held,)."""
        return Lists(np.concatenate(([0], np.cumsum(self.count(marked)))), self.held.filter(pa.array(marked)))

    def count(self, marked: Marks) -> Places:
        """Of each row how many of what it has are marked. marked: (held,)."""
        before = np.concatenate(([0], np.cumsum(marked)))
        return before[self.ends[1:]] - before[self.ends[:-1]]

    def first(self, column: str, marked: Marks) -> pa.Array:
        """Of each row the value of the first of what it has that is marked; None if it has none."""
        places = np.append(np.flatnonzero(marked), len(marked))
        found = places[np.searchsorted(places, self.ends[:-1])]
        return self.held[column].take(pa.array(found, mask=found >= self.ends[1:]))

    def last(self, column: str) -> pa.Array:
        """Of each row the value of the last that it has; None if it has none."""
        return self.held[column].take(pa.array(self.ends[1:] - 1, mask=self.ends[1:] == self.ends[:-1]))

    def each(self, *columns: str) -> Iterator[list[tuple[Any, ...]]]:
        """Of each row what it has, as Python has it."""
        held = list(zip(*(self.held[column].to_pylist() for column in columns), strict=True))
        return (held[start:end] for start, end in zip(self.ends[:-1], self.ends[1:], strict=True))


def lists_of(keys: Places, held: pa.RecordBatch, by: str) -> Lists:
    """What each key has. held: in the order of the column `by`, which has the key of what has it."""
    of = held[by].to_numpy()
    start = np.searchsorted(of, keys)
    sizes = np.searchsorted(of, keys, side="right") - start
    ends = np.concatenate(([0], np.cumsum(sizes)))
    return Lists(ends, held.take(pa.array(np.arange(ends[-1]) + np.repeat(start - ends[:-1], sizes))))


def each(make: Callable[..., Any], type: pa.DataType, *columns: pa.Array) -> pa.Array:
    """What `make` makes of the values in a row, of each row. Most rows are alike: of those it is made once."""
    alike = np.zeros(len(columns[0]), np.int64)  # of five columns and some thousand rows it has the combinations
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        alike = alike * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first, which = np.unique(alike, return_index=True, return_inverse=True)
    different = zip(*(column.take(pa.array(first)).to_pylist() for column in columns), strict=True)
    return pa.array([make(*values) for values in different], type).take(pa.array(which))


def lists_in(texts: pa.Array) -> pa.Array:
    """Lists of texts, out of JSON."""
    return each(json.loads, pa.list_(pa.string()), texts)


def or_none(texts: pa.Array) -> pa.Array:
    """None where a text is empty."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def where(condition: pa.Array) -> Marks:
    """A condition as NumPy has it; what it cannot be said of does not meet it."""
    return pc.fill_null(condition, False).to_numpy(zero_copy_only=False)


_KEY, _TEXT, _COUNT, _MARK = pa.int64(), pa.string(), pa.int32(), pa.bool_()
# Of the unit that people judge.
JUDGED = {
    **dict.fromkeys(("pk", "reused_from"), _KEY),
    **dict.fromkeys(("stage", "label", "agreed_label", "candidates", "visited", "reused_from__task__name"), _TEXT),
    **{"round": _COUNT, "recheck": _MARK, "item__key": _TEXT},
}
# Of each unit that has a row; a copy has the rest from the unit with the same text.
OWN = {
    **JUDGED,
    **{"asked": _TEXT, "predicted": _TEXT, "audited": _MARK, "copy_of": _KEY},
    **{f"item__{name}": _TEXT for name in ("language", "text", "fields", "declared", "author", "url", "votes")},
    **{"item__posted_at": TIME, "item__letters": _COUNT},
}
_JUDGMENT = {
    **dict.fromkeys(("unit", "pk", "annotator", "lease", "voided_by"), _KEY),
    **dict.fromkeys(("kind", "label", "reason", "comment", "lease__queue"), _TEXT),
    **{"lease__round": _COUNT, "active_seconds": pa.float64()},
    **dict.fromkeys(("shown_at", "answered_at", "voided_at"), TIME),
}
_TRANSITION = {
    **dict.fromkeys(("unit", "by"), _KEY),
    **dict.fromkeys(("event", "from_stage", "to_stage", "language", "label"), _TEXT),
    **{"round": _COUNT, "at": TIME},
}


@dataclass(frozen=True)
class Units:
    """Some units, in the order of the draw: what is each one's own, and of the unit whose label and judgments it has,
    which is itself but for a copy.
    """

    own: pa.RecordBatch
    judged: pa.RecordBatch


def units_of(task: Task, size: int) -> Iterator[Units]:
    """The units that are exported, `size` at a time, in the order of the draw."""
    fields = OWN | {path: type for each in task.kind.quality_controls for path, type in each.unit_columns.items()}
    for own in fetched(task.units.exported().order_by("position"), fields, size):
        yield Units(own, _judged(own))


def _judged(own: pa.RecordBatch) -> pa.RecordBatch:
    themselves, copy_of = own.select(list(JUDGED)), own["copy_of"]
    if copy_of.null_count == len(copy_of):
        return themselves
    originals = _rows(Unit.objects.filter(pk__in=listed(pc.unique(copy_of.drop_null()).to_pylist())), JUDGED)
    places = pc.add(pc.index_in(copy_of, originals["pk"]), pa.scalar(len(copy_of), pa.int32()))
    both = pa.concat_batches([themselves, originals])
    return both.take(pc.coalesce(places, pa.array(np.arange(len(copy_of), dtype=np.int32))))


def judgments_of(units: Places) -> Lists:
    """What people said of each of the units, in order. units: their keys."""
    said = Judgment.objects.filter(unit__in=listed(np.unique(units).tolist())).order_by("unit_id", "pk")
    return lists_of(units, _rows(said, _JUDGMENT), "unit")


def transitions_of(units: Places) -> Lists:
    """How each of the units moved, in order. units: their keys."""
    moves = Transition.objects.filter(unit__in=listed(np.unique(units).tolist())).order_by("unit_id", "pk")
    return lists_of(units, _rows(moves, _TRANSITION), "unit")


def live(said: Lists, *kinds: str) -> Marks:
    """Which of the judgments are of these kinds, and neither taken back nor voided."""
    return where(pc.and_(pc.is_in(said.held["kind"], pa.array(kinds)), pc.is_null(said.held["voided_at"])))


def _rows(query: QuerySet, fields: dict[str, pa.DataType]) -> pa.RecordBatch:
    return all_fetched(query, fields, 10_000)
