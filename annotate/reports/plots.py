"""Plots of rows and of values over time: intervals, stacked counts, quartiles and columns, in SVG or in characters.

SVG plots need neither scripts nor style sheets, so they work under a strict content security policy and as stand-alone
files. Colours are presentation attributes that refer to the page's custom properties (--accent, --quiet, --line,
--paper) with a fallback. Widths are percentages, so that text keeps its size on a phone. Narrow pages hide elements
with the class `plot-wide`. Rows are plotted in the order given, and nothing is estimated here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from annotate.reports.numbers import count, distinct_ending, percent, shorten, span
from annotate.reports.table_formats import printable

# --- SVG elements for plots, and the layout of plots with rows.
#
# Text is escaped, and colours come from the page. The plots are below and in `square_plots.py`.


_STYLES = Path(__file__).parents[1] / "static" / "annotate" / "assay.css"
# Light and dark value of each custom property for a colour.
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([a-z-]+): light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\)", _STYLES.read_text(encoding="utf-8")
    )
}
ACCENT, ON_ACCENT, QUIET, LINE, PAPER = (
    f"var(--{name}, {COLOURS[name][0]})" for name in ("accent", "on-accent", "quiet", "line", "paper")
)

# Left edge and width of the plot area in a plot of rows (% of the width).
PLOT, PLOT_WIDTH = 25, 42
LINE_HEIGHT, ROW = 18, 26  # pixels
NAME = 52  # distance from the start of the code to the start of the name, in pixels


def picture(title: str, parts: Iterable[SafeString], description: str = "", /, **attributes: object) -> SafeString:
    heading = [element("title", escaped(title)), *[element("desc", escaped(description))] * bool(description)]
    root = {"xmlns": "http://www.w3.org/2000/svg", "class_": "plot", "role": "img", "fill": "currentColor"}
    return element("svg", *heading, *parts, **root, **attributes) + mark_safe("\n")


def text(string: str, x: str | float, y: float, **attributes: object) -> SafeString:
    return element("text", escaped(string), x=x, y=y, **attributes) if string else mark_safe("")


def element(tag: str, *children: SafeString, **attributes: object) -> SafeString:
    """Return an SVG element. Its children must be safe strings.

    In attribute names, underscores become hyphens, and trailing underscores are removed: stroke_width becomes
    stroke-width, and class_ becomes class.
    """
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(f"{value:g}" if isinstance(value, float) else value)}"'
        for name, value in attributes.items()
    )
    return mark_safe(f"<{tag}{written}>{''.join(children)}</{tag}>")  # noqa: S308 - made of escaped parts


def escaped(string: str) -> SafeString:
    """Escape text. Characters that are not allowed in XML become replacement characters."""
    return escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", string))


def tooltip(string: str) -> SafeString:
    return element("title", escaped(string))


# --- The rows of a plot, laid out relative to the width, so that text keeps its size on a phone


def _picture_of_rows(title: str, parts: Iterable[SafeString], bottom: int) -> SafeString:
    """Return a plot of rows, with a rule below the last row."""
    return picture(title, [*parts, _rule(bottom)], width="100%", height=bottom + 1, font_size=13)


def _rule(y: int) -> SafeString:
    return element("line", x1=0, x2="100%", y1=y, y2=y, stroke=LINE, stroke_opacity=0.5)


def _tick(x: str, label: str, head: int, bottom: int) -> list[SafeString]:
    """Return a vertical line through all rows, and its label above them."""
    line = element("line", x1=x, x2=x, y1=head - 4, y2=bottom, stroke=LINE)
    return [text(label, x, head - 9, fill=QUIET, text_anchor="middle"), line]


Letters = tuple[tuple[int, int], tuple[int, int]]


def _letters_of(rows: Iterable["AnyRow"], wide: int, narrow: int) -> Letters:
    """Return how to shorten codes on a wide page, and names on a narrow page, so that they remain distinct.

    Both results are (limit, end) arguments for `shorten`. A row without a name shows its code on a narrow page.

    wide, narrow: maximum number of letters on a wide and on a narrow page.
    """
    heads = [(row.label, row.name or row.label) for row in rows]
    codes, names = map(set, zip(*heads, strict=True)) if heads else (set[str](), set[str]())
    end_of_code = distinct_ending(codes, wide, (wide - 1) // 2)
    end_of_name = distinct_ending(names, narrow, (narrow - 1) // 2)
    return (wide, end_of_code), (narrow, end_of_name)


def _row_head(row: "AnyRow", top: int, height: int, *, room: int, letters: Letters) -> SafeString:
    """Return the head of a row: a rule above it, the code and the name. A name that is too long is clipped.

    A narrow page shows only the name, or a shorter form of the code. Both are hidden unless a style sheet reveals them.

    room: space for the code and the name (% of the width).
    letters: how to shorten the code and the name, see `_letters_of`.
    """
    y, (on_wide, on_narrow), bold = height / 2 + 4, letters, {"font_weight": 600}
    code = shorten(row.label, *on_wide)
    short = shorten(row.name or row.label, *on_narrow)
    if row.name:
        wide = [text(code, 0, y, fill=QUIET, class_="plot-wide"), text(row.name, NAME, y, **bold, class_="plot-wide")]
        heads = [*wide, text(short, 0, y, **bold, class_="plot-narrow", display="none")]
    elif short == row.label:
        heads = [text(row.label, 0, y, **bold)]
    else:
        narrow = text(short, 0, y, class_="plot-narrow", display="none", **bold)
        heads = [text(code, 0, y, class_="plot-wide", **bold), narrow]
    whole = [element("title", escape(printable(row.name or row.label)))] if short != (row.name or row.label) else []
    return _rule(top) + element("svg", *whole, *heads, y=top, width=f"{room}%", height=height)


# --- Estimates with intervals

Axis = tuple[int, int]  # start and end (%)

# The marks of the series, which differ in more than colour: a filled dot, an empty dot and a filled square.
FILLS = (ACCENT, PAPER, ACCENT)
SQUARE = 2  # index of the series drawn with squares
INK, DASHED = "currentColor", {"stroke_width": 1.5, "stroke_dasharray": "4 3"}  # style of the line for a limit
COUNTS = 78  # right edge of the column of counts (% of the width)
SERIES = 20  # height of each series in rows with several series, in pixels

# Possible widths of a zoomed axis, which starts at 0 or ends at 100 (%). TICKS contains the distance between ticks for
# each width, including those of axes that start below 0.
ZOOMED = (5, 10, 20, 30, 40, 50)
TICKS = {5: 1, 10: 2, 20: 5, 30: 10, 40: 10, 50: 10, 100: 25, 150: 50, 200: 50}
MOST_CUT = 0.1  # maximum share of intervals that exceed a zoomed axis; arrows mark such intervals

# Shades of stacked bars, from finished to not started. They differ in more than colour.
SHADES = ((ACCENT, 1.0), (ACCENT, 0.62), (ACCENT, 0.3), (QUIET, 0.45), (PAPER, 1.0))
END = 99.0  # right end of the longest stacked bar (% of the width)
HEIGHT = 160  # height of a plot over time, in pixels
WIDEST = 12.0  # maximum width of a column (% of the width)
BAR, SPARK = 14, 36  # height of a bar without text, and of a sparkline, in pixels
LEFT = 7.0  # width of the vertical axis of a plot over time (% of the width)
LETTER = 2.2  # width of a letter below a plot over time on a phone: 7 of 320 pixels (% of the width)


@dataclass(frozen=True)
class Mark:
    """An estimate with its interval.

    value: between 0 and 1; None if not measured.
    low, high: ends of the interval; if there is no interval, both equal the value.
    count: number of units that the estimate is based on.
    """

    value: float | None
    low: float = 0.0
    high: float = 1.0
    count: float | None = None

    @property
    def alone(self) -> bool:
        return self.low == self.high == self.value


class Row(NamedTuple):
    """A row of a plot, with a code, the name shown after the code, and a mark for each series."""

    label: str
    name: str
    marks: tuple[Mark | None, ...]


def axis_of(rows: Iterable[Row]) -> Axis:
    """Return the narrowest axis in ZOOMED that contains all values and nearly all intervals; otherwise `whole_axis`."""
    rows = list(rows)
    if (whole := whole_axis(rows))[0] < 0:
        return whole
    marks = [mark for row in rows for mark in row.marks if mark is not None]
    measured = [(mark.value, mark.low, mark.high) for mark in marks if mark.value is not None]
    for width in ZOOMED if measured else ():
        # Leave a margin, because a value at the very edge would look clipped.
        inner, outer = 0.95 * width / 100, width / 100
        for axis, distances in (
            ((100 - width, 100), [(1 - value, 1 - low) for value, low, _ in measured]),
            ((0, width), [(value, high) for value, _, high in measured]),
        ):
            cut = sum(far > outer + 1e-9 for _, far in distances)
            if max(near for near, _ in distances) <= inner and cut <= MOST_CUT * len(measured):
                return axis
    return whole


def whole_axis(rows: Iterable[Row]) -> Axis:
    """Return (0, 100), or an axis that starts at -50 or -100 if a value or an interval is below 0."""
    marks = [mark for row in rows for mark in row.marks if mark is not None and mark.value is not None]
    lowest = min((min(mark.value, mark.low) for mark in marks if mark.value is not None), default=0)
    return -100 if lowest < -0.5 else -50 if lowest < 0 else 0, 100


def forest(
    rows: Sequence[Row],
    *,
    title: str,
    series: Sequence[str] = (),
    axis: Axis | None = None,
    counted: str = "posts",
    limit: tuple[float, str] | None = None,
    decimals: bool = False,
) -> SafeString:
    """Plot a dot and an interval for each mark, with the numbers on the right.

    A note is shown if the axis does not run from 0 to 100%.

    series: names of the series, if rows have two or three marks.
    axis: axis shared by several plots; by default, the result of `axis_of`.
    counted: noun for the units counted by the marks.
    limit: a share within the axis to draw as a line through all rows, and its description.
    decimals: whether to write 0.54 instead of 54.0%.
    """
    axis = axis or axis_of(rows)
    height = ROW if len(series) < 2 else SERIES * len(series)
    start, end = axis
    parts = _above(series, axis, limit)
    head = LINE_HEIGHT * len(parts)
    parts.append(text(counted, f"{COUNTS}%", head + 13, fill=QUIET, text_anchor="end", class_="plot-wide"))
    parts.append(text("95% interval", "100%", head + 13, fill=QUIET, text_anchor="end"))
    head += LINE_HEIGHT + 4
    bottom = head + height * len(rows)
    letters = _letters_of(rows, 24, 11)
    for percentage in range(start, end + 1, TICKS.get(end - start, 25)):
        x = f"{PLOT + PLOT_WIDTH * (percentage - start) / (end - start):g}%"
        label = f"{percentage / 100:g}" if decimals else f"{percentage}%"
        parts += _tick(x, label.replace("-", "−"), head, bottom)
    for top, row in zip(range(head, bottom, height), rows, strict=True):
        parts.append(_forest_row(row, top, height, axis, letters, decimals=decimals))
    if limit:
        x = f"{PLOT + PLOT_WIDTH * (100 * limit[0] - start) / (end - start):g}%"
        parts.append(element("line", x1=x, x2=x, y1=head - 4, y2=bottom, stroke=INK, **DASHED))
    return _picture_of_rows(title, parts, bottom)


def _above(series: Sequence[str], axis: Axis, limit: tuple[float, str] | None) -> list[SafeString]:
    """Return the elements above the plot: the legend of the series, a note on an incomplete axis, and the limit."""
    parts: list[SafeString] = []

    def add(mark: SafeString, room: int, description: str) -> None:
        words = text(description, room, LINE_HEIGHT * len(parts) + 13)
        parts.append(element("svg", mark, words, x=f"{PLOT}%", overflow="visible"))

    for index, name in enumerate(series):
        add(_dot(index, 5, LINE_HEIGHT * index + 9), 16, name)
    start, end = axis
    if start > 0 or end < 100:
        note = f"The axis starts at {start}%, not at 0." if start else f"The axis ends at {end}%, not at 100%."
        parts.append(text(note, f"{PLOT}%", LINE_HEIGHT * len(parts) + 13, fill=QUIET))
    if limit:
        y = LINE_HEIGHT * len(parts) + 9
        add(element("line", x1=0, x2=12, y1=y, y2=y, stroke=INK, **DASHED), 18, limit[1])
    return parts


def _forest_row(row: Row, top: int, height: int, axis: Axis, letters: Letters, *, decimals: bool) -> SafeString:
    marks, numbers, tooltips = [], [], []
    for number, mark in enumerate(row.marks):
        y, counted, number_text = height * (2 * number + 1) / (2 * len(row.marks)), "", "not measured"
        if mark is not None and mark.value is not None:
            marks += _dot_and_interval(mark, y, axis, number)
            ends = "" if mark.alone else f", 95% interval {percent(mark.low)} to {percent(mark.high)}"
            # Omit the percent sign, because the axis shows it.
            number_text = _decimal(mark) if decimals else numbers_of(mark).replace("%", "", 1)
            counted = "" if mark.count is None else count(mark.count)
            tooltips.append(number_text if decimals else percent(mark.value) + ends)
        end: dict[str, Any] = {"y": top + y + 4, "text_anchor": "end"}
        numbers.append(text(counted, f"{COUNTS}%", fill=QUIET, **end, class_="number plot-wide"))
        numbers.append(text(number_text, "100%", **end, class_="number"))
    plot = element("svg", *marks, x=f"{PLOT}%", y=top, width=f"{PLOT_WIDTH}%", height=height, overflow="visible")
    head = _row_head(row, top, height, room=PLOT - 1, letters=letters)
    tip = tooltip(f"{row.name or row.label}: {'; '.join(tooltips) or 'not measured'}")
    return element("g", tip, head, plot, *numbers)


def numbers_of(mark: Mark) -> str:
    return percent(mark.value) + ("" if mark.alone else f" {span(mark.low, mark.high)}")


def _decimal(mark: Mark) -> str:
    written = f"{mark.value:.2f}" + ("" if mark.alone else f" [{mark.low:.2f}, {mark.high:.2f}]")
    return written.replace("-", "−")


def _dot_and_interval(mark: Mark, y: float, axis: Axis, series: int) -> list[SafeString]:
    start, end = axis
    assert mark.value is not None
    places = (100 * (100 * share - start) / (end - start) for share in (mark.low, mark.high, mark.value))
    low, high, value = (f"{min(100.0, max(0.0, position)):.4g}%" for position in places)
    parts = [element("line", x1=low, x2=high, y1=y, y2=y, stroke=ACCENT, stroke_width=2)]
    if 100 * mark.low < start:
        parts.append(element("path", d=f"M-7 {y:g}l7 -4v8z", fill=ACCENT))
    if 100 * mark.high > end:
        arrow = element("path", d=f"M7 {y:g}l-7 -4v8z", fill=ACCENT)
        parts.append(element("svg", arrow, x="100%", overflow="visible"))
    return [*parts, _dot(series, value, y)]


def _dot(series: int, x: str | float, y: float) -> SafeString:
    """Return the mark for a value.

    series: index of the series.
    x: horizontal position, in pixels or as a percentage of the width.
    """
    paint = {"fill": FILLS[series], "stroke": ACCENT, "stroke_width": 1.5}
    if series != SQUARE:
        return element("circle", cx=x, cy=y, r=4, **paint)
    square = element("rect", x=-3.5, y=y - 3.5, width=7, height=7, **paint)
    return element("svg", square, x=x, overflow="visible")


# --- Counts in parts, quartiles, and counts over time


class Parts(NamedTuple):
    """A row of stacked bars, with a code, the name shown after the code, and the count of each part."""

    label: str
    name: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Moment:
    """A column of a plot: an optional label below it, the tooltip's text, and the count."""

    tick: str
    said: str
    count: float


