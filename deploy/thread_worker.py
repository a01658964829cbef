"""Gunicorn's threaded worker, changed so that a request occupies a thread only once it has been read.

Gunicorn assigns a thread to each connection, so a few clients that send incomplete requests can block the server. Here
the main thread reads headers and forms without blocking. Larger bodies, such as uploads, have their own threads.
Connections that are slower than any real client are closed.
"""

import errno
import re
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from gunicorn import http, util
from gunicorn.workers.gthread import TConn, ThreadWorker

from deploy.sqlite.base import longest_wait

LONG = 1  # seconds; longer than any normal write
HEADER_SECONDS = 15  # to receive the headers
BODY_SECONDS = 60  # to receive a body in the main thread
IDLE_SECONDS = 30  # without data, in a thread
SLOWEST = 4_000  # bytes per second of an upload, after IDLE_SECONDS
LARGEST_HEADER = 128 << 10  # bytes
LARGEST = 256 << 10  # bytes of a request that the main thread reads
MOST = 500  # connections read at once; a new one replaces the oldest
UPLOADS = 4  # threads for larger bodies

_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*(\d{1,18})[ \t]*(?=\r\n)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect[ \t]*:[ \t]*100-continue", re.IGNORECASE)

MORE, WHOLE, UPLOAD = "more", "whole", "upload"


class Socket:
    """A connection's socket in a thread, with time limits for slow clients."""

    def __init__(self, plain: socket.socket) -> None:
        self.plain, self.began, self.read = plain, time.monotonic(), 0
        plain.settimeout(IDLE_SECONDS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def setblocking(self, _: bool) -> None:
        """Do nothing, so that the time limit stays."""

    def recv(self, size: int) -> bytes:
        try:
            data = self.plain.recv(size)
        except TimeoutError:
            raise self._gone() from None
        self.read += len(data)
        if time.monotonic() - self.began > IDLE_SECONDS + self.read / SLOWEST:
            raise self._gone()
        return data

    def sendall(self, data: bytes) -> None:
        try:
            self.plain.sendall(data)
        except TimeoutError:
            raise self._gone() from None

    def _gone(self) -> OSError:
        # Gunicorn and Django handle this like a client that disconnects.
        return ConnectionResetError(errno.ECONNRESET, "the client is too slow")


class Arrival:
    """A connection whose request is being received."""

    def __init__(self, conn: TConn) -> None:
        self.conn, self.data, self.size = conn, bytearray(), 0
        self.deadline = time.monotonic() + HEADER_SECONDS

    def add(self, data: bytes) -> str | None:
        """Return what to do next with the connection; None means close it."""
        seen = max(0, len(self.data) - 3)
        self.data += data
        if not self.size:
            end = self.data.find(b"\r\n\r\n", seen)
            if end < 0:
                return MORE if len(self.data) < LARGEST_HEADER else None
            head = bytes(self.data[: end + 2])
            length = _LENGTH.search(head)
            self.size = end + 4 + (int(length[1]) if length else 0)
            if self.size > LARGEST or _CHUNKED.search(head):
                return UPLOAD
            self.deadline = time.monotonic() + BODY_SECONDS
            if len(self.data) < self.size and _EXPECTS.search(head):
                self.conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        return WHOLE if len(self.data) >= self.size else MORE


class Worker(ThreadWorker):
    """A worker that handles as many concurrent requests as --threads allows, and more while one waits for a long write.

    A command may write to SQLite for many seconds. Extra threads then keep read-only pages responsive. They are not
    used all the time, because a process would take requests for which another is free, and each thread has a database
    connection.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.arrivals: dict[Arrival, None] = {}  # oldest first
        self.uploads = 0
        self.looked = 0.0

    def init_process(self) -> None:
        self.upload_pool = ThreadPoolExecutor(max_workers=UPLOADS)
        from annotate.actions import job_worker

        self.serving, self.keeper = job_worker.hold(), job_worker.Keeper()
        super().init_process()

    def notify(self) -> None:
        """Update the limit of connections. Called once per second and after each request.

        nr_conns counts connections that have a thread or wait for one.
        """
        super().notify()
        most = self.cfg.threads if longest_wait() > LONG else self.cfg.worker_connections
        self.worker_connections = most + self.uploads
        self.keeper.look()

    def accept(self, listener: Any) -> None:
        try:
            accepted, client = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        if len(self.arrivals) >= MOST:
            self._drop(next(iter(self.arrivals)))
        arrival = Arrival(TConn(self.cfg, accepted, client, listener.getsockname()))
        self.arrivals[arrival] = None
        self.poller.register(accepted, 1, partial(self._read, arrival))
        self._read(arrival)  # usually the whole request is there

    def _read(self, arrival: Arrival, _: Any = None) -> None:
        try:
            data = arrival.conn.sock.recv(64 << 10)
            what = arrival.add(data) if data else None
        except BlockingIOError:
            return
        except OSError:
            what = None
        if what is None:
            self._drop(arrival)
        elif what != MORE:
            self._hand_over(arrival, is_upload=what == UPLOAD)

    def _hand_over(self, arrival: Arrival, *, is_upload: bool) -> None:
        conn = arrival.conn
        del self.arrivals[arrival]
        self.poller.unregister(conn.sock)
        if not is_upload:
            # If gunicorn's parser expects more data than we did, it gets the end of the stream and does not wait.
            try:
                conn.sock.shutdown(socket.SHUT_RD)
            except OSError:
                util.close(conn.sock)
                return
        conn.sock = Socket(conn.sock)
        conn.parser = http.get_parser(self.cfg, conn.sock, conn.client)
        conn.parser.unreader.unread(bytes(arrival.data))
        conn.initialized = conn.data_ready = True
        self.nr_conns += 1
        self.uploads += is_upload
        future = self.upload_pool.submit(self._take_upload, conn) if is_upload else self.tpool.submit(self.handle, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self._finish, conn, is_upload, done))

    def _take_upload(self, conn: TConn) -> None:
        conn.sock.began = time.monotonic()
        try:
            self.handle(conn)
        finally:
            # Unread data may still be arriving and would cut the answer off. A thread can wait for it.
            util.close_graceful(conn.sock)

    def _finish(self, conn: TConn, is_upload: bool, done: Future) -> None:
        self.nr_conns -= 1
        self.uploads -= is_upload
        conn.close()

    def _drop(self, arrival: Arrival) -> None:
        del self.arrivals[arrival]
        self.poller.unregister(arrival.conn.sock)
        arrival.conn.close()

    def murder_pending(self) -> None:
        """Close connections past their deadline. Called once per second and after each request."""
        now = time.monotonic()
        if now - self.looked < 1:
            return
        self.looked = now
        for arrival in [each for each in self.arrivals if each.deadline < now]:
            self._drop(arrival)
