"""Run the detectors on every post of a corpus, on all cores of this machine or on a Spark cluster.

Each part of the corpus has a Parquet file of votes. corpora/core/voters.py combines the votes of the detectors. A part
is committed once all its posts have votes. Until then, votes computed on this machine are saved in pieces, so that an
interrupted run can resume. On Spark, parts that were in progress are computed again.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

import pyarrow as pa

from corpora import system
from corpora.core import CorpusError
from corpora.core.arrow import pc, pq
from corpora.core.voters import VOTERS, Voter, voter_versions, voters_with
from corpora.engines import cluster_map, explain_full_disk
from corpora.storage import layout
from corpora.storage.layout import Manifest
from corpora.storage.schemas import votes_schema
from corpora.votes.vote_worker import Chunk, counted_schema, vote_on, vote_on_all

# --- Votes on an incomplete part. They are saved in pieces, so that an interrupted run loses at most one piece.
#
# The pieces are in <corpus>/voting/<key>/, where the key identifies the part, the voters and the options. They are
# assembled into the part's file of votes and then deleted. The file is the same as after an uninterrupted run.


PIECE_CHUNKS = 5  # chunks per piece, which take half a second, or several seconds on a busy machine


@dataclass
class Pieces:
    """The saved pieces of votes on a part.

    folder: folder of the pieces
    schema: schema of the votes
    number: number of the next piece
    chunks: chunks to save in the next piece
    """

    folder: Path
    schema: pa.Schema
    number: int = 0
    chunks: list[Chunk] = field(default_factory=list)

    def saved(self) -> Iterator[Chunk]:
        """Yield the chunks saved by an earlier run, in order.

        The number of unanimous posts in a piece comes with the piece's first chunk. All other chunks have 0.
        """
        while (file := self._file()).exists():
            with pa.ipc.open_file(file) as piece:
                agreed = int(piece.schema.metadata[b"unanimous"])
                for number in range(piece.num_record_batches):
                    batch = piece.get_batch(number)
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema), 0 if number else agreed
            self.number += 1

    def keep(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        if len(self.chunks) < PIECE_CHUNKS:
            return
        file = self._file()
        draft = file.with_suffix(".draft")
        schema = self.schema.with_metadata({"unanimous": str(sum(agreed for _, agreed in self.chunks))})
        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch, _ in self.chunks:
                writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
        layout.sync(draft)
        draft.rename(file)
        self.chunks.clear()
        self.number += 1

    def _file(self) -> Path:
        return self.folder / f"{self.number:06}.arrow"


def pieces_of(directory: Path, part: layout.Part, k: int, versions: dict[str, str], chunk_rows: int) -> Pieces:
    """Return the pieces of a part. Delete all pieces of other parts and from runs with different options."""
    key = json.dumps([part.sha256, k, versions, chunk_rows], sort_keys=True)
    folder = directory / "voting" / hashlib.sha256(key.encode()).hexdigest()[:16]
    for other_folder in (directory / "voting").glob("*"):
        if other_folder != folder:
            shutil.rmtree(other_folder)
    folder.mkdir(parents=True, exist_ok=True)
    return Pieces(folder, votes_schema(versions))


_CHUNK_ROWS = 2_000
PIECE = PIECE_CHUNKS * _CHUNK_ROWS  # number of posts in a piece
# Number of chunks that are queued for each worker, so that it need not wait for this process, which also writes the
# results.
_AHEAD = 3

Worker = subprocess.Popen[bytes]
# The votes on a part, and the part's number of posts with unanimous votes.
PartVotes = tuple[pa.Table, int]
Map = Callable[[Callable[[pa.RecordBatch], Chunk], Iterable[pa.RecordBatch]], Iterator[Chunk]]


def prelabel(
    name: str,
    *,
    k: int = 3,
    processes: int | None = None,
    again: bool = False,
    voters: Sequence[str] = (),
    min_scores: Mapping[str, float] | None = None,
    progress: Callable[[int], object] = lambda rows: None,
) -> Manifest:
    """Compute the votes on every part of a corpus, and return the updated manifest.

    A part is skipped if it already has votes from the same detectors with the same options.

    voters: names of the detectors; if empty, all detectors that have voted on the corpus, else the default panel
    k: maximum number of languages per detector
    processes: number of processes on this machine; None for Spark if the engine is Spark, else for one per core
    again: whether to replace votes from other versions of the detectors or with other options
    min_scores: minimum scores by detector, which replace the detectors' own
    progress: called with the number of posts done, including skipped posts

    Raise CorpusError if votes are outdated and `again` is False.
    """
    detectors = voters_with(min_scores or {}, _names(name, voters))
    versions = voter_versions(detectors)
    with layout.lock_corpus(name) as directory:
        manifest = layout.manifest_of(name)
        outdated = [votes for votes in manifest.votes if (votes.k, votes.versions) != (k, versions)]
        if outdated and not again:
            raise CorpusError(f"{_difference(name, outdated[0], k, versions)} Add --again to replace them.")
        saved = [manifest.votes[index] if index < len(manifest.votes) else None for index in range(len(manifest.parts))]
        missing = [index for index, old in enumerate(saved) if old is None or old in outdated]
        progress(sum(part.rows for index, part in enumerate(manifest.parts) if index not in missing))
        parts = [manifest.parts[index] for index in missing]
        with _open_votes(name, directory, parts, k, detectors, processes, progress) as voted:
            for index in missing:
                # The old votes are kept until the new ones are committed, so the new file needs a different name.
                old, fresh = saved[index], layout.part_name(index + 1)
                is_taken = old is not None and old.name == fresh
                file = directory / "votes" / (fresh.replace(".parquet", "-again.parquet") if is_taken else fresh)
                with explain_full_disk(f"the last votes on part {index + 1:,} of corpus {name} were not saved"):
                    rows, agreed = _write(next(voted), file)
                    votes = layout.VotesPart(file.name, rows, agreed, layout.digest_of(file), k, versions)
                    manifest = replace(manifest, votes=(*manifest.votes[:index], votes, *manifest.votes[index + 1 :]))
                    layout.write_manifest(name, manifest)
                shutil.rmtree(directory / "voting", ignore_errors=True)
                if old:
                    (file.parent / old.name).unlink()
    return manifest


def _names(corpus_name: str, voters: Sequence[str]) -> Sequence[str]:
    """Return the names of the detectors that vote on a corpus. Parameters are as in `prelabel`.

    Raise CorpusError if the corpus contains records, or if a detector is not installed.
    """
    manifest = layout.manifest_of(corpus_name)
    layout.check_posts(corpus_name, manifest, "You can draw from it without votes.")
    names = voters or manifest.voters
    if unknown := [voter for voter in names if voter not in VOTERS]:
        raise CorpusError(
            f"The detector {unknown[0]} is not installed. Install its package, or choose among "
            f"{', '.join(VOTERS)} with --voters and add --again.",
            "voters",
        )
    return names


def _difference(name: str, votes: layout.VotesPart, k: int, versions: dict[str, str]) -> str:
    if votes.k != k:
        return f"Corpus {name} has votes with k = {votes.k}, not {k}."
    changed = ", ".join(
        f"{detector} {votes.versions.get(detector)} (now {versions.get(detector)})"
        for detector in dict.fromkeys((*versions, *votes.versions))
        if votes.versions.get(detector) != versions.get(detector)
    )
    return f"Corpus {name} has votes by {changed}."


@contextmanager
def _open_votes(
    name: str,
    directory: Path,
    parts: Sequence[layout.Part],
    k: int,
    voters: tuple[Voter, ...],
    processes: int | None,
    progress: Callable[[int], object],
) -> Iterator[Iterator[PartVotes]]:
    """Open an iterator that yields the votes on each part, in order."""
    spreading = cluster_map() if processes is None else None
    if spreading:
        with closing(_votes_on_cluster(spreading, directory, parts, k, voters, progress)) as voted:
            yield voted
    else:
        with _open_map(processes or system.usable(), name) as mapping:
            yield _votes_locally(mapping, directory, parts, k, voters, progress)


@contextmanager
def _open_map(processes: int, name: str) -> Iterator[Map]:
    """Provide a function that works like `map`, but in several processes. With one process, it is `map` itself."""
    if processes == 1:
        yield map
        return
    workers = dict(_start_worker() for _ in range(processes))
    try:
        yield partial(_map, workers, name)
    finally:
        # It is safe to kill workers at any time, because they have sent all finished work.
        for connection, process in workers.items():
            process.kill()
            process.wait()
            connection.close()


def _start_worker() -> tuple[Connection, Worker]:
    """Start a worker process. Return a connection to it, and the process.

    Each worker has its own connection. In the standard library's pool, all workers share a connection, and the pool
    hangs if a worker is killed while writing to it.

    The worker is a separate program. A forked process would inherit database connections and the locks of other
    threads, and the standard library's spawn method would run the caller's script again. The worker has the same import
    path as this process, without the current folder. It has its own process group, so that signals from a terminal, a
    shell or `timeout` reach only this process, which then stops the workers.
    """
    ours, theirs = Pipe()
    process = subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-P", "-c", "from corpora.votes.vote_worker import main; main()", str(theirs.fileno())],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        process_group=0,
    )
    theirs.close()
    return ours, process


def _map(
    workers: Mapping[Connection, Worker],
    name: str,
    vote: Callable[[pa.RecordBatch], Chunk],
    chunks: Iterable[pa.RecordBatch],
) -> Iterator[Chunk]:
    chunks_left = enumerate(chunks)
    busy: dict[Connection, deque[int]] = {connection: deque() for connection in workers}
    done: dict[int, Chunk] = {}
    next_number = 0

    def send_next(connection: Connection) -> None:
        if (next_chunk := next(chunks_left, None)) is not None:
            number, chunk = next_chunk
            busy[connection].append(number)
            with _explain_exit(workers[connection], name):
                connection.send((vote, chunk))

    for connection in [*workers] * _AHEAD:
        send_next(connection)
    while busy_connections := [connection for connection, numbers in busy.items() if numbers]:
        for ready in wait(busy_connections):
            assert isinstance(ready, Connection)
            with _explain_exit(workers[ready], name):
                result = ready.recv()
            if isinstance(result, Exception):
                raise result
            done[busy[ready].popleft()] = result
            send_next(ready)
        while next_number in done:
            yield done.pop(next_number)
            next_number += 1


@contextmanager
def _explain_exit(worker: Worker, name: str) -> Iterator[None]:
    """Convert errors that occur if a worker exits early to CorpusError."""
    try:
        yield
    except (EOFError, OSError) as error:  # OSError if the connection is closed in the middle of a message
        worker_noun, saved = f"A process that read posts of corpus {name}", "Finished votes are saved"
        status = worker.wait()
        if status == -signal.SIGKILL:
            raise CorpusError(
                f"{worker_noun} was killed, probably because memory ran out. {saved}. To continue, run the command "
                "again with fewer --processes or more memory."
            ) from error
        why = f"ended with signal {-status}" if status < 0 else f"failed with status {status}; see the error above"
        raise CorpusError(f"{worker_noun} {why}. {saved}. To continue, run the command again.") from error


def _votes_locally(
    mapping: Map,
    directory: Path,
    parts: Sequence[layout.Part],
    k: int,
    voters: tuple[Voter, ...],
    progress: Callable[[int], object],
) -> Generator[PartVotes, None, None]:
    """Yield the votes on each part, computed by processes on this machine.

    While the caller writes a part, the processes already work on the next part.
    """
    chunks_left: Iterator[Chunk] | None = None
    for part in parts:
        pieces = pieces_of(directory, part, k, voter_versions(voters), _CHUNK_ROWS)
        done = list(pieces.saved())
        progress(sum(votes.num_rows for votes, _ in done))
        if chunks_left is None:  # only the first part can have pieces from an interrupted run
            vote = partial(vote_on, k, voters)
            chunks_left = mapping(vote, islice(_chunks(directory, parts), len(done), None))
        rows = sum(votes.num_rows for votes, _ in done)
        while rows < part.rows:
            chunk = next(chunks_left)
            pieces.keep(chunk)
            done.append(chunk)
            rows += chunk[0].num_rows
            progress(chunk[0].num_rows)
        votes = pa.Table.from_batches([votes for votes, _ in done], schema=pieces.schema)
        yield votes, sum(agreed for _, agreed in done)


def _chunks(directory: Path, parts: Iterable[layout.Part]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        with pq.ParquetFile(directory / "parts" / part.name) as file:
            yield from file.iter_batches(_CHUNK_ROWS, columns=["id", "text"])


def _votes_on_cluster(
    spreading: Callable[..., Generator[pa.Table, None, None]],
    directory: Path,
    parts: Iterable[layout.Part],
    k: int,
    voters: tuple[Voter, ...],
    progress: Callable[[int], object],
) -> Generator[PartVotes, None, None]:
    """Yield the votes on each part, computed on the Spark cluster, whose machines read the parts directly."""
    files = [directory / "parts" / part.name for part in parts]
    vote, schema = partial(vote_on_all, k, voters), counted_schema(voters)
    with closing(spreading(files, ["id", "text"], vote, schema, _CHUNK_ROWS)) as tables:
        for counted in tables:
            progress(counted.num_rows)
            yield counted.select(schema.names[:-1]), pc.sum(counted["unanimous"]).as_py()


def _write(voted: PartVotes, file: Path) -> tuple[int, int]:
    """Write the votes on a part. Return the number of posts, and the number of posts with unanimous votes."""
    votes, agreed = voted
    # Write a single chunk, so that the file doesn't depend on how the votes were divided into chunks and pieces.
    pq.write_table(votes.combine_chunks(), file)
    layout.sync(file)
    layout.sync(file.parent)
    return votes.num_rows, agreed
