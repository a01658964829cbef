"""The worker of jobs. Each job has a process of its own, so that whatever ends it ends nothing else, and its memory is
freed. The process runs the action and leaves progress and outcome in the job's folder, since the database may be away,
or locked by the action itself; work/job_store.py takes the outcome from there.
"""

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError, close_old_connections

from annotate.actions.action import Action, ActionError, Encoder, Outcome, Progress, Values
from annotate.actions.registry import by_name
from annotate.core.option import Option, flag
from annotate.models import Job, Task
from annotate.work import job_store

PROGRAM = "from annotate.actions.registry import main; main()"
LOOK = 0.2  # seconds between two looks at a process, or for another job
TELL = 0.25  # seconds between two writings of how far a job is
# Actions that write a folder.
WRITES = ("export_gold", "export_pairs", "import_gold", "evaluate")
AWAY = 2.0  # seconds after which a database that is away is asked again
TRIES = 5  # how often it is asked in a row


def ourselves(*words: str) -> list[str]:
    """What runs this program, from wherever it is, with a command of it."""
    return [sys.executable, "-P", "-c", PROGRAM, *words]


def environment() -> dict[str, str]:
    """For `ourselves`."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ASSAY_DATA_DIR": str(settings.DATA_DIR)}


# --- to have it done


def ask(name: str, given: Values, by: User | None = None) -> Job:
    """Begin an action as a job. ActionError if its options are impossible; whatever else is wrong the job says.

    given: as forms have it, texts, lists of texts, or yes or no.
    """
    # A form sends its empty fields too, where a shell says nothing.
    named = {option: value for option, value in given.items() if value not in (None, "", [], ())}
    values = by_name()[name].read(_with_out(name, named, Path("out")))
    return job_store.begin(name, named, corpus=_corpus_of(values), by=by)


def _with_out(name: str, given: Values, folder: Path) -> dict[str, Any]:
    """What a job writes lies in its own folder, unless it was begun otherwise."""
    return {**({"out": str(folder)} if name in WRITES else {}), **given}


def _corpus_of(values: Mapping[str, Any]) -> str:
    """The corpus that it reads or changes, by name or by that of a task; empty if it has none."""
    if corpus := values.get("corpus"):
        return str(corpus)
    task = Task.objects.filter(name=values.get("task") or values.get("name") or "").first()
    return task.draw.corpus.name if task else ""


def command_of(action: Action, given: Values) -> str:
    """The command that does the same, as it is typed at a shell."""
    words = ["assay", action.name]
    for option in sorted(action.options, key=lambda each: not each.argument):
        words += _words_of(option, given.get(option.name))
    if action.asks:
        words.append("--yes")
    return " ".join(shlex.quote(word) for word in words)


def _words_of(option: Option, value: Any) -> list[str]:
    if value in (None, "", [], (), False) and not (value is False and option.opposite):
        return []
    if option.read is flag:
        yes = value is True or value == "yes"
        return [option.spelled if yes else f"--{option.opposite[0]}"] if yes or option.opposite else []
    texts = [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]
    if option.argument:
        return texts
    return [option.spelled, *texts] if option.in_a_row else [word for text in texts for word in (option.spelled, text)]


# --- to do it


def work_off() -> None:
    """Do jobs until none waits and none runs, one after another. What a worker that was killed has left is settled.

    Raises the database's error if the database is away and stays away. What watches for jobs then tries again later.
    """
    failed = 0
    while True:
        try:
            close_old_connections()
            job_store.settle()
            claimed = job_store.claim()
            if claimed is None and not job_store.is_left():
                return
        except (OperationalError, InterfaceError) as error:
            failed += 1
            if failed == TRIES:
                raise
            if failed == 1:
                why = " ".join(str(error).split())
                print(f"The database is away ({why}); waiting up to {AWAY * (TRIES - 1):g} s for it.", file=sys.stderr)
            time.sleep(AWAY)
            continue
        failed = 0
        if claimed is None:
            time.sleep(LOOK)  # another worker has it
        else:
            _have_done(*claimed)


def _have_done(job: Job, lock: TextIO) -> None:
    """Have a process of its own do it, which holds the lock from now on; if we are ended, it is ended too."""
    with lock, (job_store.folder(job) / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - the program is this one
            ourselves("work", "--job", str(job.pk)),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock.fileno()],
            process_group=0,
        )
    try:
        process.wait()
    except BaseException:
        with suppress(ProcessLookupError):
            process.terminate()
        process.wait()
        job_store.settle()
        raise


def do(number: int) -> None:
    """Do the job of this number, in this process. The caller holds its lock."""
    job = Job.objects.get(pk=number)
    where = job_store.folder(job)
    (where / "pid").write_text(str(os.getpid()))
    threading.Thread(target=_end_where_cancelled, args=[where / "cancel"], daemon=True).start()
    try:
        given = _with_out(job.action, job.given, where / "out")
        outcome = by_name()[job.action].perform(given, Telling(where))
    except ActionError as error:
        _write(where / "ended.json", {"state": Job.FAILED, "warned": [str(error)]})
    else:
        _write(where / "ended.json", _told(outcome))


def _told(outcome: Outcome) -> dict[str, Any]:
    told = {"said": outcome.said, "warned": outcome.warned, "data": outcome.data}
    return {"state": Job.FAILED if outcome.status else Job.DONE, **told}


def _end_where_cancelled(asked: Path) -> None:
    """As Ctrl-C ends a command: what it has not finished it puts away."""
    while not asked.exists():
        time.sleep(LOOK)
    os.kill(os.getpid(), signal.SIGTERM)


class Telling(Progress):
    """Tells in a file how far a job is."""

    def __init__(self, where: Path) -> None:
        self._file, self._last = where / "progress.json", 0.0
        self._told: dict[str, Any] = {"total": None, "unit": "", "done": 0, "said": [], "began": time.time()}

    def begin(self, total: int | None, unit: str) -> None:
        self._told |= {"total": total, "unit": unit, "done": 0, "began": time.time()}
        self._tell()

    def advance(self, count: int = 0) -> None:
        self._told["done"] += count
        if time.monotonic() - self._last >= TELL:
            self._tell()

    def say(self, sentence: str) -> None:
        self._told["said"].append(sentence)
        self._tell()

    def _tell(self) -> None:
        self._last = time.monotonic()
        # A full disk is for the action to tell.
        with suppress(OSError):
            _write(self._file, self._told | {"at": time.time()})


def _write(path: Path, told: Mapping[str, Any]) -> None:
    """Whole or not at all, for whoever reads it meanwhile."""
    draft = path.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(told, file, cls=Encoder, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def watch(how: str) -> list[str]:
    """The command that watches for jobs; how: "alone", or "beside" what has the other end of its standard input."""
    folder = job_store.jobs_folder()
    return [sys.executable, "-P", "-m", "annotate.job_watcher", str(folder), how, *ourselves("work", "--until-done")]


# --- Servers on this data folder, and the watcher of jobs beside them (annotate/job_watcher.py). Each process of a
# server holds a lock as long as it lives, whatever becomes of its master.

BESIDE = "SERVES_JOBS"  # in the environment of a server that has jobs done
CHECK_EVERY = 5.0  # seconds between two looks at the watcher


def hold() -> TextIO | None:
    """What a process of a server keeps open. None if the disk takes no file."""
    with suppress(OSError):
        lock = (job_store.jobs_folder() / "serving").open("a+")
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
    with (job_store.jobs_folder() / "serving").open("a+") as lock:
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
    theirs, ours = os.pipe()
    watcher = subprocess.Popen(watch("beside"), stdin=theirs, env=environment())  # noqa: S603 - ours
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
        self._due = time.monotonic() + CHECK_EVERY
        self._lock: TextIO | None = None
        self._watcher: subprocess.Popen | None = None
        self._pipe: int | None = None

    def look(self) -> None:
        now = time.monotonic()
        if BESIDE not in os.environ or now < self._due:
            return
        self._due = now + CHECK_EVERY
        with suppress(OSError):  # a full disk takes no lock; the next look may
            self._start_if_missing()

    def _start_if_missing(self) -> None:
        if (self._watcher and self._watcher.poll() is None) or is_watched():
            return
        if self._lock is None:
            lock = (job_store.jobs_folder() / "keeper").open("a+")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                return
            self._lock = lock
        if self._pipe is not None:
            os.close(self._pipe)
        self._watcher, self._pipe = start_watcher()
