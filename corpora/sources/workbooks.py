"""Excel workbooks (.xlsx): the rows of the first sheet, with cells as they would stand in a CSV file."""

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from corpora.core import CorpusError
from corpora.sources.compression import BAD_ZIP, Bound, Progress, unpacked_file
from corpora.sources.text import Cells, Fault

XLSX = "xlsx"


def cells_of(path: Path, limit: int, progress: Progress | None = None) -> Iterator[Cells]:
    """Yield the rows of the first sheet, starting with the header. A cell that a row lacks is empty.

    limit: the maximum length of a cell (characters)
    progress: a function that is called with the number of bytes read, once all rows have been read

    Raise CorpusError if the file is not a workbook.
    """
    # Imported here, because the server's pages rarely need it.
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    bound = Bound(path)
    try:
        # openpyxl refuses paths without the suffix .xlsx, but not open files.
        with unpacked_file(path) as plain, plain.open("rb") as file:
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
            width = 0
            for number, row in enumerate(workbook.worksheets[0].iter_rows(values_only=True), 1):
                cells = _trimmed([_text(value) for value in row])
                bound.take(sum(map(len, cells)))
                width = width or len(cells)
                if not cells:
                    yield number, []
                elif too_long := next((cell for cell in cells if len(cell) > limit), None):
                    yield number, Fault(f"A cell has {len(too_long):,} characters. The limit is {limit:,}.")
                else:
                    yield number, cells + [""] * (width - len(cells))
    # Malformed XML is a SyntaxError, with lxml as with the parser of Python.
    except (InvalidFileException, *BAD_ZIP, KeyError, SyntaxError, ValueError, EOFError) as error:
        raise CorpusError(
            f"{path} cannot be read as an Excel workbook ({error}). Save it again in a spreadsheet program, as .xlsx "
            "or as CSV."
        ) from error
    if progress:
        progress(path.stat().st_size)


def _trimmed(cells: list[str]) -> list[str]:
    """Return the cells without the empty ones at the end."""
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _text(value: Any) -> str:
    """Return a cell as text. Whole numbers, which Excel stores as decimals, have no decimal point."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)
