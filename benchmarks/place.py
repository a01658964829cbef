"""The environment of a benchmark: a temporary data folder, a new database, manage.py and a server, removed afterwards.

The database is SQLite in that folder, or a new database on PostgreSQL if DATABASE_URL names a PostgreSQL server (python
-m tests.postgres). Environment variables for the data of this installation are ignored.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from tests.postgres import server_account
from tests.running import DATA, ROOT, environment, install

# What `assay serve` prints at its start.
EXPECTED = ("There is no manager yet", "The links that add_annotators", "Serving ")
START_SECONDS = 600  # at most; the machine may be busy


class BenchmarkFailed(Exception):
    """The error for a benchmark that could not finish or that found a violation."""


@dataclass
class Place:
    folder: Path
    env: dict[str, str]
    database: str
    root: Path = ROOT  # the checkout whose program is run
    server: int = 0  # the process of the server while it runs
    # Step -> seconds, in order.
    took: dict[str, float] = field(default_factory=dict)

    def run(self, *command: str | Path) -> str:
        """Run a Python program of the project here; returns what it printed."""
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise BenchmarkFailed(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def manage(self, *arguments: str | Path) -> str:
        return self.run("manage.py", *arguments)

    def cpu_seconds(self) -> tuple[float, float]:
        """Return the seconds of CPU of the running server and of PostgreSQL, including their child processes."""
        database = 0.0
        if url := self.env.get("DATABASE_URL"):
            with psycopg.connect(url) as connection:
                [(folder,)] = connection.execute("SHOW data_directory").fetchall()
            database = cpu_seconds_of(int(Path(folder, "postmaster.pid").read_text().split()[0]))
        return cpu_seconds_of(self.server), database

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.took[step] = self.took.get(step, 0.0) + time.monotonic() - start


@contextmanager
def new_place(*, sqlite: bool = False, migrated: Path | None = None) -> Iterator[Place]:
    """sqlite: use SQLite even if DATABASE_URL is set. migrated: an SQLite database to begin with."""
    url = "" if sqlite else os.environ.get("DATABASE_URL", "")
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as name:
        env = environment(Path(name) / DATA)
        if not url.startswith(("postgres://", "postgresql://")):
            if migrated:
                install(Path(name) / DATA, migrated)
            yield Place(Path(name), env, "SQLite")
            return
        with _new_database(url) as database_url:
            yield Place(Path(name), env | {"DATABASE_URL": database_url}, "PostgreSQL")


@contextmanager
def copy_of(place: Place, *, on: Path | None = None) -> Iterator[Place]:
    """Copy an installation to which nobody is connected. on: the disk for its files and its database."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-", dir=on) as name:
        folder = Path(name)
        shutil.copytree(place.folder, folder, dirs_exist_ok=True)
        env = place.env | {"ASSAY_DATA_DIR": str(folder / DATA)}
        if "DATABASE_URL" not in env:
            yield Place(folder, env, place.database)
            return
        with ExitStack() as stack:
            how = f"TEMPLATE {urlsplit(env['DATABASE_URL']).path[1:]}"
            if on:
                how += f" TABLESPACE {stack.enter_context(_tablespace(env['DATABASE_URL'], on))}"
            database_url = stack.enter_context(_new_database(env["DATABASE_URL"], how))
            yield Place(folder, env | {"DATABASE_URL": database_url}, place.database)


@contextmanager
def _new_database(url: str, how: str = "") -> Iterator[str]:
    """Yield the URL of a new database on the same server. how: the end of the statement that creates it."""
    name = f"assay_bench_{secrets.token_hex(4)}"
    server = urlsplit(url)._replace(path="/postgres").geturl()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {how}")
        # Otherwise, the server of the tests would acknowledge answers that it has not written yet.
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    try:
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _tablespace(url: str, disk: Path) -> Iterator[str]:
    """Yield the name of a tablespace on the disk."""
    name = f"assay_bench_{secrets.token_hex(4)}"
    folder = disk / name
    folder.mkdir()
    if account := server_account():
        shutil.chown(folder, account)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE {name} LOCATION '{folder}'")
    try:
        yield name
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP TABLESPACE {name}")


@contextmanager
def serving(place: Place, *, workers: int, threads: int) -> Iterator[str]:
    """Run Gunicorn on a free port of this machine, and yield its address."""
    port = free_port()
    options = [f"--bind=127.0.0.1:{port}", f"--workers={workers}", f"--threads={threads}"]
    with _running(place, port, "-m", "gunicorn", "--config=python:deploy.server", *options) as address:
        yield address


@contextmanager
def serving_by_default(place: Place, workers: int | None = None) -> Iterator[str]:
    """Run `assay serve`, and yield its address. workers: None for its default."""
    port = free_port()
    number = [] if workers is None else [f"--workers={workers}"]
    with _running(place, port, "manage.py", "serve", f"--port={port}", *number) as address:
        yield address


@contextmanager
def _running(place: Place, port: int, *command: str) -> Iterator[str]:
    with open(place.folder / "server.log", "w+") as log:
        server = subprocess.Popen(
            [sys.executable, *command],
            cwd=place.root,
            env=place.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for_server(server, port)
            place.server = server.pid
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()
            log.seek(0)
            lines = [line for line in log.read().splitlines() if not line.startswith(EXPECTED)]
            if lines:
                print("The server wrote:\n" + "\n".join(lines)[-4000:] + "\n", file=sys.stderr)


def cpu_seconds_of(process: int) -> float:
    """Return the seconds of CPU that a process and its descendants have used. A child that has ended counts with its
    parent."""
    try:
        used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK") + sum(map(cpu_seconds_of, map(int, children)))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_server(server: subprocess.Popen, port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise BenchmarkFailed("The server did not start.")


def in_places(program: str, names: Iterable[str], draws: int, seed: str) -> Iterator[tuple[str, list[Any]]]:
    """Run a program with each name, one process per core. Yield (name, rows) in the order of the names.
    program: a module that is run as `program NAME DRAWS SEED` and prints a line of JSON for each row."""
    names = list(names)
    with new_place(sqlite=True) as place, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        outputs = pool.map(lambda name: place.run("-m", program, name, str(draws), seed), names)
        for name, lines in zip(names, outputs, strict=True):
            yield name, [json.loads(line) for line in lines.splitlines()]
