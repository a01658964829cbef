"""Tables: columns are declared once, each with what it says of a row; pages, cards and terminals take the same table.

A table with a slug is sorted by a link in each heading, without a script: ?sort=people.-answers. On a page that offers
it, a long one has a field by which its rows are filtered, ?find-people=ann, and each a link to its rows as CSV,
?csv=people. How a table is written for a terminal is in terminal.py, for Markdown in
markdown.py, for a page in templates/annotate/_table.html.
"""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import slugify

from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import NOT_MEASURED, count, estimate, percent
from corpora.core.records import FORMULA

# Kinds of columns. A terminal leaves `name` out where it lacks the room, shortens `digest` and lists `note` below; on a
# page `short` is not broken into lines, and `sentence` has room for its lines.
TEXT, NAME, NUMBER, DIGEST, NOTE, SHORT, SENTENCE = "text", "name", "number", "digest", "note", "short", "sentence"
LONG = 30  # rows
BEGINNING = 140  # characters of a text that a cell shows
MANY = 15  # rows, of which one looks for some
Called = Callable[[str], str]  # a label's name
Row = Any  # what a table is made from, mostly a dict of a report


@dataclass(frozen=True)
class Cell:
    """What is shown, and the value by which it is sorted; None comes last in both directions.

    url: where it leads. note: smaller, behind it. mark: a class that sets the cell off, or the row, if it is the first.
    method: anchor of the row that explains it, in the documentation's table of methods.
    """

    shown: str
    by: Any = None
    url: str = ""
    note: str = ""
    mark: str = ""
    method: str = ""


@dataclass(frozen=True)
class Column:
    """says: the cell of a row, or the words in it; without it, what the row has under the key, as text. method: anchor
    of the row that explains the figures, in the documentation's table of methods."""

    key: str
    heading: str
    kind: str = TEXT
    says: Callable[[Row], Cell | str] | None = None
    method: str = ""

    @property
    def down(self) -> bool:
        """Whether the first click puts the highest on top."""
        return self.kind == NUMBER

    def cell(self, row: Row) -> Cell:
        said = row[self.key] if self.says is None else self.says(row)
        return said if isinstance(said, Cell) else Cell(said, said)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what it says, which cannot be kept in a file: a table that is kept has its cells."""
        return Column, (self.key, self.heading, self.kind, None, self.method)


@dataclass(frozen=True)
class Heading:
    words: str
    kind: str
    sort: str  # of the link; empty where the table is not sorted
    aria: str  # "ascending", "descending" or nothing
    method: str


@dataclass(frozen=True)
class Table:
    """caption: what the rows are, as in "60 languages". total: what stands below them all, however they are sorted.

    slug: the table's name in an address; empty if it is not sorted. asked: what stands there after sort=, of any
    table of the page. given: all that stands in the address of a page on which rows can be filtered and downloaded;
    None elsewhere. path: of that page, since another may show the table too.
    """

    caption: str
    columns: tuple[Column, ...]
    body: tuple[tuple[Cell, ...], ...]
    total: tuple[tuple[Cell, ...], ...] = ()
    slug: str = ""
    asked: str = ""
    given: Mapping[str, str] | None = None
    path: str = ""

    @property
    def name(self) -> str:
        """By which an address names it, whether or not it is sorted."""
        return self.slug or slugify(self.caption)

    @property
    def find(self) -> str:
        """The words by which its rows are filtered."""
        return (self.given or {}).get(f"find-{self.name}", "").strip()

    @property
    def others(self) -> dict[str, str]:
        """What stands in the address besides."""
        return {key: value for key, value in (self.given or {}).items() if key not in (f"find-{self.name}", "csv")}

    @property
    def unfiltered(self) -> str:
        return f"{self.path}?{urlencode(self.others)}"

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        if not self.slug and not self.given:
            return [*self.body, *self.total]
        place, down = self._order()
        found = self.found
        if place is None:
            return [*found, *self.total]
        known = [row for row in found if row[place].by is not None]
        known.sort(key=lambda row: row[place].by, reverse=down)
        return [*known, *(row for row in found if row[place].by is None), *self.total]

    @property
    def found(self) -> list[tuple[Cell, ...]]:
        """The rows in which each of the words occurs, in any cell; those of the total always stand."""
        words = self.find.casefold().split()
        return [row for row in self.body if all(word in _in_a_line(row) for word in words)]

    @property
    def is_filtered(self) -> bool:
        """Whether it has the field by which it is filtered."""
        return self.given is not None and (len(self.body) > MANY or bool(self.find))

    @property
    def cells(self) -> list[list[tuple[Cell, str]]]:
        """The rows, each cell with the kind of its column."""
        kinds = [column.kind for column in self.columns]
        return [list(zip(row, kinds, strict=True)) for row in self.rows]

    @property
    def headings(self) -> list[Heading]:
        place, down = self._order()
        found = []
        for number, column in enumerate(self.columns):
            turn = not down if number == place else column.down
            aria = ("descending" if down else "ascending") if number == place else ""
            sort = f"{self.slug}.{'-' if turn else ''}{column.key}" if self.slug else ""
            found.append(Heading(column.heading, column.kind, sort, aria, column.method))
        return found

    @property
    def is_long(self) -> bool:
        """Whether it scrolls in its own box, so that the page goes on below it."""
        return bool(self.slug) and len(self.rows) > LONG

    def _order(self) -> tuple[int | None, bool]:
        """The column by which it is sorted, if any, and whether the highest come first."""
        slug, _, by = self.asked.partition(".")
        key, down = by.removeprefix("-"), by.startswith("-")
        known = self.slug and slug == self.slug
        return next((n for n, column in enumerate(self.columns) if known and column.key == key), None), down

    def without(self, keys: Collection[str]) -> "Table":
        """The table without these columns."""
        kept = [n for n, column in enumerate(self.columns) if column.key not in keys]
        body, total = (tuple(tuple(row[n] for n in kept) for row in rows) for rows in (self.body, self.total))
        return replace(self, columns=tuple(self.columns[n] for n in kept), body=body, total=total)


def _in_a_line(row: Iterable[Cell]) -> str:
    return " ".join(f"{cell.shown} {cell.note}" for cell in row).casefold()


def table(
    caption: str,
    columns: Iterable[Column],
    rows: Iterable[Row],
    *,
    total: Iterable[Row] = (),
    slug: str = "",
    asked: str = "",
) -> Table:
    listed = tuple(columns)
    body, below = (tuple(tuple(column.cell(row) for column in listed) for row in part) for part in (rows, total))
    return Table(caption, listed, body, below, slug, asked)


def dense(caption: str, columns: Iterable[Column], rows: Iterable[Row]) -> tuple[Table, ...]:
    """A table without its empty columns, such as notes, names or effective counts; no table without rows."""
    listed, kept = list(rows), dict[Column, list[Cell]]()
    before: list[Cell] = []
    for column in columns:
        cells = [column.cell(row) for row in listed]
        noteless = column.kind in (NAME, NOTE) and not any(cell.shown for cell in cells)
        as_posts = column.heading == "counts as" and all(
            one.shown == other.shown for one, other in zip(cells, before, strict=True)
        )
        if not (noteless or as_posts):
            kept[column] = cells
        before = cells
    return (Table(caption, tuple(kept), tuple(zip(*kept.values(), strict=True))),) if listed else ()


# --- what a cell says


def when(at: datetime | None) -> Cell:
    """A time in the installation's time zone."""
    return Cell(f"{timezone.localtime(at):%Y-%m-%d %H:%M}", at) if at else Cell(NOT_MEASURED)


