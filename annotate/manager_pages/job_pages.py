"""Pages for jobs: the list of jobs, a job's progress, outcome and files, and the form that starts a job.

action_forms.py builds the forms. The pages for corpora and the inbox are in corpus_setup.py.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from textwrap import shorten
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRedirect
from markdown_it import MarkdownIt

from annotate.actions import job_worker
from annotate.actions.action import Action, ActionError
from annotate.actions.job_worker import is_watched
from annotate.actions.registry import by_name
from annotate.core.refusals import NotFound
from annotate.evaluation.baseline_predictions import has_baselines
from annotate.goldsets.gold_set import spreadsheet
from annotate.manager_pages import action_forms, corpus_setup, inbox, setup_steps
from annotate.manager_pages.dashboard import MARK, manage_page, redirect_with_message, sort_of
from annotate.models import Job, Task
from annotate.pages.access import UserRequest, may, text_of, whole_number
from annotate.pages.api_access import allows_visitor
from annotate.reports import report_renderer
from annotate.reports.tables import SENTENCE, SHORT, Cell, Column, Table, many, table, when
from annotate.work import job_store
from corpora.storage.inventory import predictor_rows
from corpora.storage.layout import read_manifest

# --- Table of jobs and description of their progress

LEAST = 0.02  # share of the work after which the remaining time is estimated
OUTCOME = 200  # maximum length of an outcome in the table, in characters
DRY_RUN = "This was a dry run"  # beginning of the sentence that an action prints in a dry run
ROWS = ".jsonl"  # ending of files with rows, which can be downloaded as CSV
GOLD_ROWS = re.compile(r"gold(\.unfinished)?\.jsonl")  # the file with the rows of a gold set
KB, MB = (1 << 10, "kB"), (1 << 20, "MB")  # (number of bytes, name of the unit)
STATES = {"waiting": "queued", "running": "running", "done": "done", "failed": "failed", "cancelled": "cancelled"}


def jobs_table(jobs: Iterable[Any], address: Callable[[int], str], sort: str = "") -> Table:
    def took(job: Job) -> Cell:
        seconds = (job.ended_at - job.began_at).total_seconds() if job.began_at and job.ended_at else None
        return Cell("–") if seconds is None else Cell(duration(seconds), seconds)

    def outcome(job: Job) -> str:
        sentence = first_sentence([*job.said, *job.warned] if job.state == Job.DONE else [*job.warned, *job.said])
        return shorten(action_forms.with_form_labels(sentence, by_name()[job.action].options), OUTCOME, placeholder="…")

    columns = (
        Column("number", "job", SHORT, lambda job: Cell(str(job.pk), job.pk, url=address(job.pk))),
        Column("action", "action", SHORT, lambda job: Cell(action_forms.title_of(job), job.action)),
        Column("about", "subject", SHORT, _subject),
        Column(
            "state",
            "status",
            SHORT,
            lambda job: Cell(STATES[job.state], job.state, mark="falsely" if job.state == "failed" else ""),
        ),
        Column("by", "requested by", SHORT, lambda job: str(job.by) if job.by else "the program"),
        Column("at", "requested", SHORT, lambda job: when(job.asked_at)),
        Column("took", "took", SHORT, took),
        Column("said", "outcome", SENTENCE, outcome),
    )
    return table("Jobs", columns, jobs, slug="jobs", sort=sort)


def first_sentence(texts: Iterable[str]) -> str:
    """Return the first sentence of the first prose paragraph. Titles and tables have no full stop and are skipped."""
    paragraphs = (" ".join(paragraph.split()) for text in texts for paragraph in text.split("\n\n"))
    prose = next((paragraph for paragraph in paragraphs if paragraph.endswith((".", "!", "?"))), "")
    return next(report_renderer.caveats([prose]))[0]


def _subject(job: Job) -> str:
    """Return the name of a job's task or corpus or, if it has neither, of the object that it creates."""
    names = ("name", "task") if job.action in ("open_task", "extend_task") else ("task", "corpus", "name")
    return next((str(job.given[name]) for name in names if job.given.get(name)), job.corpus)


