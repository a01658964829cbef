"""The tables of the database, made or brought up to date, by one process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder


def prepare() -> None:
    with _alone():
        call_command("migrate", verbosity=0)


def prepare_new() -> bool:
    """For a database without any tables, so that any command may be the first one; returns whether it was. A database
    that is older than the program stays as it is until `assay serve` is run: it should be copied first.
    """
    # Not asked before it is our turn: a process that makes the tables has made some of them.
    with _alone():
        is_new = not MigrationRecorder(connection).has_table()
        if is_new:
            call_command("migrate", verbosity=0)
    return is_new


@contextmanager
def _alone() -> Iterator[None]:
    # Where the keys come from the environment, nobody has made the folder to keep them in.
    settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
    with (settings.DATA_DIR / "migrating.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
