"""Gunicorn's worker of threads, which take a request only once it has been read.

Gunicorn itself gives a thread to each connection, so a few that send part of a request stop the server. Here the main
thread reads headers and forms without waiting. Bodies that are larger, such as uploads, have threads of their own. A
connection that is slower than any person's has to close.
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

LONG = 1  # seconds: no act takes so long
HEADER_SECONDS = 15  # until the end of the header
BODY_SECONDS = 60  # until the end of a body that is read here
IDLE_SECONDS = 30  # without a byte, in a thread
SLOWEST = 4_000  # bytes a second of an upload, after IDLE_SECONDS
LARGEST_HEADER = 128 << 10  # bytes
LARGEST = 256 << 10  # bytes of a request that is read here
MOST = 500  # connections that are read at once; another one replaces the oldest
UPLOADS = 4  # threads for larger bodies

_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*(\d{1,18})[ \t]*(?=\r\n)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect[ \t]*:[ \t]*100-continue", re.IGNORECASE)

MORE, WHOLE, UPLOAD = "more", "whole", "upload"


class Socket:
    """A connection's socket in a thread, for which it waits no longer than for a person's."""

    def __init__(self, plain: socket.socket) -> None:
        self.plain, self.began, self.read = plain, time.monotonic(), 0
        plain.settimeout(IDLE_SECONDS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def setblocking(self, _: bool) -> None:
        """It keeps its time limit."""

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
        # Gunicorn and Django treat it like any client that goes away.
        return ConnectionResetError(errno.ECONNRESET, "the client is too slow")


class Arrival:
    """A connection whose request is arriving."""

    def __init__(self, conn: TConn) -> None:
        self.conn, self.data, self.size = conn, bytearray(), 0
        self.deadline = time.monotonic() + HEADER_SECONDS

    def add(self, data: bytes) -> str | None:
        """What is to be done with the connection next; None: to close it."""
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
    """Has as many requests at once as --threads says, until one of these waits for long, as for a command that writes
    to SQLite for many seconds. Then it takes others, for which it has threads besides, so that pages that are only read
    are answered. With so many at any time one process would take what another is free for, and each thread connects to
    the database.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.arrivals: dict[Arrival, None] = {}  # the oldest first
        self.uploads = 0
        self.looked = 0.0

    def init_process(self) -> None:
        self.upload_pool = ThreadPoolExecutor(max_workers=UPLOADS)
        from annotate.actions import job_worker

        self.serving, self.keeper = job_worker.hold(), job_worker.Keeper()
        super().init_process()

    def notify(self) -> None:
        """It is called once a second, and after each request. nr_conns counts what has a thread or waits for one."""
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
        self._read(arrival)  # mostly it is all there

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
            # If gunicorn's parser expects more than we did, it is told that there is no more, and does not wait.
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
            # What was not read may be on its way still, and would cut the answer off. A thread can wait for it.
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
        """It is called once a second, and after each request."""
        now = time.monotonic()
        if now - self.looked < 1:
            return
        self.looked = now
        for arrival in [each for each in self.arrivals if each.deadline < now]:
            self._drop(arrival)
