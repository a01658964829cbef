"""Steps shared by all importers: lock the corpus, validate and stage rows, and write them without duplicates.

An importer locks the corpus (`begin_import`), reads rows (corpora/sources/readers.py) and validates them
(`validate_rows`). It either logs faulty rows (`log_faulty`) or rejects the whole file (`require_valid`). Valid rows are
written to a `Stage`, a Parquet file that is searched for duplicates with a query. New files take effect with the next
manifest, so a failed import leaves no trace.

Each step holds a single batch of rows in memory, so files can have any size.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

import pyarrow as pa
from django.conf import settings

from corpora.core import NAMED, CorpusError, TooManyRejected, listed
from corpora.core.arrow import pq
from corpora.core.records import Record, RecordError, read_record
from corpora.engines import Store, explain_full_disk, open_store
from corpora.sources.compression import BINARY, Progress, explain_damage
from corpora.sources.readers import Row
from corpora.sources.text import MAX_LINE, NOT_UTF8, NUL, UTF_8, Fault, detect_utf16, encoding_of, lines_of
from corpora.storage.layout import Manifest, Part, Predictions, Scores, digest_of, lock_corpus, name_of, part_name, sync
from corpora.storage.schemas import schema_of

PART_ROWS = 100_000
_BATCH_ROWS = 10_000
_BATCH_CHARACTERS = 16_000_000
LINE = pa.field("line", pa.int64(), nullable=False)
_STAGING = "staging/rows.parquet"
Taken = TypeVar("Taken")


# --- Limits on the number of rejected rows in a file, and the error messages about them.
#
# A file with many rejected rows is not imported, because users could overlook the loss, and the remaining rows would
# not be a representative sample.


MOST = 0.05  # default for the maximum share of rejected rows
HOPELESS = 100_000  # number of rejected rows after which reading may stop early


def too_many(count: int, rows: int, max_share: float) -> bool:
    """Return whether the share of rejected rows exceeds `max_share`.

    count: number of rejected rows
    rows: number of all rows
    """
    return count > max_share * rows


@dataclass
class RejectLog:
    """Logs the rejected rows of a file as JSON lines.

    listed: path of the log
    file: `listed`, opened for writing while rows are added
    count: number of rejected rows
    rows: number of all rows
    first: line number of the first rejected row, and the reason
    """

    path: Path
    format: str
    listed: Path
    file: TextIO | None = None
    count: int = 0
    rows: int = 0
    first: tuple[int, str] = (0, "")

    def add(self, line: int, reason: str) -> None:
        assert self.file
        self.count += 1
        if self.count == 1:
            self.first = (line, reason)
        entry = {"file": name_of(self.path), "line": line, "reason": reason}
        self.file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def check_hopeless(self, max_share: float) -> None:
        """Raise TooManyRejected if HOPELESS rows, and most of the rows so far, were rejected.

        Otherwise, a single unclosed quote could cost an hour of reading and a log of millions of rejected rows.
        """
        if self.count < HOPELESS or not too_many(self.count, self.rows, max(max_share, 0.5)):
            return
        line, reason = self.first
        raise TooManyRejected(
            f"Nothing was imported from {self.path}, because {self.count:,} of the first {self.rows:,} rows were "
            f"rejected. The other rows were not read. First rejected row: line {line:,}: {reason} Fix the file, or "
            "import only the valid rows with --max-rejects 100%."
        )

    def check(self, max_share: float) -> None:
        """Raise TooManyRejected at the end of a file if the share of rejected rows exceeds `max_share`."""
        if not too_many(self.count, self.rows, max_share):
            return
        line, reason = self.first
        verb = "was" if self.count == 1 else "were"
        raise TooManyRejected(
            f"Nothing was imported from {self.path}, because {self.count:,} of its {self.rows:,} rows {verb} rejected, "
            f"which exceeds --max-rejects {max_share:.4g}. First rejected row: line {line:,}: {reason} "
            f"{encoding_hint(self.path, self.format, reason)}All rejected rows are listed in {self.listed}. Fix the "
            "file and run the command again, or import only the valid rows with a higher --max-rejects."
        )

    def nothing_accepted(self) -> CorpusError:
        """Return the error for a file without accepted rows."""
        if not self.count:
            return empty_file(self.path)
        line, reason = self.first
        rejected = f"all of its {self.count:,} rows were" if self.count > 1 else "its only row was"
        hint = "Map the columns with --column. " if reason.endswith("is missing.") else ""
        return TooManyRejected(
            f"Nothing was imported from {self.path}, because {rejected} rejected. First rejected row: line {line:,}: "
            f"{reason} {hint}{encoding_hint(self.path, self.format, reason)}All rejected rows are listed in "
            f"{self.listed}."
        )


# --- Files that are imported completely or not at all.


def empty_file(path: Path) -> CorpusError:
    return CorpusError(f"{path} contains no rows.")


def invalid_file(path: Path, format: str, line: int, reason: str, count: int = 1) -> CorpusError:
    """Return the error for a file with faulty rows.

    line, reason: line number of the first faulty row, and what is wrong with it
    count: number of faulty rows
    """
    total = f"This is the first of {count:,} invalid rows. " if count > 1 else ""
    hint = encoding_hint(path, format, reason)
    return CorpusError(f"{path}, line {line:,}: {reason} {total}{hint}Nothing was imported from the file.")


def text_lines(path: Path, format: str, progress: Progress | None = None) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each non-blank line.

    Raise CorpusError if a line is too long, is not UTF-8 or contains a NUL character.
    """
    with explain_damage(path, format):
        for number, line in lines_of(path, MAX_LINE, progress, detect_utf16(path)):
            if isinstance(line, Fault):
                raise invalid_file(path, format, number, line.reason)
            if b"\0" in line:
                raise invalid_file(path, format, number, NUL)
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise invalid_file(path, format, number, NOT_UTF8) from None
            if text.strip():
                yield number, text.rstrip("\r\n")


