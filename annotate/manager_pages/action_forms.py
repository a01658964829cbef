"""Forms for the actions that managers run as jobs, built from the actions' options.

A form has the same options and help texts as the command. It also offers uploads and lists of choices, such as the
existing corpora.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.datastructures import MultiValueDict
from django.utils.http import urlencode

from annotate.actions import job_worker
from annotate.actions.action import Action, ActionError
from annotate.actions.open_task import ASKED_HERE
from annotate.actions.registry import by_name
from annotate.core.option import Option, flag, format_value, fraction, number, people, points, share, whole_number
from annotate.core.refusals import NotFound
from annotate.core.stages import ADJUDICATION, DISCARDED
from annotate.goldsets.set_documents import PERSONAL
from annotate.manager_pages.inbox import ENDINGS, files, folder, holds_rows
from annotate.models import Job, Task
from annotate.pages.access import UserRequest
from annotate.work import job_store
from corpora.models import Corpus, Vocabulary
from corpora.sources.text import DELIMITERS, ENCODINGS
from corpora.storage.inventory import POSTS, corpus_rows, predictor_rows

Choices = list[tuple[str, str]]  # (value, text)


@dataclass(frozen=True)
class JobForm:
    """A form for an action.

    title: heading of the page
    button: label of the button
    first: options that are always visible, in this order
    hidden: options without a field, which the page or the server sets
    """

    title: str
    button: str
    first: tuple[str, ...]
    hidden: tuple[str, ...] = ()


JOB_FORMS: Mapping[str, JobForm] = {
    "import_corpus": JobForm(
        "Import a corpus",
        "Import",
        ("corpus", "files", "licence", "text_may_leave", "source", "column", "fields", "language", "labels"),
    ),
    "import": JobForm(
        "Import a project of another tool",
        "Import",
        ("name", "files", "licence", "text_may_leave", "language", "config"),
    ),
    "project": JobForm("About the project", "Save", (*PERSONAL,)),
    "import_threads": JobForm(
        "New corpus of message-reply pairs", "Import", ("corpus", "files", "licence", "text_may_leave")
    ),
    "import_vocabulary": JobForm("New vocabulary", "Import", ("name", "files", "schemes")),
    "prelabel": JobForm("Label with detectors", "Label", ("corpus",)),
    "import_predictions": JobForm("Import predictions", "Import", ("corpus", "file", "name", "version", "column")),
    # The server's operator sets the endpoint, together with its key.
    "vote": JobForm(
        "Ask a language model", "Ask", ("corpus", "model", "prompt", "labels", "labels_of", "send_to"), ("endpoint",)
    ),
    "import_scores": JobForm("Import scores", "Import", ("corpus", "file", "name", "threshold")),
    "suggest": JobForm("Suggest labels", "Suggest", ("corpus", "vocabulary")),
    "export_corpus": JobForm("Export a corpus", "Export", ("corpus", "as", "predictions"), ("out",)),
    "export_pairs": JobForm("Export pairs", "Export", ("corpus", "seed"), ("out",)),
    "open_task": JobForm(
        "New task",
        "Open the task",
        (
            *("title", "corpus", "kind", "design", "size", "sets"),
            *("languages", "labels", "predictor", "systems", "redundancy"),
        ),
    ),
    "extend_task": JobForm("Extend", "Extend", ("name", "size")),
    "import_judgments": JobForm("Import judgments", "Import", ("task", "file", "column")),
    "close": JobForm("Close the task", "Close", ("task", "leave_out")),
    "reopen": JobForm("Reopen the task", "Reopen", ("task",)),
    "reroute": JobForm("Reroute", "Reroute", ("task",)),
    "audit": JobForm("Audit", "Continue", ("task", "contest", "add", "checks", "languages")),
    "adjudicate": JobForm("Import decisions", "Import", ("task", "file", "as"), ("list", "out")),
    "delete": JobForm("Delete", "Delete", ("task", "corpus", "predictor")),
    "export_gold": JobForm("Export the gold set", "Export", ("task",), ("out",)),
    "import_gold": JobForm("Import a published gold set", "Import", ("file", "name", "design", "licence"), ("out",)),
    "baseline": JobForm("Measure baselines", "Measure", ("gold",), ("out",)),
    "evaluate": JobForm(
        "Measure a classifier", "Measure", ("predictions", "gold", "against"), ("out", "format", "runs")
    ),
}
# Options that accept a name or a file. Their fields offer the existing names and an upload.
ALSO_FILES = (("open_task", "systems"), *(("evaluate", name) for name in ("predictions", "against", "judge")))


def _tasks() -> Choices:
    return [(task.name, f"{task.title} ({task.name})") for task in Task.objects.order_by("-is_open", "-pk")]


# (action, option) or option -> function that returns the choices for the option.
CHOICES: Mapping[str | tuple[str, str], Callable[[], Choices]] = {
    "corpus": lambda: _name_choices(Corpus.objects.values_list("name", flat=True)),
    "task": lambda: _tasks(),
    ("extend_task", "name"): lambda: _tasks(),
    ("prelabel", "corpus"): lambda: _name_choices(row["corpus"] for row in corpus_rows() if row["holds"] == POSTS),
    "vocabulary": lambda: _name_choices(Vocabulary.objects.order_by().values_list("name", flat=True).distinct()),
    ("evaluate", "gold"): lambda: gold_sets(),
    ("vote", "labels_of"): lambda: [*_tasks(), *_name_choices(ASKED_HERE), *inbox_choices(".toml")],
    ("baseline", "gold"): lambda: [*gold_sets(), *_tasks()],
    ("open_task", "kind"): lambda: [*_name_choices(ASKED_HERE), *inbox_choices(".toml")],
    "predictor": lambda: _predictors(),
    "encoding": lambda: list(ENCODINGS.items()),
    "on_conflict": lambda: [(ADJUDICATION, "An adjudicator decides"), (DISCARDED, "The item is left out")],
    "delimiter": lambda: [(name, plural) for name, (_, plural) in DELIMITERS.items()],
    **dict.fromkeys(ALSO_FILES, lambda: [*_predictors(), *_likely_predictions()]),
}
# Options with a text field instead of choices, mostly because they name a new corpus or task.
TYPED = {
    ("import_corpus", "corpus"),
    ("import_threads", "corpus"),
    ("import_judgments", "task"),
    ("evaluate", "corpus"),
}
NEEDED = ("evaluate", "predictions")  # required, unless the rarely used option `judge` replaces it
TRY = "dry_run"  # has a button instead of a field
LONG_HELP = 220  # length above which a help text is collapsed after the first sentence
# Option, or (option, whether it is a list) -> label. Other options are labelled with their name.
LABELS: Mapping[str | tuple[str, bool], str] = {
    "licence": "Licence of the texts",
    "text_may_leave": "May the text be published?",
    "source": "Origin of the texts",
    "fields": "Fields of a record",
    "language": "Language of all records",
    "labels": "Labels",
    "column": "Columns",
    "format": "File format",
    "file_format": "File format",
    "encoding": "Encoding",
    "delimiter": "Columns are separated by",
    "url": "Address of the set",
    "config": "Configuration of the labels",
    "longest_line": "Longest row (bytes)",
    "redundancy": "Answers per item",
    "least_level": "Minimum reading level",
    "pause_below": "Pause under accuracy",
    "max_rejects": "Maximum share of rejected rows",
    "predictions": "Predictor",
    "against": "Compare with",
    "gold": "Gold set",
    "map": "Renamed labels",
    "judge": "Machine judge",
    "unfinished": "Accept an unfinished set",
    "labels_of": "Labels of a task or kind",
    "send_to": "Host that may receive the texts",
    "most_tokens": "Maximum number of tokens",
    "answer_tokens": "Maximum tokens of an answer",
    "at_once": "Requests at once",
    "longest_wait": "Longest wait (seconds)",
    "accept_unanswered": "Continue without a reply",
    "as": "Adjudicator",
    ("as", True): "Formats",
    "k": "Languages per detector",
    "min_score": "Minimum scores",
    "processes": "Number of processes",
    "again": "Replace existing votes",
    "prelabel": "Label with detectors afterwards",
    "least_certainty": "Minimum certainty of the language",
    "ask_again": "Ask again about unreadable replies",
    "learn_from": "Documents to learn from",
    "least_pairs": "Minimum pairs per language",
    "largest": "Number of the largest languages",
    "strike": "Replies to remove",
    "keep_repeats": "Keep repeated answers",
    "width": "Width of the interval (points)",
    "contest": "Contest languages over the limit",
    "checks": "Checks instead of audits",
    "frequent_over": "A label is frequent above",
    "tell_secret": "Publish the task's secret",
    "half_width": "Half the width of the interval (points)",
    "epsilon": "Tolerance (epsilon)",
    "allow_erased": "Accept erased lines",
    "vanished": "Posts that vanished",
    "missing_rate": "Error rates of missing labels",
    "open_to": "Who works on the task",
    "gold_column": "Columns of the gold answers",
    "reuse": "Reuse existing labels",
    "blind_share": "Share without suggestions",
    "agree": "Voters that must agree",
    "from_indices": "Lists of ids",
    "stop_early": "Ask fewer people at first",
    "audit_least": "Minimum audits",
    "audit_recheck": "Share of rechecked audits",
    "check_share": "Share of checks",
    "decoy_share": "Share of decoys",
    "test_items": "Questions in the test",
    "gold_share": "Share of gold answers",
    TRY: "Preview",
}
SETS = ("export_gold", "import_gold", "export_pairs")


def inbox_choices(ending: str = "") -> Choices:
    return [(str(path), path.name) for path in files() if path.name.endswith(ending)]


def inbox_row_choices() -> Choices:
    return [(str(path), path.name) for path in files() if holds_rows(path)]


def _likely_predictions() -> Choices:
    """Return the files in the inbox that contain rows. Files imported as a corpus come last and are marked."""
    imports = Job.objects.filter(action="import_corpus", state=Job.DONE)
    imported = {path for job in imports for path in job.given.get("files", ())}
    rows = inbox_row_choices()
    others = [(path, name) for path, name in rows if path not in imported]
    return [*others, *((path, f"{name} (imported as a corpus)") for path, name in rows if path in imported)]


def gold_sets() -> Choices:
    """Return the folders of gold sets that jobs have exported or imported, newest first."""
    done = Job.objects.filter(action__in=SETS, state=Job.DONE)
    folders = [(job_store.folder(job) / "out", job) for job in done]
    return [
        (str(out), f"{job.given.get('task') or job.given.get('name') or job.corpus}, job {job.pk}")
        for out, job in folders
        if out.is_dir()
    ]


def _predictors() -> Choices:
    return _name_choices(dict.fromkeys(row["predictor"] for row in predictor_rows("")))


def _name_choices(names: Iterable[str]) -> Choices:
    return [(name, name) for name in names]


@dataclass(frozen=True)
class Field:
    """An option as a form field.

    kind: line, number, decimal, lines, choice, choices or yes
    value: current value
    choices: (value, text, is_selected) tuples
    is_file: whether the field also offers an upload
    otherwise: the default as text, which is shown if the field is empty
    fault: error message about the value; "" if there is no error
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
    fault: str = ""

    @property
    def brief_help(self) -> str:
        """The help text, or its first sentence if the text is longer than LONG_HELP."""
        return self.help if len(self.help) <= LONG_HELP else self.help.partition(". ")[0]

    @property
    def further_help(self) -> str:
        return self.help[len(self.brief_help) :].removeprefix(". ")


