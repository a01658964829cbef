"""Tables for pages, dataset cards and terminals. Each column is declared with a function that returns its cells.

A table with a slug can be sorted by links in its headings, without a script, as in ?sort=people.-answers. Pages can
also offer a filter for long tables, as in ?find-people=ann, and downloads as CSV, as in ?csv=people. Tables are
rendered in Markdown, in LaTeX and for a terminal by `table_formats.py`, and in HTML by templates/annotate/_table.html.
"""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import slugify

from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import NOT_MEASURED, count, estimate, percent
from corpora.core.records import AS_TEXT, FORMULA

# Kinds of columns. In a terminal, a `name` column is omitted if there is no room, and each `note` is listed below the
# table. On a page, `short` has no line breaks, and `sentence` has a minimum width.
TEXT, NAME, NUMBER, NOTE, SHORT, SENTENCE = "text", "name", "number", "note", "short", "sentence"
FEW = 12  # maximum number of rows in a collapsed table on a page; longer tables are loaded on demand
BEGINNING = 140  # maximum length of a text in a cell (characters)
MANY = 15  # maximum number of rows in a table without a filter
CELLS = 520  # maximum number of cells of a table on a single page of the site, in whole rows
ALL = "all"  # name of the row for all languages, although `all` is also a language code
LabelName = Callable[[str], str]  # returns the name of a label
Row = Any  # usually a dict from a report


class LazyList(Sequence[Any]):
    """A list that creates its items on access, so that a page of a long list is as fast as a short list.

    size: number of items.
    items: function that returns the items in a slice.
    """

    def __init__(self, size: int, items: Callable[[slice], Sequence[Any]]) -> None:
        self.size, self.items = size, items

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        return self.items(index) if isinstance(index, slice) else self.items(slice(index, index + 1))[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._whole)

    @cached_property
    def _whole(self) -> Sequence[Any]:
        return self.items(slice(None))


class LazyCells(LazyList):
    """The cells of a long list of rows. A single column can be computed without the cells of the other columns.

    rows: rows, which are created on access.
    """

    def __init__(self, rows: LazyList, columns: Sequence["Column"]) -> None:
        super().__init__(len(rows), lambda part: [tuple(column.cell(row) for column in columns) for row in rows[part]])
        self.rows, self.columns = rows, columns

    def column(self, number: int) -> "list[Cell]":
        return [self.columns[number].cell(row) for row in self.rows]

    def chosen(self, numbers: Sequence[int]) -> "LazyCells":
        """Return the cells of the rows with these numbers, in this order."""
        rows = list(self.rows)
        return LazyCells(LazyList(len(numbers), lambda part: [rows[number] for number in numbers[part]]), self.columns)


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    by: value to sort by; None comes last in ascending and descending order.
    url: target of a link.
    note: small text after the cell's text.
    mark: CSS class of the cell; in the first cell, the class of the row.
    method: anchor in the documentation's table of methods.
    act: label of a button after the text, and the URL that it posts to.
    """

    shown: str
    by: Any = None
    url: str = ""
    note: str = ""
    mark: str = ""
    method: str = ""
    act: tuple[str, str] | None = None


@dataclass(frozen=True)
class Column:
    """A column of a table.

    key: key of the value in a row.
    says: function that returns the cell or its text for a row; by default, the value at `key`.
    method: anchor in the documentation's table of methods.
    """

    key: str
    heading: str
    kind: str = TEXT
    says: Callable[[Row], Cell | str] | None = None
    method: str = ""

    @property
    def down(self) -> bool:
        """Whether the first click sorts in descending order."""
        return self.kind == NUMBER

    def cell(self, row: Row) -> Cell:
        content = row[self.key] if self.says is None else self.says(row)
        return content if isinstance(content, Cell) else Cell(content, content)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the column without its function, because a pickled table contains its cells."""
        return Column, (self.key, self.heading, self.kind, None, self.method)


