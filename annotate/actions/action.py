"""What an action of a manager is: options, and a function that does it, reports its progress and returns its outcome.

A command (commands.py) and a page are thin around it: they read what was given, show how far it is and what came of it.
Nothing here prints.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder

from annotate.core.option import Option, OptionError, flag, share, whole_number
from annotate.core.refusals import Refusal
from annotate.models import Task
from corpora.core import CorpusError
from corpora.core.language_codes import add_languages
from corpora.core.values import FREE_LICENCES
from corpora.sources.compression import FORMATS
from corpora.sources.readers import named_columns
from corpora.sources.rejects import MOST
from corpora.sources.text import MAX_LINE
from corpora.storage import layout

Values = Mapping[str, Any]


class ActionError(Exception):
    """An action was refused or broke off; the sentence says why and what to do. status: its command's exit status."""

    def __init__(self, why: str, status: int = 1) -> None:
        super().__init__(why)
        self.status = status


class Cancelled(Exception):
    """The person who waits for an action no longer wants it. Progress raises it; a transaction is undone."""


class Progress:
    """How far an action is. This one tells nobody; a command and a page have their own."""

    def begin(self, total: int | None, unit: str) -> None:
        """This much must be done; None if that is not known. unit: B for bytes, post, unit. It is shown from the first
        `advance` on, which is the beginning of the work.
        """

    def advance(self, count: int = 0) -> None:
        """This many more are done; none at the beginning. May raise Cancelled."""

    def say(self, sentence: str) -> None:
        """A sentence on what is done for good, whatever becomes of the rest."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of an action. said: sentences, or tables as text; warned: what needs attention; data: all of it,
    in a form that can be written as JSON; status: its command's exit status.
    """

    said: list[str]
    warned: list[str] = field(default_factory=list)
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 0


@dataclass(frozen=True)
class Action:
    """What a manager can have done. name: as the command has it; does: in a sentence or a few; refuses: errors whose
    text says enough, besides those that all actions have. asks: sentences that say what the action would do, and that
    a command shows before it asks whether to go on; if there are none, it goes on at once. on_files: it reads and
    writes nothing but files, so that it needs no installation.
    """

    name: str
    does: str
    options: tuple[Option, ...]
    run: Callable[[dict[str, Any], Progress], Outcome]
    refuses: tuple[type[Exception], ...] = ()
    asks: Callable[[dict[str, Any]], list[str]] | None = None
    on_files: bool = False

    def read(self, given: Values) -> dict[str, Any]:
        """The values of all options; given: texts or values. ActionError for an impossible one."""
        if unknown := given.keys() - {option.name for option in self.options}:
            raise TypeError(f"{self.name} has no option {', '.join(sorted(unknown))}")
        try:
            return {option.name: option.value(given.get(option.name)) for option in self.options}
        except OptionError as error:
            raise ActionError(str(error)) from error

    def perform(self, given: Values, progress: Progress | None = None) -> Outcome:
        """Do it. ActionError if it is refused; Cancelled if the progress says so."""
        values = self.read(given)
        with self._refusing():
            return self.run(values, progress or Progress())

    def foretell(self, given: Values) -> list[str]:
        """What it would do, where that is to be asked first; ActionError where it would be refused."""
        values = self.read(given)
        with self._refusing():
            return self.asks(values) if self.asks else []

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except (Refusal, CorpusError, *self.refuses) as refusal:
            raise ActionError(str(refusal), getattr(refusal, "status", 1)) from refusal


def action(
    name: str,
    does: str,
    *options: Option,
    refuses: tuple[type[Exception], ...] = (),
    asks: Callable[[dict[str, Any]], list[str]] | None = None,
    on_files: bool = False,
) -> Callable[[Callable[[dict[str, Any], Progress], Outcome]], Action]:
    """Makes an Action of the function below it."""
    return lambda run: Action(name, does, options, run, refuses, asks, on_files)