def duration(seconds: float) -> str:
    """Format a number of seconds as seconds, as minutes and seconds, or as hours and minutes."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def progress(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context that shows a job's progress.

    record: result of job_store.progress

    Keys of the result:
    done: completed amount
    total: total amount; None if unknown
    words: description of the amount, speed and remaining time
    said: sentences that the job has printed
    """
    done, total, unit = record["done"], record["total"], record["unit"]
    size, name = (1, f"{unit}s")
    if unit == "B":
        size, name = MB if max(done, total or 0) >= MB[0] else KB
    elapsed = record["at"] - record["began"]
    parts = []
    if done or total:
        amounts = [f"{number / size:,.{0 if size == 1 else 1}f}" for number in (done, total) if number is not None]
        parts.append(f"{' of '.join(amounts)} {name}")
    if done and elapsed > 1:
        parts.append(f"{done / size / elapsed:,.{0 if done / size / elapsed >= 10 else 1}f} {name} per second")
        if total and done / total >= LEAST:
            remaining = (total - done) * elapsed / done - max(0.0, time.time() - record["at"])
            parts.append(f"about {duration(remaining)} left")
    return {"done": done, "total": total, "words": ", ".join(parts), "sentences": record["said"]}


SHOWN = 200  # maximum number of jobs on the page, newest first


def jobs(request: UserRequest, task: Task | None = None) -> HttpResponse:
    """List all jobs, or the jobs of a task."""
    listed = Job.objects.of_task(task.name) if task else Job.objects.all()
    job_list = list(listed.select_related("by")[:SHOWN])
    table = jobs_table(job_list, lambda job: reverse("manage-job", args=[job]), sort_of(request))
    waiting = any(not job.has_ended for job in job_list)
    return manage_page(request, "jobs", task, table=table, unwatched=waiting and not is_watched(), most=SHOWN)


def job(request: UserRequest, job: Job) -> HttpResponse:
    """Show a job's progress and outcome. Until the job ends, htmx polls the part that changes."""
    if request.htmx and job.state == Job.DONE and (url := setup_steps.next_of_job(job)):
        return _redirect_to_next_step(request, job, url)
    context = _job_context(request, job)
    if request.htmx:
        return render(request, "annotate/manage/_job.html", context)
    # Managers of a single task see the job as one of the task's pages.
    task = None if request.user.is_staff else Task.objects.filter(name=job.task_name).first()
    return manage_page(request, "job", task, **context)


def _redirect_to_next_step(request: UserRequest, job: Job, url: str) -> HttpResponse:
    """Redirect from a finished job to the next step of the set-up, with the outcome as a message."""
    # The first sentences are the summary. Tables and other details are only on the job's page.
    summary = [sentence for sentence in job.said if "\n" not in sentence][: 1 if job.action == "open_task" else 2]
    details = f"Details and {many(len(job.warned), 'warning')}" if job.warned else "Details"
    page = reverse("manage-job", args=[job.pk])
    messages.success(request, format_html('{} <a href="{}">{}</a>', " ".join(summary), page, details))
    return HttpResponseClientRedirect(url)


def _output_folder(job: Job) -> Path:
    """Return the folder of a job's output files."""
    return job_store.folder(job) / "out"


def files_of(job: Job) -> dict[str, Path]:
    """Return a job's output files by their path in the output folder; empty unless the job is done."""
    out = _output_folder(job)
    paths = sorted(path for path in out.rglob("*") if path.is_file()) if job.state == Job.DONE else []
    return {path.relative_to(out).as_posix(): path for path in paths}


def find_output(job: Job, path: str) -> Path:
    """Return one of a job's output files. Raise NotFound if the job has not created it."""
    if (output := files_of(job).get(path)) is None:
        raise NotFound("This job did not create this file.")
    return output


