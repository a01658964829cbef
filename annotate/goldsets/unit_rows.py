"""The units of an export with what people said and did, as Arrow has them: a query for each table and some thousand
units at a time. Columns are called by their paths from the row of the table. At the end, rows become lines of JSON.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring as quoted  # json.dumps without ensure_ascii
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import Model
from numpy.typing import NDArray

from annotate.models import Judgment, Task, Transition, Unit
from corpora.database.bulk_rows import TIME, all_fetched, fetched, listed

Places = NDArray[np.intp]
Marks = NDArray[np.bool_]


class Lists(NamedTuple):
    """What each row has several of: `held` from ends[row] to ends[row + 1]. ends: (rows + 1,)."""

    ends: Places
    held: pa.RecordBatch

    def as_array(self, values: pa.Array) -> pa.ListArray:
        """A list for each row. values: one for each that is held."""
        return pa.ListArray.from_arrays(pa.array(self.ends, pa.int32()), values)

    def marked(self, marked: Marks) -> "Lists":
        """What is marked of each row's. marked: (held,)."""
        return Lists(np.concatenate(([0], np.cumsum(self.count(marked)))), self.held.filter(pa.array(marked)))

    def count(self, marked: Marks) -> Places:
        """How many of each row's are marked. marked: (held,)."""
        before = np.concatenate(([0], np.cumsum(marked)))
        return before[self.ends[1:]] - before[self.ends[:-1]]

    def first(self, column: str, marked: Marks) -> pa.Array:
        """The value of the first that is marked, for each row; None if it has none."""
        places = np.append(np.flatnonzero(marked), len(marked))
        found = places[np.searchsorted(places, self.ends[:-1])]
        return self.held[column].take(pa.array(found, mask=found >= self.ends[1:]))

    def last(self, column: str) -> pa.Array:
        """The value of the last, for each row; None if it has none."""
        return self.held[column].take(pa.array(self.ends[1:] - 1, mask=self.ends[1:] == self.ends[:-1]))

    def each(self, *columns: str) -> Iterator[list[tuple[Any, ...]]]:
        """What each row has, as Python has it."""
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
    """What `make` returns for the values of each row. Most rows are alike, and it is called once for those."""
    alike = np.zeros(len(columns[0]), np.int64)  # of five columns and some thousand rows it has the combinations
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        alike = alike * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first, which = np.unique(alike, return_index=True, return_inverse=True)
    different = zip(*(column.take(pa.array(first)).to_pylist() for column in columns), strict=True)
    return pa.array([make(*values) for values in different], type).take(pa.array(which))


