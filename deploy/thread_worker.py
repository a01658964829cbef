"""Gunicorn's threaded worker, changed so that a request occupies a thread only after it has been received.

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

LONG_WAIT = 1  # seconds; a longer wait of a writer means that another write is taking long
HEADER_SECONDS = 15  # maximum time to receive the headers
BODY_SECONDS = 60  # maximum time to receive a body in the main thread
IDLE_SECONDS = 30  # maximum time without data in a thread
SLOWEST = 4_000  # minimum average speed of a client (bytes per second), checked after IDLE_SECONDS
LARGEST_HEADER = 128 << 10  # maximum size of the headers (bytes)
LARGEST = 256 << 10  # maximum size of a request that the main thread receives (bytes)
MOST = 500  # maximum number of requests being received at the same time; a new request replaces the oldest
UPLOADS = 4  # number of threads for larger requests

_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*(\d{1,18})[ \t]*(?=\r\n)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect[ \t]*:[ \t]*100-continue", re.IGNORECASE)

MORE, WHOLE, UPLOAD = "more", "whole", "upload"


class TimedSocket:
    """The socket of a connection that a thread handles. It raises ConnectionResetError if the client is too slow."""

    def __init__(self, plain: socket.socket) -> None:
        self.plain, self.began, self.received = plain, time.monotonic(), 0
        plain.settimeout(IDLE_SECONDS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def setblocking(self, _: bool) -> None:
        """Do nothing, because changing the mode would remove the time limit."""

    def recv(self, size: int) -> bytes:
        try:
            data = self.plain.recv(size)
        except TimeoutError:
            raise self._too_slow() from None
        self.received += len(data)
        if time.monotonic() - self.began > IDLE_SECONDS + self.received / SLOWEST:
            raise self._too_slow()
        return data

    def sendall(self, data: bytes) -> None:
        try:
            self.plain.sendall(data)
        except TimeoutError:
            raise self._too_slow() from None

    def _too_slow(self) -> OSError:
        # Gunicorn and Django handle this error as if the client had disconnected.
        return ConnectionResetError(errno.ECONNRESET, "the client is too slow")


class PendingRequest:
    """A connection on which a request is being received."""

    def __init__(self, conn: TConn) -> None:
        self.conn, self.data, self.size = conn, bytearray(), 0
        self.deadline = time.monotonic() + HEADER_SECONDS

    def add(self, data: bytes) -> str | None:
        """Add received data, and return what to do next: MORE, WHOLE, UPLOAD, or None to close the connection."""
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
    responsive. At other times they are not used: each has a database connection, and with them one process would accept
    requests while another is idle.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pending: dict[PendingRequest, None] = {}  # oldest first
        self.uploads = 0
        self.last_check = 0.0

    def init_process(self) -> None:
        self.upload_pool = ThreadPoolExecutor(max_workers=UPLOADS)
        from annotate.actions import job_worker

        self.serving, self.keeper = job_worker.lock_serving_file(), job_worker.WatcherKeeper()
        super().init_process()

    def notify(self) -> None:
        """Update the maximum number of connections. Gunicorn calls this once per second and after each request.

        The maximum applies to nr_conns, the number of connections that have a thread or are waiting for one.
        """
        super().notify()
        most = self.cfg.threads if longest_wait() > LONG_WAIT else self.cfg.worker_connections
        self.worker_connections = most + self.uploads
        self.keeper.check()

    def accept(self, listener: Any) -> None:
        try:
            accepted, client = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        if len(self.pending) >= MOST:
            self._drop(next(iter(self.pending)))
        request = PendingRequest(TConn(self.cfg, accepted, client, listener.getsockname()))
        self.pending[request] = None
        self.poller.register(accepted, 1, partial(self._receive, request))
        self._receive(request)  # usually, the whole request has already arrived

    def _receive(self, request: PendingRequest, _: Any = None) -> None:
        try:
            data = request.conn.sock.recv(64 << 10)
            next_step = request.add(data) if data else None
        except BlockingIOError:
            return
        except OSError:
            next_step = None
        if next_step is None:
            self._drop(request)
        elif next_step != MORE:
            self._submit(request, is_upload=next_step == UPLOAD)

    def _submit(self, request: PendingRequest, *, is_upload: bool) -> None:
        conn = request.conn
        del self.pending[request]
        self.poller.unregister(conn.sock)
        if not is_upload:
            # If gunicorn's parser expects more data than we do, it must reach the end of the stream instead of waiting.
            try:
                conn.sock.shutdown(socket.SHUT_RD)
            except OSError:
                util.close(conn.sock)
                return
        conn.sock = TimedSocket(conn.sock)
        conn.parser = http.get_parser(self.cfg, conn.sock, conn.client)
        conn.parser.unreader.unread(bytes(request.data))
        conn.initialized = conn.data_ready = True
        self.nr_conns += 1
        self.uploads += is_upload
        if is_upload:
            future = self.upload_pool.submit(self._handle_upload, conn)
        else:
            future = self.tpool.submit(self.handle, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self._finish, conn, is_upload, done))

    def _handle_upload(self, conn: TConn) -> None:
        conn.sock.began = time.monotonic()
        try:
            self.handle(conn)
        finally:
            # Closing the connection while data is still arriving would cut off the response. This thread can wait until
            # no more data arrives.
            util.close_graceful(conn.sock)

    def _finish(self, conn: TConn, is_upload: bool, done: Future) -> None:
        self.nr_conns -= 1
        self.uploads -= is_upload
        conn.close()

    def _drop(self, request: PendingRequest) -> None:
        del self.pending[request]
        self.poller.unregister(request.conn.sock)
        request.conn.close()

    def murder_pending(self) -> None:
        """Close the connections whose deadline has passed.

        Gunicorn calls this once per second and after each request.
        """
        now = time.monotonic()
        if now - self.last_check < 1:
            return
        self.last_check = now
        for request in [request for request in self.pending if request.deadline < now]:
            self._drop(request)
