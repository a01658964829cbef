"""What a manager's deed is: options, and a function that does it, hears how far it is, and returns what came of it.

A command (commands.py) and a page are thin around it: they read what was given, show how far it is and what came of it.
Nothing here prints.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotate.core.option import Option, OptionError
from annotate.core.refusals import Refusal
from annotate.models import Task
from corpora.core.errors import CorpusError

Values = Mapping[str, Any]


class ActionError(Exception):
    """A deed was refused, or broke off; says why and what to do."""


class Cancelled(Exception):
    """Whoever waits for a deed wants it no more. Raised by their Progress; what is done as a whole is undone."""


class Progress:
    """How far a deed is. This one tells nobody; a command and a page have their own."""

    def begin(self, total: int | None, unit: str) -> None:
        """So many are to be done; None where that is not known. unit: B for bytes, post, unit."""

    def advance(self, count: int = 0) -> None:
        """So many more are done. May raise Cancelled."""

    def say(self, sentence: str) -> None:
        """What is done for good, whatever becomes of the rest."""


@dataclass(frozen=True)
class Outcome:
    """What came of a deed. said: in sentences, or tables as text; warned: what is to be seen to; data: all, as JSON."""

    said: list[str]
    warned: list[str] = field(default_factory=list)
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Action:
    """A deed. name: as the command has it; does: in a sentence or a few; refuses: errors whose text says enough,
    besides those that all have. tells_data: whether what came of it may be wanted as JSON, instead of the sentences.
    """

    name: str
    does: str
    options: tuple[Option, ...]
    run: Callable[[dict[str, Any], Progress], Outcome]
    refuses: tuple[type[Exception], ...] = ()
    tells_data: bool = False

    def read(self, given: Values) -> dict[str, Any]:
        """The values of all options; given: text, or values already. ActionError for one that cannot be."""
        if unknown := given.keys() - {option.name for option in self.options}:
            raise TypeError(f"{self.name} has no option {', '.join(sorted(unknown))}")
        try:
            return {option.name: option.value(given.get(option.name)) for option in self.options}
        except OptionError as error:
            raise ActionError(str(error)) from error

    def perform(self, given: Values, progress: Progress | None = None) -> Outcome:
        """Do it. ActionError where it is refused; Cancelled where the progress says so."""
        values = self.read(given)
        try:
            return self.run(values, progress or Progress())
        except (Refusal, CorpusError, *self.refuses) as refusal:
            raise ActionError(str(refusal)) from refusal


def task_named(name: str) -> Task:
    found = Task.objects.filter(name=name).first()
    if found is None:
        there = ", ".join(Task.objects.values_list("name", flat=True)) or "none"
        raise ActionError(f"There is no task {name!r}; there is: {there}.")
    return found
