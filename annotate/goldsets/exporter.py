"""The exporter, which writes a task's gold set to a folder.

A gold set consists of its rows as JSONL and Parquet, the rows that were left out, files in published formats,
manifest.json, and a dataset card in README.md. All files are written to a temporary folder first, which replaces the
target once it is complete. Rows are built column by column for CHUNK units at a time. The same database always produces
the same rows.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.db import connection, transaction
from django.template.loader import render_to_string

from annotate.core import stages
from annotate.core.draws.splits import FREQUENT_OVER, SplitError
from annotate.goldsets import form_extras
from annotate.goldsets.card import card_of
from annotate.goldsets.columns import FIELDS, LEFT_OUT, Column, columns_of
from annotate.goldsets.export import CHUNK, ONLY_ID, Export, Source
from annotate.goldsets.formats import FORMATS
from annotate.goldsets.set_folder import DIGESTS, ExportError, digests_of, replacing, write_digests, write_with_card
from annotate.goldsets.set_manifest import manifest_of_set
from annotate.goldsets.unit_rows import as_lines, content, each, live, or_none, rows_of, units_of
from annotate.kinds import Kind
from annotate.kinds.designs import CLASSES, DESIGNS
from annotate.models import Job, Judgment, Task, Transition
from annotate.quality import commitments
from corpora.core.masking import MASK

# The split of every row in a set that is not split, because such a set is only for evaluation.
WHOLE = "test"
SPLITS = "train=0.8,dev=0.1,test=0.1"
Progress = Callable[[int], None]
Some = TypeVar("Some")
Made = TypeVar("Made")


def export(
    task: Task,
    out: Path,
    *,
    splits: str = "",
    seed: str = "",
    frequent_over: int | None = None,
    tell_secret: bool = False,
    progress: Progress = lambda written: None,
) -> dict[str, Any]:
    """Write a task's gold set to a folder and return its manifest.

    An earlier export in the folder is replaced.

    splits: shares of the splits; by default, the records' own splits are used, or SPLITS if the records name none.
    seed: seed for drawing the splits; by default, the draw's seed.
    frequent_over: a label is frequent if more than this many train documents have it; 50 by default.
    tell_secret: whether to disclose the secret of the random draws and what they were drawn from; use this only for a
        task that will not be reopened.
    progress: function that is called from time to time with the number of rows written.

    Raise ExportError if the set cannot be written.
    """
    check_export(task, splits, seed, frequent_over)
    try:
        with replacing(out.resolve(), "export", task.name) as folder, one_moment():
            shares = splits or ("" if task.kind.records.split else SPLITS)
            export = Export(Task.objects.get(pk=task.pk), shares, seed, frequent_over or FREQUENT_OVER, tell_secret)
            earlier = out / "manifest.json"
            if export.mark and earlier.exists() and json.loads(earlier.read_text(encoding="utf-8"))["finished"]:
                raise ExportError(
                    f"{out} contains the finished set of {task.name}, but some items of the task are waiting for "
                    "people again. Choose another folder for the unfinished set, or wait until all items have labels."
                )
            return _write(export, folder, progress)
    except SplitError as error:
        raise ExportError(str(error)) from error


def check_export(task: Task, splits: str, seed: str, frequent_over: int | None) -> None:
    """Raise ExportError if the options do not fit the task, or if the task cannot be exported now."""
    kind = task.kind
    if not kind.publication.splits and (splits or seed):
        raise ExportError(f"--splits and --seed apply only to sets of records. A set of {kind.noun}s has no splits.")
    if (splits or seed) and DESIGNS[task.draw.design].answers_from == CLASSES:
        raise ExportError("The sets of this task were drawn when it was opened. Omit --splits and --seed.")
    if seed and kind.records.split and not splits:
        raise ExportError(
            f"The splits are read from the field {kind.records.split} of the records, so no seed is needed. Omit "
            "--seed, or add --splits to draw the splits at random."
        )
    if frequent_over is not None and not any("frequent_over" in each.inputs for each in kind.quality_controls):
        raise ExportError("--frequent-over can be used only with sets of documents with several labels.")
    # A row cannot have two columns with the same name.
    if taken := {*kind.publication.columns, *LEFT_OUT}.difference([FIELDS]).intersection(kind.exported_fields):
        raise ExportError(
            f"The records have a field named {min(taken)!r}, but every export already has a column with this name. "
            f"Rename the field in the kind {kind.slug} and in its corpus."
        )
    if found := Job.objects.contesting(task).first():
        raise ExportError(
            f"An audit of {task.name} has failed, and the items on which the detectors agreed are about to go to "
            f"people (job {found.pk}). Export the set after this job, which `assay serve` or `assay work` runs."
        )


@contextmanager
def one_moment() -> Iterator[None]:
    """Read from a consistent snapshot of the database, without blocking writers."""
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            yield
        elif connection.vendor == "postgresql":
            with transaction.atomic():
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield
        else:
            # Do not use atomic(), because it would take the write lock.
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("COMMIT")


def _write(export: Export, folder: Path, progress: Progress) -> dict[str, Any]:
    kind, mark, is_split = export.kind, export.mark, export.kind.publication.splits
    parquet = (
        {part: f"gold.{part}{mark}.parquet" for part in export.parts} if is_split else {WHOLE: f"gold{mark}.parquet"}
    )
    names: dict[str, Any] = {"jsonl": f"gold{mark}.jsonl", "left_out": f"left_out{mark}.jsonl", "parquet": parquet}
    if not is_split:
        # The digests make it possible to tell erased rows from changed rows. Split sets have none, because evaluation
        # on split sets does not allow erased rows.
        names["digests"] = f"gold{mark}{DIGESTS}"
    added = {key: file for each in kind.quality_controls for key, file in each.files(export).items()}
    names |= {key: name for key, (name, _) in added.items()}
    counts = Counts(kind, with_text=export.with_text)
    _write_rows(export, folder, names, counts, progress)
    if not (folder / names["left_out"]).stat().st_size:
        # Polars cannot read a file without lines.
        (folder / names["left_out"]).unlink()
        names["left_out"] = ""
    if export.tell_secret:
        commitments.write_lots(folder / commitments.FILE, export.task)
    for name, write in added.values():
        write(folder / name)
    written = Written(folder / names["jsonl"], None if is_split else folder / parquet[WHOLE])
    published = {name: FORMATS[name].write(folder, written, export) for name in kind.publication.formats}
    names["published"] = [name for told in published.values() for name in told["files"]]
    manifest = manifest_of_set(export, counts.as_dict(), published)
    write_with_card(folder, manifest, lambda: render_to_string(kind.publication.card, card_of(export, manifest, names)))
    return manifest


def _write_rows(export: Export, folder: Path, names: Mapping[str, Any], counts: "Counts", progress: Progress) -> None:
    """Write gold.jsonl with its digests, the rows that were left out, and the Parquet files."""
    is_split = export.kind.publication.splits
    columns = columns_of(export.task, with_text=export.with_text)
    paths = {part: folder / name for part, name in names["parquet"].items()}
    digests, written = [], 0
    with (
        open(folder / names["jsonl"], "wb") as jsonl,
        open(folder / names["left_out"], "w", encoding="utf-8", newline="\n") as others,
        parquet_files(paths, pa.schema([(name, column.type) for name, column in columns.items()])) as into_parquet,
    ):

        def write(some: Rows) -> int:
            in_set, lines = some.source.in_set, as_lines(some.columns)
            told = content(lines.filter(in_set))
            jsonl.write(told)
            if "digests" in names:
                digests.append(digests_of(BytesIO(told)))
            others.writelines(_left_out(some.source, lines))
            for part in paths:
                there = pc.equal(some.columns["split"], part).fill_null(False) if is_split else in_set
                into_parquet(part, some.columns.filter(there))
            return len(lines)

        for number in one_behind(write, map(counts.taken, rows(export, columns))):
            progress(written := written + number)
    if "digests" in names:
        write_digests(b"".join(digests), folder / names["digests"])


def one_behind(make: Callable[[Some], Made], items: Iterable[Some]) -> Iterator[Made]:
    """Yield make(item) for each item. It is computed in a second thread while the next item is read."""
    with ThreadPoolExecutor(1) as other:
        before = None
        for item in items:
            now = other.submit(make, item)
            if before:
                yield before.result()
            before = now
        if before:
            yield before.result()


def _left_out(source: Source, lines: pa.StringArray) -> Iterator[str]:
    """Yield the JSON lines of the rows that are not in the set.

    Unfinished units are omitted while the task is open. Otherwise, annotators would see each other's answers. They
    could also infer which units are gold answers, because those are missing. An adjudicator's reason may quote the
    record, so it is omitted if the text must not be published.
    """
    finished = pc.is_in(source.judged["stage"], pa.array(sorted(stages.FINISHED)))
    told = pc.and_not(pc.or_(finished, not source.export.task.is_open), source.in_set)
    said = source.said.marked(live(source.said, Judgment.DISCARD)).last("reason")
    columns = (source.own["item__key"], source.left_out, said, lines)
    for key, reason, words, line in zip(*(column.filter(told).to_pylist() for column in columns), strict=True):
        if reason in ONLY_ID:
            yield json.dumps({"id": key, "left_out": reason}, ensure_ascii=False) + "\n"
        else:
            why = {"left_out": reason, "left_out_why": words if source.export.with_text else None}
            yield f"{line[:-2]}, {json.dumps(why, ensure_ascii=False)[1:]}\n"


# --- Rows


@dataclass(frozen=True)
class Rows:
    """A batch of rows in the order of the draw, with their source."""

    source: Source
    columns: pa.RecordBatch

    def of_set(self, column: str) -> pa.Array:
        """Return a column's values in the rows that are in the set."""
        return self.columns[column].filter(self.source.in_set)


