"""Django's SQLite backend with a fair queue of writers.

SQLite allows one writer at a time. Blocked writers sleep and try again, so some of them may never get a turn. With 32
writers, "database is locked" occurred even with a timeout of 20 s. In this backend, each write first takes an exclusive
lock on a file next to the database, and the kernel queues the waiting writers. Reads take no lock, and optional writes
(corpora/system.py) don't wait for it.
"""

import fcntl
import os
import time
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from urllib.parse import quote

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from corpora.system import Occupied, check_not_away


class Cursor(base.SQLiteCursorWrapper):
    """Django's cursor with a cache of converted SQL. It supports only positional parameters.

    Outside a transaction, each statement that may write takes the lock while it runs.
    """

    def __init__(self, connection, database):
        super().__init__(connection)
        self.database = database

    def execute(self, query, params=None):
        with self.database.lock_to_write(query):
            return super().execute(query, params)

    def executemany(self, query, param_list):
        with self.database.lock_to_write(query):
            return super().executemany(query, param_list)

    @staticmethod
    @lru_cache(maxsize=256)
    def convert_query(query, *, param_names=None):
        return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


# Whether to create the database file if it is missing. With None, it is created only if the installation has no other
# files. A server never creates it, because after somebody moved the file, it would serve an empty database.
makes_file: bool | None = None
# Connection in this process that is waiting to write -> time when it started to wait.
_waiting: dict[object, float] = {}


def longest_wait() -> float:
    """Return the longest time any connection in this process has been waiting to write (seconds)."""
    return time.monotonic() - min(list(_waiting.values()), default=time.monotonic())


# Statements that never write. Outside a transaction, all other statements take the lock while they run.
READS = ("SELECT", "PRAGMA", "EXPLAIN", "SAVEPOINT", "RELEASE", "ROLLBACK")
_NO_LOCK = nullcontext()


def _identity(path: str) -> tuple[int, int] | None:
    """Return a file's device and inode, which renaming doesn't change; None if the file does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class DatabaseWrapper(base.DatabaseWrapper):
    _lock_file = None
    _lock_held = False
    waits_to_write = True

    _files: list[tuple[int, int] | None] | None = None  # the identities of the files when the connection was opened

    def get_new_connection(self, conn_params):
        path = str(conn_params["database"])
        if makes_file is None:
            check_not_away(path)
        if makes_file is False or (makes_file is None and os.path.exists(path)):
            # In mode "rw", SQLite never creates a file.
            conn_params = {
                **conn_params,
                "database": f"file:{quote(path)}?mode=rw",
                "uri": True,
            }
        connection = super().get_new_connection(conn_params)
        self._files = self._current_files()
        return connection

    def _current_files(self):
        path = str(self.settings_dict["NAME"])
        return [_identity(path), _identity(f"{path}-wal")]

    def close(self):
        super().close()
        # A process forked later must open the lock file itself, because processes that share a descriptor share its
        # lock.
        if self._lock_file is not None and not self._lock_held:
            os.close(self._lock_file)
            self._lock_file = None

    def is_usable(self):
        """Return whether the connection is to the current database file, which may have been moved or replaced.

        Django calls this once per request. The -wal file doesn't change while a connection has it open.
        """
        return self._current_files() == self._files and super().is_usable()

    def create_cursor(self, name=None):
        return self.connection.cursor(factory=lambda connection: Cursor(connection, self))

    def _acquire_lock(self):
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

    def _release_lock(self):
        if self._lock_held:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)
            self._lock_held = False

    def lock_to_write(self, sql):
        """Return a context in which to run a statement. It takes the lock if the statement may write and needs it."""
        is_locked = self.in_atomic_block or self._lock_held
        return _NO_LOCK if is_locked or sql.lstrip().upper().startswith(READS) else self._lock()

    @contextmanager
    def _lock(self):
        self._acquire_lock()
        try:
            yield
        finally:
            self._release_lock()

    def _start_transaction_under_autocommit(self):
        self._acquire_lock()
        try:
            super()._start_transaction_under_autocommit()
        except BaseException:
            self._release_lock()
            raise

    def _commit(self):
        try:
            return super()._commit()
        finally:
            self._release_lock()

    def _rollback(self):
        try:
            return super()._rollback()
        finally:
            self._release_lock()

    def _close(self):
        super()._close()
        # Closing the lock file also releases the lock, if the connection held it.
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file, self._lock_held = None, False
