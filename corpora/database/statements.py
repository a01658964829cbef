"""Queries and writes whose SQL is built once, for the statements that run with every answer.

Django rebuilds a query's SQL on every call. For the twenty statements of an answer, that took several times as long as
the database.
"""

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial, wraps
from operator import attrgetter
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.query import ModelIterable, get_related_populators

LARGEST = 2**63 - 1

# Field types whose values the drivers accept unchanged. Other values are prepared by their fields.
_PLAIN = {
    "BigAutoField",
    "BooleanField",
    "CharField",
    "FloatField",
    "ForeignKey",
    "OneToOneField",
    "PositiveBigIntegerField",
    "PositiveIntegerField",
    "PositiveSmallIntegerField",
    "SlugField",
    "TextField",
}


class Json(str):
    """A value for a JSON field that is already serialized."""


Columns = list[Callable[[Model], Any]]  # for each column, a function from a row to the value that the driver takes


class Given(Expression):
    """A parameter of a prepared query.

    place: index among the values that the query is run with
    """

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        return "%s", [self]


class _Built:
    """A query with everything that Django works out before running it."""

    def __init__(self, queryset: QuerySet) -> None:
        compiler = queryset.query.get_compiler(connection=connection)
        self.sql, self.parameters = compiler.as_sql()
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        self.read = partial(compiler.apply_converters, converters=compiler.get_converters(columns))
        self.model = None
        if issubclass(queryset._iterable_class, ModelIterable):
            of_model = compiler.klass_info["select_fields"]
            self.model = compiler.klass_info["model"]
            self.own = slice(of_model[0], of_model[-1] + 1)
            self.names = [column.target.attname for column in columns[self.own]]
            self.related = get_related_populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS)
            self.more = (compiler.annotation_col_map or {}).items()

    def instance(self, row: list[Any]) -> Model:
        found = self.model.from_db(DEFAULT_DB_ALIAS, self.names, row[self.own])
        for populator in self.related:
            populator.populate(row, found)
        for name, place in self.more:
            setattr(found, name, row[place])
        return found


def prepared(build: Callable[..., QuerySet]) -> Callable[..., list[Any]]:
    """Decorate a function that returns a QuerySet so that it returns the rows and builds its SQL once per connection.

    build: the function. It takes keys, texts, numbers, booleans and times, and may only pass them to the query. Values
        that change between calls, such as the current time, must be arguments.
    """

    @wraps(build)
    def run(*values: Any) -> list[Any]:
        which = build, len(values)
        built = _own.built.get(which)
        if built is None:
            built = _own.built[which] = _Built(build(*map(Given, range(len(values)))))
        adapt = connection.ops.adapt_datetimefield_value
        given = [adapt(each) if isinstance(each, datetime) else each for each in values]
        # A number may come from a URL; no key is as large as the maximum.
        given = [min(max(each, -LARGEST), LARGEST) if type(each) is int else each for each in given]
        said = [given[each.place] if isinstance(each, Given) else each for each in built.parameters]
        return list(map(built.instance if built.model else tuple, built.read(ask(built.sql, said))))

    return run


