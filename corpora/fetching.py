"""Many rows at once out of the database, column by column and without objects; inserting.py is the way in."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC
from functools import reduce
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, QuerySet
from django.db.models.expressions import RawSQL


def fetched(query: QuerySet, size: int) -> Iterator[list[Sequence[Any]]]:
    """The columns of a query of values_list, for `size` of its rows at a time; the rows are never all in memory.

    Values are what Django makes of them. It would make them row by row; here each different one is made once, so values
    of one column that are lists or objects may be shared, and are not to be changed.
    """
    compiler = query.query.get_compiler(query.db)
    rows = compiler.execute_sql(chunked_fetch=True, chunk_size=size)
    made = compiler.get_converters([expression for expression, *_ in compiler.select])
    how = {place: _converting(compiler, *each) for place, each in made.items()}
    for some in rows:
        columns: list[Sequence[Any]] = [[row[place] for row in some] for place in range(len(some[0]))]
        for place, convert in how.items():
            known = {value: convert(value) for value in set(columns[place])}
            columns[place] = list(map(known.__getitem__, columns[place]))
        yield columns


def listed(keys: Iterable[int] | Iterable[str]) -> RawSQL:
    """Many keys as what a field is `__in`, sent as one parameter: Django prepares each of a list by itself, and the
    database reads as many places in the statement.
    """
    some = list(keys)
    if connection.vendor == "postgresql":
        of = "text" if some and isinstance(some[0], str) else "bigint"
        return RawSQL(f"SELECT unnest(%s::{of}[])", [some])  # noqa: S611 - one of these two words
    return RawSQL("SELECT value FROM json_each(%s)", [json.dumps(some)])


def _converting(compiler: Any, steps: Sequence[Callable], expression: Any) -> Callable[[Any], Any]:
    # Django takes the long way to say what zone a time is in that SQLite has: there it is always UTC.
    if connection.vendor == "sqlite" and isinstance(getattr(expression, "target", None), DateTimeField):
        return lambda value: None if value is None else value.replace(tzinfo=UTC)
    return lambda value: reduce(lambda found, step: step(found, expression, compiler.connection), steps, value)
