"""Rows that no importer was made for, through every importer: none may be lost without a word.

Each importer is offered files of a known number of rows, some of them with a cell that is hostile, or lacking, or come
twice, and says how many it accepted, refused, and had before. The chance is the caller's, so that hypothesis can make
files smaller and a benchmark can make many.
"""

import csv
import io
import json
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from django.conf import settings

from annotate import exit_status
from annotate.actions.commands import call_command
from annotate.models import Judgment
from corpora.models import Concept
from corpora.storage.layout import read_manifest

LONGEST = 20_000  # bytes of a line
LONGER = "b" * (LONGEST + 10_000)
HOSTILE: Sequence[Any] = (
    *("", " ", "\t", "\n", "\r\n", "\x00", "\x0b", "\x1c", "\x85", "\u2028", "\ufeff", "\ud800", "\U0010ffff"),
    *"=1+1 @SUM(A1) -1 1e3 1.0 007 4.8E+17 NaN inf null None true und de xx".split(" "),  # noqa: SIM905
    *'" \' "a a"b , ; | \\ \\N ../../x <script> {{x}} %s \u202eabc'.split(" "),  # noqa: SIM905
    *("𝒳", "e\u0301", "é", "İ", "ß", "ﬀ", "١٢٣", "٫5", "javascript:alert(1)", "2024-13-45", "9999-12-31T23:59:59Z"),
    # Longer than a line may be, and a part of a row whose other lines are not.
    *("a" * 5000, "a" * len(LONGER), f"a\n{LONGER}\nc"),
    *(None, True, False, 0, -1, 10**30, 1.5, 1e308, float("nan"), float("inf"), [], ["a"], {}, {"a": 1}, [[None]]),
)
# Lines of JSON that are none.
NOT_JSON = ("{", "[]", "nothing", '{"id": 1,}', '{"id": 1, "id": 2}', '"text"', "[" * 3000, '{"id": "\\ud800"}', "{}")
BROKEN = (*NOT_JSON, "\x00")
Row = dict[str, Any]


def fuzzed(chance: Random, rows: list[Row]) -> list[Row]:
    """The rows; in two files of three some have another cell in the place of one, or lack one, or come twice."""
    share = chance.choice((0.0, 0.02, 0.4))
    made: list[Row] = []
    for row in rows:
        if chance.random() < share:
            kind = chance.choice(("hostile", "hostile", "hostile", "lacking", "again"))
            if kind == "hostile":
                row = row | {chance.choice([*row]): chance.choice(HOSTILE)}
            elif kind == "lacking":
                without = chance.choice([*row])
                row = {name: value for name, value in row.items() if name != without}
            elif made:
                row = chance.choice(made)
        made.append(row)
    return made


# --- files: rows -> bytes that hold as many


def as_jsonl(chance: Random, rows: list[Row]) -> bytes:
    broken, escaped = chance.choice((0.0, 0.05)), chance.random() < 0.5

    def line(row):
        return chance.choice(BROKEN) if chance.random() < broken else json.dumps(row, ensure_ascii=escaped)

    return "".join(f"{line(row)}\n" for row in rows).encode("utf-8", "surrogatepass")


def as_csv(chance: Random, rows: list[Row]) -> bytes:
    written = io.StringIO(newline="")
    names = [*{name: None for row in rows for name in row}]
    lines, whole = csv.writer(written), chance.choice((1.0, 1.0, 0.95))
    lines.writerow(names)
    for row in rows:
        cells = ["" if row.get(name) is None else row[name] for name in names]
        lines.writerow(cells if chance.random() < whole else chance.choice([cells[:-1], [*cells, "more"]]))
    return written.getvalue().encode("utf-8", "surrogatepass")