def duplicate_ids(path: Path, repeats: Iterable[tuple[str, int, int]], total: int) -> CorpusError:
    """Return the error for a file with duplicate ids.

    repeats: the first duplicates, as (id, line, line of the first occurrence) tuples
    total: number of duplicates
    """
    repeated_ids = [f"{key} (line {line:,}, first in line {first_line:,})" for key, line, first_line in repeats]
    return CorpusError(
        f"{path} repeats {listed(repeated_ids, total, 'id')}. Keep one row for each id. Nothing was imported."
    )


def encoding_hint(path: Path, format: str, reason: str = NOT_UTF8) -> str:
    """Return advice on the likely encoding of a text file that is not UTF-8, or "" for other files.

    The advice ends with a space.

    reason: why the first row was rejected; there is advice only for a row that is not UTF-8
    """
    if "not UTF-8" not in reason or format in BINARY or not path.is_file() or zipfile.is_zipfile(path):
        return ""
    encoding = encoding_of(path)
    if encoding == UTF_8:
        return ""
    if not encoding:
        return (
            "The file is not UTF-8 and seems to use an encoding for a non-Latin script. Save it as UTF-8; "
            "import_corpus can also read it with --encoding. "
        )
    name = encoding.upper()
    return f"The file seems to be {name}. Save it as UTF-8, for example with iconv -f {name} -t UTF-8. "


# --- The steps of an import.


@contextmanager
def begin_import(name: str, consequence: str, check: Callable[[], Manifest]) -> Iterator[tuple[Path, Manifest]]:
    """Lock a corpus and yield its directory and manifest.

    consequence: the consequence to report if the disk is full, such as "nothing was imported from a.csv"
    check: function that returns the manifest, or raises an error if the import is impossible; it is called before
        anything is written, and again while the corpus is locked
    """
    check()
    with lock_corpus(name) as directory, explain_full_disk(consequence):
        yield directory, check()


