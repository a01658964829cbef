"""The rows of a draw between the corpus and the database: on disk, so that a draw of any size takes no memory."""

import tempfile
import weakref
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.conf import settings


class Spooled:
    """Rows in their order, in a file that is gone with them."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._file = tempfile.TemporaryFile(dir=Path(settings.DATA_DIR) / "tmp")  # noqa: SIM115 - closed with the rows
        weakref.finalize(self, self._file.close)
        self._size = 0
        with pa.ipc.new_stream(self._file, rows.schema) as writer:
            for batch in rows:
                writer.write_batch(batch)
                self._size += batch.num_rows

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._batches():
            yield from rows_in(batch)

    def keys(self) -> list[str]:
        return [key for batch in self._batches() for key in batch.column("id").to_pylist()]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)


def rows_in(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Each row by its columns; a vote is a pair of language and score."""
    columns = [_pairs(each) if pa.types.is_list(each.type) else each.to_pylist() for each in batch.columns]
    for values in zip(*columns, strict=True):
        yield dict(zip(batch.schema.names, values, strict=True))


def _pairs(votes: pa.ListArray) -> list[list[list[Any]]]:
    """What to_pylist gives, from the columns of what the lists hold; it goes through an object for each value."""
    held = votes.flatten()
    if not pa.types.is_struct(held.type):
        return votes.to_pylist()
    languages = held.field("language").dictionary_encode()
    names = languages.dictionary.to_pylist()
    scores = held.field("score").to_numpy(zero_copy_only=False).tolist()
    pairs = [[names[place], score] for place, score in zip(languages.indices.to_numpy().tolist(), scores, strict=True)]
    ends = accumulate(votes.value_lengths().to_pylist(), initial=0)
    return [pairs[start:end] for start, end in pairwise(ends)]
