"""Export of a task's gold set to a folder.

A gold set consists of its rows as JSONL and Parquet, the rows that were left out, files in published formats,
manifest.json, and a dataset card in README.md. All files are written to a temporary folder, which replaces the target
once it is complete. Rows are built column by column, in batches. The same database always produces the same rows.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.db import connection, transaction
from django.template.loader import render_to_string

from annotate.core import stages
from annotate.core.draws.splits import FREQUENT_OVER, SplitError
from annotate.exchange.tool_files import WRITERS, GoldSet
from annotate.goldsets import form_extras, set_documents
from annotate.goldsets.card import card_of
from annotate.goldsets.columns import FIELDS, LEFT_OUT, Column, columns_of
from annotate.goldsets.export import ONLY_ID, Export, Source
from annotate.goldsets.formats import formats
from annotate.goldsets.set_folder import DIGESTS, ExportError, replacing, write_digests, write_with_card
from annotate.goldsets.set_manifest import manifest_of_set
from annotate.goldsets.unit_rows import as_lines, content, live, or_none, rows_of, units_of
from annotate.kinds import Kind
from annotate.kinds.designs import CLASSES, DESIGNS
from annotate.kinds.forms import FORMS
from annotate.kinds.interface_language import ENGLISH, label_name
from annotate.models import Job, Judgment, Task, Transition
from annotate.quality import commitments
from annotate.quality.answer_models import values_of
from corpora.core.arrow import pc, pq
from corpora.core.masking import MASK
from corpora.database.bulk_rows import CACHE_KIB, map_rows
from corpora.storage.layout import manifest_of

# The split name for a set without splits. Such a set is used only for evaluation.
WHOLE = "test"
SPLITS = "train=0.8,dev=0.1,test=0.1"
Progress = Callable[[int], None]


def export(
    task: Task,
    out: Path,
    *,
    splits: str = "",
    seed: str = "",
    frequent_over: int | None = None,
    tell_secret: bool = False,
    tools: Sequence[str] = (),
    progress: Progress = lambda written: None,
) -> dict[str, Any]:
    """Write a task's gold set to a folder and return its manifest. An earlier export in the folder is replaced.

    splits: shares of the splits; by default, the records' own splits, or SPLITS if the records have none.
    seed: seed for drawing the splits; by default, the draw's seed.
    frequent_over: a label is frequent if more than this many train documents have it; 50 by default.
    tell_secret: whether to disclose the secret and the frames of the random draws; only for tasks that will not be
        reopened.
    tools: annotation tools to write copies of the set for, see `_write_copies`.
    progress: callback that receives the number of rows written so far.

    Raise ExportError if the set cannot be written.
    """
    check_export(task, splits, seed, frequent_over, tools)
    try:
        with replacing(out.resolve(), "export", task.name) as folder, snapshot():
            shares = splits or ("" if task.kind.records.split else SPLITS)
            export = Export(Task.objects.get(pk=task.pk), shares, seed, frequent_over or FREQUENT_OVER, tell_secret)
            earlier = out / "manifest.json"
            if export.mark and earlier.exists() and json.loads(earlier.read_text(encoding="utf-8"))["finished"]:
                raise ExportError(
                    f"{out} contains the finished set of {task.name}, but some items of the task are open "
                    "again. Choose another folder for the unfinished set, or wait until all items have labels."
                )
            return _write(export, folder, tools, progress)
    except SplitError as error:
        raise ExportError(str(error)) from error


def check_export(task: Task, splits: str, seed: str, frequent_over: int | None, tools: Sequence[str] = ()) -> None:
    """Raise ExportError if the options do not apply to the task, or if the task cannot be exported now."""
    kind = task.kind
    _check_copies(task, tools)
    if not kind.publication.splits and (splits or seed):
        raise ExportError(f"--splits and --seed apply only to sets of records. A set of {kind.noun}s has no splits.")
    if (splits or seed) and DESIGNS[task.draw.design].answers_from == CLASSES:
        raise ExportError("The sets of this task were drawn when it was opened. Omit --splits and --seed.")
    if seed and kind.records.split and not splits:
        raise ExportError(
            f"The splits are read from the field {kind.records.split} of the records, so no seed is needed. Omit "
            "--seed, or add --splits to draw the splits at random."
        )
    if frequent_over is not None and not any("frequent_over" in control.inputs for control in kind.quality_controls):
        raise ExportError("--frequent-over can be used only with sets of documents with several labels.")
    # A row cannot have two columns with the same name.
    if taken := {*kind.publication.columns, *LEFT_OUT}.difference([FIELDS]).intersection(kind.exported_fields):
        raise ExportError(
            f"The records have a field named {min(taken)!r}, but every export already has a column with this name. "
            f"Rename the field in the kind {kind.slug} and in its corpus."
        )
    if job := Job.objects.contesting(task).first():
        raise ExportError(
            f"An audit of {task.name} has failed, and the items that the detectors agreed on are about to be sent to "
            f"annotators (job {job.pk}). Export the set after this job, which `assay serve` or `assay work` runs."
        )


@contextmanager
def snapshot() -> Iterator[None]:
    """Read from a consistent snapshot of the database, without blocking writers."""
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            yield
        elif connection.vendor == "postgresql":
            with transaction.atomic():
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield
        else:
            cursor.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            # Don't use atomic() here: it would take the write lock.
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("COMMIT")


def _write(export: Export, folder: Path, tools: Sequence[str], progress: Progress) -> dict[str, Any]:
    kind, mark, is_split = export.kind, export.mark, export.kind.publication.splits
    parquet = (
        {part: f"gold.{part}{mark}.parquet" for part in export.parts} if is_split else {WHOLE: f"gold{mark}.parquet"}
    )
    names: dict[str, Any] = {"jsonl": f"gold{mark}.jsonl", "left_out": f"left_out{mark}.jsonl", "parquet": parquet}
    if not is_split:
        # The digests distinguish erased rows from changed rows. Split sets have none, because they can't be evaluated
        # with erased rows.
        names["digests"] = f"gold{mark}{DIGESTS}"
    control_files = {key: file for control in kind.hooks["files"] for key, file in control.files(export).items()}
    names |= {key: name for key, (name, _) in control_files.items()}
    # Mentions are masked only in posts, not in records. Only records have fields.
    has_masks = export.with_text and not kind.fields
    tallies = ("left_out", *kind.publication.tallies, "by_stage", "by_label")
    counts = Counts(kind, has_masks, {name: Counter() for name in tallies})
    _write_rows(export, folder, names, counts, progress)
    if not (folder / names["left_out"]).stat().st_size:
        # Polars can't read an empty file.
        (folder / names["left_out"]).unlink()
        names["left_out"] = ""
    if export.tell_secret:
        commitments.write_lots(folder / commitments.FILE, export.task)
    for name, write in control_files.values():
        write(folder / name)
    published = {name: formats()[name].write(folder, export) for name in kind.publication.formats}
    names["published"] = [name for entry in published.values() for name in entry["files"]]
    manifest = manifest_of_set(export, counts.as_dict(), published)
    if tools:
        manifest["copies"] = _write_copies(folder, export, tools)

    def documents() -> dict[str, str]:
        context = card_of(export, manifest, names) | {"has_statements": True}
        card = render_to_string(kind.publication.card, context)
        return {"README.md": card, **set_documents.documents(manifest, folder, context)}

    write_with_card(folder, manifest, documents)
    return manifest


def _write_rows(export: Export, folder: Path, names: Mapping[str, Any], counts: "Counts", progress: Progress) -> None:
    """Write gold.jsonl with its digests, the rows that were left out, and the Parquet files."""
    is_split = export.kind.publication.splits
    columns = columns_of(export.task, with_text=export.with_text)
    paths = {part: folder / name for part, name in names["parquet"].items()}
    written = 0
    with (
        open(folder / names["jsonl"], "wb") as jsonl,
        open(folder / names["left_out"], "w", encoding="utf-8", newline="\n") as left_out,
        parquet_files(paths, pa.schema([(name, column.type) for name, column in columns.items()])) as into_parquet,
    ):

        def write(source: Source, rows: pa.RecordBatch) -> int:
            lines = as_lines(rows)
            jsonl.write(content(lines.filter(source.in_set)))
            left_out.writelines(_left_out(source, lines))
            for part in paths:
                into_parquet(part, rows.filter(pc.equal(rows["split"], part) if is_split else source.in_set))
            return len(lines)

        for number in write_in_thread(write, batches(export, columns, counts)):
            progress(written := written + number)
    if "digests" in names:
        write_digests(folder / names["jsonl"])


def write_in_thread(write: Callable[..., int], batches: Iterable[tuple[Any, ...]]) -> Iterator[int]:
    """Yield write(*batch) for each batch. Each call runs in a second thread while the next batch is read."""
    with ThreadPoolExecutor(1) as thread:
        previous = None
        for batch in batches:
            current = thread.submit(write, *batch)
            if previous:
                yield previous.result()
            previous = current
        if previous:
            yield previous.result()


def _left_out(source: Source, lines: pa.StringArray) -> Iterator[str]:
    """Yield the JSON lines of the rows that are not in the set.

    While the task is open, unfinished units are omitted. Otherwise, annotators could see each other's answers, and
    could infer which units are gold answers, because those have no rows. An adjudicator's reason may quote the record,
    so it is omitted if the text must not be published.
    """
    finished = pc.is_in(source.judged["stage"], pa.array(sorted(stages.FINISHED)))
    included = pc.and_not(pc.or_(finished, not source.export.task.is_open), source.in_set)
    explanations = source.judgments.filter(live(source.judgments, Judgment.DISCARD)).last("reason")
    columns = (source.unit["item__key"], source.left_out, explanations, lines)
    for key, reason, why, line in zip(*(column.filter(included).to_pylist() for column in columns), strict=True):
        if reason in ONLY_ID:
            yield json.dumps({"id": key, "left_out": reason}, ensure_ascii=False) + "\n"
        else:
            reasons = {"left_out": reason, "left_out_why": why if source.export.with_text else None}
            yield f"{line[:-2]}, {json.dumps(reasons, ensure_ascii=False)[1:]}\n"


# --- Rows


def batches(export: Export, columns: Mapping[str, Column], counts: "Counts") -> Iterator[tuple[Source, pa.RecordBatch]]:
    """Yield the exported rows in batches, with their source, and add them to the counts.

    Each drawn item has a row for each question. A copy has the label, judgments and transitions of the unit with the
    same text, and its column `judged_as` names that unit. Gold answers placed in the queues have no rows. If the text
    must not be published, the rows also lack columns that lead to it (`author`, `url`) or may quote it (comments).
    """
    schema = pa.schema([(name, column.type) for name, column in columns.items()])
    for units in units_of(export.task):
        keys, reused = units.judged["pk"], units.judged["reused_from"]
        judgments, transitions = (rows_of(table, keys) for table in (Judgment, Transition))
        is_reused = reused.null_count < len(reused)
        deciding = rows_of(Judgment, pc.coalesce(reused, keys)) if is_reused else judgments
        left_out = export.left_out(units, transitions)
        in_set = pc.equal(left_out, "")
        source = Source(export, units.unit, units.judged, left_out, in_set, judgments, deciding, transitions)
        rows = pa.RecordBatch.from_arrays([column.values(source) for column in columns.values()], schema=schema)
        counts.add(source, rows)
        yield source, rows


# Name of a tally -> function that returns the values to count, without None. Its arguments are the source of a batch
# and the batch's rows that are in the set.
TALLIES: Mapping[str, Callable[[Source, pa.RecordBatch], pa.Array]] = {
    # These two tallies also count rows that are not in the set.
    "left_out": lambda source, rows: or_none(source.left_out),
    "by_stage": lambda source, rows: source.judged["stage"],
    "by_label": lambda source, rows: rows["label"],
    "reused": lambda source, rows: rows["reused_from"],
    "by_stratum": lambda source, rows: rows["stratum"],
    # In the stratum `agreed`, labels come from the detectors, or from annotators if a post with the same text was
    # audited.
    "agreed_by": lambda source, rows: rows["decided_by"].filter(pc.equal(rows["stratum"], "agreed")),
    "by_language": lambda source, rows: rows["language"],
    "by_split": lambda source, rows: map_rows("{}.{}".format, pa.string(), rows["language"], rows["split"]),
    "by_source": lambda source, rows: form_extras.sources(source).filter(source.in_set),
    "by_votes": lambda source, rows: pa.array(form_extras.votes(source), pa.string()),
}


@dataclass
class Counts:
    """Counts of the exported rows.

    has_masks: whether mentions are masked in the rows' texts.
    tallies: number of rows with each value, by tally.
    numbers: counts of labelled rows, of copies, and of texts with masked mentions.
    """

    kind: Kind
    has_masks: bool
    tallies: Mapping[str, Counter[str]]
    numbers: Counter[str] = field(default_factory=Counter)

    def add(self, source: Source, rows: pa.RecordBatch) -> None:
        chosen = rows.filter(source.in_set)
        self.numbers["labelled"] += len(chosen)
        self.numbers["copies"] += len(rows["judged_as"].drop_null())
        if self.has_masks:
            self.numbers["masked"] += pc.match_substring(chosen["text"], MASK).true_count
        for name, counts in self.tallies.items():
            for pair in TALLIES[name](source, chosen).drop_null().value_counts().to_pylist():
                counts[pair["values"]] += pair["counts"]

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for the manifest. A label with several facets is counted once for each facet."""
        by_stage, by_facet = self.tallies["by_stage"], Counter[str]()
        for label, number in self.tallies["by_label"].items():
            by_facet.update(dict.fromkeys(self.kind.form.counted(label), number))
        return {
            f"{self.kind.noun}s": by_stage.total(),
            "labelled": self.numbers["labelled"],
            "unfinished": sum(number for stage, number in by_stage.items() if stage not in stages.FINISHED),
            "copies": self.numbers["copies"],
            **({"masked": self.numbers["masked"]} if self.has_masks else {}),
            **{name: dict(sorted(counts.items())) for name, counts in {**self.tallies, "by_label": by_facet}.items()},
        }


