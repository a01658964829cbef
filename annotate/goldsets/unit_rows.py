"""Exported units with their judgments and transitions as Arrow tables, and their conversion to JSON lines.

Each table is read with one query for several thousand units. Columns are named after their Django lookup path.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring as quoted  # json.dumps without ensure_ascii
from typing import Any

import numpy as np
import pyarrow as pa
from django.db.models import Model
from numpy.typing import NDArray

from annotate.models import Judgment, Task, Transition, Unit
from corpora.core.arrow import pc
from corpora.database.bulk_rows import TIME, fetch_all, fetch_batches, listed

Places = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Lists:
    """A list of values for each row: `values[ends[row]:ends[row + 1]]`.

    ends: start of each list and end of the last list, (rows + 1,).
    values: values of all rows.
    """

    ends: Places
    values: pa.RecordBatch

    def as_array(self, values: pa.Array) -> pa.ListArray:
        """Group values into an Arrow array with a list for each row.

        values: one value for each entry in `self.values`.
        """
        return pa.ListArray.from_arrays(pa.array(self.ends, pa.int32()), values)

    def filter(self, mask: Mask) -> "Lists":
        """Keep only the selected values.

        mask: whether each entry in `self.values` is selected.
        """
        return Lists(np.concatenate(([0], np.cumsum(self.count(mask)))), self.values.filter(pa.array(mask)))

    def count(self, mask: Mask) -> Places:
        """Return the number of selected values in each row.

        mask: whether each entry in `self.values` is selected.
        """
        before = np.concatenate(([0], np.cumsum(mask)))
        return before[self.ends[1:]] - before[self.ends[:-1]]

    def first(self, column: str, mask: Mask) -> pa.Array:
        """Return the first selected value of a column in each row; None if no value is selected.

        mask: whether each entry in `self.values` is selected.
        """
        places = np.append(np.flatnonzero(mask), len(mask))
        first = places[np.searchsorted(places, self.ends[:-1])]
        return self.values[column].take(pa.array(first, mask=first >= self.ends[1:]))

    def last(self, column: str) -> pa.Array:
        """Return the last value of a column in each row; None for rows without values."""
        return self.values[column].take(pa.array(self.ends[1:] - 1, mask=self.ends[1:] == self.ends[:-1]))

    def tuples(self, *columns: str) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the values of each row as a list of Python tuples."""
        tuples = list(zip(*(self.values[column].to_pylist() for column in columns), strict=True))
        return (tuples[start:end] for start, end in zip(self.ends[:-1], self.ends[1:], strict=True))


def lists_of(keys: Places, values: pa.RecordBatch, by: str) -> Lists:
    """Group values by key.

    keys: one key per row of the result. Keys can repeat.
    values: values, sorted by the `by` column.
    by: column with the key of each value.
    """
    value_keys = values[by].to_numpy()
    start = np.searchsorted(value_keys, keys)
    sizes = np.searchsorted(value_keys, keys, side="right") - start
    ends = np.concatenate(([0], np.cumsum(sizes)))
    return Lists(ends, values.take(pa.array(np.arange(ends[-1]) + np.repeat(start - ends[:-1], sizes))))


