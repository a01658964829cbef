"""Jobs in the browser: what was begun, how far it is and what came of it; and the page from which each is begun.

Which actions have a page, and their forms, are in action_forms.py; corpora and files are in corpus_setup.py.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.http import FileResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.actions import job_worker
from annotate.actions.action import ActionError
from annotate.actions.job_worker import is_watched
from annotate.actions.registry import by_name
from annotate.core.refusals import NotFound
from annotate.models import Job, Task
from annotate.pages import action_forms
from annotate.pages.access import with_right
from annotate.pages.dashboard import manage_page
from annotate.reports import writing
from annotate.reports.tables import SENTENCE, SHORT, Cell, Column, Table, table, when
from annotate.work import job_store as work

# --- Jobs in words and in a table

LEAST = 0.02  # of the work must be done before the rest is foretold
UNITS = {"B": (1 << 20, "MB")}  # unit -> how many of it are told as one of another
STATES = {"waiting": "waits", "running": "runs", "done": "done", "failed": "failed", "cancelled": "cancelled"}


def title(job: Any, deed: str) -> str:
    """What is done, and to what."""
    about = job.given.get("task") or job.given.get("corpus") or job.given.get("name") or ""
    return f"{deed}: {about}" if about else deed


def jobs_table(jobs: Iterable[Any], address: Callable[[int], str], asked: str = "") -> Table:
    columns = (
        Column("number", "job", SHORT, lambda job: Cell(str(job.pk), job.pk, url=address(job.pk))),
        Column("action", "what", SHORT, lambda job: Cell(job.action, job.action)),
        Column("about", "of", SHORT, lambda job: str(job.given.get("task") or job.given.get("name") or job.corpus)),
        Column(
            "state",
            "state",
            SHORT,
            lambda job: Cell(STATES[job.state], job.state, mark="falsely" if job.state == "failed" else ""),
        ),
        Column("by", "begun by", SHORT, lambda job: str(job.by) if job.by else "the program"),
        Column("at", "asked for", SHORT, lambda job: when(job.asked_at)),
        Column("took", "took", SHORT, _took),
        Column("said", "what came of it", SENTENCE, lambda job: " ".join([*job.warned[:1], *job.said[:1]])[:200]),
    )
    return table("Jobs", columns, jobs, slug="jobs", asked=asked)


def _took(job: Any) -> Cell:
    if not (job.began_at and job.ended_at):
        return Cell("–")
    seconds = (job.ended_at - job.began_at).total_seconds()
    return Cell(duration(seconds), seconds)


def duration(seconds: float) -> str:
    """In the two largest units."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def progress(of: Mapping[str, Any]) -> dict[str, Any]:
    """of: as work/job_store.py has it. {"done", "total" (as for a bar; None if it is not known), "words", "said"}."""
    done, total, unit = of["done"], of["total"], of["unit"]
    size, name = UNITS.get(unit, (1, f"{unit}s"))
    passed = of["at"] - of["began"]
    told = []
    if done or total:
        amount = f"{done / size:,.0f}" + (f" of {total / size:,.0f}" if total else "")
        told.append(f"{amount} {name}")
    if done and passed > 1:
        told.append(f"{done / size / passed:,.{0 if done / size / passed >= 10 else 1}f} {name} a second")
        if total and done / total >= LEAST:
            left = (total - done) * passed / done - max(0.0, time.time() - of["at"])
            told.append(f"about {duration(left)} left")
    return {"done": done, "total": total, "words": ", ".join(told), "said": of["said"]}


SHOWN = 200  # jobs on the page, the newest


@require_GET
@with_right("manage")
def jobs(request, _):
    listed = list(Job.objects.select_related("by")[:SHOWN])
    table = jobs_table(listed, lambda job: reverse("manage-job", args=[job]), request.GET.get("sort", ""))
    waiting = any(not job.has_ended for job in listed)
    return manage_page(request, "jobs", table=table, unwatched=waiting and not is_watched(), most=SHOWN)


@require_GET
@with_right("manage")
def job(request, _, number):
    """How far a job is, and what came of it; htmx asks for the part that changes, until it has ended."""
    found = get_object_or_404(Job.objects.select_related("by"), pk=number)
    context = _told(found)
    if request.htmx:
        return render(request, "annotate/manage/_job.html", context)
    return manage_page(request, "job", **context)


def _told(job: Job) -> dict[str, Any]:
    action = by_name()[job.action]
    out = work.folder(job) / "out"
    files = sorted(path for path in out.rglob("*") if path.is_file()) if job.state == Job.DONE and out.is_dir() else []
    return {
        "job": job,
        "title": title(job, action_forms.title_of(job)),
        "command": job_worker.command_of(action, job.given),
        "progress": progress(work.progress(job)) if job.state == Job.RUNNING else None,
        "ahead": Job.objects.open().filter(pk__lt=job.pk).count() if job.state == Job.WAITING else 0,
        "unwatched": not job.has_ended and not is_watched(),
        "warned": [action_forms.in_words_of_page(sentence, action) for sentence in job.warned],
        "said": [action_forms.in_words_of_page(sentence, action) for sentence in job.said],
        "rejects": _rejects(job),
        "again": job.action in action_forms.DEEDS and job.has_ended,
        "tried": job.state == Job.DONE and job.given.get("dry_run") is True,
        "files": [(path.relative_to(out).as_posix(), path.stat().st_size) for path in files],
        "report": job.state == Job.DONE and job.action == "evaluate" and writing.as_context(job.data),
        "method_page": reverse("docs-page", args=["explanation/measuring"]),
        "leads_to": _leads_to(job) if job.state == Job.DONE else [],
    }


