"""The rows that a draw took, between the corpus and the database: in columns, since as Python's own values they would
take twenty times the memory; and on disk where there may be any number of them.
"""

import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.conf import settings

_BATCH_ROWS = 1_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in their order, each made when it is asked for. batches: reads them from the first one on."""

    batches: Callable[[], Iterable[pa.RecordBatch]]
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from rows_in(batch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def keys(self) -> list[str]:
        return [key for batch in self.batches() for key in batch.column("id").to_pylist()]


def in_memory(table: pa.Table) -> Rows:
    return Rows(lambda: table.to_batches(max_chunksize=_BATCH_ROWS), table.num_rows)


def on_disk(rows: pa.RecordBatchReader) -> Rows:
    """In a file that is gone with the rows."""
    file = tempfile.TemporaryFile(dir=Path(settings.DATA_DIR) / "tmp")  # noqa: SIM115 - closed with the rows
    size = 0
    with pa.ipc.new_stream(file, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
            size += batch.num_rows

    def batches() -> Iterator[pa.RecordBatch]:
        file.seek(0)
        yield from pa.ipc.open_stream(file)

    found = Rows(batches, size)
    weakref.finalize(found, file.close)
    return found


def by_language(table: pa.Table, languages: Iterable[str]) -> dict[str, pa.Table]:
    """The rows of each language, in their order."""
    return {language: table.filter(pc.field("language") == language) for language in languages}


def rows_in(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Each row by its columns; a vote is a pair of language and score."""
    columns = [_pairs(each) if pa.types.is_list(each.type) else each.to_pylist() for each in batch.columns]
    for values in zip(*columns, strict=True):
        yield dict(zip(batch.schema.names, values, strict=True))


def _pairs(votes: pa.ListArray) -> list[list[list[Any]]]:
    """What to_pylist gives, from the columns of what the lists hold; it goes through an object for each value."""
    held = votes.flatten()
    if not pa.types.is_struct(held.type):
        found: list[Any] = votes.to_pylist()
        return found
    languages = held.field("language").dictionary_encode()
    names = languages.dictionary.to_pylist()
    scores = held.field("score").to_numpy(zero_copy_only=False).tolist()
    pairs = [[names[place], score] for place, score in zip(languages.indices.to_numpy().tolist(), scores, strict=True)]
    ends = accumulate(votes.value_lengths().to_pylist(), initial=0)
    return [pairs[start:end] for start, end in pairwise(ends)]
