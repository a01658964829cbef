"""Actions, which are the operations that managers run, and the options and helper functions that they share.

Commands (commands.py) and pages are thin layers over an action: they collect its options and show its progress and
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
    option: name of the option to correct; "" if unknown
    """

    def __init__(self, why: str, status: int = 1, option: str = "") -> None:
        super().__init__(why)
        self.status, self.option = status, option


class Cancelled(Exception):
    """Raised by `Progress.advance` if the user has cancelled the action, so that the transaction is rolled back."""


class Progress:
    """Receives an action's progress. This base class ignores it; subclasses show it in the terminal or on a page."""

    def begin(self, total: int | None, unit: str) -> None:
        """Announce the amount of work. In a command, the progress bar appears on the next call to `advance`.

        total: amount of work; None if unknown
        unit: what is counted: "B" for bytes, or a noun such as "post" or "unit"
        """

    def advance(self, count: int = 0) -> None:
        """Report that more work is done. Raise Cancelled if the user has cancelled the action.

        count: amount of work since the last call; 0 at the start
        """

    def say(self, sentence: str) -> None:
        """Report a finished part, which is kept even if the rest of the action fails."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of an action.

    said: results, each a sentence or a table as text
    warned: warnings, each a sentence
    data: results that `Encoder` can write as JSON
    status: exit status of the command
    more: function that computes additional data; only `complete` calls it
    """

    said: list[str]
    warned: list[str] = field(default_factory=list)
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 0
    more: Callable[[], Mapping[str, Any]] = dict

    def complete(self) -> "Outcome":
        """Return a copy with the results of `more` added to `data`."""
        return replace(self, data={**self.data, **self.more()}, more=dict)


Run = Callable[[dict[str, Any], Progress], Outcome]