# --- Parquet files, written in batches to limit memory


BATCH = 2000  # rows per row group


@contextmanager
def parquet_files(paths: Mapping[str, Path], schema: pa.Schema) -> Iterator[Callable[[str, pa.RecordBatch], None]]:
    """Yield a function `write(key, rows)` that appends rows to one of the Parquet files.

    paths: file paths by key.

    A file without rows is not created. If there are no rows at all, the first file is created with columns only. The
    content of the files does not depend on how the rows are split into batches.
    """
    pending = dict.fromkeys(paths, pa.RecordBatch.from_pylist([], schema=schema))
    writers: dict[str, Any] = {}
    with ExitStack() as files:

        def write(part: str, rows: pa.RecordBatch, *, is_last: bool = False) -> None:
            rows = pa.concat_batches([pending[part], rows])
            end = rows.num_rows if is_last else rows.num_rows - rows.num_rows % BATCH
            for start in range(0, end, BATCH):
                if part not in writers:
                    writers[part] = files.enter_context(pq.ParquetWriter(paths[part], schema, compression="zstd"))
                writers[part].write_batch(rows.slice(start, BATCH))
            pending[part] = rows.slice(end)

        yield write
        for part in paths:
            write(part, pending[part].slice(0, 0), is_last=True)
        if not writers:
            # Write no row group, because the datasets library can't read an empty one.
            files.enter_context(pq.ParquetWriter(next(iter(paths.values())), schema, compression="zstd"))


