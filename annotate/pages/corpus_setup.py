"""Pages for corpora and the inbox, and the form that creates a corpus from a file.

Imports and other operations on a corpus run as jobs (job_pages.py).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.http import FileResponse, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from annotate.actions.action import ActionError
from annotate.actions.registry import by_name
from annotate.core.refusals import InvalidAnswer, NotFound, Refusal
from annotate.figures import overview_report
from annotate.models import Job, Task
from annotate.pages import action_forms
from annotate.pages.access import UserRequest
from annotate.pages.dashboard import manage_page, sort_of
from annotate.reports.numbers import percent
from corpora.core import CorpusError
from corpora.core.records import FIELDS
from corpora.core.values import FREE_LICENCES
from corpora.sources.compression import FORMATS, format_of
from corpora.sources.readers import Sample, sample
from corpora.storage import layout
from corpora.storage.inventory import corpora_there
from corpora.storage.layout import read_manifest

# Field -> other column names that files often use for it. The form preselects a column with one of these names.
ALSO: Mapping[str, tuple[str, ...]] = {
    "id": ("tweet_id", "id_str", "post_id", "doc_id", "celex_id", "uid", "key"),
    "text": ("body", "content", "tweet", "message", "sentence", "full_text", "document"),
    "author": ("user", "user_id", "author_id", "username", "screen_name"),
    "posted_at": ("created_at", "date", "time", "timestamp", "published_at"),
    "url": ("link", "permalink", "uri"),
    "language": ("lang", "locale", "iso"),
    "labels": ("label", "gold", "topic", "category", "eurovoc_concepts"),
}
NEEDED = ("id", "text")
POSTS, RECORDS = "posts", "records"
CUT = 160  # maximum length of a cell in the sample of a file, in characters


def corpora(request: UserRequest) -> HttpResponse:
    rows = corpora_there()
    address = lambda name: reverse("manage-corpus", args=[name])  # noqa: E731 - an argument
    table = overview_report.corpora_on_page(rows, address, sort_of(request)) if rows else None
    return manage_page(request, "corpora", table=table)


def corpus(request: UserRequest, name: str) -> HttpResponse:
    row = next((row for row in corpora_there() if row["corpus"] == name), None)
    if row is None:
        raise NotFound("This corpus does not exist.")
    manifest = read_manifest(name) if not row["fault"] else None
    tasks = Task.objects.filter(draws__corpus__name=name).distinct().order_by("-pk")
    return manage_page(
        request,
        "corpus",
        row=row,
        manifest=manifest,
        # (source file, URL of the list of its rejected rows, which is empty if no row was rejected)
        files=[
            (source, reverse("manage-rejects", args=[name, number]) if source.rejects else "")
            for number, source in enumerate(manifest.sources if manifest else [], start=1)
        ],
        agreed=percent(row["agreed"] / row["voted"]) if row["voted"] else "",
        tasks=tasks,
        jobs=Job.objects.open().filter(corpus=name).order_by("pk"),
        deeds=_deeds_for(row),
    )


def _deeds_for(row: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return the actions that a corpus allows as (URL, link text, is_next_step) tuples."""
    unread = row["holds"] == POSTS and row["voted"] < row["rows"]
    actions = [("prelabel", "Prelabel", True)] if unread else []
    if not row["fault"]:
        actions += [("open_task", "New task", not unread), ("import_predictions", "Import predictions", False)]
        actions += [("delete", "Delete", False)] if not row["draws"] else []
    return [(action_forms.address(name, corpus=row["corpus"]), label, is_next) for name, label, is_next in actions]


def rejects(request: UserRequest, name: str, number: int) -> FileResponse:
    path = layout.corpus_dir(name) / "rejects" / layout.reject_name(number)
    if not path.is_file():
        raise NotFound("This list does not exist, because no rows of the file were rejected.")
    return FileResponse(path.open("rb"), as_attachment=True, filename=f"{name}-rejects-{number}.jsonl")


def inbox_page(request: UserRequest) -> HttpResponse:
    """Show the inbox, upload files to it, or delete a file.

    POST fields:
    file: file to upload; may be repeated
    delete: name of a file to delete
    """
    if request.method == "POST":
        action_forms.check_size(request)
        if name := request.POST.get("delete"):
            action_forms.named(name).unlink(missing_ok=True)
            messages.success(request, f"{name} was deleted.")
        for upload in request.FILES.getlist("file"):
            messages.success(request, f"{action_forms.keep(upload).name} was added to the inbox.")
        return redirect("manage-inbox")
    return manage_page(
        request, "inbox", files=[(path, path.stat()) for path in action_forms.files()], folder=action_forms.folder()
    )


