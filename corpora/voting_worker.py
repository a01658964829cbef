"""What a worker process of prelabel.py does: the votes on some posts.

It imports no more than that takes: a worker that has loaded DuckDB ends with pages of complaints.
"""

import multiprocessing
import os
import threading
from typing import Any

import pyarrow as pa

from corpora.core.detectors import DETECTORS
from corpora.core.masking import clean_for_detectors, count_letters
from corpora.core.voting import unanimous
from corpora.schemas import VOTES_SCHEMA

# Votes, and on how many of the posts the detectors are unanimous.
Chunk = tuple[pa.RecordBatch, int]


def end_with_parent() -> None:
    """In a worker: end when the parent does, however it does; a pool's worker would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


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
