"""Django's SQLite backend with a fair queue of writers.

SQLite allows one writer at a time. Its busy handler sleeps and retries, which starves some connections: with 32
writers, "database is locked" occurred even with a timeout of 20 s. Here, each write first takes an exclusive lock on a
file next to the database, for which the kernel queues the waiters. Reads take no lock, and optional writes
(corpora/system.py) do not wait for it.
"""

import fcntl
import os
import time
from functools import lru_cache
from urllib.parse import quote

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from corpora.system import Occupied, check_not_away


class Cursor(base.SQLiteCursorWrapper):
    """Django's cursor, with converted SQL cached. Statements here have no named parameters."""

    @staticmethod
    @lru_cache(maxsize=256)
    def convert_query(query, *, param_names=None):
        return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


# Whether to create a missing database file. None: only if no other file of an installation exists. A server never
# creates it, because it would continue with an empty database if the file was moved for a moment.
makes_file: bool | None = None
_waiting: dict[object, float] = {}  # start time by connection of this process that waits to write


def longest_wait() -> float:
    """Return the longest time that a connection of this process has been waiting to write (seconds)."""
    return time.monotonic() - min(list(_waiting.values()), default=time.monotonic())


# Statements that never write. Any other statement outside a transaction takes the lock while it runs.
READS = ("SELECT", "PRAGMA", "EXPLAIN", "SAVEPOINT", "RELEASE", "ROLLBACK")


def _identity(path: str) -> tuple[int, int] | None:
    """Return a file's device and inode, which survive renaming, or None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class DatabaseWrapper(base.DatabaseWrapper):
    _lock_file = None
    _lock_held = False
    waits_to_write = True

    _files: list[tuple[int, int] | None] | None = None  # identities at the time of connecting

    def get_new_connection(self, conn_params):
        path = str(conn_params["database"])
        if makes_file is None:
            check_not_away(path)
        if makes_file is False or (makes_file is None and os.path.exists(path)):
            # This mode never creates a file.
            conn_params = {
                **conn_params,
                "database": f"file:{quote(path)}?mode=rw",
                "uri": True,
            }
        connection = super().get_new_connection(conn_params)
        self._files = self._files_now()
        self.execute_wrappers = [*self.execute_wrappers, self._lock_single_write]
        return connection

    def _files_now(self):
        path = str(self.settings_dict["NAME"])
        return [_identity(path), _identity(f"{path}-wal")]

    def is_usable(self):
        """Return whether the database file is still the same; it may have been moved or replaced.

        Django calls this once per request. The -wal file stays the same while a connection has it open.
        """
        return self._files_now() == self._files and super().is_usable()

    def create_cursor(self, name=None):
        return self.connection.cursor(factory=Cursor)

    def _take_lock(self):
        if self._lock_file is None:
            path = f"{self.settings_dict['NAME']}.writers"
            try:
                self._lock_file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise OperationalError(f"{path} cannot be opened: {error.strerror}") from error
        _waiting[self] = time.monotonic()
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | (0 if self.waits_to_write else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise Occupied from error
        finally:
            del _waiting[self]
        self._lock_held = True

    def _drop_lock(self):
        if self._lock_held:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)
            self._lock_held = False

    def _lock_single_write(self, execute, sql, params, many, context):
        if self.in_atomic_block or self._lock_held or sql.lstrip().upper().startswith(READS):
            return execute(sql, params, many, context)
        self._take_lock()
        try:
            return execute(sql, params, many, context)
        finally:
            self._drop_lock()

    def _start_transaction_under_autocommit(self):
        self._take_lock()
        try:
            super()._start_transaction_under_autocommit()
        except BaseException:
            self._drop_lock()
            raise

    def _commit(self):
        try:
            return super()._commit()
        finally:
            self._drop_lock()

    def _rollback(self):
        try:
            return super()._rollback()
        finally:
            self._drop_lock()

    def _close(self):
        super()._close()
        # Closing the file also releases the lock, whatever the state of the connection.
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file, self._lock_held = None, False
        self.execute_wrappers = [w for w in self.execute_wrappers if w != self._lock_single_write]
