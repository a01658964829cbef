"""The files of a gold set: published TSV, JSONL, Parquet, what was left out, manifest.json, and README.md as its card.

They are written into a folder beside the wanted one, which takes its place when everything is there.
"""

import contextlib
import json
import tomllib
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from django.conf import settings
from django.template.loader import render_to_string

from annotate import folders, gold
from annotate.core import stages
from annotate.models import Task
from corpora import store
from corpora.core.languages import LANGUAGES, UND
from corpora.ingest import licence_key

BATCH = 2000
# What of a task decides how its labels come about.
KNOBS = ("least_letters", "never_agree", "redundancy", "rounds", "skip_limit", "least_level", "on_conflict")
with (Path(settings.BASE_DIR) / "pyproject.toml").open("rb") as _project:
    ASSAY = tomllib.load(_project)["project"]["version"]
_TIME = pa.timestamp("us", tz="UTC")
_TEXT = pa.string()

JUDGMENT = pa.struct(
    [(name, _TEXT) for name in ("annotator", "kind", "label", "reason", "comment")]
    + [("round", pa.int32()), ("queue", _TEXT), ("shown_at", _TIME), ("answered_at", _TIME)]
    + [("active_seconds", pa.float64()), ("voided_at", _TIME)]
)
TRANSITION = pa.struct(
    [(name, _TEXT) for name in ("event", "from_stage", "to_stage")]
    + [("round", pa.int32()), ("queue", _TEXT), ("label", _TEXT), ("by", _TEXT), ("at", _TIME)]
)
VOTE = pa.struct([("detector", _TEXT), ("rank", pa.int32()), ("language", _TEXT), ("score", pa.float64())])
FIELDS = [
    ("id", _TEXT),
    ("label", _TEXT),
    ("text", _TEXT),
    ("stage", _TEXT),
    ("stratum", _TEXT),
    ("chance", pa.float64()),
    ("round", pa.int32()),
    ("judged_as", _TEXT),
    ("posted_at", _TIME),
    ("author", _TEXT),
    ("url", _TEXT),
    ("letters", pa.int32()),
    ("votes", pa.list_(VOTE)),
    ("candidates", pa.list_(_TEXT)),
    ("judgments", pa.list_(JUDGMENT)),
    ("transitions", pa.list_(TRANSITION)),
]
WITH_TEXT_ONLY = ("text", "author", "url")

# Licences whose identifier on Hugging Face's cards is their name in lower case, and those where it is another.
_SAME = """APACHE-2.0 MIT CC0-1.0 CC-BY-4.0 CC-BY-3.0 CC-BY-2.0 CC-BY-SA-4.0 CC-BY-SA-3.0 CC-BY-NC-4.0 CC-BY-NC-SA-4.0
    ODC-BY ODBL PDDL"""
CARD_LICENCES = {name: name.lower() for name in _SAME.split()} | {
    "CC0": "cc0-1.0",
    "ODC-BY-1.0": "odc-by",
    "ODBL-1.0": "odbl",
    "PDDL-1.0": "pddl",
    "PUBLIC-DOMAIN": "unknown",
}
SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
)


class ExportError(Exception):
    """The gold set cannot be written; says why. The folder is as it was."""


def export(task: Task, out: Path) -> dict:
    """Write a task's gold set to a folder and return its manifest. A set exported there before is replaced."""
    try:
        with folders.replacing(out.resolve(), "export", task.name) as folder, gold.one_moment():
            return _write(Task.objects.select_related("draw__corpus").get(pk=task.pk), folder)
    except folders.FolderError as error:
        raise ExportError(str(error)) from error


def _write(task: Task, folder: Path) -> dict:
    corpus = store.manifest_of(task.draw.corpus.name)
    with_text = corpus.text_may_leave
    schema = pa.schema([field for field in FIELDS if with_text or field[0] not in WITH_TEXT_ONLY])
    unfinished = task.units.exclude(stage__in=stages.FINISHED).exists()
    mark = ".unfinished" if unfinished else ""
    names = {
        "tsv": f"uniformly_sampled{mark}.tsv",
        "jsonl": f"gold{mark}.jsonl",
        "parquet": f"gold{mark}.parquet",
        "left_out": f"left_out{mark}.jsonl",
    }
    counts, pairs, batch = gold.Counts(), [], []
    with contextlib.ExitStack() as files:
        jsonl = files.enter_context(open(folder / names["jsonl"], "w", encoding="utf-8", newline="\n"))
        left_out = files.enter_context(open(folder / names["left_out"], "w", encoding="utf-8", newline="\n"))
        parquet = files.enter_context(pq.ParquetWriter(folder / names["parquet"], schema, compression="zstd"))
        for row in map(counts.take, gold.rows(task, with_text=with_text)):
            if row["label"] is None:
                left_out.write(_json(row) + "\n")
                continue
            pairs.append((row["label"], row["id"]))
            jsonl.write(_json(row) + "\n")
            batch.append(row)
            if len(batch) == BATCH:
                parquet.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
                batch.clear()
        parquet.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
    # The order of the published files: by label, then by id; numeric ids as numbers.
    pairs.sort(key=lambda pair: (pair[0], len(pair[1]) if pair[1].isdigit() else 0, pair[1]))
    lines = (f"{label}\t{key}\n" for label, key in pairs)
    with open(folder / names["tsv"], "w", encoding="utf-8", newline="\n") as tsv:
        tsv.writelines(lines)
    manifest = {
        "format": 1,
        "finished": not unfinished,
        "task": {
            "name": task.name,
            "title": task.title,
            "type": task.task_type,
            "labels": task.labels,
            **{knob: getattr(task, knob) for knob in KNOBS},
        },
        "draw": {
            "design": task.draw.design,
            "seed": task.draw.seed,
            "size": task.draw.size,
            "frame_size": task.draw.frame_size,
            "frame_digest": task.draw.frame_digest,
            "chance": task.draw.chance,
        },
        "corpus": {
            "name": task.draw.corpus.name,
            "source": corpus.source,
            "licence": corpus.licence,
            "text_may_leave": corpus.text_may_leave,
        },
        "detectors": task.draw.detectors,
        "counts": counts.as_dict(),
        "versions": {"assay": ASSAY} | {package: version(package) for package in ("django", "pyarrow", "duckdb")},
        "files": {},
    }
    card = render_to_string("annotate/card.md", _card(manifest, names))
    (folder / "README.md").write_text(card, encoding="utf-8")
    for path in sorted(folder.iterdir()):
        manifest["files"][path.name] = store.digest_of(path)
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    return manifest


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False, default=_iso)


def _iso(value) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    raise TypeError(f"{type(value)} in an exported row")


def _card(manifest: dict, names: dict) -> dict:
    licence = manifest["corpus"]["licence"]
    labelled = manifest["counts"]["labelled"]
    share = {stratum: count / labelled for stratum, count in manifest["counts"]["by_stratum"].items()}
    return {
        "manifest": manifest,
        "names": names,
        "licence": CARD_LICENCES.get(licence_key(licence)),
        # A JSON string is one of YAML too.
        "quoted": {"title": _json(manifest["task"]["title"]), "licence": _json(licence)},
        "languages": sorted({code.split("-")[0] for code in manifest["counts"]["by_label"] if code != UND}),
        "size": next((name for limit, name in SIZES if labelled < limit), "100M<n<1B"),
        "share": share,
        "labels": [
            (code, LANGUAGES[code].name if code in LANGUAGES else "undefined", count)
            for code, count in manifest["counts"]["by_label"].items()
        ],
    }
