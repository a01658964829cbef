"""Quality controls, which protect the figures of a task, as plug-ins of the engine.

A kind lists its controls by name (`Kind.controls`, and those of its form). The engine calls the hooks of the controls
that apply to a task, in that order; it knows none of them. The built-in controls are the modules of annotate/controls/.
Others are classes that are registered with the entry point `assay.controls` or with `register`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from annotate.core.option import Option
from annotate.kinds.options import OPTIONS

# These types belong to higher layers.
Task = Unit = Annotator = Judgment = Permit = Entry = Answer = Table = Any


@dataclass(frozen=True)
class Panel:
    """The results of a control in a task, for a page and a command.

    heading: heading of the section
    words: sentences
    tables: the main table first
    data: the same as JSON values
    key: key of `data` in a command's result; "" merges its items into the result
    empty: sentence if there are no results
    plot: a chart
    over_limit: languages whose remaining units people should read
    advice: sentences that name commands, for the terminal
    warnings: sentences for managers only
    page: page of the documentation
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

    FEW = 30  # maximum number of rows for which the chart is open by default

    @property
    def table(self) -> Table | None:
        return self.tables[0] if self.tables else None

    @property
    def is_short(self) -> bool:
        return self.table is None or len(self.table.rows) <= self.FEW


class Place(NamedTuple):
    """The unit to show at the place of a unit of work.

    shown: key of the unit
    how: fields of its lease
    """

    shown: int
    how: Mapping[str, Any]


