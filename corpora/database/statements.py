"""Queries and writes whose SQL is built only once. They are used for the statements that run with every answer.

Django rebuilds a query's SQL on every call. Saving an answer takes twenty statements, and building their SQL would take
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

# Field types whose values can be passed to the drivers without conversion.
_PLAIN = {
    "BigAutoField", "BooleanField", "CharField", "FloatField", "ForeignKey", "OneToOneField", "PositiveBigIntegerField",
    "PositiveIntegerField", "PositiveSmallIntegerField", "SlugField", "TextField",
}  # fmt: skip


class Json(str):
    """A value for a JSON field that has already been serialized."""


# A function that gets a row's column values, and (index, converter) pairs for the values that need conversion.
Columns = tuple[Callable[[Model], tuple[Any, ...]], list[tuple[int, Callable[[Any], Any]]]]


class Parameter(Expression):
    """A parameter of a prepared query.

    place: index of the parameter in the arguments of each call
    """

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]


class JsonRows(Aggregate):
    """Aggregates all rows into the text of a JSON array of arrays. A single value is fetched much faster than rows."""

    template = "JSON_GROUP_ARRAY(JSON_ARRAY(%(expressions)s))"
    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(compiler, connection, template="JSONB_AGG(JSONB_BUILD_ARRAY(%(expressions)s))::text")


class _CompiledQuery:
    """A query's SQL, and everything needed to convert its rows.

    number: number of arguments per call
    cache_size: number of converted rows to cache; 0 for none
    """

    def __init__(self, queryset: QuerySet[Any, Any], number: int, cache_size: int) -> None:
        compiler = queryset.query.get_compiler(connection=connection)
        self.sql, parameters = compiler.as_sql()
        # A run's values consist of the call's arguments, followed by the constants. `order` has the index of each
        # SQL parameter in them.
        self.constants = [value for value in parameters if not isinstance(value, Parameter)]
        constants = count(number)
        self.order = [value.place if isinstance(value, Parameter) else next(constants) for value in parameters]
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        converters = compiler.get_converters(columns).items()
        self.readers = [(index, _row_converter(column, used)) for index, (used, column) in converters]
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
        """Convert a row to a model instance, or to a tuple if the query selects single columns."""
        row = list(values)
        for index, reader in self.readers:
            if (value := row[index]) is not None:
                row[index] = reader(value)
        if self.model is None:
            return tuple(row)
        instance = _build_instance(self.model, self.names, row[self.model_columns])
        for populator in self.related:
            populator.populate(row, instance)
        for name, index in self.more:
            setattr(instance, name, row[index])
        return instance


def _row_converter(column: Any, converters: list[Any]) -> Callable[[Any], Any]:
    """Return a function that converts a column's values from the driver, equivalent to Django's converters."""
    field: Any = column.output_field if isinstance(column, Col) else None
    kind = field and field.get_internal_type()
    if kind == "JSONField" and field.decoder is None:
        return _from_json
    if kind == "DateTimeField" and connection.vendor == "sqlite":
        return _in_utc
    if kind == "BooleanField":
        return bool
    return lambda value: reduce(lambda read, convert: convert(read, column, connection), converters, value)


def _build_instance(model: type[M], names: Iterable[str], values: Iterable[Any]) -> M:
    """Create a model instance for a row from the database, in a third of the time that Django takes.

    `__init__` is skipped. It would sort arguments and send signals, which have no receivers here.
    """
    row = model.__new__(model)
    row.__dict__.update(zip(names, values, strict=True))
    row._state = ModelState()
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    return row


class LoadedRow(Model):
    """Base class for models that are loaded as related rows with every answer. Instances are created faster."""

    class Meta:
        abstract = True

    # The stub has the signature of Django 6.
    @classmethod
    def from_db(  # type: ignore[override]
        cls, db: str | None, field_names: Collection[str], values: Collection[Any]
    ) -> Self:
        return _build_instance(cls, field_names, values)


def prepared(build: Callable[..., QuerySet[Any, Any]], *, cache_size: int = 0) -> Callable[..., list[Any]]:
    """Decorate a function that returns a QuerySet, so that it returns a list of rows instead.

    The SQL is built once per thread, and later calls reuse it with new values.

    build: function to decorate. Its arguments can be keys, texts, numbers, booleans and times, and it must only pass
        them on to the query. Values that change between calls, such as the current time, must be arguments.
    cache_size: number of rows that each thread caches, for rows that rarely change. As long as a row's values don't
        change, all calls return the same instance, which must not be modified.
    """

    @wraps(build)
    def run(*values: Any) -> list[Any]:
        cache_key = build, len(values)
        built = _state.built.get(cache_key)
        if built is None:
            query = build(*map(Parameter, range(len(values))))
            built = _state.built[cache_key] = _CompiledQuery(query, len(values), cache_size)
        adapted = [*map(_adapt, values), *built.constants]
        return list(map(built.read, fetch_rows(built.sql, [adapted[place] for place in built.order])))

    return run


def _adapt(value: Any) -> Any:
    if type(value) is int:
        # Numbers from URLs can be too large for the database. Clamp them to LARGEST, which no key reaches.
        return value if -LARGEST <= value <= LARGEST else LARGEST if value > 0 else -LARGEST
    return _time_sender()(value) if isinstance(value, datetime) else value


def fetch_rows(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run SQL that is the same on every call, as `run_sql` does, and return the rows."""
    database, cursor = _cursor()
    with database.wrap_database_errors:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def run_sql(sql: str, values: Sequence[Any]) -> None:
    """Run SQL that is the same on every call.

    PostgreSQL parses and plans such SQL once per connection, and Python's SQLite driver caches compiled statements. All
    statements share a cursor, because the drivers cache type information in the cursor.
    """
    database, cursor = _cursor()
    with database.wrap_database_errors:
        cursor.execute(sql, values)


