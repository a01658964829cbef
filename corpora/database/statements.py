"""Queries and writes whose SQL is built only once, for the statements that run with every answer.

Django rebuilds a query's SQL on every call. Saving an answer takes twenty statements, and building their SQL took
several times as long as running them.
"""

import json
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial, reduce, wraps
from itertools import count
from operator import attrgetter
from typing import Any, Self, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Aggregate, Expression, Field, Model, QuerySet, TextField
from django.db.models.base import ModelState
from django.db.models.expressions import Col
from django.db.models.query import ModelIterable, get_related_populators

M = TypeVar("M", bound=Model)
LARGEST = 2**63 - 1

# Field types whose values the drivers accept unchanged. Values of all other types must be converted first.
_PLAIN = {
    "BigAutoField", "BooleanField", "CharField", "FloatField", "ForeignKey", "OneToOneField", "PositiveBigIntegerField",
    "PositiveIntegerField", "PositiveSmallIntegerField", "SlugField", "TextField",
}  # fmt: skip


class Json(str):
    """A value for a JSON field that has already been serialized."""


# A function that returns the values of a row's columns, and the functions that convert some of them, by index.
Columns = tuple[Callable[[Model], tuple[Any, ...]], list[tuple[int, Callable[[Any], Any]]]]


class Given(Expression):
    """A parameter of a prepared query.

    place: the parameter's index in the values that are passed when the query is run
    """

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class JsonRows(Aggregate):
    """All rows of a query as the text of a JSON array of arrays. It is one value, which is read much faster."""

    template = "JSON_GROUP_ARRAY(JSON_ARRAY(%(expressions)s))"
    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(compiler, connection, template="JSONB_AGG(JSONB_BUILD_ARRAY(%(expressions)s))::text")


class _Built:
    """A query's SQL, and everything that is needed to convert its rows.

    number: how many values a run of the query has
    kept: how many rows are read only once
    """

    def __init__(self, queryset: QuerySet[Any, Any], number: int, cache_size: int) -> None:
        compiler = queryset.query.get_compiler(connection=connection)
        self.sql, parameters = compiler.as_sql()
        # Each parameter is one of the values of a run, or one of the constants that follow them.
        self.constants = [value for value in parameters if not isinstance(value, Given)]
        constants = count(number)
        self.order = [value.place if isinstance(value, Given) else next(constants) for value in parameters]
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        converters = compiler.get_converters(columns).items()
        self.readers = [(index, _how_to_read(column, used)) for index, (used, column) in converters]
        self.model: type[Model] | None = None
        if issubclass(queryset._iterable_class, ModelIterable):
            of_model = compiler.klass_info["select_fields"]
            self.model = compiler.klass_info["model"]
            self.model_columns = slice(of_model[0], of_model[-1] + 1)
            self.names = [column.target.attname for column in columns[self.model_columns]]
            populators: Any = get_related_populators  # the stubs describe a later version of Django
            self.related = populators(compiler.klass_info, compiler.select, DEFAULT_DB_ALIAS)
            self.more = (compiler.annotation_col_map or {}).items()
        self.read = lru_cache(cache_size)(self._read) if cache_size else self._read

    def _read(self, values: tuple[Any, ...]) -> Any:
        """Return a row as a model's instance or, if the query selects single columns, as a tuple."""
        row = list(values)
        for index, reader in self.readers:
            if (value := row[index]) is not None:
                row[index] = reader(value)
        if self.model is None:
            return tuple(row)
        instance = _loaded(self.model, self.names, row[self.model_columns])
        for populator in self.related:
            populator.populate(row, instance)
        for name, index in self.more:
            setattr(instance, name, row[index])
        return instance


def _how_to_read(column: Any, converters: list[Any]) -> Callable[[Any], Any]:
    """Return a function that converts a column's values from the driver as Django's converters do."""
    field: Any = column.output_field if isinstance(column, Col) else None
    kind = field and field.get_internal_type()
    if kind == "JSONField" and field.decoder is None:
        return _from_json
    if kind == "DateTimeField" and connection.vendor == "sqlite":
        return _in_utc
    if kind == "BooleanField":
        return bool
    return lambda value: reduce(lambda read, convert: convert(read, column, connection), converters, value)


def _loaded(model: type[M], names: Iterable[str], values: Iterable[Any]) -> M:
    """Return a row from the database in a third of the time that Django takes.

    It skips `__init__`, which sorts arguments and sends signals that have no receivers here.
    """
    row = model.__new__(model)
    row.__dict__.update(zip(names, values, strict=True))
    row._state = ModelState()
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    return row