@dataclass(frozen=True)
class Span:
    """A row with the lower quartile, the median and the upper quartile of `count` values."""

    label: str
    name: str
    low: float
    middle: float
    high: float
    count: int


AnyRow = Row | Parts | Span


def stacked(rows: Sequence[Parts], parts: Sequence[str], *, title: str) -> SafeString:
    """Plot a stacked bar for each row, all on the same scale. Pages add a legend of the parts (see `swatch`)."""
    longest, letters = max((sum(row.counts) for row in rows), default=0) or 1, _letters_of(rows, 18, 8)
    drawn = [_stacked_row(row, parts, ROW * number, longest, letters) for number, row in enumerate(rows)]
    return _picture_of_rows(title, drawn, ROW * len(rows))


def bar(counts: Sequence[int], parts: Sequence[str], *, title: str) -> SafeString:
    """Plot a single stacked bar over the whole width, without text. See `stacked` for the parts."""
    boxes = []
    for index, x, width in _boxes(counts, sum(counts)):
        tip = tooltip(f"{count(counts[index])} {parts[index]}")
        boxes.append(element("rect", tip, x=x, width=width, height=BAR, fill=PAPER))
        boxes.append(element("rect", tip, x=x, width=width, height=BAR, **_paint(index)))
    return picture(title, boxes, width="100%", height=BAR)


