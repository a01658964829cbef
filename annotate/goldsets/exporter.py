"""The exporter: it writes a task's gold set, or the pairs of a corpus, into a folder.

A gold set has its rows as JSONL and Parquet, the rows that were left out, files of published formats, manifest.json,
and README.md as its card. They are written into a folder beside the wanted one, which takes its place when everything
is there.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from django.db import connection, transaction
from django.template.loader import render_to_string

from annotate.core.draws.label_shares import FREQUENT_OVER
from annotate.core.draws.splits import SplitError
from annotate.goldsets import columns, exclusions, table
from annotate.goldsets.card import card_of, pair_card
from annotate.goldsets.export import Export
from annotate.goldsets.formats import FORMATS, mrs
from annotate.goldsets.partitions import KNOWN_AS
from annotate.goldsets.set_folder import DIGESTS, ExportError, digests_of, replacing, write_digests, write_with_card
from annotate.goldsets.set_manifest import manifest_of_set
from annotate.goldsets.table import Counts, Rows, Written, as_lines, content, parquet_files
from annotate.kinds.designs import DESIGNS
from annotate.models import Job, Task
from annotate.quality import commitments
from corpora.storage.layout import manifest_of
from corpora.threads.pair_sets import Plan

# The only part of a set that is not split: all of it is for measuring.
WHOLE = "test"
SPLITS = "train=0.8,dev=0.1,test=0.1"
Progress = Callable[[int], None]
Some, Made = TypeVar("Some"), TypeVar("Made")


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
    """Write a task's gold set to a folder and return its manifest. A set exported there before is replaced.

    splits, seed: for sets that are split; by default as the records say, or else eight, one and one tenth, with the
    draw's seed. frequent_over: for sets of documents with several labels, 50 by default. tell_secret: tell by which
    secret the lots were drawn, and what they were drawn from, of a task that is never opened again. progress: called
    now and then with the number of rows written so far. ExportError: the set cannot be written.
    """
    _check(task, splits, seed, frequent_over)
    try:
        with replacing(out.resolve(), "export", task.name) as folder, one_moment():
            shares = splits or ("" if task.kind.records.split else SPLITS)
            export = Export(Task.objects.get(pk=task.pk), shares, seed, frequent_over or FREQUENT_OVER, tell_secret)
            earlier = out / "manifest.json"
            if export.mark and earlier.exists() and json.loads(earlier.read_text(encoding="utf-8"))["finished"]:
                raise ExportError(
                    f"{out} holds the finished set of {task.name}, and by now units of the task wait for people again. "
                    "Name another folder for the unfinished set, or wait until all are labelled."
                )
            return _write(export, folder, progress)
    except SplitError as error:
        raise ExportError(str(error)) from error


def export_pairs(corpus_name: str, out: Path, plan: Plan, responses: mrs.Responses) -> dict[str, Any]:
    """Write the pairs of a corpus that are kept, and return the manifest. A set exported there before is replaced.

    ExportError where the folder holds something else, CorpusError where the corpus has no such pairs; then nothing is
    written.
    """
    pairs = mrs.Pairs(corpus_name, manifest_of(corpus_name), plan, responses)
    with replacing(out.resolve(), "export of pairs", corpus_name) as folder:
        manifest = mrs.write(folder, None, pairs)
        write_with_card(folder, manifest, lambda: render_to_string("annotate/card_pairs.md", pair_card(manifest)))
    return manifest


def _check(task: Task, splits: str, seed: str, frequent_over: int | None) -> None:
    """ExportError for options that do not fit the task, and for a task that cannot be exported now."""
    kind = task.kind
    if not kind.publication.splits and (splits or seed):
        raise ExportError(f"--splits and --seed are for sets of records; one of {kind.noun}s is all for measuring.")
    if (splits or seed) and DESIGNS[task.draw.design].names_answers:
        raise ExportError("The sets of this task were drawn with it; leave --splits and --seed out.")
    if seed and kind.records.split and not splits:
        raise ExportError(
            f"The field {kind.records.split} of the records names their splits, and nothing is drawn by lot; leave "
            "--seed out, or give --splits too."
        )
    if frequent_over is not None and not any("frequent_over" in each.inputs for each in kind.quality_controls):
        raise ExportError("--frequent-over is for sets of documents with several labels; leave it out.")
    if taken := columns.taken(kind):
        raise ExportError(
            f"A field of the records is called {taken[0]!r}, like a column of every export; give it another name in "
            f"the kind {kind.slug} and its corpus."
        )
    if found := Job.objects.contesting(task).first():
        raise ExportError(
            f"An audit of {task.name} has failed, and what the detectors agreed on there is about to go to people "
            f"(job {found.pk}). Export the set once that is done; `assay serve` and `assay work` do it."
        )


@contextmanager
def one_moment():
    """Everything read inside comes from one moment, however long it takes, and no writer is held up."""
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            yield
        elif connection.vendor == "postgresql":
            with transaction.atomic():
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield
        else:
            # atomic() would take the writers' lock.
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
        # The digests tell erased posts from changed ones. Split sets are measured on files in which no row is erased.
        names["digests"] = f"gold{mark}{DIGESTS}"
    added = {key: file for each in kind.quality_controls for key, file in each.files(export).items()}
    names |= {key: name for key, (name, _) in added.items()}
    counts = Counts(kind, with_text=export.with_text)
    _write_rows(export, folder, names, counts, progress)
    if not (folder / names["left_out"]).stat().st_size:
        # Polars refuses to read a file without lines.
        (folder / names["left_out"]).unlink()
        names["left_out"] = ""
    if export.tell_secret:
        commitments.write_lots(folder / commitments.FILE, export.task)
    for name, write in added.values():
        write(folder / name)
    written = Written(folder / names["jsonl"], None if is_split else folder / parquet[WHOLE])
    published = {name: FORMATS[name].write(folder, written, export) for name in kind.publication.formats}
    manifest = manifest_of_set(export, counts, published)

    def card() -> str:
        # A split that a card names but that has no rows cannot be loaded.
        there = {part: file for part, file in parquet.items() if file in manifest["files"]}
        names["splits"] = {KNOWN_AS.get(part, part): file for part, file in there.items()}
        names["published"] = [name for told in published.values() for name in told["files"]]
        return render_to_string(kind.publication.card, card_of(export, manifest, names))

    write_with_card(folder, manifest, card)
    return manifest


def _write_rows(export: Export, folder: Path, names: Mapping[str, Any], counts: Counts, progress: Progress) -> None:
    """gold.jsonl with its digests, what is left out, and the Parquet files."""
    is_split = export.kind.publication.splits
    schema = columns.schema(columns.columns_of(export.task, with_text=export.with_text))
    paths = {part: folder / name for part, name in names["parquet"].items()}
    digests, written = [], 0
    with (
        open(folder / names["jsonl"], "wb") as jsonl,
        open(folder / names["left_out"], "w", encoding="utf-8", newline="\n") as others,
        parquet_files(paths, schema) as into_parquet,
    ):

        def write(some: Rows) -> int:
            in_set, lines = some.source.in_set, as_lines(some.columns)
            told = content(lines.filter(in_set))
            jsonl.write(told)
            if "digests" in names:
                digests.append(digests_of(BytesIO(told)))
            others.writelines(_left_out(some, lines))
            for part in paths:
                there = pc.equal(some.columns["split"], part).fill_null(False) if is_split else in_set
                into_parquet(part, some.columns.filter(there))
            return len(lines)

        for number in one_behind(write, map(counts.taken, table.rows(export))):
            progress(written := written + number)
    if "digests" in names:
        write_digests(b"".join(digests), folder / names["digests"])


def one_behind(make: Callable[[Some], Made], items: Iterable[Some]) -> Iterator[Made]:
    """What is made of each item, in another thread while the next item is read."""
    with ThreadPoolExecutor(1) as other:
        before = None
        for item in items:
            now = other.submit(make, item)
            if before:
                yield before.result()
            before = now
        if before:
            yield before.result()


def _left_out(some: Rows, lines: pa.StringArray) -> Iterator[str]:
    """What is told of the rows that are not in the set, line by line."""
    source = some.source
    told = pc.and_not(some.told, source.in_set)
    keys, reasons = source.own["item__key"].filter(told).to_pylist(), source.left_out.filter(told).to_pylist()
    said = exclusions.adjudicators_words(source).filter(told).to_pylist()
    for key, reason, words, line in zip(keys, reasons, said, lines.filter(told).to_pylist(), strict=True):
        if exclusions.only_id(reason):
            yield json.dumps({"id": key, "left_out": reason}, ensure_ascii=False) + "\n"
        else:
            why = json.dumps({"left_out": reason, "left_out_why": words}, ensure_ascii=False)
            yield f"{line[:-2]}, {why[1:]}\n"
