"""Jobs: actions that a manager, or the program, has done in the background; actions/job_worker.py does them. Django's
own tasks would bring neither progress nor an end for a job whose worker was killed.

    DATA_DIR/jobs/bell               rung when there is something to do; annotate/job_watcher.py hears it
                  NUMBER/lock        held for as long as the job's process lives
                         cancel      it is to end
                         pid         the number of its process
                         progress.json    how far it is: `progress`
                         ended.json  how it ended, written by its process
                         log         what its process said when it broke off
                         out/        what it wrote, to be looked at and downloaded

How far a job is stands in files and not in its row: while it works it may hold the only lock that a writer of the
database can have.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotate.core.refusals import WrongStage
from annotate.models import Job
from corpora.system import FOLDER

KILLED = (
    "Its process was ended from outside: the machine was switched off, memory ran out, or somebody killed it. What it "
    "had finished is kept, and the rest is undone. Begin it again."
)
STOPPED = "It was stopped. What was finished is kept, and the rest is undone."
MOST_OF_LOG = 4_000  # characters at its end


def jobs_folder() -> Path:
    made = Path(settings.DATA_DIR) / "jobs"
    made.mkdir(FOLDER, parents=True, exist_ok=True)
    return made


def folder(job: Job) -> Path:
    return Path(settings.DATA_DIR) / "jobs" / str(job.pk)


def begin(action: str, given: Mapping[str, Any], *, corpus: str = "", by: User | None = None) -> Job:
    """Have an action done as soon as its turn comes. given: what is given for its options, as JSON can hold it."""
    job = Job.objects.create(action=action, given=dict(given), corpus=corpus, by=by)
    transaction.on_commit(ring)
    return job


def ring() -> None:
    """Wake whoever watches for something to do."""
    bell = jobs_folder() / "bell"
    bell.touch()
    os.utime(bell)


def progress(job: Job) -> dict[str, Any]:
    """{"done", "total", "unit", "said", "began", "at"}: how much is done, of how much if that is known, in which unit
    (B for bytes); sentences on what is done for good; when the work began, and when this was written, in seconds since
    1970.
    """
    try:
        return json.loads((folder(job) / "progress.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {"done": 0, "total": None, "unit": "", "said": [], "began": 0.0, "at": 0.0}


@transaction.atomic
def cancel(job: Job) -> None:
    """End a job: at once where it waits, and as Ctrl-C ends a command where it runs. WrongStage if it has ended."""
    found = Job.objects.select_for_update().get(pk=job.pk)
    if found.state == Job.WAITING:
        _end(found, Job.CANCELLED, warned=["It was cancelled before it began."])
    elif found.state == Job.RUNNING:
        (folder(found) / "cancel").touch()
    else:
        raise WrongStage("This job has ended already, so there is nothing to cancel.")


@transaction.atomic
def remove(job: Job) -> None:
    """Remove a job with its folder. WrongStage unless it has ended."""
    found = Job.objects.select_for_update().get(pk=job.pk)
    if not found.has_ended:
        raise WrongStage("This job has not ended. Cancel it first.")
    where = folder(found)
    found.delete()
    transaction.on_commit(lambda: shutil.rmtree(where, ignore_errors=True))


def is_left() -> bool:
    """Whether any job waits or runs."""
    return Job.objects.open().exists()


def claim() -> tuple[Job, TextIO] | None:
    """The next job, which runs from now on, with its lock; None if nothing can begin now.

    The first that was asked for comes first; of one corpus there is one at a time.
    """
    with suppress(IntegrityError), transaction.atomic():  # another worker was quicker with the same corpus
        busy = set(Job.objects.filter(state=Job.RUNNING).exclude(corpus="").values_list("corpus", flat=True))
        for job in Job.objects.select_for_update(skip_locked=True).filter(state=Job.WAITING).order_by("pk"):
            if job.corpus in busy:
                continue
            busy |= {job.corpus} - {""}
            if (lock := _lock(job)) is not None:
                job.state, job.began_at = Job.RUNNING, timezone.now()
                job.save(update_fields=["state", "began_at"])
                return job, lock
    return None


def _lock(job: Job) -> TextIO | None:
    """The lock of the job, which whoever inherits it holds as well; None if somebody has it."""
    where = folder(job)
    where.mkdir(FOLDER, parents=True, exist_ok=True)
    lock = (where / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def settle() -> None:
    """Write down how those jobs ended whose processes have ended."""
    for job in Job.objects.filter(state=Job.RUNNING):
        if (lock := _lock(job)) is not None:
            with lock:
                _settle(job)


def _settle(job: Job) -> None:
    where, told = folder(job), {}
    with suppress(FileNotFoundError, ValueError):
        told = json.loads((where / "ended.json").read_text(encoding="utf-8"))
    if told:
        _end(job, told.pop("state"), **told)
        return
    with suppress(FileNotFoundError):
        told["log"] = (where / "log").read_text(encoding="utf-8", errors="replace")[-MOST_OF_LOG:].strip()
    if (where / "cancel").exists():
        _end(job, Job.CANCELLED, warned=[STOPPED])
    else:
        _end(job, Job.FAILED, warned=[told.get("log") or KILLED])


def _end(job: Job, state: str, **told: Any) -> None:
    Job.objects.filter(pk=job.pk, ended_at=None).update(state=state, ended_at=timezone.now(), **told)