def validate_rows(rows: Iterable[Row], read: Callable[[dict[str, Any]], Taken]) -> Iterator[tuple[int, Taken | Fault]]:
    """Apply `read` to each row. Yield the line number with the result, or with a Fault if `read` raises RecordError."""
    for line, raw in rows:
        if isinstance(raw, Fault):
            yield line, raw
            continue
        try:
            yield line, read(raw)
        except RecordError as error:
            yield line, Fault(str(error))


def log_faulty(
    rows: Iterable[tuple[int, Taken | Fault]], log: RejectLog, max_share: float
) -> Iterator[tuple[int, Taken]]:
    """Yield the valid rows, and log the faulty ones.

    max_share: maximum share of rejected rows

    Raise CorpusError if there are no rows. Raise TooManyRejected before the end of the file if it is clearly unusable.
    """
    for line, row in rows:
        log.rows += 1
        if log.count >= HOPELESS:
            log.check_hopeless(max_share)
        if isinstance(row, Fault):
            log.add(line, row.reason)
        else:
            yield line, row
    if not log.rows:
        raise empty_file(log.path)


def require_valid(path: Path, format: str, rows: Iterable[tuple[int, Taken | Fault]]) -> Iterator[tuple[int, Taken]]:
    """Yield the rows of a file that must be imported completely or not at all.

    Raise CorpusError if there are no rows. If rows are faulty, raise CorpusError at the end of the file, so that the
    message can state their number.
    """
    first_fault, fault_count, line = (0, ""), 0, 0
    for line, row in rows:
        if isinstance(row, Fault):
            first_fault, fault_count = first_fault if fault_count else (line, row.reason), fault_count + 1
        elif not fault_count:
            yield line, row
    if fault_count:
        raise invalid_file(path, format, *first_fault, fault_count)
    if not line:
        raise empty_file(path)


class Stage:
    """Writes rows to a Parquet file in batches. The values of a row must be in the order of the schema's columns."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        path.parent.mkdir(exist_ok=True)
        self.schema, self.writer = schema, pq.ParquetWriter(path, schema)
        self.rows: list[Sequence[Any]] = []
        self.characters = 0

    def add(self, row: Sequence[Any], characters: int = 0) -> None:
        self.rows.append(row)
        self.characters += characters
        if len(self.rows) >= _BATCH_ROWS or self.characters > _BATCH_CHARACTERS:
            self._write()

    def _write(self) -> None:
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        self.writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
        self.rows, self.characters = [], 0

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, failed: type[BaseException] | None, *_why: object) -> None:
        if failed is None:
            self._write()
        self.writer.close()


def check_repeats(store: Store, path: Path) -> None:
    """Raise CorpusError if an id occurs more than once in the `staged` view (columns `line` and `id`)."""
    if rows := store.fetch("predictions_repeated", NAMED):
        raise duplicate_ids(path, [(row["id"], row["line"], row["first_line"]) for row in rows], rows[0]["total"])


def first_ids(store: Store, query: str) -> tuple[int, list[str]]:
    """Run a query with the columns `id` and `total`. Return the total number of matching rows, and the first ids."""
    rows = store.fetch(query, NAMED)
    return (rows[0]["total"] if rows else 0), [row["id"] for row in rows]


def new_file(folder: Path, entries: Iterable[Predictions | Scores]) -> Path:
    """Return an unused path for a new file, so that existing files can be kept until the new one is committed."""
    return folder / part_name(1 + max((int(Path(entry.file).stem) for entry in entries), default=0))


def write_file(file: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches to a Parquet file, and sync it to disk."""
    with pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema))
    sync(file)
    sync(file.parent)


# --- The import of posts and records: rows are staged and then written to parts.