def or_none(texts: pa.Array) -> pa.Array:
    """Replace empty strings with None."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def as_mask(condition: pa.Array) -> Mask:
    """Convert a condition to a NumPy array. Null becomes False."""
    mask: Mask = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    return mask


def cases(type: pa.DataType, *pairs: tuple[pa.Array, Any], otherwise: Any) -> pa.Array:
    """Return the value of the first true condition in each row, as CASE does in SQL.

    type: type of the scalars.
    pairs: (condition, value) pairs; each value is a scalar or a column.
    otherwise: value for rows without a true condition.
    """
    conditions, values = zip(*pairs, strict=True)
    columns = (value if isinstance(value, pa.Array) else pa.scalar(value, type) for value in (*values, otherwise))
    return pc.case_when(pc.make_struct(*conditions), *columns)


def live(judgments: Lists, *kinds: str) -> Mask:
    """Select the judgments of these kinds that were neither withdrawn nor voided."""
    rows = judgments.values
    return as_mask(pc.and_(pc.is_in(rows["kind"], pa.array(kinds)), pc.is_null(rows["voided_at"])))


# --- Columns to read

_KEY, _TEXT, _COUNT, _MARK = pa.int64(), pa.string(), pa.int32(), pa.bool_()
# Columns of the judged unit. If the exported unit is a copy, its original is the judged unit.
JUDGED = {
    **dict.fromkeys(("pk", "reused_from"), _KEY),
    **dict.fromkeys(("stage", "label", "agreed_label", "candidates", "visited", "reused_from__task__name"), _TEXT),
    **{"round": _COUNT, "recheck": _MARK, "item__key": _TEXT},
}
# Columns of every exported unit. If the unit is a copy, the JUDGED columns are also read from its original.
UNIT = {
    **JUDGED,
    **{"asked": _TEXT, "predicted": _TEXT, "audited": _MARK, "copy_of": _KEY},
    **{f"item__{name}": _TEXT for name in ("language", "text", "fields", "declared", "author", "url", "votes")},
    **{"item__posted_at": TIME, "item__letters": _COUNT},
}
# Columns of the judgments and transitions of a unit.
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
CHUNK, AT_ONCE = 2_000, 10_000  # batch sizes for units and for other rows


@dataclass(frozen=True)
class Units:
    """A batch of units in draw order.

    unit: columns of each unit.
    judged: columns of each judged unit: the original if the unit is a copy, otherwise the unit itself.
    """

    unit: pa.RecordBatch
    judged: pa.RecordBatch


def units_of(task: Task, *only: str) -> Iterator[Units]:
    """Yield the exported units in draw order, CHUNK at a time.

    only: columns to read besides the keys; by default all columns, including those for quality controls.
    """
    controls = task.kind.quality_controls
    fields = UNIT | {path: type for control in controls for path, type in control.unit_columns.items()}
    fields = {path: type for path, type in fields.items() if not only or path in ("pk", "copy_of", *only)}
    of_judged = {path: type for path, type in JUDGED.items() if path in fields}
    for unit in fetch_batches(task.units.exported().order_by("position"), fields, CHUNK):
        judged, copy_of = unit.select(list(of_judged)), unit["copy_of"]
        if copy_of.null_count < len(copy_of):
            originals = Unit.objects.filter(pk__in=listed(pc.unique(copy_of.drop_null()).to_pylist()))
            original = fetch_all(originals, of_judged, AT_ONCE)
            places = pc.add(pc.index_in(copy_of, original["pk"]), pa.scalar(len(copy_of), pa.int32()))
            candidates = pa.concat_batches([judged, original])
            judged = candidates.take(pc.coalesce(places, pa.array(np.arange(len(copy_of), dtype=np.int32))))
        yield Units(unit, judged)


def rows_of(table: type[Model], units: pa.Array) -> Lists:
    """Return the judgments or transitions of each unit, in order.

    table: Judgment or Transition.
    units: primary keys.
    """
    keys = units.to_numpy()
    rows = table._default_manager.filter(unit__in=listed(np.unique(keys).tolist())).order_by("unit_id", "pk")
    return lists_of(keys, fetch_all(rows, TABLES[table], AT_ONCE), "unit")


# --- JSON lines, built column by column but identical to the output of json.dumps


# Matches the characters that json.dumps escapes.
_ESCAPED = r'["\\\x00-\x1f]'


def as_lines(rows: pa.RecordBatch) -> pa.StringArray:
    """Return each row as a JSON object with a newline."""
    return _objects(rows.columns, rows.schema, end="\n")


def content(lines: pa.StringArray) -> pa.Buffer:
    """Return the bytes of all lines, concatenated. The lines must not be null."""
    # Copy the array, because a slice shares the buffers of the whole array.
    [ends, text] = pa.concat_arrays([lines]).buffers()[1:]
    return text.slice(0, np.frombuffer(ends, np.int32)[len(lines)])


def _objects(columns: Sequence[pa.Array], fields: Iterable[pa.Field], end: str = "") -> pa.StringArray:
    parts: list[Any] = []
    for column, field in zip(columns, fields, strict=True):
        parts += [f"{', ' if parts else '{'}{quoted(field.name)}: ", _encode(column)]
    return pc.binary_join_element_wise(*parts, "}" + end, "")


def _lists(lists: pa.ListArray) -> pa.StringArray:
    items = pa.ListArray.from_arrays(lists.offsets, _encode(lists.values))
    return pc.binary_join_element_wise("[", pc.binary_join(items, ", "), "]", "")


def _times(times: pa.Array) -> pa.StringArray:
    # Drop the time zone. Arrow would look up the offset of each value.
    texts = pc.binary_replace_slice(times.cast(pa.timestamp("us")).cast(pa.string()), 10, 11, "T")
    return pc.binary_join_element_wise('"', texts, 'Z"', "")


def _texts(texts: pa.Array) -> pa.StringArray:
    mask = pc.match_substring_regex(texts, _ESCAPED)
    escaped = pa.array(map(quoted, texts.filter(mask).to_pylist()), pa.string())
    return pc.replace_with_mask(pc.binary_join_element_wise('"', texts, '"', ""), mask, escaped)


def _numbers(numbers: pa.Array) -> pa.StringArray:
    size = np.abs(numbers.to_numpy())
    # Python and Arrow format these numbers differently, and all others the same way.
    mask = pa.array((size < 1e-4) | (size >= 1e10) | (size == np.floor(size)))
    texts = numbers.cast(pa.string())
    return pc.replace_with_mask(texts, mask, pa.array(map(repr, numbers.filter(mask).to_pylist()), pa.string()))


def _distinct(encode: Callable[[pa.Array], pa.StringArray]) -> Callable[[pa.Array], pa.StringArray]:
    """Return an encoder that encodes each distinct value only once."""

    def encode_distinct(values: pa.Array) -> pa.StringArray:
        dictionary = values.dictionary_encode()
        return encode(dictionary.dictionary).take(dictionary.indices)

    return encode_distinct


_ENCODERS: Mapping[int, Callable[[pa.Array], pa.StringArray]] = {
    pa.struct([]).id: lambda values: _objects(values.flatten(), values.type),
    pa.list_(pa.null()).id: _lists,
    pa.timestamp("us").id: _times,
    pa.string().id: _distinct(_texts),
    pa.float64().id: _distinct(_numbers),
    pa.int32().id: lambda values: values.cast(pa.string()),
    pa.bool_().id: lambda values: values.cast(pa.string()),
}


def _encode(values: pa.Array) -> pa.StringArray:
    return _ENCODERS[values.type.id](values).fill_null("null")
