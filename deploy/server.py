"""How gunicorn serves Assay, wherever it does: `python -m gunicorn --config python:deploy.server`.

The address comes with the command, and so may the number of processes.
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

SILENT = 60  # seconds that a connection may say nothing and cost nothing


class MaskedLogger(Logger):
    """Gunicorn's logs of requests and of errors."""

    def setup(self, cfg):
        super().setup(cfg)
        for handler in (*self.access_log.handlers, *self.error_log.handlers):
            handler.setFormatter(Masking(handler.formatter))


wsgi_app = "deploy.wsgi"
loglevel = "warning"
logger_class = MaskedLogger
# Nobody asks it anything, and it would lie in a home that the user of a service need not have, or may not write to.
control_socket_disable = True
# The program is loaded once, and the processes share its memory. Nothing of it is garbage: collecting would only take
# time, and later copy what is shared.
preload_app = True
gc.disable()
# Whichever process is free takes the next request: none is bound to one by its connection, which a proxy would keep for
# many people, and none takes more than it has threads for. With kept connections one process of two did all the work.
# Nor does a proxy send an answer over a connection that is being closed.
keepalive = 0


worker_class = Worker
# More of them than processors take the time from each other, and each takes 40 MB.
workers = min(system.usable(), 8)


def on_starting(server):
    server.cfg.set("worker_connections", server.cfg.threads)
    # PostgreSQL has many writers, and not so many connections.
    if connection.vendor == "sqlite":
        from annotate.pages.middleware import AT_ONCE  # only now the program is loaded

        server.cfg.set("threads", server.cfg.threads + AT_ONCE)


def when_ready(server):
    base.makes_file = False
    _ = get_resolver().url_patterns  # loads the pages
    gc.freeze()
    gc.enable()
    # Nearly nothing of a request is left to the collector, which else looks for it several times in each.
    gc.set_threshold(50_000)
    # Browsers open connections in advance, for which a thread would wait: Linux keeps them until they say something.
    for listener in server.LISTENERS:
        if hasattr(socket, "TCP_DEFER_ACCEPT") and listener.sock.family != socket.AF_UNIX:
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, SILENT)


def post_fork(server, worker):
    # Until gunicorn sets its own, a new process has the master's handler, which would lose the signal: the server would
    # end only after 30 seconds.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
