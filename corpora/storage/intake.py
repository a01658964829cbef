"""One file's rows on their way into a corpus: they are staged as they are read, then written into parts without
repeats.

Both steps hold one batch in memory, whatever the size of the file; import_corpus.py commits what they have written.
"""

import hashlib
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.parquet as pq
from django.conf import settings

from corpora.core.records import Record, RecordError, read_record
from corpora.engines import asking
from corpora.schemas import schema_of
from corpora.sources.readers import Row
from corpora.sources.rejects import HOPELESS, check_hopeless
from corpora.sources.text import Fault
from corpora.storage.layout import Manifest, Part, digest_of, part_name, sync

PART_ROWS = 100_000
_BATCH_ROWS = 10_000
_BATCH_CHARACTERS = 16_000_000
_LINE = pa.field("line", pa.int64(), nullable=False)
_STAGING = "staging/rows.parquet"


class RejectLog:
    """The list of what was refused of one file, written as it goes: JSON lines of file, line, reason."""

    def __init__(self, source: str, file: TextIO, path: Path | None = None) -> None:
        self.source, self.file, self.path = source, file, path or Path(source)
        self.count = 0
        self.first: tuple[int, str] = (0, "")

    def add(self, line: int, reason: str) -> None:
        self.count += 1
        if self.count == 1:
            self.first = (line, reason)
        entry = {"file": self.source, "line": line, "reason": reason}
        self.file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def stage(
    directory: Path,
    rows: Iterator[Row],
    log: RejectLog,
    fields: tuple[str, ...] = (),
    language: str = "",
    declared: bool = False,
    may_be_empty: Collection[str] = (),
    most: float = 1.0,
) -> int:
    """Write the rows that are records to the staging file and the others to the log; returns the count of all rows.

    fields: the corpus's; language: the one declared for the whole file; declared: whether labels come with each;
    may_be_empty: those of the fields that need no text. most: the share of the rows that may be rejected.
    """
    key = settings.AUTHOR_KEY.encode()
    count = characters = 0
    batch: list[tuple[int, Record]] = []
    path = directory / _STAGING
    path.parent.mkdir(exist_ok=True)
    schema = _staged_schema(fields, declared)
    with pq.ParquetWriter(path, schema) as writer:
        for line, raw in rows:
            count += 1
            if log.count >= HOPELESS:
                check_hopeless(log.path, log.count, count, log.first, most)
            if isinstance(raw, Fault):
                log.add(line, raw.reason)
                continue
            try:
                record = read_record(raw, key, fields, language, declared, may_be_empty)
            except RecordError as error:
                log.add(line, str(error))
                continue
            batch.append((line, record))
            characters += len(record.text)
            if len(batch) == _BATCH_ROWS or characters > _BATCH_CHARACTERS:
                writer.write_batch(_arrow(batch, schema, fields))
                batch.clear()
                characters = 0
        writer.write_batch(_arrow(batch, schema, fields))
    return count


def _staged_schema(fields: tuple[str, ...], declared: bool) -> pa.Schema:
    return pa.schema([_LINE, *schema_of(fields, declared)])


def _arrow(batch: list[tuple[int, Record]], schema: pa.Schema, fields: tuple[str, ...]) -> pa.RecordBatch:
    columns = [pa.array([line for line, _ in batch], pa.int64())]
    for field in list(schema)[1:]:
        if field.name in fields:
            place = fields.index(field.name)
            values = [record.fields[place] for _, record in batch]
        else:
            values = [getattr(record, field.name) for _, record in batch]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def deduplicate(name: str, directory: Path, manifest: Manifest, log: RejectLog) -> tuple[list[Part], int]:
    """Write the staged rows whose id is new as the parts that follow the manifest's; count the duplicates.

    The first post of an id stays, whether in this file or in an earlier one. The same text again is a duplicate;
    another text under the same id is a reject. For a record, every field and its language count as the text.
    """
    duplicates = 0
    fields, schema = manifest.fields, schema_of(manifest.fields, manifest.declared)
    query, other = ("repeats_of_records", _OTHER[manifest.declared]) if fields else ("repeats", "another text")
    with asking(name, manifest=manifest) as store, pq.ParquetFile(directory / _STAGING) as staged:
        store.view("staged", [directory / _STAGING], _staged_schema(fields, manifest.declared), fields)
        repeats = (row for batch in store.query(query) for row in zip(*batch.to_pydict().values(), strict=True))
        writer = PartWriter(directory / "parts", len(manifest.parts), schema)
        next_line, same = next(repeats, (None, False))
        for batch in staged.iter_batches(_BATCH_ROWS):
            keep = []
            for line, key in zip(batch.column("line").to_pylist(), batch.column("id").to_pylist(), strict=True):
                keep.append(line != next_line)
                if line == next_line:
                    if same:
                        duplicates += 1
                    else:
                        log.add(line, f"The id {key} came before with {other}; the first is kept.")
                    next_line, same = next(repeats, (None, False))
            writer.write(batch.filter(pa.array(keep)).select(schema.names))
        return writer.close(), duplicates


_OTHER = {False: "other fields or another language", True: "other fields, another language or other labels"}


class PartWriter:
    """Cuts a stream of rows into parts of PART_ROWS."""

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
            # The same bytes however the rows are batched.
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