def _cursor() -> tuple[Any, Any]:
    """Return the connection and the driver's cursor, or Django's if statements are logged or wrapped, as in tests."""
    # Look up the connection on every call, because a thread with an event loop has a second connection there.
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
    """A thread's cursor and compiled queries."""

    def __init__(self) -> None:
        self.built: dict[tuple[Any, int], _CompiledQuery] = {}
        self.cursor: Any = None


_state = _ThreadState()


def _new_cursor(database: Any) -> Any:
    if database.vendor != "postgresql":
        return database.create_cursor()
    # Otherwise, PostgreSQL would spend 0.25 ms on a new plan whenever it expects a custom plan to be cheaper.
    database.connection.execute("SET plan_cache_mode = force_generic_plan")
    return _prepared_cursor()(database.connection)


@lru_cache
def _prepared_cursor() -> type[Any]:
    """Create a psycopg cursor class that prepares statements on the server.

    The class is created lazily, because psycopg may not be installed.
    """
    import psycopg

    class Cursor(psycopg.RawCursor[Any]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> "Cursor":
            return super().execute(_number_placeholders(query), params, **options | {"prepare": True})

    return Cursor


@lru_cache
def _number_placeholders(sql: str) -> str:
    """Convert %s to PostgreSQL's numbered placeholders. Cached, because psycopg would convert on every call."""
    start, *parts = sql.split("%s")
    return "".join([start, *(f"${n}{part}" for n, part in enumerate(parts, 1))]).replace("%%", "%")


# --- Writes of single rows.


def new_row(model: type[M], **values: Any) -> M:
    """Create an unsaved row in a fifth of the time that the model's constructor takes. Save it with `insert_one`.

    values: values of fields by name; all other fields have their defaults
    """
    row = model.__new__(model)
    row._state = ModelState()
    attributes, related = row.__dict__, _relations(model)
    constants, factories = _defaults(model)
    attributes.update(constants)
    for name, factory in factories.items():
        attributes[name] = factory()
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
    """Return the fields' constant defaults, and the callable defaults, which must be called for each row."""
    fields: Any = model._meta.concrete_fields
    factories = {field.attname: field.default for field in fields if field.has_default() and callable(field.default)}
    constants = {field.attname: field.get_default() for field in fields if field.attname not in factories}
    return constants, factories


@lru_cache
def _relations(model: type[Model]) -> dict[str, Any]:
    """Return the model's foreign keys by name."""
    return {field.name: field for field in model._meta.concrete_fields if field.is_relation}


def insert_one(row: Model, *, keep: bool = True) -> None:
    """Insert a row and set its primary key. No signals are sent.

    keep: if False, run the same statement but insert nothing
    """
    sql, columns = _insert_statement(type(row))
    if rows := fetch_rows(sql, [*_values(row, columns)[:-1], keep]):
        [(row.pk,)] = rows
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update_one(row: Model, *names: str, keep: bool = True) -> None:
    """Update the named fields of a row in the database. No signals are sent.

    keep: if False, run the same statement but change nothing
    """
    sql, columns = _update_statement(type(row), names)
    run_sql(sql, [*_values(row, columns), keep])


@lru_cache
def _insert_statement(model: type[Model]) -> tuple[str, Columns]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    # The names in the SQL come from the model, so there is no risk of injection.
    sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) SELECT {_placeholders(fields)} WHERE %s'
    return f'{sql} RETURNING "{model._meta.pk.column}"', _columns(model, fields)