class QualityControl:
    """The hooks of a control. By default, they do nothing.

    name: name in kinds' lists
    options: options that it adds to tasks, in addition to kinds/options.py
    inputs: options of open_task and export_gold that only tasks with this control take
    hides: whether it hides items among the drawn ones
    switches: options; if any are named, the hooks for answers run only in tasks in which one of them has a value
    look_at: the command that reports on it
    of_agreement: whether it measures how reliable the detectors' agreement on a stream of posts is
    tabs: URL and name of each task page that it adds for managers
    manifest_key: key of its section in the manifest
    unit_columns: Arrow type by path from a unit, for the columns that an export reads for it
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

    # --- Hooks for opening, changing and enlarging a task.

    def prepare(self, task: Task, reuse: bool) -> None:
        """Prepare a task that is about to be created. The hook may set fields.

        reuse: whether the task reuses existing labels (`open_task --reuse`)
        ValueError: the task cannot be created
        """

    def enter(self, entry: Entry) -> None:
        """Hide items among the drawn ones before units are created (work/task_creation.py, Entry)."""

    def gold_stored(self, task: Task, suggested: Mapping[str, Mapping[str, list[str]]]) -> None:
        """Handle gold answers that were stored but are not yet among the units.

        suggested: replies by system, by id
        """

    def before_units(self, task: Task) -> Any:
        """Return what `units_added` needs to know about the existing units."""

    def units_added(self, task: Task, first: int, before: Any) -> int:
        """Handle new units that were stored, and return how many auto-labelled ones it sent to people.

        first: position of the first new unit
        before: result of `before_units`
        """
        return 0

    def queued(self, task: Task, units: Iterable[Unit], event: str) -> None:
        """Mark auto-labelled units that an event queued and that are about to be stored."""

    def enlarged(self, task: Task) -> Mapping[str, int]:
        """Handle a larger draw, and return the number of units that it sent to people, by label."""
        return {}

    def check_change(self, task: Task, changed: Sequence[str]) -> None:
        """Check changed options.

        InvalidAnswer: the task cannot have them
        """

    # --- Hooks for annotation.

    def place(self, unit: Unit, permit: Permit) -> Any:
        """Return a function that decides what to show instead of a unit of work, or None to show the unit.

        It is called before the unit is leased. The function takes all leases of the unit and the annotator's own, and
        returns a Place.
        """
        return None

    def coming(self, permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
        """Return a function that predicts how many hidden units a person will get.

        The function takes a permit, and the numbers of work units and hidden units by queue. It returns the number of
        hidden units before the last work unit.

        permits: a person's permits in tasks with this control
        """
        return lambda permit, work, hidden: 0

    def shown(self, unit: Unit, annotator: Annotator) -> None:
        """Handle a unit that is about to be shown to a person, or that they decided."""

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        """Return the answer to store for a submitted one."""
        return answer

    def seen(self, annotator: Annotator, said: Sequence[tuple[Unit, str]]) -> list[str]:
        """Return the labels of units as a person may see them."""
        return [label for _, label in said]

    def sides_of(self, annotator: Annotator, units: Iterable[Unit]) -> Mapping[int, Any]:
        """Return the order of the two sets of replies for a person, by unit that has two (controls/pair_order.py)."""
        return {}

    def invented_sides(self, kind: Any) -> Any:
        """Return two sets for the preview of a kind, or None if its units have none."""
        return None

    def trial(self, gold: Any, annotator: Annotator) -> Mapping[str, Any]:
        """Return fields of the TrialAnswer with which a person is asked a gold answer."""
        return {}

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | None:
        """Return the event, stage and label for a unit with all its answers, or None for the usual outcome."""
        return None

    def is_seconded(self, unit: Unit) -> bool:
        """Return whether a second adjudicator also decides a unit that one has settled."""
        return False

    def judged(self, judgment: Judgment, answer: Answer | None) -> None:
        """Handle an answer, skip or decision that was stored."""

    def parts(self, judgment: Judgment, answer: Answer) -> list[Any]:
        """Return unsaved rows with parts of an answer that are stored in addition to its text."""
        return []

    def moved(self, unit: Unit) -> None:
        """Handle a unit of work after a judgment, whether or not its stage changed."""

    def score(self, permit: Permit) -> tuple[int, int] | None:
        """Return the annotator's numbers of correct and of all gold answers since their last pause was lifted."""
        return None

    def pauses(self, permit: Permit) -> bool:
        """Return whether the annotator is now paused, after a judgment."""
        return False

    def reopened(self, task: Task) -> None:
        """Handle a task that was reopened."""

    # --- Hooks for reports and exports.

    def section(self, task: Task) -> Any:
        """Return the results so far as JSON values; exported manifests have them under `manifest_key`."""
        return None

    def panel(self, task: Task, found: Any) -> Panel | None:
        """Return the results for managers.

        found: the control's section
        """
        return None

    def columns(self, task: Task) -> Mapping[str, Mapping[int, Any]]:
        """Return columns for an exported set: values by unit, by column name."""
        return {}

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        """Return columns for each judgment in an exported set: name, Arrow type, and a function of the rows."""
        return ()

    def files(self, export: Any) -> Mapping[str, tuple[str, Any]]:
        """Return files for an exported set, by their name on the card: file name, and a function that writes a path."""
        return {}

    def places(self, task: Task) -> tuple[Sequence[str], Mapping[tuple[int, str], str]] | None:
        """Return ordered categories that agreement compares instead of labels, and the category by (unit, label)."""
        return None

    def draws(self, task: Task) -> Iterable[Mapping[str, Any]]:
        """Return random draws that are not stored as Lot rows, as lines of the file for reproducing all draws."""
        return ()

    def known(self, task: Task, units: Iterable[Any]) -> Mapping[int, str]:
        """Return why a unit is left out of a set, by unit, for units whose label somebody could know."""
        return {}

    def expected(self, task: Task) -> Mapping[str, Any]:
        """Return the expected additional work, before anybody has started."""
        return {}

    def opened(self, opened: Any, size: int | None, *, extended: bool) -> tuple[list[str], list[str]] | None:
        """Return the summary of an opened or enlarged task and what needs attention, or None for the default summary.

        size: number of units requested
        """
        return None


CONTROLS: dict[str, QualityControl] = {}


def register(control: QualityControl) -> QualityControl:
    """Register a control under its name.

    ValueError: the name is taken by another control, or is empty
    """
    if not control.name or CONTROLS.get(control.name, control) is not control:
        raise ValueError(f"There is already a quality control named {control.name!r}; give this one another name.")
    CONTROLS[control.name] = control
    OPTIONS.update({option.name: option for option in control.options})
    return control


def panels(task: Task) -> list[Panel]:
    """Return the panels of a task's controls. Checks act first, because others build on them, and are shown last."""
    found = (control.panel(task, control.section(task)) for control in reversed(task.kind.quality_controls))
    return [panel for panel in found if panel]
