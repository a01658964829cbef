"""Actions: the operations that managers run, with the options and helper functions that several actions share.

Commands (commands.py) and pages are thin layers over an action: they read its options and show its progress and
outcome. The action itself prints nothing.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder

from annotate.core.option import Option, OptionError, flag, share, whole_number
from annotate.core.refusals import Refusal
from annotate.models import Task
from corpora.core import CorpusError
from corpora.core.languages import add_languages
from corpora.core.values import FREE_LICENCES
from corpora.sources.compression import FORMATS, format_of
from corpora.sources.readers import named_columns
from corpora.sources.text import DELIMITERS, ENCODINGS, MAX_LINE, STANDARD, text_format_of
from corpora.storage import layout
from corpora.storage.intake import MOST

Values = Mapping[str, Any]


class ActionError(Exception):
    """Raised if an action is refused or fails. The message states why and what to do.

    status: exit status of the command
    option: name of the option that must be changed, "" if unknown
    """

    def __init__(self, why: str, status: int = 1, option: str = "") -> None:
        super().__init__(why)
        self.status, self.option = status, option


class Cancelled(Exception):
    """Raised by `Progress.advance` if the user has cancelled the action, so that the transaction is rolled back."""


class Progress:
    """Receives the progress of an action. This base class ignores it; subclasses for commands and jobs show it."""

    def begin(self, total: int | None, unit: str) -> None:
        """Announce the amount of work. Commands show a progress bar from the first call of `advance` after this.

        total: amount of work, None if unknown
        unit: unit of the amount: "B" for bytes, or a noun such as "post" or "unit"
        """

    def advance(self, count: int = 0) -> None:
        """Add to the amount of work that is done. Raise Cancelled if the user has cancelled the action.

        count: amount done since the last call; 0 at the start of the work
        """

    def say(self, sentence: str) -> None:
        """Report a completed part of the action, which is kept even if the rest fails."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of an action.

    said: the results, as sentences or as tables in text form
    warned: warnings, as sentences
    data: results, in a form that `Encoder` can write as JSON
    status: exit status of the command
    more: function that computes the rest of `data`, which is left out if nobody asks for it
    """

    said: list[str]
    warned: list[str] = field(default_factory=list)
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 0
    more: Callable[[], Mapping[str, Any]] = dict

    def complete(self) -> "Outcome":
        """Return the outcome with all of its data."""
        return replace(self, data={**self.data, **self.more()}, more=dict)


Run = Callable[[dict[str, Any], Progress], Outcome]


@dataclass(frozen=True)
class Action:
    """An operation that a manager runs from a command or a page.

    name: name of the command
    does: description, in one or more sentences
    options: options of the action
    run: function that performs the action
    refuses: exceptions whose messages are shown to the user, in addition to Refusal and CorpusError
    asks: function that returns sentences about the consequences of the action, which the user must confirm; if there is
        no such function or it returns an empty list, the action runs without confirmation
    on_files: whether the action uses only files, so that it needs no database
    checks: function that raises an error if the action can be refused without doing the work; pages call it before they
        queue a job. The values that it returns are passed to `run` and `asks` in addition to the options.
    completes: function that returns the inputs from a command line in which required options may be missing, completed
        as far as possible, and sentences about what it found
    """

    name: str
    does: str
    options: tuple[Option, ...]
    run: Run
    refuses: tuple[type[Exception], ...] = ()
    asks: Callable[[dict[str, Any]], list[str]] | None = None
    on_files: bool = False
    checks: Callable[[dict[str, Any]], Values | None] | None = None
    completes: Callable[[dict[str, Any]], tuple[dict[str, Any], list[str]]] | None = None

    def read(self, inputs: Values) -> dict[str, Any]:
        """Return the values of all options. Raise ActionError if a value is invalid.

        inputs: mapping from option name to the text that the user entered, or to a value
        """
        if unknown := inputs.keys() - {option.name for option in self.options}:
            raise TypeError(f"{self.name} has no option {', '.join(sorted(unknown))}")
        values = {}
        for option in self.options:
            try:
                values[option.name] = option.value(inputs.get(option.name))
            except (OptionError, ActionError) as error:
                raise ActionError(str(error), option=option.name) from error
        return values

    def perform(self, inputs: Values, progress: Progress | None = None) -> Outcome:
        """Run the action. Raise ActionError if it is refused, and Cancelled if the user cancels it."""
        values = self.check(inputs)
        with self._refusing():
            return self.run(values, progress or Progress())

    def check(self, inputs: Values) -> dict[str, Any]:
        """Return the values of all options. Raise ActionError if the action would refuse them before any work."""
        values = self.read(inputs)
        with self._refusing():
            return {**values, **(self.checks(values) or {})} if self.checks else values

    def foretell(self, inputs: Values) -> list[str]:
        """Return sentences about the consequences of the action, which the user must confirm.

        The list is empty if no confirmation is needed. Raise ActionError if the action would be refused.
        """
        values = self.check(inputs)
        with self._refusing():
            return self.asks(values) if self.asks else []

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        refusals: tuple[type[Exception], ...] = (ActionError, Refusal, CorpusError, *self.refuses)
        try:
            yield
        except refusals as refusal:
            option = getattr(refusal, "option", "") or self._named_in(str(refusal))
            raise ActionError(str(refusal), getattr(refusal, "status", 1), option) from refusal

    def _named_in(self, refusal: str) -> str:
        """Return the name of the first option mentioned in a refusal, or "" if no option is mentioned."""
        names = {spelled: option.name for option in self.options for spelled in option.spellings}
        mentioned = (names[word] for word in re.findall(r"--[a-z][a-z-]*[a-z]", refusal) if word in names)
        return next(mentioned, "")


def action(name: str, does: str, *options: Option, **more: Any) -> Callable[[Run], Action]:
    """Return a decorator that turns a function into an Action.

    more: the other fields of the action
    """
    return lambda run: Action(name, does, options, run, **more)


class Encoder(DjangoJSONEncoder):
    """A JSON encoder that writes paths as strings and otherwise works like Django's encoder."""

    def default(self, o: Any) -> Any:
        return str(o) if isinstance(o, Path) else super().default(o)