def _job_context(request: UserRequest, job: Job) -> dict[str, Any]:
    action, is_done, starts = by_name()[job.action], job.state == Job.DONE, may(request.user, "start")
    title = action_forms.title_of(job)
    tried = is_done and job.given.get("dry_run") is True
    # The message of a refused import contains the path of the file of rejected rows. Link to the file here, because the
    # corpus page links to it only after a successful import.
    rejects = re.search(r"rejects/0*(\d+)\.jsonl", " ".join(job.warned))
    # Omit the sentence about the dry run, because the page has its own note, and a button instead of the option.
    sentences = [sentence for sentence in job.said if sentence and not (tried and sentence.startswith(DRY_RUN))]
    sentences = [action_forms.with_form_labels(sentence, action.options) for sentence in sentences]
    has_form = starts and job.has_ended and job.action in action_forms.JOB_FORMS
    return {
        "job": job,
        "starts": starts,
        "title": ": ".join(filter(None, (title, _subject(job)))),
        "command": job_worker.command_of(action, job.given),
        "progress": progress(job_store.progress(job)) if job.state == Job.RUNNING else None,
        "ahead": Job.objects.open().filter(pk__lt=job.pk).count() if job.state == Job.WAITING else 0,
        "unwatched": not job.has_ended and not is_watched(),
        "figures": _figures(job) if is_done else [],
        "warned": [action_forms.with_form_labels(sentence, action.options) for sentence in job.warned],
        "sentences": [(sentence, is_table(sentence)) for sentence in sentences if not (tried and is_detail(sentence))],
        "details": [(sentence, is_table(sentence)) for sentence in sentences if tried and is_detail(sentence)],
        "rejects": reverse("manage-rejects", args=[job.corpus, int(rejects[1])]) if rejects and job.corpus else "",
        "again": has_form,
        "form_address": _form_address(job) if has_form else "",
        "button": action_forms.JOB_FORMS[job.action].button if has_form else "",
        "tried": tried and starts,
        "files": [(name, path.stat().st_size, is_document(name)) for name, path in files_of(job).items()],
        "rows": next((name for name in files_of(job) if GOLD_ROWS.fullmatch(name)), ""),
        "documents": [name for name in files_of(job) if starts and is_document(name)],
        "shares": list(job_store.open_shares(job=job)),
        "days": job_store.DAYS,
        "report": is_done and job.action == "evaluate" and _report(job, action),
        "method_page": reverse("docs-page", args=["explanation/measuring"]),
        "steps": setup_steps.steps_of_job(job),
        "leads_to": _next_links(job) if is_done and starts else [],
        "prelabel": is_done and starts and _needs_detectors(job),
    }


def is_table(paragraph: str) -> bool:
    return "\n" in paragraph


def is_detail(paragraph: str) -> bool:
    """Return whether a paragraph is a table or introduces one. Previews show such paragraphs last."""
    return is_table(paragraph) or paragraph.endswith(":")


def _report(job: Job, action: Action) -> dict[str, Any]:
    """Return the template context for an evaluation report. Form labels replace option names, except in commands."""
    options = (*action.options, *by_name()["open_task"].options)

    def on_page(sentences: Iterable[str]) -> list[str]:
        return [
            sentence if "assay " in sentence else action_forms.with_form_labels(sentence, options).replace("`", "")
            for sentence in sentences
        ]

    words = {slug: on_page(sentences) for slug, sentences in job.data["words"].items()}
    return report_renderer.as_context(
        job.data | {"warnings": on_page(job.data["warnings"]), "reading": on_page(job.data["reading"]), "words": words}
    )


