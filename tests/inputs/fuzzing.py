"""Fuzzing of all importers with unexpected rows: no row must be lost silently.

Each importer gets files with a known number of rows. Some rows have a hostile cell, lack a cell or occur twice. The
importer reports how many rows it accepted, rejected, and already had. Callers pass the random generator, so that
hypothesis can shrink files and benchmarks can create many.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import shlex
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
from django.conf import settings

from annotate import exit_status
from annotate.actions.registry import call_command
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
    # A value that exceeds the maximum length of a line, and one whose row has several lines.
    *("a" * 5000, "a" * len(LONGER), f"a\n{LONGER}\nc"),
    *(None, True, False, 0, -1, 10**30, 1.5, 1e308, float("nan"), float("inf"), [], ["a"], {}, {"a": 1}, [[None]]),
)
# Lines that are not valid JSON objects.
NOT_JSON = ("{", "[]", "nothing", '{"id": 1,}', '{"id": 1, "id": 2}', '"text"', "[" * 3000, '{"id": "\\ud800"}', "{}")
BROKEN = (*NOT_JSON, "\x00")
# Elements of an array that are not valid rows.
BAD_ELEMENTS = (
    "[]",
    "5",
    "null",
    '"text"',
    '{"id": 1,}',
    '{"id": 1, "id": 2}',
    '{"id": "\\ud800"}',
    "{}",
    "[{}]",
    '{"id": nothing}',
)
Row = dict[str, Any]


def fuzzed(chance: Random, rows: list[Row]) -> list[Row]:
    """Return the rows. In two of three files, some rows have a changed cell, lack a cell or occur twice."""
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


# --- Writers: functions that convert rows to a file with the same number of rows


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
    """Write TSV, which has no quoting. Cells therefore cannot contain separators."""
    names = [*{name: None for row in rows for name in row}]
    lines = ["\t".join(names)]
    for row in rows:
        cells = [" ".join(str("" if row.get(name) is None else row[name]).split("\t")) for name in names]
        cells = [cell.replace("\r", " ").replace("\n", " ") for cell in cells]
        lines.append("\t".join(cells) if "".join(cells).strip() else "x")
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def as_array(chance: Random, rows: list[Row]) -> bytes:
    """Write a JSON array, on one line or on many."""
    broken, indent = chance.choice((0.0, 0.05)), chance.choice((None, 1))

    def element(row):
        return chance.choice(BAD_ELEMENTS) if chance.random() < broken else json.dumps(row, indent=indent)

    between = chance.choice((",", ",\n", "\n  ,\r\n"))
    return f"[{between.join(map(element, rows))}]\n".encode("utf-8", "surrogatepass")


def as_workbook(chance: Random, rows: list[Row]) -> bytes:
    """Write an Excel workbook, with the characters and types that its cells may have."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    names = [*{name: None for row in rows for name in row}]
    sheet.append(names)

    def cell(value):
        if isinstance(value, float) and value == value and abs(value) != float("inf"):
            return value
        if value is None or isinstance(value, bool | int):
            return value
        return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", "?", f"'{value}"[:30_000])

    for row in rows:
        cells = [cell(row.get(name)) for name in names]
        sheet.append(cells if any(value is not None for value in cells) else ["x", *cells[1:]])
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def _table(chance: Random, rows: list[Row]) -> pa.Table:
    """Return a table. A column has one type, so other values become text. Some tables have numbers as ids."""
    names = [*{name: None for row in rows for name in row}]

    def text(value):
        return value if value is None else str(value).encode("utf-8", "replace").decode()

    columns = {name: pa.array([text(row.get(name)) for row in rows], pa.string()) for name in names}
    if chance.random() < 0.2:
        columns[names[0]] = pa.array([chance.choice([*range(len(rows)), None]) for _ in rows], pa.int64())
    kind = chance.choice((pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())))
    return pa.table(
        {name: column if column.type == pa.int64() else column.cast(kind) for name, column in columns.items()}
    )


def as_parquet(chance: Random, rows: list[Row]) -> bytes:
    written = io.BytesIO()
    pq.write_table(_table(chance, rows), written)
    return written.getvalue()


def as_arrow(chance: Random, rows: list[Row]) -> bytes:
    table, written = _table(chance, rows), io.BytesIO()
    new = chance.choice((pa.ipc.new_file, pa.ipc.new_stream))
    options = pa.ipc.IpcWriteOptions(compression=chance.choice((None, "lz4", "zstd")), unify_dictionaries=True)
    with new(written, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=chance.choice((1, 7, 1000)))
    return written.getvalue()


