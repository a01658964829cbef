"""The program's version and its environment: file permissions, processors, storage errors, SQLite's write lock."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import OperationalError, connection

VERSION = "0.2.0"


# --- Whether the program runs from a checkout or is installed.


IN_CHECKOUT = (Path(__file__).resolve().parents[1] / "manage.py").is_file()


# --- File permissions.
#
# Files in the data folder (texts, judgments, password hashes) are readable only by their owner. Files that a user
# writes elsewhere, such as an exported set, get the permissions of the user's umask.


UMASK = 0o077
FOLDER = 0o700  # mode of the data folder


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    found = os.umask(UMASK)
    os.umask(found)
    return found


_OF_SHELL = _umask()


@contextmanager
def private() -> Iterator[None]:
    """Create all files in this block with owner-only permissions, in every thread of the process."""
    before = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(before)


def release(path: Path) -> None:
    """Give a file or folder outside the data folder the permissions of the user's umask."""
    path.chmod((0o777 if path.is_dir() else 0o666) & ~_OF_SHELL)


# --- Available processors.


_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # a container's CPU quota and period (microseconds), or "max"


def usable() -> int:
    """Return the number of processors available to this process, at least 1, from its affinity and container quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text().split()
        allowed = min(allowed, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no container, or no limit
    return max(1, allowed)


# --- Storage errors: a full or read-only disk, or an unreachable database.


_FILES = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_SQLITE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
}
# PostgreSQL error classes: connection, resources such as disk space, operator shutdown, system; and read-only.
_POSTGRESQL = ("08", "53", "57P", "58", "25006")
# Suffixes of the files that SQLite and Assay create next to a database in use.
_BESIDE = ("-wal", "-shm", "-journal", ".writers")


class DatabaseAway(OperationalError):
    """The database file of an installation is missing. The message is meant for users."""


def check_not_away(path: str) -> None:
    """Check that a database file exists if its installation does.

    SQLite would create an empty file in its place and delete the -wal file, and answers with it.

    DatabaseAway: other files of the installation exist without it
    """
    corpora = Path(settings.DATA_DIR) / "corpora"
    signs = [f"{path}{end}" for end in _BESIDE if os.path.exists(f"{path}{end}")]
    if corpora.is_dir() and any(corpora.iterdir()):
        signs.append(str(corpora))
    # Checked last, because a process that sets up an installation creates the database first.
    if signs and not os.path.exists(path):
        raise DatabaseAway(
            f"The database file {path} is missing, but {signs[0]} is there: nothing was done, and no empty database "
            "was made. Move the file back or restore it from a backup (or correct ASSAY_DATA_DIR or DATABASE_URL); to "
            "start anew, set ASSAY_DATA_DIR to an empty folder."
        )


def is_storage_fault(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, means that nothing can be stored now."""
    while error is not None:
        if isinstance(error, DatabaseAway):
            return True
        if isinstance(error, OSError) and error.errno in _FILES:
            return True
        if isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _SQLITE:
            return True
        if str(getattr(error, "sqlstate", None) or "").startswith(_POSTGRESQL):
            return True
        # psycopg has no error code for an unreachable server.
        if type(error).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError":
            return True
        error = error.__cause__ or error.__context__
    return False


# --- Optional writes, which are skipped if they would make a reader wait.


class Occupied(Exception):
    """SQLite's write lock is held by another process, which can take many seconds while a large task is opened."""


@contextmanager
def not_waiting() -> Iterator[None]:
    """Raise Occupied in this block instead of waiting for SQLite's write lock."""
    connection.waits_to_write = False
    try:
        yield
    finally:
        connection.waits_to_write = True
