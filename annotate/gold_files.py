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

from annotate import auditing, findings, folders, gold, known
from annotate.core import stages
from annotate.core.labels import label_name
from annotate.gold_sets import DIGESTS, write_digests, write_manifest
from annotate.models import Task
from annotate.report_sections import NUMBER, Table
from corpora import store
from corpora.core.languages import LANGUAGES, UND
from corpora.ingest import licence_key

BATCH = 2000
# What of a task decides how its labels come about.
KNOBS = (
    *("least_letters", "never_agree", "redundancy", "rounds", "skip_limit", "least_level", "on_conflict"),
    *("audit_share", "audit_least", "audit_recheck", "audit_limit", "decoy_share"),
)
# Design of the draws -> name of the published file.
PUBLISHED = {"uniform": "uniformly_sampled", "recall": "recall_oriented", "precision": "precision_oriented"}
# What of a draw says how it came about.
DRAW = (
    *("design", "language", "predictor", "seed", "size", "asked", "frame_size", "frame_digest", "chance"),
    "parameters",
)
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
    ("asked", _TEXT),
    ("text", _TEXT),
    ("stage", _TEXT),
    ("stratum", _TEXT),
    ("agreed", _TEXT),
    ("chance", pa.float64()),
    ("audit_chance", pa.float64()),
    ("round", pa.int32()),
    ("judged_as", _TEXT),
    ("reused_from", _TEXT),
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
            return _write(Task.objects.get(pk=task.pk), folder)
    except folders.FolderError as error:
        raise ExportError(str(error)) from error


def _write(task: Task, folder: Path) -> dict:
    draw = task.draw
    corpus = store.manifest_of(draw.corpus.name)
    with_text = corpus.text_may_leave
    schema = pa.schema([field for field in FIELDS if with_text or field[0] not in WITH_TEXT_ONLY])
    # Who answers a post that is hidden among the work adds nothing to the set.
    unfinished = task.units.filter(gold_answer="").exclude(stage__in=stages.FINISHED).exists()
    mark = ".unfinished" if unfinished else ""
    names = {
        "tsv": f"{PUBLISHED[draw.design]}{mark}.tsv",
        "jsonl": f"gold{mark}.jsonl",
        "parquet": f"gold{mark}.parquet",
        "left_out": f"left_out{mark}.jsonl",
        "digests": f"gold{mark}{DIGESTS}",
    }
    counts, pairs, batch = gold.Counts(), [], []
    with contextlib.ExitStack() as files:
        jsonl = files.enter_context(open(folder / names["jsonl"], "w", encoding="utf-8", newline="\n"))
        left_out = files.enter_context(open(folder / names["left_out"], "w", encoding="utf-8", newline="\n"))
        parquet = files.enter_context(pq.ParquetWriter(folder / names["parquet"], schema, compression="zstd"))
        for row in gold.rows(task, with_text=with_text):
            kept = row["label"] is not None and (draw.design != "recall" or row["label"] == row["asked"])
            counts.take(row, kept)
            if not kept:
                left_out.write(_json(row) + "\n")
                continue
            pairs.append((row["label"], row["id"]))
            jsonl.write(_json(row) + "\n")
            batch.append(row)
            if len(batch) == BATCH:
                parquet.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
                batch.clear()
        parquet.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
    write_digests(folder / names["jsonl"], folder / names["digests"])
    # The order of the published files: by label, then by id; numeric ids as numbers.
    pairs.sort(key=lambda pair: (pair[0], len(pair[1]) if pair[1].isdigit() else 0, pair[1]))
    lines = (f"{label}\t{key}\n" for label, key in pairs)
    with open(folder / names["tsv"], "w", encoding="utf-8", newline="\n") as tsv:
        tsv.writelines(lines)
    manifest = {
        "format": 2,
        "design": draw.design,
        "finished": not unfinished,
        "task": {
            "name": task.name,
            "title": task.title,
            "type": task.task_type,
            "labels": task.labels,
            **{knob: getattr(task, knob) for knob in KNOBS},
        },
        "draws": [{field: getattr(each, field) for field in DRAW} for each in task.draws.order_by("language", "pk")],
        "corpus": {
            "name": draw.corpus.name,
            "source": corpus.source,
            "licence": corpus.licence,
            "text_may_leave": corpus.text_may_leave,
        },
        "detectors": draw.detectors,
        "audit": auditing.report(task) if draw.design == "uniform" else None,
        "decoys": known.report(task) if draw.design != "uniform" else None,
        "counts": counts.as_dict(),
        "versions": {"assay": ASSAY} | {package: version(package) for package in ("django", "pyarrow", "duckdb")},
        "files": {},
    }
    card = render_to_string("annotate/card.md", _card(manifest, names))
    (folder / "README.md").write_text(card, encoding="utf-8")
    for path in sorted(folder.iterdir()):
        manifest["files"][path.name] = store.digest_of(path)
    write_manifest(folder, manifest)
    return manifest


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False, default=_iso)


