"""From a corpus to votes: the detectors read every post, part by part, on all cores.

A part's votes stand in a Parquet part of their own beside it; what they mean together is core/voting.py's matter.
A part is committed when it is done, so that a run that was stopped goes on where it was.
"""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.core.detectors import detector_versions
from corpora.core.errors import CorpusError
from corpora.engines import full_disk_explained
from corpora.folders import digest_of, part_name, sync
from corpora.locks import changing
from corpora.manifest import Manifest, VotesPart, manifest_of, write_manifest
from corpora.schemas import VOTES_SCHEMA
from corpora.voting_worker import Chunk, end_with_parent, vote_on

_CHUNK_ROWS = 500

Map = Callable[[Callable[[pa.RecordBatch], Chunk], Iterable[pa.RecordBatch]], Iterator[Chunk]]


def prelabel(
    name: str,
    *,
    k: int = 3,
    processes: int | None = None,
    again: bool = False,
    progress: Callable[[int], object] = lambda rows: None,
) -> Manifest:
    """Give every part of the corpus votes, k languages a detector; returns the manifest with all of them.

    `processes` None is one a core. Parts that have votes by the same detectors and k are left alone; others raise
    CorpusError or, with `again`, are done anew. `progress` hears of rows as they are done, old ones included.
    """
    if k < 1:
        raise CorpusError(f"k is {k}; each detector must name at least one language.")
    if processes is not None and processes < 1:
        raise CorpusError(f"processes is {processes}; at least one must do the work.")
    if fields := manifest_of(name).fields:
        raise CorpusError(
            f"Corpus {name} holds records of {' '.join(fields)}, whose language is declared; "
            "detectors vote on posts. Draw from it as it is."
        )
    versions = detector_versions()
    with changing(name) as directory:
        manifest = manifest_of(name)
        outdated = [votes for votes in manifest.votes if (votes.k, votes.versions) != (k, versions)]
        if outdated and not again:
            raise CorpusError(f"{_difference(name, outdated[0], k, versions)} Do them anew with --again.")
        with _mapping(processes or multiprocessing.cpu_count()) as mapping:
            for index, part in enumerate(manifest.parts):
                old = manifest.votes[index] if index < len(manifest.votes) else None
                if old and old not in outdated:
                    progress(part.rows)
                    continue
                file = directory / "votes" / _fresh_name(index + 1, old)
                with full_disk_explained(f"the votes on part {index + 1:,} of corpus {name} are not kept"):
                    rows, agreed = _vote(directory / "parts" / part.name, file, k, mapping, progress)
                    votes = VotesPart(file.name, rows, agreed, digest_of(file), k, versions)
                    manifest = replace(manifest, votes=(*manifest.votes[:index], votes, *manifest.votes[index + 1 :]))
                    write_manifest(name, manifest)
                if old:
                    (file.parent / old.name).unlink()
    return manifest


def _difference(name: str, votes: VotesPart, k: int, versions: dict[str, str]) -> str:
    if votes.k != k:
        return f"Corpus {name} has votes with k = {votes.k}, not {k}."
    changed = ", ".join(
        f"{detector} {votes.versions.get(detector)} (now {version})"
        for detector, version in versions.items()
        if votes.versions.get(detector) != version
    )
    return f"Corpus {name} has votes by {changed}."


def _fresh_name(number: int, old: VotesPart | None) -> str:
    """A name that the manifest does not use yet, so that old votes stay whole until new ones are committed."""
    name = part_name(number)
    return name.replace(".parquet", "-again.parquet") if old and old.name == name else name


@contextmanager
def _mapping(processes: int) -> Iterator[Map]:
    """An ordered map over chunks, on so many processes; one is this one."""
    if processes == 1:
        yield map
        return
    # Spawned, not forked: a fork would take over open database connections and other threads' locks.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent) as pool:
        yield pool.map


def _vote(part: Path, file: Path, k: int, mapping: Map, progress: Callable[[int], object]) -> tuple[int, int]:
    """Write the votes on one part; how many rows, and on how many the detectors are unanimous."""
    rows = agreed = 0
    chunks = pq.read_table(part, columns=["id", "text"]).to_batches(max_chunksize=_CHUNK_ROWS)
    done: list[pa.RecordBatch] = []
    for votes, unanimously in mapping(partial(vote_on, k), chunks):
        done.append(votes)
        rows += votes.num_rows
        agreed += unanimously
        progress(votes.num_rows)
    pq.write_table(pa.Table.from_batches(done, schema=VOTES_SCHEMA), file)
    sync(file)
    sync(file.parent)
    return rows, agreed
