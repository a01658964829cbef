"""The worker that runs jobs, and functions that start the job watcher.

Each job runs in its own process, so that a crash affects nothing else and the job's memory is freed. The process writes
its progress and outcome to the job's folder, because the database may be unavailable or locked by the action.
work/job_store.py reads them from there.
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
from annotate.models import Job, Task, Webhook
from annotate.work import closure, job_store
from annotate.work.webhook_outbox import flag_file
from corpora.storage.layout import write_atomically

PROGRAM = "from annotate.actions.registry import main; main()"
POLL_SECONDS = 0.2  # between two checks for a cancelled job, or for the end of another worker's job
WRITE_SECONDS = 0.25  # minimum time between two writes of the progress
# Actions that write an output folder.
WRITES = ("export_corpus", "export_gold", "export_pairs", "import_gold", "baseline", "evaluate")
RETRY_SECONDS = 2.0  # between two attempts to reach an unavailable database
TRIES = 5  # number of attempts to reach the database before the worker gives up


def assay_command(*words: str) -> list[str]:
    """Return the command line that runs an Assay command from any folder.

    words: name and arguments of the command
    """
    return [sys.executable, "-P", "-c", PROGRAM, *words]


def environment() -> dict[str, str]:
    """Return the environment variables that the command line of `assay_command` needs."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ASSAY_DATA_DIR": str(settings.DATA_DIR)}


# --- Start a job


def start(name: str, inputs: Values, by: User | None = None) -> Job:
    """Queue an action as a job and return the job.

    Raise ActionError if the action refuses the options before any work. The job itself reports later errors.

    name: name of the action
    inputs: option values as a page sends them (strings, lists of strings, booleans)
    """
    # Drop empty fields, which a form also sends.
    entered = {option: value for option, value in inputs.items() if value not in (None, "", [], ())}
    values = by_name()[name].check(_with_out(name, entered, Path("out")))
    return job_store.begin(name, entered, corpus=_corpus_of(values), by=by)


def _with_out(name: str, inputs: Values, folder: Path) -> dict[str, Any]:
    """Return the inputs. If the action writes an output folder and the inputs don't set it, set it to `folder`."""
    return {**({"out": str(folder)} if name in WRITES else {}), **inputs}


def _corpus_of(values: Mapping[str, Any]) -> str:
    """Return the corpus name in the options, or else the name of the task's corpus; "" if there is neither."""
    if corpus := values.get("corpus"):
        return str(corpus)
    named = values.get("task") or values.get("name")
    task = named if isinstance(named, Task) else Task.objects.filter(name=named or "").first()
    return task.draw.corpus.name if task else ""


def command_of(action: Action, inputs: Values) -> str:
    """Return the shell command that is equivalent to an action with these options."""
    words = ["assay", action.name]
    for option in sorted(action.options, key=lambda item: not item.argument):
        words += _words_of(option, inputs.get(option.name))
    if action.asks:
        words.append("--yes")
    return " ".join(shlex.quote(word) for word in words)


def _words_of(option: Option, value: Any) -> list[str]:
    if value in (None, "", [], (), False) and not (value is False and option.opposite):
        return []
    if option.read is flag:
        if value is True or value == "yes":
            return [option.spelled]
        return [f"--{option.opposite[0]}"] if option.opposite else []
    texts = [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]
    if option.argument:
        return texts
    return [option.spelled, *texts] if option.in_a_row else [word for text in texts for word in (option.spelled, text)]


# --- Run jobs


def run_all() -> None:
    """Run jobs one after another until none is queued or running.

    Also record the outcome of jobs that a killed worker left unfinished. Raise OperationalError or InterfaceError if
    the database stays unavailable, so that the watcher tries again later.
    """
    failures = 0
    while True:
        try:
            close_old_connections()
            if Webhook.objects.exists():
                flag_file().touch()  # missing if the data folder was restored without the jobs
            job_store.record_outcomes()
            closure.delete_interrupted()
            claimed = job_store.claim()
            if claimed is None and not job_store.has_open_jobs():
                return
        except (OperationalError, InterfaceError) as error:
            failures += 1
            if failures == TRIES:
                raise
            if failures == 1:
                reason = " ".join(str(error).split())
                print(
                    f"The database is unavailable ({reason}). Waiting up to {RETRY_SECONDS * (TRIES - 1):g} s.",
                    file=sys.stderr,
                )
            time.sleep(RETRY_SECONDS)
            continue
        failures = 0
        if claimed is None:
            time.sleep(POLL_SECONDS)  # another worker is running the job
        else:
            _run_in_child(*claimed)