# Action -> (path in the job's data, label) for each figure on its job's page.
FIGURES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "import_corpus": (
        ("accepted", "rows imported"),
        ("duplicates", "duplicates dropped"),
        ("rejects", "rows rejected"),
    ),
    "import_threads": (("pairs", "pairs"), ("duplicates", "duplicates dropped"), ("rejects", "rows rejected")),
    "import_vocabulary": (("concepts", "concepts"), ("labels", "labels")),
    "prelabel": (("posts", "posts read"), ("agreed", "posts on which the detectors agree")),
    "import_predictions": (("posts", "labels imported"), ("left_out", "unknown ids ignored")),
    "vote": (("posts", "items"), ("rejects", "items without a valid answer"), ("tokens", "tokens")),
    "import_scores": (("rows", "scores imported"), ("kept", "pairs kept"), ("dropped", "pairs dropped")),
    "import_judgments": (("judgments", "answers"), ("units", "items"), ("annotators", "annotators")),
    "open_task": (("stages.QUEUED", "items for people"), ("stages.AGREED", "items on which the detectors agree")),
    "adjudicate": (("settled", "decided"), ("discarded", "discarded")),
    "export_gold": (("counts.labelled", "items with a label"), ("counts.unfinished", "items without a label")),
    "import_gold": (("counts.labelled", "rows with a label"), ("counts.rows", "rows")),
}


def _figures(job: Job) -> list[tuple[str, int]]:
    """Return a job's key figures as (label, number) tuples."""
    figures = []
    for path, label in FIGURES.get(job.action, ()):
        value: Any = job.data
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int):
            figures.append((label, value))
    return figures


def _form_address(job: Job) -> str:
    """Return the URL of the form that started a job, filled with the same values."""
    if job.action == "import_corpus" and corpus_setup.has_all_fields(job):
        return f"{reverse('manage-new-corpus')}?job={job.pk}"
    return action_forms.address(job.action, job=str(job.pk))


def _needs_detectors(job: Job) -> bool:
    """Return whether a job imported posts that the detectors have not labelled yet."""
    manifest = read_manifest(job.corpus) if job.action == "import_corpus" else None
    return bool(manifest and not manifest.fields and len(manifest.votes) < len(manifest.parts))


def _next_links(job: Job) -> list[tuple[str, str]]:
    """Return links to the next steps after a job as (URL, text) tuples, the most likely first."""
    if job.action == "delete" or job.given.get("dry_run"):
        return []
    links = []
    name = job.task_name
    if name and Task.objects.filter(name=name).exists():
        if job.action == "open_task":
            links.append((setup_steps.people_page(name), "Invite people"))
        links.append((reverse("manage-task", args=[name]), "View the task"))
        if job.action == "close":
            links.append((reverse("manage-export", args=[name]), "Export the gold set"))
    if job.action in ("prelabel", "import_corpus", "import_threads", "suggest") and not _needs_detectors(job):
        links.append((action_forms.address("open_task", corpus=job.corpus), "New task"))
    if job.corpus and not name:
        links.append((reverse("manage-corpus", args=[job.corpus]), "View the corpus"))
    if job.action in action_forms.SETS:
        # The `evaluate` action accepts unfinished sets only with the `unfinished` option.
        options = {} if job.data.get("finished", True) else {"unfinished": "yes"}
        corpus = (job.data.get("corpus") or {}).get("name", "")
        predictors = [row["predictor"] for row in predictor_rows(corpus) if row["complete"]] if corpus else []
        chosen = {"predictions": predictors[0]} if predictors else {}
        address = action_forms.address("evaluate", gold=str(_output_folder(job)), **options, **chosen)
        links.insert(0, (address, "Measure a classifier on this set"))
        if has_baselines((job.data.get("task") or {}).get("form", "")):
            address = action_forms.address("baseline", gold=str(_output_folder(job)), **options)
            links.insert(1, (address, "Measure baselines on this set"))
    return links


def cancel(request: UserRequest, job: Job) -> HttpResponse:
    job_store.cancel(job)
    messages.info(request, "The job is being cancelled. Unfinished changes are rolled back.")
    return redirect("manage-job", job.pk)


