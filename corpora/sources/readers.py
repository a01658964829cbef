"""Read files of posts, records, predictions or scores in JSONL, CSV, TSV, Parquet, Arrow and Excel workbooks.

Files can be compressed, and are read row by row so that they need not fit into memory. For each row, a reader yields
the line number with the raw values or with a Fault. The values are validated elsewhere, for example in
corpora/core/records.py and corpora/predictions/prediction_rows.py.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import Any

from corpora.core import CorpusError
from corpora.core.records import AS_TEXT, DECLARED, OBLIGATORY, TEXT_COLUMNS
from corpora.sources import columnar, text
from corpora.sources.columnar import XLSX
from corpora.sources.compression import Progress, explain_damage, format_of

# --- The mapping from our fields to the columns of a file.


WORDY = 4  # maximum number of words in a column name


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns to read from a file.

    named: column names of the file, by our field names
    needed: fields whose columns are required
    bare: whether a TSV file may have no header; if its first line contains none of the column names, the columns are
        assumed to be in the order of `named`
    """

    named: Mapping[str, str]
    needed: tuple[str, ...] = OBLIGATORY
    bare: bool = False


def named_columns(pairs: Iterable[str], fields: Collection[str]) -> dict[str, str]:
    """Parse options such as `label=lang`. Return column names by field.

    Raise CorpusError if an option is invalid.
    """
    columns = {}
    for pair in pairs:
        field, _, column = pair.partition("=")
        if field not in fields or not column:
            raise CorpusError(
                f"--column {pair}: expected FIELD=COLUMN without spaces, for example "
                f"{pair if pair in fields else next(iter(fields))}=my_column. The fields are: {', '.join(fields)}."
            )
        columns[field] = column
    return columns


def missing_columns_error(path: Path, missing: Collection[str], header: Sequence[str], columns: Columns) -> CorpusError:
    """Return the error for a file with missing columns.

    missing: names of the missing columns
    header: names of the file's columns
    """
    unused = {column.casefold(): column for column in header if column not in columns.named.values()}
    missing_columns = {field: column for field, column in columns.named.items() if column in missing}
    matches = {field: get_close_matches(column.casefold(), unused, 1) for field, column in missing_columns.items()}
    nearest = {field: unused[names[0]] for field, names in matches.items() if names}
    nearest = nearest or {next(iter(missing_columns)): next(iter(unused.values()), "body")}
    advice = " ".join(
        f"--labels {name}" if field == DECLARED else f"--column {field}={name}" for field, name in nearest.items()
    )
    column_names = ", ".join(header) or "none"
    return CorpusError(
        f"{_missing_message(path, missing)}. Its columns are: {column_names}. Map them, for example with {advice}."
    )


def _missing_message(path: Path, missing: Collection[str]) -> str:
    return f"{path} has no column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"


def _first_line_error(path: Path, missing: list[str], header: list[str], columns: Columns) -> CorpusError:
    """Return the error for a table with missing columns, perhaps because its first line is not a header."""
    format = format_of(path)
    separator, separators = ("<tab>", "tabs") if format == "tsv" else (",", "commas, semicolons or tabs")
    if len(header) < 2 <= len(columns.needed) and not set(header) & set(columns.named.values()):
        content = f"contains only the cell {header[0][:40]!r}" if header else "is blank"
        advice = f"Separate cells by {separators}."
        return CorpusError(
            f"The first line of {path} {content}, but the columns "
            f"{' and '.join(columns.named[name] for name in columns.needed)} are required. "
            f"{'Delete the lines above the column names.' if format == XLSX else advice}"
        )
    # Cells that are numbers or sentences are probably values, not column names.
    if any(cell.strip().lstrip("-").isdecimal() or len(cell.split()) > WORDY for cell in header):
        names = [*columns.needed, *(f"column{n}" for n in range(len(columns.needed) + 1, len(header) + 1))]
        return CorpusError(
            f"{_missing_message(path, missing)}. The first line seems to be a row, not the column names. Add a first "
            f"line with the column names, such as {separator.join(names)}. If you used --column "
            "instead, the row would be lost."
        )
    return missing_columns_error(path, missing, header, columns)


def find_columns(path: Path, header: list[str], columns: Columns) -> list[tuple[str, int]]:
    """Return (field, index in the header) for each column found in the file.

    Raise CorpusError if a required column is missing.
    """
    repeats = {column for column in columns.named.values() if header.count(column) > 1}
    if repeats:
        raise CorpusError(f"{path} has the column {min(repeats)} twice. Rename one of them.")
    missing = [
        column
        for field, column in columns.named.items()
        if column not in header and (field in columns.needed or column != field)
    ]
    if missing:
        raise _first_line_error(path, missing, header, columns)
    return [(field, header.index(column)) for field, column in columns.named.items() if column in header]


