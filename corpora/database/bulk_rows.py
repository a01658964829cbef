"""Many new rows at once, as each database takes them quickest: COPY on PostgreSQL, statements of many rows on SQLite.

Django's bulk_create prepares every value of every row by itself, and that takes most of its time.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice, product
from operator import attrgetter
from typing import Any, TypeVar

import pyarrow as pa
from django.db import Error, connection, transaction
from django.db.models import Model, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast

from corpora.database.statements import how_to_send

Row = TypeVar("Row")  # a model, or plain
MANY = 1_000  # rows after which PostgreSQL's statistics may mislead it
# Rows of a statement on SQLite: one by one, a row takes half as long again.
_TOGETHER = 500
# SQLite's own 2 MB are too few for the indexes of many new rows: it writes the same pages of them again and again.
_CACHE_KIB = 32 << 10


def plain(model: type[Model]) -> type[Any]:
    """A class of rows that `insert` takes in place of the model's own, which take ten times as long to make: they have
    the model's fields with its defaults, and nothing else. A default is shared, so it is not to be changed in place.
    """
    fields = model._meta.concrete_fields
    values = {field.attname: field.get_default() for field in fields}
    relations = dict.fromkeys(field.name for field in fields if field.is_relation)

    def init(row: Any, **given: Any) -> None:
        row.__dict__ = given

    return type(
        f"Plain{model.__name__}", (), {**values, **relations, "pk": None, "_meta": model._meta, "__init__": init}
    )


def insert(rows: Iterable[Row]) -> list[Row]:
    """Save new rows of one model, and give them their keys, in order. Returns them.

    A row that they refer to has been saved, or is one of them. As with bulk_create, no signal is sent.
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
        # The keys of the rows that these refer to, which may have got them only now.
        for field, row in product([field for field in fields if field.is_relation], rows):
            if (other := (row._state.fields_cache if of_model else row.__dict__).get(field.name)) is not None:
                row.__dict__[field.attname] = other.pk
        for field in fields:
            if getattr(field, "auto_now_add", False):
                for row in rows:
                    field.pre_save(row, add=True)
        columns = [(map(attrgetter(field.attname), rows), how_to_send(field)) for field in fields]
        values = zip(*(_prepared(column, how) if how else column for column, how in columns), strict=True)
        _write(options.db_table, [field.column for field in fields], values)
        if len(rows) >= MANY:
            gather()
    if of_model:
        for row in rows:
            row._state.adding, row._state.db = False, connection.alias
    return rows


def _new_keys(table: str, column: str, number: int) -> Sequence[int]:
    """Keys that nobody else is given."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sequence = "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)"
            cursor.execute(sequence, [f'"{table}"', column, number])
            return [key for (key,) in cursor.fetchall()]
        # Nobody else writes until this transaction ends.
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        last = (cursor.fetchone() or (0,))[0]
        return range(last + 1, last + 1 + number)


def _prepared(values: Iterable[Any], prepare: Callable[[Any], Any]) -> Iterator[Any]:
    """Often the same value comes again and again, as a default or a moment does."""
    last, made = None, None
    for value in values:
        if value is not last:
            last, made = value, None if value is None else prepare(value)
        yield made


def _write(table: str, columns: Sequence[str], values: Iterable[Sequence[Any]]) -> None:
    named = ", ".join(f'"{column}"' for column in columns)
    into = f'"{table}" ({named})'  # the names are those of the model
    with connection.wrap_database_errors:
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
            return
        start, places = f"INSERT INTO {into} VALUES ", f"({', '.join('?' * len(columns))})"  # noqa: S608
        many, rest = start + ", ".join([places] * _TOGETHER), iter(values)
        # Not by Django's own cursor, which looks through each statement for what stands in place of parameters.
        with closing(connection.connection.cursor()) as cursor:
            while len(some := list(islice(rest, _TOGETHER))) == _TOGETHER:
                cursor.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                cursor.execute(many, list(chain.from_iterable(some)))
            # So there are two statements for a table, however many rows there are, and the driver keeps both.
            cursor.executemany(start + places, some)


# --- PostgreSQL's statistics of tables that have grown, which its plans rest on.
#
# Autovacuum gathers them too, but only once a minute. The server keeps the plans of an answer, so plans that were
# made for a hundred rows would read through thousands, at three to five times the cost.


ANSWERS = 50  # answers of a process between two looks
# Tables that hold half as many pages again as when their plans were made. A few pages are read as quickly as an index.
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
    """Gather the statistics of grown tables once the transaction is committed. On SQLite there is nothing to do."""
    if connection.vendor == "postgresql":
        transaction.on_commit(_gather)


def _gather() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(GROWN)
            if names := [name for (name,) in cursor.fetchall()]:
                # Without waiting for autovacuum, or for another process that does the same.
                cursor.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(names)}")
    except Error:
        # What was committed stands, and plans are slower until autovacuum comes.
        logger.warning("The statistics of grown tables could not be gathered.", exc_info=True)


# --- Many rows at once out of the database, column by column and without objects.


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
