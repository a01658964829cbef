"""Pages for corpora and the inbox, and the form that imports a file into a corpus.

Imports and other operations on a corpus run as jobs (job_pages.py).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.http import FileResponse, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from annotate.actions.action import ActionError
from annotate.actions.registry import by_name
from annotate.core.option import format_value
from annotate.core.refusals import InvalidAnswer, NotFound, Refusal
from annotate.figures import overview_report
from annotate.manager_pages import action_forms, inbox, setup_steps
from annotate.manager_pages.dashboard import manage_page, sort_of
from annotate.models import Job, Task
from annotate.pages.access import UserRequest
from annotate.reports.numbers import percent
from corpora.core import CorpusError
from corpora.core.languages import LANGUAGES, UND
from corpora.core.records import FIELDS, RESERVED
from corpora.core.values import FREE_LICENCES, is_free
from corpora.predictions.prediction_rows import FIELDS as PREDICTION_FIELDS
from corpora.predictions.prediction_rows import OBLIGATORY
from corpora.sources.compression import FORMATS, check_file, format_of
from corpora.sources.readers import MOST_INSPECTED, Sample, sample
from corpora.sources.recognition import READERS, describe_format, fault_of, guess, name_from, recognize, unused_name
from corpora.sources.text import DELIMITERS, ENCODINGS, UTF_8, UTF_16, WESTERN, TextFormat, text_format_of
from corpora.storage import layout
from corpora.storage.inventory import POSTS, RECORDS, corpus_rows
from corpora.storage.layout import read_manifest

NEEDED = ("id", "text")
SPARE = ("author", "posted_at", "url")  # fields that are collapsed if the file seems to lack them
FIELD_LABELS = {"id": "Id", "posted_at": "Date and time", "url": "Web address", "labels": "Existing labels"}
OWN_TEXTS = "Our own texts, not to be published"  # default licence of texts that must not be published
# Options of import_corpus that the form shows.
SHOWN = {"corpus", "files", "column", "licence", "source", "format", "encoding", "delimiter", "text_may_leave"}
SHOWN |= {"fields", "language", "labels", "prelabel"}
# Fields of the form that describe the file, and hidden fields.
OF_FILE = ("file", "format", "encoding", "delimiter", "preview", "job", "csrfmiddlewaretoken")
ROWS = 5  # number of rows in the sample of a file
LONGEST_FIELD = 24  # maximum length of a suggested field name, so that a prefix can be added


def corpora(request: UserRequest) -> HttpResponse:
    rows = corpus_rows()
    address = lambda name: reverse("manage-corpus", args=[name])  # noqa: E731 - an argument
    table = overview_report.corpora_table(rows, address, sort_of(request)) if rows else None
    return manage_page(request, "corpora", table=table)


def corpus(request: UserRequest, name: str) -> HttpResponse:
    row = next((row for row in corpus_rows() if row["corpus"] == name), None)
    if row is None:
        raise NotFound("This corpus does not exist.")
    manifest = read_manifest(name) if not row["fault"] else None
    tasks = Task.objects.filter(draws__corpus__name=name).distinct().order_by("-pk")
    return manage_page(
        request,
        "corpus",
        row=row,
        manifest=manifest,
        # (source file, URL of the list of rejected rows, or an empty string if no row was rejected)
        files=[
            (source, reverse("manage-rejects", args=[name, number]) if source.rejects else "")
            for number, source in enumerate(manifest.sources if manifest else [], start=1)
        ],
        agreed=percent(row["agreed"] / row["voted"]) if row["voted"] else "",
        tasks=tasks,
        jobs=Job.objects.open().filter(corpus=name).order_by("pk"),
        actions=_actions_for(row),
        steps=_steps_of(row),
    )


def _steps_of(row: Mapping[str, Any]) -> list[setup_steps.Step]:
    """Return the steps for setting up a corpus's first task; an empty list if the corpus already has a task."""
    if row["draws"] or row["fault"]:
        return []
    return setup_steps.steps(setup_steps.DETECTORS if _needs_detectors(row) else setup_steps.QUESTION, row["corpus"])


def _needs_detectors(row: Mapping[str, Any]) -> bool:
    return bool(row["holds"] == POSTS and row["voted"] < row["rows"])