def rows(export: Export, columns: Mapping[str, Column]) -> Iterator[Rows]:
    """Yield the exported rows in batches. There is one row for each drawn item and question.

    A copy has the label, judgments and transitions of the unit with the same text, and its column `judged_as` names
    that unit. Gold answers that were placed in the queues have no rows. If the text must not be published, the rows
    also lack the columns that lead to the text (author, url) or may quote it (comments).
    """
    schema = pa.schema([(name, column.type) for name, column in columns.items()])
    for units in units_of(export.task, CHUNK):
        keys, reused = units.judged["pk"], units.judged["reused_from"]
        said, moved = (rows_of(table, keys) for table in (Judgment, Transition))
        is_own = reused.null_count == len(reused)
        decided = said if is_own else rows_of(Judgment, pc.coalesce(reused, keys))
        source = Source(export, units.own, units.judged, export.left_out(units, moved), said, decided, moved)
        values = [column.values(source) for column in columns.values()]
        yield Rows(source, pa.RecordBatch.from_arrays(values, schema=schema))


# A mapping from the name of a tally to the function that returns the values to count. Only rows in the set are counted,
# and None is not counted.
TALLIES: Mapping[str, Callable[[Rows], pa.Array]] = {
    "reused": lambda rows: rows.of_set("reused_from"),
    "by_stratum": lambda rows: rows.of_set("stratum"),
    # In the stratum `agreed`, labels come from the detectors, or from people if a post with the same text was audited.
    "agreed_by": lambda rows: rows.of_set("decided_by").filter(pc.equal(rows.of_set("stratum"), "agreed")),
    "by_language": lambda rows: rows.of_set("language"),
    "by_split": lambda rows: each("{}.{}".format, pa.string(), rows.of_set("language"), rows.of_set("split")),
    "by_source": lambda rows: form_extras.sources(rows.source).filter(rows.source.in_set),
    "by_votes": lambda rows: pa.array(form_extras.votes(rows.source), pa.string()),
}