def _boxes(counts: Sequence[int], whole: int) -> Iterator[tuple[int, str, str]]:
    """Yield the index, the left edge and the width of each non-empty part.

    whole: count that corresponds to the whole width.
    """
    left = 0.0
    for index, number in enumerate(counts):
        if number:
            width = 100 * number / whole
            yield index, f"{left:.4g}%", f"{width:.4g}%"
            left += width


def swatch(index: int) -> SafeString:
    """Return the mark for a part of stacked bars, for a legend in HTML."""
    box = element("rect", x=0.5, y=0.5, width=11, height=11, rx=2, **_paint(index))
    return element("svg", box, width=12, height=12, aria_hidden="true", class_="swatch")


def sparkline(counts: Sequence[int], *, title: str) -> SafeString:
    """Plot counts over time as a small line without axes, as wide as the enclosing element."""
    highest, step = max(counts, default=0) or 1, 100 / max(1, len(counts) - 1)
    points = [
        f"{index * step:.4g},{SPARK - 2 - (SPARK - 4) * value / highest:.4g}" for index, value in enumerate(counts)
    ]
    stroke = {"stroke": ACCENT, "stroke_width": 2, "stroke_linejoin": "round", "vector_effect": "non-scaling-stroke"}
    area = element("path", d=f"M0,{SPARK}L{'L'.join(points)}L100,{SPARK}Z", fill=ACCENT, fill_opacity=0.12)
    line = element("polyline", points=" ".join(points), fill="none", **stroke)
    size = {"viewBox": f"0 0 100 {SPARK}", "preserveAspectRatio": "none", "width": "100%", "height": SPARK}
    return picture(title, [area, line], **size)