class LoadedRow(Model):
    """A base class of the models that every answer reads as related rows."""

    class Meta:
        abstract = True

    # The stub has the signature of Django 6.
    @classmethod
    def from_db(  # type: ignore[override]
        cls, db: str | None, field_names: Collection[str], values: Collection[Any]
    ) -> Self:
        return _loaded(cls, field_names, values)


def prepared(build: Callable[..., QuerySet[Any, Any]], *, cache_size: int = 0) -> Callable[..., list[Any]]:
    """Decorate a function that returns a QuerySet so that it returns the rows instead.

    The SQL is built only once per thread. Later calls reuse it with new values.

    build: the function to decorate. Its arguments may be keys, texts, numbers, booleans and times, and it must only
        pass them on to the query. Values that change between calls, such as the current time, must be arguments.
    cache_size: for rows that rarely change, the number of rows that each thread caches. While a row has the same
        values, the calls return the same instance, which nobody may change.
    """

    @wraps(build)
    def run(*values: Any) -> list[Any]:
        cache_key = build, len(values)
        built = _state.built.get(cache_key)
        if built is None:
            query = build(*map(Given, range(len(values))))
            built = _state.built[cache_key] = _Built(query, len(values), cache_size)
        adapted = [*map(_adapted, values), *built.constants]
        return list(map(built.read, ask(built.sql, [adapted[place] for place in built.order])))

    return run


def _adapted(value: Any) -> Any:
    if type(value) is int:
        # A number from a URL may be too large for the database. It is reduced to LARGEST, which no key reaches.
        return value if -LARGEST <= value <= LARGEST else LARGEST if value > 0 else -LARGEST
    return _time_sender()(value) if isinstance(value, datetime) else value


