"""Statements whose SQL is built once, for what is asked with every answer.

Django builds the SQL of a query anew whenever it is asked. Of the twenty statements of an answer the building took
several times as long as the database did.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache, partial, wraps
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.query import ModelIterable, get_related_populators

from corpora.database.bulk_rows import how_to_send

LARGEST = 2**63 - 1
Values = Callable[[Model], list[Any]]  # of a row: those of some fields, as the driver takes them


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
        given = [as_sent(value) for value in values]
        said = [given[each.place] if isinstance(each, Given) else each for each in built.parameters]
        return list(map(built.instance if built.model else tuple, built.read(ask(built.sql, said))))

    return run


def as_sent(value: Any) -> Any:
    """A value in the form that the database's driver takes."""
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    # A number may come from an address; no key is as large as the largest that there is room for.
    return min(max(value, -LARGEST), LARGEST) if type(value) is int else value


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
    sql, values = _insertion(type(row), connection.vendor)
    if found := ask(sql, [*values(row), keep]):
        [(row.pk,)] = found
        row._state.adding, row._state.db = False, connection.alias


def update_one(row: Model, *names: str, keep: bool = True) -> None:
    """Write these fields of a row. keep: else the same statement changes no row. No signal is sent."""
    sql, values = _change(type(row), names, connection.vendor)
    tell(sql, [*values(row), row.pk, keep])


@lru_cache
def _insertion(model: type[Model], vendor: str) -> tuple[str, Values]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    # The names are those of the model.
    sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) SELECT {_places(fields)} WHERE %s'
    return f'{sql} RETURNING "{model._meta.pk.column}"', _values(fields)


@lru_cache
def _change(model: type[Model], names: tuple[str, ...], vendor: str) -> tuple[str, Values]:
    fields = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f'"{field.column}" = %s' for field in fields)
    sql = f'UPDATE "{model._meta.db_table}" SET {columns} WHERE "{model._meta.pk.column}" = %s AND %s'  # noqa: S608
    return sql, _values(fields)


def _places(fields: Iterable[Field]) -> str:
    """Of a SELECT, whose types PostgreSQL cannot tell from the table."""
    # Without their length, to which a cast would cut.
    types = (field.db_type(connection).partition("(")[0] for field in fields)
    return ", ".join(f"%s::{each}" if connection.vendor == "postgresql" else "%s" for each in types)


def _values(fields: Iterable[Field]) -> Values:
    how = [(field.attname, how_to_send(field)) for field in fields]

    def values(row: Model) -> list[Any]:
        read = ((getattr(row, name), send) for name, send in how)
        return [value if value is None or send is None else send(value) for value, send in read]

    return values