class Encoder(DjangoJSONEncoder):
    """Times and fractions as Django writes them, and paths as they are spelled."""

    def default(self, o: Any) -> Any:
        return str(o) if isinstance(o, Path) else super().default(o)


def task_named(name: str) -> Task:
    found = Task.objects.filter(name=name).first()
    if found is None:
        there = ", ".join(Task.objects.values_list("name", flat=True)) or "none"
        raise ActionError(f"There is no task {name!r}; there is: {there}.")
    return found


# --- Options and sentences that several actions share

THE_FILE = "How the file is read"
LEAVING = "Where the texts come from, and whether they may leave"

TASK = Option("task", required=True, argument=True, help="the task's name")
CORPUS = Option("corpus", required=True, argument=True, help="the corpus's name")
FILE = Option("file", Path, required=True, argument=True, shown="FILE", help="the file to read")
FORMAT = Option("format", choices=tuple(FORMATS), help="the format, if the file name does not show it", group=THE_FILE)
LANGUAGES = Option(
    "languages",
    Path,
    shown="FILE",
    help="a TOML file, or a kind's file, with a table [languages.CODE] for each new language: name and, optionally, "
    "autonym, script and under",
    group=THE_FILE,
)
LICENCE = Option("licence", required=True, help="the licence of the texts, for example CC-BY-4.0")
TEXT_MAY_LEAVE = Option(
    "text_may_leave",
    flag,
    help=f"exports may hold the text (the default under {', '.join(FREE_LICENCES)} of any version)",
    opposite=("text-stays", "exports hold ids only; any other licence needs one of these two at the first import"),
    group=LEAVING,
)
SOURCE = Option("source", default="", help="the origin of the texts, for the dataset card", group=LEAVING)
LONGEST_LINE = Option(
    "longest_line",
    whole_number,
    MAX_LINE,
    least=1,
    shown="BYTES",
    help="longer lines are rejected",
    group=THE_FILE,
)
MAX_REJECTS = Option(
    "max_rejects",
    share,
    MOST,
    most=1,
    shown="SHARE",
    help="the share of a file's rows that may be rejected, such as 1%. If more are rejected, nothing is imported and "
    "the exit status is 3",
)
MAP = Option(
    "map",
    default=(),
    several=True,
    shown="LABEL=LABELS",
    help="how to read a label of the file: nb=no renames it, zh=zh-CN,zh-TW keeps it as a class of several",
    group=THE_FILE,
)


def column(fields: Collection[str], example: str = "", *, name: str = "column", group: str = THE_FILE) -> Option:
    """The option that says which column of a file is which field."""
    shown = f", for example {example}" if example else ""
    told = f"which column of a file is which field ({', '.join(fields)}){shown}"
    return Option(name, default=(), several=True, shown="FIELD=COLUMN", help=told, group=group)


def address(text: str) -> str:
    """The address of a site, with which links begin; OptionError if it is none."""
    if not text.startswith(("http://", "https://")):
        raise OptionError(f"{text!r} is not the address of a site; begin it with http:// or https://.")
    return text.rstrip("/")


def assumed() -> str:
    """What is to be said beside the address that commands print, where nobody has said it."""
    return " (assumed; set ASSAY_SITE if people reach the site at another)" if settings.SITE_ASSUMED else ""


def size_of(files: Collection[Path]) -> int:
    """Bytes in all, for a bar; missing files count nothing, and are refused when they are read."""
    return sum(map(layout.size_of, files))


def import_arguments(values: Values, progress: Progress, *names: str, fields: Collection[str] = ()) -> dict[str, Any]:
    """The arguments that all importers take: the values of these names, columns of the fields, and a progress in bytes.

    Languages that a file adds are known from here on.
    """
    if values.get("languages"):
        add_languages(values["languages"])
    progress.begin(size_of(values["files"] if "files" in values else [values["file"]]), "B")
    given = {name: values[name] for name in names} | {"progress": progress.advance}
    if fields:
        given["columns"] = named_columns(values["column"], fields)
    if "longest_line" in values:
        given["max_line"] = values["longest_line"]
    return given