@dataclass(frozen=True)
class Action:
    """An operation that a manager runs from a command or a page.

    name: name of the command
    description: one or more sentences
    options: options of the action
    run: function that performs the action
    refuses: exceptions whose messages are shown to the user, in addition to Refusal and CorpusError
    asks: function that describes the consequences the user must confirm, one sentence each; without this function, or
        if it returns an empty list, nothing needs to be confirmed
    on_files: whether the action works only on files and needs no database
    checks: function that rejects invalid options before any work is done; pages call it before they queue a job. The
        values it returns are passed to `run` and `asks` along with the options
    completes: function that fills in options missing from a command line. It returns the inputs, and sentences about
        what it recognized
    """

    name: str
    description: str
    options: tuple[Option, ...]
    run: Run
    refuses: tuple[type[Exception], ...] = ()
    asks: Callable[[dict[str, Any]], list[str]] | None = None
    on_files: bool = False
    checks: Callable[[dict[str, Any]], Values | None] | None = None
    completes: Callable[[dict[str, Any]], tuple[dict[str, Any], list[str]]] | None = None

    def read(self, inputs: Values) -> dict[str, Any]:
        """Parse the options. Return a mapping from name to value. Raise ActionError if a value is invalid.

        inputs: mapping from option name to the text the user entered, or to a parsed value
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
        with self._convert_refusals():
            return self.run(values, progress or Progress())

    def check(self, inputs: Values) -> dict[str, Any]:
        """Parse and check the options without running the action. Raise ActionError if they are refused."""
        values = self.read(inputs)
        with self._convert_refusals():
            return {**values, **(self.checks(values) or {})} if self.checks else values

    def describe_consequences(self, inputs: Values) -> list[str]:
        """Return sentences about the consequences of the action, which the user must confirm.

        The list is empty if no confirmation is needed. Raise ActionError if the action would be refused.
        """
        values = self.check(inputs)
        with self._convert_refusals():
            return self.asks(values) if self.asks else []

    @contextmanager
    def _convert_refusals(self) -> Iterator[None]:
        refusals: tuple[type[Exception], ...] = (ActionError, Refusal, CorpusError, *self.refuses)
        try:
            yield
        except refusals as refusal:
            option = getattr(refusal, "option", "") or self._option_in(str(refusal))
            raise ActionError(str(refusal), getattr(refusal, "status", 1), option) from refusal

    def _option_in(self, message: str) -> str:
        """Return the name of the first option mentioned in an error message, or "" if no option is mentioned."""
        names = {spelled: option.name for option in self.options for spelled in option.spellings}
        mentioned = (names[word] for word in re.findall(r"--[a-z][a-z-]*[a-z]", message) if word in names)
        return next(mentioned, "")


def action(name: str, description: str, *options: Option, **fields: Any) -> Callable[[Run], Action]:
    """Return a decorator that turns a function into an Action.

    fields: the other fields of the action
    """
    return lambda run: Action(name, description, options, run, **fields)


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

FILE_GROUP = "File format"
LICENCE_GROUP = "Origin and licence of the texts"

TASK = Option("task", task_named, required=True, argument=True, help="the task's name")
CORPUS = Option("corpus", required=True, argument=True, help="the corpus's name")
FILE = Option("file", Path, required=True, argument=True, shown="FILE", help="the file to read")
FORMAT = Option(
    "format", choices=tuple(FORMATS), help="the format, if the file name does not show it", group=FILE_GROUP
)
ENCODING = Option(
    "encoding",
    default="",
    choices=tuple(ENCODINGS),
    help="the encoding of text files, if it is not recognized correctly",
    group=FILE_GROUP,
)
DELIMITER = Option(
    "delimiter",
    default="",
    choices=tuple(DELIMITERS),
    help="the column separator of CSV files, if it is not recognized correctly",
    group=FILE_GROUP,
)
LANGUAGES = Option(
    "languages",
    Path,
    shown="FILE",
    help="a TOML file, or a kind's file, with one table [languages.CODE] per new language, optionally with the "
    "keys name, autonym, script and under",
    group=FILE_GROUP,
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
    group=LICENCE_GROUP,
)
SOURCE = Option("source", default="", help="the origin of the texts, for the dataset card", group=LICENCE_GROUP)
LONGEST_LINE = Option(
    "longest_line", whole_number, MAX_LINE, least=1, shown="BYTES", help="longer lines are rejected", group=FILE_GROUP
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
    help="how to interpret a label in the file: nb=no renames it, zh=zh-CN,zh-TW makes it a class of several languages",
    group=FILE_GROUP,
)


def column(fields: Collection[str], example: str = "", *, name: str = "column", group: str = FILE_GROUP) -> Option:
    """Return the option that maps fields to columns of a file.

    fields: names of the fields
    example: an example value for the help text
    """
    suffix = f", for example {example}" if example else ""
    description = f"which column of the file contains which field ({', '.join(fields)}){suffix}"
    return Option(name, default=(), several=True, shown="FIELD=COLUMN", help=description, group=group)


def address(text: str) -> str:
    """Return the base URL of a site without a trailing slash. Raise OptionError if the text is not an HTTP URL."""
    if not text.startswith(("http://", "https://")):
        raise OptionError(f"{text!r} is not a valid URL. It must begin with http:// or https://.")
    return text.rstrip("/")


def address_note() -> str:
    """Return a note that the site's address in printed links is assumed; "" if the address is configured."""
    return " (where `serve` listens; set ASSAY_SITE if the site has another address)" if settings.SITE_ASSUMED else ""


def size_of(files: Collection[Path]) -> int:
    """Return the total size of files, in bytes, for a progress bar.

    A missing file counts as 0. The action reports the error when it opens the file.
    """
    return sum(map(layout.size_of, files))


def register_languages(values: Values) -> None:
    """Register the languages in the file of the `languages` option, if it is set."""
    if values.get("languages"):
        add_languages(values["languages"])


def import_arguments(values: Values, progress: Progress, *names: str, fields: Collection[str] = ()) -> dict[str, Any]:
    """Return the keyword arguments for a function that imports files, and announce the files' size as the work.

    Also register the languages that the `languages` option adds.

    names: names of the options to pass on as arguments
    fields: fields the user may map to columns of the file
    """
    register_languages(values)
    progress.begin(size_of(values["files"] if "files" in values else [values["file"]]), "B")
    arguments = {name: values[name] for name in names} | {"progress": progress.advance}
    if fields:
        arguments["columns"] = named_columns(values["column"], fields)
    if "longest_line" in values:
        arguments["max_line"] = values["longest_line"]
    return arguments


def reading_note(path: Path, format: str | None) -> list[str]:
    """Return a note on the recognized format of a table, in a list; empty for a standard format."""
    text_format = text_format_of(path, format or format_of(path) or "")
    return [] if text_format in STANDARD else [f"Note: {path.name} was read as {text_format}."]