def _actions_for(row: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return the actions that can be applied to a corpus, as (URL, link text, is_next_step) tuples."""
    unread = _needs_detectors(row)
    actions = [("prelabel", "Label with detectors", True)] if unread else []
    if not row["fault"]:
        actions += [("open_task", "New task", not unread), ("import_predictions", "Import predictions", False)]
        actions += [("vote", "Ask a language model", False)]
        actions += [("export_corpus", "Export", False)] if row["text_may_leave"] and row["rows"] else []
        actions += [("delete", "Delete", False)] if not row["draws"] else []
    return [(action_forms.address(name, corpus=row["corpus"]), label, is_next) for name, label, is_next in actions]


def rejects(request: UserRequest, name: str, number: int) -> FileResponse:
    layout.fetch_manifest(name)
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
        inbox.check_size(request)
        if name := request.POST.get("delete"):
            inbox.find_file(name).unlink(missing_ok=True)
            messages.success(request, f"{name} was deleted.")
        for upload in request.FILES.getlist("file"):
            messages.success(request, f"{inbox.save_upload(request, upload).name} was added to the inbox.")
        return redirect("manage-inbox")
    return manage_page(request, "inbox", files=[(path, path.stat()) for path in inbox.files()], folder=inbox.folder())


# --- New corpus


def new_corpus(request: UserRequest) -> HttpResponse:
    """Let the manager choose a file, its format and the meaning of its columns, and start the import.

    GET fields:
    job: number of an earlier import whose options fill the form
    holds: preselected content of the file (`posts` or `records`)

    POST fields:
    file: name of a file in the inbox
    upload-file: a file to upload instead
    preview: present to show the file in another format instead of importing it
    holds: content of the file (`posts` or `records`)
    corpus, licence, source, format, encoding, delimiter, text_may_leave: options of import_corpus
    prelabel: present to run the detectors on the posts after the import
    column-FIELD: name of the column with the values of FIELD
    fields, language, labels: options of import_corpus that apply only to records
    """
    if request.method == "GET":
        values = _job_values(request.GET["job"]) if "job" in request.GET else request.GET.dict()
        return _render_form(request, values)
    refusal: Exception | None = None
    try:
        inbox.check_size(request)
        if upload := request.FILES.get("upload-file"):
            inbox.check_kind(upload)
            query = {"file": inbox.save_upload(request, upload).name, "holds": request.POST.get("holds", POSTS)}
            return redirect(f"{reverse('manage-new-corpus')}?{urlencode(query)}")
        if not request.POST.get("file"):
            raise InvalidAnswer("Select a file from the inbox, or upload a file.")
        if "preview" not in request.POST:
            return action_forms.begin(request, "import_corpus", _options(request.POST))
    except ActionError as error:
        refusal = action_forms.reword_error(error, by_name()["import_corpus"].options)
    except Refusal as error:
        refusal = error
    except CorpusError:
        pass  # the file can't be read; the form shows the error
    return _render_form(request, request.POST.dict(), refusal=refusal)


def _options(posted: Mapping[str, str]) -> dict[str, Any]:
    """Return the entered options of import_corpus. Raise ActionError if a required option is missing."""
    file = _File.from_form(posted)
    texts = {name: posted.get(name, "").strip() for name in ("corpus", "licence", "source", "format")}
    options: dict[str, Any] = {**texts, "files": [str(file.path)], **file.options}
    options["text_may_leave"] = {"yes": True, "no": False}.get(posted.get("text_may_leave", ""))
    if options["text_may_leave"] is False and not texts["licence"]:
        options["licence"] = OWN_TEXTS
    if options["text_may_leave"] is None and texts["licence"] and not is_free(texts["licence"]):
        raise ActionError(
            f"The licence {texts['licence']} does not say whether the text may be published. Choose yes or no.",
            option="text_may_leave",
        )
    _check_columns(posted, file)
    if posted.get("holds") != RECORDS:
        return options | {"column": chosen_columns(posted, FIELDS), "prelabel": "prelabel" in posted or None}
    if not posted.get("fields", "").strip():
        raise ActionError(
            "Records need fields that annotators see. Enter the fields' columns in order.", option="fields"
        )
    options |= {name: posted.get(name, "").strip() for name in ("language", "labels")}
    columns = file.sample().columns
    if not options["language"] and not posted.get("column-language") and "language" not in columns:
        raise ActionError(
            f"Enter the language of all records, or {UND} if it is mixed or unknown. You can also choose a column.",
            option="language",
        )
    column_of = _columns_by_field(posted["fields"].split(), columns)
    renamed = [f"{field}={column}" for field, column in column_of if field != column]
    named = chosen_columns(posted, ("id", "language", "author", "posted_at", "url"))
    return options | {"fields": " ".join(field for field, _ in column_of), "column": [*named, *renamed]}


def _columns_by_field(words: Iterable[str], columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return the fields of records as (name, column) tuples.

    words: the entered names; each is the name of a column or of a field
    """
    columns_by_field = {_field_name(column): column for column in reversed(columns)}
    chosen = [word if word in columns else columns_by_field.get(word, word) for word in words]
    return [(_field_name(column), column) for column in chosen]


def _field_name(column: str) -> str:
    """Derive a valid field name from a column's name. It differs from the columns that every corpus has."""
    name = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_")[:LONGEST_FIELD]
    if name in RESERVED:
        return "body" if name == "text" else f"{name}_shown"
    return name if name[:1].isalpha() else f"field_{name}"


def _check_columns(posted: Mapping[str, str], file: "_File") -> None:
    """Raise ActionError if a required field has no column, or if a column's first values can't be read."""
    holds_records = posted.get("holds") == RECORDS
    with suppress(CorpusError):  # if the file can't be read, the import reports the error
        preview = file.sample()
        for field in NEEDED[:1] if holds_records else NEEDED:
            if not posted.get(f"column-{field}") and field not in preview.columns:
                raise ActionError(f"Choose the column that contains the {field}.", option=f"column-{field}")
        for field in READERS if holds_records else FIELDS:
            column = posted.get(f"column-{field}") or field
            fault, is_any_readable = fault_of(field, column, preview)
            if fault and not is_any_readable:
                # A column that is named like the field is always read.
                advice = "Choose another column, or none." if column != field else "Correct or rename the column."
                raise ActionError(f"{fault} {advice}", option=f"column-{field}")


def chosen_columns(posted: Mapping[str, str], fields: Sequence[str]) -> list[str]:
    """Return FIELD=COLUMN for each field whose column has a different name."""
    column_of = {field: posted.get(f"column-{field}", "").strip() for field in fields}
    return [f"{field}={column}" for field, column in column_of.items() if column and column != field]


def _job_values(number: str) -> dict[str, str]:
    """Return the form values that an import was started with.

    number: number of the import's job
    """
    options = action_forms.job_options(number, "import_corpus")
    names = dict(pair.split("=", 1) for pair in options.get("column", ()))
    values = {name: str(value) for name, value in options.items() if name not in ("files", "column", "text_may_leave")}
    values |= {f"column-{field}": names.get(field, field) for field in (*FIELDS, "language")}
    if "text_may_leave" in options:
        values["text_may_leave"] = format_value(options["text_may_leave"])
    holds = RECORDS if options.get("fields") else POSTS
    return values | {"file": Path(options["files"][0]).name, "holds": holds}


def records_address(name: str) -> str:
    """Return the URL of the form that imports a corpus's first file again, as records instead of posts."""
    query, manifest = {"holds": RECORDS}, read_manifest(name)
    source = manifest.sources[0] if manifest and manifest.sources else None
    if manifest and source and source.name in {path.name for path in inbox.files()}:
        query |= {"file": source.name, "licence": manifest.licence, "source": manifest.source}
        query |= {"encoding": source.encoding, "delimiter": source.delimiter}
        query |= {"text_may_leave": format_value(manifest.text_may_leave)}
        query |= {f"column-{field}": column for field, column in source.columns.items() if column != field}
        query |= {"format": source.format} if format_of(Path(source.name)) != source.format else {}
    return f"{reverse('manage-new-corpus')}?{urlencode(query)}"


def has_all_fields(job: Job) -> bool:
    """Return whether the form has a field for every option of an import."""
    return len(job.given.get("files", ())) == 1 and job.given.keys() <= SHOWN


@dataclass(frozen=True)
class _File:
    """A file in the inbox and its format.

    format: file format; "" if unknown
    recognized: detected encoding and delimiter
    text_format: encoding and delimiter for reading the file, which are detected or chosen by the manager
    """

    path: Path
    format: str
    recognized: TextFormat
    text_format: TextFormat

    @classmethod
    def from_form(cls, values: Mapping[str, str]) -> "_File":
        """Return the form's file. Raise NotFound if it does not exist, and CorpusError if it can't be read."""
        path = inbox.find_file(values["file"])
        format = values.get("format") if values.get("format") in FORMATS else format_of(path)
        check_file(path, format)
        encoding = values.get("encoding", "") if values.get("encoding") in ENCODINGS else ""
        delimiter = values.get("delimiter", "") if values.get("delimiter") in DELIMITERS else ""
        recognized = text_format_of(path, format or "", most=MOST_INSPECTED)
        text_format = text_format_of(path, format or "", encoding or recognized.encoding, delimiter, MOST_INSPECTED)
        return cls(path, format or "", recognized, text_format)

    def sample(self) -> Sample:
        return sample(self.path, self.format, self.text_format)

    @property
    def options(self) -> dict[str, str]:
        """The options of import_corpus that state how to read the file, unless detection is certain."""
        encoding, delimiter = self.text_format.encoding, self.text_format.delimiter
        is_certain = encoding == self.recognized.encoding in ("", UTF_8, UTF_16)
        changed = {"encoding": "" if is_certain else encoding}
        return changed | {"delimiter": "" if delimiter == self.recognized.delimiter else delimiter}


def _render_form(request: UserRequest, values: Mapping[str, str], *, refusal: Exception | None = None) -> HttpResponse:
    context: dict[str, Any] = {
        "files": [path for path in inbox.files() if inbox.holds_rows(path)],
        "folder": inbox.folder(),
        "entered": values,
        "formats": FORMATS,
        "submitted": {name: value for name, value in values.items() if name not in OF_FILE},
        "steps": setup_steps.steps(
            setup_steps.COLUMNS if values.get("file") else setup_steps.FILE, holds=values.get("holds", POSTS)
        ),
    }
    if values.get("file"):
        path = inbox.find_file(values["file"])
        context |= {"file": path, "size": path.stat().st_size, "tells_format": format_of(path)}
        context |= {
            "corpus": values.get("corpus") or unused_name(name_from(path), (row["corpus"] for row in corpus_rows()))
        }
        is_published = values.get("licence", "") not in ("", OWN_TEXTS)
        context["leaves"] = values.get("text_may_leave", format_value(is_published)) == "yes"
        try:
            file = _File.from_form(values)
            context["recognized"] = describe_format(file.format, file.text_format)
            context |= {"read": file.text_format, "encodings": ENCODINGS, "delimiters": DELIMITERS}
            context["is_guessed"] = file.text_format.encoding == file.recognized.encoding == WESTERN
            preview = file.sample()
            context |= {"sample": sample_context(preview, ROWS), "licences": FREE_LICENCES}
            context["languages"] = sorted((code, language.name) for code, language in LANGUAGES.items())
            fields = _fields(preview, values, refusal)
            context["spare_fields"] = [field for field in fields if field[0] in SPARE and not field[3] and not field[4]]
            context["fields"] = [field for field in fields if field not in context["spare_fields"]]
            context["record_fields"] = _record_fields(preview.columns, values)
        except CorpusError as error:
            # Show the file name that managers know instead of the path on the server.
            refusal = refusal or InvalidAnswer(str(error).replace(str(path), path.name))
    option = getattr(refusal, "option", "")
    context |= {"faults": {option: refusal}, "is_beside": option and "sample" in context}
    status = 200 if "preview" in values else 0  # htmx ignores pages with an error status
    return manage_page(request, "new_corpus", refusal=refusal, status=status, **context)


def _fields(
    preview: Sample, values: Mapping[str, str], refusal: Exception | None
) -> list[tuple[str, str, bool, str, Exception | None]]:
    """Return a (field, label, is_required_for_posts, selected column, fault) tuple for each field.

    If the preview has other columns than before, columns are guessed again.
    """

    def column(field: str) -> str:
        chosen = values.get(f"column-{field}")
        is_gone = "preview" in values and chosen not in preview.columns
        if chosen is not None and not is_gone:
            return chosen
        guessed = guess(field, preview.columns)
        return "" if fault_of(field, guessed, preview)[0] else guessed

    def label(field: str) -> str:
        return FIELD_LABELS.get(field, field.capitalize())

    refused = getattr(refusal, "option", "")
    return [
        (field, label(field), field in NEEDED, column(field), refusal if refused == f"column-{field}" else None)
        for field in (*FIELDS, "language", "labels")
    ]


def _record_fields(columns: Sequence[str], values: Mapping[str, str]) -> str:
    """Return the entered fields of records; by default, all columns that have no other meaning."""
    entered = values.get("fields", "")
    names = {_field_name(column) for column in columns}
    is_gone = (
        "preview" in values and not {_field_name(word) for word in entered.split()} | set(entered.split()) <= names
    )
    if "fields" in values and not is_gone:
        return entered
    others = {guess(field, columns) for field in (*FIELDS, "language", "labels") if field != "text"}
    # Columns keep their names, unless a name contains the separator.
    return " ".join(_field_name(column) if " " in column else column for column in columns if column not in others)


# --- The columns of a file in an action's form


CUT = 160  # maximum length of a cell in the sample of a file, in characters
FORM_ROWS = 3  # number of rows in the sample of an action's form
# Action -> its option for a file of predictions, whose columns the form offers.
FILES: Mapping[str, str] = {"evaluate": "predictions", "import_predictions": "file"}
SHOWN_FOR = "columns-of"  # form field that names the file whose columns the form shows


def sample_context(preview: Sample, rows: int | None = None) -> dict[str, Any]:
    """Return the template context that shows the first rows of a file.

    rows: maximum number of rows; all by default
    """

    def cell(value: Any) -> str:
        # A page can't contain half of a surrogate pair. The import will reject the row.
        text = "" if value is None else str(value).encode(errors="replace").decode()
        return text if len(text) <= CUT else f"{text[:CUT]}…"

    cells = [[row] if isinstance(row, str) else list(map(cell, row)) for row in preview.rows[:rows]]
    return {"columns": preview.columns, "rows": cells}


@dataclass(frozen=True)
class FileColumns:
    """The columns of a file that an action's form offers.

    name: file name
    fields: (field, label, is_required, selected column) tuples
    """

    name: str
    fields: list[tuple[str, str, bool, str]]
    sample: dict[str, Any]

    @property
    def are_obvious(self) -> bool:
        """Whether the required columns are named like the fields, so that the manager needn't choose."""
        return set(OBLIGATORY) <= set(self.sample["columns"])


def columns_of_form(action: str, values: Mapping[str, Any]) -> FileColumns | None:
    """Return the columns to offer for the file in an action's form; None if the form has no file with columns."""
    path = str(values.get(FILES.get(action, ""), ""))
    if (preview := _preview(path)) is None:
        return None
    guesses = {field: guess(field, preview.columns) for field in PREDICTION_FIELDS}
    if format_of(Path(path)) == "tsv" and not any(guesses.values()):
        return None  # the file has no header
    chosen = guesses | dict(pair.split("=", 1) for pair in values.get("column", ()) if "=" in pair)
    fields = [(field, field.capitalize(), field in OBLIGATORY, chosen[field]) for field in PREDICTION_FIELDS]
    return FileColumns(Path(path).name, fields, sample_context(preview, FORM_ROWS))


def needs_columns(action: str, values: Mapping[str, Any], posted: QueryDict) -> bool:
    """Return whether the form must be shown again, because the manager has not chosen the file's columns yet."""
    columns = columns_of_form(action, values)
    return columns is not None and not columns.are_obvious and posted.get(SHOWN_FOR) != columns.name


def _preview(path: str) -> Sample | None:
    """Return the first rows of a file in the inbox; None if it is not a readable table."""
    if path not in map(str, inbox.files()):
        return None
    try:
        return recognize(Path(path)).sample
    except CorpusError:
        return None
