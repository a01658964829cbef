"""Concurrent users in threads with separate connections. Threads wait for conditions instead of fixed times, because
a machine may be busy.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from django.db import connection

# After this many seconds, a test counts as hanging, even on a busy machine.
HANGS = int(os.environ.get("ASSAY_TEST_HANGS", 1200))
_started: list[threading.Thread] = []


def at_once(*functions):
    """Run functions in separate threads, and return their results or exceptions in order."""
    results = [None] * len(functions)

    def run(number, function):
        try:
            results[number] = function()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(functions)]
    _started.extend(threads)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS)
        assert not thread.is_alive(), "a thread hangs"
        _started.remove(thread)
    return results


class Handler(BaseHTTPRequestHandler):
    """A request handler that logs nothing."""

    def reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def listening(handler: type[Handler]) -> Iterator[int]:
    """Run an HTTP server on loopback, and yield its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        http.handle_error = lambda *_: None  # a client was killed
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield http.server_port
        finally:
            http.shutdown()
            thread.join()


def until(fact: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + HANGS
    while not fact():
        assert time.monotonic() < end, "what was waited for never came"
        time.sleep(0.01)


def until_others_wait_or_end() -> None:
    """Wait until all other threads of `at_once` have ended or wait for a database lock."""
    others = [thread for thread in _started if thread is not threading.current_thread()]
    until(lambda: waiting_for_locks() >= sum(thread.is_alive() for thread in others))


def waiting_for_locks() -> int:
    """Return the number of connections to the test's database that wait for another connection."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("""
                SELECT count(DISTINCT waiting.pid) FROM pg_locks waiting JOIN pg_locks here USING (pid)
                WHERE NOT waiting.granted
                AND here.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """)
            return cursor.fetchone()[0]
    file = Path(f"{connection.settings_dict['NAME']}.writers").stat()
    locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return sum("->" in lock and lock.split()[-3].endswith(f":{file.st_ino}") for lock in locks)