def ask(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run SQL in the same way as `tell`, and return the rows."""
    database, cursor = _cursor()
    with database.wrap_database_errors:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def tell(sql: str, values: Sequence[Any]) -> None:
    """Run SQL that is the same on every call.

    PostgreSQL parses and plans such SQL only once per connection, and Python's SQLite driver caches all SQL. All
    statements share a cursor, because the drivers cache information about types in the cursor.
    """
    database, cursor = _cursor()
    with database.wrap_database_errors:
        cursor.execute(sql, values)


def _cursor() -> tuple[Any, Any]:
    """Return the connection and the driver's cursor, or Django's if statements are logged or watched, as in tests."""
    # A thread has a second connection in an event loop, so this is looked up anew.
    database: Any = connections[DEFAULT_DB_ALIAS]
    if database.queries_logged or database.execute_wrappers:
        return database, database.cursor()
    # Django does the same before it runs a statement.
    database.close_if_health_check_failed()
    if _state.cursor is None or _state.cursor.connection is not database.connection:
        database.ensure_connection()
        _state.cursor = _new_cursor(database)
    database.validate_no_broken_transaction()
    return database, _state.cursor


class _ThreadState(threading.local):
    """The cursor and the built queries that belong to one thread."""

    def __init__(self) -> None:
        self.built: dict[tuple[Any, int], _Built] = {}
        self.cursor: Any = None


_state = _ThreadState()


def _new_cursor(database: Any) -> Any:
    if database.vendor != "postgresql":
        return database.create_cursor()
    # Without this setting, PostgreSQL would spend 0.25 ms on a new plan whenever it expects one to be cheaper.
    database.connection.execute("SET plan_cache_mode = force_generic_plan")
    return _prepared_cursor()(database.connection)


@lru_cache
def _prepared_cursor() -> type[Any]:
    """Return a psycopg cursor class that prepares statements on the server.

    The class is created on demand, because psycopg may not be installed.
    """
    import psycopg

    class Cursor(psycopg.RawCursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> "Cursor":
            return super().execute(_numbered(query), params, **options | {"prepare": True})

    return Cursor


@lru_cache
def _numbered(sql: str) -> str:
    """Return SQL with numbered placeholders, as PostgreSQL requires.

    Otherwise, psycopg would number them on every call.
    """
    start, *parts = sql.split("%s")
    return "".join([start, *(f"${n}{part}" for n, part in enumerate(parts, 1))]).replace("%%", "%")


# --- Writes of single rows.


def new_row(model: type[M], **values: Any) -> M:
    """Return a new row in a fifth of the time that the model's constructor takes. `insert_one` saves it.

    values: values of fields by name; all others have their defaults.
    """
    row = model.__new__(model)
    row._state = ModelState()
    attributes, related = row.__dict__, _related(model)
    same, made = _defaults(model)
    attributes.update(same)
    for name, make in made.items():
        attributes[name] = make()
    for name, value in values.items():
        if (field := related.get(name)) is None:
            attributes[name] = value
            continue
        row._state.fields_cache[name] = value
        attributes[field.attname] = None if value is None else value.pk
        if field.one_to_one and value is not None:
            field.remote_field.set_cached_value(value, row)
    return row


@lru_cache
def _defaults(model: type[Model]) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """Return the default values of the fields, and the functions that make those that each row has for itself."""
    fields: Any = model._meta.concrete_fields
    made = {field.attname: field.default for field in fields if field.has_default() and callable(field.default)}
    same = {field.attname: field.get_default() for field in fields if field.attname not in made}
    return same, made


@lru_cache
def _related(model: type[Model]) -> dict[str, Any]:
    """Return the foreign keys by name."""
    return {field.name: field for field in model._meta.concrete_fields if field.is_relation}


def insert_one(row: Model, *, keep: bool = True) -> None:
    """Save a new row and set its primary key. No signal is sent.

    keep: if False, run the same statement but insert nothing
    """
    sql, columns = _insertion(type(row))
    if rows := ask(sql, [*_values(row, columns)[:-1], keep]):
        [(row.pk,)] = rows
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update_one(row: Model, *names: str, keep: bool = True) -> None:
    """Write the named fields of a row to the database. No signal is sent.

    keep: if False, run the same statement but change nothing
    """
    sql, columns = _change(type(row), names)
    tell(sql, [*_values(row, columns), keep])


@lru_cache
def _insertion(model: type[Model]) -> tuple[str, Columns]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    # The names in the SQL come from the model, so they are safe.
    sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) SELECT {_places(fields)} WHERE %s'
    return f'{sql} RETURNING "{model._meta.pk.column}"', _columns(model, fields)


@lru_cache
def _change(model: type[Model], names: tuple[str, ...]) -> tuple[str, Columns]:
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f'"{field.column}" = %s' for field in fields)
    sql = f'UPDATE "{model._meta.db_table}" SET {columns} WHERE "{model._meta.pk.column}" = %s AND %s'  # noqa: S608
    return sql, _columns(model, fields)


def _places(fields: Iterable["Field[Any, Any]"]) -> str:
    """Return the placeholders for a SELECT of new values.

    On PostgreSQL, each placeholder has a cast, because in a SELECT the server cannot infer the types from the table.
    """
    # The length of a type such as varchar(200) is omitted, because a cast to it would truncate longer values.
    types = ((field.db_type(connection) or "").partition("(")[0] for field in fields)
    return ", ".join(f"%s::{db_type}" if connection.vendor == "postgresql" else "%s" for db_type in types)


def _columns(model: type[Model], fields: list[Any]) -> Columns:
    """Return the columns of these fields, followed by that of the primary key."""
    senders = [(index, send) for index, field in enumerate(fields) if (send := how_to_send(field))]
    return attrgetter(*(field.attname for field in fields), model._meta.pk.attname), senders


def _values(row: Model, columns: Columns) -> list[Any]:
    """Return a row's values in the form that the driver accepts."""
    get, senders = columns
    values = list(get(row))
    for index, send in senders:
        if values[index] is not None:
            values[index] = send(values[index])
    return values


def how_to_send(field: "Field[Any, Any]") -> Callable[[Any], Any] | None:
    """Return a function that converts the field's values for the driver, or None if they need no conversion."""
    kind = field.get_internal_type()
    if kind in _PLAIN:
        return None
    if kind == "JSONField":
        # Saved values never contain themselves, and checking for this would double the time.
        encoder: type[json.JSONEncoder] = getattr(field, "encoder", None) or json.JSONEncoder
        encode = encoder(check_circular=False).encode
        return partial(_as_json, encode)
    if kind == "DateTimeField":
        return _time_sender()
    return lambda value: field.get_db_prep_save(value, connection)


@lru_cache
def _time_sender() -> Callable[[datetime], Any]:
    return _as_text if connection.vendor == "sqlite" else connection.ops.adapt_datetimefield_value


def _as_text(moment: datetime | str) -> str:
    # The result is the same as Django's. Django takes ten times as long, because it looks up the connection's time
    # zone, which here is always UTC. Texts are already in UTC.
    in_utc = moment if isinstance(moment, str) or moment.tzinfo is UTC else moment.astimezone(UTC)
    return str(in_utc)[: -len("+00:00")]


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


_decode = json.JSONDecoder().raw_decode  # `decode` would search for spaces, which stored values never begin with


def _from_json(text: str) -> Any:
    return [] if text == "[]" else {} if text == "{}" else _decode(text)[0]


def _as_json(encode: Callable[[Any], str], value: Any) -> str:
    # Empty lists and objects need no encoder. Most values are empty.
    if type(value) is Json:
        return value
    return "[]" if value == [] else "{}" if value == {} else encode(value)