def again(request: UserRequest, job: Job) -> HttpResponse:
    """Start a new job with a finished job's action and options. If the options are invalid, show the form.

    POST field:
    for_good: present to repeat a dry run as a normal run
    """
    options = {name: value for name, value in job.given.items() if name != "dry_run" or "for_good" not in request.POST}
    try:
        return action_forms.begin(request, job.action, options)
    except ActionError as error:
        messages.warning(request, str(action_forms.reword_error(error, by_name()[job.action].options)))
        return redirect(_form_address(job))


def remove(request: UserRequest, job: Job) -> HttpResponse:
    number = job.pk
    job_store.remove(job)
    return redirect_with_message(request, f"Job {number} was removed, together with its files.", "manage-jobs")


def file(request: UserRequest, job: Job, path: str) -> HttpResponseBase:
    """Show a report or card of a job, or download another output file.

    ?download: also download reports and cards
    ?csv: download the rows of a JSONL file as CSV for a spreadsheet
    """
    if job.state != Job.DONE:
        raise Http404
    output = find_output(job, path)
    if is_document(path) and "download" not in request.GET:
        return document(output)
    if path.endswith(ROWS) and "csv" in request.GET:
        csv = StreamingHttpResponse(chain([MARK], spreadsheet(output)), content_type="text/csv; charset=utf-8")
        csv["Content-Disposition"] = f'attachment; filename="{output.stem}.csv"'
        return csv
    return FileResponse(output.open("rb"), as_attachment=True, filename=output.name)


def share(request: UserRequest, job: Job) -> HttpResponse:
    """Create a link to a report or card. The job's page shows the link only once."""
    link = make_link(request, job, files_of(job))
    return manage_page(request, "job", **_job_context(request, job), link=link)


def download_all(request: UserRequest, job: Job) -> FileResponse:
    """Download all output files of a job as a ZIP archive."""
    if job.state != Job.DONE:
        raise Http404
    if not _output_folder(job).is_dir():
        raise NotFound("This job did not create any files.")
    name = f"{job.given.get('task') or job.given.get('name') or job.action}-{job.pk}"
    with tempfile.TemporaryDirectory() as folder:
        archive = shutil.make_archive(f"{folder}/packed", "zip", _output_folder(job))
        # The open file remains readable after the temporary folder is removed.
        return FileResponse(open(archive, "rb"), as_attachment=True, filename=f"{name}.zip")


def export(request: UserRequest, task: Task) -> HttpResponse:
    """Show the form that exports a task's gold set, or start the export as a job."""
    return do(request, "export_gold", task)


def do(request: UserRequest, action: str, task: Task | None = None) -> HttpResponse:
    """Show the form of an action, or start the action as a job. Some actions require confirmation.

    task: task that the action is restricted to

    GET fields: option values, or `job`: number of an earlier job whose options fill the form
    POST fields: option values; `sure`: present if the user has confirmed; `column-FIELD`: column of a predictions file
        with the field's values; `columns-of`: name of the file whose columns the form showed
    """
    _, declared = action_forms.find_job_form(action)
    # If the link was on a task's page, the form is one of the task's pages and has no field for the task.
    task = task or Task.objects.filter(name=text_of(request.GET, "task")).first()
    if request.method == "GET" and "job" in request.GET:
        return _form(request, action, task, action_forms.job_options(request.GET["job"], action))
    if request.method == "GET":
        several = {option.name for option in declared.options if option.several}
        lists = {name: values for name, values in request.GET.lists() if values}
        values = {name: texts if name in several else texts[-1] for name, texts in lists.items()}
        return _form(request, action, task, values)
    options: dict[str, Any] = {}
    posted: QueryDict = request.POST
    try:
        posted = inbox.with_uploads(request)
        if task:
            posted["task"] = task.name
        options = action_forms.submitted_options(action, posted)
        if action in corpus_setup.FILES:
            options["column"] = corpus_setup.chosen_columns(posted, corpus_setup.PREDICTION_FIELDS)
            if corpus_setup.needs_columns(action, options, posted):
                return _form(request, action, task, options)
        if declared.asks and "sure" not in posted:
            return _form(request, action, task, options, foretold=declared.describe_consequences(options))
        return action_forms.begin(request, action, options)
    except ActionError as error:
        refusal = action_forms.reword_error(error, declared.options)
        return _form(request, action, task, options or posted.dict(), refusal=refusal)