@dataclass(frozen=True)
class Heading:
    words: str
    kind: str
    sort: str  # value of the URL parameter; empty if the table cannot be sorted
    aria: str  # "ascending", "descending" or empty
    method: str


@dataclass(frozen=True)
class Table:
    """A table.

    caption: number and name of the rows, such as "60 languages".
    total: rows that stay at the bottom in any order.
    slug: the table's name in the URL; empty if the table cannot be sorted.
    sort: value of the URL parameter `sort`; it may refer to another table on the page.
    parameters: all URL parameters, if the page offers filters and downloads; otherwise None.
    path: path of the page with filters and downloads, because other pages may show the same table.
    """

    caption: str
    columns: tuple[Column, ...]
    body: Sequence[tuple[Cell, ...]]
    total: tuple[tuple[Cell, ...], ...] = ()
    slug: str = ""
    sort: str = ""
    parameters: Mapping[str, str] | None = None
    path: str = ""

    @property
    def name(self) -> str:
        """The table's name in the URL, even if it cannot be sorted."""
        return self.slug or slugify(self.caption)

    @property
    def find(self) -> str:
        """The search terms of the table's filter."""
        return (self.parameters or {}).get(f"find-{self.name}", "").strip()

    @property
    def others(self) -> dict[str, str]:
        """All URL parameters except the download and this table's filter and page."""
        names = (f"find-{self.name}", f"page-{self.name}", "csv")
        return {key: value for key, value in (self.parameters or {}).items() if key not in names}

    @property
    def unfiltered(self) -> str:
        return f"{self.path}?{urlencode(self.others)}"

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        return [*self._ordered, *self.total]

    @property
    def _ordered(self) -> Sequence[tuple[Cell, ...]]:
        """The filtered rows in order, without the total."""
        if not self.slug and not self.parameters:
            return self.body
        column, down = self._order()
        matches = self.matches
        if column is None:
            return matches
        if isinstance(matches, LazyCells):
            keys = [cell.by for cell in matches.column(column)]
            ranked = [number for number, key in enumerate(keys) if key is not None]
            ranked.sort(key=keys.__getitem__, reverse=down)
            return matches.chosen([*ranked, *(number for number, key in enumerate(keys) if key is None)])
        sortable = [row for row in matches if row[column].by is not None]
        sortable.sort(key=lambda row: row[column].by, reverse=down)
        return [*sortable, *(row for row in matches if row[column].by is None)]

    @cached_property
    def page(self) -> Page[tuple[Cell, ...]]:
        """The rows on the current page of the site, without the total. All rows, if the site offers no filter."""
        ordered = self._ordered
        number = (self.parameters or {}).get(f"page-{self.name}")
        most = CELLS // len(self.columns) if self.parameters is not None else len(ordered)
        return Paginator(ordered, max(1, most)).get_page(number)

    @property
    def turns(self) -> list[tuple[str, str]]:
        """The links to the previous and the next page of rows, as (URL, text) tuples."""
        numbers = {
            "Previous": self.page.number - 1 if self.page.has_previous() else None,
            "Next": self.page.number + 1 if self.page.has_next() else None,
        }
        search = {f"find-{self.name}": self.find} if self.find else {}
        return [
            (f"{self.path}?{urlencode(self.others | search | {f'page-{self.name}': number})}#{self.name}", words)
            for words, number in numbers.items()
            if number
        ]

    @cached_property
    def matches(self) -> Sequence[tuple[Cell, ...]]:
        """The body rows that contain every search term.

        In long lists, numbers are not searched.
        """
        search_words = self.find.casefold().split()
        if not search_words:
            return self.body
        if isinstance(self.body, LazyCells):
            texts = [self.body.column(n) for n, column in enumerate(self.columns) if column.kind != NUMBER]
            lines = enumerate(map(_in_a_line, zip(*texts, strict=True)))
            return self.body.chosen([n for n, line in lines if all(word in line for word in search_words)])
        return [row for row in self.body if all(word in _in_a_line(row) for word in search_words)]

    @property
    def is_filtered(self) -> bool:
        """Whether the table has a filter field."""
        return self.parameters is not None and (len(self.body) > MANY or bool(self.find))

    @property
    def cells(self) -> list[list[tuple[Cell, str, str]]]:
        """The rows, as lists of (cell, column kind, column heading) tuples."""
        columns = [(column.kind, column.heading) for column in self.columns]
        shown = (*self.page.object_list, *self.total)
        return [[(cell, *column) for cell, column in zip(row, columns, strict=True)] for row in shown]

    @property
    def alone(self) -> str:
        """The URL of a page with only this table."""
        return f"{self.path}?{urlencode({**self.others, 'table': self.name})}"

    @property
    def headings(self) -> list[Heading]:
        sorted_by, down = self._order()
        headings_of = []
        for number, column in enumerate(self.columns):
            turn = not down if number == sorted_by else column.down
            aria = ("descending" if down else "ascending") if number == sorted_by else ""
            sort = f"{self.slug}.{'-' if turn else ''}{column.key}" if self.slug else ""
            headings_of.append(Heading(column.heading, column.kind, sort, aria, column.method))
        return headings_of

    @property
    def is_short(self) -> bool:
        return len(self.body) <= FEW

    @property
    def is_chosen(self) -> bool:
        """Whether the URL filters or sorts the table."""
        return bool(self.find) or self._order()[0] is not None

    def _order(self) -> tuple[int | None, bool]:
        """Return the index of the sort column, or None, and whether the order is descending."""
        slug, _, order = self.sort.partition(".")
        key, down = order.removeprefix("-"), order.startswith("-")
        is_sorted = self.slug and slug == self.slug
        return next((n for n, column in enumerate(self.columns) if is_sorted and column.key == key), None), down

    def without(self, keys: Collection[str]) -> "Table":
        """Return the table without these columns."""
        kept_columns = [n for n, column in enumerate(self.columns) if column.key not in keys]
        body, total = (tuple(tuple(row[n] for n in kept_columns) for row in rows) for rows in (self.body, self.total))
        return replace(self, columns=tuple(self.columns[n] for n in kept_columns), body=body, total=total)


