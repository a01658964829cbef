"""Fast bulk inserts and reads.

Django's bulk_create spends most of its time preparing each value of each row. Instead, rows are inserted with COPY on
PostgreSQL and with multi-row statements on SQLite, and they are read from both databases as Arrow batches.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from django.db import Error, connection, transaction
from django.db.models import Model, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast

from corpora.database.statements import how_to_send

Row = TypeVar("Row", bound=Any)  # a model instance, or an instance of a class that `plain` returned
MANY = 1_000  # After inserting this many rows, PostgreSQL may choose slow plans unless its statistics are updated.
# The number of rows per statement on SQLite. Inserting rows one by one takes 1.5 times as long.
_TOGETHER = 500
# SQLite's default cache of 2 MB is too small for the indexes of many new rows, so it would write the same pages again
# and again.
_CACHE_KIB = 32 << 10


def plain(model: type[Model]) -> type[Any]:
    """Return a lightweight class whose instances `insert` accepts in place of instances of a model.

    The class has only the model's fields with their defaults. Creating an instance is ten times as fast as creating
    a model instance. The instances share the default values, so callers must not modify a default in place.
    """
    fields = model._meta.concrete_fields
    values = {field.attname: field.get_default() for field in fields}
    relations = dict.fromkeys(field.name for field in fields if field.is_relation)

    attributes = {**values, **relations, "pk": None, "_meta": model._meta}
    return type(f"Plain{model.__name__}", (SimpleNamespace,), attributes)


def batched(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield the rows in lists of this size. The last list may be shorter."""
    remaining = iter(rows)
    while batch := list(islice(remaining, size)):
        yield batch


def insert(rows: Iterable[Row]) -> list[Row]:
    """Save new rows of one model, set their primary keys, and return them in the same order.

    Rows may refer to rows that are already saved or to other rows in the same call. As with bulk_create, no signals are
    sent.
    """
    rows = list(rows)
    if not rows:
        return rows
    options = rows[0]._meta
    fields = options.concrete_fields
    with transaction.atomic():
        for row, key in zip(rows, _new_keys(options.db_table, options.pk.column, len(rows)), strict=True):
            row.pk = row.id = key
        of_model = isinstance(rows[0], Model)
        # Copy the keys of related rows into the foreign keys, because related rows may have received their keys above.
        holders = [(row._state.fields_cache if of_model else row.__dict__, row.__dict__) for row in rows]
        for field in (field for field in fields if field.is_relation):
            for related_rows, values in holders:
                if (related := related_rows.get(field.name)) is not None:
                    values[field.attname] = related.pk
        for field in fields:
            if getattr(field, "auto_now_add", False):
                for row in rows:
                    field.pre_save(row, add=True)
        _write(options.db_table, [field.column for field in fields], zip(*_columns(rows, fields), strict=True))
        if len(rows) >= MANY:
            gather()
    if of_model:
        for row in rows:
            row._state.adding, row._state.db = False, connection.alias
    return rows


def update(rows: Sequence[Row], names: Iterable[str]) -> None:
    """Save the named fields of rows of one model that are already in the database. No signals are sent."""
    if not rows:
        return
    options = rows[0]._meta
    fields = [*map(options.get_field, names), options.pk]
    values = _columns(rows, fields)
    table, (*names, key) = f'"{options.db_table}"', [f'"{field.column}"' for field in fields]
    # The names in the SQL come from the model, so they are safe.
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # The length of a type such as varchar(200) is omitted, because a cast to it would truncate longer values.
            arrays = ", ".join(f"%s::{field.rel_db_type(connection).partition('(')[0]}[]" for field in fields)
            changes = ", ".join(f"{name} = new.{name}" for name in names)
            sql = f"UPDATE {table} SET {changes} FROM unnest({arrays}) AS new({', '.join([*names, key])})"  # noqa: S608
            cursor.execute(f"{sql} WHERE {table}.{key} = new.{key}", [*map(list, values)])
        else:
            changes = ", ".join(f"{name} = %s" for name in names)
            # Without a transaction, SQLite would wait for the disk after each row.
            with transaction.atomic():
                cursor.executemany(f"UPDATE {table} SET {changes} WHERE {key} = %s", list(zip(*values, strict=True)))  # noqa: S608


def _columns(rows: Sequence[Row], fields: Iterable[Any]) -> list[Iterable[Any]]:
    """Return the rows' values of each field, prepared for the driver."""
    columns = [(map(attrgetter(field.attname), rows), how_to_send(field)) for field in fields]
    return [_prepared(column, send) if send else column for column, send in columns]


