"""Gunicorn's configuration: `python -m gunicorn --config python:deploy.server`.

The address, and optionally the number of processes, are command-line options.
"""

import gc
import signal
import socket
import sys

from django.db import connection
from django.urls import get_resolver
from gunicorn.glogging import Logger

from corpora import system
from deploy import Masking
from deploy.sqlite import base
from deploy.thread_worker import Worker

SILENT = 60  # seconds that an idle connection may wait in the kernel


class MaskedLogger(Logger):
    """Gunicorn's access and error logs, masked."""

    def setup(self, cfg):
        super().setup(cfg)
        for handler in (*self.access_log.handlers, *self.error_log.handlers):
            handler.setFormatter(Masking(handler.formatter))


wsgi_app = "deploy.wsgi"
loglevel = "warning"
logger_class = MaskedLogger
# The control socket is unused. It would be created in the home directory, which a service user may lack.
control_socket_disable = True
# The program is loaded once and its memory shared by the processes. Collecting it would find no garbage, and would
# later copy the shared pages.
preload_app = True
gc.disable()
# Any free process takes the next request. Kept connections, which a proxy shares among many people, would bind requests
# to one process and exceed its threads; with them, one process of two did all the work. Closing each connection also
# avoids answers lost on connections that are about to close.
keepalive = 0


worker_class = Worker
# More processes than processors compete for time, and each takes 40 MB.
workers = min(system.usable(), 8)


def on_starting(server):
    server.cfg.set("worker_connections", server.cfg.threads)
    # PostgreSQL has concurrent writers, but a limited number of connections.
    if connection.vendor == "sqlite":
        from annotate.pages.middleware import AT_ONCE  # the program is loaded by now

        server.cfg.set("threads", server.cfg.threads + AT_ONCE)


def when_ready(server):
    base.makes_file = False
    _ = get_resolver().url_patterns  # loads the pages
    gc.freeze()
    gc.enable()
    # Requests leave almost no garbage, and the default threshold would trigger several collections per request.
    gc.set_threshold(50_000)
    # Browsers open connections in advance, which would occupy threads. Linux holds them back until data arrives.
    for listener in server.LISTENERS:
        if hasattr(socket, "TCP_DEFER_ACCEPT") and listener.sock.family != socket.AF_UNIX:
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, SILENT)


def post_fork(server, worker):
    # Until gunicorn installs its handlers, a new process has those of the master, which would swallow the signal and
    # delay shutdown by 30 seconds.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
