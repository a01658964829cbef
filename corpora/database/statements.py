"""Statements whose SQL is built once, for what is asked with every answer.

Django builds the SQL of a query anew whenever it is asked. Of the twenty statements of an answer the building took
several times as long as the database did.
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

# What the drivers take as it stands. Anything else is prepared by its field.
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
    """A value of a JSON field that is written already."""


Columns = list[Callable[[Model], Any]]  # what of a row goes into each column, as the driver takes it


class Given(Expression):
    """In a prepared query, what it is given each time that it is run; place: among what it is given."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        return "%s", [self]


class _Built:
    """A query with all that Django finds out of it before it is run."""

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
    """Make a function that returns a QuerySet, of objects or of values_list, one that returns its rows, and builds its
    SQL once a connection.

    build: what it is given are keys, texts, numbers, truth values and times, and it may do nothing with them but pass
    them on to the query. Nothing that is different each time, such as the time of day, may come from elsewhere.
    """

    @wraps(build)
    def run(*values: Any) -> list[Any]:
        which = build, len(values)
        built = _own.built.get(which)
        if built is None:
            built = _own.built[which] = _Built(build(*map(Given, range(len(values)))))
        adapt = connection.ops.adapt_datetimefield_value
        given = [adapt(each) if isinstance(each, datetime) else each for each in values]
        # A number may come from an address; no key is as large as the largest that there is room for.
        given = [min(max(each, -LARGEST), LARGEST) if type(each) is int else each for each in given]
        said = [given[each.place] if isinstance(each, Given) else each for each in built.parameters]
        return list(map(built.instance if built.model else tuple, built.read(ask(built.sql, said))))

    return run


def ask(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows that SQL which stays the same finds, run as by `tell`."""
    cursor = tell(sql, values)
    with cursor.db.wrap_database_errors:
        return cursor.cursor.fetchall()


def tell(sql: str, values: Sequence[Any]) -> Any:
    """Run SQL that stays the same; returns the cursor.

    PostgreSQL parses and plans it once a connection; Python's driver of SQLite does that for any SQL. One cursor does
    for all, since what a driver finds out of types is the cursor's.
    """
    database = connections[DEFAULT_DB_ALIAS]
    # Where Django writes statements down, as in tests that count them, it is Django's own, which can tell its SQL.
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
    """What a thread keeps with its connection."""

    def __init__(self) -> None:
        self.built: dict[tuple[Any, int], _Built] = {}
        self.cursor: Any = None


_own = _Own()


def _new_cursor(database: Any) -> Any:
    if database.vendor != "postgresql":
        return database.create_cursor()
    # Else it plans anew, for a quarter of a millisecond, whatever it believes to be cheaper for certain values.
    database.connection.execute("SET plan_cache_mode = force_generic_plan")
    return _prepared_cursor()(database.connection)


@lru_cache
def _prepared_cursor() -> type[Any]:
    """A cursor of psycopg that has PostgreSQL keep its statements. Psycopg is installed only where it is used."""
    import psycopg

    class Cursor(psycopg.RawCursor[Any]):
        def execute(self, query: Any, params: Any = None, **how: Any) -> "Cursor":
            return super().execute(_numbered(query), params, **how | {"prepare": True})

    return Cursor


@lru_cache
def _numbered(sql: str) -> str:
    """With PostgreSQL's own marks of parameters, into which psycopg would turn Python's each time."""
    first, *rest = sql.split("%s")
    return "".join([first, *(f"${n}{part}" for n, part in enumerate(rest, 1))]).replace("%%", "%")


# --- single rows


def insert_one(row: Model, *, keep: bool = True) -> None:
    """Save a new row and give it its key. keep: else the same statement inserts nothing. No signal is sent."""
    sql, columns = _insertion(type(row), connection.vendor)
    if found := ask(sql, [*(read(row) for read in columns), keep]):
        [(row.pk,)] = found
        row._state.adding, row._state.db = False, connection.alias


def update_one(row: Model, *names: str, keep: bool = True) -> None:
    """Write these fields of a row. keep: else the same statement changes no row. No signal is sent."""
    sql, columns = _change(type(row), names, connection.vendor)
    tell(sql, [*(read(row) for read in columns), row.pk, keep])


@lru_cache
def _insertion(model: type[Model], vendor: str) -> tuple[str, Columns]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    # The names are those of the model.
    sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) SELECT {_places(fields)} WHERE %s'
    return f'{sql} RETURNING "{model._meta.pk.column}"', list(map(_column, fields))


@lru_cache
def _change(model: type[Model], names: tuple[str, ...], vendor: str) -> tuple[str, Columns]:
    fields = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f'"{field.column}" = %s' for field in fields)
    sql = f'UPDATE "{model._meta.db_table}" SET {columns} WHERE "{model._meta.pk.column}" = %s AND %s'  # noqa: S608
    return sql, list(map(_column, fields))


def _places(fields: Iterable[Field]) -> str:
    """Of a SELECT, whose types PostgreSQL cannot tell from the table."""
    # Without their length, to which a cast would cut.
    types = (field.db_type(connection).partition("(")[0] for field in fields)
    return ", ".join(f"%s::{each}" if connection.vendor == "postgresql" else "%s" for each in types)


def _column(field: Field) -> Callable[[Model], Any]:
    read, send = attrgetter(field.attname), how_to_send(field)
    return read if send is None else lambda row: None if (value := read(row)) is None else send(value)


def how_to_send(field: Field) -> Callable[[Any], Any] | None:
    """What makes a value of the field one that the driver takes; None where it takes it as it stands."""
    kind = field.get_internal_type()
    if kind in _PLAIN:
        return None
    if kind == "JSONField":
        # What is saved here is never circular, and to make sure of that takes as long as all the rest.
        encode = (field.encoder or json.JSONEncoder)(check_circular=False).encode
        return partial(_as_json, encode)
    if kind == "DateTimeField":
        return _as_text if connection.vendor == "sqlite" else connection.ops.adapt_datetimefield_value
    return lambda value: field.get_db_prep_save(value, connection)


def _as_text(moment: datetime) -> str:
    # As Django writes it, which takes ten times as long to find out the time zone of the connection: it is always UTC.
    return str(moment if moment.tzinfo is UTC else moment.astimezone(UTC))[: -len("+00:00")]


def _as_json(encode: Callable[[Any], str], value: Any) -> str:
    # Most lists and objects are empty.
    if type(value) is Json:
        return value
    return "[]" if value == [] else "{}" if value == {} else encode(value)
