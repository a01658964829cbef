"""A cursor of psycopg that has PostgreSQL keep its statements; imported only where psycopg is installed and used."""

from functools import lru_cache
from itertools import count
from typing import Any

import psycopg


@lru_cache
def _numbered(sql: str) -> str:
    """With PostgreSQL's own marks of parameters, into which psycopg would turn Python's each time."""
    first, *rest = sql.split("%s")
    return "".join([first, *(f"${n}{part}" for n, part in zip(count(1), rest))]).replace("%%", "%")


class Cursor(psycopg.RawCursor[Any]):
    def execute(self, query: Any, params: Any = None, **how: Any) -> "Cursor":
        return super().execute(_numbered(query), params, **how | {"prepare": True})