def share(of: Mapping[str, Any] | None) -> Cell:
    """An estimate with its interval, sorted by its value."""
    return Cell(estimate(of), of["value"] if of else None)


def ratio(part: float, whole: float) -> Cell:
    return Cell(percent(part / whole), part / whole) if whole else Cell(NOT_MEASURED)


def language(code: str) -> Cell:
    """The name of a language, with its code behind it."""
    return Cell(label_name(code) or "not in a queue yet", label_name(code), note=code)


def beginning(row: dict) -> Cell:
    """The beginning of a record's text, its fields one after the other."""
    words = " · ".join(row["text"].split("\n"))
    return Cell(words[:BEGINNING] + ("…" if len(words) > BEGINNING else ""), words)


def beside(code: str, name: str = "") -> str:
    """The name that stands beside a code in its own column; empty if it would repeat the code."""
    name = name or label_name(code)
    return "" if name == code else name


# --- columns that many tables have


def numbered(key: str, heading: str, says: Callable[[Row], float | None] | None = None) -> Column:
    """A count; None is a dash."""
    found = says or (lambda row: row[key])
    return Column(key, heading, NUMBER, lambda row: Cell(count(found(row)), found(row)))


def estimated(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: share(row[key]))


def timed(key: str, heading: str) -> Column:
    return Column(key, heading, SHORT, lambda row: when(row[key]))


def numbers(headings: Mapping[str, str]) -> list[Column]:
    return [numbered(key, heading) for key, heading in headings.items()]


# The language of a row in two columns, its code and its name, as reports and cards have it; and in one, as pages have.
LANGUAGE = (
    Column("language", "language"),
    Column("name", "name", NAME, lambda row: beside(row["language"], row.get("name", ""))),
)
ONE_LANGUAGE = Column("language", "language", SHORT, lambda row: language(row["language"]))


def person(address: Callable[[int], str]) -> Column:
    """The annotator of a row, with a link to their page. address: of that page, by their key."""
    return Column(
        "name", "annotator", says=lambda row: Cell(row["name"], row["name"].casefold(), address(row["annotator"]))
    )


def many(number: int, noun: str) -> str:
    """60 languages, 1 language."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def are(number: int, one: str, several: str) -> str:
    """1 was, 2 were."""
    return f"{number:,} {one if number == 1 else several}"


# --- tables as CSV for a spreadsheet, which must run none of their cells as a formula


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
