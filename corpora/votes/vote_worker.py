"""The worker process that computes votes on posts. votes/vote_run.py starts several of them.

Spark executors also use the functions in this module. The module must not import an engine, because a worker that has
loaded DuckDB prints pages of errors when it exits.
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

from corpora.core import CorpusError, package_of
from corpora.core.detectors import CODES, Rankings, ranked
from corpora.core.masking import clean_for_detectors, count_letters
from corpora.core.voters import Voter, all_unanimous
from corpora.storage.schemas import votes_schema

# The votes on some posts, and the number of these posts with unanimous votes.
Chunk = tuple[pa.RecordBatch, int]


def main() -> None:
    """Serve requests from the parent process until it exits.

    Each request is a function and its argument. The worker calls the function and sends back the result.

    argv[1]: file descriptor of the connection
    """
    connection = Connection(int(sys.argv[1]))
    requests = SimpleQueue[Any]()
    # A thread receives the next request while the current one is processed. Otherwise, both processes could be blocked
    # in a write, each waiting for the other to read.
    Thread(target=_read_requests, args=(connection, requests), daemon=True).start()
    while (question := requests.get()) is not None:
        vote, posts = question
        try:
            result = vote(posts)
        except Exception as error:  # noqa: BLE001 - the parent raises it
            result = error
        with suppress(OSError):  # the parent has exited
            connection.send(result)


def _read_requests(connection: Connection, requests: SimpleQueue[Any]) -> None:
    with suppress(EOFError, OSError):  # OSError if the connection is closed in the middle of a message
        while True:
            requests.put(connection.recv())
    requests.put(None)


def vote_on(k: int, voters: Sequence[Voter], posts: pa.RecordBatch) -> Chunk:
    """Return the votes on posts, with at most k languages per voter."""
    cleaned = [clean_for_detectors(text) for text in posts.column("text").to_pylist()]
    rankings = [_rankings(voter, cleaned, k) for voter in voters]
    columns: list[Any] = [posts.column("id"), pa.array(count_letters(cleaned), pa.int32()), *map(_column, rankings)]
    agreed = all_unanimous([ranking.first() for ranking in rankings])
    schema = votes_schema(voter.name for voter in voters)
    return pa.RecordBatch.from_arrays(columns, schema=schema), int(agreed.sum())


def _rankings(voter: Voter, texts: Sequence[str], k: int) -> Rankings:
    """Return a voter's votes, except those below its minimum score.

    Raise CorpusError with the name of the voter's package if the votes are not valid.
    """
    try:
        rankings = ranked(voter.vote(texts, k), k)
        if (number := len(rankings.offsets) - 1) != len(texts):
            raise ValueError(f"It has {number} rankings for {len(texts)} texts.")
    except (TypeError, ValueError) as error:
        raise CorpusError(
            f"{package_of(voter)} cannot be used: the result of its detector {voter.name} is not valid. {error} Fix "
            "the package, or uninstall it."
        ) from error
    return rankings.from_score(voter.min_score)


def counted_schema(voters: Iterable[Voter]) -> pa.Schema:
    """Return the schema of votes with the additional column `unanimous`.

    In the first row of a batch, it contains the batch's number of posts with unanimous votes. In other rows, it is 0.
    """
    return votes_schema(voter.name for voter in voters).append(pa.field("unanimous", pa.int64(), nullable=False))


def vote_on_all(k: int, voters: Sequence[Voter], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the votes on batches of posts, with the schema of `counted_schema`, because Spark returns only columns."""
    for posts in batches:
        votes, agreed = vote_on(k, voters, posts)
        counts = pa.array(np.r_[agreed, np.zeros(len(votes) - 1, np.int64)][: len(votes)], pa.int64())
        yield pa.RecordBatch.from_arrays([*votes.columns, counts], schema=counted_schema(voters))


def _column(rankings: Rankings) -> pa.Array:
    codes = pa.DictionaryArray.from_arrays(rankings.codes, pa.array(CODES)).dictionary_decode()
    votes = pa.StructArray.from_arrays([codes, pa.array(rankings.scores)], ["language", "score"])
    return pa.ListArray.from_arrays(rankings.offsets, votes)