def task_named(name: str) -> Task:
    """Return the task with this name. Raise ActionError if it does not exist."""
    task = Task.objects.filter(name=name).first()
    if task is None:
        names = ", ".join(Task.objects.values_list("name", flat=True)) or "none"
        raise ActionError(f"There is no task {name!r}; available: {names}.")
    return task


# --- Options and functions that several actions share

THE_FILE = "How to read the file"
LEAVING = "Origin and licence of the texts"

TASK = Option("task", task_named, required=True, argument=True, help="the task's name")
CORPUS = Option("corpus", required=True, argument=True, help="the corpus's name")
FILE = Option("file", Path, required=True, argument=True, shown="FILE", help="the file to read")
FORMAT = Option("format", choices=tuple(FORMATS), help="the format, if the file name does not show it", group=THE_FILE)
ENCODING = Option(
    "encoding",
    default="",
    choices=tuple(ENCODINGS),
    help="the encoding of text files, if it is not recognized correctly",
    group=THE_FILE,
)
DELIMITER = Option(
    "delimiter",
    default="",
    choices=tuple(DELIMITERS),
    help="what separates the columns of CSV files, if it is not recognized correctly",
    group=THE_FILE,
)
LANGUAGES = Option(
    "languages",
    Path,
    shown="FILE",
    help="a TOML file, or a kind's file, with one table [languages.CODE] per new language, optionally with the "
    "keys name, autonym, script and under",
    group=THE_FILE,
)
LICENCE = Option("licence", required=True, help="the licence of the texts, for example CC-BY-4.0")
TEXT_MAY_LEAVE = Option(
    "text_may_leave",
    flag,
    help=f"exports contain the text (the default for {', '.join(FREE_LICENCES)} of any version)",
    opposite=(
        "text-stays",
        "exports omit the texts. For any other licence, the first import requires one of these two options",
    ),
    group=LEAVING,
)
SOURCE = Option("source", default="", help="the origin of the texts, for the dataset card", group=LEAVING)
LONGEST_LINE = Option(
    "longest_line", whole_number, MAX_LINE, least=1, shown="BYTES", help="longer lines are rejected", group=THE_FILE
)
MAX_REJECTS = Option(
    "max_rejects",
    share,
    MOST,
    most=1,
    shown="SHARE",
    help="the maximum share of rejected rows in a file, such as 1%. If more rows are rejected, nothing is imported "
    "and the exit status is 3",
)
MAP = Option(
    "map",
    default=(),
    several=True,
    shown="LABEL=LABELS",
    help="how to read a label in the file: nb=no renames it, zh=zh-CN,zh-TW treats it as a class of several languages",
    group=THE_FILE,
)


def column(fields: Collection[str], example: str = "", *, name: str = "column", group: str = THE_FILE) -> Option:
    """Return the option that maps fields to columns of a file.

    fields: names of the fields
    example: example of a value, for the help text
    """
    suffix = f", for example {example}" if example else ""
    description = f"which column of the file contains which field ({', '.join(fields)}){suffix}"
    return Option(name, default=(), several=True, shown="FIELD=COLUMN", help=description, group=group)


def address(text: str) -> str:
    """Return the base URL of a site without a trailing slash. Raise OptionError if the text is not an HTTP URL."""
    if not text.startswith(("http://", "https://")):
        raise OptionError(f"{text!r} is not a valid URL. It must begin with http:// or https://.")
    return text.rstrip("/")


def assumed() -> str:
    """Return a note for commands that print links. It is empty if ASSAY_SITE is set.

    The note states that the address of the site is an assumption.
    """
    return " (where `serve` listens; set ASSAY_SITE if the site has another address)" if settings.SITE_ASSUMED else ""


def size_of(files: Collection[Path]) -> int:
    """Return the total size of files, in bytes, for a progress bar.

    A missing file counts as 0 here, because the action reports the error when it tries to read the file.
    """
    return sum(map(layout.size_of, files))


def learn(values: Values) -> None:
    """Register the languages that the option `languages` adds."""
    if values.get("languages"):
        add_languages(values["languages"])


def import_arguments(values: Values, progress: Progress, *names: str, fields: Collection[str] = ()) -> dict[str, Any]:
    """Return the keyword arguments for a function that imports files, and begin the progress in bytes.

    If the option `languages` is set, also register the languages that it adds.

    names: names of the options to pass on as arguments
    fields: fields to which the user may map columns of the file
    """
    learn(values)
    progress.begin(size_of(values["files"] if "files" in values else [values["file"]]), "B")
    arguments = {name: values[name] for name in names} | {"progress": progress.advance}
    if fields:
        arguments["columns"] = named_columns(values["column"], fields)
    if "longest_line" in values:
        arguments["max_line"] = values["longest_line"]
    return arguments


def reading_note(path: Path, format: str | None) -> list[str]:
    """Return a list with a note on the recognized format of a table; empty if it is the usual format."""
    text_format = text_format_of(path, format or format_of(path) or "")
    return [] if text_format in STANDARD else [f"Note: {path.name} was read as {text_format}."]
