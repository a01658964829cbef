"""The work of the benchmark of draws, in a process of its own. Each command prints a line of JSON.

make NAME POSTS AUTHORS         writes a corpus directly into its parts: repeated sentences of the fixtures, and
                                artificial votes
draw NAME SIZE SEED IDS         draws SIZE recall-oriented posts for each language of the votes; writes their ids to
                                the file IDS. The engine is that of the environment
"""

import hashlib
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import django

django.setup()

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from benchmarks.material import FIRST_ID, ID_STEP  # noqa: E402
from corpora.core.languages import LANGUAGES  # noqa: E402
from corpora.core.voters import DEFAULT  # noqa: E402
from corpora.draws.language_draws import (  # noqa: E402
    HISTORY,
    WINDOW,
    sample_recall,
)
from corpora.models import Corpus  # noqa: E402
from corpora.predictions.predictor_labels import can_assign, find_predictor  # noqa: E402
from corpora.storage.intake import PART_ROWS  # noqa: E402
from corpora.storage.layout import (  # noqa: E402  # noqa: E402
    Manifest,
    Part,
    VotesPart,
    corpus_dir,
    digest_of,
    lock_corpus,
    part_name,
    write_manifest,
)
from corpora.storage.schemas import POST_SCHEMA, votes_schema  # noqa: E402
from tests.running import ROOT  # noqa: E402

MAJORITY = find_predictor("", "majority")
WANTED = [code for code in LANGUAGES if can_assign(MAJORITY, code)][:70]
IN_OWN_LANGUAGE, IN_DISPUTE = 0.8, 0.1
SCORES = (0.8, 0.15, 0.05)


def make(name: str, posts: int, authors: int) -> None:
    with open(ROOT / "fixtures" / "demo_posts.jsonl", encoding="utf-8") as file:
        texts = pa.array([json.loads(line)["text"] for line in file])
    names = pa.array([hashlib.sha256(str(number).encode()).hexdigest()[:32] for number in range(authors)])
    with lock_corpus(name) as directory:
        manifest = Manifest(licence="CC0-1.0", text_may_leave=True, source="made by repetition")
        for number, start in enumerate(range(0, posts, PART_ROWS), 1):
            rng = np.random.default_rng(number)
            numbers = np.arange(start, min(start + PART_ROWS, posts))
            by = rng.integers(authors, size=len(numbers))
            ids = pc.cast(pa.array(FIRST_ID + numbers * ID_STEP), pa.string())
            part, votes = _posts(rng, ids, texts.take(numbers % len(texts)), names.take(by)), _votes(rng, ids, by)
            paths = [directory / folder / part_name(number) for folder in ("parts", "votes")]
            for table, path in zip((part, votes), paths, strict=True):
                pq.write_table(table, path)
            parts, voted = (digest_of(path) for path in paths)
            rows = len(numbers)
            manifest = replace(
                manifest,
                parts=(*manifest.parts, Part(part_name(number), rows, parts)),
                votes=(*manifest.votes, VotesPart(part_name(number), rows, 0, voted, 3, {})),
            )
        write_manifest(name, manifest)
    size = sum(path.stat().st_size for path in corpus_dir(name).rglob("*.parquet"))
    print(json.dumps({"posts": posts, "bytes": size}))


def _posts(rng: np.random.Generator, ids: pa.Array, texts: pa.Array, authors: pa.Array) -> pa.Table:
    first, last = (int(moment.timestamp() * 1e6) for moment in (HISTORY[0], WINDOW[1]))
    times = pa.array(rng.integers(first, last, size=len(ids)), pa.timestamp("us", tz="UTC"))
    urls = pc.binary_join_element_wise("https://example.org/", ids, "")
    return pa.table([ids, pc.binary_join_element_wise(texts, ids, " "), authors, times, urls], schema=POST_SCHEMA)


def _votes(rng: np.random.Generator, ids: pa.Array, by: np.ndarray) -> pa.Table:
    """Return three languages per detector. An author's language is determined by the author's number."""
    rows, codes = len(ids), pa.array(WANTED)
    spoken = np.where(rng.random(rows) < IN_OWN_LANGUAGE, by, rng.integers(len(codes), size=rows))
    columns = [ids, pa.array(rng.integers(20, 120, size=rows), pa.int32())]
    offsets = pa.array(np.arange(rows + 1) * len(SCORES), pa.int32())
    for _ in DEFAULT.voters:
        first = spoken + (rng.random(rows) < IN_DISPUTE)
        named = (first[:, None] + np.arange(len(SCORES))) % len(codes)
        votes = [codes.take(named.ravel()), pa.array(np.tile(SCORES, rows))]
        columns.append(pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(votes, ["language", "score"])))
    return pa.table(columns, schema=votes_schema())


def draw(name: str, size: int, seed: str, ids: Path) -> None:
    began = time.monotonic()
    samples = sample_recall(Corpus(name=name), WANTED, size=size, seed=seed, predictor=MAJORITY)
    took, used = time.monotonic() - began, time.process_time()
    ids.write_text("".join(f"{sample.language} {row['id']}\n" for sample in samples for row in sample.rows))
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    figures = {
        "languages": len(samples),
        "drawn": sum(sample.size for sample in samples),
        "frame": sum(sample.frame_size for sample in samples),
        "authors": sum(sample.parameters["authors"] for sample in samples),
        "seconds": took,
        "cpu": used,
        "megabytes": int(status["VmHWM"].split()[0]) / 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    command, name, *rest = sys.argv[1:]
    if command == "make":
        make(name, *map(int, rest))
    else:
        draw(name, int(rest[0]), rest[1], Path(rest[2]))
