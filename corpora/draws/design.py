"""The designs of draws: the values that each takes and refuses, before any corpus is read; and the rows of a draw.

`uniform` takes posts, each with the same chance; `recall` and `precision` look for one language, and `triggers` does so
among the posts of a uniform task; `records` takes some of each language. Recall and precision follow "Evaluating
language identification performance" (Twitter, 2015), sections Recall and Precision.
"""

import json
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.conf import settings

from corpora.core import CorpusError
from corpora.core.voters import VOTERS

Window = tuple[datetime, datetime]  # from the first moment until before the second

# The article's: 2,000 posts of July by users who wrote in the language at least 10% of the time between March and
# May; "say, one thousand" posts for which the classifier triggers.
RECALL_SIZE, PRECISION_SIZE = 2_000, 1_000
SHARE, LEAST_POSTS = Fraction(1, 10), 1
HISTORY: Window = (datetime(2014, 3, 1, tzinfo=UTC), datetime(2014, 6, 1, tzinfo=UTC))
WINDOW: Window = (datetime(2014, 7, 1, tzinfo=UTC), datetime(2014, 8, 1, tzinfo=UTC))

_MAX_TERM = 10**6  # of the share as a fraction, so that its products with counts of posts fit 64 bits


@dataclass(frozen=True)
class Design:
    """name: that of the frame's query; values: for the view `design` of the queries; parameters: for the record, as
    JSON."""

    name: str
    values: dict[str, Any]
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Taken:
    """What was found for one language. rows: posts with their votes, or records, in the draw's order."""

    language: str
    frame_size: int
    parameters: dict[str, Any]
    rows: Collection[dict[str, Any]]


def recall_design(share: Fraction, least_posts: int, history: Window, window: Window) -> Design:
    """Posts of the window by authors who wrote in the language in the history. CorpusError for senseless values."""
    share = Fraction(str(share))  # a float's decimal digits, not the nearest binary fraction
    if not 0 < share <= 1:
        raise CorpusError(f"The share of an author's posts is {share}; it must be above 0 and at most 1.")
    if share.denominator > _MAX_TERM:
        raise CorpusError(f"The share of an author's posts is {share}; round it to six places.")
    if least_posts < 1:
        raise CorpusError(f"The least number of an author's posts is {least_posts}; it must be 1 or more.")
    _check_window("history", history)
    _check_window("window", window)
    if window[0] < history[1]:
        raise CorpusError(
            f"The history ({spoken(history)}) must end before the window ({spoken(window)}) begins; otherwise "
            "authors are chosen by the very posts that are drawn."
        )
    return Design(
        name="recall",
        values={
            "least_posts": least_posts,
            "share_over": share.numerator,
            "share_under": share.denominator,
            "history_start": history[0],
            "history_end": history[1],
            "window_start": window[0],
            "window_end": window[1],
        },
        parameters={
            "share": str(share),
            "least_posts": least_posts,
            "history": [moment.isoformat() for moment in history],
            "window": [moment.isoformat() for moment in window],
        },
    )


def precision_design(window: Window | None) -> Design:
    """Posts (of the window) that the predictor labels with the language. CorpusError for an empty window."""
    if window is None:
        return Design("precision", {}, {})
    _check_window("window", window)
    return Design(
        name="precision",
        values={"window_start": window[0], "window_end": window[1]},
        parameters={"window": [moment.isoformat() for moment in window]},
    )


def triggers_design(of: str) -> Design:
    """Posts of a uniform task that nobody has read and the predictor labels with the language. of: the task's name."""
    return Design("triggers", {}, {"of": of})


def _check_window(name: str, window: Window) -> None:
    start, end = window
    if start.tzinfo is None or end.tzinfo is None:
        raise CorpusError(f"The {name} must be given in times with an offset, such as 2014-07-01T00:00:00Z.")
    if end <= start:
        raise CorpusError(f"The {name} ({spoken(window)}) is empty; its end must come after its start.")


def spoken(window: Window) -> str:
    """A window in words; midnights as days."""
    moments = [moment.astimezone(UTC) for moment in window]
    return " to ".join(f"{moment:%Y-%m-%dT%H:%M:%SZ}".removesuffix("T00:00:00Z") for moment in moments)


def check_asked(size: int | None, seed: str, noun: str = "post") -> None:
    """CorpusError if nothing is asked for or the seed is invalid. noun: what is drawn."""
    if size is not None and size < 1:
        raise CorpusError(f"Draw at least one {noun}.")
    if not 0 < len(seed) <= 64:
        raise CorpusError(f"The seed has {len(seed)} characters; give it 1 to 64.")


# --- The rows of a draw, between the corpus and the database: in columns, since as Python's own values they would take
# twenty times the memory; and on disk where there may be any number of them.


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
    if VOTERS.keys() <= columns.keys():
        votes = {detector: columns.pop(detector) for detector in VOTERS}
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
    for mark, (detector, lists) in zip("{" + "," * (len(votes) - 1), votes.items(), strict=True):
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