@lru_cache
def _update_statement(model: type[Model], names: tuple[str, ...]) -> tuple[str, Columns]:
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f'"{field.column}" = %s' for field in fields)
    sql = f'UPDATE "{model._meta.db_table}" SET {columns} WHERE "{model._meta.pk.column}" = %s AND %s'  # noqa: S608
    return sql, _columns(model, fields)


def _placeholders(fields: Iterable["Field[Any, Any]"]) -> str:
    """Return the placeholders for a SELECT of new values.

    On PostgreSQL, each placeholder has a cast, because the server cannot infer its type from the table in a SELECT.
    """
    # Omit the length of types such as varchar(200), because the cast would truncate longer values.
    types = ((field.db_type(connection) or "").partition("(")[0] for field in fields)
    return ", ".join(f"%s::{db_type}" if connection.vendor == "postgresql" else "%s" for db_type in types)


def _columns(model: type[Model], fields: list[Any]) -> Columns:
    """Return the columns for these fields, followed by the primary key."""
    senders = [(index, send) for index, field in enumerate(fields) if (send := driver_converter(field))]
    return attrgetter(*(field.attname for field in fields), model._meta.pk.attname), senders


def _values(row: Model, columns: Columns) -> list[Any]:
    """Return a row's values, converted for the driver."""
    get, senders = columns
    values = list(get(row))
    for index, send in senders:
        if values[index] is not None:
            values[index] = send(values[index])
    return values


def driver_converter(field: "Field[Any, Any]") -> Callable[[Any], Any] | None:
    """Return a function that converts the field's values for the driver, or None if no conversion is needed."""
    kind = field.get_internal_type()
    if kind in _PLAIN:
        return None
    if kind == "JSONField":
        # Skip the check for circular references, which would double the time. Saved values have none.
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
    # Equivalent to Django's conversion, which takes ten times as long because it looks up the connection's time zone.
    # Here, the time zone is always UTC. Strings are already in UTC.
    in_utc = moment if isinstance(moment, str) or moment.tzinfo is UTC else moment.astimezone(UTC)
    return str(in_utc)[: -len("+00:00")]


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


_decode = json.JSONDecoder().raw_decode  # skips the search for leading spaces in `decode`; stored values have none


def _from_json(text: str) -> Any:
    return [] if text == "[]" else {} if text == "{}" else _decode(text)[0]


def _as_json(encode: Callable[[Any], str], value: Any) -> str:
    # Most values are empty lists or objects, which need no encoder.
    if type(value) is Json:
        return value
    return "[]" if value == [] else "{}" if value == {} else encode(value)
