"""The base class and registry of quality controls, such as audits, decoys and gold answers.

Controls are plug-ins. A kind and its answer form list the names of their controls, and the engine calls the hooks that
these controls override, in order, without knowing what any control does. The built-in controls are the modules of
annotate/controls/. Other packages register controls with the entry point `assay.controls` or with `register`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

from annotate.core.option import Option
from annotate.kinds.options import OPTIONS
from corpora.core import package_of

logger = logging.getLogger(__name__)

# These types are defined in higher layers, which this module must not import.
Task: TypeAlias = Any
Unit: TypeAlias = Any
Annotator: TypeAlias = Any
Judgment: TypeAlias = Any
Permit: TypeAlias = Any
Routes: TypeAlias = Any
Entry: TypeAlias = Any
Answer: TypeAlias = Any
Table: TypeAlias = Any


@dataclass(frozen=True)
class Panel:
    """The results of a control in a task, as pages and commands show them.

    heading: heading of the section
    words: sentences that summarize the results
    tables: tables of the results, the main table first
    data: the results as JSON data
    key: key under which a command's JSON output has `data`; if empty, the items of `data` are added to the output
    empty: sentence to show if there are no results
    plot: chart of the results, which `panels` adds
    over_limit: languages that failed the audit, so that people should read their remaining units
    advice: sentences that name the commands to run, shown only in the terminal
    warnings: sentences shown only to managers
    page: the documentation page on the control
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

    FEW = 30  # the chart is open by default if the table has at most this many rows

    @property
    def table(self) -> Table | None:
        return self.tables[0] if self.tables else None

    @property
    def is_short(self) -> bool:
        return self.table is None or len(self.table.rows) <= self.FEW


class Place(NamedTuple):
    """The unit that a person gets when a unit of work is next in the queue: either that unit, or a hidden one instead.

    shown: key of the unit
    how: values for fields of the lease
    """

    shown: int
    how: Mapping[str, Any]


DRAWING = {"units_added", "expected", "moved"}  # hooks that are called only if the control draws units (draws_by)


