"""Many rows at once out of the database, column by column and without objects; inserting.py is the way in."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from django.db import connection
from django.db.models import QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast

TIME = pa.timestamp("us", tz="UTC")


def fetched(rows: QuerySet, fields: Mapping[str, pa.DataType], size: int) -> Iterator[pa.RecordBatch]:
    """`size` rows of a query at a time, as Arrow has them; they are never all in memory. fields: path from a row ->
    type, of JSON that of its text.
    """
    schema = pa.schema(fields.items())
    # Of a time the text: Django and the drivers make an object of each, and Arrow reads a column of them at once.
    query = rows.values_list(*(Cast(path, TextField()) if type == TIME else path for path, type in fields.items()))
    # Past the compiler, Django would convert value by value.
    for some in query.query.get_compiler(query.db).execute_sql(chunked_fetch=True, chunk_size=size):
        yield pa.RecordBatch.from_arrays(list(map(_array, zip(*some, strict=True), schema.types)), schema=schema)


def all_fetched(rows: QuerySet, fields: Mapping[str, pa.DataType], size: int) -> pa.RecordBatch:
    """The same of rows that are few enough to be in memory at once, also where there are none."""
    return pa.concat_batches(
        [pa.RecordBatch.from_pylist([], schema=pa.schema(fields.items())), *fetched(rows, fields, size)]
    )


def listed(keys: Iterable[int] | Iterable[str]) -> RawSQL:
    """Many keys as what a field is `__in`, sent as one parameter: Django prepares each of a list by itself, and the
    database reads as many places in the statement.
    """
    some = list(keys)
    if connection.vendor == "postgresql":
        of = "text" if some and isinstance(some[0], str) else "bigint"
        return RawSQL(f"SELECT unnest(%s::{of}[])", [some])  # noqa: S611 - one of these two words
    return RawSQL("SELECT value FROM json_each(%s)", [json.dumps(some)])


def _array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    if type != TIME:
        return pa.array(values, type)
    # SQLite has times in UTC and does not say so.
    told = TIME if connection.vendor == "postgresql" else pa.timestamp("us")
    return pa.array(values, pa.string()).cast(told).cast(TIME)
