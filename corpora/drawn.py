"""The rows that a draw took, between the corpus and the database: in columns, since as Python's own values they would
take twenty times the memory; and on disk where there may be any number of them.
"""

import json
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.conf import settings

from corpora.core.voting import DETECTOR_NAMES

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
    """Each row by its columns. A post has its votes as the database keeps them, as JSON, in the column `votes`, and in
    `unanimous` the language that all detectors name first, or None.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if set(DETECTOR_NAMES) <= columns.keys():
        votes = {detector: columns.pop(detector) for detector in DETECTOR_NAMES}
        columns |= {"votes": _as_json(votes), "unanimous": _unanimous(list(votes.values()))}
    for values in zip(*map(_values, columns.values()), strict=True):
        yield dict(zip(columns, values, strict=True))


def _values(column: pa.Array) -> list[Any]:
    if not pa.types.is_timestamp(column.type):
        found: list[Any] = column.to_pylist()
        return found
    # to_pylist would take fifty times as long.
    moments = pc.cast(column, pa.timestamp("us")).to_numpy(zero_copy_only=False).tolist()
    return [moment and moment.replace(tzinfo=UTC) for moment in moments]


def _as_json(votes: Mapping[str, pa.ListArray]) -> pa.StringArray:
    """As json.dumps would write them; it would take fifteen times as long."""
    parts: list[Any] = []
    for mark, (detector, lists) in zip("{,,", votes.items(), strict=True):
        parts += [f'{mark}"{detector}": [', _lists_as_json(lists), "]"]
    return pc.binary_join_element_wise(*parts, "}", "")


def _lists_as_json(votes: pa.ListArray) -> pa.StringArray:
    """What is between the brackets of each list: pairs of a language and its score."""
    held = votes.flatten()
    languages = held.field("language").dictionary_encode()
    quoted = pa.array(map(json.dumps, languages.dictionary.to_pylist()), pa.string()).take(languages.indices)
    scores = pc.cast(held.field("score"), pa.string())
    # A whole number is read as one unless it says that it is none.
    scores = pc.if_else(pc.match_substring_regex(scores, "[.e]"), scores, pc.binary_join_element_wise(scores, ".0", ""))
    pairs = pc.binary_join_element_wise("[", quoted, ", ", pc.fill_null(scores, "null"), "]", "")
    return pc.binary_join(pa.ListArray.from_arrays(_starts(votes), pairs), ", ")


def _unanimous(votes: Sequence[pa.ListArray]) -> pa.StringArray:
    firsts = []
    for lists in votes:
        starts = _starts(lists)
        there = pc.greater(pc.list_value_length(lists), 0)
        firsts.append(lists.flatten().field("language").take(pc.if_else(there, starts[:-1], None)))
    same = reduce(pc.and_, [pc.equal(firsts[0], one) for one in firsts[1:]])
    return pc.if_else(same, firsts[0], None)


def _starts(lists: pa.ListArray) -> pa.Int32Array:
    """Where each begins in what they all hold, and where the last one ends."""
    return pc.subtract(lists.offsets, lists.offsets[0])
