"""What a worker process of votes/vote_run.py does, or an executor of Spark: it computes the votes on some posts.

It imports no more than that takes: a worker that has loaded DuckDB ends with pages of complaints.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.core.detectors import CODES, Rankings, ranked
from corpora.core.masking import clean_for_detectors, count_letters
from corpora.core.voters import Voter, all_unanimous
from corpora.storage.schemas import votes_schema

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


def vote_on(k: int, voters: Sequence[Voter], posts: pa.RecordBatch) -> Chunk:
    """The votes on some posts, k languages a voter at most."""
    cleaned = [clean_for_detectors(text) for text in posts.column("text").to_pylist()]
    rankings = [ranked(voter.vote(cleaned, k), k) for voter in voters]
    columns: list[Any] = [posts.column("id"), pa.array(count_letters(cleaned), pa.int32()), *map(_column, rankings)]
    agreed = all_unanimous([each.first() for each in rankings])
    schema = votes_schema(voter.name for voter in voters)
    return pa.RecordBatch.from_arrays(columns, schema=schema), int(agreed.sum())


def counted_schema(voters: Iterable[Voter]) -> pa.Schema:
    """The votes, and with the first post of a batch on how many of it the voters are unanimous."""
    return votes_schema(voter.name for voter in voters).append(pa.field("unanimous", pa.int64(), nullable=False))


def vote_on_all(k: int, voters: Sequence[Voter], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same of many batches, for an engine that hands on columns alone."""
    for posts in batches:
        votes, agreed = vote_on(k, voters, posts)
        counts = pa.array(np.r_[agreed, np.zeros(len(votes) - 1, np.int64)][: len(votes)], pa.int64())
        yield pa.RecordBatch.from_arrays([*votes.columns, counts], schema=counted_schema(voters))


def _column(rankings: Rankings) -> pa.Array:
    named = pa.DictionaryArray.from_arrays(rankings.codes, pa.array(CODES)).dictionary_decode()
    votes = pa.StructArray.from_arrays([named, pa.array(rankings.scores)], ["language", "score"])
    return pa.ListArray.from_arrays(rankings.offsets, votes)
