"""The program and the machine it runs on: version, rights of files, processors, full disks, a database that is away."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import OperationalError, connection

VERSION = "0.2.0"


# --- Whether the program is run from its source, or was installed.


IN_CHECKOUT = (Path(__file__).resolve().parents[1] / "manage.py").is_file()


# --- Who may read the files that the program makes.
#
# What lies in the data folder is its owner's alone: texts, judgments, hashes of passwords. What somebody has written
# elsewhere, such as an exported set, gets the rights that the umask of their shell gives, as of any other program.


UMASK = 0o077
FOLDER = 0o700  # the data folder


def _umask() -> int:
    """The system tells it only to whoever sets another."""
    found = os.umask(UMASK)
    os.umask(found)
    return found


_OF_SHELL = _umask()


@contextmanager
def private() -> Iterator[None]:
    """Whatever this process makes meanwhile, in all of its threads, is its owner's alone."""
    before = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(before)


def release(path: Path) -> None:
    """Give a file or folder that lies outside of the data folder the rights of the shell's umask."""
    path.chmod((0o777 if path.is_dir() else 0o666) & ~_OF_SHELL)


# --- How many processors this process may use.


_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds of CPU, and of which period; or "max"


def usable() -> int:
    """At least 1. A container's share counts, as does an affinity."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text().split()
        allowed = min(allowed, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no container, or no limit
    return max(1, allowed)


# --- Errors that mean that nothing can be stored now: a full or read-only disk, or a database that is away.


_FILES = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_SQLITE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
}
# PostgreSQL's classes: connection, resources (such as the disk), shut down by an operator, system; and read-only.
_POSTGRESQL = ("08", "53", "57P", "58", "25006")
# What lies beside a database file of SQLite that was in use.
_BESIDE = ("-wal", "-shm", "-journal", ".writers")


class DatabaseAway(OperationalError):
    """The database file is missing from an installation; str() says so in sentences for people."""


def check_not_away(path: str) -> None:
    """DatabaseAway where other files of an installation are there without the database file of that path. With an empty
    file in its place, SQLite would delete the -wal, and with it answers.
    """
    corpora = Path(settings.DATA_DIR) / "corpora"
    signs = [f"{path}{end}" for end in _BESIDE if os.path.exists(f"{path}{end}")]
    if corpora.is_dir() and any(corpora.iterdir()):
        signs.append(str(corpora))
    # Looked for last: whoever makes the file makes it first.
    if signs and not os.path.exists(path):
        raise DatabaseAway(
            f"The database file {path} is missing, but {signs[0]} is there: nothing was done, and no empty database "
            "was made. Move the file back or restore it from a backup (or correct ASSAY_DATA_DIR or DATABASE_URL); to "
            "start anew, set ASSAY_DATA_DIR to an empty folder."
        )


def is_storage_fault(error: BaseException | None) -> bool:
    """Whether the error, or one that led to it, is of this kind."""
    while error is not None:
        if isinstance(error, DatabaseAway):
            return True
        if isinstance(error, OSError) and error.errno in _FILES:
            return True
        if isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _SQLITE:
            return True
        if str(getattr(error, "sqlstate", None) or "").startswith(_POSTGRESQL):
            return True
        # psycopg has no code for a server that it cannot reach.
        if type(error).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError":
            return True
        error = error.__cause__ or error.__context__
    return False


# --- What need not be kept: it is written unless that would make somebody wait who only reads.


class Occupied(Exception):
    """Somebody else is SQLite's one writer, for many seconds where a large task is opened."""


@contextmanager
def not_waiting() -> Iterator[None]:
    """In this, what would wait for another writer of SQLite raises Occupied instead; elsewhere nobody waits so long."""
    connection.waits_to_write = False
    try:
        yield
    finally:
        connection.waits_to_write = True
