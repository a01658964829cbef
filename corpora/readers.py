"""Files of posts, read row by row in little memory: JSONL, CSV, TSV, Parquet, plain or packed by gzip or
zstd.

A reader yields (line, raw values) or (line, Fault); which values are right is core/records.py's matter.
"""

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.core.records import FIELDS, OBLIGATORY
from corpora.errors import CorpusError

SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
PACKINGS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row could not even be read, as one clear sentence."""

    reason: str


Row = tuple[int, dict[str, Any] | Fault]
Columns = Mapping[str, str]  # our field -> the source's column


class TooLong(Exception):
    """A line passed the limit; its rest has been skipped."""


class Lines:
    """The lines of a file as bytes, none longer than `limit` bytes. `number` is that of the last one, from 1.

    An iterator and no generator: it goes on after it has raised TooLong.
    """

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self.file, self.limit, self.number = file, limit, 0

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> bytes:
        line = self.file.readline(self.limit + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > self.limit:
            while line and not line.endswith(b"\n"):
                line = self.file.readline(self.limit)
            raise TooLong
        return line.removeprefix(codecs.BOM_UTF8) if self.number == 1 else line


def format_of(path: Path) -> str | None:
    """The format that a file's name tells, its packing left aside; None where it tells none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKINGS:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def _packing(path: Path, start: bytes) -> str | None:
    for magic, packing in _MAGIC.items():
        if start.startswith(magic):
            return packing
    if (named := PACKINGS.get(path.suffix.lower())) and start:
        raise CorpusError(f"{path} is named as {named} but does not begin as {named} does; check the file.")
    return None


@contextmanager
def opened(path: Path, progress: Callable[[int], object]) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked. `progress` hears of each read how many bytes of the file itself it took."""
    with path.open("rb") as raw:
        packing = _packing(path, raw.peek(4)[:4])
        counted = _Counted(raw, progress)
        source = pa.CompressedInputStream(counted, packing) if packing else counted
        with io.BufferedReader(source, 1 << 18) as file:
            yield file


class _Counted(io.RawIOBase):
    """A file that tells how far it has been read."""

    def __init__(self, file: BinaryIO, progress: Callable[[int], object]) -> None:
        self.file, self.progress = file, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.file.readinto(buffer)  # type: ignore[attr-defined]
        self.progress(count)
        return int(count)


def read_rows(
    path: Path, format: str, columns: Columns, max_line: int, progress: Callable[[int], object]
) -> Iterator[Row]:
    """Every row of a file; blank lines are none. CorpusError where the file as a whole cannot be read."""
    try:
        if format == "parquet":
            yield from _parquet(path, columns, max_line, progress)
        else:
            with opened(path, progress) as file:
                yield from _TEXT_FORMATS[format](path, Lines(file, max_line), columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorpusError(f"{path} cannot be read as {format}: {_first_line(error)}.") from error
    except OSError as error:
        if error.errno is not None:  # the system's own, e.g. no right to read
            raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error
        raise CorpusError(
            f"{path} is cut off or damaged ({_first_line(error)}); nothing of it was imported. Fetch it again."
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")


def _too_long(lines: Lines) -> Row:
    return lines.number, Fault(f"The line is longer than {lines.limit:,} bytes.")


def _jsonl(path: Path, lines: Lines, columns: Columns) -> Iterator[Row]:
    wanted = tuple(columns.items())
    while True:
        try:
            line = next(lines)
        except StopIteration:
            return
        except TooLong:
            yield _too_long(lines)
            continue
        if line.isspace():
            continue
        try:
            value = json.loads(line.decode())
        except UnicodeDecodeError as error:
            yield lines.number, Fault(f"The line is not UTF-8 (byte {error.start + 1}).")
        except (ValueError, RecursionError) as error:
            yield lines.number, Fault(f"The line is not JSON: {_first_line(error)}.")
        else:
            if isinstance(value, dict):
                yield lines.number, {field: value.get(column) for field, column in wanted}
            else:
                yield lines.number, Fault('The line is no JSON object, such as {"id": "1", "text": "..."}.')


def _places(path: Path, header: list[str], columns: Columns) -> list[tuple[str, int]]:
    """(field, place in the header) of what there is. CorpusError where a needed column is missing."""
    if repeated := sorted({column for column in header if header.count(column) > 1}.intersection(columns.values())):
        raise CorpusError(f"{path} has the column {repeated[0]} twice; rename one of them.")
    if header and header[0].startswith(("\udcff\udcfe", "\udcfe\udcff")):
        raise CorpusError(f"{path} is not UTF-8; it looks like UTF-16. Save it as UTF-8.")
    if len(header) == 1 and ";" in header[0]:
        raise CorpusError(f"{path} has semicolons between its columns; save it with commas, or with tabs as .tsv.")
    missing = [
        column for field, column in columns.items() if column not in header and (field in OBLIGATORY or column != field)
    ]
    if missing:
        have = ", ".join(header) or "none"
        raise CorpusError(
            f"{path} has no column {', '.join(missing)}; its columns are: {have}. "
            f"Say which is which, for example --column {FIELDS[1]}={header[-1] if header else 'body'}."
        )
    return [(field, header.index(column)) for field, column in columns.items() if column in header]


def _csv(path: Path, lines: Lines, columns: Columns) -> Iterator[Row]:
    # Undecodable bytes become lone surrogates and are found again below, so that one bad row stays one bad
    # row.
    text = _Decoded(lines)
    csv.field_size_limit(lines.limit)
    return _table(path, lines, csv.reader(text, strict=True), columns)


def _tsv(path: Path, lines: Lines, columns: Columns) -> Iterator[Row]:
    return _table(path, lines, _Split(_Decoded(lines)), columns)


class _Decoded:
    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    def __iter__(self) -> "_Decoded":
        return self

    def __next__(self) -> str:
        return next(self.lines).decode("utf-8", "surrogateescape")


class _Split:
    """TSV as the field's own files are: no quoting, a quote is a quote."""

    def __init__(self, lines: _Decoded) -> None:
        self.lines = lines

    def __iter__(self) -> "_Split":
        return self

    def __next__(self) -> list[str]:
        line = next(self.lines).rstrip("\r\n")
        return line.split("\t") if line else []


