"""Functions that create and migrate the database, in one process at a time, and find harmful PostgreSQL settings."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from corpora.system import FOLDER, check_not_away


def prepare() -> None:
    with _migration_lock() as lock:
        _migrate(lock, is_new=_is_new(lock))


def prepare_new() -> bool:
    """Create the tables if the database is new, so that any command may be the first one that a user runs.

    Return whether the database was new. If an older version of Assay created it, it stays unchanged until `assay serve`
    runs, because the user should make a backup first.
    """
    # Check only while holding the lock, because another process may be creating the tables.
    with _migration_lock() as lock:
        is_new = _is_new(lock)
        if is_new:
            _migrate(lock, is_new=True)
    return is_new


def _is_new(lock: TextIO) -> bool:
    """Return whether the database has no tables, or only some because a process was killed while it created them."""
    lock.seek(0)
    return _name() in lock.read().splitlines() or not MigrationRecorder(connection).has_table()


def _migrate(lock: TextIO, *, is_new: bool) -> None:
    if is_new:
        lock.write(f"{_name()}\n")
        lock.flush()
    call_command("migrate", verbosity=0)
    lock.truncate(0)


def _name() -> str:
    return str(connection.settings_dict["NAME"])


@contextmanager
def _migration_lock() -> Iterator[TextIO]:
    if connection.vendor == "sqlite":
        check_not_away(_name())
    # Reading the secret keys creates the data folder. If the environment has the keys, nothing has created it yet.
    settings.DATA_DIR.mkdir(FOLDER, parents=True, exist_ok=True)
    with (settings.DATA_DIR / "migrating.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


# --- PostgreSQL settings that slow Assay down or endanger saved answers

# Setting -> (value that it must not have on our connections, effect of that value).
HARMFUL = {
    "fsync": ("off", "a power failure can destroy the whole database"),
    "full_page_writes": ("off", "a power failure can destroy the whole database"),
    "synchronous_commit": ("off", "a crash loses answers that people saw as saved"),
    "zero_damaged_pages": ("on", "damaged rows are deleted without an error"),
    "jit": ("on", "each answer takes seconds, because PostgreSQL compiles its statements every time"),
    "autovacuum": ("off", "statistics become outdated and tables grow, so answers become slow"),
    "track_counts": ("off", "autovacuum does not run, so answers become slow"),
}
METHODS = "is off, so PostgreSQL cannot plan the statements of an answer well, and answers are slow"
SETTINGS = """
    SELECT name, setting
    FROM pg_settings
    WHERE name = ANY(%s) OR (name LIKE 'enable\\_%%' AND boot_val = 'on' AND setting = 'off')
    ORDER BY name
"""


def harmful_settings() -> list[str]:
    """Return a sentence for each harmful setting of the database connection, with advice on how to change it.

    SQLite has no such settings.
    """
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS, [list(HARMFUL)])
        rows = cursor.fetchall()
    return [
        f"PostgreSQL's {name} is {value}: {HARMFUL[name][1]}. Set {name} = {'on' if value == 'off' else 'off'}."
        if name in HARMFUL
        else f"PostgreSQL's {name} {METHODS}. Set {name} = on."
        for name, value in rows
        if name not in HARMFUL or value == HARMFUL[name][0]
    ]


@checks.register(checks.Tags.database)
def check_settings(databases: Any = None, **_: Any) -> list[checks.Warning]:
    """Return a warning for each harmful setting. `assay django check --database default` runs this check."""
    return [checks.Warning(sentence, id="annotate.W001") for sentence in harmful_settings()] if databases else []