def _in_a_line(row: Iterable[Cell]) -> str:
    return " ".join(f"{cell.shown} {cell.note}" for cell in row).casefold()


def table(
    caption: str,
    columns: Iterable[Column],
    rows: Iterable[Row],
    *,
    total: Iterable[Row] = (),
    slug: str = "",
    sort: str = "",
) -> Table:
    column_list = tuple(columns)

    def cells(part: Iterable[Row]) -> tuple[tuple[Cell, ...], ...]:
        return tuple(tuple(column.cell(row) for column in column_list) for row in part)

    body = LazyCells(rows, column_list) if isinstance(rows, LazyList) else cells(rows)
    return Table(caption, column_list, body, cells(total), slug, sort)


def dense(caption: str, columns: Iterable[Column], rows: Iterable[Row]) -> tuple[Table, ...]:
    """Return a tuple of one table without its empty name and note columns; an empty tuple if there are no rows."""
    row_list, kept_columns = list(rows), dict[Column, list[Cell]]()
    for column in columns:
        cells = [column.cell(row) for row in row_list]
        if column.kind not in (NAME, NOTE) or any(cell.shown for cell in cells):
            kept_columns[column] = cells
    return (Table(caption, tuple(kept_columns), tuple(zip(*kept_columns.values(), strict=True))),) if row_list else ()


# --- Cells


def when(time: datetime | None) -> Cell:
    """Return a cell with a time in the installation's time zone."""
    return Cell(f"{timezone.localtime(time):%Y-%m-%d %H:%M}", time) if time else Cell(NOT_MEASURED)


