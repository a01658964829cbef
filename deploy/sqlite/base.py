"""Django's SQLite backend with one queue of writers.

SQLite lets one connection write at a time. Its own busy handler sleeps and tries again, and starves some of the
waiting connections: with 32 writers, "database is locked" was seen even at a timeout of 20 s. Here every write
first takes an exclusive lock on a file beside the database; the kernel queues the waiters. Readers take none, and what
need not be kept (corpora/system.py) does not wait for it.
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
    """Django's, which turns the marks of a statement's parameters into SQLite's once and not each time. They have no
    names here.
    """

    @staticmethod
    @lru_cache(maxsize=256)
    def convert_query(query, *, param_names=None):
        return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


# Whether a file that is missing is made; None: only where nothing else of an installation is there. Never by a server:
# it would go on with an empty database where the file was only moved for a moment.
makes_file: bool | None = None
_waiting: dict[object, float] = {}  # connections of this process that wait for a writer -> since when


def longest_wait() -> float:
    """Seconds for which a connection of this process has been waiting to write."""
    return time.monotonic() - min(list(_waiting.values()), default=time.monotonic())


# Statements that never write. Any other statement outside a transaction takes the lock for its own duration.
READS = ("SELECT", "PRAGMA", "EXPLAIN", "SAVEPOINT", "RELEASE", "ROLLBACK")


def _identity(path: str) -> tuple[int, int] | None:
    """Which file it is, wherever it is moved to; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class DatabaseWrapper(base.DatabaseWrapper):
    _lock_file = None
    _lock_held = False
    waits_to_write = True

    _files: list[tuple[int, int] | None] | None = None  # those of the connection

    def get_new_connection(self, conn_params):
        path = str(conn_params["database"])
        if makes_file is None:
            check_not_away(path)
        if makes_file is False or (makes_file is None and os.path.exists(path)):
            # This mode opens what is there.
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
        """It is asked once a request. A file that was moved away or replaced is no longer the database. The -wal stays
        the same one as long as a connection has it open.
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
        # Closing the file also gives the lock back, whatever state the connection was in.
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file, self._lock_held = None, False
        self.execute_wrappers = [w for w in self.execute_wrappers if w != self._lock_single_write]
