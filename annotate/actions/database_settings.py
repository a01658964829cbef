"""PostgreSQL settings that slow Assay down or put acknowledged answers at risk."""

from typing import Any

from django.core import checks
from django.db import connection

# Setting -> the value that it must not have on our connections, and what that value does.
HARMFUL = {
    "fsync": ("off", "a power failure can destroy the whole database"),
    "full_page_writes": ("off", "a power failure can destroy the whole database"),
    "synchronous_commit": ("off", "a crash loses answers that people saw as saved"),
    "zero_damaged_pages": ("on", "damaged rows are deleted without an error"),
    "jit": ("on", "each answer takes seconds, because PostgreSQL compiles its statements every time"),
    "autovacuum": ("off", "statistics grow old and tables grow, so answers become slow"),
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
    """One sentence for each setting of this connection that does harm, and how to change it. Empty on SQLite."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS, [list(HARMFUL)])
        found = cursor.fetchall()
    return [
        f"PostgreSQL's {name} is {value}: {HARMFUL[name][1]}. Set {name} = {'on' if value == 'off' else 'off'}."
        if name in HARMFUL
        else f"PostgreSQL's {name} {METHODS}. Set {name} = on."
        for name, value in found
        if name not in HARMFUL or value == HARMFUL[name][0]
    ]


@checks.register(checks.Tags.database)
def check_settings(databases: Any = None, **_: Any) -> list[checks.Warning]:
    """`assay django check --database default`."""
    return [checks.Warning(sentence, id="annotate.W001") for sentence in harmful_settings()] if databases else []
