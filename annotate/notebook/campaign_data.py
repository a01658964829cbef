"""Corpora, tasks and managers' actions for notebooks."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from annotate import models
from annotate.actions.action import Action, Cancelled, Encoder, Outcome, Progress, task_named
from annotate.actions.registry import by_name
from annotate.core import stages
from annotate.figures import task_statistics
from annotate.notebook.installation import AssayError, check_installed, load_keys
from annotate.notebook.lazy_rows import Rows, database, from_dicts, from_files, outside_loop, readable_errors
from corpora.core import CorpusError
from corpora.core.arrow import pq
from corpora.storage.layout import (
    Manifest,
    corpora_dir,
    corpora_on_disk,
    corpus_dir,
    digest_of,
    manifest_of,
    read_manifest,
)
from corpora.storage.schemas import PREDICTIONS_SCHEMA, RANKED_SCHEMA, schema_of, votes_schema
from corpora.system import private

if TYPE_CHECKING:
    import pandas as pd

# --- Corpora

COLUMNS = ("name", "rows", "fields", "licence", "voted", "agreed", "predictors")


def corpora() -> Rows:
    """Return a table with one row per corpus.

    Columns: name, rows (number of posts or records), fields (of records), licence, voted (number of posts that the
        detectors voted on), agreed (number of posts on which all detectors agree), predictors (imported predictors as
        name@version).
    """
    with readable_errors(str(corpora_dir())):
        rows = [_row(name, manifest) for name in corpora_on_disk() if (manifest := read_manifest(name))]
    return from_dicts(rows, COLUMNS, "corpora")


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


def corpus(name: str, *, new: bool = False) -> "Corpus":
    """Return the corpus with this name. Raise AssayError if it does not exist.

    new: whether to accept a corpus that does not exist yet. `Corpus.add` creates it.
    """
    result = Corpus(name)
    assert new or result.manifest
    return result


@dataclass(frozen=True, repr=False)
class Corpus:
    """A corpus on disk. Its files are read on each access, so that later imports are visible."""

    name: str

    @property
    def manifest(self) -> Manifest:
        """The manifest: licence, sources with digests, parts, votes, predictions and fields."""
        with readable_errors():
            return manifest_of(self.name)

    def posts(self) -> Rows:
        """Return the posts or records in import order.

        Columns: id, text (as annotators see it), author (a hash), posted_at (UTC, may be null), url. Records also have
        language and their fields.
        """
        manifest = self.manifest
        files = [corpus_dir(self.name) / "parts" / part.name for part in manifest.parts]
        return from_files(files, schema_of(manifest.fields), f"posts of {self.name}")

    def add(self, rows: "Iterable[Mapping[str, Any]] | pa.Table | pd.DataFrame", **options: Any) -> Outcome:
        """Import rows and return the outcome, like run("import_corpus").

        Example: corpus("july", new=True).add([{"id": "1", "text": "Guten Morgen"}], licence="CC0-1.0").

        rows: an iterable of dicts (not kept in memory), an Arrow table, or a DataFrame. Each row needs `id` and `text`.
        options: options of `import_corpus`. `licence` is required only for a corpus's first rows.

        Raise AssayError if the rows are rejected.
        """
        with readable_errors():
            manifest = read_manifest(self.name)
        if manifest:
            terms = {name: getattr(manifest, name) for name in ("licence", "text_may_leave", "source")}
            options = terms | options
        with TemporaryDirectory() as folder:
            file = _write(rows, Path(folder))
            # The manifest lists sources by file name, so each import needs a unique name.
            source = file.rename(file.with_stem(f"rows-{digest_of(file)[:12]}"))
            return run("import_corpus", corpus=self.name, files=[source], **options)

    def export(self, out: str | Path, **options: Any) -> Outcome:
        """Write the posts or records to a folder, like run("export_corpus"). Options: as_ and predictions."""
        return run("export_corpus", corpus=self.name, out=out, **options)

    def votes(self) -> Rows:
        """Return the detectors' votes. Posts without votes are omitted; the others are in the order of posts().

        Columns: id, letters (number of letters in the text), and one column per detector: a list of dicts with
            `language` and `score` (0 to 1), best first.
        """
        files = [corpus_dir(self.name) / "votes" / part.name for part in self.manifest.votes]
        return from_files(files, votes_schema(), f"votes of {self.name}")

    def predictions(self, predictor: str) -> Rows:
        """Return the predictions of an imported predictor.

        predictor: the predictor, as name@version.

        Columns: id, label, score (may be null). If the predictor ranks labels, the columns are id, labels and scores,
            best label first.

        Raise AssayError if the corpus has no predictions by this predictor.
        """
        name, _, version = predictor.partition("@")
        with readable_errors():
            entry = self.manifest.predictions_of(name, version)
            if entry is None:
                available = ", ".join(map(str, self.manifest.predictions)) or "none"
                raise CorpusError(f"Corpus {self.name} has no predictions by {predictor!r}. Available: {available}.")
        schema = RANKED_SCHEMA if entry.ranked else PREDICTIONS_SCHEMA
        return from_files([corpus_dir(self.name) / "predictions" / entry.file], schema, f"predictions by {predictor}")

    def __repr__(self) -> str:
        manifest = self.manifest
        content = f"records ({' '.join(manifest.fields)})" if manifest.fields else "posts"
        return f"Corpus {self.name}: {manifest.rows:,} {content}, {manifest.licence}"


def _write(rows: Any, folder: Path) -> Path:
    """Write rows to a file and return its path."""
    if hasattr(rows, "to_dict"):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    with readable_errors("The table"):
        if isinstance(rows, pa.Table):
            pq.write_table(rows, folder / "rows.parquet")
            return folder / "rows.parquet"
        with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
            for number, row in enumerate(rows, start=1):
                if not isinstance(row, Mapping):
                    raise AssayError(f"Row {number} is not a dict but of the type {type(row).__name__}.")
                file.write(json.dumps(row, cls=Encoder, ensure_ascii=False) + "\n")
    return folder / "rows.jsonl"


OVERVIEW = ("name", "title", "kind", "is_open", "units", "done", "queued", "adjudication", "answers_today", "paused")
PROGRESS = ("language", "units", "done", "answers", "missing", "waiting_copies", *map(str.lower, stages.STAGES))
# Column -> lookup path, starting at a judgment.
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
    """Return a table with one row per task, newest first.

    Columns: name, title, kind, is_open, units, done (units that are labelled or left out; a copy counts like its
        original), queued, adjudication (units awaiting an adjudicator), answers_today (in the last 24 hours), paused
        (number of paused annotators).
    """
    return from_dicts(task_statistics.overview(), OVERVIEW, "tasks")


@database
def task(name: str) -> "Task":
    """Return the task with this name. Raise AssayError if it does not exist."""
    row = task_named(name)
    return Task(row.name, row.title, row.kind_slug, tuple(row.labels))


@dataclass(frozen=True)
class Task:
    """A task of the installation.

    labels: possible labels. If the task asks for languages, `und` is possible too.
    """

    name: str
    title: str
    kind: str
    labels: tuple[str, ...]

    @database
    def progress(self) -> Rows:
        """Return the task's progress as a table with one row per language.

        Columns: language, units, done, answers (collected for unfinished units), missing (answers still needed),
            waiting_copies, and the number of units at each stage.
        """
        languages = task_statistics.progress(task_named(self.name))["languages"]
        rows = [{name.lower(): value for name, value in row.items()} for row in languages]
        return from_dicts(rows, PROGRESS, f"progress of {self.name}")

    @database
    def judgments(self) -> Rows:
        """Return all judgments in chronological order. They are loaded into memory.

        Columns: id (of the item), asked (language asked about), annotator (pseudonym), kind (answer, skip or flag;
            settle or discard by an adjudicator; repeat), label, reason, comment, answered_at (UTC), active_seconds
            (null if not measured), voided_at (null if valid), known_answer (for hidden gold answers and decoys,
            otherwise empty).
        """
        judgments = models.Judgment.objects.filter(unit__task=task_named(self.name)).order_by("pk")
        rows = [dict(zip(JUDGMENTS, row, strict=True)) for row in judgments.values_list(*JUDGMENTS.values())]
        return from_dicts(rows, tuple(JUDGMENTS), f"judgments of {self.name}")


# --- Actions


class _Stoppable(Progress):
    """A progress report that can stop the action at its next step."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True

    def advance(self, count: int = 0) -> None:
        if self.stopped:
            raise Cancelled


