"""Tasks in a notebook: which there are, how far each is, what people said; and the manager's actions by their names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate import models
from annotate.actions.action import Action, Cancelled, Outcome, Progress, task_named
from annotate.actions.registry import by_name
from annotate.core import stages
from annotate.figures import task_statistics
from annotate.notebook.asking import apart, database, told
from annotate.notebook.installation import AssayError, check_installed, own_keys
from annotate.notebook.rows import Rows, of_dicts
from corpora.system import private

OVERVIEW = ("name", "title", "kind", "is_open", "units", "done", "queued", "adjudication", "answers_today", "paused")
PROGRESS = ("language", "units", "done", "answers", "missing", "waiting_copies", *stages.STAGES)
# Column -> where a judgment has it.
JUDGMENTS = {
    "id": "unit__item__key",
    "asked": "unit__asked",
    "annotator": "annotator__pseudonym",
    "kind": "kind",
    "label": "label",
    "reason": "reason",
    "comment": "comment",
    "answered_at": "answered_at",
    "active_seconds": "active_seconds",
    "voided_at": "voided_at",
    "known_answer": "unit__known_answer",
}


@database
def tasks() -> Rows:
    """The tasks, a row each, the newest first: name, title, kind, is_open, units, done (labelled or left out; a copy
    with the unit whose label it takes), queued, adjudication (waiting for an adjudicator), answers_today (in 24 hours),
    paused (annotators).
    """
    return of_dicts(task_statistics.overview(), OVERVIEW, "tasks")


@database
def task(name: str) -> "Task":
    """The task of a name. AssayError where there is none."""
    found = task_named(name)
    return Task(found.name, found.title, found.kind_slug, tuple(found.labels))


@dataclass(frozen=True)
class Task:
    """A task. kind: of question; labels: what may be answered, besides und where it asks for languages."""

    name: str
    title: str
    kind: str
    labels: tuple[str, ...]

    @database
    def progress(self) -> Rows:
        """How far it is, a row a language: units, done, answers (there are, of units that wait), missing (answers),
        waiting_copies, and the units at each stage.
        """
        return of_dicts(
            task_statistics.progress(task_named(self.name))["languages"], PROGRESS, f"progress of {self.name}"
        )

    @database
    def judgments(self) -> Rows:
        """All that people said, in its order: id (of the item), asked (the language that was asked about), annotator (a
        pseudonym), kind (answer, skip; settle, discard; repeat), label, reason, comment, answered_at (UTC),
        active_seconds (null where not measured), voided_at (null where it stands), known_answer (of gold answers and
        decoys that were hidden among the work, else empty). They are in memory.
        """
        said = models.Judgment.objects.filter(unit__task=task_named(self.name)).order_by("pk")
        rows = [dict(zip(JUDGMENTS, row, strict=True)) for row in said.values_list(*JUDGMENTS.values())]
        return of_dicts(rows, tuple(JUDGMENTS), f"judgments of {self.name}")


# --- actions


class _Stoppable(Progress):
    """Stops the deed at its next step once it is wanted no more."""

    stopped = False

    def advance(self, count: int = 0) -> None:
        if self.stopped:
            raise Cancelled


def run(action: str, /, **options: Any) -> Outcome:
    """Do what the command of that name does: run("open_task", name="language-july", corpus="july", size=2000, seed=1).

    options: those of the command, with underscores for hyphens; `as_` for one that Python has as a word of its own.
    The outcome has `said` (sentences), `warned` (what is to be seen to) and `data` (all, as JSON has it). AssayError
    where it is refused, in the words of the command. Interrupted, it ends at its next step, and what is done as a whole
    stays.
    """
    found = _action(action)
    given = {name.removesuffix("_"): value for name, value in options.items()}
    known = {option.name: option for option in found.options}
    if strange := [name for name in given if name not in known]:
        raise AssayError(f"{action} has no option {strange[0]!r}; it has: {', '.join(known)}.")
    for name, value in given.items():
        if known[name].several and isinstance(value, str | Path):
            given[name] = [value]
        elif known[name].read is str and isinstance(value, int) and not isinstance(value, bool):
            given[name] = str(value)  # a seed is a word or a number
    if not found.on_files:
        check_installed()
        own_keys()
    progress = _Stoppable()
    waiting = None
    with told(), private():
        try:
            waiting = apart(lambda: found.perform(given, progress))
            return found.perform(given, progress) if waiting is None else waiting.result()
        except KeyboardInterrupt:
            # In its thread the deed goes on: have it stop, and wait for that.
            progress.stopped = True
            if waiting:
                waiting.exception()
            raise


def _action(name: str) -> Action:
    known = by_name()
    if name not in known:
        raise AssayError(f"There is no action {name!r}; there is: {', '.join(sorted(known))}.")
    return known[name]