def find_job_form(name: str) -> tuple[JobForm, Action]:
    if name not in JOB_FORMS:
        raise NotFound("This page does not exist.")
    return JOB_FORMS[name], by_name()[name]


def job_options(number: str, action: str) -> dict[str, Any]:
    """Return the option values of an earlier job, to fill the form with them.

    number: number of the job
    action: name of the job's action

    Raise NotFound if there is no such job.
    """
    job = Job.objects.filter(pk=number if number.isdecimal() else 0, action=action).first()
    if job is None:
        raise NotFound("This job does not exist. It may have been removed.")
    return {name: value for name, value in job.given.items() if name != TRY}


def title_of(job: Job) -> str:
    """Return the heading of the form that started a job."""
    return JOB_FORMS[job.action].title if job.action in JOB_FORMS else job.action


def address(name: str, **values: str) -> str:
    """Return the URL of an action's form.

    values: option values for the form
    """
    page = reverse("manage-new-task") if name == "open_task" else reverse("manage-do", args=[name])
    return f"{page}?{urlencode(values)}" if values else page


def label_of(option: Option) -> str:
    named = LABELS.get((option.name, option.several)) or LABELS.get(option.name)
    return named or option.name.replace("_", " ").capitalize()


def form(
    name: str,
    values: Mapping[str, Any],
    without: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    refusal: Exception | None = None,
) -> tuple[list[Field], dict[str, list[Field]]]:
    """Return an action's form: the fields that are always visible, and the other fields by heading.

    name: name of the action
    values: mapping from option name to current value
    without: names of options to omit
    defaults: mapping from option name to a default that replaces the option's own
    refusal: error that the values caused
    """
    job_form, action = find_job_form(name)
    options = {option.name: option for option in action.options if option.name not in (*without, TRY)}
    refused = getattr(refusal, "option", "")

    def field_of(option: Option) -> Field:
        field = _field(name, option, values, defaults)
        fault = str(refusal) if option.name == refused else ""
        return replace(field, help=with_form_labels(field.help, action.options).replace("`", ""), fault=fault)

    first = [field_of(options[option_name]) for option_name in job_form.first if option_name in options]
    rest: dict[str, list[Field]] = {}
    for option in options.values():
        if option.name not in (*job_form.first, *job_form.hidden):
            rest.setdefault(option.group or "Further options", []).append(field_of(option))
    return first, rest