class QualityControl:
    """Base class of quality controls, with hooks that do nothing by default.

    name: name by which kinds list the control
    options: task options that the control adds to those in kinds/options.py
    inputs: options of open_task and export_gold that are accepted only for tasks with this control
    hides: whether the control hides items among the drawn ones
    switches: options that switch on the hooks for annotation: these run only if a task has a value for one of the
        options. If there are no switches, the hooks always run.
    draws_by: options that set the number of units that the control draws. The hooks in DRAWING run only if a task has a
        value for one of the options. If there are no such options, these hooks always run.
    look_at: name of the command that reports the results of the control
    of_agreement: whether the control measures the reliability of the detectors' agreement on posts
    tabs: (URL name, title) of each page that the control adds to a task for managers
    manifest_key: key of the control's section in the manifest
    unit_columns: columns of units that the control needs for an export, as a mapping from field path to Arrow type
    opened: method that summarizes a task after it was opened or enlarged; None for the default summary. It takes the
        Opened object (work/task_creation.py), the requested size, and whether an existing task was enlarged. It returns
        sentences, and sentences that warn of problems.
    """

    name: str = ""
    options: Sequence[Option] = ()
    inputs: Sequence[str] = ()
    hides: bool = False
    switches: Sequence[str] = ()
    draws_by: Sequence[str] = ()
    look_at: str = ""
    of_agreement: bool = False
    tabs: Sequence[tuple[str, str]] = ()
    manifest_key: str = ""
    unit_columns: Mapping[str, Any] = {}
    opened: Callable[..., tuple[list[str], list[str]]] | None = None
    hooks: frozenset[str] = frozenset()  # names of the hooks that the control overrides; only these are called

    def __init_subclass__(cls) -> None:
        defaults = vars(QualityControl).items()
        cls.hooks = frozenset(name for name, default in defaults if callable(default) and getattr(cls, name) != default)

    # --- Hooks for opening, changing and enlarging a task.

    def prepare(self, task: Task, reuse: bool) -> None:
        """Set fields of a task that is about to be created.

        reuse: whether the task reuses existing labels (`open_task --reuse`)

        Raise ValueError if the task cannot be created.
        """

    def enter(self, entry: Entry) -> None:
        """Hide items among the drawn ones before units are created (work/task_creation.py, Entry)."""

    def gold_stored(self, task: Task, suggested: Mapping[str, Mapping[str, list[str]]]) -> None:
        """Handle gold answers that have been stored but have no units yet.

        suggested: the systems' suggestions, as a mapping from id to system to replies
        """

    def units_added(self, task: Task, first: int) -> int:
        """Handle new units after they have been stored.

        first: position of the first new unit

        Return the number of new auto-labelled units that the control sent to people.
        """
        return 0

    def queued(self, task: Task, units: Collection[Unit], event: str) -> None:
        """Mark auto-labelled units that are about to be stored in a queue, for example for a check.

        event: event that moved the units into the queue
        """

    def enlarged(self, task: Task) -> Mapping[str, int]:
        """Handle a task whose draw was enlarged. Return the number of units sent to people, by label."""
        return {}

    def check_change(self, task: Task, changed: Sequence[str]) -> None:
        """Raise InvalidAnswer if the task's changed options are not possible.

        changed: names of the changed options
        """

    # --- Hooks for annotation.

    def place(self, unit: Unit, permit: Permit) -> Any:
        """Return a function that selects the unit for a person when a unit of work is next in the queue.

        The function is called before the unit is leased. It takes all leases of the unit and those of the person, and
        returns a Place. Return None if the person always gets the unit itself.
        """
        return None

    def coming(self, permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
        """Return a function that predicts how many hidden units a person will get before their last unit of work.

        The function takes a permit, the number of units of work by queue, and the number of hidden units by queue.

        permits: the person's permits for all tasks with this control
        """
        return lambda permit, work, hidden: 0

    def shown(self, unit: Unit, annotator: Annotator) -> None:
        """Handle a unit that is about to be shown to a person, or that the person has decided as an adjudicator."""

    def beside(self, unit: Unit, annotator: Annotator) -> Mapping[str, Any]:
        """Return template context that the control adds to the question about a unit, as a person sees it."""
        return {}

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        """Convert a submitted answer to the answer to store."""
        return answer

    def seen(self, annotator: Annotator, labelled: Sequence[tuple[Unit, str]]) -> list[str]:
        """Convert the stored labels of units to the labels that a person may see."""
        return [label for _, label in labelled]

    def sides_of(self, annotator: Annotator, units: Iterable[Unit]) -> Mapping[int, Any]:
        """Return the order in which a person sees the two sets of replies, for each unit that has two sets."""
        return {}

    def invented_sides(self, kind: Any) -> Any:
        """Return two sets of invented replies for the preview of a kind; None if its units have no such sets."""
        return None

    def trial(self, gold: Any, annotator: Annotator) -> Mapping[str, Any]:
        """Return values for fields of the TrialAnswer that stores a person's answer to a practice or test question."""
        return {}

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | int | None:
        """Decide what happens to a unit that has all its answers.

        label: label that results from the answers; None if there is none

        Return the event, the next stage and the label. To ask more people, return how many must answer in total. Return
        None for the usual outcome.
        """
        return None

    def is_seconded(self, unit: Unit) -> bool:
        """Return whether a second adjudicator must also decide a unit that an adjudicator has settled."""
        return False

    def judged(self, judgment: Judgment, answer: Answer | None) -> None:
        """Handle a judgment that has been stored: an answer, a skip or an adjudicator's decision."""

    def parts(self, judgment: Judgment, answer: Answer) -> list[Any]:
        """Return unsaved database rows for the parts of an answer that are not in its text."""
        return []

    def undo_refusal(self, judgment: Judgment, unit: Unit) -> str:
        """Return why an annotator's recent judgment cannot be undone; "" if it can. The annotator reads it.

        If it can, the control may set how many answers the unit needs afterwards, by `unit.redundancy`.
        """
        return ""

    def moved(self, unit: Unit) -> None:
        """Handle a unit of work after a judgment, whether or not the judgment has changed the unit's stage."""

    def score(self, permit: Permit) -> tuple[int, int] | None:
        """Return how many hidden gold answers an annotator has answered correctly, and how many in total.

        Count only since the annotator's last pause was lifted. Return None if the control does not count them.
        """
        return None

    def pauses(self, permit: Permit) -> bool:
        """Return whether the annotator is paused. This is called after a judgment, and may pause the annotator."""
        return False

    def reopened(self, task: Task) -> None:
        """Handle a task that has been reopened."""

    # --- Hooks for reports and exports.

    def section(self, task: Task) -> Any:
        """Return the current results as JSON data, which exported manifests have under `manifest_key`."""
        return None

    def panel(self, task: Task, results: Any) -> Panel | None:
        """Return the results as managers see them; None to show nothing.

        results: the result of `section`
        """
        return None

    def plot(self, results: Any) -> str:
        """Return a chart of the results, which pages show; "" to show none.

        results: the result of `section`
        """
        return ""

    def columns(self, task: Task) -> Mapping[str, Mapping[int, str]]:
        """Return columns for an exported set: for each new name, a mapping from the key of a unit to its text.

        Units that are not in the mapping have no value.
        """
        return {}

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        """Return fields to export with each judgment: name, Arrow type, and a function that computes the values."""
        return ()

    def files(self, export: Any) -> Mapping[str, tuple[str, Any]]:
        """Return files to add to an exported set.

        Each key is the name of the file on the card. Each value has the file name, and a function that takes a path and
        writes the file.
        """
        return {}

    def places(self, task: Task) -> tuple[Sequence[str], Mapping[tuple[int, str], str]] | None:
        """Return the categories by which agreement is measured, in order; None to compare the labels themselves.

        The second value maps each (unit, label) pair to its category.
        """
        return None

    def draws(self, task: Task) -> Iterable[Mapping[str, Any]]:
        """Return the control's random draws that are not stored as Lot rows.

        They are written to a file that allows others to repeat all draws of a task.
        """
        return ()

    def excluded(self, task: Task, units: Iterable[Any]) -> Mapping[int, str]:
        """Return the units that an exported set must leave out, because their labels could have been known.

        units: batches of units with their keys and content.

        The result maps the unit's key to the reason.
        """
        return {}

    def expected(self, task: Task) -> Mapping[str, Any]:
        """Return the additional work that the control is expected to cause, before annotation has begun."""
        return {}


CONTROLS: dict[str, QualityControl] = {}
Control = TypeVar("Control", bound=QualityControl)


def register(control: Control) -> Control:
    """Register a control under its name, and add its options to OPTIONS.

    Raise ValueError if the name is empty or belongs to another control.
    """
    if not control.name or CONTROLS.get(control.name, control) is not control:
        raise ValueError(f"A quality control named {control.name!r} already exists. Choose another name.")
    CONTROLS[control.name] = control
    OPTIONS.update({option.name: option for option in control.options})
    return control


def panels(task: Task) -> list[Panel]:
    """Return the panels of a task's controls in reverse order.

    Checks act first, because other controls use their results, but their panel is shown last. If a control fails, its
    panel states that, and the log has the traceback.
    """
    all_panels = []
    for control in reversed(task.kind.quality_controls):
        try:
            results = control.section(task)
            if panel := control.panel(task, results):
                all_panels.append(replace(panel, plot=control.plot(results)))
        except Exception:
            logger.exception("%s: the panel of the quality control %r failed", package_of(control), control.name)
            message = "These results could not be computed. The server's log contains the error."
            all_panels.append(Panel(control.name.capitalize(), empty=message))
    return all_panels
