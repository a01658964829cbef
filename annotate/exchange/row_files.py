"""Writers of rows: JSON lines, tables for spreadsheets, and Parquet."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.core.records import TEXT_COLUMNS, for_spreadsheet

Object = Mapping[str, Any]


def write_lines(path: Path, rows: Iterable[Object]) -> None:
    # backslashreplace writes lone surrogates as JSON escapes, so that the reader of the row can reject them.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_table(path: Path, columns: Sequence[str], rows: Callable[[], Iterable[Sequence[object]]]) -> None:
    """Write a CSV file. Cells that spreadsheets would run as formulas get an apostrophe.

    If there are such cells, an additional column names their columns, so that import_corpus can remove the apostrophes.

    rows: function that returns the rows; it is called twice
    """
    has_formulas = any(_formula_cells(row) for row in rows())
    # Excel assumes the machine's encoding if a file has no byte order mark.
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        plain = csv.writer(file, lineterminator="\n")
        quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        plain.writerow([*columns, *[TEXT_COLUMNS] * has_formulas])
        for row in rows():
            cells = ["" if cell is None else for_spreadsheet(str(cell)) for cell in row]
            changed = " ".join(columns[index] for index in _formula_cells(row)) if has_formulas else ""
            # The plain writer doesn't quote carriage returns, which end a line.
            writer = quoted if any("\r" in cell for cell in cells) else plain
            writer.writerow([*cells, *[changed] * has_formulas])


def _formula_cells(row: Sequence[object]) -> list[int]:
    """Return the indices of the cells that get an apostrophe."""
    return [index for index, cell in enumerate(row) if isinstance(cell, str) and for_spreadsheet(cell) != cell]