def _table(path: Path, lines: Lines, rows: Iterator[list[str]], columns: Columns) -> Iterator[Row]:
    try:
        header = next(rows, [])
    except (csv.Error, TooLong) as error:
        raise CorpusError(f"{path}: its first line cannot be read as a header; check the format.") from error
    places = _places(path, header, columns)
    while True:
        line = lines.number + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except TooLong:
            yield _too_long(lines)
            continue
        except csv.Error as error:
            yield line, Fault(f"The row is not CSV: {error}.")
            continue
        if not row:
            continue
        if len(row) != len(header):
            yield line, Fault(f"The row has {len(row):,} fields where the header has {len(header):,}.")
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


_TEXT_FORMATS: dict[str, Callable[[Path, Lines, Columns], Iterator[Row]]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "tsv": _tsv,
}
FORMATS = (*_TEXT_FORMATS, "parquet")


def _parquet(path: Path, columns: Columns, max_line: int, progress: Callable[[int], object]) -> Iterator[Row]:
    with pq.ParquetFile(path) as file:
        places = _places(path, file.schema_arrow.names, columns)
        names = [file.schema_arrow.names[place] for _, place in places]
        size, rows, line = path.stat().st_size, max(file.metadata.num_rows, 1), 0
        for batch in file.iter_batches(1000, columns=names):
            values = {field: _values(batch.column(columns[field])) for field, _ in places}
            for number in range(batch.num_rows):
                line += 1
                raw = {field: column[number] for field, column in values.items()}
                fault = next((value for value in raw.values() if isinstance(value, Fault)), None)
                if isinstance(text := raw["text"], str) and len(text) > max_line:
                    fault = Fault(f"The text is longer than {max_line:,} characters.")
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
