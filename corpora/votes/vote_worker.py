"""What a worker process of votes/vote_run.py does, or an executor of Spark: it computes the votes on some posts.

It imports no more than that takes: a worker that has loaded DuckDB ends with pages of complaints.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.core.detectors import CODES, DETECTORS, Rankings
from corpora.core.masking import clean_for_detectors, count_letters
from corpora.core.voting import all_unanimous
from corpora.storage.schemas import VOTES_SCHEMA

# Votes, and on how many of the posts the detectors are unanimous.
Chunk = tuple[pa.RecordBatch, int]


def main() -> None:
    """Answer what the parent sends, a function and its argument, until the parent is gone. argv has the connection."""
    connection = Connection(int(sys.argv[1]))
    asked = SimpleQueue[Any]()
    # What is asked next is read meanwhile. Otherwise each would wait until the other has read what it sends.
    Thread(target=_hear, args=(connection, asked), daemon=True).start()
    while (question := asked.get()) is not None:
        vote, posts = question
        try:
            said = vote(posts)
        except Exception as error:  # noqa: BLE001 - the parent raises it
            said = error
        with suppress(OSError):  # the parent is gone
            connection.send(said)


def _hear(connection: Connection, asked: SimpleQueue[Any]) -> None:
    with suppress(EOFError, OSError):  # an OSError in the middle of a message
        while True:
            asked.put(connection.recv())
    asked.put(None)


def vote_on(k: int, posts: pa.RecordBatch) -> Chunk:
    """The votes on some posts, k languages a detector at most."""
    cleaned = [clean_for_detectors(text) for text in posts.column("text").to_pylist()]
    rankings = {detector: detect(cleaned, k) for detector, detect in DETECTORS.items()}
    columns: list[Any] = [posts.column("id"), pa.array(count_letters(cleaned), pa.int32())]
    columns += [_column(ranked) for ranked in rankings.values()]
    agreed = all_unanimous([ranked.first() for ranked in rankings.values()])
    return pa.RecordBatch.from_arrays(columns, schema=VOTES_SCHEMA), int(agreed.sum())


# The votes, and with the first post of a batch on how many of it the detectors are unanimous.
COUNTED_SCHEMA = VOTES_SCHEMA.append(pa.field("unanimous", pa.int64(), nullable=False))


def vote_on_all(k: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same of many batches, for an engine that hands on columns alone."""
    for posts in batches:
        votes, agreed = vote_on(k, posts)
        counts = pa.array(np.r_[agreed, np.zeros(len(votes) - 1, np.int64)][: len(votes)], pa.int64())
        yield pa.RecordBatch.from_arrays([*votes.columns, counts], schema=COUNTED_SCHEMA)


def _column(ranked: Rankings) -> pa.Array:
    named = pa.DictionaryArray.from_arrays(ranked.codes, pa.array(CODES)).dictionary_decode()
    votes = pa.StructArray.from_arrays([named, pa.array(ranked.scores)], ["language", "score"])
    return pa.ListArray.from_arrays(ranked.offsets, votes)
