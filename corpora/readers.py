"""Files of posts or predictions, read row by row in little memory: JSONL, CSV, TSV, Parquet, plain or packed.

A reader yields (line, raw values) or (line, Fault); which values are right is core/records.py's matter, and
core/predictions.py's.
"""

import codecs
import csv
import io
import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.core.errors import CorpusError
from corpora.core.records import OBLIGATORY

MAX_LINE = 1 << 20  # bytes
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
Line = tuple[int, bytes | Fault]  # its number, from 1
Cells = tuple[int, list[str] | Fault]
Progress = Callable[[int], object]  # hears of bytes read


@dataclass(frozen=True, slots=True)
class Columns:
    """named: our field -> the source's column; needed: the fields that a table must have columns for.

    bare: a TSV file whose first line has none of the columns is one without a header, its columns those named, in
    order.
    """

    named: Mapping[str, str]
    needed: tuple[str, ...] = OBLIGATORY
    bare: bool = False


def named_columns(pairs: Iterable[str], fields: Collection[str]) -> dict[str, str]:
    """Field -> column, from options such as `label=lang`. CorpusError for what is none."""
    columns = {}
    for pair in pairs:
        field, _, column = pair.partition("=")
        if field not in fields or not column:
            raise CorpusError(f"--column {pair}: write FIELD=COLUMN with one of {', '.join(fields)}.")
        columns[field] = column
    return columns


def _lines(file: BinaryIO, limit: int) -> Iterator[Line]:
    """The lines of a file; a Fault in place of one that is longer than `limit` bytes."""
    number = 0
    while line := file.readline(limit + 1):
        number += 1
        if len(line) > limit:
            while line and not line.endswith(b"\n"):
                line = file.readline(limit)
            yield number, Fault(f"The line is longer than {limit:,} bytes.")
        else:
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def format_of(path: Path) -> str | None:
    """The format that a file's name tells, its packing left aside; None where it tells none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKINGS:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def check_file(path: Path, format: str | None) -> None:
    """CorpusError where it is plain before reading that a path cannot be imported."""
    try:
        if path.is_dir():
            raise CorpusError(f"{path} is a directory; name the files in it.")
        if not path.is_file():
            raise CorpusError(f"{path} does not exist, or is not an ordinary file.")
        with path.open("rb") as file:
            if not file.read(1):
                raise CorpusError(f"{path} is empty.")
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error
    if not (format or format_of(path)):
        raise CorpusError(f"The name of {path} does not tell its format; say --format {'|'.join(FORMATS)}.")


def _packing(path: Path, start: bytes) -> str | None:
    for magic, packing in _MAGIC.items():
        if start.startswith(magic):
            return packing
    if (named := PACKINGS.get(path.suffix.lower())) and start:
        raise CorpusError(f"{path} is named as {named} but does not begin as {named} does; check the file.")
    return None


@contextmanager
def opened(path: Path, progress: Progress) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked. `progress` hears of each read how many bytes of the file itself it took."""
    with path.open("rb") as raw:
        packing = _packing(path, raw.peek(4)[:4])
        counted = _Counted(raw, progress)
        source = pa.CompressedInputStream(counted, packing) if packing else counted
        with io.BufferedReader(source, 1 << 18) as file:
            yield file


