"""The steps of the benchmark of bulk work, each in a process of its own: `python -m benchmarks.bulk_work STEP
FOLDER POSTS` prints JSON: the number of rows, the seconds without the start, peak memory (MB) at the start and overall,
and the time by module.

A floor reads and writes the same rows with the libraries alone.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import django

django.setup()

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from annotate.actions.registry import GC_THRESHOLD  # noqa: E402
from annotate.goldsets import exporter  # noqa: E402
from annotate.kinds import KINDS  # noqa: E402
from annotate.models import Annotator, Judgment, Lease, Task, Transition, Unit  # noqa: E402
from annotate.work import task_creation  # noqa: E402
from benchmarks.sampling import most_memory, sampled  # noqa: E402
from corpora.core.detectors import detector_versions  # noqa: E402
from corpora.database.bulk_rows import _write, insert  # noqa: E402
from corpora.models import Corpus, Item  # noqa: E402
from corpora.storage.layout import VotesPart, corpus_dir, digest_of, manifest_of, write_manifest  # noqa: E402  # noqa: E402
from corpora.storage.record_import import Terms, check_import, import_files  # noqa: E402
from corpora.storage.schemas import POST_SCHEMA, votes_schema  # noqa: E402

NAME = "bulk"
LANGUAGES = [
    "en",
    "de",
    "es",
    "fr",
    "it",
    "pt",
    "nl",
    "sv",
    "da",
    "fi",
    "pl",
    "cs",
    "ru",
    "uk",
    "tr",
    "ar",
    "he",
    "ja",
    "ko",
    "el",
]
WORDS = ("post", "person", "who", "wrote", "some", "language", "about", "weather", "nothing", "else", "today")
BATCH = 10_000
PEOPLE = 12
START = datetime(2024, 1, 1, tzinfo=UTC)


def main(step: str, folder: Path, posts: int) -> None:
    gc.set_threshold(GC_THRESHOLD)  # as every command does
    begun, start = most_memory(), time.monotonic()
    with sampled() as where:
        done = STEPS[step](folder, posts)
    # A floor measures its own time, because it first has to read what it writes.
    rows, seconds = done if isinstance(done, tuple) else (done, time.monotonic() - start)
    print(json.dumps({"rows": rows, "seconds": seconds, "start": begun, "peak": most_memory(), "where": where}))


# --- preparation


def posts(folder: Path, number: int) -> int:
    """Write a file of posts that are distinct except for a few."""
    with (folder / "posts.jsonl").open("w", encoding="utf-8") as file:
        for n in range(number):
            same = n - 1 if n % 500 == 499 else n
            words = " ".join(WORDS[(same * k) % len(WORDS)] for k in (1, 3, 5, 7, 9, 11, 13))
            row = {"id": f"p{n:08}", "text": f"{words}, as number {same} says.", "author": f"a{n % 5000}"}
            row |= {"posted_at": (START + timedelta(seconds=n)).isoformat(), "url": f"https://example.org/{n}"}
            file.write(json.dumps(row) + "\n")
    return number


def vote(folder: Path, number: int) -> int:
    """Write votes on all posts. The detectors agree on four out of five."""
    manifest, directory = manifest_of(NAME), corpus_dir(NAME) / "votes"
    directory.mkdir(exist_ok=True)
    versions, made = detector_versions(), []
    for part in manifest.parts:
        keys = pq.read_table(directory.parent / "parts" / part.name, columns=["id"])["id"].to_pylist()
        rows, agreed = [], 0
        for key in keys:
            n = int(key[1:])
            code, others = LANGUAGES[n % 20], [LANGUAGES[(n + k) % 20] for k in (1, 2, 3)]
            disputed = n % 5 == 4
            agreed += not disputed
            lists = [_list(others[0] if disputed and k == 1 else code, others, n + k) for k in range(3)]
            rows.append({"id": key, "letters": 40, **dict(zip(("langid", "cld2", "fasttext"), lists, strict=True))})
        file = directory / part.name
        pq.write_table(pa.Table.from_pylist(rows, schema=votes_schema()), file)
        made.append(VotesPart(file.name, part.rows, agreed, digest_of(file), 3, versions))
    write_manifest(NAME, replace(manifest, votes=tuple(made)))
    return number


def _list(code: str, others: list[str], n: int) -> list[dict]:
    scores = (0.9 + n % 97 / 1000, 0.05, 0.0123)
    return [{"language": language, "score": score} for language, score in zip([code, *others[1:]], scores, strict=True)]


@transaction.atomic
def answer(folder: Path, number: int) -> int:
    """Write the answers to a task. A third of the waiting units have three answers. Some are skipped at first, settled
    or discarded by an adjudicator, withdrawn, voided, or still waiting."""
    task, manager = Task.objects.get(name=NAME), User.objects.create(username="manager", is_staff=True)
    people = [Annotator.objects.create(user=User.objects.create(username=f"reader{n}")) for n in range(PEOPLE)]
    waiting = task.units.queued().order_by("position").iterator(chunk_size=BATCH)
    while units := list(islice(waiting, BATCH)):
        leases, judgments, transitions = [], [], []

        def judge(unit, person, kind, label="", *, leased=True, after=0, judgments=judgments, leases=leases, **more):
            at = START + timedelta(days=300, seconds=unit.position * 60 + after, microseconds=unit.position)
            lease = None
            if leased:
                outcome = "skipped" if kind == Judgment.SKIP else "voided" if "voided_at" in more else "answered"
                lease = Lease(
                    unit=unit,
                    annotator=people[person % PEOPLE],
                    place=1 + person % 4 if outcome == "answered" else None,
                    round=unit.round,
                    queue=unit.language,
                    opened_at=at,
                    expires_at=at + timedelta(hours=1),
                    closed_at=at,
                    outcome=outcome,
                )
                leases.append(lease)
            judgment = Judgment(
                unit=unit,
                annotator=people[person % PEOPLE],
                lease=lease,
                kind=kind,
                label=label,
                reason="two languages" if kind in (Judgment.SKIP, Judgment.DISCARD) else "",
                comment="It says “so”." if unit.position % 11 == 0 else "",
                shown_at=at - timedelta(seconds=9),
                answered_at=at,
                active_seconds=None if unit.position % 13 == 0 else 4.5 + unit.position % 7 / 8,
                **more,
            )
            judgments.append(judgment)
            return judgment

        def go(unit, event, to, judgment=None, by=None, label="", transitions=transitions):
            at = START + timedelta(days=301, seconds=unit.position * 60)
            fields = {"round": unit.round, "language": unit.language, "label": label}
            moved = Transition(unit=unit, event=event, from_stage=unit.stage, to_stage=to, by=by, at=at, **fields)
            transitions.append(moved)
            moved.judgment, unit.stage, unit.label = judgment, to, label

        for unit in units:
            n, code = unit.position, unit.candidates[0]
            if n % 10 == 9:
                continue
            if n % 10 == 8:
                judgment = judge(unit, n, Judgment.SKIP)
                go(unit, "skipped", "QUEUED", judgment, people[n % PEOPLE].user)
                unit.round = 2
            if n % 10 in (6, 7):
                judge(unit, n, Judgment.ANSWER, code, voided_at=START, voided_by=manager if n % 2 else None)
            if n % 10 == 5:
                go(unit, "exhausted", "ADJUDICATION")
                kind, to = (Judgment.SETTLE, "LABELLED") if n % 20 == 5 else (Judgment.DISCARD, "DISCARDED")
                label = code if to == "LABELLED" else ""
                judgment = judge(unit, n + 1, kind, label, leased=False)
                go(unit, "settled" if label else "discarded", to, judgment, judgment.annotator.user, label)
                continue
            for k in range(3 if n % 3 == 0 else 1):
                judgment = judge(unit, n + 1 + k, Judgment.ANSWER, "und" if k and n % 7 == 0 else code, after=k)
            go(unit, "answered", "LABELLED", judgment, judgment.annotator.user, code)
        insert(leases)
        insert(judgments)
        insert(transitions)
        changed = ["stage", "label", "round"]
        Unit.objects.bulk_create(
            units, batch_size=2000, update_conflicts=True, unique_fields=["pk"], update_fields=changed
        )
    return number


# --- measured steps


def import_posts(folder: Path, number: int) -> int:
    terms = Terms("CC-BY-4.0")
    [done] = import_files(NAME, check_import(NAME, [folder / "posts.jsonl"], terms), terms)
    return done.source.accepted


def open_task(folder: Path, number: int) -> int:
    corpus, options = Corpus.objects.get(name=NAME), {"redundancy": 1.02}
    opened = task_creation.open_task(
        NAME, corpus, KINDS["language"], seed="2015", size=number, labels=LANGUAGES, options=options
    )
    return opened.stages.total()


def export(folder: Path, number: int) -> int:
    return exporter.export(Task.objects.get(name=NAME), folder / "set")["counts"]["posts"]


# --- floors


class Clock:
    """The working time of a step."""

    seconds = 0.0

    def __enter__(self) -> None:
        self.begun = time.monotonic()

    def __exit__(self, *error: object) -> None:
        self.seconds += time.monotonic() - self.begun


def import_floor(folder: Path, number: int) -> tuple[int, float]:
    """Read the same posts as JSON and write them as Parquet, without checking, masking and deduplication."""
    clock = Clock()
    schema = pa.schema([(field.name, pa.string()) for field in POST_SCHEMA])
    with clock, (folder / "posts.jsonl").open("rb") as lines, pq.ParquetWriter(folder / "floor.parquet", schema) as out:
        while some := list(islice(lines, BATCH)):
            out.write_batch(pa.RecordBatch.from_pylist(list(map(json.loads, some)), schema=schema))
    return number, clock.seconds


@transaction.atomic
def open_floor(folder: Path, number: int) -> tuple[int, float]:
    """Insert the rows of the opened task again, into tables with the same indexes and constraints."""
    clock = Clock()
    for model in (Item, Unit, Transition):
        table = model._meta.db_table
        with connection.cursor() as cursor, connection.chunked_cursor() as reading:
            columns = [field.column for field in model._meta.concrete_fields]
            _copy_of_table(cursor, table)
            json_as_text = [f"{name}::text" if connection.vendor == "postgresql" else name for name in columns]
            reading.execute(f"SELECT {', '.join(json_as_text)} FROM {table} ORDER BY id")
            while rows := reading.fetchmany(BATCH):
                plain = [[str(value) if isinstance(value, datetime) else value for value in row] for row in rows]
                with clock:
                    _write(f"floor_{table}", dict(zip(columns, zip(*plain, strict=True), strict=True)))
    transaction.set_rollback(True)
    return number, clock.seconds


def _copy_of_table(cursor, table: str) -> None:
    if connection.vendor == "postgresql":
        cursor.execute(f"CREATE TABLE floor_{table} (LIKE {table} INCLUDING ALL)")
        return
    cursor.execute("SELECT sql FROM sqlite_master WHERE tbl_name = %s AND type <> 'trigger' AND sql NOT NULL", [table])
    for (sql,) in cursor.fetchall():
        statement = sql.replace(f'"{table}"', f'"floor_{table}"', 1) if "CREATE TABLE" in sql else sql
        cursor.execute(statement.replace('INDEX "', 'INDEX "floor_').replace(f'ON "{table}"', f'ON "floor_{table}"'))


def export_floor(folder: Path, number: int) -> tuple[int, float]:
    """Fetch the rows of the same tables, and write the rows of the set as Parquet again."""
    clock = Clock()
    for table in (
        "annotate_unit JOIN corpora_item ON item_id = corpora_item.id",
        "annotate_judgment LEFT JOIN annotate_lease ON lease_id = annotate_lease.id",
        "annotate_transition",
    ):
        with transaction.atomic(), connection.chunked_cursor() as cursor, clock:
            cursor.execute(f"SELECT * FROM {table}")
            while cursor.fetchmany(BATCH):
                pass
    [written] = (folder / "set").glob("gold*.parquet")
    with (
        pq.ParquetFile(written) as rows,
        pq.ParquetWriter(folder / "floor.parquet", rows.schema_arrow, compression="zstd") as out,
    ):
        for batch in rows.iter_batches(2000):
            with clock:
                out.write_batch(batch)
    return number, clock.seconds


STEPS: dict[str, Callable[[Path, int], int | tuple[int, float]]] = {
    "posts": posts,
    "import": import_posts,
    "import_floor": import_floor,
    "vote": vote,
    "open": open_task,
    "open_floor": open_floor,
    "answer": answer,
    "export": export,
    "export_floor": export_floor,
}

if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
