"""Forms for the actions that managers run as jobs, built from the options of the actions.

A form has the same options and help texts as the command. It also offers uploads, and lists of choices such as the
existing corpora.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from annotate.actions import job_worker
from annotate.actions.action import Action, ActionError
from annotate.actions.open_task import ASKED_HERE
from annotate.actions.registry import by_name
from annotate.core.option import Option, flag, whole_number, written
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.models import Job, Task
from annotate.pages.access import PageRequest, UserRequest
from annotate.work import job_store
from annotate.work.accounts import is_manager
from corpora.models import Corpus, Vocabulary
from corpora.storage.inventory import POSTS, corpora_there, predictors_there
from corpora.storage.layout import digest_of
from corpora.system import FOLDER

if TYPE_CHECKING:
    _UploadedFile = UploadedFile[bytes]
else:
    _UploadedFile = UploadedFile

# --- The inbox: a folder in the data folder for the files that jobs read. Managers upload the files or copy them there.
# An upload gets its final name only after the whole request was read, so a closed tab or an oversized file leaves
# nothing behind.

ARRIVING = ".arriving-"
STALE = 24 * 3600  # age at which the unfinished upload of a killed server is removed, in seconds
LONGEST = 120  # maximum length of a file name, in characters


def folder() -> Path:
    inbox = Path(settings.DATA_DIR) / "inbox"
    inbox.mkdir(FOLDER, parents=True, exist_ok=True)
    return inbox


def files() -> list[Path]:
    """Return the files in the inbox, newest first."""
    paths = [path for path in folder().iterdir() if path.is_file() and not path.name.startswith(".")]
    return sorted(paths, key=lambda path: -path.stat().st_mtime)


def named(name: str) -> Path:
    """Return the file in the inbox that has this name. Raise NotFound if there is no such file."""
    match = next((path for path in files() if path.name == name), None)
    if match is None:
        raise NotFound(f"The inbox does not contain the file {name!r}. It may have been deleted; upload it again.")
    return match


class Arriving(_UploadedFile):
    """A file that is being uploaded to the inbox. Closing it discards it, unless `keep` was called."""

    def __init__(self, name: str, content_type: str, charset: str | None) -> None:
        # The request closes the file.
        file = NamedTemporaryFile(prefix=ARRIVING, dir=folder())  # noqa: SIM115
        super().__init__(file, name, content_type, 0, charset)


class ToInbox(FileUploadHandler):
    """An upload handler that accepts only files of managers, up to the size ASSAY_UPLOAD_MOST."""

    request: PageRequest

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        if not is_manager(self.request.user):
            raise StopUpload(connection_reset=False)
        self.file = Arriving(self.file_name or "", self.content_type or "", self.charset)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if start + len(raw_data) > settings.UPLOAD_MOST:
            self.request.too_large = self.file_name or ""
            self.file.close()
            # Read and discard the rest: if the connection were cut, the browser would show its own error.
            raise StopUpload(connection_reset=False)
        self.file.write(raw_data)

    def file_complete(self, file_size: int) -> Arriving:
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


def check_size(request: HttpRequest) -> None:
    """Raise InvalidAnswer if an uploaded file was too large."""
    _ = request.FILES  # reads the body of the request if that has not happened yet
    if name := getattr(request, "too_large", ""):
        raise InvalidAnswer(
            f"{name} is larger than {settings.UPLOAD_MOST >> 20:,} MB, the maximum for uploads. Copy it into the "
            f"folder {folder()} on the server and select it here, or increase ASSAY_UPLOAD_MOST."
        )


def with_uploads(request: HttpRequest) -> QueryDict:
    """Return the values of a form after moving its uploaded files into the inbox.

    A file that was uploaded as upload-NAME becomes a value of the field NAME. Raise InvalidAnswer if a file is too
    large, is empty or has an invalid name.
    """
    check_size(request)
    posted = request.POST.copy()
    for name in request.FILES:
        for upload in request.FILES.getlist(name):
            posted.appendlist(name.removeprefix("upload-"), str(keep(upload)))
    return posted


def keep(upload: _UploadedFile) -> Path:
    """Move an uploaded file into the inbox and return its path.

    If the inbox already has a file with the same name and content, return the path of that file. Raise InvalidAnswer if
    the uploaded file is empty or has an invalid name.
    """
    name = Path(upload.name or "").name
    if not name or name.startswith(".") or len(name) > LONGEST or not name.isprintable():
        raise InvalidAnswer(f"The file name {name[:40]!r} is not allowed. Rename the file and upload it again.")
    if not upload.size:
        raise InvalidAnswer(f"{name} is empty. Choose another file.")
    assert upload.file is not None
    upload.flush()
    os.fsync(upload.fileno())
    _sweep()
    stem, dot, endings = name.partition(".")
    for number in count(1):
        path = folder() / (name if number == 1 else f"{stem} ({number}){dot}{endings}")
        with suppress(FileExistsError):
            os.link(upload.file.name, path)
            return path
        if path.stat().st_size == upload.size and digest_of(path) == digest_of(Path(upload.file.name)):
            return path
    raise AssertionError("there is always another number")


def _sweep() -> None:
    for path in folder().glob(f"{ARRIVING}*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > STALE:
                path.unlink()


Choices = list[tuple[str, str]]  # (value, text)


@dataclass(frozen=True)
class Deed:
    """A form for an action.

    title: heading of the page
    button: label of the button
    first: options that are always visible, in this order
    hidden: options that the page sets itself
    """

    title: str
    button: str
    first: tuple[str, ...]
    hidden: tuple[str, ...] = ()


DEEDS: Mapping[str, Deed] = {
    "import_corpus": Deed(
        "Import a corpus",
        "Import",
        ("corpus", "files", "licence", "text_may_leave", "source", "column", "fields", "language", "labels"),
    ),
    "import_threads": Deed(
        "New corpus of message-reply pairs", "Import", ("corpus", "files", "licence", "text_may_leave")
    ),
    "import_vocabulary": Deed("New vocabulary", "Import", ("name", "files", "schemes")),
    "prelabel": Deed("Prelabel", "Prelabel", ("corpus",)),
    "import_predictions": Deed("Import predictions", "Import", ("corpus", "file", "name", "version", "column")),
    "import_scores": Deed("Import scores", "Import", ("corpus", "file", "name", "threshold")),
    "suggest": Deed("Suggest labels", "Suggest", ("corpus", "vocabulary")),
    "export_pairs": Deed("Export pairs", "Export", ("corpus", "seed"), ("out",)),
    "open_task": Deed(
        "New task",
        "Open the task",
        (
            *("name", "title", "corpus", "kind", "design", "size", "seed"),
            *("languages", "labels", "guidelines", "redundancy"),
        ),
    ),
    "extend_task": Deed("Extend", "Extend", ("name", "size")),
    "import_judgments": Deed("Import judgments", "Import", ("task", "file", "column")),
    "close": Deed("Close the task", "Close", ("task", "leave_out")),
    "reopen": Deed("Reopen the task", "Reopen", ("task",)),
    "reroute": Deed("Reroute", "Reroute", ("task",)),
    "audit": Deed("Audit", "Continue", ("task", "contest", "add", "checks", "languages")),
    "adjudicate": Deed("Import decisions", "Import", ("task", "file", "as"), ("list", "out")),
    "delete": Deed("Delete", "Delete", ("task", "corpus", "predictor")),
    "export_gold": Deed("Export the gold set", "Export", ("task",), ("out",)),
    "import_gold": Deed("Import a published gold set", "Import", ("file", "name", "design", "licence"), ("out",)),
    "evaluate": Deed("Evaluate", "Evaluate", ("predictions", "gold", "against", "judge", "column"), ("out", "format")),
}
# Options that take either a name or a file. Their fields offer the known names, and also an upload.
ALSO_FILES = (("open_task", "systems"), *(("evaluate", name) for name in ("predictions", "against", "judge")))


def _tasks() -> Choices:
    return [(task.name, f"{task.title} ({task.name})") for task in Task.objects.order_by("-is_open", "-pk")]


# (action, option) or option -> function that returns its choices.
CHOICES: Mapping[str | tuple[str, str], Callable[[], Choices]] = {
    "corpus": lambda: _twice(Corpus.objects.values_list("name", flat=True)),
    "task": lambda: _tasks(),
    ("extend_task", "name"): lambda: _tasks(),
    ("prelabel", "corpus"): lambda: _twice(row["corpus"] for row in corpora_there() if row["holds"] == POSTS),
    "vocabulary": lambda: _twice(Vocabulary.objects.order_by().values_list("name", flat=True).distinct()),
    ("evaluate", "gold"): lambda: gold_sets(),
    ("open_task", "kind"): lambda: [*_twice(ASKED_HERE), *in_inbox(".toml")],
    "predictor": lambda: _predictors(),
    **dict.fromkeys(ALSO_FILES, lambda: [*_predictors(), *in_inbox()]),
}
# Options whose value is typed instead of chosen, mostly because it names a new corpus or task.
TYPED = {
    ("import_corpus", "corpus"),
    ("import_threads", "corpus"),
    ("import_judgments", "task"),
    ("evaluate", "corpus"),
}
TRY = "dry_run"  # has a button instead of a field
# Option that accepts only files with a certain extension -> the extension.
ENDINGS = {"guidelines": ".md", "languages": ".toml"}
SETS = ("export_gold", "import_gold", "export_pairs")


def in_inbox(ending: str = "") -> Choices:
    return [(str(path), path.name) for path in files() if path.name.endswith(ending)]


def gold_sets() -> Choices:
    """Return the gold sets that jobs exported or imported, as choices of their folders, newest first."""
    done = Job.objects.filter(action__in=SETS, state=Job.DONE)
    folders = [(job_store.folder(job) / "out", job) for job in done]
    return [
        (str(out), f"{job.given.get('task') or job.given.get('name') or job.corpus}, job {job.pk}")
        for out, job in folders
        if out.is_dir()
    ]


def _predictors() -> Choices:
    return _twice(dict.fromkeys(row["predictor"] for row in predictors_there("")))


def _twice(names: Iterable[str]) -> Choices:
    return [(name, name) for name in names]


@dataclass(frozen=True)
class Field:
    """An option as a form field.

    kind: line, number, lines, choice, choices or yes
    value: current value
    choices: (value, text, is_selected) tuples
    is_file: whether the field also offers an upload
    otherwise: the default as text, which the page shows while the field is empty
    """

    name: str
    label: str
    help: str
    kind: str
    value: str
    choices: Sequence[tuple[str, str, bool]]
    required: bool = True
    is_file: bool = False
    otherwise: str = ""


def deed_named(name: str) -> tuple[Deed, Action]:
    if name not in DEEDS:
        raise NotFound("This page does not exist.")
    return DEEDS[name], by_name()[name]


def title_of(job: Job) -> str:
    """Return the heading of the form that started a job."""
    return DEEDS[job.action].title if job.action in DEEDS else job.action


def address(name: str, **values: str) -> str:
    """Return the URL of an action's form.

    given: values to fill in
    """
    page = reverse("manage-new-task") if name == "open_task" else reverse("manage-do", args=[name])
    return f"{page}?{urlencode(values)}" if values else page


def label_of(option: Option) -> str:
    return option.name.replace("_", " ").capitalize()


def form(
    name: str, values: Mapping[str, Any], without: Collection[str] = (), defaults: Mapping[str, Any] | None = None
) -> tuple[list[Field], dict[str, list[Field]]]:
    """Return the form of an action: the fields that are always visible, and a mapping from heading to other fields.

    name: name of the action
    values: mapping from option name to current value
    without: names of options to leave out
    defaults: mapping from option name to the default that replaces the option's own
    """
    deed, action = deed_named(name)
    options = {option.name: option for option in action.options if option.name not in (*without, TRY)}
    first = [
        _field(name, options[option_name], values, defaults) for option_name in deed.first if option_name in options
    ]
    rest: dict[str, list[Field]] = {}
    for option in options.values():
        if option.name not in (*deed.first, *deed.hidden):
            rest.setdefault(option.group or "Further options", []).append(_field(name, option, values, defaults))
    return first, rest


def choices_of(action: str, option: Option) -> Choices | None:
    """Return the choices for an option, or None if the form offers none."""
    if (action, option.name) in TYPED:
        return None
    if list_choices := CHOICES.get((action, option.name)) or CHOICES.get(option.name):
        return list_choices()
    if option.is_file:
        return in_inbox(ENDINGS.get(option.name, ""))
    if option.choices:
        return _twice(option.choices)
    return _twice(("yes", "no")) if option.read is flag and option.opposite else None


def _field(action: str, option: Option, values: Mapping[str, Any], defaults: Mapping[str, Any] | None) -> Field:
    value_given, choice_list = values.get(option.name), choices_of(action, option)
    texts = (
        list(map(str, value_given))
        if isinstance(value_given, list)
        else []
        if value_given in (None, "", ())
        else [written(value_given)]
    )
    kind, value, choices = "line", "\n".join(texts), list[tuple[str, str, bool]]()
    if choice_list is not None:
        kind = "choices" if option.several else "choice"
        choices = [(offer, text, offer in texts) for offer, text in choice_list]
    elif option.read is flag:
        kind, value = "yes", "yes" if texts == ["yes"] or (value_given is None and option.default) else ""
    elif option.several:
        kind = "lines"
    elif option.read is whole_number:
        kind = "number"
    return Field(
        name=option.name,
        label=label_of(option),
        help=option.told() if defaults is None else option.help,
        kind=kind,
        value=value,
        choices=choices,
        required=option.required,
        is_file=(option.is_file and (action, option.name) not in CHOICES) or (action, option.name) in ALSO_FILES,
        otherwise="" if defaults is None else written(defaults.get(option.name, option.default) or ""),
    )


def given_by(name: str, posted: QueryDict) -> dict[str, Any]:
    """Return the values in a form as `Action.read` takes them.

    Raise ActionError if a value is not among the choices for its option.
    """
    deed, action = deed_named(name)
    values: dict[str, Any] = {}
    for option in action.options:
        if option.name in deed.hidden or option.name not in posted:
            continue
        texts = [text.strip() for text in posted.getlist(option.name)]
        choice_list = choices_of(name, option)
        if choice_list is None and option.several:
            texts = [line.strip() for text in texts for line in text.splitlines()]
        texts = [text for text in texts if text]
        if choice_list is not None and (unavailable := set(texts) - {value for value, _ in choice_list}):
            raise ActionError(f"{label_of(option)}: {min(unavailable)!r} is no longer available. Choose again.")
        if texts:
            is_flag = option.read is flag
            values[option.name] = texts[-1] == "yes" if is_flag else texts if option.several else texts[-1]
    return values


def begin(request: UserRequest, action: str, options: Mapping[str, Any]) -> HttpResponse:
    """Start an action as a job and redirect to its page. Raise ActionError for invalid options."""
    return redirect("manage-job", job_worker.ask(action, options, by=request.user).pk)


def reworded(error: Exception, options: Iterable[Option]) -> ActionError:
    """Return the refusal of an action after replacing option names with the labels of the form."""
    return ActionError(as_on_page(str(error), options))


def as_on_page(error: str, options: Iterable[Option]) -> str:
    """Replace option names such as --size with the labels of the form."""
    for option in sorted(options, key=lambda option: -len(option.spelled)):
        if option.spelled.startswith("--"):
            label = "Only say what it would do" if option.name == TRY else label_of(option)
            error = error.replace(option.spelled, f"“{label}”")
    return error
