"""The job watcher: a small program that starts a worker when there are jobs, and the sender of webhooks.

`python -m annotate.job_watcher FOLDER HOW COMMAND...` runs the command with --until-done at startup, and again whenever
the `bell` file in the job folder changes. While the `webhooks` file exists, it also runs the command with --send. The
watcher doesn't import Django, so Django uses memory only while jobs run or there are webhooks. `assay serve` starts a
watcher, which exits with the server. The process of `assay work` becomes a watcher.
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

LOOK = 0.5  # seconds between checks of the `bell` file
AGAIN = 5.0  # seconds before a failed command is run again
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Stopped(Exception):
    """Raised when the watcher must stop, because it received a signal or the server has exited."""


def _stop(number: int, frame: object) -> None:
    raise _Stopped


def main(arguments: Sequence[str]) -> int:
    """Watch for jobs until a signal arrives or the server exits. Returns the exit status.

    arguments: the job folder, then "beside" to stop when standard input is closed or "alone" to ignore it, then the
        command
    """
    folder, how, *command = arguments
    sender = _Sender(Path(folder, "webhooks"), [*command, "--send"])
    for number in STOPS:
        signal.signal(number, _stop)
    with open(Path(folder, "watching"), "a+") as lock:  # NFS allows shared locks only on readable files
        try:
            # The lock is shared, because there may be several watchers with PostgreSQL. Pages test the lock to find out
            # whether any watcher is running.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            _watch(Path(folder, "bell"), [*command, "--until-done"], how == "beside", sender)
        except _Stopped:
            sender.stop()
            return 0
    return 0


class _Sender:
    """Keeps the sender process running while the file exists. The sender exits by itself when there are no webhooks."""

    def __init__(self, file: Path, command: Sequence[str]) -> None:
        self._file, self._command = file, command
        self._process: subprocess.Popen[bytes] | None = None
        self._due = 0.0

    def start_if_due(self) -> None:
        if (self._process and self._process.poll() is None) or time.monotonic() < self._due:
            return
        if self._file.exists():
            self._due = time.monotonic() + AGAIN
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)  # noqa: S603 - runs this program

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait()


def _watch(bell: Path, command: Sequence[str], with_server: bool, sender: _Sender) -> None:
    handled: float | None = None
    while True:
        sender.start_if_due()
        rung_at = _time_rung(bell)
        if rung_at != handled:
            # Remember the time before the run, so that a change during the run starts another one.
            handled = rung_at if _run(command, sender) else None
            _wait(LOOK if handled is not None else AGAIN, with_server)
        else:
            _wait(LOOK, with_server)


def _time_rung(bell: Path) -> float:
    try:
        return bell.stat().st_mtime_ns
    except FileNotFoundError:
        return 0.0


def _run(command: Sequence[str], sender: _Sender) -> bool:
    """Run the command and return whether it succeeded.

    If the watcher must stop, the command is terminated, and the watcher waits until it has cleaned up.
    """
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - runs this program
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK) == 0
            sender.start_if_due()
    except _Stopped:
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        process.terminate()
        process.wait()
        raise


def _wait(seconds: float, with_server: bool) -> None:
    if not with_server:
        time.sleep(seconds)
    # Nothing is ever written to standard input, so it becomes readable only when the server exits and closes its end.
    elif select.select([0], [], [], seconds)[0] and not os.read(0, 1):
        raise _Stopped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