def _new_keys(table: str, column: str, number: int) -> Sequence[int]:
    """Return the given number of new primary keys, which no concurrent transaction will use."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # The subquery finds the sequence once. Otherwise, PostgreSQL would find it again for each key.
            sequence = "SELECT nextval((SELECT pg_get_serial_sequence(%s, %s)::regclass)) FROM generate_series(1, %s)"
            cursor.execute(sequence, [f'"{table}"', column, number])
            return [key for (key,) in cursor.fetchall()]
        # SQLite permits one writer at a time, so no other process can insert a row before this transaction ends.
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        last_key = (cursor.fetchone() or (0,))[0]
        return range(last_key + 1, last_key + 1 + number)


def _prepared(values: Iterable[Any], prepare: Callable[[Any], Any]) -> Iterator[Any]:
    """Prepare values for the driver.

    If the same object occurs several times in succession, as a default does, it is prepared only once.
    """
    previous, prepared = None, None
    for value in values:
        if value is not previous:
            previous, prepared = value, None if value is None else prepare(value)
        yield prepared


def _write(table: str, columns: Sequence[str], values: Iterable[Sequence[Any]]) -> None:
    column_names = ", ".join(f'"{column}"' for column in columns)
    into = f'"{table}" ({column_names})'  # the names come from the model
    with connection.wrap_database_errors:
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
            return
        start, places = f"INSERT INTO {into} VALUES ", f"({', '.join('?' * len(columns))})"  # noqa: S608
        statement = start + ", ".join([places] * _TOGETHER)
        # The driver's cursor is used because Django's would search each statement for placeholders.
        with closing(connection.connection.cursor()) as cursor:
            cursor.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            for batch in batched(values, _TOGETHER):
                # Each table needs only two different statements, so the driver can cache both.
                if len(batch) == _TOGETHER:
                    cursor.execute(statement, list(chain.from_iterable(batch)))
                else:
                    cursor.executemany(start + places, batch)


# --- PostgreSQL's statistics for tables that have grown.
#
# Autovacuum also updates the statistics, but at most once a minute. Meanwhile, the server reuses its plans for the
# queries that save an answer. A plan made for a hundred rows would scan a table that now has thousands, which takes
# three to five times as long.


ANSWERS = 50  # The statistics are checked after this many answers in a process.
# Tables that are at least 50% larger than at their last ANALYZE. Growth by up to two pages is ignored, because a scan
# of a few pages is as fast as an index.
GROWN = """
    SELECT format('%I', relname)
    FROM pg_class
    WHERE relkind = 'r'
      AND relnamespace = current_schema()::regnamespace
      AND relowner = current_user::regrole
      AND pg_relation_size(oid) / current_setting('block_size')::int > 1.5 * relpages + 2
"""
logger = logging.getLogger(__name__)


def gather() -> None:
    """Update the statistics of tables that have grown, after the transaction commits. On SQLite, do nothing."""
    if connection.vendor == "postgresql":
        transaction.on_commit(_gather)


def _gather() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(GROWN)
            if names := [name for (name,) in cursor.fetchall()]:
                # Skip tables that are locked, because autovacuum or another process is probably analyzing them.
                cursor.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(names)}")
    except Error:
        # The rows are committed, so the error is only logged. Queries may be slow until autovacuum runs.
        logger.warning("Cannot update the statistics of tables that have grown.", exc_info=True)


# --- Bulk reads, which return Arrow columns instead of model instances.


TIME = pa.timestamp("us", tz="UTC")


def fetched(rows: QuerySet[Any, Any], fields: Mapping[str, pa.DataType], size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query as Arrow batches, without holding all of them in memory.

    fields: a mapping from lookup paths, such as `item__key`, to Arrow types; JSON fields are read as text
    size: the number of rows per batch
    """
    schema = pa.schema(fields.items())
    # Times are read as text, because drivers and Django would create an object for each time, whereas Arrow parses the
    # whole column at once.
    query = rows.values_list(*(Cast(path, TextField()) if type == TIME else path for path, type in fields.items()))
    # The compiler is called directly, so that Django does not convert each value.
    for chunk in query.query.get_compiler(query.db).execute_sql(chunked_fetch=True, chunk_size=size):
        yield pa.RecordBatch.from_arrays(list(map(_array, zip(*chunk, strict=True), schema.types)), schema=schema)


def all_fetched(rows: QuerySet[Any, Any], fields: Mapping[str, pa.DataType], size: int) -> pa.RecordBatch:
    """Return all rows of a query as one Arrow batch, which may be empty. The result must fit into memory.

    The parameters are those of `fetched`.
    """
    return pa.concat_batches(
        [pa.RecordBatch.from_pylist([], schema=pa.schema(fields.items())), *fetched(rows, fields, size)]
    )


def map_rows(function: Callable[..., Any], type: pa.DataType, *columns: pa.Array) -> pa.Array:
    """Apply a function to each row. Most rows are alike, so it is called only once for each combination of values."""
    # Number the combinations of values, so that rows with the same values have the same number. The numbers fit in 64
    # bits for five columns of several thousand rows.
    alike = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        alike = alike * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first, numbers = np.unique(alike, return_index=True, return_inverse=True)
    different = zip(*(column.take(pa.array(first)).to_pylist() for column in columns), strict=True)
    return pa.array([function(*values) for values in different], type).take(pa.array(numbers))


def listed(keys: Iterable[int] | Iterable[str]) -> RawSQL:
    """Return an expression for an `__in` lookup that sends all keys as one parameter.

    If the lookup received a list, Django would prepare each key and send a placeholder for it.
    """
    key_list = list(keys)
    if connection.vendor == "postgresql":
        array_type = "text" if key_list and isinstance(key_list[0], str) else "bigint"
        return RawSQL(f"SELECT unnest(%s::{array_type}[])", [key_list])  # noqa: S611 - one of these two words
    return RawSQL("SELECT value FROM json_each(%s)", [json.dumps(key_list)])


def _array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    if type != TIME:
        return pa.array(values, type)
    # SQLite returns times in UTC, but without an offset.
    parsed_type = TIME if connection.vendor == "postgresql" else pa.timestamp("us")
    return pa.array(values, pa.string()).cast(parsed_type).cast(TIME)
