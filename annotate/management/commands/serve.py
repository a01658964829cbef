import errno
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection, connections
from django.urls import reverse
from gunicorn.app import wsgiapp

from annotate.actions import commands, job_worker
from annotate.actions.database import harmful_settings, prepare
from annotate.core.option import Option, flag, whole_number
from annotate.kinds.files import KindError
from annotate.management import demo
from annotate.models import Task
from annotate.work.accounts import FIRST_MANAGER_HOURS, invite_first_manager, managers

EXIT_SECONDS = 60  # maximum time to wait for the processes of a killed server to exit
# A browser on this machine reaches a server at any of these addresses as localhost. Only this machine can reach
# LOOPBACK. WILDCARDS stand for all addresses of the machine.
LOOPBACK = ("localhost", "127.0.0.1", "::1")
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - binds nothing


class Command(commands.Command):
    help = (
        "Prepare or update the database, and run the server until Ctrl-C. Set ASSAY_DATA_DIR for another data folder."
    )

    options = (
        Option("demo", flag, False, help="also create example tasks with some answers, which appear within a minute"),
        Option("port", whole_number, 8000, most=65535, help="the port of the server"),
        Option(
            "host",
            default="127.0.0.1",
            shown="ADDRESS",
            help="the address to listen on; with any address but the default, other machines can reach the server. "
            "0.0.0.0 means all addresses of this machine and requires ASSAY_HOSTS",
        ),
        Option("workers", whole_number, least=1, help="number of server processes; by default one per CPU, at most 8"),
        Option(
            "threads",
            whole_number,
            4,
            least=1,
            help="threads per process; with SQLite, threads are added while others wait to write",
        ),
    )

    def handle(self, **inputs: Any) -> None:
        options = self.values(inputs)
        host, port = options["host"], options["port"]
        self.wait_for_port(host, port)
        self.check_hosts(host)
        prepare()
        self.check_kinds()
        for sentence in harmful_settings():
            self.stderr.write(sentence)
        if options["demo"]:
            self.stdout.write(demo.prepare(port))
        address = f"http://{site_host(host)}:{port}"
        (settings.DATA_DIR / "address").write_text(address)  # commands that print links read it
        if not (options["demo"] or managers().exists()):
            link = reverse("first-manager", args=[invite_first_manager()])
            self.stdout.write(
                f"There is no manager yet. Open {address if settings.SITE_ASSUMED else settings.SITE}{link} to create "
                f"the first manager's account. The link works once, within {FIRST_MANAGER_HOURS} hours."
            )
        self.stdout.flush()
        os.environ[job_worker.READY] = f"Serving {address}/ with the data in {settings.DATA_DIR}. Press Ctrl-C to stop."
        if options["demo"]:
            demo.fork_build()
        serve(host, port, options["workers"], options["threads"])

    def check_kinds(self) -> None:
        """Check that every task's kind can be loaded.

        A package may be missing, or the kind's file may be valid only for the Assay version that opened the task.
        """
        for task in Task.objects.exclude(kind_file=""):
            try:
                task.kind  # noqa: B018 - reads the file
            except KindError as error:
                fault = f"The task {task.name} cannot be shown: {error}"
                raise CommandError(
                    f"{fault} Install the package that contains the kind, or the Assay version that opened the task."
                ) from error

    def wait_for_port(self, host: str, port: int) -> None:
        """Wait until the port is free.

        The processes of a killed server keep the port until they notice that it was killed, and exit.
        """
        deadline = time.monotonic() + EXIT_SECONDS
        while True:
            try:
                return self.check_port(host, port)
            except CommandError:
                if time.monotonic() > deadline or not job_worker.is_exiting():
                    raise
            time.sleep(0.1)

    def check_port(self, host: str, port: int) -> None:
        try:
            family, *_ = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
        except (socket.gaierror, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a valid host name"
            raise CommandError(f"The address {host!r} cannot be used ({reason}).") from error
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise CommandError(f"The address {host!r} does not belong to this machine.") from error
            raise CommandError(
                f"Port {port} of {host} cannot be used ({error.strerror}). Choose another port, such as --port 8001."
            ) from error

    def check_hosts(self, host: str) -> None:
        if host in LOOPBACK or not settings.HOSTS_ASSUMED:
            return
        example = "assay.example.org" if host in WILDCARDS else f"[{host}]" if ":" in host else host
        raise CommandError(
            f"--host {host} requires ASSAY_HOSTS, because the site otherwise accepts only requests to localhost. Set "
            "it to the names and addresses of this machine, separated by commas, for example "
            f"ASSAY_HOSTS=localhost,{example}."
        )


def site_host(host: str) -> str:
    """Return the host name in the site's URL on this machine.

    host: address the server listens on
    """
    if host not in LOOPBACK + WILDCARDS:
        return host
    names = settings.ALLOWED_HOSTS
    return "localhost" if {"localhost", "*"}.intersection(names) else names[0]


def serve(host: str, port: int, workers: int | None, threads: int) -> None:
    """Run the server in this process, which has already loaded the program, until it is stopped."""
    # Gunicorn would import any modules and configuration in the current folder, so change to the code's folder. Before
    # that, make relative paths absolute.
    os.environ["ASSAY_DATA_DIR"] = str(settings.DATA_DIR)
    if connection.vendor == "sqlite":
        path = str(Path(connection.settings_dict["NAME"]).resolve())
        settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = path
        os.environ["DATABASE_URL"] = f"sqlite:///{quote(path)}"
    _watcher = job_worker.start_watcher()  # all server processes keep its pipe open, so it exits after the last of them
    os.environ[job_worker.SERVES_JOBS] = "1"
    os.chdir(settings.BASE_DIR)
    connections.close_all()  # processes must not share connections
    sys.argv = [
        "gunicorn",
        "--config=python:deploy.server",
        f"--bind={f'[{host}]' if ':' in host else host}:{port}",
        f"--threads={threads}",
        *([f"--workers={workers}"] if workers else []),
    ]
    wsgiapp.run()