def as_tsv(chance: Random, rows: list[Row]) -> bytes:
    """Without quoting: what would part cells or lines cannot be in one."""
    names = [*{name: None for row in rows for name in row}]
    lines = ["\t".join(names)]
    for row in rows:
        cells = [" ".join(str("" if row.get(name) is None else row[name]).split("\t")) for name in names]
        cells = [each.replace("\r", " ").replace("\n", " ") for each in cells]
        lines.append("\t".join(cells) if "".join(cells).strip() else "x")
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def as_parquet(chance: Random, rows: list[Row]) -> bytes:
    """A column has one type, so that what is of another is written as text; half of the files have numbers as ids."""
    names = [*{name: None for row in rows for name in row}]

    def text(value):
        return value if value is None else str(value).encode("utf-8", "replace").decode()

    columns = {name: pa.array([text(row.get(name)) for row in rows], pa.string()) for name in names}
    if chance.random() < 0.2:
        columns[names[0]] = pa.array([chance.choice([*range(len(rows)), None]) for _ in rows], pa.int64())
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written)
    return written.getvalue()


WRITERS: dict[str, Callable[[Random, list[Row]], bytes]] = {
    **{"jsonl": as_jsonl, "csv": as_csv, "tsv": as_tsv, "parquet": as_parquet},
}


# --- what each importer is given, and what it and the installation say of it

Counts = Counter[str]  # of rows: given, accepted, refused, duplicates; and files that were refused as a whole


def posts(number: int) -> list[Row]:
    common = {"posted_at": "2024-01-02", "url": "https://example.org/"}
    text = "Guten Morgen, das ist der Satz {}."
    return [{"id": f"p{n}", "text": text.format(n), "author_id": f"a{n % 5}"} | common for n in range(number)]


def records(number: int) -> list[Row]:
    return [{"id": f"r{n}", "query": f"query {n}", "title": f"title {n}", "language": "en"} for n in range(number)]


def messages(number: int) -> list[Row]:
    """Threads of three."""
    text = "This is the message with the number {}, and it answers the one before."
    return [
        {"id": f"m{n}", "parent_id": f"m{n - 1}" if n % 3 else "", "text": text.format(n), "thread": f"t{n // 3}"}
        for n in range(number)
    ]


def judgments(number: int) -> list[Row]:
    return [{"task": f"item{n // 3}", "worker": f"w{n % 3}", "label": str(n % 2)} for n in range(number)]


def predictions(number: int) -> list[Row]:
    return [{"id": f"p{n}", "label": ("de", "en", "und")[n % 3]} for n in range(number)]


def scores(number: int) -> list[Row]:
    return [{"id": f"m{n}", "score": f"0.{n % 10}"} for n in range(number)]


def concepts(number: int) -> list[Row]:
    return [{"id": f"c{n}", "label": f"concept {n}", "parents": f"c{n // 2}" if n > 1 else ""} for n in range(number)]


def people(number: int) -> list[Row]:
    common = {"languages": "de:5 en:4", "adjudicates": "no"}
    return [{"username": f"u{n}", "name": f"U {n}"} | common for n in range(number)]


def kinds(number: int) -> list[Row]:
    """The lines of a kind's file that works, a row each."""
    text = (settings.BASE_DIR / "annotate" / "kinds" / "topic.toml").read_text(encoding="utf-8")
    return [{"line": line} for line in text.partition("[guidelines]")[0].splitlines()]


def as_kind(chance: Random, rows: list[Row]) -> bytes:
    lines = [str(row.get("line", "")) for row in rows]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def of_corpus(data: dict[str, Any]) -> Counts:
    [file] = data["files"]
    listed = len(Path(file["rejects_file"]).read_bytes().splitlines()) if file["rejects_file"] else 0
    assert listed == file["rejects"], "the list of what was rejected has another number of rows"
    return Counter(accepted=file["accepted"], refused=file["rejects"], duplicates=file["duplicates"])


def of_threads(data: dict[str, Any]) -> Counts:
    return Counter(accepted=data["messages"], refused=data["rejects"], duplicates=data["duplicates"])


def of_judgments(data: dict[str, Any]) -> Counts:
    there = data["repeats"] + data["already"]
    return Counter(accepted=data["judgments"], refused=data["rejects"], duplicates=there)


def rows_of(name: str) -> int:
    manifest = read_manifest(name)
    return manifest.rows if manifest else 0


@dataclass(frozen=True)
class Importer:
    """command: with NAME for a new name and FILE for the file; told: what it says of the rows, by its JSON; stored: how
    many accepted rows the installation has, where each is one.
    """

    command: str
    rows: Callable[[int], list[Row]]
    told: Callable[[dict[str, Any]], Counts]
    formats: Sequence[str] = ("jsonl", "csv", "tsv", "parquet")
    stored: Callable[[str], int] | None = None


