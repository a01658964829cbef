"""Read rows from Parquet files, Arrow files and Excel workbooks, in batches so that a file need not fit into memory.

Arrow files are IPC files (.arrow, .feather) or IPC streams, and are memory-mapped. Only the first sheet of an Excel
workbook is read. Its cells become the same text as in a CSV file.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from itertools import repeat
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.arrow import pc, pq
from corpora.sources.compression import ARROW_FILE, BAD_ZIP, FEATHER_1, Bound, Progress, unpacked_file
from corpora.sources.text import NOT_UTF8, Cells, Fault

PARQUET, ARROW, XLSX = "parquet", "arrow", "xlsx"
FORMATS = (PARQUET, ARROW)
Row = tuple[int, dict[str, Any] | Fault]
_ROWS = 1000  # maximum number of rows in a batch
_BATCH = 32 << 20  # maximum size of a batch (bytes)
_LEAST_ROW = 20  # minimum size of a row in a text file (bytes)
_TOO_LONG = object()


def names_in(path: Path, format: str) -> list[str]:
    """Return the names of a file's columns."""
    if format == ARROW:
        with _arrow_file(path) as (_, schema, _):
            return list(schema.names)
    with unpacked_file(path) as plain, pq.ParquetFile(plain) as file:
        return list(file.schema_arrow.names)


def rows_of(
    path: Path, format: str, places: Sequence[tuple[str, int]], longest: int, progress: Progress | None
) -> Iterator[Row]:
    """Yield each row, as (number, values by field) or (number, Fault).

    places: a (field, column index) pair for each field
    longest: maximum length of a text (characters)
    progress: called with the number of bytes read
    """
    bound, line = Bound(path), 0
    batches = _parquet_batches if format == PARQUET else _arrow_batches
    for batch, columns in batches(path, [index for _, index in places], bound, progress or (lambda count: None)):
        plain = [_simplify(column) for column in columns]
        sizes = [_size(column) + 8 * len(column) for column in plain]
        is_small = sum(sizes) <= _BATCH
        bound.take(sum(sizes) if is_small else 0)
        values = [_values(column, longest, at_once=is_small) for column in plain]
        for row in zip(*values, strict=True) if values else repeat((), batch.num_rows):
            line += 1
            bound.take(0 if is_small else sum(map(_bytes, row)))
            yield line, _row(places, row, longest)


def _row(places: Sequence[tuple[str, int]], values: Sequence[Any], longest: int) -> dict[str, Any] | Fault:
    for (field, _), value in zip(places, values, strict=True):
        if value is _TOO_LONG or (isinstance(value, str) and len(value) > longest):
            return Fault(f"The {field} is longer than {longest:,} characters.")
        if isinstance(value, Fault):
            return value
    return {field: value for (field, _), value in zip(places, values, strict=True)}


_Batches = Iterator[tuple[pa.RecordBatch, list[pa.Array]]]


