"""The job watcher: a small program that starts a worker when jobs are waiting, and the sender of webhooks.

`python -m annotate.job_watcher FOLDER HOW COMMAND...` runs the command with --until-done at startup, and again whenever
the file `bell` in the job folder changes. While the file `webhooks` exists, it also runs the command with --send. The
watcher does not import Django, which is therefore in memory only while jobs run or there are webhooks. `assay serve`
starts a watcher, which exits with the server. The process of `assay work` becomes a watcher.
"""

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LOOK = 0.5  # seconds between two checks of the file `bell`
AGAIN = 5.0  # seconds to wait before a failed command is run again
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Told(Exception):
    """Raised if the watcher must stop, because it received a signal or the server has exited."""


def _stop(number: int, frame: object) -> None:
    raise _Told


def main(words: Sequence[str]) -> int:
    """Watch for jobs until a signal arrives or the server exits. Return the exit status.

    words: the job folder; "beside" to stop when standard input is closed, or "alone" to ignore it; and the command
    """
    folder, how, *command = words
    sender = _Sender(Path(folder, "webhooks"), [*command, "--send"])
    for number in STOPS:
        signal.signal(number, _stop)
    with open(Path(folder, "watching"), "a+") as lock:  # NFS gives a shared lock only on a file that may be read
        try:
            # The lock is shared, because with PostgreSQL there may be several watchers. The pages test the lock to find
            # out whether any watcher is running.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            _watch(Path(folder, "bell"), [*command, "--until-done"], how == "beside", sender)
        except _Told:
            sender.stop()
            return 0
    return 0


class _Sender:
    """Keeps the sender of webhooks running while its file exists. The sender ends by itself when there are none."""

    def __init__(self, file: Path, command: Sequence[str]) -> None:
        self._file, self._command = file, command
        self._process: subprocess.Popen[bytes] | None = None
        self._due = 0.0

    def look(self) -> None:
        if (self._process and self._process.poll() is None) or time.monotonic() < self._due:
            return
        if self._file.exists():
            self._due = time.monotonic() + AGAIN
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)  # noqa: S603 - runs this program

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait()


def _watch(bell: Path, command: Sequence[str], beside: bool, sender: _Sender) -> None:
    heard: float | None = None
    while True:
        sender.look()
        rung = _rung(bell)
        if rung != heard:
            # Use the time from before the run: if the file changes while the command runs, run the command again.
            heard = rung if _run(command, sender) else None
            _wait(LOOK if heard is not None else AGAIN, beside)
        else:
            _wait(LOOK, beside)


def _rung(bell: Path) -> float:
    try:
        return bell.stat().st_mtime_ns
    except FileNotFoundError:
        return 0.0


def _run(command: Sequence[str], sender: _Sender) -> bool:
    """Run the command and return whether it succeeded.

    If the watcher is stopped, stop the command too and wait until it has cleaned up.
    """
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - runs this program
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK) == 0
            sender.look()
    except _Told:
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        process.terminate()
        process.wait()
        raise


def _wait(seconds: float, beside: bool) -> None:
    if not beside:
        time.sleep(seconds)
    # Nothing is ever written to standard input. It becomes readable only when the other end is closed, which means that
    # the server has exited.
    elif select.select([0], [], [], seconds)[0] and not os.read(0, 1):
        raise _Told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