class _Counted(io.RawIOBase):
    """A file that tells how far it has been read."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self.file, self.progress = file, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.file.readinto(buffer)  # type: ignore[attr-defined]
        self.progress(count)
        return int(count)


def read_rows(path: Path, format: str, columns: Columns, max_line: int, progress: Progress) -> Iterator[Row]:
    """Every row of a file; blank lines are none. CorpusError where the file as a whole cannot be read."""
    try:
        if format == "parquet":
            yield from _parquet(path, columns, max_line, progress)
        else:
            with opened(path, progress) as file:
                yield from _TEXT_FORMATS[format](path, _lines(file, max_line), max_line, columns)
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


def _jsonl(path: Path, lines: Iterator[Line], limit: int, columns: Columns) -> Iterator[Row]:
    wanted = tuple(columns.named.items())
    for number, line in lines:
        if isinstance(line, Fault):
            yield number, line
            continue
        if line.isspace():
            continue
        try:
            value = json.loads(line.decode())
        except UnicodeDecodeError as error:
            yield number, Fault(f"The line is not UTF-8 (byte {error.start + 1}).")
        except (ValueError, RecursionError) as error:
            yield number, Fault(f"The line is not JSON: {_first_line(error)}.")
        else:
            if isinstance(value, dict):
                yield number, {field: value.get(column) for field, column in wanted}
            else:
                example = json.dumps(dict.fromkeys(columns.needed, "..."))
                yield number, Fault(f"The line is not a JSON object, such as {example}.")


def _places(path: Path, header: list[str], columns: Columns) -> list[tuple[str, int]]:
    """(field, place in the header) of what there is. CorpusError where a needed column is missing."""
    if repeated := sorted(
        {column for column in header if header.count(column) > 1}.intersection(columns.named.values())
    ):
        raise CorpusError(f"{path} has the column {repeated[0]} twice; rename one of them.")
    if header and header[0].startswith(("\udcff\udcfe", "\udcfe\udcff")):
        raise CorpusError(f"{path} is not UTF-8; it looks like UTF-16. Save it as UTF-8.")
    if len(header) == 1 and ";" in header[0]:
        raise CorpusError(f"{path} has semicolons between its columns; save it with commas, or with tabs as .tsv.")
    missing = [
        column
        for field, column in columns.named.items()
        if column not in header and (field in columns.needed or column != field)
    ]
    if missing:
        have = ", ".join(header) or "none"
        field = next(field for field, column in columns.named.items() if column == missing[0])
        other = next((column for column in header if column not in columns.named.values()), "body")
        raise CorpusError(
            f"{path} has no column {', '.join(missing)}; its columns are: {have}. "
            f"Say which is which, for example --column {field}={other}."
        )
    return [(field, header.index(column)) for field, column in columns.named.items() if column in header]


def _csv(path: Path, lines: Iterator[Line], limit: int, columns: Columns) -> Iterator[Row]:
    csv.field_size_limit(limit)
    return _table(path, _records(_Feed(lines, limit)), columns)


def _tsv(path: Path, lines: Iterator[Line], limit: int, columns: Columns) -> Iterator[Row]:
    # As the field's own files are: no quoting, a quote is a quote.
    cells: Iterator[Cells] = ((number, line if isinstance(line, Fault) else _split(line)) for number, line in lines)
    return _table(path, _with_header(cells, columns) if columns.bare else cells, columns)


def _with_header(cells: Iterator[Cells], columns: Columns) -> Iterator[Cells]:
    """The rows, with a header before them where the first row is none."""
    names = list(columns.named.values())
    number, first = next(cells, (1, []))
    if isinstance(first, list) and len(columns.needed) <= len(first) <= len(names) and not set(first) & set(names):
        yield 0, names[: len(first)]
    yield number, first
    yield from cells


def _split(line: bytes) -> list[str]:
    text = _decoded(line).rstrip("\r\n")
    return text.split("\t") if text else []


def _decoded(line: bytes) -> str:
    """Undecodable bytes become lone surrogates and are found again in _table, so that one bad row stays one."""
    return line.decode("utf-8", "surrogateescape")


_ATTEMPTS = 8
_ANEW = "the lines after this one are read anew."


class _Feed:
    """Lines for a csv.reader, those of one record held until it is known whether they are one.

    A record ends the feed where it passes `limit` bytes. So does a line that has been in _ATTEMPTS failed records:
    else a file where every line closes one quote and opens another would be read anew for each of its lines.
    """

    def __init__(self, lines: Iterator[Line], limit: int) -> None:
        self.lines, self.limit = lines, limit
        self.taken: list[tuple[int, bytes | Fault, int]] = []  # with the failed records that the line was in
        self.again: deque[tuple[int, bytes | Fault, int]] = deque()
        self.size = 0
        self.ended = False

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        self.ended = True
        given = self.again.popleft() if self.again else (*next(self.lines), 0)
        line = given[1]
        if self.taken and (isinstance(line, Fault) or given[2] == _ATTEMPTS or self.size + len(line) > self.limit):
            self.again.appendleft(given)
            raise StopIteration
        self.taken.append(given)
        if isinstance(line, Fault):
            raise StopIteration
        self.ended = False
        self.size += len(line)
        return _decoded(line)

    def begin(self) -> None:
        """The lines taken so far are done with."""
        self.taken.clear()
        self.size = 0

    def is_doubtful(self) -> bool:
        """Whether the record may be the tail of a failed one: it has an odd quote, and was read before."""
        quotes = sum(line.count(b'"') for _, line, _ in self.taken if isinstance(line, bytes))
        return self.taken[0][2] > 0 and quotes % 2 == 1

    def return_all_but_first(self) -> None:
        self.again.extendleft((number, line, failed + 1) for number, line, failed in reversed(self.taken[1:]))


def _records(feed: _Feed) -> Iterator[Cells]:
    """The records of a CSV file, the header first. Of one that fails only the first line is lost.

    A quote that is not closed would else take with it all rows up to the next quote, or up to the limit.
    """
    reader = csv.reader(feed, strict=True)
    width = None
    while True:
        feed.begin()
        fault: Fault | None = None
        row: list[str] = []
        try:
            row = next(reader)
        except StopIteration:
            if not feed.taken:
                return
            fault = cast(Fault, feed.taken[0][1])
        except csv.Error as error:
            fault = _fault(feed, error)
        number, last = feed.taken[0][0], feed.taken[-1][0]
        if width is None:
            width = len(row)
        elif not fault and last > number and len(row) != width:
            found = f"which makes {_fields(row)} where the header has {width:,}"
            fault = Fault(f"A quote is opened in this row and closed in line {last:,}, {found}; {_ANEW}")
        elif not fault and feed.is_doubtful():
            fault = Fault(
                "The row holds a quote that may be the end of one opened in a row before, which was rejected."
            )
        if fault:
            feed.return_all_but_first()
        yield number, fault or row


def _fault(feed: _Feed, error: csv.Error) -> Fault:
    if feed.ended:
        return Fault(f"A quote is opened in this row and not closed; {_ANEW}")
    if len(feed.taken) > 1:
        return Fault(f"A quote is opened in this row and not rightly closed by line {feed.taken[-1][0]:,}; {_ANEW}")
    return Fault(f"The row is not CSV: {error}.")


def _fields(row: list[str]) -> str:
    return "1 field" if len(row) == 1 else f"{len(row):,} fields"


def _table(path: Path, rows: Iterator[Cells], columns: Columns) -> Iterator[Row]:
    _, header = next(rows, (1, []))
    if isinstance(header, Fault):
        raise CorpusError(f"{path}: its first line cannot be read as a header; check the format.")
    places = _places(path, header, columns)
    for line, row in rows:
        if isinstance(row, Fault):
            yield line, row
        elif not row:
            continue
        elif len(row) != len(header):
            yield line, Fault(f"The row has {_fields(row)} where the header has {len(header):,}.")
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
FORMATS = (*_TEXT_FORMATS, "parquet")


def _parquet(path: Path, columns: Columns, max_line: int, progress: Progress) -> Iterator[Row]:
    with pq.ParquetFile(path) as file:
        places = _places(path, file.schema_arrow.names, columns)
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
