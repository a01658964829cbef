"""The base class and registry of quality controls, such as audits, decoys and gold answers.

Controls are plug-ins. A kind and its answer form list the names of their controls, and the engine calls the hooks they
override, in order, without knowing what a control does. The built-in controls are the modules of annotate/controls/.
Other packages register controls with the entry point `assay.controls` or with `register`.
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
    """A control's results in a task, for pages and commands.

    heading: heading of the section
    words: sentences that summarize the results
    tables: tables of the results, the main table first
    data: the results as JSON data
    key: key of `data` in a command's JSON output; "" to merge `data` into the output
    empty: sentence to show if there are no results
    plot: chart of the results, which `panels` adds
    over_limit: languages that failed the audit. Annotators should label their remaining units.
    advice: sentences that name the commands to run, shown only in the terminal
    warnings: sentences shown only to managers
    page: the documentation page about the control
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
    """The unit that an annotator gets: the next unit of work in the queue, or a hidden unit instead.

    shown: primary key of the unit
    how: values for fields of the lease
    """

    shown: int
    how: Mapping[str, Any]


DRAWING = {"units_added", "expected", "moved"}  # hooks that only run if the control draws units (draws_by)


class QualityControl:
    """Base class of quality controls, with hooks that do nothing by default.

    name: name of the control in the lists of kinds
    options: task options that the control adds to kinds/options.py
    inputs: options of open_task and export_gold that are only accepted for tasks with this control
    hides: whether the control hides items among the drawn ones
    switches: options that enable the annotation hooks. The hooks only run if a task has a value for one of these
        options; empty to always run them
    draws_by: options that set how many units the control draws. The hooks in DRAWING only run if a task has a value for
        one of these options; empty to always run them
    look_at: name of the command that reports the control's results
    of_agreement: whether the control measures the reliability of the detectors' agreement on posts
    tabs: (URL name, title) of each page that the control adds to a task for managers
    manifest_key: key of the control's section in the manifest
    unit_columns: columns of units that the control needs for an export, as a mapping from field path to Arrow type
    opened: method that summarizes a task after it was opened or enlarged; None for the default summary. It takes the
        Opened object (work/task_creation.py), the requested size, and whether an existing task was enlarged, and
        returns two lists of sentences: the summary and the warnings.
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
    hooks: frozenset[str] = frozenset()  # names of the overridden hooks; the engine calls only these

    def __init_subclass__(cls) -> None:
        defaults = vars(QualityControl).items()
        cls.hooks = frozenset(name for name, default in defaults if callable(default) and getattr(cls, name) != default)

    # --- Hooks for opening, changing and enlarging a task.

    def prepare(self, task: Task, reuse: bool) -> None:
        """Set fields of a task before it is created. Raise ValueError if it cannot be created.

        reuse: whether the task reuses existing labels (`open_task --reuse`)
        """

    def enter(self, entry: Entry) -> None:
        """Add hidden items to the drawn ones before units are created (work/task_creation.py, Entry)."""

    def gold_stored(self, task: Task, suggested: Mapping[str, Mapping[str, list[str]]]) -> None:
        """Handle newly stored gold answers, which have no units yet.

        suggested: the systems' suggestions, as a mapping from id to system to replies
        """

    def units_added(self, task: Task, first: int) -> int:
        """Handle newly stored units. Return how many auto-labelled units the control sent to annotators.

        first: position of the first new unit
        """
        return 0

    def queued(self, task: Task, units: Collection[Unit], event: str) -> None:
        """Mark auto-labelled units before they are stored in a queue, for example to have an answer checked.

        event: event that moved the units into the queue
        """

    def enlarged(self, task: Task) -> Mapping[str, int]:
        """Handle an enlarged draw. Return the number of units sent to annotators, by label."""
        return {}

    def check_change(self, task: Task, changed: Sequence[str]) -> None:
        """Raise InvalidAnswer if the new values of the task's options are not possible.

        changed: names of the changed options
        """

    # --- Hooks for annotation.

    def place(self, unit: Unit, permit: Permit) -> Any:
        """Return a function that may replace the next unit of work by a hidden unit; None if the control never does.

        The function takes all leases of the unit and all leases of the annotator, and returns a Place. The engine
        calls it before it creates the lease.
        """
        return None

    def coming(self, permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
        """Return a function that predicts how many hidden units an annotator will get before their last unit of work.

        The function takes a permit, the number of units of work by queue, and the number of hidden units by queue.

        permits: the annotator's permits for all tasks with this control
        """
        return lambda permit, work, hidden: 0

    def shown(self, unit: Unit, annotator: Annotator) -> None:
        """Handle a unit before an annotator sees it, or after they have decided it as an adjudicator."""

    def beside(self, unit: Unit, annotator: Annotator) -> Mapping[str, Any]:
        """Return additional template context for the question about a unit, as the annotator sees it."""
        return {}

    def stored(self, answer: Answer, unit: Unit, annotator: Annotator) -> Answer:
        """Return the answer to store for a submitted answer."""
        return answer

    def seen(self, annotator: Annotator, labelled: Sequence[tuple[Unit, str]]) -> list[str]:
        """Convert the units' stored labels to labels that are safe to show to an annotator."""
        return [label for _, label in labelled]

    def sides_of(self, annotator: Annotator, units: Iterable[Unit]) -> Mapping[int, Any]:
        """Return which of a unit's two sets of replies the annotator sees first, for each unit that has two sets."""
        return {}

    def invented_sides(self, kind: Any) -> Any:
        """Return two sets of sample replies for a kind's preview; None if the kind's units have no sets of replies."""
        return None

    def trial(self, gold: Any, annotator: Annotator) -> Mapping[str, Any]:
        """Return values for the TrialAnswer fields of a practice or test question."""
        return {}

    def decided(self, unit: Unit, answers: Sequence[str], label: str | None) -> tuple[str, str, str] | int | None:
        """Decide what happens to a unit that has all its answers.

        label: label that results from the answers; None if there is none

        Return (event, next stage, label), or None for the usual outcome. To ask more annotators, return the total
        number of answers needed.
        """
        return None

    def is_seconded(self, unit: Unit) -> bool:
        """Return whether a second adjudicator must also decide a unit that an adjudicator has settled."""
        return False

    def judged(self, judgment: Judgment, answer: Answer | None) -> None:
        """Handle a newly stored judgment: an answer, a skip or an adjudicator's decision."""

    def parts(self, judgment: Judgment, answer: Answer) -> list[Any]:
        """Return unsaved model instances for the parts of an answer that its text doesn't contain."""
        return []

    def undo_refusal(self, judgment: Judgment, unit: Unit) -> str:
        """Return a message that tells the annotator why a judgment cannot be undone; "" if it can be undone.

        In that case, the control can set `unit.redundancy` to the number of answers that the unit needs afterwards.
        """
        return ""

    def moved(self, unit: Unit) -> None:
        """Handle a unit of work after a judgment, whether or not the judgment has changed the unit's stage."""

    def score(self, permit: Permit) -> tuple[int, int] | None:
        """Return an annotator's correct and total answers to hidden gold items since their last pause was lifted.

        Return None if the control does not count them.
        """
        return None

    def pauses(self, permit: Permit) -> bool:
        """Return whether the annotator is paused. Called after each judgment; the control may pause the annotator."""
        return False

    def reopened(self, task: Task) -> None:
        """Handle a task that has been reopened."""

    # --- Hooks for reports and exports.

    def section(self, task: Task) -> Any:
        """Return the current results as JSON data, for the manifest's section `manifest_key`."""
        return None

    def panel(self, task: Task, results: Any) -> Panel | None:
        """Return a panel with the results for managers; None to show nothing.

        results: the result of `section`
        """
        return None

    def plot(self, results: Any) -> str:
        """Return a chart of the results for pages; "" for none.

        results: the result of `section`
        """
        return ""

    def columns(self, task: Task) -> Mapping[str, Mapping[int, str]]:
        """Return additional columns of an exported set, as a mapping from column name to unit key to text.

        Units without text are missing from the inner mapping.
        """
        return {}

    def judgment_columns(self) -> Sequence[tuple[str, Any, Any]]:
        """Return (name, Arrow type, function that computes the values) for each field to export with judgments."""
        return ()

    def files(self, export: Any) -> Mapping[str, tuple[str, Any]]:
        """Return files to add to an exported set, by the name that the card shows.

        Each value consists of the file name and a function that writes the file to a path.
        """
        return {}

    def places(self, task: Task) -> tuple[Sequence[str], Mapping[tuple[int, str], str]] | None:
        """Return the categories for measuring agreement, in order; None to compare the labels themselves.

        The second value maps each (unit, label) pair to its category.
        """
        return None

    def draws(self, task: Task) -> Iterable[Mapping[str, Any]]:
        """Return the control's random draws that are not Lot rows, for the file that lets others verify the draws."""
        return ()

    def excluded(self, task: Task, units: Iterable[Any]) -> Mapping[int, str]:
        """Return the units to leave out of an exported set, because annotators could have known their labels.

        units: batches of units with their primary keys and content

        The result maps primary keys of units to reasons.
        """
        return {}

    def expected(self, task: Task) -> Mapping[str, Any]:
        """Before annotation begins, return the additional work that the control will probably cause."""
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

    Checks act first, because other controls use their results, but their panel comes last. If a control raises an
    exception, its panel reports the error, and the log has the traceback.
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
