"""How gunicorn serves Assay, wherever it does: `python -m gunicorn --config python:deploy.server`.

The number of processes and the address come with the command.
"""

from gunicorn.glogging import Logger

from deploy.logs import Masking


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
# Whichever process is free takes the next request: none is bound to one by its connection, which a proxy would keep for
# many people, and none takes more than it has threads for. With kept connections one process of two did all the work.
# Nor does a proxy send an answer over a connection that is being closed.
keepalive = 0


def on_starting(server):
    server.cfg.set("worker_connections", server.cfg.threads)