def _parquet_batches(path: Path, indexes: Sequence[int], bound: Bound, progress: Progress) -> _Batches:
    """Yield batches with the columns at the indexes."""
    with unpacked_file(path) as plain:
        with pq.ParquetFile(plain) as file:
            names = [file.schema_arrow.names[index] for index in indexes]
            texts = _texts(file.schema, names)
        # Repeated values are stored only once in the file. Dictionary encoding does the same in memory.
        with pq.ParquetFile(plain, read_dictionary=texts) as file:
            unpacked_size = _unpacked_size(file.metadata, names)
            # Also limit the number of rows. Millions of identical rows take almost no space, but are as slow to read as
            # different ones.
            bound.check(max(unpacked_size, file.metadata.num_rows * _LEAST_ROW))
            rows = max(file.metadata.num_rows, 1)
            batch_rows = max(1, min(_ROWS, _BATCH * rows // max(unpacked_size, 1)))
            for batch in file.iter_batches(batch_rows, columns=names):
                yield batch, [batch.column(name) for name in names]
                progress(bound.size * batch.num_rows // rows)


def _texts(schema: Any, names: list[str]) -> list[str]:
    """Return the Parquet paths of the named columns that contain text."""
    texts = (column.path for column in map(schema.column, range(len(schema))) if column.physical_type == "BYTE_ARRAY")
    return [path for path in texts if path.split(".")[0] in names]


def _unpacked_size(metadata: Any, names: list[str]) -> int:
    """Return the uncompressed size of the named columns, according to the file's metadata (bytes)."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = (group.column(number) for group in groups for number in range(group.num_columns))
    return sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] in names)


def _arrow_batches(path: Path, indexes: Sequence[int], bound: Bound, progress: Progress) -> _Batches:
    """Yield batches with the columns at the indexes."""
    included = sorted(set(indexes))
    with _arrow_file(path, included) as (batches, _, count):
        for batch in batches:
            bound.check(batch.num_rows * _LEAST_ROW)
            batch.validate(full=True)  # offsets in a damaged file could point anywhere in memory
            for start in range(0, batch.num_rows, _ROWS):
                part = batch.slice(start, _ROWS)
                yield part, [part.column(included.index(index)) for index in indexes]
            progress(bound.size // count if count else 0)
        progress(0 if count else bound.size)


@contextmanager
def _arrow_file(
    path: Path, included: Sequence[int] | None = None
) -> Iterator[tuple[Iterable[pa.RecordBatch], pa.Schema, int]]:
    """Open an Arrow file or stream. Yield its batches, its schema, and the number of batches (0 if unknown).

    included: indexes of the columns to read; None for all
    """
    options = pa.ipc.IpcReadOptions(included_fields=None if included is None else list(included))
    with unpacked_file(path) as plain, pa.memory_map(str(plain)) as source:
        start = source.read(len(ARROW_FILE))
        if start.startswith(FEATHER_1):
            raise CorpusError(
                f"{path} is in version 1 of Feather. Save it again with a current version, or as Parquet."
            )
        if start == ARROW_FILE:
            file = pa.ipc.open_file(source, options=options)
            count = file.num_record_batches
            yield map(file.get_batch, range(count)), file.schema, count
            return
        source.seek(source.size() - 4)
        if source.read(4) != bytes(4):  # without the end-of-stream marker, batches may be missing
            raise OSError("Its end is missing")
        source.seek(0)
        stream = pa.ipc.open_stream(source, options=options)
        yield stream, stream.schema, 0


def _simplify(column: pa.Array) -> pa.Array:
    """Convert a column to a type that Python and `_size` support."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray) and not isinstance(kind, pa.UuidType):
        return _simplify(column.storage)
    if pa.types.is_timestamp(kind):  # datetime has no nanoseconds
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_decode(column)
    if kind == pa.string_view():
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if kind == pa.binary_view() else column


def _values(column: pa.Array, longest: int, *, at_once: bool) -> Iterable[Any]:
    """Return the values of a column. Replace unreadable values with a Fault, and overlong values with _TOO_LONG."""
    if at_once and pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if at_once and not pa.types.is_nested(column.type):
        try:
            values = column.to_pylist()
            return values if _is_plain(column.type) else list(map(_plain, values))
        except (ValueError, OverflowError):
            pass  # convert the values one by one to find the faulty ones
    return (_value(column, number, longest) for number in range(len(column)))


def _is_plain(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_primitive(kind))


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _value(column: pa.Array, number: int, longest: int) -> Any:
    """Return the value of a cell, or _TOO_LONG if it certainly exceeds the maximum length.

    longest: maximum length of a text (characters)
    """
    cell = column[number]
    cell = cell.value if isinstance(cell, pa.DictionaryScalar) else cell
    if not cell.is_valid:
        return None
    size = len(cell.as_buffer()) if _is_text(cell.type) else 0
    if pa.types.is_nested(cell.type):
        size = _size(column.slice(number, 1))
    if size > 4 * longest:  # UTF-8 uses at most four bytes per character
        return _TOO_LONG
    try:
        return _plain(cell.as_py())
    except UnicodeDecodeError:
        return Fault(NOT_UTF8)
    except (ValueError, OverflowError) as error:  # for example a date after the year 9999
        return Fault(f"The row contains a value of the type {cell.type} that cannot be read: {error}.")


def _plain(value: Any) -> Any:
    """Convert a value to the type that it would have if read from a text file.

    Bytes and UUIDs become strings. Decimals become integers, or strings if they have decimal places.
    """
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Decimal) and not value.as_tuple().exponent:
        return int(value)
    if isinstance(value, Decimal | UUID):
        return str(value)
    return [_plain(element) for element in value] if isinstance(value, list) else value


def _size(values: pa.Array) -> int:
    """Return the total size of the texts in an array (bytes). Each element of a list or map adds one byte."""
    values, kind = _simplify(values), values.type
    if pa.types.is_union(kind):
        return int(values.nbytes)
    if _is_text(values.type):
        return pc.sum(pc.binary_length(values)).as_py() or 0
    if pa.types.is_dictionary(kind) and _is_text(kind.value_type):
        return pc.sum(pc.binary_length(values.dictionary).take(values.indices)).as_py() or 0
    if pa.types.is_map(kind):
        return len(values.keys) + _size(values.keys) + _size(values.items)
    if pa.types.is_struct(kind):
        return sum(map(_size, values.flatten()))
    # All other nested types are lists.
    return len(values.flatten()) + _size(values.flatten()) if pa.types.is_nested(kind) else 0


def _bytes(value: Any) -> int:
    """Return the approximate size that a value would have in a text file (bytes)."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    return len(value) if isinstance(value, str | bytes) else 8


# --- Excel workbooks (.xlsx)


def sheet_cells(path: Path, limit: int, progress: Progress | None = None) -> Iterator[Cells]:
    """Yield the rows of the first sheet, starting with the header. Missing cells at the end of a row are empty.

    limit: maximum length of a cell (characters)
    progress: called once all rows have been read, with the number of bytes

    Raise CorpusError if the file is not a workbook.
    """
    # Imported here, because the server's pages rarely need it
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    bound = Bound(path)
    try:
        # Pass an open file, because openpyxl rejects paths without the suffix .xlsx.
        with unpacked_file(path) as plain, plain.open("rb") as file:
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
            width = 0
            for number, row in enumerate(workbook.worksheets[0].iter_rows(values_only=True), 1):
                cells = _strip_empty([_cell_text(value) for value in row])
                bound.take(sum(map(len, cells)))
                width = width or len(cells)
                if not cells:
                    yield number, []
                elif too_long := next((cell for cell in cells if len(cell) > limit), None):
                    yield number, Fault(f"A cell has {len(too_long):,} characters. The limit is {limit:,}.")
                else:
                    yield number, cells + [""] * (width - len(cells))
    # Both lxml and Python's parser raise a SyntaxError for malformed XML.
    except (InvalidFileException, *BAD_ZIP, KeyError, SyntaxError, ValueError, EOFError) as error:
        raise CorpusError(
            f"{path} cannot be read as an Excel workbook ({error}). Save it again in a spreadsheet program, as .xlsx "
            "or as CSV."
        ) from error
    if progress:
        progress(path.stat().st_size)


def _strip_empty(cells: list[str]) -> list[str]:
    """Remove empty cells from the end of a row."""
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _cell_text(value: Any) -> str:
    """Convert a cell to text. Whole numbers, which Excel stores as decimals, get no decimal point."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)