def _rejects(job: Job) -> str:
    """Where the rows are that a refused import lists; of a corpus that there is, its own page leads to them."""
    named = re.search(r"rejects/0*(\d+)\.jsonl", " ".join(job.warned))
    return reverse("manage-rejects", args=[job.corpus, int(named[1])]) if named and job.corpus else ""


def _leads_to(job: Job) -> list[tuple[str, str]]:
    """Where to go on once it is done: address, words."""
    if job.action == "delete" or job.given.get("dry_run"):
        return []
    found = []
    name = job.given.get("task") or (job.given.get("name") if job.action == "open_task" else None)
    if name and Task.objects.filter(name=name).exists():
        found.append((reverse("manage-task", args=[name]), "To the task"))
    if job.corpus:
        found.append((reverse("manage-corpus", args=[job.corpus]), f"To the corpus {job.corpus}"))
    if job.action in action_forms.SETS:
        there = str(work.folder(job) / "out")
        # A set that was exported before all was decided is measured on by whoever says so.
        said = {} if job.data.get("finished", True) else {"unfinished": "yes"}
        found.append((action_forms.address("evaluate", gold=there, **said), "Measure a classifier on it"))
    return found


@require_POST
@with_right("decide")
def cancel(request, _, number):
    found = get_object_or_404(Job, pk=number)
    work.cancel(found)
    messages.info(request, "The job is being ended; what it has not finished is undone.")
    return redirect("manage-job", number)


@require_POST
@with_right("decide")
def again(request, _, number):
    """Begin once more what has ended. Field: for_good, where it only said what it would do."""
    found = get_object_or_404(Job, pk=number)
    given = {name: value for name, value in found.given.items() if name != "dry_run" or "for_good" not in request.POST}
    return redirect("manage-job", job_worker.ask(found.action, given, by=request.user).pk)


@require_POST
@with_right("decide")
def remove(request, _, number):
    found = get_object_or_404(Job, pk=number)
    work.remove(found)
    messages.success(request, f"Job {number} was removed, with the files that it had made.")
    return redirect("manage-jobs")


@require_GET
@with_right("manage")
def file(request, _, number, path):
    """A file that a job made."""
    out = work.folder(get_object_or_404(Job, pk=number, state=Job.DONE)) / "out"
    found = next((each for each in out.rglob("*") if each.relative_to(out).as_posix() == path and each.is_file()), None)
    if found is None:
        raise NotFound("This job has made no such file.")
    return FileResponse(found.open("rb"), as_attachment=True, filename=found.name)


@require_GET
@with_right("manage")
def packed(request, _, number):
    """All files that a job made, in one."""
    done = get_object_or_404(Job, pk=number, state=Job.DONE)
    out = work.folder(done) / "out"
    if not out.is_dir():
        raise NotFound("This job has made no files.")
    name = f"{done.given.get('task') or done.given.get('name') or done.action}-{done.pk}"
    with tempfile.TemporaryDirectory() as folder:
        packed = shutil.make_archive(f"{folder}/packed", "zip", out)
        # Open before the folder is removed, so that what is sent is there until it is.
        return FileResponse(open(packed, "rb"), as_attachment=True, filename=f"{name}.zip")


@require_http_methods(["GET", "POST"])
@with_right("decide")
def do(request, _, action):
    """The form of an action, and its beginning."""
    _, found = action_forms.deed_named(action)
    if request.method == "GET":
        return _form(request, action, {name: request.GET.getlist(name) for name in request.GET})
    action_forms.check_size(request)
    posted = action_forms.with_uploads(request)
    given: dict[str, Any] = {}
    try:
        given = action_forms.given_by(action, posted)
        if found.asks and "sure" not in posted:
            return _form(request, action, given, foretold=found.foretell(given))
        return redirect("manage-job", job_worker.ask(action, given, by=request.user).pk)
    except ActionError as error:
        refusal = action_forms.in_words_of_page(str(error), found)
        return _form(request, action, given or posted.dict(), refusal=refusal, status=400)


def _form(request, action: str, given, *, status: int = 200, **context):
    deed, found = action_forms.deed_named(action)
    first, rest = action_forms.form(action, _single(found, given))
    return manage_page(
        request,
        "do",
        status=status,
        deed=deed,
        action=found,
        first=first,
        rest=rest,
        can_try=any(option.name == action_forms.TRY for option in found.options),
        now=timezone.now(),
        **context,
    )


def _single(action, given):
    """An address says each option as a list."""
    several = {option.name for option in action.options if option.several}
    return {
        name: value[-1] if isinstance(value, list) and name not in several else value
        for name, value in given.items()
        if value
    }