# --- Copies for other annotation tools (`export_gold --as`), each in its own subfolder


def _check_copies(task: Task, tools: Sequence[str]) -> None:
    """Raise ExportError if the task's set cannot be written for these tools."""
    if unknown := [tool for tool in tools if tool not in WRITERS]:
        raise ExportError(f"--as {unknown[0]}: choose from {', '.join(WRITERS)}.")
    if tools and not task.kind.form.fits_tools:
        forms = ", ".join(slug for slug, form in FORMS.items() if form.fits_tools)
        raise ExportError(
            f"--as writes answers of the forms {forms}, and {task.name} asks for another form. Omit --as."
        )
    if tools and (task.draw.parameters.get("imported") or not manifest_of(task.draw.corpus.name).text_may_leave):
        raise ExportError("The texts of this task must not be published, so --as cannot write them. Omit --as.")


def _write_copies(folder: Path, export: Export, tools: Sequence[str]) -> dict[str, dict[str, str]]:
    """Write a copy of the exported set for each tool. Return a description of each file, by tool and file name."""
    task, kind = export.task, export.kind
    fields = kind.fields or ("text",)
    read = partial(export.written_rows, folder, ("id", "language", "label", "judgments", *fields))

    def rows() -> Iterator[dict[str, Any]]:
        """Yield the rows. If a row has no language, use its label, because the question asks for it."""
        return ({"language": row["label"], **row} for row in read())

    gold = GoldSet(
        title=task.title or str(kind.title),
        several=kind.form.several,
        fields=fields,
        marked=kind.publication.marked,
        answers=_answers(task, rows()),
        rows=rows,
    )
    copies: dict[str, dict[str, Any]] = {}
    for tool in tools:
        place = folder / f"{tool}{export.mark}"
        place.mkdir()
        copies[tool] = {f"{place.name}/{name}": about for name, about in WRITERS[tool](place, gold).items()}
    return copies


def _answers(task: Task, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the English name of each possible answer, by code. For an open list, use the labels in the set."""
    if task.kind.answers:
        return {code: named.names[ENGLISH] for code, named in task.kind.answers.items()}
    if not task.kind.form.several:
        return {value: label_name(value) for value in values_of(task)}
    codes = {code for row in rows for code in (row["label"] or "").split()}
    return {code: code for code in sorted(codes)}
