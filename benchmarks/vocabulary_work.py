"""The searches of the benchmark of vocabularies, in a process of its own: `CONCEPTS SCHEMES SIZE SEED`; prints JSON."""

import io
import json
import random
import string
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.test import Client, override_settings  # noqa: E402

from annotate.actions.registry import call_command  # noqa: E402
from annotate.models import Annotator, Task  # noqa: E402
from annotate.work.queue import take  # noqa: E402
from corpora.models import Vocabulary  # noqa: E402
from corpora.vocabulary.concept_index import find, vocabulary_named  # noqa: E402
from corpora.vocabulary.vocabulary_import import import_vocabulary  # noqa: E402


def enlarged(rows: dict[str, dict], size: int, seed: str) -> dict[str, dict]:
    """Return EuroVoc's concepts and generated ones, `size` in total. Each generated concept has two labels, as long as
    those of EuroVoc, and one broader concept."""
    lots = random.Random(seed)
    keys = list(rows)
    words = [word for row in rows.values() for word in row["label"].split()]
    lengths = [len(row["label"].split()) for row in rows.values()]
    more = {}
    while len(rows) + len(more) < size:
        label, other = (" ".join(lots.choices(words, k=lots.choice(lengths))) for _ in range(2))
        more[f"made{len(more)}"] = {"label": label, "alt_labels": [other], "parents": [lots.choice(keys)]}
    return rows | more


def timed(vocabulary: Vocabulary, typed: str) -> tuple[list[str], float]:
    """Return the ids that were found, and the time (milliseconds)."""
    start = time.perf_counter()
    keys = [hit.concept.key for hit in find(vocabulary, typed, "en")]
    return keys, 1000 * (time.perf_counter() - start)


KIND = """
title = "Which concepts is it about?"
form = "labels"

[vocabulary]
name = "{}"

[[layout]]
style = "document"
fields = ["body"]
"""
SERVED = 500  # searches for which the server's whole response is timed


def served(name: str, typed: list[str]) -> list[float]:
    """Return how long the server takes to respond to an annotator's input (ms): from the request to the last byte of
    the list that the page inserts, without the network."""
    with tempfile.TemporaryDirectory() as folder:
        kind, records = Path(folder) / f"of_{name}.toml", Path(folder) / "records.jsonl"
        kind.write_text(KIND.format(name))
        records.write_text(json.dumps({"id": "one", "language": "en", "body": "A text."}) + "\n")
        quiet = {"stdout": io.StringIO(), "stderr": io.StringIO()}
        call_command("import_corpus", name, str(records), fields="body", licence="CC0-1.0", **quiet)
        call_command("open_task", name, kind=str(kind), corpus=name, seed="1", **quiet)
    reader = Annotator.objects.create(user=User.objects.create_user(name))
    reader.languages.create(language="en")
    lease = take(reader, Task.objects.get(name=name))
    client, waits = Client(), []
    client.force_login(reader.user)
    for query in typed:
        start = time.perf_counter()
        sent = {"lease": lease.pk, "do": "find", "typed": query}
        answer = client.post(f"/tasks/{name}/judge/", sent, headers={"HX-Request": "true"})
        waits.append(1000 * (time.perf_counter() - start))
        assert answer.status_code == 200, answer.content
    return waits


def measured(name: str, files: list[Path], schemes: Path | None, concepts: dict[str, dict]) -> dict[str, float]:
    start = time.perf_counter()
    imported = import_vocabulary(name, files, schemes=schemes)
    took = time.perf_counter() - start
    vocabulary, hits, waits, typed = vocabulary_named(name), 0, [], []
    for key, row in concepts.items():
        first, *others = row["label"].split()
        typed.append(" ".join([first[:4], *(word[:2] for word in others[:1])]))
        keys, ms = timed(vocabulary, typed[-1])
        hits += key in keys
        waits.append(ms)
    answers = served(name, typed[:: max(1, len(typed) // SERVED)])
    return {
        "answer_ms": median(answers),
        "answer_p99_ms": quantiles(answers, n=100)[98],
        "concepts": imported.concepts,
        "labels": imported.labels,
        "import_s": took,
        "asked": len(concepts),
        "found": hits,
        "median_ms": median(waits),
        "p99_ms": quantiles(waits, n=100)[98],
        "longest_ms": max(waits),
        "letter_ms": max(timed(vocabulary, letter)[1] for letter in string.ascii_lowercase),
    }


def main(concepts: Path, schemes: Path, size: int, seed: str) -> None:
    rows = json.loads(concepts.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, override_settings(ALLOWED_HOSTS=["testserver"]):
        large = Path(folder) / "large.json"
        large.write_text(json.dumps(enlarged(rows, size, seed)))
        print(json.dumps([measured("eurovoc", [concepts], schemes, rows), measured("large", [large], None, rows)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
