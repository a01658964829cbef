"""Corpora and tasks in a notebook, and the actions of managers by their names."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from annotate import models
from annotate.actions.action import Action, Cancelled, Outcome, Progress, task_named
from annotate.actions.registry import by_name
from annotate.core import stages
from annotate.figures import task_statistics
from annotate.notebook.installation import AssayError, check_installed, own_keys
from annotate.notebook.lazy_rows import Rows, apart, database, of_dicts, of_files, told
from corpora.core import CorpusError
from corpora.storage.layout import Manifest, corpora_dir, corpora_on_disk, corpus_dir, manifest_of, read_manifest
from corpora.storage.schemas import PREDICTIONS_SCHEMA, RANKED_SCHEMA, schema_of, votes_schema
from corpora.system import private

# --- Corpora

COLUMNS = ("name", "rows", "fields", "licence", "voted", "agreed", "predictors")


def corpora() -> Rows:
    """The corpora, a row each: name, rows (posts or records), fields (of records), licence, voted and agreed (posts
    that the detectors have read, and on which all name one language), predictors (imported ones, as name@version).
    """
    with told(str(corpora_dir())):
        rows = [_row(name, manifest) for name in corpora_on_disk() if (manifest := read_manifest(name))]
    return of_dicts(rows, COLUMNS, "corpora")


def _row(name: str, manifest: Manifest) -> dict[str, object]:
    return {
        "name": name,
        "rows": manifest.rows,
        "fields": " ".join(manifest.fields),
        "licence": manifest.licence,
        "voted": sum(part.rows for part in manifest.votes),
        "agreed": sum(part.unanimous for part in manifest.votes),
        "predictors": " ".join(map(str, manifest.predictions)),
    }


def corpus(name: str) -> "Corpus":
    """The corpus of a name. AssayError where there is none."""
    found = Corpus(name)
    assert found.manifest
    return found


@dataclass(frozen=True, repr=False)
class Corpus:
    """A corpus on disk. What it has is looked up whenever it is asked, so that what was imported since is seen."""

    name: str

    @property
    def manifest(self) -> Manifest:
        """What is in it: licence, sources with their digests, parts, votes, predictions, fields."""
        with told():
            return manifest_of(self.name)

    def posts(self) -> Rows:
        """The posts or records in the order in which they were imported: id, text (as people see it), author (a hash),
        posted_at (UTC, may be null), url; of records also language and each field.
        """
        manifest = self.manifest
        files = [corpus_dir(self.name) / "parts" / part.name for part in manifest.parts]
        return of_files(files, schema_of(manifest.fields), f"posts of {self.name}")

    def votes(self) -> Rows:
        """What the detectors say of each post that they have read, in the order of posts(): id, letters, and for each
        detector its languages, the best first, as dicts with language and score (between 0 and 1).
        """
        files = [corpus_dir(self.name) / "votes" / part.name for part in self.manifest.votes]
        return of_files(files, votes_schema(), f"votes of {self.name}")

    def predictions(self, spelled: str) -> Rows:
        """What an imported predictor says, by its name@version: id, label, score (may be null); of one that ranks
        labels: id, labels and scores, the best first. AssayError where there is none of that name.
        """
        name, _, version = spelled.partition("@")
        with told():
            found = self.manifest.predictions_of(name, version)
            if found is None:
                there = ", ".join(map(str, self.manifest.predictions)) or "none"
                raise CorpusError(f"Corpus {self.name} has no predictions of {spelled!r}; it has: {there}.")
        schema = RANKED_SCHEMA if found.ranked else PREDICTIONS_SCHEMA
        return of_files([corpus_dir(self.name) / "predictions" / found.file], schema, f"what {spelled} says")

    def __repr__(self) -> str:
        manifest = self.manifest
        holds = f"records of {' '.join(manifest.fields)}" if manifest.fields else "posts"
        return f"Corpus {self.name}: {manifest.rows:,} {holds}, {manifest.licence}"


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


# --- Actions


class _Stoppable(Progress):
    """Stops the action at its next step once nobody wants it any more."""

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
    found = named_action(action)
    given = options_given(found, options)
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


def named_action(name: str) -> Action:
    known = by_name()
    if name not in known:
        raise AssayError(f"There is no action {name!r}; there is: {', '.join(sorted(known))}.")
    return known[name]


def options_given(action: Action, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a call gives for the options of an action. AssayError for a name that is none of them."""
    known = {option.name: option for option in action.options}
    given = {name.removesuffix("_"): value for name, value in options.items()}
    for name, value in given.items():
        if name not in known:
            near = "".join(f" Did you mean {other}?" for other in get_close_matches(name, known, 1))
            raise AssayError(f"{action.name} has no option {name!r}.{near} It has: {', '.join(known)}.")
        if known[name].several and isinstance(value, str | Path):
            given[name] = [value]
        elif known[name].read is str and isinstance(value, int) and not isinstance(value, bool):
            given[name] = str(value)  # a seed is a word or a number
    return given
