"""A cursor of psycopg that has PostgreSQL keep its statements; imported only where psycopg is installed and used."""

from typing import Any

import psycopg


class Cursor(psycopg.Cursor[Any]):
    def execute(self, query: Any, params: Any = None, **how: Any) -> "Cursor":
        return super().execute(query, params, **how | {"prepare": True})