MOST = "--max-rejects 100%"
LIMITS = f"--licence CC0-1.0 --longest-line {LONGEST} {MOST}"
CORPUS = f"import_corpus NAME FILE {LIMITS}"
IMPORTERS: dict[str, Importer] = {
    "posts": Importer(CORPUS, posts, of_corpus, stored=rows_of),
    "records": Importer(f"{CORPUS} --fields 'query title'", records, of_corpus, stored=rows_of),
    "threads": Importer(f"import_threads NAME FILE {LIMITS}", messages, of_threads),
    "judgments": Importer(
        f"import_judgments NAME FILE {MOST}",
        judgments,
        of_judgments,
        stored=lambda name: Judgment.objects.filter(unit__task__name=name).count(),
    ),
    "predictions": Importer(
        "import_predictions posts FILE --name NAME --version 1",
        predictions,
        lambda data: Counter(accepted=data["posts"], refused=data["left_out"]),
    ),
    "scores": Importer(
        "import_scores talk FILE --name NAME --threshold 0.5",
        scores,
        lambda data: Counter(accepted=data["rows"], refused=data["left_out"] + data["empty"]),
    ),
    "vocabulary": Importer(
        "import_vocabulary NAME FILE",
        concepts,
        lambda data: Counter(accepted=data["concepts"]),
        ("tsv",),
        lambda name: Concept.objects.filter(vocabulary__name=name).count(),
    ),
    "people": Importer(
        "add_annotators FILE",
        people,
        lambda data: Counter(accepted=len({*data["links"], *data["updated"]})),
        ("csv",),
    ),
    "kinds": Importer("check_kind FILE", kinds, lambda data: Counter(accepted=len(kinds(0))), ("toml",)),
}
WRITERS["toml"] = as_kind
# What predictions and scores are about.
ABOUT = 30


def make_installation(folder: Path) -> None:
    """A corpus of posts and one of pairs."""
    for name, rows, command in (
        ("posts", posts(ABOUT), "import_corpus"),
        ("talk", messages(ABOUT), "import_threads"),
    ):
        path = folder / f"{name}.jsonl"
        path.write_bytes(as_jsonl(Random(0), rows))
        call_command(command, name, path, licence="CC0-1.0", verbosity=0, stdout=io.StringIO())


class Lost(AssertionError):
    """Rows of which nothing is said, or a fault of the program; says the file and what was said."""


def offer(importer: Importer, format: str, chance: Random, folder: Path, name: str, number: int) -> Counts:
    """Offer a file of so many rows. Lost if what became of one of them is not told."""
    rows = fuzzed(chance, importer.rows(number))
    path = folder / f"{name}.{format}"
    content = WRITERS[format](chance, rows)
    path.write_bytes(content)
    given = len(rows)
    if format == "csv" and "--longest-line" in importer.command:
        # Where a record of three lines has one that is not read, nobody can tell that they are one: each is refused.
        given += 2 * content.count(LONGER.encode())
    words = [{"NAME": name, "FILE": str(path)}.get(word, word) for word in shlex.split(importer.command)]
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        status = exit_status.run(partial(call_command, *words, "--json", stdout=out, stderr=errors), listens=False)
    said = f"{errors.getvalue()}{out.getvalue()}"
    told = f"{' '.join(words)} ended with {status}: {said[-2000:]}"
    if status not in (0, 1, 3) or "Traceback" in said:
        raise Lost(told)
    if status:
        if not errors.getvalue().strip() or (importer.stored and importer.stored(name)):
            raise Lost(f"it was refused without a word, or not as a whole: {told}")
        return Counter(given=given, refused=given, files=1)
    counts = importer.told(json.loads(out.getvalue()))
    if counts.total() != given or (importer.stored and importer.stored(name) != counts["accepted"]):
        stored = importer.stored(name) if importer.stored else counts["accepted"]
        raise Lost(f"of {given} rows it told {dict(counts)} and has {stored}: {told}")
    return counts + Counter(given=given)
