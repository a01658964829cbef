"""Writers of rows: JSON lines, tables for spreadsheets, and Parquet."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from corpora.core.records import TEXT_COLUMNS, for_spreadsheet

Object = Mapping[str, Any]


def write_lines(path: Path, rows: Iterable[Object]) -> None:
    # Half of a surrogate pair is written as in JSON, so that whoever reads the row can reject it.
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_table(path: Path, columns: Sequence[str], rows: Callable[[], Iterable[Sequence[object]]]) -> None:
    """Write a CSV file. Cells that spreadsheets would run as formulas begin with an apostrophe.

    If there are such cells, a further column names their columns, so that import_corpus removes the apostrophes again.

    rows: function that returns the rows; it is called twice
    """
    has_formulas = any(_changed(row) for row in rows())
    # Excel takes a file without the mark for one in the encoding of the machine.
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        plain = csv.writer(file, lineterminator="\n")
        quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        plain.writerow([*columns, *[TEXT_COLUMNS] * has_formulas])
        for row in rows():
            cells = ["" if cell is None else for_spreadsheet(str(cell)) for cell in row]
            changed = " ".join(columns[place] for place in _changed(row)) if has_formulas else ""
            # The plain writer would not quote a carriage return, which ends a line.
            writer = quoted if any("\r" in cell for cell in cells) else plain
            writer.writerow([*cells, *[changed] * has_formulas])


def _changed(row: Sequence[object]) -> list[int]:
    """Return the places of the cells that get an apostrophe."""
    return [place for place, cell in enumerate(row) if isinstance(cell, str) and for_spreadsheet(cell) != cell]
