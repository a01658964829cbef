"""Stores background jobs, which are started by managers or by the program. actions/job_worker.py runs them.

Django's own tasks are not used, because they don't report progress and don't end a job whose worker was killed.

Files:

    DATA_DIR/jobs/bell               touched when there is work; annotate/job_watcher.py watches it
                  NUMBER/lock        locked while the job's process is running
                         cancel      present if the job is to be cancelled
                         pid         process id
                         progress.json    see `progress`
                         ended.json  the outcome, written by the job's process
                         log         output of the process if it crashed
                         out/        results to view and download

Progress is stored in files rather than the database, because a job may hold the database's only write lock.
"""

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from annotate.core.refusals import InvalidAnswer, NotFound, WrongStage
from annotate.models import Job, Share
from annotate.work.accounts import token_digest
from corpora.system import FOLDER

KILLED = (
    "The job's process was killed: the machine was switched off, memory ran out, or somebody ended the process. "
    "Finished work is kept and the rest was rolled back. Start the job again."
)
STOPPED = "The job was stopped. Finished work is kept and the rest was rolled back."
MOST_OF_LOG = 4_000  # maximum number of characters kept, from the end of the log


def jobs_folder() -> Path:
    path = Path(settings.DATA_DIR) / "jobs"
    path.mkdir(FOLDER, parents=True, exist_ok=True)
    return path


def folder(job: Job) -> Path:
    return Path(settings.DATA_DIR) / "jobs" / str(job.pk)


def begin(action: str, options: Mapping[str, Any], *, corpus: str = "", by: User | None = None) -> Job:
    """Queue an action.

    action: the action's name.
    options: the action's options, as JSON values.
    corpus: name of the corpus that the action works on; "" if none.
    by: the manager who starts the job; None for the program.
    """
    job = Job.objects.create(action=action, given=dict(options), corpus=corpus, by=by)
    transaction.on_commit(ring)
    return job


def ring() -> None:
    """Notify job_watcher.py that there is work."""
    bell = jobs_folder() / "bell"
    bell.touch()
    os.utime(bell)


def progress(job: Job) -> dict[str, Any]:
    """Return a job's progress as a dict with these keys:

    done: amount of work done.
    total: total amount of work; None if unknown.
    unit: unit of these amounts (B for bytes).
    said: messages about completed parts.
    began: start time of the work, in seconds since 1970.
    at: time of this report, in seconds since 1970.
    """
    try:
        report: dict[str, Any] = json.loads((folder(job) / "progress.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        report = {"done": 0, "total": None, "unit": "", "said": [], "began": 0.0, "at": 0.0}
    return report


@transaction.atomic
def cancel(job: Job) -> None:
    """Cancel a job. A waiting job ends immediately; a running job is interrupted as if by Ctrl-C.

    Raise WrongStage if the job has ended.
    """
    locked_job = Job.objects.select_for_update().get(pk=job.pk)
    if locked_job.state == Job.WAITING:
        _end(locked_job, Job.CANCELLED, warned=["The job was cancelled before it started."])
    elif locked_job.state == Job.RUNNING:
        (folder(locked_job) / "cancel").touch()
    else:
        raise WrongStage("This job has already ended, so it cannot be cancelled.")


@transaction.atomic
def remove(job: Job) -> None:
    """Delete a job and its folder.

    Raise WrongStage if the job has not ended.
    """
    locked_job = Job.objects.select_for_update().get(pk=job.pk)
    if not locked_job.has_ended:
        raise WrongStage("This job has not ended. Cancel it first.")
    job_folder = folder(locked_job)
    locked_job.delete()
    transaction.on_commit(lambda: shutil.rmtree(job_folder, ignore_errors=True))


def has_open_jobs() -> bool:
    """Return whether any job is waiting or running."""
    return Job.objects.open().exists()


def claim() -> tuple[Job, TextIO] | None:
    """Start the next job and return it with its lock. Returns None if no job can start now.

    Jobs start in the order that they were queued, but only one job per corpus runs at a time.
    """
    with suppress(IntegrityError), transaction.atomic():  # another worker may start a job on the same corpus
        busy = set(Job.objects.filter(state=Job.RUNNING).exclude(corpus="").values_list("corpus", flat=True))
        for job in Job.objects.select_for_update(skip_locked=True).filter(state=Job.WAITING).order_by("pk"):
            if job.corpus in busy:
                continue
            busy |= {job.corpus} - {""}
            if (lock := _acquire_lock(job)) is not None:
                job.state, job.began_at = Job.RUNNING, timezone.now()
                job.save(update_fields=["state", "began_at"])
                return job, lock
    return None


def _acquire_lock(job: Job) -> TextIO | None:
    """Acquire and return a job's lock, which child processes inherit. Returns None if another process holds it."""
    job_folder = folder(job)
    job_folder.mkdir(FOLDER, parents=True, exist_ok=True)
    lock = (job_folder / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def record_outcomes() -> None:
    """Record the outcome of jobs whose processes have ended."""
    for job in Job.objects.filter(state=Job.RUNNING):
        if (lock := _acquire_lock(job)) is not None:
            with lock:
                _record_outcome(job)


def _record_outcome(job: Job) -> None:
    job_folder, result = folder(job), {}
    with suppress(FileNotFoundError, ValueError):
        result = json.loads((job_folder / "ended.json").read_text(encoding="utf-8"))
    if result:
        _end(job, result.pop("state"), **result)
        return
    with suppress(FileNotFoundError):
        result["log"] = (job_folder / "log").read_text(encoding="utf-8", errors="replace")[-MOST_OF_LOG:].strip()
    if (job_folder / "cancel").exists():
        _end(job, Job.CANCELLED, warned=[STOPPED])
    else:
        _end(job, Job.FAILED, warned=[result.get("log") or KILLED])


def _end(job: Job, state: str, **fields: Any) -> None:
    Job.objects.filter(pk=job.pk, ended_at=None).update(state=state, ended_at=timezone.now(), **fields)


# --- links: each gives anyone access to one output file, until the link expires or a manager withdraws it


DAYS = 30  # default lifetime of a link (days)
MOST_DAYS = 365


def share(job: Job, path: str, by: User, days: int | None = DAYS) -> str:
    """Create a link to one of a job's output files, and return its token. Only the token's hash is stored.

    path: the file's path in the job's output folder.
    days: the link's lifetime (days).
    """
    if days is None or not 1 <= days <= MOST_DAYS:
        raise InvalidAnswer(f"A link works for 1 to {MOST_DAYS} days. Enter a number of days in this range.")
    token = secrets.token_urlsafe(32)
    job.shares.create(path=path, by=by, digest=token_digest(token), expires_at=timezone.now() + timedelta(days=days))
    return token


def open_shares(**fields: Any) -> QuerySet[Share]:
    """Return the links that still work, newest first.

    fields: field lookups to filter by.
    """
    shares = Share.objects.filter(withdrawn_at=None, expires_at__gt=timezone.now(), **fields)
    return shares.select_related("job", "by")


def find_share(token: str) -> Share | None:
    """Return the link with this token, or None if it does not exist or no longer works."""
    return open_shares(digest=token_digest(token)).first()


def withdraw_share(job: Job, number: int) -> None:
    """Withdraw a link, so that it stops working immediately.

    number: the link's primary key.

    Raise NotFound if it no longer works.
    """
    if not open_shares(job=job, pk=number).update(withdrawn_at=timezone.now()):
        raise NotFound("This link no longer works.")
