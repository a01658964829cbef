"""The program's version and its environment: file permissions, processors, storage errors, SQLite's write lock."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection

VERSION = "0.2.0"


# --- Whether the program runs from a checkout of the repository or is installed.


IN_CHECKOUT = (Path(__file__).resolve().parents[1] / "manage.py").is_file()


# --- File permissions.
#
# Files in the data folder contain texts, judgments and password hashes, so only their owner may read them. Files that a
# user writes elsewhere, such as an exported set, get the permissions that the user's umask allows.


UMASK = 0o077
FOLDER = 0o700  # the mode of the data folder


# The umask can only be read by setting it, so UMASK is set and immediately reset.
_SHELL_UMASK = os.umask(UMASK)
os.umask(_SHELL_UMASK)


@contextmanager
def private() -> Iterator[None]:
    """Create all files in this block with owner-only permissions. This affects all threads of the process."""
    previous = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(previous)


def release(path: Path) -> None:
    """Give a file or folder outside the data folder the default permissions under the user's umask."""
    path.chmod((0o777 if path.is_dir() else 0o666) & ~_SHELL_UMASK)


# --- Available processors.


_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # holds a container's CPU quota and period (microseconds); "max" is no limit


def usable() -> int:
    """Return the number of processors available to this process, at least 1.

    CPU affinity and a container's quota are taken into account.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text().split()
        allowed = min(allowed, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # not in a container, or no limit is set
    return max(1, allowed)


# --- Storage errors: a disk is full or read-only, or the database cannot be reached.


_FILE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_SQLITE_ERRORS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
# Classes of PostgreSQL errors: connection exceptions, insufficient resources such as disk space, shutdown by an
# operator, and system errors. The last entry is a single error code, for a read-only transaction.
_POSTGRESQL_ERRORS = ("08", "53", "57P", "58", "25006")
# Suffixes of the files that SQLite and Assay create next to a database while it is in use.
_SUFFIXES = ("-wal", "-shm", "-journal", ".writers")


class DatabaseAway(OperationalError):
    """Raised if the database file of an existing installation is missing. The message is meant for users."""


def check_not_away(path: str) -> None:
    """Raise DatabaseAway if other files of the installation exist, but the database file doesn't.

    SQLite would create an empty database in its place. It would also delete the -wal file, which may contain answers.
    """
    corpora = Path(settings.DATA_DIR) / "corpora"
    signs = [f"{path}{end}" for end in _SUFFIXES if os.path.exists(f"{path}{end}")]
    if corpora.is_dir() and any(corpora.iterdir()):
        signs.append(str(corpora))
    # Check the database file last. A new installation creates it first, so once other files exist, it exists as well.
    if signs and not os.path.exists(path):
        raise DatabaseAway(
            f"The database file {path} is missing, but {signs[0]} exists. Nothing was changed, and no empty database "
            "was created. Move the file back, restore it from a backup, or correct ASSAY_DATA_DIR or DATABASE_URL. For "
            "a new installation, set ASSAY_DATA_DIR to an empty folder."
        )


def is_storage_fault(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, means that no data can be stored at the moment."""
    while error is not None:
        if isinstance(error, DatabaseAway):
            return True
        if isinstance(error, OSError) and error.errno in _FILE_ERRORS:
            return True
        if isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _SQLITE_ERRORS:
            return True
        if str(getattr(error, "sqlstate", None) or "").startswith(_POSTGRESQL_ERRORS):
            return True
        # psycopg's error has no code if the server cannot be reached.
        if type(error).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError":
            return True
        error = error.__cause__ or error.__context__
    return False


# --- Optional writes, which are skipped if the user would have to wait for them.


class Occupied(Exception):
    """Raised if another process holds SQLite's write lock.

    A process that opens a large task can hold the lock for many seconds.
    """


@contextmanager
def not_waiting() -> Iterator[None]:
    """Raise Occupied in this block instead of waiting for SQLite's write lock."""
    database: Any = connection  # with an attribute of deploy/sqlite/base.py
    database.waits_to_write = False
    try:
        yield
    finally:
        database.waits_to_write = True
