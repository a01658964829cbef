"""A command in a separate process that starts fast and can be killed hundreds of times.

A parent process has already loaded the libraries, and forks. Each child loads only the modules of the project.
"""

import json
import multiprocessing
import os
import random
import secrets
import shlex
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.place import BenchmarkFailed, Place

LIBRARIES = ["duckdb", "pyarrow.parquet", "django.core.management", "django.db.models", "psycopg"]
HANGS = 900.0  # seconds: nothing here takes as long

# A killed command leaves the lock of its progress bar behind. It is removed at the end, so no warning is needed.
os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(LIBRARIES)


@dataclass
class Begun:
    """A running command in its own process group."""

    process: multiprocessing.process.BaseProcess
    messages: Connection
    log: Path
    output: str = ""  # once it has ended

    def kill(self) -> None:
        os.killpg(self.process.pid or 0, signal.SIGKILL)

    def ends(self, seconds: float) -> bool:
        self.process.join(seconds)
        return self.process.exitcode is not None

    def end(self) -> int:
        """Wait until the command exits. Return its status, or a signal as a negative number."""
        hung = not self.ends(HANGS)
        if hung:
            self.kill()
        self.output = self.log.read_text(errors="replace")
        self.log.unlink()
        if hung:
            raise BenchmarkFailed(f"{self.output}\nand then no output for {HANGS:g} s.")
        return self.process.exitcode or 0

    def wait_until_done(self) -> None:
        """Wait until the command exits on its own, unless it is killed before."""
        with suppress(EOFError):
            self.messages.recv()

    def meaning(self) -> dict[str, str]:
        """Return the content of the database afterwards (digests.meaning). The command was begun with_meaning."""
        try:
            return json.loads(self.messages.recv())
        except EOFError:
            self.end()
            raise BenchmarkFailed(f"The content of the database could not be read:\n{self.output}") from None


def begin(place: Place, words: str, *, with_meaning: bool = False) -> Begun:
    """Start a command in the folder of the place. Return when the program is loaded and about to begin."""
    receiver, sender = _forking.Pipe(duplex=False)
    # Not in the place, whose disk may be full.
    handle, log = tempfile.mkstemp(prefix="assay-bench-", suffix=".log")
    os.close(handle)
    process = _forking.Process(
        target=_run, args=(shlex.split(words), place.env, str(place.folder), log, sender, with_meaning)
    )
    process.start()
    sender.close()
    begun = Begun(process, receiver, Path(log))
    try:
        receiver.recv()
    except EOFError:
        begun.end()
        raise BenchmarkFailed(f"{words} did not begin:\n{begun.output}") from None
    return begun


def _run(words: list[str], env: dict[str, str], folder: str, log: str, sender: Connection, with_meaning: bool) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(env | {"DJANGO_SETTINGS_MODULE": "deploy.settings"})
    os.chdir(folder)
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    # So that two runs have the same secrets, and can be compared.
    drawn = random.Random(repr(words))
    secrets.token_hex = lambda size=32: drawn.randbytes(size).hex()

    import django

    django.setup()

    from annotate.actions import registry
    from tests import digests

    sys.argv = ["assay", *words]
    sender.send("begun")
    try:
        registry.main()
    except SystemExit as end:
        status = int(end.code or 0)
    sender.send("done")
    if with_meaning:
        sender.send(json.dumps(digests.meaning()))
    os._exit(status)
