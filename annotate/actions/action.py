"""What an action of a manager is: options, and a function that does it, reports its progress and returns its outcome.

A command (commands.py) and a page are thin around it: they read what was given, show how far it is and what came of it.
Nothing here prints.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from annotate.core.option import Option, OptionError
from annotate.core.refusals import Refusal
from annotate.models import Task
from corpora.core import CorpusError

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


def task_named(name: str) -> Task:
    found = Task.objects.filter(name=name).first()
    if found is None:
        there = ", ".join(Task.objects.values_list("name", flat=True)) or "none"
        raise ActionError(f"There is no task {name!r}; there is: {there}.")
    return found