def counted(values: pa.Array) -> Counter[Any]:
    """Count each value except None."""
    return Counter({each["values"]: each["counts"] for each in values.drop_null().value_counts().to_pylist()})


class Counts:
    """Counts of the exported rows. A label with several facets is counted under each of its facets.

    with_text: whether the rows have the text, so that masks in it can be counted.
    """

    def __init__(self, kind: Kind, *, with_text: bool):
        self.kind = kind
        # Only posts are masked. Records, which have fields, are not.
        self.masks = with_text and not kind.fields
        self.copies = self.labelled = self.masked = 0
        self.by_stage: Counter[str] = Counter()
        self.by_label: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.tallied: dict[str, Counter[str]] = {name: Counter() for name in kind.publication.tallies}

    def taken(self, rows: Rows) -> Rows:
        """Count the rows and return them."""
        left_out = rows.source.left_out
        self.by_stage += counted(rows.columns["stage"])
        self.copies += len(rows.columns["judged_as"].drop_null())
        self.left_out += counted(or_none(left_out))
        self.labelled += rows.source.in_set.true_count
        self.masked += self.masks and pc.match_substring(rows.of_set("text"), MASK).true_count
        for label, number in counted(rows.of_set("label")).items():
            self.by_label.update(dict.fromkeys(self.kind.form.facets(label), number))
        for name, counts in self.tallied.items():
            counts.update(counted(TALLIES[name](rows)))
        return rows

    def as_dict(self) -> dict[str, Any]:
        counted = {"left_out": self.left_out, **self.tallied, "by_stage": self.by_stage, "by_label": self.by_label}
        return {
            f"{self.kind.noun}s": self.by_stage.total(),
            "labelled": self.labelled,
            "unfinished": sum(count for stage, count in self.by_stage.items() if stage not in stages.FINISHED),
            "copies": self.copies,
            **({"masked": self.masked} if self.masks else {}),
            **{name: dict(sorted(counts.items())) for name, counts in counted.items()},
        }


