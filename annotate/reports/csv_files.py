"""Tables as CSV for a spreadsheet, which runs none of their cells as a formula."""

import csv
import io
from collections.abc import Iterable
from datetime import datetime

from annotate.reports.tables import NUMBER, Cell, Column, Table
from corpora.core.records import FORMULA

AS_TEXT = "'"  # before what a spreadsheet would else run


def as_csv(table: Table) -> str:
    """The headings and all rows that are found, in their order, the total last; numbers as they are sorted."""
    headings = [column.heading for column in table.columns]
    return written(headings, ([_value(*of) for of in zip(row, table.columns, strict=True)] for row in table.rows))


def written(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Cells that are text are made such that a spreadsheet takes them for text."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\r\n")
    writer.writerow(map(_safe, headings))
    writer.writerows([_safe(value) for value in row] for row in rows)
    return made.getvalue()


def _value(cell: Cell, column: Column) -> object:
    """A number without separators, a time with its zone, and else the words, with the note that stands behind them."""
    if isinstance(cell.by, datetime):
        return cell.by.isoformat(timespec="seconds")
    if column.kind == NUMBER and isinstance(cell.by, int | float):
        return cell.by
    return f"{cell.shown} ({cell.note})" if cell.note else cell.shown


def _safe(value: object) -> object:
    return f"{AS_TEXT}{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