def ask(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run SQL as with `tell` and return its rows."""
    cursor = tell(sql, values)
    with cursor.db.wrap_database_errors:
        return cursor.cursor.fetchall()


def tell(sql: str, values: Sequence[Any]) -> Any:
    """Run SQL that is reused unchanged, and return the cursor.

    PostgreSQL parses and plans such SQL once per connection; Python's SQLite driver caches any SQL. All statements
    share one cursor, because drivers cache what they learn about types in the cursor.
    """
    database = connections[DEFAULT_DB_ALIAS]
    # When Django logs queries, as in tests that count them, use Django's cursor, which can log the SQL.
    if database.queries_logged:
        cursor = database.cursor()
    else:
        # As Django does before any other statement.
        database.close_if_health_check_failed()
        if _own.cursor is None or _own.cursor.connection is not database.connection:
            database.ensure_connection()
            _own.cursor = database._prepare_cursor(_new_cursor(database))
        cursor = _own.cursor
    cursor.execute(sql, values)
    return cursor


class _Own(threading.local):
    """The cursor and built queries of a thread's connection."""

    def __init__(self) -> None:
        self.built: dict[tuple[Any, int], _Built] = {}
        self.cursor: Any = None


_own = _Own()


def _new_cursor(database: Any) -> Any:
    if database.vendor != "postgresql":
        return database.create_cursor()
    # Otherwise PostgreSQL plans again, in 0.25 ms, whenever it expects a custom plan to be cheaper.
    database.connection.execute("SET plan_cache_mode = force_generic_plan")
    return _prepared_cursor()(database.connection)


@lru_cache
def _prepared_cursor() -> type[Any]:
    """Return a psycopg cursor class that prepares statements on the server. psycopg may not be installed."""
    import psycopg

    class Cursor(psycopg.RawCursor[Any]):
        def execute(self, query: Any, params: Any = None, **how: Any) -> "Cursor":
            return super().execute(_numbered(query), params, **how | {"prepare": True})

    return Cursor


@lru_cache
def _numbered(sql: str) -> str:
    """Return SQL with PostgreSQL's numbered placeholders, which psycopg would otherwise insert on every call."""
    first, *rest = sql.split("%s")
    return "".join([first, *(f"${n}{part}" for n, part in enumerate(rest, 1))]).replace("%%", "%")


# --- Single rows.


def insert_one(row: Model, *, keep: bool = True) -> None:
    """Save a new row and set its key. No signal is sent.

    keep: if False, the same statement inserts nothing
    """
    sql, columns = _insertion(type(row), connection.vendor)
    if found := ask(sql, [*(read(row) for read in columns), keep]):
        [(row.pk,)] = found
        row._state.adding, row._state.db = False, connection.alias


def update_one(row: Model, *names: str, keep: bool = True) -> None:
    """Write the named fields of a row. No signal is sent.

    keep: if False, the same statement changes nothing
    """
    sql, columns = _change(type(row), names, connection.vendor)
    tell(sql, [*(read(row) for read in columns), row.pk, keep])


@lru_cache
def _insertion(model: type[Model], vendor: str) -> tuple[str, Columns]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    # The names come from the model.
    sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) SELECT {_places(fields)} WHERE %s'
    return f'{sql} RETURNING "{model._meta.pk.column}"', list(map(_column, fields))


@lru_cache
def _change(model: type[Model], names: tuple[str, ...], vendor: str) -> tuple[str, Columns]:
    fields = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f'"{field.column}" = %s' for field in fields)
    sql = f'UPDATE "{model._meta.db_table}" SET {columns} WHERE "{model._meta.pk.column}" = %s AND %s'  # noqa: S608
    return sql, list(map(_column, fields))


def _places(fields: Iterable[Field]) -> str:
    """Return the placeholders of a SELECT, cast on PostgreSQL because it cannot infer their types from the table."""
    # Without their length, because a cast would truncate.
    types = (field.db_type(connection).partition("(")[0] for field in fields)
    return ", ".join(f"%s::{each}" if connection.vendor == "postgresql" else "%s" for each in types)


def _column(field: Field) -> Callable[[Model], Any]:
    read, send = attrgetter(field.attname), how_to_send(field)
    return read if send is None else lambda row: None if (value := read(row)) is None else send(value)


def how_to_send(field: Field) -> Callable[[Any], Any] | None:
    """Return a function that converts the field's values for the driver, or None if none is needed."""
    kind = field.get_internal_type()
    if kind in _PLAIN:
        return None
    if kind == "JSONField":
        # Saved values are never circular, and checking for it takes as long as everything else.
        encode = (field.encoder or json.JSONEncoder)(check_circular=False).encode
        return partial(_as_json, encode)
    if kind == "DateTimeField":
        return _as_text if connection.vendor == "sqlite" else connection.ops.adapt_datetimefield_value
    return lambda value: field.get_db_prep_save(value, connection)


def _as_text(moment: datetime) -> str:
    # Like Django, which takes ten times as long because it looks up the connection's time zone; that is always UTC.
    return str(moment if moment.tzinfo is UTC else moment.astimezone(UTC))[: -len("+00:00")]


def _as_json(encode: Callable[[Any], str], value: Any) -> str:
    # Most lists and objects are empty.
    if type(value) is Json:
        return value
    return "[]" if value == [] else "{}" if value == {} else encode(value)