# --- New corpus


def new_corpus(request: UserRequest) -> HttpResponse:
    """Let the manager choose a file and map its columns to fields, then start the import.

    POST fields:
    file: name of a file in the inbox
    upload-file: a file to upload instead
    holds: posts or records
    corpus, licence, source, format, text_may_leave: options of import_corpus
    column-FIELD: name of the file's column that holds FIELD
    fields, language, labels: options of import_corpus that only records have
    """
    if request.method == "GET":
        return _new_corpus(request, request.GET, request.GET.get("file", ""))
    name = request.POST.get("file", "")
    try:
        action_forms.check_size(request)
        if upload := request.FILES.get("upload-file"):
            return redirect(f"{reverse('manage-new-corpus')}?{urlencode({'file': action_forms.keep(upload).name})}")
        if not name:
            raise InvalidAnswer("Select a file from the inbox, or upload a file.")
        options = _options(request.POST, action_forms.named(name))
        return action_forms.begin(request, "import_corpus", options)
    except ActionError as error:
        refusal: Exception = action_forms.reworded(error, by_name()["import_corpus"].options)
    except Refusal as error:
        refusal = error
    return _new_corpus(request, request.POST, name, refusal=refusal)


def _options(posted: Mapping[str, str], path: Path) -> dict[str, Any]:
    """Return the options of import_corpus that the manager entered.

    Raise InvalidAnswer if the file holds records and the form does not name their fields.

    path: the file to import
    """
    texts = {name: posted.get(name, "").strip() for name in ("corpus", "licence", "source", "format")}
    may_leave = {"yes": True, "no": False}.get(posted.get("text_may_leave", ""))
    options: dict[str, Any] = {**texts, "files": [str(path)], "text_may_leave": may_leave}
    if posted.get("holds") != RECORDS:
        return options | {"column": _columns(posted, FIELDS)}
    if not posted.get("fields", "").strip():
        raise InvalidAnswer("Records need fields that annotators see. Enter the fields' columns in order.")
    options |= {name: posted.get(name, "").strip() for name in ("fields", "language", "labels")}
    return options | {"column": _columns(posted, ("id", "language", "author", "posted_at", "url"))}


def _columns(posted: Mapping[str, str], fields: Sequence[str]) -> list[str]:
    """Return FIELD=COLUMN for each field whose column is not named after the field."""
    column_of = {field: posted.get(f"column-{field}", "").strip() for field in fields}
    return [f"{field}={column}" for field, column in column_of.items() if column and column != field]


def _new_corpus(
    request: UserRequest, values: Mapping[str, str], name: str, *, refusal: Exception | None = None
) -> HttpResponse:
    context: dict[str, Any] = {
        "files": action_forms.files(),
        "folder": action_forms.folder(),
        "said": values,
        "formats": FORMATS,
    }
    if name:
        path = action_forms.named(name)
        context |= {"file": path, "size": path.stat().st_size, "tells_format": format_of(path)}
        try:
            preview = sample(path, values.get("format") or None)
            context |= {"sample": _shown(preview), "fields": _fields(preview, values), "licences": FREE_LICENCES}
        except CorpusError as error:
            # Managers know the file by its name, so show the name instead of its path on the server.
            refusal = refusal or InvalidAnswer(str(error).replace(str(path), name))
    return manage_page(request, "new_corpus", refusal=refusal, **context)


def _shown(preview: Sample) -> dict[str, Any]:
    def cell(value: Any) -> str:
        text = "" if value is None else str(value)
        return text if len(text) <= CUT else f"{text[:CUT]}…"

    rows = [[row] if isinstance(row, str) else list(map(cell, row)) for row in preview.rows]
    return {"columns": preview.columns, "rows": rows}


def _fields(preview: Sample, values: Mapping[str, str]) -> list[tuple[str, bool, str]]:
    """Return a (field, is_required_for_posts, selected column) tuple for each field."""
    return [
        (field, field in NEEDED, values.get(f"column-{field}", _guess(field, preview.columns)))
        for field in (*FIELDS, "language", "labels")
    ]


def _guess(field: str, columns: Sequence[str]) -> str:
    columns_by_lower_name = {column.lower(): column for column in reversed(columns)}
    return next(
        (columns_by_lower_name[name] for name in (field, *ALSO.get(field, ())) if name in columns_by_lower_name), ""
    )
