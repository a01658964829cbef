"""Gunicorn's threaded worker, changed so that a request needs a thread only after it has been received.

Gunicorn assigns a thread to each connection, so a few clients that send incomplete requests can block the server. In
this worker, the main thread receives headers and forms without blocking. Large bodies, such as uploads, are received in
separate threads. Connections that are slower than any real client are closed.
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

LONG = 1  # A write is long if other writers wait for it for more than this many seconds.
HEADER_SECONDS = 15  # maximum time to receive the headers
BODY_SECONDS = 60  # maximum time to receive a body in the main thread
IDLE_SECONDS = 30  # maximum time without data in a thread
SLOWEST = 4_000  # minimum average speed of a client (bytes per second); it is checked after IDLE_SECONDS
LARGEST_HEADER = 128 << 10  # maximum size of the headers (bytes)
LARGEST = 256 << 10  # maximum size of a request that the main thread receives (bytes)
MOST = 500  # maximum number of requests that are received at the same time; a new one replaces the oldest
UPLOADS = 4  # number of threads for larger bodies

_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*(\d{1,18})[ \t]*(?=\r\n)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect[ \t]*:[ \t]*100-continue", re.IGNORECASE)

MORE, WHOLE, UPLOAD = "more", "whole", "upload"


class Socket:
    """The socket of a connection that is handled in a thread. It closes the connection if the client is too slow."""

    def __init__(self, plain: socket.socket) -> None:
        self.plain, self.began, self.read = plain, time.monotonic(), 0
        plain.settimeout(IDLE_SECONDS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def setblocking(self, _: bool) -> None:
        """Do nothing, because a change would remove the time limit."""

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
        # Gunicorn and Django handle this error as if the client had disconnected.
        return ConnectionResetError(errno.ECONNRESET, "the client is too slow")


class Arrival:
    """A connection on which a request is being received."""

    def __init__(self, conn: TConn) -> None:
        self.conn, self.data, self.size = conn, bytearray(), 0
        self.deadline = time.monotonic() + HEADER_SECONDS

    def add(self, data: bytes) -> str | None:
        """Add received data, and return what to do with the connection: MORE, WHOLE, UPLOAD, or None to close it."""
        search_start = max(0, len(self.data) - 3)
        self.data += data
        if not self.size:
            end = self.data.find(b"\r\n\r\n", search_start)
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
    """A worker that handles as many requests at the same time as --threads allows, and more during a long write.

    A command may write to SQLite for many seconds. During such a write, additional threads keep read-only pages
    responsive. They are not used at other times, because a process would then accept requests while another process is
    idle, and because each thread has a database connection.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.arrivals: dict[Arrival, None] = {}  # The oldest connection comes first.
        self.uploads = 0
        self.looked = 0.0

    def init_process(self) -> None:
        self.upload_pool = ThreadPoolExecutor(max_workers=UPLOADS)
        from annotate.actions import job_worker

        self.serving, self.keeper = job_worker.lock_serving_file(), job_worker.WatcherKeeper()
        super().init_process()

    def notify(self) -> None:
        """Update the maximum number of connections. Gunicorn calls this once per second and after each request.

        The maximum applies to nr_conns, which counts the connections that have a thread or wait for one.
        """
        super().notify()
        most = self.cfg.threads if longest_wait() > LONG else self.cfg.worker_connections
        self.worker_connections = most + self.uploads
        self.keeper.check()

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
        self._read(arrival)  # Usually, the whole request has already arrived.

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
            # If gunicorn's parser expects more data than we do, it must not wait, so it receives the end of the stream.
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
            # If the connection were closed while data is still arriving, the response would be cut off. This thread
            # can wait until no more data arrives.
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
        """Close the connections whose deadline has passed.

        Gunicorn calls this once per second and after each request.
        """
        now = time.monotonic()
        if now - self.looked < 1:
            return
        self.looked = now
        for arrival in [pending for pending in self.arrivals if pending.deadline < now]:
            self._drop(arrival)