def _paint(index: int) -> dict[str, Any]:
    fill, opacity = SHADES[index]
    return {"fill": fill, "fill_opacity": opacity, "stroke": ACCENT if fill != QUIET else QUIET, "stroke_width": 1}


def _stacked_row(row: Parts, parts: Sequence[str], top: int, longest: int, letters: Letters) -> SafeString:
    description = ", ".join(f"{count(n)} {part}" for n, part in zip(row.counts, parts, strict=True) if n) or "nothing"
    boxes = [
        element("rect", x=x, y=4, width=width, height=ROW - 8, **_paint(index))
        for index, x, width in _boxes(row.counts, longest)
    ]
    bar = element("svg", *boxes, x=f"{PLOT}%", y=top, width=f"{END - PLOT}%", height=ROW)
    tip = tooltip(f"{row.name or row.label}: {description}")
    return element("g", tip, _counted_head(row, top, sum(row.counts), letters), bar)


def _counted_head(row: Parts | Span, top: int, number: float, letters: Letters) -> SafeString:
    """Return the head of a row, followed by its count."""
    end = {"fill": QUIET, "text_anchor": "end", "class_": "number"}
    counted = text(count(number), f"{PLOT - 1}%", top + ROW / 2 + 4, **end)
    return _row_head(row, top, ROW, room=PLOT - 6, letters=letters) + counted


