"""Errors that mean that nothing can be stored now: a full or read-only disk, or a database that is away."""

import errno
import os
import sqlite3
from pathlib import Path

from django.conf import settings
from django.db import OperationalError

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