def _form(
    request: UserRequest,
    name: str,
    task: Task | None,
    values: Mapping[str, Any],
    refusal: Exception | None = None,
    **context: Any,
) -> HttpResponse:
    job_form, action = action_forms.find_job_form(name)
    filled = {option: value for option, value in values.items() if value not in (None, "", [])}
    has_columns = name in corpus_setup.FILES
    first, rest = action_forms.form(name, filled, ["column"] if has_columns else (), refusal=refusal)
    first = [field for field in first if not task or field.name != "task"]
    can_try = any(option.name == action_forms.TRY for option in action.options)
    # The first sentence is a summary. The rest explains it.
    summary, _, explanation = (
        action_forms.with_form_labels(action.description, action.options).replace("`", "").partition(". ")
    )
    context |= {"job_form": job_form, "summary": f"{summary.rstrip('.')}.", "explanation": explanation}
    context |= {"first": first, "rest": rest, "can_try": can_try}
    context |= {"of_columns": corpus_setup.FILES.get(name, ""), "columns": corpus_setup.columns_of_form(name, filled)}
    context["is_beside"] = action_forms.is_shown(refusal, first, rest)
    context["opens_advanced"] = any(field.fault for fields in rest.values() for field in fields)
    return manage_page(request, "do", task, refusal=refusal, **context)


# --- Reports and cards that open in the browser, for managers and for anybody with a link (work/job_store.py).
#
# Assay generates the documents, but they quote texts and names from files. Therefore, each document has its own content
# security policy, which allows only inline styles: no scripts, no loading of resources, and no access to the site. The
# export of the gold set determines which texts a report or card may quote (Export.with_text).


REPORT, CARD = "report.html", ".md"
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# Cards escape all text that comes from files, so all tags come from the templates.
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
TOO_MANY = 429


def is_document(path: str) -> bool:
    """Return whether an output file opens in the browser."""
    return path.rpartition("/")[2] == REPORT or path.endswith(CARD)


def document(file: Path) -> HttpResponse:
    """Return a report or card as a self-contained page."""
    text = file.read_text(encoding="utf-8")
    if file.name != REPORT:
        body = MARKDOWN.render(FRONT_MATTER.sub("", text))
        title = re.search(r"<h1>(.*?)</h1>", body)
        context = {"title": mark_safe(title[1] if title else ""), "body": mark_safe(body)}  # noqa: S308 - see MARKDOWN
        text = render_to_string("annotate/card.html", context)
    response = HttpResponse(text)
    response["Content-Security-Policy"] = POLICY
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def make_link(request: UserRequest, job: Job, files: Mapping[str, Path]) -> str:
    """Create a link to one of a job's documents. Return the URL, which is shown only once.

    POST fields:
    path: path of the document
    days: how long the link is valid (days)
    """
    path = request.POST.get("path", "")
    if path not in files or not is_document(path):
        raise Http404
    token = job_store.share(job, path, request.user, whole_number(request.POST.get("days", "")))
    return request.build_absolute_uri(reverse("shared", args=[token]))


def withdraw(request: UserRequest, job: Job, share: int) -> HttpResponse:
    job_store.withdraw_share(job, share)
    return redirect("manage-job", job.pk)


@login_not_required
@csrf_exempt  # changes no data; with the check, a POST would fail because of the token instead of the method
@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """Show a shared document to anybody with the link.

    All invalid links get the same response, which doesn't reveal whether a link ever existed.
    """
    if not allows_visitor(request):
        return HttpResponse("Too many requests. Try again in a minute.\n", status=TOO_MANY, content_type="text/plain")
    share = job_store.find_share(token)
    file = share and job_store.folder(share.job) / "out" / share.path
    if not file or not file.is_file():
        raise Http404
    return document(file)
