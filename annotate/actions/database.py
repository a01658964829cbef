"""Functions that create and migrate the database, in one process at a time, and find harmful PostgreSQL settings."""

import fcntl
from collections.abc import Iterator
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from corpora.system import FOLDER, check_not_away


def prepare(*, only_new: bool = False) -> bool:
    """Create or update the tables, in one process at a time. Return whether the database was new.

    only_new: whether to leave the database of an older version of Assay unchanged, so that the user can make a backup
        before `assay serve` updates it
    """
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        check_not_away(name)
    # Reading the secret keys from their file creates the data folder, but reading them from the environment does not.
    settings.DATA_DIR.mkdir(FOLDER, parents=True, exist_ok=True)
    with (settings.DATA_DIR / "migrating.lock").open("a+") as lock:
        # Check only while holding the lock, because another process may be creating the tables.
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        # While tables are being created or updated, the lock file says so, in case the process is killed.
        lines, update = lock.read().splitlines(), f"{name} is being updated"
        is_new = name in lines or not MigrationRecorder(connection).has_table()
        if is_new or (not only_new and (update in lines or missing_migrations())):
            lock.write(f"{name if is_new else update}\n")
            lock.flush()
            call_command("migrate", verbosity=0)
            lock.truncate(0)
    return is_new


def missing_migrations() -> int:
    """Return the number of migrations that the database lacks. They are not imported, because that takes long."""
    applied = MigrationRecorder(connection).applied_migrations()
    return sum((app, name) not in applied for app, name in _migrations())


def _migrations() -> Iterator[tuple[str, str]]:
    """Yield each migration as (label of the app, name)."""
    for app in apps.get_app_configs():
        spec = find_spec(f"{app.name}.migrations")
        for module in iter_modules(spec.submodule_search_locations if spec else ()):
            yield app.label, module.name


# --- PostgreSQL settings that slow Assay down or endanger saved answers

# Setting -> (harmful value, effect of this value).
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
