"""Quality controls: what protects the numbers of a task, as plug-ins of the engine.

A kind lists the controls of its tasks by name (`Kind.controls`, and those of its form). The engine calls the hooks of
those that apply to a task, in the order of the list, and knows none of them; a task without controls calls nothing.
The controls of this project are the modules of controls/; one from outside is a class of its own, loaded by the entry
point `assay.controls` or handed to `register`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotate.core.option import Option
from annotate.kinds.options import OPTIONS

# These belong to floors above: a control is handed them.
Task = Unit = Annotator = Judgment = Permit = Entry = Answer = Table = Any


@dataclass(frozen=True)
class Panel:
    """What a control has found in a task, as a page and a command show it.

    heading: of the section. words: sentences; none: what `empty` says is said. warnings: sentences for managers alone.
    tables: the main one first. data: the same in JSON's terms; key: under which it stands in what a command returns,
    empty for its items by themselves. plot: a picture. over_limit: languages of which people should read the rest.
    advice: sentences that name commands, for a terminal. page: of the documentation.
    """

    heading: str
    words: Sequence[str] = ()
    tables: Sequence[Table] = ()
    data: Mapping[str, Any] | None = None
    key: str = ""
    empty: str = ""
    plot: str = ""
    over_limit: Sequence[str] = ()
    advice: Sequence[str] = ()
    warnings: Sequence[str] = ()
    page: str = ""

    FEW = 30  # rows up to which the picture is shown at once

    @property
    def table(self) -> Table | None:
        return self.tables[0] if self.tables else None

    @property
    def is_short(self) -> bool:
        return self.table is None or len(self.table.rows) <= self.FEW


class Place(NamedTuple):
    """What somebody is given at the place of a unit of work. shown: the key of a unit; how: fields of its lease."""

    shown: int
    how: Mapping[str, Any]


class QualityControl:
    """The hooks of a control; each does nothing unless a control overrides it.

    name: as kinds list it. options: those that it adds to the tasks of its kinds, beside kinds/options.py. inputs:
    options of open_task and export_gold that only tasks with this control take. switches: if it names options, its
    hooks around an answer are called only in tasks in which one of them has a value. hides: whether it hides items
    among what is drawn. look_at: the command that reports on it. of_agreement: whether it measures what the agreement
    of machines on a stream of posts is worth. tabs: address and name of each page of a task that it adds to the
    manager's pages. manifest_key: of its section. unit_columns: what an export reads of each unit for it, path -> type
    in Arrow.
    """

    name: str = ""
    options: Sequence[Option] = ()
    inputs: Sequence[str] = ()
    hides: bool = False
    switches: Sequence[str] = ()
    look_at: str = ""
    of_agreement: bool = False
    tabs: Sequence[tuple[str, str]] = ()
    manifest_key: str = ""
    unit_columns: Mapping[str, Any] = {}

    # --- a task is opened, changed or enlarged

    def prepare(self, task: Task, reuse: bool) -> None:
        """A task is about to be made: it may set fields. ValueError, with a sentence, if it cannot be.

        reuse: whether the task takes labels that there are already (`open_task --reuse`).
        """

    def enter(self, entry: Entry) -> None:
        """Before units are made of what was drawn: it may hide items among them (work/task_creation.py, Entry)."""

    def gold_stored(self, task: Task, suggested: Mapping[str, Mapping[str, list[str]]]) -> None:
        """Gold answers were stored, and are not among the units yet. suggested: id -> system -> replies."""

    def before_units(self, task: Task) -> Any:
        """What it needs to know in `units_added` of the units that were there before."""

    def units_added(self, task: Task, first: int, before: Any) -> int:
        """Units were made from the position `first` on, and stored. Returns how many of those on which machines agree
        it has sent to people.
        """
        return 0

    def queued(self, task: Task, units: Iterable[Unit], event: str) -> None:
        """Units on which machines agree were put into queues by an event, and are about to be stored: it may mark
        them.
        """

    def enlarged(self, task: Task) -> Mapping[str, int]:
        """The draw of a task was enlarged. Returns label -> units that it has sent to people for that."""
        return {}

    def check_change(self, task: Task, changed: Sequence[str]) -> None:
        """Raise InvalidAnswer, with a sentence, if the task cannot have the options that have changed."""

    # --- somebody works

    def place(self, unit: Unit, permit: Permit) -> Any:
        """Asked before a unit of work is leased: a function of all its leases and the annotator's own that gives what
        is shown at its place, a Place; or None, and the unit is shown.
        """
        return None

    def coming(self, permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
        """Permits of one person, in tasks to which it applies. Returns a function of one of these, of units of work and
        of hidden units by queue: how many of the hidden ones the person is given before the last of that work.
        """
        return lambda permit, work, hidden: 0

    def shown(self, unit: Unit, annotator: Annotator) -> None:
        """A unit is about to be shown to a person, or was decided by them."""

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        """What is stored of an answer that a person sent."""
        return answer

    def seen(self, annotator: Annotator, said: Sequence[tuple[Unit, str]]) -> list[str]:
        """The labels of units as they are told to a person."""
        return [label for _, label in said]

    def sides_of(self, annotator: Annotator, units: Iterable[Unit]) -> Mapping[int, Any]:
        """Unit -> how its two sets stand for a person, of those that have two (controls/pair_order.py, Sides)."""
        return {}

    def invented_sides(self, kind: Any) -> Any:
        """Two sets for the preview of a kind; None if its units have not two."""
        return None

    def trial(self, gold: Any, annotator: Annotator) -> Mapping[str, Any]:
        """Fields of the TrialAnswer by which a person is asked a gold answer."""
        return {}

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | None:
        """Where a unit goes with all its answers, in place of getting their label: event, stage and label."""
        return None

    def is_seconded(self, unit: Unit) -> bool:
        """Whether a second adjudicator decides a unit too, once one has settled it."""
        return False

    def judged(self, judgment: Judgment, answer: Answer | None) -> None:
        """An answer, a skip or a decision was stored."""

    def parts(self, judgment: Judgment, answer: Answer) -> list[Any]:
        """The rows, not stored yet, in which an answer is kept beside its text."""
        return []

    def moved(self, unit: Unit) -> None:
        """A judgment has moved a unit of work, or has left it where it was."""

    def score(self, permit: Permit) -> tuple[int, int] | None:
        """How many known answers the annotator gave rightly, and how many in all, since their last pause was lifted."""
        return None

    def pauses(self, permit: Permit) -> bool:
        """After a judgment: whether the annotator is paused now."""
        return False

    def reopened(self, task: Task) -> None:
        """A closed task was opened again."""

    # --- what is told of it

    def section(self, task: Task) -> Any:
        """What it has found so far, in JSON's terms; the manifest of an exported set has it under `manifest_key`."""
        return None

    def panel(self, task: Task, found: Any) -> Panel | None:
        """The same for managers. found: its section."""
        return None

    def columns(self, task: Task) -> Mapping[str, Mapping[int, Any]]:
        """Columns that it adds to an exported set: name -> unit -> value, of the units that have one."""
        return {}

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        """What it adds to each judgment in an exported set: name, type in Arrow, and a function of the rows."""
        return ()

    def files(self, export: Any) -> Mapping[str, tuple[str, Any]]:
        """Files that it adds to an exported set: what the card calls each -> its name, and a function that writes to a
        path.
        """
        return {}

    def places(self, task: Task) -> tuple[Sequence[str], Mapping[tuple[int, str], str]] | None:
        """By what agreement tells answers apart in place of their labels, in order; and unit and label -> which."""
        return None

    def draws(self, task: Task) -> Iterable[Mapping[str, Any]]:
        """Random draws that no row of Lot keeps, as lines of the file by which all draws can be repeated."""
        return ()

    def known(self, task: Task, units: Iterable[Any]) -> Mapping[int, str]:
        """Unit -> why it is left out of a set, of those whose label somebody could know."""
        return {}

    def expected(self, task: Task) -> Mapping[str, Any]:
        """The work that it will make, before anybody has begun."""
        return {}

    def opened(self, opened: Any, size: int | None, *, extended: bool) -> tuple[list[str], list[str]] | None:
        """What is said of a task that was opened or enlarged, and what needs attention; None for what is said of any.

        size: the number of units that was asked for.
        """
        return None


CONTROLS: dict[str, QualityControl] = {}


def register(control: QualityControl) -> QualityControl:
    """Make a control known by its name. ValueError if another one has that name already."""
    if not control.name or CONTROLS.get(control.name, control) is not control:
        raise ValueError(f"There is already a quality control named {control.name!r}; give this one another name.")
    CONTROLS[control.name] = control
    OPTIONS.update({option.name: option for option in control.options})
    return control


def panels(task: Task) -> list[Panel]:
    """What the controls of a task have found. Checks, which others build upon, act first and are told of last."""
    found = (control.panel(task, control.section(task)) for control in reversed(task.kind.quality_controls))
    return [panel for panel in found if panel]
