"""Fast bulk inserts and reads.

Django's bulk_create spends most of its time preparing each value of each row. Here, rows are inserted with COPY on
PostgreSQL and with multi-row statements on SQLite. Reads return Arrow batches on both.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice, product
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from django.db import Error, connection, transaction
from django.db.models import Model, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast

from corpora.database.statements import driver_converter

Row = TypeVar("Row", bound=Any)  # a model instance, or an instance of a class returned by `plain`
MANY = 1_000  # PostgreSQL's statistics are updated after an insert of this many rows, to avoid slow query plans
# Rows per statement on SQLite. Inserting rows one by one takes 1.5 times as long.
_BATCH_SIZE = 500
# SQLite's default cache of 2 MB is too small for the indexes of many rows, so it would read or write the same pages
# repeatedly.
CACHE_KIB = 32 << 10
# To be able to roll back a single statement or savepoint, SQLite copies each page before changing it. Bulk writes avoid
# this: they set no savepoints and use OR FAIL, so a failed statement is rolled back only with the whole transaction.


def plain(model: type[Model]) -> type[Any]:
    """Return a lightweight class whose instances can be passed to `insert` in place of model instances.

    The class has only the model's fields with their defaults. Its instances are created ten times as fast as model
    instances. They share the default values, so callers must not modify a default in place.
    """
    fields = model._meta.concrete_fields
    values = {field.attname: field.get_default() for field in fields}
    relations = dict.fromkeys(field.name for field in fields if field.is_relation)
    return type(f"Plain{model.__name__}", (SimpleNamespace,), {**values, **relations, "pk": None, "_meta": model._meta})


def batched(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield the rows in lists of length `size`. The last list may be shorter."""
    remaining = iter(rows)
    while batch := list(islice(remaining, size)):
        yield batch


def insert(rows: Iterable[Row]) -> list[Row]:
    """Insert new rows of one model, set their primary keys, and return them in the same order.

    Foreign keys can refer to saved rows, or to other rows in the same call. As with bulk_create, no signals are sent.
    """
    rows = list(rows)
    if not rows:
        return rows
    options = rows[0]._meta
    fields = options.concrete_fields
    with transaction.atomic(savepoint=False):
        for row, key in zip(rows, new_keys(options.model, len(rows)), strict=True):
            row.pk = row.id = key
        of_model = isinstance(rows[0], Model)
        # Set the foreign keys, because related rows may only just have received their primary keys.
        holders = [(row._state.fields_cache if of_model else row.__dict__, row.__dict__) for row in rows]
        relations = [field for field in fields if field.is_relation]
        for field, (related_rows, values) in product(relations, holders):
            if (related := related_rows.get(field.name)) is not None:
                values[field.attname] = related.pk
        for field, row in product([field for field in fields if getattr(field, "auto_now_add", False)], rows):
            field.pre_save(row, add=True)
        insert_columns(options.model, {field.attname: [*map(attrgetter(field.attname), rows)] for field in fields})
    if of_model:
        for row in rows:
            row._state.adding, row._state.db = False, connection.alias
    return rows


def insert_columns(model: type[Model], columns: Mapping[str, Sequence[Any]], **same: Any) -> Sequence[int]:
    """Insert new rows of one model from columns of values, and return the rows' primary keys.

    columns: a list of values for each field, keyed by attribute names such as `unit_id`
    same: fields with the same value in all rows; all other fields have their defaults
    """
    options: Any = model._meta
    number, key = len(next(iter(columns.values()))), options.pk.attname
    with transaction.atomic(savepoint=False):
        columns = {**columns, key: columns.get(key) or new_keys(model, number)}
        prepared = {}
        for field in options.concrete_fields:
            repeated = _prepare_values(field, [same.get(field.attname, field.get_default())]) * number
            values = columns.get(field.attname)
            prepared[f'"{field.column}"'] = repeated if values is None else _prepare_values(field, values)
        _write(f'"{options.db_table}"', prepared)
    if number >= MANY:
        update_statistics()
    return columns[key]


def update(rows: Sequence[Row], names: Iterable[str]) -> None:
    """Update the named fields of existing rows of one model. No signals are sent."""
    if not rows:
        return
    options = rows[0]._meta
    fields = [*map(options.get_field, names), options.pk]
    values = [_prepare_values(field, map(attrgetter(field.attname), rows)) for field in fields]
    numbers = [f"column{number}" for number, _ in enumerate(fields, 1)]
    # The names in the SQL come from the model, so there is no risk of injection.
    *changes, key = (f'"{field.column}" = new.{name}' for field, name in zip(fields, numbers, strict=True))
    verb = "UPDATE" if connection.vendor == "postgresql" else "UPDATE OR FAIL"
    sql = f'{verb} "{options.db_table}" SET {", ".join(changes)} FROM {{}} WHERE "{options.db_table}".{key}'
    if connection.vendor == "postgresql":
        # Omit the length of types such as varchar(200), because the cast would truncate longer values.
        arrays = ", ".join(f"%s::{field.rel_db_type(connection).partition('(')[0]}[]" for field in fields)
        with connection.cursor() as cursor:
            cursor.execute(sql.format(f"unnest({arrays}) AS new({', '.join(numbers)})"), values)
    else:
        with transaction.atomic(savepoint=False):
            _run(sql, values)


def new_keys(model: type[Model], number: int) -> Sequence[int]:
    """Reserve new primary keys. No concurrent transaction will use them."""
    options: Any = model._meta
    table, column = options.db_table, options.pk.column
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Look up the sequence in a subquery. Otherwise, PostgreSQL would look it up again for each key.
            sequence = "SELECT nextval((SELECT pg_get_serial_sequence(%s, %s)::regclass)) FROM generate_series(1, %s)"
            cursor.execute(sequence, [f'"{table}"', column, number])
            return [key for (key,) in cursor.fetchall()]
        # SQLite allows one writer at a time, so no other process can insert rows before this transaction ends.
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        last_key = (cursor.fetchone() or (0,))[0]
        return range(last_key + 1, last_key + 1 + number)


