"""Files of posts or predictions, read row by row in little memory: JSONL, CSV, TSV, Parquet, plain or packed.

A reader yields (line, raw values) or (line, Fault); which values are right is decided in core/records.py and
core/predictions.py.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.columns import Columns, lacks, places_in
from corpora.core.errors import CorpusError
from corpora.csv_records import Cells, fields_said, records
from corpora.files import Progress, damage_explained
from corpora.lines import Fault, Line, decoded, lines_of, object_of

Row = tuple[int, dict[str, Any] | Fault]


def read_rows(path: Path, format: str, columns: Columns, max_line: int, progress: Progress) -> Iterator[Row]:
    """Every row of a file; blank lines do not count. CorpusError if the file as a whole cannot be read."""
    with damage_explained(path, format):
        if format == "parquet":
            yield from _parquet(path, columns, max_line, progress)
        else:
            yield from _TEXT_FORMATS[format](path, lines_of(path, max_line, progress), max_line, columns)


def _jsonl(path: Path, lines: Iterator[Line], limit: int, columns: Columns) -> Iterator[Row]:
    wanted = tuple(columns.named.items())
    lacking = [columns.named[field] for field in columns.needed]
    first: dict[str, Any] | None = None
    for number, line in lines:
        if isinstance(line, Fault):
            yield number, line
            continue
        if line.isspace():
            continue
        value = object_of(line, columns.needed)
        if isinstance(value, Fault):
            yield number, value
        else:
            first = value if first is None else first
            lacking = [column for column in lacking if column not in value]
            yield number, {field: value.get(column) for field, column in wanted}
    if first is not None and lacking:
        raise lacks(path, lacking, list(first), columns)


def _csv(path: Path, lines: Iterator[Line], limit: int, columns: Columns) -> Iterator[Row]:
    return _table(path, records(lines, limit), columns)


def _tsv(path: Path, lines: Iterator[Line], limit: int, columns: Columns) -> Iterator[Row]:
    # As in the field's own files: no quoting, a quote is a quote.
    cells: Iterator[Cells] = ((number, line if isinstance(line, Fault) else _split(line)) for number, line in lines)
    return _table(path, _with_header(cells, columns) if columns.bare else cells, columns)


def _with_header(cells: Iterator[Cells], columns: Columns) -> Iterator[Cells]:
    """The rows, with a header before them if the first row is not one."""
    names = list(columns.named.values())
    number, first = next(cells, (1, []))
    if isinstance(first, list) and len(columns.needed) <= len(first) <= len(names) and not set(first) & set(names):
        yield 0, names[: len(first)]
    yield number, first
    yield from cells


def _split(line: bytes) -> list[str]:
    text = decoded(line).rstrip("\r\n")
    return text.split("\t") if text else []


def _table(path: Path, rows: Iterator[Cells], columns: Columns) -> Iterator[Row]:
    _, header = next(rows, (1, []))
    if isinstance(header, Fault):
        raise CorpusError(f"{path}: its first line cannot be read as a header; check the format.")
    places = places_in(path, header, columns)
    for line, row in rows:
        if isinstance(row, Fault):
            yield line, row
        elif not row:
            continue
        elif len(row) != len(header):
            yield line, Fault(f"The row has {fields_said(row)} where the header has {len(header):,}.")
        elif not _is_utf8(row):
            yield line, Fault("The row is not UTF-8.")
        else:
            yield line, {field: row[place] for field, place in places}


def _is_utf8(row: list[str]) -> bool:
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        return False
    return True


_TEXT_FORMATS: dict[str, Callable[[Path, Iterator[Line], int, Columns], Iterator[Row]]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "tsv": _tsv,
}


def _parquet(path: Path, columns: Columns, max_line: int, progress: Progress) -> Iterator[Row]:
    with pq.ParquetFile(path) as file:
        places = places_in(path, file.schema_arrow.names, columns)
        names = [file.schema_arrow.names[place] for _, place in places]
        size, rows, line = path.stat().st_size, max(file.metadata.num_rows, 1), 0
        for batch in file.iter_batches(1000, columns=names):
            values = {field: _values(batch.column(columns.named[field])) for field, _ in places}
            for number in range(batch.num_rows):
                line += 1
                raw = {field: column[number] for field, column in values.items()}
                fault = next((value for value in raw.values() if isinstance(value, Fault)), None)
                for field, value in raw.items():
                    if isinstance(value, str) and len(value) > max_line:
                        fault = Fault(f"The {field} is longer than {max_line:,} characters.")
                yield line, fault or raw
            progress(size * batch.num_rows // rows)


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):  # Python knows no nanoseconds
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_value(cell) for cell in column]


def _value(cell: pa.Scalar) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return Fault("The row is not UTF-8.")
