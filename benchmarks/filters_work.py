"""The audits of the benchmark of filters, in a process of its own: `MESSAGES TRIALS SEED READ...`; prints JSON."""

import csv
import io
import json
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import django

django.setup()

from annotate.actions.registry import call_command  # noqa: E402
from benchmarks.filters import Population, audits_of, truth_of  # noqa: E402
from corpora.draws.part_draws import DRAWN, DROPPED, IDS  # noqa: E402
from corpora.draws.part_draws import sample_filtered as sample  # noqa: E402
from corpora.models import Corpus  # noqa: E402
from corpora.threads.scorers import open_filter  # noqa: E402

KEPT_READ = 300
THRESHOLD = 0.5  # of Detoxify, and of the share of people who call a message toxic


def corpus_of(messages: Path) -> Corpus:
    """Return the corpus of pairs, filtered by Detoxify."""
    with tempfile.TemporaryDirectory() as name, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        scores = Path(name) / "scores.tsv"
        with scores.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t")
            writer.writerow(["id", "score"])
            writer.writerows([row["id"], row["detoxify"]] for row in rows_of(messages))
        call_command("import_threads", "oasst", str(messages), licence="Apache-2.0", text_may_leave=True)
        call_command("import_scores", "oasst", str(scores), name="detoxify", threshold=str(THRESHOLD))
    return Corpus.objects.get(name="oasst")


def rows_of(messages: Path) -> list[dict]:
    return [json.loads(line) for line in messages.read_text(encoding="utf-8").splitlines()]


def toxic_pairs(messages: Path) -> set[str]:
    """Return the ids of the pairs with a message or reply that people called toxic. A pair has the id of its reply."""
    rows = rows_of(messages)
    toxic = {row["id"] for row in rows if ((row["human"] or {}).get("toxicity") or 0) >= THRESHOLD}
    return {row["id"] for row in rows if row["parent_id"] and {row["id"], row["parent_id"]} & toxic}


def main() -> None:
    messages, trials, seed = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    corpus, toxic = corpus_of(messages), toxic_pairs(messages)
    everything = sample(corpus, None, kept=10**6, dropped=10**6, seed=seed)
    keys = [row["id"] for draw in everything for row in draw.rows]
    dropped = {key for draw in everything for key in draw.parameters[IDS][DROPPED]}
    with open_filter(corpus.name) as store:
        assert dropped == {row["id"] for row in store.fetch("filtered") if row["dropped"]} & set(keys)
    kept = set(keys) - dropped
    worlds = []
    for read in map(int, sys.argv[4:]):
        population = Population(
            (len(kept), len(kept & toxic), KEPT_READ), (len(dropped), len(dropped & toxic), min(read, len(dropped)))
        )
        counts = []
        for number in range(trials):
            drawn = sample(corpus, None, kept=KEPT_READ, dropped=read, seed=f"{seed}.{number}")
            ids = {row["id"] for draw in drawn for row in draw.rows}
            assert sum(draw.parameters[DRAWN][DROPPED] for draw in drawn) == len(ids & dropped)
            counts.append((len(ids & kept & toxic), len(ids & dropped & toxic)))
        worlds.append({"read": read, "truth": truth_of(population), "audits": audits_of(population, counts)})
    print(json.dumps(worlds))


main()
