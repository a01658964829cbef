"""Files of threads on their way into a corpus of pairs: their messages are staged as they are read, then each is joined
with the one that it answers, which may stand before it, after it, or in another file.

DuckDB joins on disk, beyond its limit of memory, and no step follows a thread message by message, so neither the number
of messages nor the length of a thread matters. import_threads.py decides what becomes of the pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from django.conf import settings

from corpora.columns import Columns
from corpora.core import pairs
from corpora.core.errors import CorpusError
from corpora.core.pairs import Message, is_empty, read_message, read_turns
from corpora.core.records import RecordError
from corpora.engines import Store
from corpora.files import Progress
from corpora.lines import Fault
from corpora.readers import read_rows
from corpora.rejecting import HOPELESS, check_hopeless
from corpora.schemas import MESSAGES_SCHEMA
from corpora.staging import RejectLog

_BATCH_ROWS = 10_000
_BATCH_CHARACTERS = 16_000_000


@dataclass(frozen=True)
class Reading:
    """How files are read. columns: field -> their column, where it is called otherwise; max_line: bytes; max_rejects:
    the share of a file's rows that may be no messages."""

    columns: dict[str, str]
    max_line: int
    max_rejects: float
    progress: Progress


def stage(staged: Path, paths: list[Path], formats: list[str], logs: list[RejectLog], how: Reading) -> list[int]:
    """Write the messages of the files to the staging file, one batch at a time, and what is none to each file's log.
    Returns the rows of each file. CorpusError where one has none."""
    staged.parent.mkdir(exist_ok=True)
    rows = [0] * len(paths)
    with pq.ParquetWriter(staged, MESSAGES_SCHEMA) as writer:
        batch, characters = list[dict[str, Any]](), 0
        for number, (path, format) in enumerate(zip(paths, formats, strict=True)):
            for line, read in _read(path, format, how):
                rows[number] += 1
                if logs[number].count >= HOPELESS:
                    check_hopeless(path, logs[number].count, rows[number], logs[number].first, how.max_rejects)
                if isinstance(read, Fault):
                    logs[number].add(line, read.reason)
                    continue
                for turn, message in enumerate(read, start=1):
                    place = {"file": number, "line": line, "turn": turn, "empty": is_empty(message.text)}
                    batch.append(place | message._asdict())
                    characters += len(message.text)
                if len(batch) >= _BATCH_ROWS or characters > _BATCH_CHARACTERS:
                    writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=MESSAGES_SCHEMA))
                    batch, characters = [], 0
            if not rows[number]:
                raise CorpusError(f"{path} holds no rows.")
        writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=MESSAGES_SCHEMA))
    return rows


def _read(path: Path, format: str, how: Reading) -> Iterator[tuple[int, list[Message] | Fault]]:
    """The messages of each row of a file: one, or those of a list of turns."""
    turns = _has_turns(path, format, how)
    fields, needed = (pairs.TURNS, pairs.TURNS_NEED) if turns else (pairs.MESSAGE, pairs.MESSAGE_NEEDS)
    named = Columns({field: how.columns.get(field, field) for field in fields}, needed)
    key = settings.AUTHOR_KEY.encode()
    for line, raw in read_rows(path, format, named, how.max_line, how.progress):
        if isinstance(raw, Fault):
            yield line, raw
            continue
        try:
            yield line, list(read_turns(raw)) if turns else [read_message(raw, key)]
        except RecordError as error:
            yield line, Fault(str(error))


def _has_turns(path: Path, format: str, how: Reading) -> bool:
    """Whether the rows of a file are lists of turns, by the first of them that can be read."""
    named = Columns({"turns": how.columns.get("turns", "turns")}, ())
    rows = read_rows(path, format, named, how.max_line)
    return next((row.get("turns") is not None for _, row in rows if not isinstance(row, Fault)), False)


def join(store: Store, staged: Path) -> None:
    """Make the views and tables of the queries messages_*.sql: `repeated`, `messages`, `links` and `circles`."""
    store.view("staged_messages", [staged], MESSAGES_SCHEMA)
    store.keep("repeated", "messages_repeated")
    store.define("messages", "messages")
    find_circles(store)


def find_circles(store: Store) -> None:
    """Make `circles`, the messages that answer one another in a circle.

    Each round doubles how far a link reaches, so a thread of 100,000 takes 17 rounds. A round that lets no link pass a
    beginning shows that those left lead into circles; once they reach as far as there are links, they all end on one.
    """
    store.keep("links", "messages_linked")
    reach, before = 1, -1
    while (links := store.size("links")) and not (links == before and reach >= links):
        store.keep_anew("links", "messages_followed")
        reach, before = 2 * reach, links
    store.keep("circles", "messages_in_circles")
