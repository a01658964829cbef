"""The files of a gold set: published ones, JSONL, Parquet, what was left out, manifest.json, and README.md as its card.

They are written into a folder beside the wanted one, which takes its place when everything is there. A set is of posts
or of records; what differs between the two is one table, KINDS.
"""

import contextlib
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from django.conf import settings
from django.template.loader import render_to_string

from annotate.core import stages
from annotate.core.splits import SplitError, ratios
from annotate.goldsets import card as gold_card
from annotate.goldsets import columns as gold_columns
from annotate.goldsets import folders
from annotate.goldsets import rows as gold
from annotate.goldsets import survey as gold_records
from annotate.goldsets.reading import DIGESTS, write_digests, write_manifest
from annotate.kinds import TASK_TYPES
from annotate.models import Task
from annotate.quality import agreement, audits, decoys
from corpora import store

BATCH = 2000
SPLITS = "train=0.8,dev=0.1,test=0.1"
# Design of the draws -> name of the published file.
PUBLISHED = {"uniform": "uniformly_sampled", "recall": "recall_oriented", "precision": "precision_oriented"}
# What of a draw says how it came about.
DRAW = (
    *("design", "language", "predictor", "seed", "size", "asked", "frame_size", "frame_digest", "chance"),
    "parameters",
)
with (Path(settings.BASE_DIR) / "pyproject.toml").open("rb") as _project:
    ASSAY = tomllib.load(_project)["project"]["version"]


class ExportError(Exception):
    """The gold set cannot be written; says why. The folder is as it was."""


@dataclass(frozen=True)
class Wanted:
    """What is to be written. fields: of the records; splits, shares, seed: of their splits, as the option and as it is
    read; survey: what is found of the records, None of posts; mark: in the names of what is unfinished."""

    task: Task
    design: str
    corpus: dict
    with_text: bool
    fields: tuple[str, ...]
    splits: str
    shares: Mapping[str, Fraction]
    seed: str
    survey: gold_records.Survey | None
    mark: str


@dataclass(frozen=True)
class Kind:
    """What differs between sets of posts and sets of records.

    noun: what the rows are called. knobs: what of a task decides how its labels come about. tallies: what the rows in
    the set are counted by. columns: those of the Parquet files. parts: of those files, and which split each is.
    left_out: why a row is not in the set, or None; told: what the file of such rows says of one. remembered: what
    `publish` needs of the rows in the set, when all are there; it returns what the manifest says of it. about: what
    else the manifest says.
    """

    noun: str
    knobs: tuple[str, ...]
    tallies: Mapping[str, Callable[[dict], str | None]]
    columns: Callable[[Wanted], list[gold_columns.Column]]
    parts: Callable[[Wanted], dict[str, str]]
    part_of: Callable[[dict], str]
    rows: Callable[[Wanted], Iterator[dict]]
    left_out: Callable[[dict, Wanted], str | None]
    told: Callable[[dict], dict]
    remembered: Callable[[dict, Wanted], Any]
    publish: Callable[[Path, list, Wanted], dict]
    about: Callable[[Wanted], dict]
    card: Callable[[dict, dict], tuple[str, dict]]


# --- posts


def _post_left_out(row: dict, wanted: Wanted) -> str | None:
    if row["label"] is None:
        return "without_label"
    return "other_label" if wanted.design == "recall" and row["label"] != row["asked"] else None


def _labels_and_ids(folder: Path, pairs: list[tuple[str, str]], wanted: Wanted) -> dict:
    """The published file of 2015. By label, then by id; numeric ids as numbers."""
    pairs.sort(key=lambda pair: (pair[0], len(pair[1]) if pair[1].isdigit() else 0, pair[1]))
    lines = (f"{label}\t{key}\n" for label, key in pairs)
    with open(folder / f"{PUBLISHED[wanted.design]}{wanted.mark}.tsv", "w", encoding="utf-8", newline="\n") as tsv:
        tsv.writelines(lines)
    return {}


def _about_posts(wanted: Wanted) -> dict:
    uniform = wanted.design == "uniform"
    return {
        "audit": audits.report(wanted.task) if uniform else None,
        "decoys": decoys.report(wanted.task) if not uniform else None,
        "agreement": gold_records.agreement_of(wanted.task, agreement.fitted(wanted.task)),
    }


# --- records


