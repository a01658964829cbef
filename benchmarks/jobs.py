"""Jobs whose process, worker, server or database is killed at random points: each ends and can be run again.

After the job has run again, the state is compared, file by file and table by table, with that after an undisturbed job.
It runs on SQLite, or on PostgreSQL if DATABASE_URL names a PostgreSQL database (python -m tests.postgres). No data are
needed.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import faults_commands as commands
from benchmarks.place import BenchmarkFailed, Place, copy_of, free_port, new_place
from benchmarks.tables import show
from tests import digests
from tests.running import DATA, ROOT

# Action -> its parameters.
JOBS: dict[str, dict[str, Any]] = {
    "import_corpus": {"corpus": "many", "files": ["many.jsonl"], "licence": "CC0-1.0"},
    "prelabel": {"corpus": "unread", "processes": "1"},
    "open_task": {"name": "second", "corpus": "posts", "size": "150", "seed": "3"},
    "export_gold": {"task": "doubted"},
}
ASK = """
import json, sys, django
django.setup()
from annotate.actions import job_worker
print(job_worker.start(sys.argv[1], json.loads(sys.argv[2])).pk)
"""
MEANING = """
import json, django
django.setup()
from tests import digests
print(json.dumps({name: digest for name, digest in digests.meaning().items() if name != "annotate.Job"}))
"""
# A task's random draws depend on its secret. Every process draws the same one, so that two runs can be compared.
SAME_SECRETS = """
import random, secrets
drawn = random.Random("secrets")
secrets.token_hex = lambda size=32: drawn.randbytes(size).hex()
"""
ENDED = ("done", "failed", "cancelled")
HANGS = 900.0  # seconds


def add_options(parser) -> None:
    parser.add_argument("--job-kills", type=int, default=10, help="kills per type (default %(default)s)")


@dataclass
class Running:
    """A running server in its own session, with the process that watches for jobs."""

    place: Place
    server: subprocess.Popen

    @classmethod
    def begin(cls, place: Place) -> "Running":
        command = [sys.executable, ROOT / "manage.py", "serve", "--port", str(free_port())]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return cls(place, subprocess.Popen(command, cwd=place.folder, env=place.env, start_new_session=True, **quiet))

    def processes(self, words: str) -> list[int]:
        """Return the processes of this place whose command contains these words, the youngest last.

        The watcher's command contains the words of all that it starts, so it is included only if words is empty.
        """
        pids = []
        for path in Path("/proc").iterdir():
            with suppress(OSError):
                files = (path / "cmdline", path / "environ")
                command, environment = (file.read_bytes().decode(errors="replace") for file in files)
                is_wanted = words in command.replace("\0", " ") and not (words and "annotate.job_watcher" in command)
                if is_wanted and str(self.place.folder) in environment:
                    pids.append(int(path.name))
        return sorted(pids)

    def kill(self, words: str) -> None:
        for process in self.processes(words):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def end(self) -> None:
        self.kill("")
        self.server.wait()


def _all(running: Running) -> None:
    running.kill("")
    running.server.wait()
    running.server = Running.begin(running.place).server


def _restart(running: Running) -> None:
    """Stop PostgreSQL immediately and start it again."""
    from benchmarks import faults_server

    faults_server.restarted(running, random.Random())  # which reads only the place


# What is killed -> how.
SORTS: dict[str, Callable[[Running], None]] = {
    "the job's process": lambda running: running.kill("work --job"),
    "the worker": lambda running: running.kill("work --until-done"),
    "the job's process and the worker": lambda running: running.kill("work --"),
    "the server, and all with it": _all,
}


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    rows, bad = [], []
    with new_place() as base:
        commands.prepare(base)
        (base.folder / "sitecustomize.py").write_text(SAME_SECRETS)
        path = os.pathsep.join(map(str, (base.folder, ROOT)))
        base.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings", "PYTHONPATH": path}
        expected = {action: _undisturbed(base, action) for action in JOBS}
        sorts = dict(SORTS)
        if base.database == "PostgreSQL":
            sorts["PostgreSQL, restarted"] = _restart
        for name, fault in sorts.items():
            chance, ends = random.Random(f"{options.seed} {name}"), dict.fromkeys(ENDED, 0)
            for number in range(options.job_kills):
                action = list(JOBS)[number % len(JOBS)]
                seconds, after = expected[action]
                ended, state = _befallen(base, action, fault, chance.random() * seconds)
                ends[ended] += 1
                if state != after:
                    bad.append(f"{name}, {action}: the result differs from a run without a kill")
            rows.append([name, options.job_kills, *ends.values(), len(bad)])
            print(f"{name}: {ends}", file=sys.stderr, flush=True)
    head = ["killed", "times", *ENDED, "another result when begun again"]
    show(f"Jobs, {base.database}", head, rows)
    if bad:
        raise BenchmarkFailed("\n".join(bad))


def _ask(place: Place, action: str) -> int:
    parameters = dict(JOBS[action])
    if "files" in parameters:
        parameters["files"] = [str(place.folder / name) for name in parameters["files"]]
    return int(place.run("-c", ASK, action, json.dumps(parameters)))


def _state(place: Place, job: int) -> str:
    if url := place.env.get("DATABASE_URL"):
        with psycopg.connect(url) as connection:
            return connection.execute("SELECT state FROM annotate_job WHERE id = %s", [job]).fetchone()[0]
    with sqlite3.connect(place.folder / DATA / "assay.sqlite3", timeout=HANGS) as connection:
        return connection.execute("SELECT state FROM annotate_job WHERE id = ?", [job]).fetchone()[0]


def _wait(place: Place, job: int, *states: str) -> str:
    end = time.monotonic() + HANGS
    while True:
        with suppress(psycopg.OperationalError):
            if (state := _state(place, job)) in states:
                return state
        if time.monotonic() > end:
            raise BenchmarkFailed(f"job {job} did not come to be {' or '.join(states)} in {HANGS:g} s")
        time.sleep(0.05)


def _left(place: Place, job: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files of the corpora and the job, and the meaning of all tables except that of jobs."""
    there = {}
    for folder, name in (
        (place.folder / DATA / "corpora", ""),
        (place.folder / DATA / "jobs" / str(job) / "out", "out/"),
    ):
        there |= {f"{name}{path}": digest for path, digest in digests.files(folder).items()}
    # These contain the time of the export.
    files = {path: digest for path, digest in there.items() if not path.endswith(("manifest.json", "README.md"))}
    return files, json.loads(place.run("-c", MEANING))


def _undisturbed(base: Place, action: str) -> tuple[float, Any]:
    with copy_of(base) as place:
        job, running = _ask(place, action), Running.begin(place)
        try:
            _wait(place, job, "running", *ENDED)
            start = time.monotonic()
            if _wait(place, job, *ENDED) != "done":
                raise BenchmarkFailed(f"{action} was not completed, although nothing interrupted it")
            return time.monotonic() - start, _left(place, job)
        finally:
            running.end()


def _befallen(base: Place, action: str, fault: Callable[[Running], None], after: float) -> tuple[str, Any]:
    """Return how the job ended, and the state after it was run again to its end."""
    with copy_of(base) as place:
        job, running = _ask(place, action), Running.begin(place)
        try:
            _wait(place, job, "running", *ENDED)
            time.sleep(after)
            fault(running)
            ended = _wait(place, job, *ENDED)
            if ended != "done":
                job = _ask(place, action)
                if _wait(place, job, *ENDED) != "done":
                    raise BenchmarkFailed(f"{action} was not completed when it was run again")
            return ended, _left(place, job)
        finally:
            running.end()
