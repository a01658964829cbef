"""The files of a gold set: published formats, JSONL, Parquet, left-out rows, manifest.json, and README.md as its card.

They are written into a folder beside the wanted one, which takes its place when everything is there.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from django.db import connection, transaction
from django.template.loader import render_to_string

from annotate.core import stages
from annotate.core.label_shares import FREQUENT_OVER
from annotate.core.splits import SplitError
from annotate.goldsets import columns, concepts, folders, left_out, rows
from annotate.goldsets.arrays import each, or_none
from annotate.goldsets.card import card_of
from annotate.goldsets.edits import DIGESTS, digests_of, write_digests
from annotate.goldsets.export import Export
from annotate.goldsets.formats import FORMATS
from annotate.goldsets.lines import as_lines, content
from annotate.goldsets.manifest import FORMAT, write_with_card
from annotate.goldsets.manifest_sections import sections_of
from annotate.goldsets.parquet import parquet_files
from annotate.goldsets.rows import Rows
from annotate.goldsets.splitting import KNOWN_AS
from annotate.goldsets.written import Written
from annotate.kinds import Kind
from annotate.kinds.balanced_draw import IDS, JOINT
from annotate.kinds.designs import DESIGNS
from annotate.models import Job, Task
from annotate.quality import commitments
from corpora.core.language_codes import tables_of
from corpora.core.masking import MASK
from corpora.draws import part_draws
from corpora.models import Draw
from corpora.system import VERSION

# --- One state of the database for as long as an export reads.


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


# --- What is counted of the rows of a set while they are written, for the manifest and the card.


def _by_split(rows: Rows) -> pa.Array:
    return each("{}.{}".format, pa.string(), rows.of_set("language"), rows.of_set("split"))


def _agreed_by(rows: Rows) -> pa.Array:
    """Who gave the labels of the stratum agreed: people, where the same text was audited."""
    return rows.of_set("decided_by").filter(pc.equal(rows.of_set("stratum"), "agreed"))


# What the rows in a set can be counted by, besides their labels: under what they count, None for nowhere.
TALLIES: Mapping[str, Callable[[Rows], pa.Array]] = {
    "reused": lambda rows: rows.of_set("reused_from"),
    "by_stratum": lambda rows: rows.of_set("stratum"),
    "agreed_by": _agreed_by,
    "by_language": lambda rows: rows.of_set("language"),
    "by_split": _by_split,
    "by_source": lambda rows: concepts.sources(rows.source).filter(rows.source.in_set),
    "by_votes": lambda rows: pa.array(concepts.votes(rows.source), pa.string()),
}


def counted(values: pa.Array) -> Counter[Any]:
    """Each value but None -> how often it is there."""
    return Counter({each["values"]: each["counts"] for each in values.drop_null().value_counts().to_pylist()})


class Counts:
    """Counts of the rows that pass through. A label is counted by its facets: if it names several things,
    each counts. with_text: whether the rows have the text of a post, so that masks in it can be counted.
    """

    def __init__(self, kind: Kind, *, with_text: bool):
        self.kind = kind
        # Records, which have fields, are not masked.
        self.masks = with_text and not kind.fields
        self.copies = self.labelled = self.masked = 0
        self.by_stage: Counter[str] = Counter()
        self.by_label: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.tallied: dict[str, Counter[str]] = {name: Counter() for name in kind.publication.tallies}

    def taken(self, rows: Rows) -> Rows:
        """The same rows, which are counted now."""
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

    @property
    def total(self) -> int:
        return self.by_stage.total()

    def as_dict(self) -> dict[str, Any]:
        counted = {"left_out": self.left_out, **self.tallied, "by_stage": self.by_stage, "by_label": self.by_label}
        return {
            f"{self.kind.noun}s": self.total,
            "labelled": self.labelled,
            "unfinished": sum(count for stage, count in self.by_stage.items() if stage not in stages.FINISHED),
            "copies": self.copies,
            **({"masked": self.masked} if self.masks else {}),
            **{name: dict(sorted(counts.items())) for name, counts in counted.items()},
        }


# The only part of a set that is not split: all of it is for measuring.
WHOLE = "test"
SPLITS = "train=0.8,dev=0.1,test=0.1"
# The fields of a draw that say how it came about.
DRAW = (
    *("design", "language", "predictor", "seed", "size", "asked", "frame_size", "frame_digest", "chance"),
    "parameters",
)
Progress = Callable[[int], None]
Some, Made = TypeVar("Some"), TypeVar("Made")


class ExportError(Exception):
    """The gold set cannot be written; the sentence says why. The folder is as it was."""


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
    now and then with the number of rows written so far.
    """
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
    try:
        with folders.replacing(out.resolve(), "export", task.name) as folder, one_moment():
            shares = splits or ("" if kind.records.split else SPLITS)
            export = Export(Task.objects.get(pk=task.pk), shares, seed, frequent_over or FREQUENT_OVER, tell_secret)
            if export.mark and _is_finished(out):
                raise ExportError(
                    f"{out} holds the finished set of {task.name}, and by now units of the task wait for people again. "
                    "Name another folder for the unfinished set, or wait until all are labelled."
                )
            return _write(export, folder, progress)
    except (folders.FolderError, SplitError) as error:
        raise ExportError(str(error)) from error


def _is_finished(out: Path) -> bool:
    """Whether a folder that may be replaced holds a finished set."""
    earlier = out / "manifest.json"
    return earlier.exists() and json.loads(earlier.read_text(encoding="utf-8"))["finished"]