def is_shown(refusal: Exception | None, first: Sequence[Field], rest: Mapping[str, Sequence[Field]]) -> bool:
    """Return whether the refusal is shown next to one of the fields."""
    return refusal is not None and any(field.fault for fields in (first, *rest.values()) for field in fields)


def choices_of(action: str, option: Option) -> Choices | None:
    """Return the choices for an option; None if the form offers no choices."""
    if (action, option.name) in TYPED:
        return None
    if list_choices := CHOICES.get((action, option.name)) or CHOICES.get(option.name):
        return list_choices()
    if option.is_file:
        return inbox_choices(ENDINGS[option.name]) if option.name in ENDINGS else inbox_row_choices()
    if option.choices:
        return _name_choices(option.choices)
    return _name_choices(("yes", "no")) if option.read is flag and option.opposite else None


def _field(action: str, option: Option, values: Mapping[str, Any], defaults: Mapping[str, Any] | None) -> Field:
    current, choice_list = values.get(option.name), choices_of(action, option)
    texts = (
        list(map(str, current))
        if isinstance(current, list)
        else []
        if current in (None, "", ())
        else [format_value(current)]
    )
    kind, value, choices = "line", "\n".join(texts), list[tuple[str, str, bool]]()
    if choice_list is not None:
        kind = "choices" if option.several else "choice"
        choices = [(offer, text, offer in texts) for offer, text in choice_list]
    elif option.read is flag:
        kind, value = "yes", "yes" if texts == ["yes"] or (current is None and option.default) else ""
    elif option.several:
        kind = "lines"
    elif option.read is whole_number:
        kind = "number"
    elif option.read in (fraction, number, people, points, share):
        kind = "decimal"
    return Field(
        name=option.name,
        label=label_of(option),
        help=option.help_text() if defaults is None else option.help,
        kind=kind,
        value=value,
        choices=choices,
        required=option.required or (action, option.name) == NEEDED,
        is_file=(option.is_file and (action, option.name) not in CHOICES) or (action, option.name) in ALSO_FILES,
        otherwise="" if defaults is None else _default_text(defaults.get(option.name, option.default), choice_list),
    )


