"""The steps of setting up a task, from a file to annotators at work. The pages show them as a stepper.

The state of a set-up is not stored. The next step follows from what exists: a file in the inbox, a corpus, votes, a
task or annotators. A set-up therefore survives a reload, and any manager can continue it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from annotate.manager_pages import action_forms, inbox
from annotate.models import Job
from corpora.storage.inventory import POSTS, RECORDS, corpus_rows

FILE, COLUMNS, DETECTORS, QUESTION, PEOPLE = range(5)
# (title, description) of the steps.
STEPS = (
    ("File", "A table with a text in each row: CSV, TSV, JSONL or Parquet."),
    ("Columns and rights", "Choose the columns, and whether the texts may be published."),
    ("Detectors", "Three detectors identify the language of each post."),
    ("Question and sample", "Choose a question and the number of items, and see a forecast."),
    ("People", "Invite annotators. They start with the guidelines."),
)
# Action -> the step that its job performs.
STEP_OF = {"import_corpus": DETECTORS, "prelabel": DETECTORS, "open_task": QUESTION}
MOST = 3  # maximum number of unfinished set-ups on the dashboard


@dataclass(frozen=True)
class Step:
    """A step in the stepper.

    url: URL of the page that shows or changes a finished step; "" if there is none
    """

    title: str
    url: str
    is_done: bool
    is_current: bool


def steps(current: int, corpus: str = "", task: str = "", holds: str = "") -> list[Step]:
    """Return the steps of a set-up. Records skip the detectors, because their languages are declared.

    current: number of the current step
    corpus, task: names of the corpus and the task; "" if they don't exist yet
    holds: POSTS or RECORDS; needed only if the corpus doesn't exist yet
    """
    holds = next((row["holds"] for row in corpus_rows() if row["corpus"] == corpus), holds)
    skipped = DETECTORS if holds == RECORDS else None
    current = COLUMNS if current == skipped else current
    corpus_url = reverse("manage-corpus", args=[corpus]) if corpus else ""
    urls = {
        FILE: corpus_url or reverse("manage-new-corpus"),
        COLUMNS: corpus_url,
        DETECTORS: corpus_url,
        QUESTION: reverse("manage-task", args=[task]) if task else "",
    }
    return [
        Step(title, urls.get(number, "") if number < current else "", number < current, number == current)
        for number, (title, _) in enumerate(STEPS)
        if number != skipped
    ]


def steps_of_job(job: Job) -> list[Step]:
    """Return the steps for a job's page; an empty list if the job is not part of a set-up.

    The step of the columns is finished only once the corpus exists, because an import can still fail.
    """
    if job.action not in STEP_OF or job.given.get("dry_run"):
        return []
    corpus = next((row["corpus"] for row in corpus_rows() if row["corpus"] == job.corpus), "")
    holds = RECORDS if job.given.get("fields") else POSTS
    return steps(STEP_OF[job.action] + (job.state == Job.DONE) if corpus else COLUMNS, corpus, holds=holds)


def next_of_job(job: Job) -> str:
    """Return the URL of the next step after a job.

    Return "" if the job is not part of a set-up, or if its corpus is not ready for the next step.
    """
    if not steps_of_job(job):
        return ""
    if job.action == "open_task":
        return people_page(job.given["name"])
    row = next((row for row in corpus_rows() if row["corpus"] == job.corpus), None)
    is_read = row and not row["fault"] and (row["holds"] == RECORDS or row["voted"] == row["rows"])
    return action_forms.address("open_task", corpus=job.corpus) if is_read else ""


def next_of_corpus(row: dict[str, Any]) -> tuple[str, str] | None:
    """Return the next step for a corpus as (URL, text); None if there is none.

    row: a row of corpus_rows
    """
    if row["fault"] or row["holds"] not in (POSTS, RECORDS):
        return None
    if row["holds"] == POSTS and row["voted"] < row["rows"]:
        return action_forms.address("prelabel", corpus=row["corpus"]), "Label with detectors"
    return action_forms.address("open_task", corpus=row["corpus"]), "Choose a question"


def people_page(task: str) -> str:
    return f"{reverse('manage-new-accounts')}?{urlencode({'task': task})}"


# --- Set-ups that can be continued


def unfinished_setups(states: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the first MOST unfinished set-ups as (name, URL, next step) tuples.

    states: the states of the open tasks, from all_tasks in figures/attention.py
    """
    tasks = ((name, people_page(name), "Invite people") for name, state in states.items() if state["is_unread"])
    return list(islice(chain(tasks, _corpora_without_tasks(), _files_without_corpus()), MOST))


def _corpora_without_tasks() -> Iterator[tuple[str, str, str]]:
    jobs = {job.corpus: job.pk for job in Job.objects.open()}
    for row in sorted(corpus_rows(), key=lambda row: str(row["created_at"]), reverse=True):
        if row["corpus"] in jobs:
            yield row["corpus"], reverse("manage-job", args=[jobs[row["corpus"]]]), "View the running job"
        elif not row["draws"] and (link := next_of_corpus(row)):
            yield row["corpus"], *link


def _files_without_corpus() -> Iterator[tuple[str, str, str]]:
    """Yield the newest file in the inbox if it is a table and no job has been started since the upload."""
    for path in inbox.files()[:1]:
        uploaded_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        if inbox.holds_rows(path) and not Job.objects.filter(asked_at__gte=uploaded_at).exists():
            yield path.name, f"{reverse('manage-new-corpus')}?{urlencode({'file': path.name})}", "Choose the columns"