def _write(export: Export, folder: Path, progress: Progress) -> dict[str, Any]:
    added = {key: file for each in export.kind.quality_controls for key, file in each.files(export).items()}
    names = _names(export) | {key: name for key, (name, _) in added.items()}
    counts = Counts(export.kind, with_text=export.with_text)
    _write_rows(export, folder, names, counts, progress)
    if folders.without_empty(folder / names["left_out"]):
        names["left_out"] = ""
    if export.tell_secret:
        commitments.write_lots(folder / commitments.FILE, export.task)
    for name, write in added.values():
        write(folder / name)
    whole = names["parquet"].get(WHOLE)
    written = Written(folder / names["jsonl"], folder / whole if whole else None)
    published = {name: FORMATS[name].write(folder, written, export) for name in export.kind.publication.formats}
    manifest = _manifest(export, counts, published)
    write_with_card(folder, manifest, lambda: _card(export, manifest, names, published))
    return manifest


def _names(export: Export) -> dict[str, Any]:
    """The names of the files; parquet: split, or WHOLE -> the file of its rows."""
    mark = export.mark
    names = {"jsonl": f"gold{mark}.jsonl", "left_out": f"left_out{mark}.jsonl"}
    if export.kind.publication.splits:
        parquet = {split: f"gold.{split}{mark}.parquet" for split in export.parts}
        return names | {"parquet": parquet}
    # The digests tell erased posts from changed ones. Split sets are measured on files in which no row is erased.
    return names | {"digests": f"gold{mark}{DIGESTS}", "parquet": {WHOLE: f"gold{mark}.parquet"}}


def _manifest(export: Export, counts: Counts, published: Mapping[str, Any]) -> dict[str, Any]:
    draws = export.task.draws.order_by("language", "pk")
    return {
        "format": FORMAT,
        "design": export.design.name,
        "finished": not export.mark,
        "task": _task(export.task),
        "draws": [_draw(draw) for draw in draws],
        "corpus": export.corpus,
        "detectors": export.draw.detectors,
        "lots": commitments.section(export.task, tell_secret=export.tell_secret),
        **sections_of(export, published),
        "counts": counts.as_dict(),
        "versions": {"assay": VERSION} | {package: version(package) for package in ("django", "pyarrow", "duckdb")},
        "files": {},
    }


def _draw(draw: Draw) -> dict[str, Any]:
    """Without the ids, which the rows have."""
    told = {field: getattr(draw, field) for field in DRAW}
    ids = (IDS, JOINT, part_draws.IDS)
    return told | {"parameters": {name: value for name, value in draw.parameters.items() if name not in ids}}


def _task(task: Task) -> dict[str, Any]:
    """What decided how the labels came about. kind_sha256: that of the kind's file; None if the kind is a module. form:
    what an answer is, a module of kinds/forms; together: the field by whose value records were drawn together.

    added_languages: those of its labels and records that are not on the list here; readers learn their names from this.
    """
    return {
        "name": task.name,
        "title": task.title,
        "type": task.kind_slug,
        "kind_sha256": task.kind.digest or None,
        "form": task.kind.form.slug,
        "together": task.kind.records.together,
        "labels": task.labels,
        "languages": task.languages,
        "added_languages": tables_of(task.kind.languages.values()),
        **task.policy,
        **task.kind.publication.constants,
    }


def _card(export: Export, manifest: dict, names: dict, published: Mapping[str, Any]) -> str:
    # A split that a card names but that has no rows cannot be loaded.
    splits = {KNOWN_AS.get(split, split): name for split, name in names["parquet"].items() if name in manifest["files"]}
    files = [name for told in published.values() for name in told["files"]]
    return render_to_string(
        export.kind.publication.card, card_of(export, manifest, names | {"splits": splits, "published": files})
    )


# --- rows


def _write_rows(export: Export, folder: Path, names: dict, counts: Counts, progress: Progress) -> None:
    """gold.jsonl with its digests, what is left out, and the Parquet files."""
    schema = columns.schema(columns.columns_of(export.kind, with_text=export.with_text))
    paths = {part: folder / name for part, name in names["parquet"].items()}
    digests, written = [], 0
    with (
        open(folder / names["jsonl"], "wb") as jsonl,
        open(folder / names["left_out"], "w", encoding="utf-8", newline="\n") as others,
        parquet_files(paths, schema) as into_parquet,
    ):

        def write(some: rows.Rows) -> int:
            in_set, lines = some.source.in_set, as_lines(some.columns)
            told = content(lines.filter(in_set))
            jsonl.write(told)
            if "digests" in names:
                digests.append(digests_of(BytesIO(told)))
            others.writelines(_left_out(some, lines))
            for part in paths:
                there = (
                    pc.equal(some.columns["split"], part).fill_null(False) if export.kind.publication.splits else in_set
                )
                into_parquet(part, some.columns.filter(there))
            return len(lines)

        for number in one_behind(write, map(counts.taken, rows.rows(export))):
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


def _left_out(some: rows.Rows, lines: pa.StringArray) -> Iterator[str]:
    """What is told of the rows that are not in the set, line by line."""
    source = some.source
    told = pc.and_not(some.told, source.in_set)
    keys, reasons = source.own["item__key"].filter(told).to_pylist(), source.left_out.filter(told).to_pylist()
    said = left_out.adjudicators_words(source).filter(told).to_pylist()
    for key, reason, words, line in zip(keys, reasons, said, lines.filter(told).to_pylist(), strict=True):
        if left_out.only_id(reason):
            yield as_json({"id": key, "left_out": reason}) + "\n"
        else:
            yield f"{line[:-2]}, {as_json({'left_out': reason, 'left_out_why': words})[1:]}\n"


def as_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