def _default_text(default: Any, choice_list: Choices | None) -> str:
    """Return an option's default as it is shown among the choices."""
    value = format_value(default or "")
    return dict(choice_list or ()).get(value, value)


def submitted_options(name: str, posted: "MultiValueDict[str, str]") -> dict[str, Any]:
    """Return a form's values as input for `Action.read`.

    Raise ActionError if a value is not one of its option's choices.
    """
    job_form, action = find_job_form(name)
    values: dict[str, Any] = {}
    for option in action.options:
        if option.name in job_form.hidden or option.name not in posted:
            continue
        texts = [text.strip() for text in posted.getlist(option.name)]
        choice_list = choices_of(name, option)
        if choice_list is None and option.several:
            texts = [line.strip() for text in texts for line in text.splitlines()]
        texts = [text for text in texts if text]
        if choice_list is not None and (unavailable := set(texts) - {value for value, _ in choice_list}):
            sentence = f"{label_of(option)}: {min(unavailable)!r} is no longer available. Choose again."
            raise ActionError(sentence, option=option.name)
        if texts:
            is_flag = option.read is flag
            values[option.name] = texts[-1] == "yes" if is_flag else texts if option.several else texts[-1]
    return values


def begin(request: UserRequest, action: str, options: Mapping[str, Any]) -> HttpResponse:
    """Start an action as a job and redirect to the job's page. Raise ActionError if the options are invalid."""
    return redirect("manage-job", job_worker.start(action, options, by=request.user).pk)


def reword_error(error: Exception, options: Iterable[Option]) -> ActionError:
    """Return an action's error with option names replaced by the form's labels."""
    return ActionError(with_form_labels(str(error), options), option=getattr(error, "option", ""))


def relative_paths(text: str) -> str:
    """Make the paths in the text relative to the inbox or, outside the inbox, to the data folder."""
    return text.replace(f"{folder()}/", "").replace(f"{settings.DATA_DIR}/", "")


def with_form_labels(error: str, options: Iterable[Option], label: Callable[[Option], str] = label_of) -> str:
    """Replace option names such as --size in an error message with the form's labels, and shorten paths."""
    error = relative_paths(error)
    spellings = [(spelled, option) for option in options for spelled in option.spellings if spelled.startswith("--")]
    for spelled, option in sorted(spellings, key=lambda spelling: -len(spelling[0])):
        value = "" if not option.opposite else ": yes" if spelled == option.spelled else ": no"
        error = error.replace(spelled, f"“{label(option)}{value}”")
    return error