def ranges(rows: Sequence[Span], *, title: str) -> SafeString:
    """Plot a dot at each median in seconds, and a bar from the lower to the upper quartile. The axis starts at 0."""
    highest = max((row.high for row in rows), default=0) or 1
    step = _step(highest)
    end = step * (int(highest / step) + 1)
    parts = [text("median (quartiles)", "100%", 13, fill=QUIET, text_anchor="end")]
    head = LINE_HEIGHT + 4
    bottom = head + ROW * len(rows)
    for number in range(int(end / step) + 1):
        value = number * step
        parts += _tick(f"{PLOT + PLOT_WIDTH * value / end:.4g}%", f"{value:g} s", head, bottom)
    letters = _letters_of(rows, 18, 8)
    parts += [_range_row(row, top, end, letters) for top, row in zip(range(head, bottom, ROW), rows, strict=True)]
    return _picture_of_rows(title, parts, bottom)


def _range_row(row: Span, top: int, end: float, letters: Letters) -> SafeString:
    y = top + ROW / 2
    low, middle, high = (f"{PLOT + PLOT_WIDTH * value / end:.4g}%" for value in (row.low, row.middle, row.high))
    line = element("line", x1=low, x2=high, y1=y, y2=y, stroke=ACCENT, stroke_width=5, stroke_opacity=0.4)
    dot = element("circle", cx=middle, cy=y, r=4, fill=ACCENT)
    quartiles = f"{row.middle:,.1f} ({row.low:,.1f}–{row.high:,.1f})"
    number = text(quartiles, "100%", y + 4, text_anchor="end", class_="number")
    description = f"{row.name or row.label}: half of {count(row.count)} take {row.low:,.1f} to {row.high:,.1f} s"
    return element("g", tooltip(description), _counted_head(row, top, row.count, letters), line, dot, number)


def _step(highest: float) -> float:
    """Return a round distance between ticks, with at most five ticks up to `highest`."""
    step = 0.1
    for factor in (2, 2.5, 2) * 8:
        if highest / step <= 5:
            break
        step *= factor
    return step


