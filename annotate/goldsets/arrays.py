"""The columns of exported rows, as Arrow has them and as JSON has them: column by column, whatever is nested in them.

A struct is a tuple of the values of its fields, in their order; a list is a list or a tuple. Both are taken apart
first: of a struct there is a column for each field, of a list where each begins and all that they hold.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, chain, pairwise
from json.encoder import encode_basestring as quoted  # json.dumps without ensure_ascii
from typing import Any, NamedTuple

import pyarrow as pa


class Lists(NamedTuple):
    """A column of lists, taken apart: where each begins, and where the last one ends; and what they hold."""

    ends: list[int]
    held: "Apart"


# A column taken apart: values, or one column for each field of a struct, or Lists.
Apart = Any
# A column as rows are made: a value for each row, or Lists where they are many.
Values = Sequence[Any] | Lists


def apart(columns: Mapping[str, Values], schema: pa.Schema) -> list[Apart]:
    """The columns of a schema, each as the plain values in it."""
    return [_apart(columns[field.name], field.type) for field in schema]


def as_batch(columns: Sequence[Apart], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(map(_array, columns, schema.types)), schema=schema)


def as_lines(columns: Sequence[Apart], schema: pa.Schema) -> list[str]:
    """An object of JSON for each row, as json.dumps writes it."""
    return _objects(columns, schema)


def _apart(values: Values, type: pa.DataType) -> Apart:
    if isinstance(values, Lists):
        return values
    if pa.types.is_struct(type):
        return [_apart([each[place] for each in values], field.type) for place, field in enumerate(type)]
    if pa.types.is_list(type):
        ends = list(accumulate(map(len, values), initial=0))
        return Lists(ends, _apart(list(chain.from_iterable(values)), type.value_type))
    return values


def _array(column: Apart, type: pa.DataType) -> pa.Array:
    if pa.types.is_struct(type):
        fields = list(type)
        return pa.StructArray.from_arrays(
            [_array(each, field.type) for each, field in zip(column, fields, strict=True)], fields=fields
        )
    if pa.types.is_list(type):
        ends, values = column
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), _array(values, type.value_type), type=type)
    return pa.array(column, type)


def _written(column: Apart, type: pa.DataType) -> Sequence[str]:
    if pa.types.is_struct(type):
        return _objects(column, type)
    if pa.types.is_list(type):
        ends, values = column
        written = _written(values, type.value_type)
        return [f"[{', '.join(written[start:end])}]" if end > start else "[]" for start, end in pairwise(ends)]
    return _WRITTEN[type.id](column)


def _objects(columns: Sequence[Apart], fields: Iterable[pa.Field]) -> list[str]:
    names = (quoted(field.name).replace("%", "%%") for field in fields)
    template = "{" + ", ".join(f"{name}: %s" for name in names) + "}"
    written = [_written(each, field.type) for each, field in zip(columns, fields, strict=True)]
    return list(map(template.__mod__, zip(*written, strict=True)))


def _each(write: Callable[[Any], str]) -> Callable[[Sequence[Any]], Sequence[str]]:
    """Where values are few, each is written once."""

    def written(values: Sequence[Any]) -> list[str]:
        known = {value: "null" if value is None else write(value) for value in set(values)}
        return list(map(known.__getitem__, values))

    return written


def _numbers(values: Sequence[float | None]) -> list[str]:
    # One by one: 1 and 1.0 are equal, and are written otherwise.
    if None in values:
        return ["null" if value is None else repr(value) for value in values]
    return list(map(repr, values))


def _moment(value: datetime) -> str:
    return f'"{value.isoformat(timespec="microseconds").removesuffix("+00:00")}Z"'


_WRITTEN: Mapping[int, Callable[[Sequence[Any]], Sequence[str]]] = {
    pa.string().id: _each(quoted),
    pa.timestamp("us").id: _each(_moment),
    pa.bool_().id: _each(json.dumps),
    pa.float64().id: _numbers,
    pa.int32().id: _numbers,
}
