"""Files of posts or predictions, read row by row in little memory: JSONL, CSV, TSV, Parquet, plain or packed.

A reader yields (line, raw values) or (line, Fault); which values are right is decided in core/records.py and
core/predictions.py.
"""

import codecs
import csv
import io
import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.core.errors import CorpusError
from corpora.core.records import DECLARED, OBLIGATORY

MAX_LINE = 1 << 20  # bytes
WORDY = 4  # words that a column's name has at most
SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
PACKINGS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row could not even be read, as one clear sentence."""

    reason: str


Row = tuple[int, dict[str, Any] | Fault]
Line = tuple[int, bytes | Fault]  # its number, from 1
Cells = tuple[int, list[str] | Fault]
Progress = Callable[[int], object]  # is told of bytes read


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
    """Field -> column, from options such as `label=lang`. CorpusError for an invalid one."""
    columns = {}
    for pair in pairs:
        field, _, column = pair.partition("=")
        if field not in fields or not column:
            raise CorpusError(
                f"--column {pair}: write FIELD=COLUMN with one of {', '.join(fields)}, in one word, such as "
                f"{pair if pair in fields else next(iter(fields))}=my_column."
            )
        columns[field] = column
    return columns


def _lines(file: BinaryIO, limit: int) -> Iterator[Line]:
    """The lines of a file; a Fault in place of a line that is longer than `limit` bytes."""
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
    """The format that a file's name tells, apart from its packing; None if it tells none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKINGS:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def check_file(path: Path, format: str | None, *, folder: bool = False) -> None:
    """CorpusError if it is clear before reading that a path cannot be imported. folder: whether it may be one."""
    try:
        if path.is_dir():
            if folder:
                return
            raise CorpusError(f"{path} is a directory; name the files in it.")
        if not path.is_file():
            raise CorpusError(f"{path} does not exist, or is not an ordinary file.")
        with path.open("rb") as file:
            if not file.read(1):
                raise CorpusError(f"{path} is empty.")
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error
    if path.suffix.lower() in SPREADSHEETS:
        raise CorpusError(f"{path} is a spreadsheet; save it as CSV (“CSV UTF-8”), and name that file.")
    if not (format or format_of(path)):
        raise CorpusError(f"The name of {path} does not tell its format; give --format {'|'.join(FORMATS)}.")


def _packing(path: Path, start: bytes) -> str | None:
    for magic, packing in _MAGIC.items():
        if start.startswith(magic):
            return packing
    if (named := PACKINGS.get(path.suffix.lower())) and start:
        raise CorpusError(f"{path} is named as {named} but does not begin as {named} does; check the file.")
    return None


@contextmanager
def opened(path: Path, progress: Progress) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked. `progress` is told how many bytes of the file itself each read took."""
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


@contextmanager
def damage_explained(path: Path, format: str) -> Iterator[None]:
    """What stops the reading of a file becomes a CorpusError that says so."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorpusError(f"{path} cannot be read as {format}: {_first_line(error)}.") from error
    except OSError as error:
        if error.errno is not None:  # the system's own, e.g. no right to read
            raise CorpusError(f"{error.filename or path} cannot be read: {error.strerror}.") from error
        raise CorpusError(
            f"{path} is cut off or damaged ({_first_line(error)}); nothing of it was imported. Fetch it again."
        ) from error


def read_rows(path: Path, format: str, columns: Columns, max_line: int, progress: Progress) -> Iterator[Row]:
    """Every row of a file; blank lines do not count. CorpusError if the file as a whole cannot be read."""
    with damage_explained(path, format):
        if format == "parquet":
            yield from _parquet(path, columns, max_line, progress)
        else:
            yield from _TEXT_FORMATS[format](path, lines_of(path, max_line, progress), max_line, columns)


def lines_of(path: Path, limit: int, progress: Progress) -> Iterator[Line]:
    """The lines of a file of text, unpacked; a Fault in place of one that is longer than `limit` bytes. CorpusError
    where it is UTF-16."""
    with opened(path, progress) as file:
        _check_encoding(path, file.peek(4096)[:4096])  # type: ignore[attr-defined]
        yield from _lines(file, limit)


def looks_like_utf16(start: bytes) -> bool:
    """Whether text begins with the mark of UTF-16, or every other byte of it is NUL."""
    nuls = max(start[::2].count(0), start[1::2].count(0))
    return start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (len(start) > 1 and nuls * 3 > len(start))