def _prepare_values(field: Any, values: Iterable[Any]) -> list[Any]:
    """Convert a field's values for the database driver. An object that occurs several times is converted only once."""
    if (prepare := driver_converter(field)) is None:
        return list(values)
    values, sent = list(values), {id(None): None}
    return [sent[id(value)] if id(value) in sent else sent.setdefault(id(value), prepare(value)) for value in values]


def _write(table: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Insert rows.

    columns: values of all rows by quoted column name; the first column is the primary key
    """
    if connection.vendor == "postgresql":
        copying = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(copying) as copy:
            for row in zip(*columns.values(), strict=True):
                copy.write_row(row)
        return
    # Send columns with a single value only once per statement. This halves the time.
    _, *others = columns
    same = {name: columns[name][0] for name in others if columns[name].count(columns[name][0]) == len(columns[name])}
    different = {name: column for name, column in columns.items() if name not in same}
    into = f"{table} ({', '.join([*same, *different])})"
    _run(f"INSERT OR FAIL INTO {into} SELECT {'?, ' * len(same)}* FROM {{}}", [*different.values()], [*same.values()])  # noqa: S608


def _run(sql: str, columns: Sequence[Sequence[Any]], same: Sequence[Any] = ()) -> None:
    """Run an SQLite statement on batches of rows.

    sql: statement with {} in place of the `new` table, which contains a batch
    columns: values of the rows, by column
    same: values of the placeholders in `sql`
    """
    places = f"({', '.join('?' * len(columns))})"
    # Use the driver's cursor, because Django's would search each statement for placeholders.
    with connection.wrap_database_errors, closing(connection.connection.cursor()) as cursor:
        cursor.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        for batch in batched(zip(*columns, strict=True), _BATCH_SIZE):
            # Most batches are full and have the same SQL, so the driver can cache the statement.
            statement = sql.format(f"(VALUES {', '.join([places] * len(batch))}) AS new")
            cursor.execute(statement, [*same, *chain.from_iterable(batch)])


# --- PostgreSQL's planner statistics for tables that have grown.
#
# Autovacuum also updates the statistics, but at most once a minute. Until then, the server keeps using its cached plans
# for the queries that save an answer. A plan made for a hundred rows scans the table, which takes three to five times
# as long as an index once the table has thousands of rows.


ANSWERS = 50  # each process checks the statistics after this many answers
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
# Number of most common values that ANALYZE collects per column. It samples 300 times as many rows. With PostgreSQL's
# default of 100, it took a fifth of the time needed to open a task.
TARGET = 25
logger = logging.getLogger(__name__)


def update_statistics() -> None:
    """Update the statistics of tables that have grown, once the transaction commits. On SQLite, do nothing."""
    # Once per transaction is enough.
    if connection.vendor == "postgresql" and _analyze not in (entry[1] for entry in connection.run_on_commit):
        transaction.on_commit(_analyze)


def _analyze() -> None:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(GROWN)
            if names := [name for (name,) in cursor.fetchall()]:
                cursor.execute(f"SET LOCAL default_statistics_target = {TARGET}")
                # Skip locked tables. Autovacuum or another process is probably analyzing them.
                cursor.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(names)}")
    except Error:
        # The rows are committed, so only log the error. Queries may be slow until autovacuum runs.
        logger.warning("Cannot update the statistics of tables that have grown.", exc_info=True)


# --- Bulk reads. They return Arrow columns instead of model instances.


TIME = pa.timestamp("us", tz="UTC")


def fetch_batches(rows: QuerySet[Any, Any], fields: Mapping[str, pa.DataType], size: int) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a query as Arrow batches.

    fields: Arrow types by lookup path, such as `item__key`; JSON fields are read as text
    size: number of rows per batch
    """
    schema = pa.schema(fields.items())
    # Times are read as text, because drivers and Django would create an object for each value. Arrow parses the whole
    # column at once.
    query = rows.values_list(*(Cast(path, TextField()) if type == TIME else path for path, type in fields.items()))
    # Call the compiler directly, so that Django doesn't convert each value.
    for chunk in query.query.get_compiler(query.db).execute_sql(chunked_fetch=True, chunk_size=size):
        yield pa.RecordBatch.from_arrays(list(map(_array, zip(*chunk, strict=True), schema.types)), schema=schema)


def fetch_all(rows: QuerySet[Any, Any], fields: Mapping[str, pa.DataType], size: int) -> pa.RecordBatch:
    """Return all rows of a query as a single Arrow batch, possibly empty. Parameters are as in `fetch_batches`."""
    return pa.concat_batches(
        [pa.RecordBatch.from_pylist([], schema=pa.schema(fields.items())), *fetch_batches(rows, fields, size)]
    )


def map_rows(function: Callable[..., Any], type: pa.DataType, *columns: pa.Array) -> pa.Array:
    """Apply a function to each row. It is called once per distinct combination of values, because most rows repeat."""
    # Give rows with the same values the same code. The codes fit in 64 bits for five columns of several thousand rows.
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    distinct = zip(*(column.take(pa.array(first)).to_pylist() for column in columns), strict=True)
    return pa.array([function(*values) for values in distinct], type).take(pa.array(numbers))


def listed(keys: Iterable[int] | Iterable[str]) -> RawSQL:
    """Return an expression for an `__in` lookup that sends all keys as a single parameter.

    With a plain list, Django would prepare each key and add a placeholder for it.
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