def _about_records(wanted: Wanted) -> dict:
    return {
        "splits": {"seed": wanted.seed, "shares": wanted.splits, "off": dict(wanted.survey.off)},
        **gold_records.about(wanted.task, wanted.survey),
    }


KINDS = {
    "posts": Kind(
        noun="posts",
        knobs=(
            *("least_letters", "never_agree", "redundancy", "rounds", "skip_limit", "least_level", "on_conflict"),
            *("audit_share", "audit_least", "audit_recheck", "audit_limit", "decoy_share", "overlap_share"),
        ),
        tallies={"reused": lambda row: row["reused_from"], "by_stratum": lambda row: row["stratum"]},
        columns=lambda wanted: gold_columns.of_posts(with_text=wanted.with_text),
        parts=lambda wanted: {"": "test"},
        part_of=lambda row: "",
        rows=lambda wanted: gold.rows(wanted.task, with_text=wanted.with_text),
        left_out=_post_left_out,
        told=lambda row: row,
        remembered=lambda row, wanted: (row["label"], row["id"]),
        publish=_labels_and_ids,
        about=_about_posts,
        card=gold_card.of_posts,
    ),
    "records": Kind(
        noun="records",
        knobs=(
            *("languages", "redundancy", "stop_early", "extra_answers", "aggregation", "skip_limit", "least_level"),
            *("on_conflict", "test_items", "pass_mark", "tries", "gold_share"),
            *("pause_below", "pause_confidence", "pause_least"),
        ),
        tallies={"by_language": lambda row: row["language"], "by_split": gold_records.split_name},
        columns=lambda wanted: gold_columns.of_records(wanted.fields, with_text=wanted.with_text),
        # The names that readers of cards know.
        parts=lambda wanted: {
            f".{split}": {"dev": "validation"}.get(split, split) for split, share in wanted.shares.items() if share
        },
        part_of=lambda row: f".{row['split']}",
        rows=lambda wanted: gold_records.rows(wanted.task, wanted.fields, wanted.survey, with_text=wanted.with_text),
        left_out=lambda row, wanted: row.get("left_out"),
        told=gold_records.told_of_left_out,
        remembered=lambda row, wanted: gold_records.remembered(row, wanted.fields),
        publish=lambda folder, rows, wanted: {
            "published": gold_records.publish(folder, wanted.task, rows, with_text=wanted.with_text, mark=wanted.mark)
        },
        about=_about_records,
        card=gold_card.of_records,
    ),
}


def export(task: Task, out: Path, *, splits: str = "", seed: str = "") -> dict:
    """Write a task's gold set to a folder and return its manifest. A set exported there before is replaced.

    splits, seed: of records; by default eight, one and one tenth, by the seed of the draw.
    """
    kind = kind_of(task)
    if kind is KINDS["posts"] and (splits or seed):
        raise ExportError("--splits and --seed are for sets of records; one of posts is all for measuring.")
    try:
        with folders.replacing(out.resolve(), "export", task.name) as folder, gold.one_moment():
            return _write(kind, _wanted(kind, Task.objects.get(pk=task.pk), splits or SPLITS, seed), folder)
    except (folders.FolderError, SplitError) as error:
        raise ExportError(str(error)) from error


def kind_of(task: Task) -> Kind:
    return KINDS["records" if TASK_TYPES[task.task_type].records else "posts"]


def _wanted(kind: Kind, task: Task, splits: str, seed: str) -> Wanted:
    draw = task.draw
    corpus = _corpus(task)
    unfinished = gold.work_of(task).exclude(stage__in=stages.FINISHED).exists()
    shares, seed = ratios(splits), seed or draw.seed
    posts = kind is KINDS["posts"]
    return Wanted(
        task=task,
        design=draw.design,
        corpus=corpus,
        with_text=corpus["text_may_leave"],
        fields=() if posts else _fields(task),
        splits=splits,
        shares=shares,
        seed=seed,
        survey=None if posts else gold_records.survey(task, shares, seed),
        mark=".unfinished" if unfinished else "",
    )


