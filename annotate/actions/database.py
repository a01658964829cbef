"""Create and migrate the database, in one process at a time, and warn about harmful PostgreSQL settings."""

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

    only_new: whether to leave an older version's database unchanged, so that the user can make a backup before
        `assay serve` updates it
    """
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        check_not_away(name)
    # Loading the secret keys creates the data folder, unless they are set in the environment.
    settings.DATA_DIR.mkdir(FOLDER, parents=True, exist_ok=True)
    with (settings.DATA_DIR / "migrating.lock").open("a+") as lock:
        # Check only while holding the lock, because another process may be creating the tables.
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        # The lock file names a migration in progress. If the process is killed, the next one finishes the migration.
        lines, update = lock.read().splitlines(), f"{name} is being updated"
        is_new = name in lines or not MigrationRecorder(connection).has_table()
        if is_new or (not only_new and (update in lines or missing_migrations())):
            lock.write(f"{name if is_new else update}\n")
            lock.flush()
            call_command("migrate", verbosity=0)
            lock.truncate(0)
    return is_new


def missing_migrations() -> int:
    """Count the migrations that have not been applied. They are found by file name, because importing them is slow."""
    applied = MigrationRecorder(connection).applied_migrations()
    return sum((app, name) not in applied for app, name in _migrations())


def _migrations() -> Iterator[tuple[str, str]]:
    """Yield each migration as (label of the app, name)."""
    for app in apps.get_app_configs():
        spec = find_spec(f"{app.name}.migrations")
        for module in iter_modules(spec.submodule_search_locations if spec else ()):
            yield app.label, module.name


# --- PostgreSQL settings that slow Assay down or endanger saved answers

# Setting -> (harmful value, its effect).
HARMFUL = {
    "fsync": ("off", "a power failure can destroy the whole database"),
    "full_page_writes": ("off", "a power failure can destroy the whole database"),
    "synchronous_commit": ("off", "a crash loses answers that annotators saw as saved"),
    "zero_damaged_pages": ("on", "damaged rows are deleted without an error"),
    "jit": ("on", "each answer takes seconds, because PostgreSQL compiles its statements every time"),
    "autovacuum": ("off", "statistics become outdated and tables grow, so answers become slow"),
    "track_counts": ("off", "autovacuum does not run, so answers become slow"),
}
METHODS = "is off, so PostgreSQL cannot choose the best plans, and saving an answer is slow"
SETTINGS = """
    SELECT name, setting
    FROM pg_settings
    WHERE name = ANY(%s) OR (name LIKE 'enable\\_%%' AND boot_val = 'on' AND setting = 'off')
    ORDER BY name
"""


def harmful_settings() -> list[str]:
    """Return a sentence about each harmful setting and how to change it. SQLite has no such settings."""
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