def _run_in_child(job: Job, lock: TextIO) -> None:
    """Run a job in a child process. If the worker is stopped, stop the child too.

    lock: the job's lock, which the child inherits
    """
    with lock, (job_store.folder(job) / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - runs this program
            assay_command("work", "--job", str(job.pk)),
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
        job_store.record_outcomes()
        raise


def run(number: int) -> None:
    """Run a job in the current process, which must hold the job's lock.

    number: primary key of the job
    """
    job = Job.objects.get(pk=number)
    folder = job_store.folder(job)
    (folder / "pid").write_text(str(os.getpid()))
    threading.Thread(target=_exit_if_cancelled, args=[folder / "cancel"], daemon=True).start()
    try:
        inputs = _with_out(job.action, job.given, folder / "out")
        outcome = by_name()[job.action].perform(inputs, JobProgress(folder))
    except ActionError as error:
        _write(folder / "ended.json", {"state": Job.FAILED, "warned": [str(error)]})
    else:
        _write(folder / "ended.json", _result(outcome))


def _result(outcome: Outcome) -> dict[str, Any]:
    fields = {"said": outcome.said, "warned": outcome.warned, "data": outcome.complete().data}
    return {"state": Job.FAILED if outcome.status else Job.DONE, **fields}


def _exit_if_cancelled(cancel_file: Path) -> None:
    """Wait until the job is cancelled, then send SIGTERM to the current process.

    The signal makes the action clean up as it does after Ctrl-C.

    cancel_file: file that exists once the job is cancelled
    """
    while not cancel_file.exists():
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


class JobProgress(Progress):
    """Writes a job's progress to a file that the pages read."""

    def __init__(self, folder: Path) -> None:
        self._file, self._last_write = folder / "progress.json", 0.0
        self._state: dict[str, Any] = {"total": None, "unit": "", "done": 0, "said": [], "began": time.time()}

    def begin(self, total: int | None, unit: str) -> None:
        self._state |= {"total": total, "unit": unit, "done": 0, "began": time.time()}
        self._write_state()

    def advance(self, count: int = 0) -> None:
        self._state["done"] += count
        if time.monotonic() - self._last_write >= WRITE_SECONDS:
            self._write_state()

    def say(self, sentence: str) -> None:
        self._state["said"].append(sentence)
        self._write_state()

    def _write_state(self) -> None:
        self._last_write = time.monotonic()
        # Ignore a full disk here, because the action itself reports it.
        with suppress(OSError):
            _write(self._file, self._state | {"at": time.time()})


def _write(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON file atomically, because other processes may read it at any time."""
    write_atomically(path, json.dumps(data, cls=Encoder, ensure_ascii=False))


def watcher_command(mode: str) -> list[str]:
    """Return the command line of the job watcher.

    mode: "alone", or "beside" if a server holds the other end of the watcher's standard input
    """
    folder = job_store.jobs_folder()
    return [sys.executable, "-P", "-m", "annotate.job_watcher", str(folder), mode, *assay_command("work")]


# --- Servers that use the data folder, and the job watcher that runs alongside them (annotate/job_watcher.py)
#
# Each server process holds a lock until it exits, even if the master process has died.

READY = "SERVER_READY"  # environment variable with the message that a server prints once it is listening
SERVES_JOBS = "SERVES_JOBS"  # environment variable set in servers that also run jobs
CHECK_SECONDS = 5.0  # between two checks of the watcher


def lock_serving_file() -> TextIO | None:
    """Open and lock the file that a server process keeps open until it exits. Return None if the disk is full."""
    with suppress(OSError):
        lock = (job_store.jobs_folder() / "serving").open("a+")
        fcntl.flock(lock, fcntl.LOCK_SH)
        lock.truncate(0)
        lock.write(str(os.getppid()))
        lock.flush()
        return lock
    return None


def is_exiting() -> bool:
    """Return whether a server was killed and some of its processes are still running. They exit within seconds."""
    if not (Path(settings.DATA_DIR) / "jobs" / "serving").exists():
        return False
    with (job_store.jobs_folder() / "serving").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            master = lock.read()
            return master.isdigit() and not _is_running(int(master))
    return False


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # the process exists but belongs to another user
    return True


def start_watcher() -> tuple[subprocess.Popen[bytes], int]:
    """Start the watcher. Return its process and a file descriptor; closing the descriptor makes the watcher exit."""
    theirs, ours = os.pipe()
    watcher = subprocess.Popen(watcher_command("beside"), stdin=theirs, env=environment())  # noqa: S603 - our watcher
    os.close(theirs)
    return watcher, ours


def is_watched() -> bool:
    """Return whether a watcher is running. A running watcher holds a lock."""
    try:
        with (Path(settings.DATA_DIR) / "jobs" / "watching").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


class WatcherKeeper:
    """Restarts the job watcher if it was killed.

    Each server process has a keeper. A lock ensures that only one of them restarts the watcher.
    """

    def __init__(self) -> None:
        self._due = time.monotonic() + CHECK_SECONDS
        self._lock: TextIO | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._pipe: int | None = None

    def check(self) -> None:
        now = time.monotonic()
        if SERVES_JOBS not in os.environ or now < self._due:
            return
        self._due = now + CHECK_SECONDS
        with suppress(OSError):  # on a full disk, locking fails, so the next check tries again
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
