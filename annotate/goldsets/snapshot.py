"""One state of the database for as long as an export reads."""

from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_moment():
    """Everything read inside comes from one moment, however long it takes, and no writer is held up."""
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            yield
        elif connection.vendor == "postgresql":
            with transaction.atomic():
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield
        else:
            # atomic() would take the writers' lock.
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("COMMIT")