WRITERS: dict[str, Callable[[Random, list[Row]], bytes]] = {
    **{"jsonl": as_jsonl, "json": as_array, "csv": as_csv, "tsv": as_tsv},
    **{"parquet": as_parquet, "arrow": as_arrow, "xlsx": as_workbook},
}
TEXT = ("jsonl", "json", "csv", "tsv")


def _zipped(content: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows", content)
    return written.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": lambda content: gzip.compress(content[:500]) + gzip.compress(content[500:]),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": _zipped,
}


def disguised(chance: Random, format: str, content: bytes) -> tuple[bytes, str]:
    """Return a file's content in another encoding and compression, and the suffix of its compression."""
    if format in TEXT and chance.random() < 0.4:
        text = content.decode("utf-8", "surrogatepass")
        content = text.encode(chance.choice(("utf-8-sig", "utf-16")), "surrogatepass")
    suffix = chance.choice([*PACKERS]) if chance.random() < 0.4 else ""
    return PACKERS[suffix](content), suffix


# --- The importers, their input, and the results that they and the installation report

Counts = Counter[str]  # numbers of given, accepted, refused and duplicate rows, and of refused files


def posts(number: int) -> list[Row]:
    common = {"posted_at": "2024-01-02", "url": "https://example.org/"}
    text = "Guten Morgen, das ist der Satz {}."
    return [{"id": f"p{n}", "text": text.format(n), "author_id": f"a{n % 5}"} | common for n in range(number)]


def records(number: int) -> list[Row]:
    return [{"id": f"r{n}", "query": f"query {n}", "title": f"title {n}", "language": "en"} for n in range(number)]


def messages(number: int) -> list[Row]:
    """Return the messages of threads with three messages each."""
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
    """Return the lines of a valid kind's file, one per row."""
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
    """An importer.

    command: the command, with NAME for a new name and FILE for the file
    counts: function that returns the reported counts from the JSON output
    stored: function that returns the number of stored rows, for importers that store each accepted row
    """

    command: str
    rows: Callable[[int], list[Row]]
    counts: Callable[[dict[str, Any]], Counts]
    formats: Sequence[str] = ("jsonl", "json", "csv", "tsv", "parquet", "arrow", "xlsx")
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
# The posts and pairs to which predictions and scores belong.
ABOUT = 30


def make_installation(folder: Path) -> None:
    """Create an installation with a corpus of posts and a corpus of pairs."""
    for name, rows, command in (
        ("posts", posts(ABOUT), "import_corpus"),
        ("talk", messages(ABOUT), "import_threads"),
    ):
        path = folder / f"{name}.jsonl"
        path.write_bytes(as_jsonl(Random(0), rows))
        call_command(command, name, path, licence="CC0-1.0", verbosity=0, stdout=io.StringIO())


class Lost(AssertionError):
    """The error for rows that were lost silently, or for a crash. The message contains the file and the output."""


def offer(importer: Importer, format: str, chance: Random, folder: Path, name: str, number: int) -> Counts:
    """Import a file with this many rows. Raise Lost if the outcome of a row is not reported."""
    rows = fuzzed(chance, importer.rows(number))
    content = WRITERS[format](chance, rows)
    written, suffix = disguised(chance, format, content) if len(importer.formats) > 1 else (content, "")
    path = folder / f"{name}.{format}{suffix}"
    path.write_bytes(written)
    size = len(rows)
    # If a record of several lines cannot be read, its lines are rejected separately.
    most = max(size, content.count(b"\n") + content.count(b"\r") - 1) if format == "csv" else size
    words = [{"NAME": name, "FILE": str(path)}.get(word, word) for word in shlex.split(importer.command)]
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        status = exit_status.run(partial(call_command, *words, "--json", stdout=out, stderr=errors), listens=False)
    output = f"{errors.getvalue()}{out.getvalue()}"
    message = f"{' '.join(words)} ended with {status}: {output[-2000:]}"
    if status not in (0, 1, 3) or "Traceback" in output:
        raise Lost(message)
    if status:
        if not errors.getvalue().strip() or (importer.stored and importer.stored(name)):
            raise Lost(f"it was refused without a word, or not as a whole: {message}")
        return Counter(given=size, refused=size, files=1)
    counts = importer.counts(json.loads(out.getvalue()))
    if not size <= counts.total() <= most or (importer.stored and importer.stored(name) != counts["accepted"]):
        stored = importer.stored(name) if importer.stored else counts["accepted"]
        raise Lost(f"of {size} rows it told {dict(counts)} and has {stored}: {message}")
    return counts + Counter(given=size)
