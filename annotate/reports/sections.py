"""What the sections of a report are made of, whatever was measured: words, tables, and plots with many languages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString

from annotate.reports.plots import Mark, Row, axis_of, forest
from annotate.reports.tables import Table

# Marks of one picture at most, so that it fits on a printed page: of one series, and of several. Longer lists go on in
# the next picture, on the same axis.
SINGLES, SEVERAL = 40, 48


@dataclass(frozen=True)
class Section:
    """words: sentences for people who publish the numbers. loud: what nobody may overlook. plots: makes the
    pictures. paged: its tables are for pages, not for a terminal. filters: class of rows of its tables -> what they
    are, by which a page shows some of them.
    """

    slug: str
    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    loud: str = ""
    plots: Callable[[], list[SafeString]] = list
    paged: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)


# --- plots


def mark_of(found: Mapping[str, Any] | None, counted: float | None = None) -> Mark | None:
    """counted: what the estimate rests on, if it does not say so itself. Without an interval, only a dot is drawn."""
    if not found:
        return None
    counted = found.get("count") if counted is None else counted
    if found["low"] is None:
        return Mark(found["value"], *(found["value"] or 0.0,) * 2, counted)
    return Mark(found["value"], found["low"], found["high"], counted)


def by_value(rows: list[Row]) -> list[Row]:
    """The highest first; rows that were not measured come last."""

    def order(row: Row) -> tuple:
        values = [mark.value for mark in row.marks if mark is not None and mark.value is not None]
        first = row.marks[0]
        missing = first is None or first.value is None
        return missing, -values[0] if values else 1, row.label

    return sorted(rows, key=order)


def pictures(rows: list[Row], title: str, series: tuple[str, ...] = (), counted: str = "") -> list[SafeString]:
    """As many pictures as the rows need, all on one axis. counted: posts, or their effective counts, if not said."""
    fractional = any(mark.count % 1 for row in rows for mark in row.marks if mark and mark.count)
    named = {"counted": counted or ("counts as" if fractional else "posts")} | ({"series": series} if series else {})
    axis = axis_of(rows)
    return [
        forest(part, title=title if number == 1 else f"{title}, part {number}", axis=axis, **named)
        for number, part in enumerate(_split(rows, SEVERAL // len(series) if len(series) > 1 else SINGLES), 1)
        if _measured(part)
    ]


def _measured(rows: list[Row]) -> bool:
    """Whether there is anything to draw: rows that were not measured come last, and may fill a picture."""
    return any(mark is not None and mark.value is not None for row in rows for mark in row.marks)


def _split(rows: list[Row], most: int) -> list[list[Row]]:
    """Parts of nearly equal size."""
    parts = -(-len(rows) // most)
    size = -(-len(rows) // parts) if parts else 1
    return [rows[start : start + size] for start in range(0, len(rows), size)]
