"""What need not be kept: it is written unless that would make somebody wait who only reads."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


class Occupied(Exception):
    """Somebody else is SQLite's one writer, for many seconds where a large task is opened."""


@contextmanager
def not_waiting() -> Iterator[None]:
    """In this, what would wait for another writer of SQLite raises Occupied instead; elsewhere nobody waits so long."""
    connection.waits_to_write = False
    try:
        yield
    finally:
        connection.waits_to_write = True
