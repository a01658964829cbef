"""The first rows of a file, as they stand: for whoever has to say which of its columns is which."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from corpora.columns import Columns
from corpora.core.errors import CorpusError
from corpora.csv_records import records
from corpora.files import check_file, damage_explained, format_of
from corpora.lines import MAX_LINE, Fault, lines_of, names_in, object_of, values_of
from corpora.readers import read_rows

ROWS = 10


@dataclass(frozen=True)
class Sample:
    """columns: their names; rows: of each of the first rows what stands under each column, or why it cannot be read."""

    columns: list[str]
    rows: list[list[Any] | str]


def sample(path: Path, format: str | None = None) -> Sample:
    """The first rows of a file of rows. CorpusError if it cannot be read, or its name tells no format."""
    check_file(path, format)
    known = format or format_of(path) or ""
    with damage_explained(path, known):
        columns = list(dict.fromkeys(_columns(path, known)))
    if not columns:
        raise CorpusError(f"{path} has no columns: its first line names none.")
    found = read_rows(path, known, Columns({name: name for name in columns}, needed=()), MAX_LINE, lambda read: None)
    rows = [
        row.reason if isinstance(row, Fault) else [row.get(name) for name in columns] for _, row in islice(found, ROWS)
    ]
    return Sample(columns, rows)


def _columns(path: Path, format: str) -> Iterator[str]:
    if format == "parquet":
        with pq.ParquetFile(path) as file:
            yield from file.schema_arrow.names
        return
    if format == "jsonl":
        for _, line in islice(values_of(path, MAX_LINE, lambda read: None), ROWS):
            if not isinstance(line, Fault) and isinstance(found := object_of(line, ()), dict):
                yield from names_in(found)
        return
    lines = lines_of(path, MAX_LINE, lambda read: None)
    if format == "csv":
        _, header = next(records(lines, MAX_LINE), (1, []))
    else:
        _, first = next(lines, (1, b""))
        header = first if isinstance(first, Fault) else first.decode(errors="replace").rstrip("\r\n").split("\t")
    if isinstance(header, Fault):
        raise CorpusError(f"{path}: its first line cannot be read as a header; check the format.")
    yield from filter(None, header)