def run(action: str, /, **options: Any) -> Outcome:
    """Perform a command's action and return the outcome.

    Example: run("open_task", name="language-july", corpus="july", size=2000, seed=1).

    options: options of the command, with underscores for hyphens. Append an underscore to Python keywords, as in as_.

    The outcome has `said` (sentences about the result), `warned` (warnings) and `data` (the complete result as JSON
    values). If you interrupt the call, the action stops at the next step, and completed steps are kept.

    Raise AssayError with the command's message if the action is refused.
    """
    command = find_action(action)
    values = read_options(command, options)
    if not command.on_files:
        check_installed()
        load_keys()
    progress = _Stoppable()
    with readable_errors(), private():
        return outside_loop(lambda: command.perform(values, progress).complete(), progress.stop)


def find_action(name: str) -> Action:
    actions = by_name()
    if name not in actions:
        raise AssayError(f"The action {name!r} does not exist. Available actions: {', '.join(sorted(actions))}.")
    return actions[name]


def read_options(action: Action, options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the keyword arguments of `run` to an action's option values.

    Raise AssayError if the action does not have one of the options.
    """
    declared = {option.name: option for option in action.options}
    values = {name.removesuffix("_"): value for name, value in options.items()}
    for name, value in values.items():
        if name not in declared:
            near = "".join(f" Did you mean {similar}?" for similar in get_close_matches(name, declared, 1))
            raise AssayError(f"{action.name} has no option {name!r}.{near} Its options are: {', '.join(declared)}.")
        if declared[name].several and isinstance(value, str | Path):
            values[name] = [value]
        elif declared[name].read in (str, task_named) and isinstance(value, int) and not isinstance(value, bool):
            values[name] = str(value)  # for example a seed, which may be a word or a number
    return values
