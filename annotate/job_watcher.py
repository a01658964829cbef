"""The job watcher: start a worker when jobs are waiting.

`python -m annotate.job_watcher FOLDER HOW COMMAND...` runs the command at the start, and again whenever the file `bell`
in the folder of jobs changes. It imports nothing large, so that Django is in memory only while jobs run. `assay serve`
starts the watcher, which ends with the server; `assay work` becomes the watcher.
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

LOOK = 0.5  # seconds between two checks of the bell
AGAIN = 5.0  # seconds before a failed command is retried
STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Told(Exception):
    """The watcher is to stop."""


def _stop(number: int, frame: object) -> None:
    raise _Told


def main(words: Sequence[str]) -> int:
    """Watch for jobs until stopped.

    words: folder of jobs; "beside" to stop when standard input is closed, or "alone"; command
    """
    folder, how, *command = words
    bell = Path(folder, "bell")
    for number in STOPS:
        signal.signal(number, _stop)
    with open(Path(folder, "watching"), "a") as lock:
        try:
            # On PostgreSQL there may be several watchers. The pages test this lock to see whether there is one.
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
            # If the bell rings while the command runs, run it again afterwards.
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
    """Run the command and return whether it succeeded.

    If the watcher is stopped, stop the command and wait for its cleanup.
    """
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - runs this program
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
    # Nobody writes to standard input. It becomes readable when the server, which holds its other end, has exited.
    elif select.select([0], [], [], seconds)[0] and not os.read(0, 1):
        raise _Told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