def _iso(value) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    raise TypeError(f"{type(value)} in an exported row")


def _card(manifest: dict, names: dict) -> dict:
    licence = manifest["corpus"]["licence"]
    counts, draws = manifest["counts"], manifest["draws"]
    by_label, by_stratum = counts["by_label"], counts["by_stratum"]
    asked = [draw["language"] for draw in draws if draw["language"]]
    codes = asked or [label for label in by_label if label != UND]
    context = {
        "manifest": manifest,
        "names": names,
        "licence": CARD_LICENCES.get(licence_key(licence)),
        # A JSON string is one of YAML too.
        "quoted": {"title": _json(manifest["task"]["title"]), "licence": _json(licence)},
        "languages": sorted({code.split("-")[0] for code in codes}),
        "size": next((name for limit, name in SIZES if counts["labelled"] < limit), "100M<n<1B"),
        "by_machine": by_stratum.get("agreed", 0),
        "by_people": counts["labelled"] - by_stratum.get("agreed", 0),
        "labels": [(label, label_name(label), count) for label, count in by_label.items()],
        "reused": counts["reused"],
        "reused_total": sum(counts["reused"].values()),
        "draw": draws[0],
    }
    if audit := manifest["audit"]:
        shares = {
            knob: findings.whole_percent(manifest["task"][knob])
            for knob in ("audit_share", "audit_recheck", "audit_limit")
        }
        contested = [row["language"] for row in audit["languages"] if row["contested"]]
        context |= {
            "shares": shares,
            "contested": contested,
            "found": _table(findings.audit_table(audit)),
            "found_words": findings.audit_words(audit),
        }
    if decoys := manifest["decoys"]:
        context |= {
            "told": [(key.replace("_", " "), _told(value)) for key, value in _shared(draws).items()],
            "drawn": [(draw, LANGUAGES[draw["language"]].name, by_label.get(draw["language"], 0)) for draw in draws],
            "fewer": [draw["language"] for draw in draws if draw["size"] < draw["asked"]],
            "found": _table(findings.decoy_table(decoys)),
            "found_words": findings.decoy_words(decoys),
        }
    return context


def _shared(draws: list[dict]) -> dict:
    """The parameters that all draws of a set have alike, and not those that say what each of them found."""
    first, *others = (draw["parameters"] for draw in draws)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _told(value) -> str:
    """A parameter of a draw; a window as two moments, midnights as days."""
    ends = [str(end).removesuffix("T00:00:00+00:00") for end in value] if isinstance(value, list) else [str(value)]
    return " to ".join(ends)


def _table(table: Table) -> dict:
    return {
        "heads": [heading for heading, _ in table.columns],
        "rules": ["---:" if kind == NUMBER else "---" for _, kind in table.columns],
        "rows": table.rows,
    }
