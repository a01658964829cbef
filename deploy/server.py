"""How gunicorn serves Assay, wherever it does: `python -m gunicorn --config python:deploy.server`.

The number of processes and the address come with the command.
"""

import gc
import socket

from django.db import connection
from django.urls import get_resolver
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import ThreadWorker

from deploy.logs import Masking
from deploy.sqlite.base import longest_wait

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


LONG = 1  # seconds: no act takes so long


class Worker(ThreadWorker):
    """Has as many requests at once as --threads says, until one of these waits for long, as for a command that writes
    to SQLite for many seconds. Then it takes others, for which it has threads besides, so that pages that are only read
    are answered. With so many at any time one process would take what another is free for, and each thread connects to
    the database.
    """

    def notify(self):
        """It is called once a second, and after each request."""
        super().notify()
        self.worker_connections = self.cfg.threads if longest_wait() > LONG else self.cfg.worker_connections


worker_class = Worker


def on_starting(server):
    server.cfg.set("worker_connections", server.cfg.threads)
    # PostgreSQL has many writers, and not so many connections.
    if connection.vendor == "sqlite":
        from annotate.pages.middleware import AT_ONCE  # only now the program is loaded

        server.cfg.set("threads", server.cfg.threads + AT_ONCE)


def when_ready(server):
    _ = get_resolver().url_patterns  # loads the pages
    gc.freeze()
    gc.enable()
    # Nearly nothing of a request is left to the collector, which else looks for it several times in each.
    gc.set_threshold(50_000)
    # Browsers open connections in advance, for which a thread would wait: Linux keeps them until they say something.
    for listener in server.LISTENERS:
        if hasattr(socket, "TCP_DEFER_ACCEPT") and listener.sock.family != socket.AF_UNIX:
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, SILENT)