def _write(kind: Kind, wanted: Wanted, folder: Path) -> dict:
    task, draw = wanted.task, wanted.task.draw
    names = {
        "jsonl": f"gold{wanted.mark}.jsonl",
        "left_out": f"left_out{wanted.mark}.jsonl",
        # By which erased posts are told from changed ones; records are not erased.
        **({"digests": f"gold{wanted.mark}{DIGESTS}"} if kind is KINDS["posts"] else {}),
        "parquet": {part: f"gold{part}{wanted.mark}.parquet" for part in kind.parts(wanted)},
        "tsv": f"{PUBLISHED.get(draw.design, '')}{wanted.mark}.tsv",
    }
    counts, kept = _write_rows(kind, wanted, folder, names)
    # Those with rows: a split that a card names and that has none cannot be loaded.
    names["parquet"] = {part: name for part, name in names["parquet"].items() if (folder / name).exists()}
    if "digests" in names:
        write_digests(folder / names["jsonl"], folder / names["digests"])
    manifest = {
        "format": 2,
        "design": draw.design,
        "finished": not wanted.mark,
        "task": {
            "name": task.name,
            "title": task.title,
            "type": task.task_type,
            "labels": task.labels,
            **{knob: getattr(task, knob) for knob in kind.knobs},
        },
        "draws": [{field: getattr(each, field) for field in DRAW} for each in task.draws.order_by("language", "pk")],
        "corpus": wanted.corpus,
        "detectors": draw.detectors,
        **kind.about(wanted),
        **kind.publish(folder, kept, wanted),
        "counts": counts.as_dict(),
        "versions": {"assay": ASSAY} | {package: version(package) for package in ("django", "pyarrow", "duckdb")},
        "files": {},
    }
    parts = {split: names["parquet"][part] for part, split in kind.parts(wanted).items() if part in names["parquet"]}
    template, context = kind.card(manifest, names | {"splits": parts})
    (folder / "README.md").write_text(render_to_string(template, context), encoding="utf-8")
    for path in sorted(folder.iterdir()):
        manifest["files"][path.name] = store.digest_of(path)
    write_manifest(folder, manifest)
    return manifest


def _corpus(task: Task) -> dict:
    """Where the texts are from, and whether they may leave."""
    draw = task.draw
    if file := draw.parameters.get("imported"):
        return {"name": draw.corpus.name, "source": file, "licence": "not stated", "text_may_leave": False}
    told = store.manifest_of(draw.corpus.name)
    return {
        "name": draw.corpus.name,
        "source": told.source,
        "licence": told.licence,
        "text_may_leave": told.text_may_leave,
    }


def _fields(task: Task) -> tuple[str, ...]:
    fields = tuple(TASK_TYPES[task.task_type].fields)
    if taken := sorted(set(fields) & gold_columns.TAKEN):
        raise ExportError(
            f"A field of the records is called {taken[0]!r}, as is a column of every export; give it another name in "
            f"the task type {task.task_type} and its corpus."
        )
    return fields


def _write_rows(kind: Kind, wanted: Wanted, folder: Path, names: dict) -> tuple[gold.Counts, list]:
    """gold.jsonl, what is left out, and the Parquet files; returns what was counted and remembered of the rows."""
    schema = pa.schema(kind.columns(wanted))
    counts, kept = gold.Counts(kind.noun, kind.tallies), []
    batches: dict[str, list[dict]] = {part: [] for part in names["parquet"]}
    parquet: dict[str, pq.ParquetWriter] = {}
    with contextlib.ExitStack() as files:
        jsonl = files.enter_context(open(folder / names["jsonl"], "w", encoding="utf-8", newline="\n"))
        left_out = files.enter_context(open(folder / names["left_out"], "w", encoding="utf-8", newline="\n"))

        def flush(part: str) -> None:
            if part not in parquet:
                path = folder / names["parquet"][part]
                parquet[part] = files.enter_context(pq.ParquetWriter(path, schema, compression="zstd"))
            parquet[part].write_batch(pa.RecordBatch.from_pylist(batches[part], schema=schema))
            batches[part].clear()

        for row in kind.rows(wanted):
            reason = kind.left_out(row, wanted)
            counts.take(row, reason)
            if reason is not None:
                left_out.write(as_json(kind.told(row)) + "\n")
                continue
            kept.append(kind.remembered(row, wanted))
            jsonl.write(as_json(row) + "\n")
            part = kind.part_of(row)
            batches[part].append(row)
            if len(batches[part]) == BATCH:
                flush(part)
        for part, batch in batches.items():
            if batch:
                flush(part)
    return counts, kept


def as_json(value) -> str:
    return json.dumps(value, ensure_ascii=False, default=_iso)


def _iso(value) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    raise TypeError(f"{type(value)} in an exported row")