def stage(
    directory: Path,
    rows: Iterable[Row],
    log: RejectLog,
    manifest: Manifest,
    language: str = "",
    may_be_empty: Collection[str] = (),
    max_share: float = 1.0,
) -> None:
    """Write valid rows to the staging file, and log faulty ones.

    language: language declared for the whole file
    may_be_empty: fields that may be empty
    max_share: maximum share of rejected rows
    """
    key, fields = settings.AUTHOR_KEY.encode(), manifest.fields
    schema = _staged_schema(manifest)
    columns = [(name, fields.index(name) if name in fields else None) for name in schema.names[1:]]

    def read(raw: dict[str, Any]) -> Record:
        return read_record(raw, key, fields, language, manifest.declared, may_be_empty)

    with Stage(directory / _STAGING, schema) as staged:
        for line, record in log_faulty(validate_rows(rows, read), log, max_share):
            values = (getattr(record, name) if index is None else record.fields[index] for name, index in columns)
            staged.add((line, *values), len(record.text))


def _staged_schema(manifest: Manifest) -> pa.Schema:
    return pa.schema([LINE, *schema_of(manifest.fields, manifest.declared)])


def deduplicate(name: str, directory: Path, manifest: Manifest, log: RejectLog) -> tuple[list[Part], int]:
    """Write the staged rows with new ids to new parts. Return these parts and the number of duplicates.

    If several posts have the same id, the first is kept, even if it is from an earlier file. A later post with the same
    text counts as a duplicate, and a later post with a different text is rejected. For records, all fields, the
    language and the declared labels are compared instead of the text.
    """
    duplicates = 0
    fields, schema = manifest.fields, schema_of(manifest.fields, manifest.declared)
    query, difference = (
        ("repeats_of_records", _DIFFERENCES[manifest.declared]) if fields else ("repeats", "another text")
    )
    with open_store(name, manifest=manifest) as store, pq.ParquetFile(directory / _STAGING) as staged:
        store.view("staged", [directory / _STAGING], _staged_schema(manifest), fields)
        repeats = (row for batch in store.query(query) for row in zip(*batch.to_pydict().values(), strict=True))
        writer = PartWriter(directory / "parts", len(manifest.parts), schema)
        next_line, is_duplicate = next(repeats, (None, False))
        for batch in staged.iter_batches(_BATCH_ROWS):
            keep = []
            for line, key in zip(batch.column("line").to_pylist(), batch.column("id").to_pylist(), strict=True):
                keep.append(line != next_line)
                if line == next_line:
                    if is_duplicate:
                        duplicates += 1
                    else:
                        log.add(line, f"The id {key} already occurred with {difference}. The first row is kept.")
                    next_line, is_duplicate = next(repeats, (None, False))
            writer.write(batch.filter(pa.array(keep)).select(schema.names))
        return writer.close(), duplicates


_DIFFERENCES = {False: "other fields or another language", True: "other fields, another language or other labels"}


class PartWriter:
    """Splits a stream of rows into parts with PART_ROWS rows each, and writes them."""

    def __init__(self, directory: Path, number: int, schema: pa.Schema) -> None:
        self.directory, self.number, self.schema = directory, number, schema
        self.parts: list[Part] = []
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        while self.rows + batch.num_rows >= PART_ROWS:
            room = PART_ROWS - self.rows
            self._add(batch.slice(0, room))
            batch = batch.slice(room)
            self._finish()
        self._add(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if not self.rows:
            self.number += 1
            self.path = self.directory / part_name(self.number)
            self.writer = pq.ParquetWriter(self.path, self.schema)
            self.contents = {column: hashlib.sha256() for column in self.schema.names if column != "author"}
        self.writer.write_batch(batch)
        for column, content in self.contents.items():
            # Concatenate the values, so that the digest doesn't depend on how the rows are split into batches.
            values = json.dumps(batch.column(column).to_pylist(), default=str)
            content.update(f"{values[1:-1]}, ".encode())
        self.rows += batch.num_rows

    def _finish(self) -> None:
        if self.rows:
            self.writer.close()
            sync(self.path)
            lines = [f"{column} {content.hexdigest()}" for column, content in self.contents.items()]
            content = hashlib.sha256("\n".join(lines).encode()).hexdigest()
            self.parts.append(Part(self.path.name, self.rows, digest_of(self.path), content))
            self.rows = 0

    def close(self) -> list[Part]:
        self._finish()
        return self.parts