def or_none(texts: pa.Array) -> pa.Array:
    """None where a text is empty."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def where(condition: pa.Array) -> Marks:
    """A condition as NumPy has it; false where it is unknown."""
    return pc.fill_null(condition, False).to_numpy(zero_copy_only=False)


def cases(type: pa.DataType, *found: tuple[pa.Array, Any], otherwise: Any) -> pa.Array:
    """In each row the value beside the first condition that holds: one for all rows, or a column."""
    conditions, values = zip(*found, strict=True)
    columns = (value if isinstance(value, pa.Array) else pa.scalar(value, type) for value in (*values, otherwise))
    return pc.case_when(pc.make_struct(*conditions), *columns)


def live(said: Lists, *kinds: str) -> Marks:
    """Which of the judgments are of these kinds, and neither taken back nor voided."""
    return where(pc.and_(pc.is_in(said.held["kind"], pa.array(kinds)), pc.is_null(said.held["voided_at"])))


# --- what is read

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
# Of the judgments and the transitions of a unit.
TABLES: dict[type[Model], dict[str, pa.DataType]] = {
    Judgment: {
        **dict.fromkeys(("unit", "pk", "annotator", "lease", "voided_by"), _KEY),
        **dict.fromkeys(("kind", "label", "reason", "comment", "lease__queue"), _TEXT),
        **{"lease__round": _COUNT, "active_seconds": pa.float64()},
        **dict.fromkeys(("shown_at", "answered_at", "voided_at"), TIME),
    },
    Transition: {
        **dict.fromkeys(("unit", "by"), _KEY),
        **dict.fromkeys(("event", "from_stage", "to_stage", "language", "label"), _TEXT),
        **{"round": _COUNT, "at": TIME},
    },
}
AT_ONCE = 10_000  # rows of a table


@dataclass(frozen=True)
class Units:
    """Some units, in the order of the draw. own: each one's own columns; judged: those of the unit whose label and
    judgments it has, which is itself unless it is a copy.
    """

    own: pa.RecordBatch
    judged: pa.RecordBatch


def units_of(task: Task, size: int) -> Iterator[Units]:
    """The units that are exported, `size` at a time, in the order of the draw."""
    fields = OWN | {path: type for each in task.kind.quality_controls for path, type in each.unit_columns.items()}
    for own in fetched(task.units.exported().order_by("position"), fields, size):
        judged, copy_of = own.select(list(JUDGED)), own["copy_of"]
        if copy_of.null_count < len(copy_of):
            originals = Unit.objects.filter(pk__in=listed(pc.unique(copy_of.drop_null()).to_pylist()))
            read = all_fetched(originals, JUDGED, AT_ONCE)
            places = pc.add(pc.index_in(copy_of, read["pk"]), pa.scalar(len(copy_of), pa.int32()))
            both = pa.concat_batches([judged, read])
            judged = both.take(pc.coalesce(places, pa.array(np.arange(len(copy_of), dtype=np.int32))))
        yield Units(own, judged)


def rows_of(table: type[Model], units: pa.Array) -> Lists:
    """The rows of one of the TABLES that belong to each unit, in order. units: their keys."""
    keys = units.to_numpy()
    some = table._default_manager.filter(unit__in=listed(np.unique(keys).tolist())).order_by("unit_id", "pk")
    return lists_of(keys, all_fetched(some, TABLES[table], AT_ONCE), "unit")


# --- lines of JSON, column by column: the bytes that json.dumps writes for each row


# What json.dumps writes otherwise than as it stands.
_ESCAPED = r'["\\\x00-\x1f]'


def as_lines(rows: pa.RecordBatch) -> pa.StringArray:
    """An object of JSON for each row, and the end of its line."""
    return _objects(rows.columns, rows.schema, end="\n")


def content(lines: pa.StringArray) -> pa.Buffer:
    """The bytes of lines, one behind the other; none of them is None."""
    [ends, text] = pa.concat_arrays([lines]).buffers()[1:]  # of some rows of an array all would else be there
    return text.slice(0, np.frombuffer(ends, np.int32)[len(lines)])


def _objects(columns: Sequence[pa.Array], fields: Iterable[pa.Field], end: str = "") -> pa.StringArray:
    parts: list[Any] = []
    for column, field in zip(columns, fields, strict=True):
        parts += [f"{', ' if parts else '{'}{quoted(field.name)}: ", _written(column)]
    return pc.binary_join_element_wise(*parts, "}" + end, "")


def _lists(lists: pa.ListArray) -> pa.StringArray:
    held = pa.ListArray.from_arrays(lists.offsets, _written(lists.values))
    return pc.binary_join_element_wise("[", pc.binary_join(held, ", "), "]", "")


def _times(times: pa.Array) -> pa.StringArray:
    # Beside the zone Arrow would look up how far it is from UTC, each time.
    told = pc.binary_replace_slice(times.cast(pa.timestamp("us")).cast(pa.string()), 10, 11, "T")
    return pc.binary_join_element_wise('"', told, 'Z"', "")


def _texts(texts: pa.Array) -> pa.StringArray:
    marked = pc.match_substring_regex(texts, _ESCAPED)
    told = pc.binary_join_element_wise('"', texts, '"', "")
    return pc.replace_with_mask(told, marked, pa.array(map(quoted, texts.filter(marked).to_pylist()), pa.string()))


def _numbers(numbers: pa.Array) -> pa.StringArray:
    size = np.abs(numbers.to_numpy())
    # Elsewhere Python and Arrow write the same digits.
    marked = pa.array((size < 1e-4) | (size >= 1e10) | (size == np.floor(size)))
    told = numbers.cast(pa.string())
    return pc.replace_with_mask(told, marked, pa.array(map(repr, numbers.filter(marked).to_pylist()), pa.string()))


def _each(write: Callable[[pa.Array], pa.StringArray]) -> Callable[[pa.Array], pa.StringArray]:
    """Each value is written once, however often it is there."""

    def written(values: pa.Array) -> pa.StringArray:
        encoded = values.dictionary_encode()
        return write(encoded.dictionary).take(encoded.indices)

    return written


_WRITTEN: Mapping[int, Callable[[pa.Array], pa.StringArray]] = {
    pa.struct([]).id: lambda values: _objects(values.flatten(), values.type),
    pa.list_(pa.null()).id: _lists,
    pa.timestamp("us").id: _times,
    pa.string().id: _each(_texts),
    pa.float64().id: _each(_numbers),
    pa.int32().id: lambda values: values.cast(pa.string()),
    pa.bool_().id: lambda values: values.cast(pa.string()),
}


def _written(values: pa.Array) -> pa.StringArray:
    return _WRITTEN[values.type.id](values).fill_null("null")
