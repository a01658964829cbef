"""Whether a server works on this data folder, and the watcher for jobs beside it (annotate/watching.py).

Each process of a server holds a lock as long as it lives, whatever becomes of its master.
"""

import fcntl
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from django.conf import settings

from annotate.actions import working
from corpora.system import FOLDER

BESIDE = "SERVES_JOBS"  # in the environment of a server that has jobs done
LOOK = 5.0  # seconds between two looks at the watcher


def _file(name: str) -> TextIO:
    folder = Path(settings.DATA_DIR) / "jobs"
    folder.mkdir(FOLDER, parents=True, exist_ok=True)
    return (folder / name).open("a+")


def hold() -> TextIO | None:
    """What a process of a server keeps open. None if the disk takes no file."""
    with suppress(OSError):
        lock = _file("serving")
        fcntl.flock(lock, fcntl.LOCK_SH)
        lock.truncate(0)
        lock.write(str(os.getppid()))
        lock.flush()
        return lock
    return None


def is_ending() -> bool:
    """Whether processes of a server are left whose master is no more. They end by themselves within seconds."""
    if not (Path(settings.DATA_DIR) / "jobs" / "serving").exists():
        return False
    with _file("serving") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            master = lock.read()
            return master.isdigit() and not _lives(int(master))
    return False


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def start_watcher() -> tuple[subprocess.Popen, int]:
    """The watcher, and the end of the pipe with which it ends."""
    (Path(settings.DATA_DIR) / "jobs").mkdir(FOLDER, parents=True, exist_ok=True)
    theirs, ours = os.pipe()
    watcher = subprocess.Popen(working.watch("beside"), stdin=theirs, env=working.environment())  # noqa: S603 - ours
    os.close(theirs)
    return watcher, ours


def is_watched() -> bool:
    """Whether anybody does jobs: whoever watches for them holds a lock."""
    try:
        with (Path(settings.DATA_DIR) / "jobs" / "watching").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


class Keeper:
    """Starts the watcher again where it was killed. Every process of a server has one, and one of them does it."""

    def __init__(self) -> None:
        self._due = time.monotonic() + LOOK
        self._lock: TextIO | None = None
        self._watcher: subprocess.Popen | None = None
        self._pipe: int | None = None

    def look(self) -> None:
        now = time.monotonic()
        if BESIDE not in os.environ or now < self._due:
            return
        self._due = now + LOOK
        with suppress(OSError):  # a full disk takes no lock; the next look may
            self._start_if_missing()

    def _start_if_missing(self) -> None:
        if (self._watcher and self._watcher.poll() is None) or is_watched():
            return
        if self._lock is None:
            lock = _file("keeper")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                return
            self._lock = lock
        if self._pipe is not None:
            os.close(self._pipe)
        self._watcher, self._pipe = start_watcher()
