"""Gunicorn's configuration. To use it, run `python -m gunicorn --config python:deploy.server`.

The address and, if needed, the number of processes are set with command-line options.
"""

import gc
import os
import signal
import socket
import sys

from django.db import connection
from django.urls import get_resolver
from gunicorn.glogging import Logger

from corpora import system
from deploy import MaskingFormatter
from deploy.sqlite import base
from deploy.thread_worker import Worker

SILENT_SECONDS = 60  # maximum time that the kernel holds back a connection without data


class MaskedLogger(Logger):
    """A logger that masks secrets in gunicorn's access and error logs."""

    def setup(self, cfg):
        super().setup(cfg)
        for handler in (*self.access_log.handlers, *self.error_log.handlers):
            handler.setFormatter(MaskingFormatter(handler.formatter))


wsgi_app = "deploy.wsgi"
loglevel = "warning"
logger_class = MaskedLogger
# The control socket isn't used. It would be created in the home directory, which the user of a service may not have.
control_socket_disable = True
# The program is loaded once, and the processes share its memory. While it is loaded, there is no garbage, so the
# collector is off. Afterwards, the collector must not touch the program's objects, or else their memory is copied to
# each process.
preload_app = True
gc.disable()
# Close each connection after a request, so that any free process can take the next one. A proxy shares its connections
# among many users. All requests on an open connection go to the same process and can exceed its threads. In a test with
# two processes, one of them did all the work. Moreover, a response can be lost on a connection that is about to close.
keepalive = 0


worker_class = Worker
# More processes would only compete for the processors, and each takes 40 MB of memory.
workers = min(system.usable(), 8)


def on_starting(server):
    server.cfg.set("worker_connections", server.cfg.threads)
    # Requests may wait for SQLite's single writer, so additional threads are needed. PostgreSQL permits concurrent
    # writers but limits the number of connections, and each thread has one.
    if connection.vendor == "sqlite":
        from annotate.pages.middleware import AT_ONCE  # can be imported only after the program is loaded

        server.cfg.set("threads", server.cfg.threads + AT_ONCE)


def when_ready(server):
    base.makes_file = False
    _ = get_resolver().url_patterns  # loads the pages
    gc.freeze()
    gc.enable()
    # Requests create almost no garbage, but with the default threshold, the collector would run several times per
    # request.
    gc.set_threshold(50_000)
    # Browsers open connections before they need them. Have Linux hold them back until data arrives.
    for listener in server.LISTENERS:
        if hasattr(socket, "TCP_DEFER_ACCEPT") and listener.sock.family != socket.AF_UNIX:
            listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, SILENT_SECONDS)
    from annotate.actions.job_worker import READY  # as above, only after the program is loaded

    if sentence := os.environ.pop(READY, ""):
        print(sentence, flush=True)


def post_fork(server, worker):
    # Until gunicorn installs the worker's signal handlers, a new process has the master's, which would ignore SIGTERM
    # and delay a shutdown by 30 seconds.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