Row = tuple[int, dict[str, Any] | text.Fault]
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_rows(
    path: Path,
    format: str,
    columns: Columns,
    max_line: int = text.MAX_LINE,
    progress: Progress | None = None,
    text_format: text.TextFormat | None = None,
) -> Iterator[Row]:
    """Yield each non-blank row of a file, as (line, values by field) or (line, Fault).

    max_line: maximum length of a line (bytes) or cell (characters)
    progress: called with the number of bytes read
    text_format: encoding and delimiter of the file; None to detect them

    Raise CorpusError if the file cannot be read.
    """
    with explain_damage(path, format):
        if format in columnar.FORMATS:
            indexes = find_columns(path, columnar.names_in(path, format), columns)
            yield from columnar.rows_of(path, format, indexes, max_line, progress)
        elif format == XLSX:
            yield from _table(path, columnar.sheet_cells(path, max_line, progress), format, columns)
        else:
            text_format = text_format or text.text_format_of(path, format)
            read_lines = text.values_of if format == "jsonl" else text.lines_of
            lines = read_lines(path, max_line, progress, text_format.encoding)
            if format == "jsonl":
                yield from _jsonl(path, lines, columns)
            else:
                yield from _table(path, _cells(lines, text_format, max_line), format, columns)


def objects_of(path: Path, format: str, max_size: int) -> Iterator[Row]:
    """Yield each non-blank row of a file with all of its columns, as (line, object) or (line, Fault).

    max_size: maximum size of an object (bytes)

    Raise CorpusError if the file cannot be read.
    """
    if format != "jsonl":
        header = list(dict.fromkeys(header_of(path, format)))
        yield from read_rows(path, format, Columns({name: name for name in header}, needed=()), max_size)
        return
    with explain_damage(path, format):
        for number, line in text.values_of(path, max_size, encoding=text.text_format_of(path, format).encoding):
            if isinstance(line, text.Fault) or not line.isspace():
                yield number, line if isinstance(line, text.Fault) else text.object_of(line, ())


def _jsonl(path: Path, lines: Iterator[text.Line], columns: Columns) -> Iterator[Row]:
    named = tuple(columns.named.items())
    missing = [columns.named[field] for field in columns.needed]
    first_value: dict[str, Any] | None = None
    has_several = False
    for number, line in lines:
        if isinstance(line, text.Fault):
            yield number, line
            continue
        if line.isspace():
            continue
        value = text.object_of(line, columns.needed)
        if isinstance(value, text.Fault):
            yield number, value
        else:
            first_value, has_several = value if first_value is None else first_value, first_value is not None
            if missing:
                missing = [column for column in missing if text.get_value(value, column, text.ABSENT) is text.ABSENT]
            yield number, {field: text.get_value(value, column) for field, column in named}
    if first_value is not None and not has_several:
        _check_columns(path, first_value)
    if first_value is not None and missing:
        if not has_several and len(missing) == len(columns.needed):
            _check_wrapped(path, first_value)
        raise missing_columns_error(path, missing, list(text.names_in(first_value)), columns)


def _check_columns(path: Path, document: dict[str, Any]) -> None:
    """Raise CorpusError if a file's only object is a column-oriented table, which pandas writes by default."""
    values = list(document.values())
    by_index = len(values) > 1 and all(isinstance(value, dict) and value.keys() == values[0].keys() for value in values)
    if by_index or document.keys() == {"columns", "index", "data"}:
        raise CorpusError(
            f"{path} is a table by columns, as pandas writes it. Write a row per line, for example with "
            "to_json(orient='records', lines=True), and use that file."
        )


def _check_wrapped(path: Path, document: dict[str, Any]) -> None:
    """Raise CorpusError if a file's only object contains the rows in a nested list."""
    if keys := next(_lists_of_objects(document), ()):
        steps = "".join(f".{key}" if _PLAIN_KEY.fullmatch(key) else f".[{json.dumps(key)}]" for key in keys)
        raise CorpusError(
            f"{path} is a single JSON object, and its rows seem to be in {'.'.join(keys)!r}. Write one row per line, "
            f"for example with jq -c '{steps}[]' {path.name} > rows.jsonl, and use that file."
        )
    if document and all(isinstance(content, dict | list) for content in document.values()):
        raise CorpusError(
            f"{path} is a single JSON object, not a list of rows. Write one row per line; with pandas, for example, "
            'to_json("rows.jsonl", orient="records", lines=True).'
        )


