"""What a worker process of prelabel.py does: it computes the votes on some posts.

It imports no more than that takes: a worker that has loaded DuckDB ends with pages of complaints.
"""

import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from corpora.core.detectors import DETECTORS
from corpora.core.masking import clean_for_detectors, count_letters
from corpora.core.voting import unanimous
from corpora.schemas import VOTES_SCHEMA

# Votes, and on how many of the posts the detectors are unanimous.
Chunk = tuple[pa.RecordBatch, int]


def main() -> None:
    """Answer what the parent sends, a function and its argument, until the parent is gone. argv has the connection."""
    connection = Connection(int(sys.argv[1]))
    with suppress(EOFError, ConnectionError):
        while True:
            vote, posts = connection.recv()
            try:
                said = vote(posts)
            except Exception as error:  # noqa: BLE001 - the parent raises it
                said = error
            connection.send(said)


def vote_on(k: int, posts: pa.RecordBatch) -> Chunk:
    """The votes on some posts, k languages a detector at most."""
    texts = posts.column("text").to_pylist()
    cleaned = [clean_for_detectors(text) for text in texts]
    rankings = {detector: detect(cleaned, k) for detector, detect in DETECTORS.items()}
    columns: list[Any] = [posts.column("id"), pa.array(map(count_letters, texts), pa.int32())]
    for detector, ranked in rankings.items():
        named = [[{"language": code, "score": score} for code, score in ranking] for ranking in ranked]
        columns.append(pa.array(named, VOTES_SCHEMA.field(detector).type))
    unanimously = sum(
        unanimous(dict(zip(rankings, votes, strict=True))) is not None for votes in zip(*rankings.values(), strict=True)
    )
    return pa.RecordBatch.from_arrays(columns, schema=VOTES_SCHEMA), unanimously