def _check_encoding(path: Path, start: bytes) -> None:
    if looks_like_utf16(start):
        raise CorpusError(
            f"{path} is not UTF-8; it looks like UTF-16. Save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8."
        )


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")


class _Doubled(Exception):
    """A key that stands twice in an object of JSON: nobody can tell which is meant."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Doubled(next(key for key in found if keys.count(key) > 1))
    return found


def object_of(content: bytes, keys: Iterable[str], what: str = "line") -> dict[str, Any] | Fault:
    """The object of JSON that a line, or `what` it is, holds. keys: some that are named where it is none."""
    try:
        value = json.loads(content.decode(), object_pairs_hook=_object)
    except _Doubled as error:
        return Fault(f"The {what} has the key {error.args[0]!r} twice.")
    except UnicodeDecodeError as error:
        return Fault(f"The {what} is not UTF-8 (byte {error.start + 1}).")
    except (ValueError, RecursionError) as error:
        return Fault(f"The {what} is not JSON: {_first_line(error)}.")
    if not isinstance(value, dict):
        example = json.dumps(dict.fromkeys(keys, "..."))
        return Fault(f"The {what} is not a JSON object, such as {example}.")
    return value


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
        raise _lacks(path, lacking, list(first), columns)


def _lacks(path: Path, missing: Collection[str], there: Sequence[str], columns: Columns) -> CorpusError:
    """missing: columns that a file has not; there: those that it has."""
    field = next(field for field, column in columns.named.items() if column in missing)
    other = next((column for column in there if column not in columns.named.values()), "body")
    do = f"--labels {other}" if field == DECLARED else f"--column {field}={other}"
    have = ", ".join(there) or "none"
    return CorpusError(f"{_lacking(path, missing)}; its columns are: {have}. Say which is which, for example {do}.")


def _lacking(path: Path, missing: Collection[str]) -> str:
    return f"{path} has no column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"


def places_in(path: Path, header: list[str], columns: Columns) -> list[tuple[str, int]]:
    """(field, place in the header) of the columns that exist. CorpusError if a needed column is missing."""
    if repeated := sorted(
        {column for column in header if header.count(column) > 1}.intersection(columns.named.values())
    ):
        raise CorpusError(f"{path} has the column {repeated[0]} twice; rename one of them.")
    if len(header) == 1 and ";" in header[0]:
        raise CorpusError(f"{path} has semicolons between its columns; save it with commas, or with tabs as .tsv.")
    missing = [
        column
        for field, column in columns.named.items()
        if column not in header and (field in columns.needed or column != field)
    ]
    if missing:
        if any(map(_is_value, header)):
            raise CorpusError(
                f"{_lacking(path, missing)}: its first line seems to be a row already, and not the names of the "
                f"columns. Put a line before it that names them, such as {_named(path, header, columns)}; with "
                "--column the row would be lost."
            )
        raise _lacks(path, missing, header, columns)
    return [(field, header.index(column)) for field, column in columns.named.items() if column in header]


def _is_value(cell: str) -> bool:
    """Whether it is hardly a column's name: a number, or a sentence."""
    return cell.strip().lstrip("-").isdecimal() or len(cell.split()) > WORDY


def _named(path: Path, header: Sequence[str], columns: Columns) -> str:
    separator = "<tab>" if format_of(path) == "tsv" else ","
    names = [*columns.needed, *(f"column{n}" for n in range(len(columns.needed) + 1, len(header) + 1))]
    return separator.join(names)


def _csv(path: Path, lines: Iterator[Line], limit: int, columns: Columns) -> Iterator[Row]:
    csv.field_size_limit(limit)
    return _table(path, _records(_Feed(lines, limit)), columns)


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
        """Forget the lines taken so far."""
        self.taken.clear()
        self.size = 0

    def is_doubtful(self) -> bool:
        """Whether the record may be the tail of a failed one: it has an odd quote, and was read before."""
        quotes = sum(line.count(b'"') for _, line, _ in self.taken if isinstance(line, bytes))
        return self.taken[0][2] > 0 and quotes % 2 == 1

    def return_all_but_first(self) -> None:
        self.again.extendleft((number, line, failed + 1) for number, line, failed in reversed(self.taken[1:]))


def _records(feed: _Feed) -> Iterator[Cells]:
    """The records of a CSV file, the header first. If a record fails, only its first line is lost.

    Otherwise a quote that is not closed would swallow all rows up to the next quote, or up to the limit.
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
    places = places_in(path, header, columns)
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