def _lists_of_objects(value: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the path of keys to each list of objects, outermost first."""
    for key, content in value.items():
        if isinstance(content, list) and content and all(isinstance(element, dict) for element in content):
            yield (key,)
    for key, content in value.items():
        if isinstance(content, dict):
            yield from ((key, *keys) for keys in _lists_of_objects(content))


def _no_header(path: Path) -> CorpusError:
    return CorpusError(f"Cannot read the first line of {path} as a header. Check --format.")


def _cells(
    lines: Iterator[text.Line], text_format: text.TextFormat, limit: int = text.MAX_LINE
) -> Iterator[text.Cells]:
    """Yield the cells of each row in a table. TSV has no quoting, so quotation marks in it are ordinary characters."""
    if text_format.delimiter:
        yield from text.records(text.skip_delimiter_hint(lines), limit, text.DELIMITERS[text_format.delimiter][0])
        return
    for number, line in lines:
        if not isinstance(line, text.Fault):
            row = line.decode(*text.ESCAPED).rstrip("\r\n")
            yield number, row.split("\t") if row else []
        else:
            yield number, line


def _table(path: Path, cells: Iterator[text.Cells], format: str, columns: Columns) -> Iterator[Row]:
    names = list(columns.named.values())
    number, header = next(cells, (1, []))
    # If the user specified column names, the file must have a header.
    if format == "tsv" and columns.bare and names == list(columns.named) and isinstance(header, list):
        # A first line that contains any of the column names is a header, even if it is faulty.
        is_row = not {cell.strip().casefold() for cell in header} & set(names)
        if is_row and len(columns.needed) <= len(header) <= len(names):
            cells, header = chain([(number, header)], cells), names[: len(header)]
    if isinstance(header, text.Fault):
        raise _no_header(path)
    indexes = find_columns(path, header, columns)
    protected = header.index(TEXT_COLUMNS) if TEXT_COLUMNS in header else None
    for line, row in cells:
        if isinstance(row, text.Fault):
            yield line, row
        elif not row:
            continue
        elif len(row) != len(header):
            yield line, text.Fault(f"The row has {text.field_count(row)}, but the header has {len(header):,}.")
        else:
            try:
                "".join(row).encode()
            except UnicodeEncodeError:
                yield line, text.Fault(text.NOT_UTF8)
            else:
                if protected is not None and row[protected]:
                    _unprotect(row, header, row[protected].split())
                yield line, {field: row[index] for field, index in indexes}


def _unprotect(row: list[str], header: Sequence[str], names: Collection[str]) -> None:
    """Remove the apostrophes that protect cells from being run as formulas in spreadsheets.

    names: columns of the row's protected cells
    """
    for place, name in enumerate(header):
        if name in names:
            row[place] = row[place].removeprefix(AS_TEXT)


# --- A preview of a file, for matching its columns with our fields.


ROWS = 10
_SURROGATE = re.compile("[\ud800-\udfff]")
MOST_INSPECTED = 64 << 20  # number of bytes that the preview inspects to detect the encoding


@dataclass(frozen=True)
class Sample:
    """The first rows of a file.

    columns: names of the columns
    rows: each row's values in the order of the columns, or the reason why the row cannot be read
    """

    columns: list[str]
    rows: list[list[Any] | str]


def sample(path: Path, format: str, text_format: text.TextFormat) -> Sample:
    """Return the first rows of a file.

    Raise CorpusError if the file cannot be read or contains no rows.
    """
    columns = list(dict.fromkeys(filter(None, header_of(path, format, ROWS, text_format))))
    if not columns:
        raise CorpusError(f"The first line of {path} contains no column names.")
    if _SURROGATE.search("".join(columns)):
        raise CorpusError(f"The column names of {path} cannot be read. Choose the file's encoding.")
    every_column = Columns({name: name for name in columns}, needed=())
    rows_read = read_rows(path, format, every_column, text_format=text_format)
    rows = [
        row.reason if isinstance(row, text.Fault) else [row.get(name) for name in columns]
        for _, row in islice(rows_read, ROWS)
    ]
    if not rows:
        raise CorpusError(f"{path} contains no rows, only column names. Add rows and upload it again.")
    return Sample(columns, rows)


def header_of(path: Path, format: str, objects: int = 1, text_format: text.TextFormat | None = None) -> list[str]:
    """Return the names of a file's columns.

    The names come from the first line, from the schema of a Parquet or Arrow file, or from the keys of the first JSON
    objects.

    objects: number of JSON objects whose keys are used
    text_format: encoding and delimiter of the file; None to detect them
    """
    with explain_damage(path, format):
        return list(_names(path, format, objects, text_format or text.text_format_of(path, format)))


def _names(path: Path, format: str, objects: int, text_format: text.TextFormat) -> Iterable[str]:
    if format in columnar.FORMATS:
        return columnar.names_in(path, format)
    if format == "jsonl":
        numbered_lines = text.values_of(path, text.MAX_LINE, encoding=text_format.encoding)
        lines = (line for _, line in numbered_lines if isinstance(line, text.Fault) or not line.isspace())
        values = (text.object_of(line, ()) for line in lines if not isinstance(line, text.Fault))
        objects_read = islice((value for value in values if not isinstance(value, text.Fault)), objects)
        return list(chain.from_iterable(map(text.names_in, objects_read)))
    if format == XLSX:
        rows = columnar.sheet_cells(path, text.MAX_LINE)
    else:
        rows = _cells(text.lines_of(path, text.MAX_LINE, encoding=text_format.encoding), text_format)
    _, header = next(rows, (1, []))
    if isinstance(header, text.Fault):
        raise _no_header(path)
    return header
