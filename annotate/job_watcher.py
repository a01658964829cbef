"""Starts a worker when there are jobs: `python -m annotate.job_watcher FOLDER COMMAND...` runs the command once at the
start, and whenever the bell in the folder `jobs` of the data folder is rung.

It stays small, since it has nothing else to do: Django, and what a job needs, are in memory only while there are jobs.
`assay serve` starts it beside the server, with whom it ends; `assay work` is it alone.
"""

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

LOOK = 0.5  # seconds between two looks at the bell
AGAIN = 5.0  # seconds after which a command that failed is tried again
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Told(Exception):
    """It is to end."""


def _stop(number: int, frame: object) -> None:
    raise _Told


def main(words: Sequence[str]) -> int:
    """words: the folder, whether it ends when its standard input is closed ("beside") or not ("alone"), the command."""
    folder, how, *command = words
    bell = Path(folder, "bell")
    for number in STOPS:
        signal.signal(number, _stop)
    with open(Path(folder, "watching"), "a") as lock:
        try:
            # Several may watch, on PostgreSQL; the pages see by this whether anybody does.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            _watch(bell, command, how == "beside")
        except _Told:
            return 0
    return 0


def _watch(bell: Path, command: Sequence[str], beside: bool) -> None:
    heard: float | None = None
    while True:
        rung = _rung(bell)
        if rung != heard:
            # What is rung from now on is heard after the command has ended.
            heard = rung if _run(command) else None
            _wait(LOOK if heard is not None else AGAIN, beside)
        else:
            _wait(LOOK, beside)


def _rung(bell: Path) -> float:
    try:
        return bell.stat().st_mtime_ns
    except FileNotFoundError:
        return 0.0


def _run(command: Sequence[str]) -> bool:
    """Whether it did all there was to do. It is ended with us, and not before it has put away what it was doing."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - the program is this one
    try:
        return process.wait() == 0
    except _Told:
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        process.terminate()
        process.wait()
        raise


def _wait(seconds: float, beside: bool) -> None:
    if not beside:
        time.sleep(seconds)
    # Nobody writes to it: it can be read once the server, which has its other end, is no more.
    elif select.select([0], [], [], seconds)[0] and not os.read(0, 1):
        raise _Told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