# --- Parquet files, written in batches to limit memory


BATCH = 2000  # rows per row group


@contextmanager
def parquet_files(paths: Mapping[str, Path], schema: pa.Schema) -> Iterator[Callable[[str, pa.RecordBatch], None]]:
    """Yield a function `write(key, rows)` that adds rows to one of the Parquet files.

    A file without rows is not created. If there are no rows at all, the first file is created with columns only. The
    content of the files does not depend on how the rows are split into batches.
    """
    waiting = dict.fromkeys(paths, pa.RecordBatch.from_pylist([], schema=schema))
    writers: dict[str, pq.ParquetWriter] = {}
    with ExitStack() as files:

        def flush(part: str, rows: pa.RecordBatch) -> None:
            if part not in writers:
                writers[part] = files.enter_context(pq.ParquetWriter(paths[part], schema, compression="zstd"))
            writers[part].write_batch(rows)

        def write(part: str, rows: pa.RecordBatch) -> None:
            rows = pa.concat_batches([waiting[part], rows])
            whole = rows.num_rows - rows.num_rows % BATCH
            for start in range(0, whole, BATCH):
                flush(part, rows.slice(start, BATCH))
            waiting[part] = rows.slice(whole)

        yield write
        for part, rows in waiting.items():
            if rows.num_rows:
                flush(part, rows)
        if not writers:
            # Write no row group, because the datasets library cannot read an empty one.
            files.enter_context(pq.ParquetWriter(next(iter(paths.values())), schema, compression="zstd"))


# --- Rows of a written set, read back by published formats to limit memory


@dataclass(frozen=True)
class Written:
    """The files of a written set.

    jsonl: file of all rows, in order.
    whole: Parquet file of all rows; None if the set is split.
    """

    jsonl: Path
    whole: Path | None

    def each(self, columns: Collection[str]) -> Iterator[dict[str, Any]]:
        """Yield each row as a dict with the given columns. Columns that the row does not have are omitted."""
        with self.jsonl.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                row = json.loads(line)
                yield {column: row[column] for column in columns if column in row}

    def columns(self, *names: str) -> Iterator[pa.RecordBatch]:
        """Yield the named columns in batches. Yield nothing if the set is split."""
        if self.whole and self.whole.exists():
            with pq.ParquetFile(self.whole) as file:
                yield from file.iter_batches(columns=list(names))