def share(estimate_row: Mapping[str, Any] | None) -> Cell:
    """Return a cell with an estimate and its interval, sorted by the estimate."""
    return Cell(estimate(estimate_row), estimate_row["value"] if estimate_row else None)


def ratio(part: float, whole: float) -> Cell:
    return Cell(percent(part / whole), part / whole) if whole else Cell(NOT_MEASURED)


def language(code: str) -> Cell:
    """Return a cell with a language's name and code."""
    return Cell(label_name(code) or "not in a queue yet", label_name(code), note=code)


def beginning(row: dict[str, Any]) -> Cell:
    """Return a cell with the beginning of a record's text, with all fields on a single line."""
    line = " · ".join(row["text"].split("\n"))
    return Cell(line[:BEGINNING] + ("…" if len(line) > BEGINNING else ""), line)


def beside(code: str, name: str = "") -> str:
    """Return the name to show next to a code, or "" if the name is the code itself."""
    name = name or label_name(code)
    return "" if name == code else name


# --- Common columns


def numbered(key: str, heading: str, says: Callable[[Row], float | None] | None = None) -> Column:
    """Return a column of counts."""
    value_of = says or (lambda row: row[key])
    return Column(key, heading, NUMBER, lambda row: Cell(count(value_of(row)), value_of(row)))


def estimated(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: share(row[key]))


def percentage(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: Cell(percent(row[key]), row[key]))


def timed(key: str, heading: str) -> Column:
    return Column(key, heading, SHORT, lambda row: when(row[key]))


def numbers(headings: Mapping[str, str]) -> list[Column]:
    return [numbered(key, heading) for key, heading in headings.items()]


# The columns for a row's language. LANGUAGE has two columns, code and name, for reports and cards. ONE_LANGUAGE is for
# pages.
LANGUAGE = (
    Column("language", "language"),
    Column("name", "name", NAME, lambda row: beside(row["language"], row.get("name", ""))),
)
ONE_LANGUAGE = Column("language", "language", SHORT, lambda row: language(row["language"]))


def person(address: Callable[[int], str]) -> Column:
    """Return the column of annotators. Each name links to the annotator's page.

    address: maps an annotator's primary key to a URL.
    """
    return Column(
        "name", "annotator", says=lambda row: Cell(row["name"], row["name"].casefold(), address(row["annotator"]))
    )


def many(number: int, noun: str) -> str:
    """Return a number with its noun: "60 languages", "1 language"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def are(number: int, one: str, several: str) -> str:
    """Return a number with its verb: "1 was", "2 were"."""
    return f"{number:,} {one if number == 1 else several}"


# --- Tables as CSV, protected against formulas in a spreadsheet


def as_csv(table: Table) -> str:
    """Format a table as CSV: the headings, the filtered rows in order, and the total. Numbers are not formatted."""
    headings = [column.heading for column in table.columns]
    return to_csv(
        headings,
        ([_value(*cell_and_column) for cell_and_column in zip(row, table.columns, strict=True)] for row in table.rows),
    )


def to_csv(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return CSV text without cells that spreadsheets treat as formulas."""
    return "".join(lines(headings, rows))


def lines(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield the lines of a CSV file without cells that spreadsheets treat as formulas."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    for row in chain([headings], rows):
        writer.writerow(map(_safe, row))
        yield file.getvalue()
        file.seek(0)
        file.truncate()


def _value(cell: Cell, column: Column) -> object:
    """Return a cell's value in CSV: a number, an ISO 8601 time, or the text with its note."""
    if isinstance(cell.by, datetime):
        return cell.by.isoformat(timespec="seconds")
    if column.kind == NUMBER and isinstance(cell.by, int | float):
        return cell.by
    return f"{cell.shown} ({cell.note})" if cell.note else cell.shown


def _safe(value: object) -> object:
    return f"{AS_TEXT}{value}" if isinstance(value, str) and value.lstrip().startswith(FORMULA) else value
