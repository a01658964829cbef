"""Rows of Arrow as lines of JSON, column by column: the bytes that json.dumps writes of each row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring as quoted  # json.dumps without ensure_ascii
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
