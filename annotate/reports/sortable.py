"""Tables that are sorted by a link in each heading, without a script: ?sort=people.-answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from annotate.reports.predictor_report import NUMBER, TEXT

# Further kinds of columns: what is not to be broken into lines, and what needs room for its lines.
SHORT, SENTENCE = "short", "sentence"
LONG = 30  # rows


@dataclass(frozen=True)
class Column:
    """down: whether a first press puts the highest on top."""

    key: str
    heading: str
    kind: str = TEXT

    @property
    def down(self) -> bool:
        return self.kind == NUMBER


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by; None comes last, whichever way.

    url: where it leads. note: smaller, behind it. mark: a class that sets the cell off.
    """

    shown: str
    by: object = None
    url: str = ""
    note: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Heading:
    words: str
    kind: str
    sort: str  # of the link
    aria: str  # "ascending", "descending" or nothing


@dataclass(frozen=True)
class SortedTable:
    slug: str
    caption: str
    headings: list[Heading]
    rows: list[list[tuple[Cell, str]]]  # with the kinds of their columns

    @property
    def is_long(self) -> bool:
        """Whether it scrolls in a room of its own, so that the page goes on below it."""
        return len(self.rows) > LONG


def sorted_table(
    slug: str, caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], asked: str
) -> SortedTable:
    """asked: what stands in the address after sort=, of any table of the page; else the rows stay as they come."""
    table, _, by = asked.partition(".")
    key, down = by.removeprefix("-"), by.startswith("-")
    place = next((n for n, column in enumerate(columns) if (table, key) == (slug, column.key)), None)
    found = list(rows)
    if place is not None:
        known = [row for row in found if row[place].by is not None]
        known.sort(key=lambda row: row[place].by, reverse=down)
        found = known + [row for row in found if row[place].by is None]
    headings = []
    for number, column in enumerate(columns):
        sorted_by = number == place
        turn = not down if sorted_by else column.down
        aria = ("descending" if down else "ascending") if sorted_by else ""
        headings.append(Heading(column.heading, column.kind, f"{slug}.{'-' if turn else ''}{column.key}", aria))
    kinds = [column.kind for column in columns]
    return SortedTable(slug, caption, headings, [list(zip(row, kinds, strict=True)) for row in found])
