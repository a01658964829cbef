"""Functions that export sets with their secret, verify them, and tamper with them, including the digests."""

import io
import json
from collections import Counter
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.goldsets.set_folder import write_manifest as sign
from annotate.kinds import Answer
from annotate.work.adjudication import settle, to_adjudicate
from corpora.storage.layout import Manifest, Part, corpora_dir, digest_of, write_manifest


def tell(task, out):
    """Close the task, export it with its secret, and return the lines of lots.jsonl."""
    call_command("close", task.name, verbosity=0)
    call_command("export_gold", task.name, out=out, tell_secret=True, verbosity=0, stdout=io.StringIO())
    return [json.loads(line) for line in (out / "lots.jsonl").read_text(encoding="utf-8").splitlines()]


def verified(folder):
    """Return the exit status and the JSON output of verify_lots."""
    out, status = io.StringIO(), 0
    try:
        call_command("verify_lots", folder, json=True, stdout=out, stderr=io.StringIO())
    except CommandError as error:
        status = error.returncode
    return status, json.loads(out.getvalue())


def of_lots(report):
    """Return for each lot how many decisions were repeated, and how many differ."""
    return {row["lot"]: (row["checked"], row["differ"]) for row in report["lots"]}


def rewrite(folder, name, change):
    """Change the objects in a file of lines."""
    path = folder / name
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    _sign(folder)


def recount(folder):
    """Rewrite the counts, the Parquet file and the published file to match the rows, as a careful publisher would."""
    rows = [json.loads(line) for line in (folder / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    counts = manifest["counts"]
    counts["labelled"] = len(rows)
    if "by_stratum" in counts:
        counts["by_stratum"] = dict(Counter(row["stratum"] for row in rows if row["stratum"]))
    for path in folder.glob("gold*.parquet"):
        schema = pq.read_schema(path)
        pq.write_table(
            pa.Table.from_pylist([_timed(row, schema) for row in rows], schema=schema.remove_metadata()), path
        )
    for path in folder.glob("*_sampled.tsv"):
        path.write_text("".join(f"{row['label']}\t{row['id']}\n" for row in rows), encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    _sign(folder)


def _timed(row, schema):
    """Convert the columns that `verify_lots` reads; times are text in JSON."""
    return {name: row.get(name) if name in ("id", "label") else None for name in schema.names}


def retell(folder, **lots):
    """Change the section on lots in the manifest."""
    _sign(folder, **lots)


def _sign(folder, **lots):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["lots"] |= lots
    manifest["files"] = {name: digest_of(folder / name) for name in manifest["files"]}
    sign(folder, manifest)


def sha(secret):
    return sha256(secret.encode()).hexdigest()


def with_manifest_of(corpus):
    (corpora_dir() / corpus).mkdir(parents=True)
    write_manifest(corpus, Manifest("CC0-1.0", True, "", parts=(Part("x", 8, "0"),)))


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def settle_all(annotators, task):
    """Have each adjudicator settle cases until none of them has pending cases."""
    while waiting := [(annotator, unit) for annotator in annotators for unit in to_adjudicate(task, annotator)]:
        annotator, unit = waiting[0]
        settle(annotator, unit.pk, Answer("de", "I read the language"))
