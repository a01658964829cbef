"""The tables of the database, made or brought up to date, by one process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from corpora.system import FOLDER, check_not_away


def prepare() -> None:
    with _alone() as lock:
        _migrate(lock, is_new=_is_new(lock))


def prepare_new() -> bool:
    """For a database without any tables, so that any command may be the first one; returns whether it was. A database
    that is older than the program stays as it is until `assay serve` is run: it should be copied first.
    """
    # Not asked before it is our turn: a process that makes the tables has made some of them.
    with _alone() as lock:
        is_new = _is_new(lock)
        if is_new:
            _migrate(lock, is_new=True)
    return is_new


def _is_new(lock: TextIO) -> bool:
    """Also where a process that made the tables was killed before it had made all: they hold nothing yet."""
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
def _alone() -> Iterator[TextIO]:
    if connection.vendor == "sqlite":
        check_not_away(_name())
    # Where the keys come from the environment, nobody has made the folder to keep them in.
    settings.DATA_DIR.mkdir(FOLDER, parents=True, exist_ok=True)
    with (settings.DATA_DIR / "migrating.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
