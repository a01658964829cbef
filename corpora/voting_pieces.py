"""The votes on a part that is not done yet, kept in pieces, so that a run that is stopped loses one piece at most.

They stand in <corpus>/voting/<key>/, where the key tells on what and by what they were made. A part that is done has
none: its votes are made of them, with the same bytes as if nobody had stopped.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from corpora.folders import sync
from corpora.manifest import Part
from corpora.schemas import VOTES_SCHEMA
from corpora.voting_worker import Chunk

PIECE_CHUNKS = 5  # half a second's work, or some seconds' on a busy machine


@dataclass
class Pieces:
    """chunks: those that make the next piece."""

    folder: Path
    number: int = 0
    chunks: list[Chunk] = field(default_factory=list)

    def kept(self) -> Iterator[Chunk]:
        """What an earlier run has done, in order. All the votes on a piece stand with its first chunk."""
        while (file := self._file()).exists():
            with pa.ipc.open_file(file) as piece:
                agreed = int(piece.schema.metadata[b"unanimous"])
                for number in range(piece.num_record_batches):
                    batch = piece.get_batch(number)
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=VOTES_SCHEMA), 0 if number else agreed
            self.number += 1

    def keep(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        if len(self.chunks) < PIECE_CHUNKS:
            return
        file = self._file()
        draft = file.with_suffix(".draft")
        schema = VOTES_SCHEMA.with_metadata({"unanimous": str(sum(agreed for _, agreed in self.chunks))})
        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch, _ in self.chunks:
                writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
        sync(draft)
        draft.rename(file)
        self.chunks.clear()
        self.number += 1

    def _file(self) -> Path:
        return self.folder / f"{self.number:06}.arrow"


def pieces_of(directory: Path, part: Part, k: int, versions: dict[str, str], chunk_rows: int) -> Pieces:
    """The pieces of a part. Those of other parts, or that were made in another way, are removed."""
    told = json.dumps([part.sha256, k, versions, chunk_rows], sort_keys=True)
    folder = directory / "voting" / hashlib.sha256(told.encode()).hexdigest()[:16]
    for other in (directory / "voting").glob("*"):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(parents=True, exist_ok=True)
    return Pieces(folder)


def done_with(directory: Path) -> None:
    shutil.rmtree(directory / "voting", ignore_errors=True)
