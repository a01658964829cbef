"""Errors that mean that nothing can be stored now: a full or read-only disk, or a database that is away."""

import errno
import sqlite3

_FILES = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_SQLITE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
}
# PostgreSQL's classes: connection, resources (such as the disk), shut down by an operator, system; and read-only.
_POSTGRESQL = ("08", "53", "57P", "58", "25006")


def is_storage_fault(error: BaseException | None) -> bool:
    """Whether the error, or one that led to it, is of this kind."""
    while error is not None:
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
