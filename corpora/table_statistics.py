"""PostgreSQL's statistics of tables that have grown, which its plans rest on.

Autovacuum gathers them too, but only once a minute. The server keeps the plans of an answer, so plans that were made
for a hundred rows would read through thousands, at three to five times the cost.
"""

import itertools
import logging

from django.db import Error, connection, transaction

ANSWERS = 50  # answers of a process between two looks
# Tables that hold half as many pages again as when their plans were made. A few pages are read as quickly as an index.
GROWN = """
    SELECT format('%I', relname)
    FROM pg_class
    WHERE relkind = 'r'
      AND relnamespace = current_schema()::regnamespace
      AND relowner = current_user::regrole
      AND pg_relation_size(oid) / current_setting('block_size')::int > 1.5 * relpages + 2
"""
logger = logging.getLogger(__name__)


def gather() -> None:
    """Gather the statistics of grown tables once the transaction is committed. On SQLite there is nothing to do."""
    if connection.vendor == "postgresql":
        transaction.on_commit(_gather)


def _gather() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(GROWN)
            if names := [name for (name,) in cursor.fetchall()]:
                # Without waiting for autovacuum, or for another process that does the same.
                cursor.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(names)}")
    except Error:
        # What was committed stands, and plans are slower until autovacuum comes.
        logger.warning("The statistics of grown tables could not be gathered.", exc_info=True)


_answers = itertools.count(1)


def note_answer() -> None:
    """Have the statistics gathered after every so many answers of this process."""
    if next(_answers) % ANSWERS == 0:
        gather()