def columns(moments: Sequence[Moment], *, title: str) -> SafeString:
    """Plot a column of answers for each moment, in order.

    The maximum is written above its line, where there is room for long numbers, and the 0 next to its line. Labels are
    shown only if they fit on a phone.
    """
    highest = max((moment.count for moment in moments), default=0)
    top, bottom = 20, 20 + HEIGHT
    parts = [
        element("line", x1="0%", x2="100%", y1=top, y2=top, stroke=LINE),
        element("line", x1=f"{LEFT}%", x2="100%", y1=bottom, y2=bottom, stroke=QUIET),
        text(count(highest), "0%", top - 6, fill=QUIET, class_="number"),
        text("0", f"{LEFT - 1}%", bottom + 4, fill=QUIET, text_anchor="end", class_="number"),
    ]
    width = min(WIDEST, (100 - LEFT) / max(1, len(moments)))
    free = 0.0  # first position without a label (% of the width)
    for index, moment in enumerate(moments):
        x = LEFT + index * width
        height = HEIGHT * moment.count / highest if highest else 0
        # An invisible rectangle extends the tooltip to the whole height, even if the column is empty.
        room = element("rect", x=f"{x:.4g}%", y=top, width=f"{width:.4g}%", height=HEIGHT, fill_opacity=0)
        measures = {"x": f"{x + width / 10:.4g}%", "y": bottom - height, "width": f"{0.8 * width:.4g}%"}
        bar = element("rect", **measures, height=height, fill=ACCENT)
        parts.append(element("g", tooltip(f"{moment.said}: {count(moment.count)} answers"), room, bar))
        half = LETTER * len(moment.tick) / 2
        middle = min(max(x + width / 2, half), 100 - half)  # keep the label within the plot
        if moment.tick and free <= middle - half:
            parts.append(text(moment.tick, f"{middle:.4g}%", bottom + 18, fill=QUIET, text_anchor="middle"))
            free = middle + half + LETTER
    return picture(title, parts, width="100%", height=bottom + 24, font_size=13)


# --- Plots made of characters, for Markdown and for a terminal


WIDE, ROOM = 40, 34  # width of a plot and of the names before it, in characters
LONGEST = 12  # maximum number of bars in a plot


def intervals_in_text(lines: Sequence[tuple[str, Mark]], axis: Axis) -> list[str]:
    """Draw a dot and an interval for each mark, with the numbers on the right and the axis below."""
    start, end = axis
    heads = [_text_head(name) for name, _ in lines]
    room = max(map(len, heads), default=0)
    drawn = [
        f"{head:<{room}}  {_interval_in_text(mark, axis)}  {numbers_of(mark)}"
        for head, (_, mark) in zip(heads, lines, strict=True)
    ]
    below = f"{start}%{'':{WIDE - len(f'{start}%{end}%')}}{end}%"
    return [*drawn, f"{'':{room}}  {below}"] if drawn else []


def bars_in_text(rows: Iterable[tuple[str, int]]) -> list[str]:
    """Draw a bar for each count, largest first. If there are more than LONGEST, the smallest are added up."""
    ordered = sorted(((_text_head(name), number) for name, number in rows if number), key=lambda row: -row[1])
    if len(ordered) > LONGEST:
        others = ordered[LONGEST - 1 :]
        ordered = [*ordered[: LONGEST - 1], (f"{len(others)} others", sum(number for _, number in others))]
    room = max((len(head) for head, _ in ordered), default=0)
    most = max((number for _, number in ordered), default=0)
    return [
        f"{head:<{room}}  {'█' * max(1, round(WIDE * number / most)):<{WIDE}}  {count(number)}"
        for head, number in ordered
    ]


def _text_head(name: str) -> str:
    """Return a line's name, shortened to ROOM, without backquotes, which could end the plot's code block."""
    return shorten(printable(name).replace("`", "'"), ROOM, ROOM // 3)


def _interval_in_text(mark: Mark, axis: Axis) -> str:
    start, end = axis
    assert mark.value is not None
    places = ((100 * share - start) / (end - start) * (WIDE - 1) for share in (mark.low, mark.high, mark.value))
    low, high, value = (min(WIDE - 1, max(0, round(place))) for place in places)
    line = [" "] * low + ["─"] * (high - low + 1) + [" "] * (WIDE - 1 - high)
    line[low], line[high] = "├", "┤"
    line[value] = "●"
    return "".join(line)
