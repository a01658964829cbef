"""Plots of work in progress, for the manager's pages: counts in parts, counts over time, spans of seconds.

In the style of plots.py: colours of the page, laid out in percent of the width, nothing estimated here.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.safestring import SafeString

from annotate.reports.numbers import count
from annotate.reports.plots import LINE_HEIGHT, NAME, PLOT, PLOT_WIDTH, ROW, code_text
from annotate.reports.svg import ACCENT, LINE, PAPER, QUIET, element, escaped, picture, text

# From what is done to what nobody has begun: told apart by shade, and by order, without colour.
SHADES = ((ACCENT, 1.0), (ACCENT, 0.62), (ACCENT, 0.3), (QUIET, 0.45), (PAPER, 1.0))
END = 99.0  # percent of the width where a stacked bar of the largest row ends
HEIGHT = 96  # pixels of a plot over time
WIDEST = 12.0  # percent of the width, a column
LEFT = 7.0  # percent of the width that the axis of a plot over time takes


class Parts(NamedTuple):
    """One line of stacked bars: a code, the name behind it, and as many counts as there are parts."""

    label: str
    name: str
    counts: tuple[int, ...]


class Moment(NamedTuple):
    """One column: what stands below it, if anything, what its tooltip says, and the count."""

    tick: str
    said: str
    count: float


class Span(NamedTuple):
    """Lower quartile, median and upper quartile of so many."""

    label: str
    name: str
    low: float
    middle: float
    high: float
    count: int


def stacked(rows: Sequence[Parts], parts: Sequence[str], *, title: str, description: str = "") -> SafeString:
    """A bar a row, as long as the row's sum, in its parts; all on one scale. Parts that no row has have no legend."""
    used = [place for place in range(len(parts)) if any(row.counts[place] for row in rows)]
    most = max((sum(row.counts) for row in rows), default=0) or 1
    drawn, head = [], 0
    for place in used:
        box = element("rect", x=0.5, y=head + 3.5, width=11, height=11, rx=2, **_paint(place))
        words = text(parts[place], 18, head + 13)
        drawn.append(element("svg", box, words, x=f"{PLOT}%", overflow="visible"))
        head += LINE_HEIGHT
    head += 6
    bottom = head + ROW * len(rows)
    for top, row in zip(range(head, bottom, ROW), rows, strict=True):
        drawn.append(_stacked_row(row, parts, used, top, most))
    drawn.append(element("line", x1=0, x2="100%", y1=bottom, y2=bottom, stroke=LINE, stroke_opacity=0.5))
    return picture(title, description, drawn, width="100%", height=bottom + 1, font_size=12)


def _paint(place: int) -> dict:
    fill, opacity = SHADES[place]
    return {"fill": fill, "fill_opacity": opacity, "stroke": ACCENT if fill != QUIET else QUIET, "stroke_width": 1}


def _stacked_row(row: Parts, parts: Sequence[str], used: list[int], top: int, most: int) -> SafeString:
    whole = sum(row.counts)
    said = ", ".join(f"{count(row.counts[place])} {parts[place]}" for place in used if row.counts[place])
    boxes, at = [], 0.0
    for place in used:
        width = 100 * row.counts[place] / most
        if width:
            boxes.append(element("rect", x=f"{at:.4g}%", y=4, width=f"{width:.4g}%", height=ROW - 8, **_paint(place)))
        at += width
    bar = element("svg", *boxes, x=f"{PLOT}%", y=top, width=f"{END - PLOT}%", height=ROW)
    return element("g", _said(f"{row.name or row.label}: {said or 'nothing'}"), _name(row, top, whole), bar)


def _name(row: Parts | Span, top: int, number: float) -> SafeString:
    """A line above the row, the code, the name beside it, and how many they are."""
    line = element("line", x1=0, x2="100%", y1=top, y2=top, stroke=LINE, stroke_opacity=0.5)
    y = ROW / 2 + 4
    code = code_text(row.label, y, 18, 6)
    name = text(row.name, NAME, y, fill=QUIET, class_="plot-wide")
    label = element("svg", code, name, y=top, width=f"{PLOT - 6}%", height=ROW)
    counted = text(count(number), f"{PLOT - 1}%", top + y, fill=QUIET, text_anchor="end", class_="number")
    return line + label + counted


def _said(words: str) -> SafeString:
    return element("title", escaped(words))


def columns(moments: Sequence[Moment], *, title: str, description: str = "", counted: str = "answers") -> SafeString:
    """A column for each moment, from the first to the last, with the highest number and nothing at the axis."""
    most = max((moment.count for moment in moments), default=0)
    top, bottom = 12, 12 + HEIGHT
    parts = [
        element("line", x1=f"{LEFT}%", x2="100%", y1=top, y2=top, stroke=LINE),
        element("line", x1=f"{LEFT}%", x2="100%", y1=bottom, y2=bottom, stroke=QUIET),
        text(count(most), f"{LEFT - 1}%", top + 4, fill=QUIET, text_anchor="end", class_="number"),
        text("0", f"{LEFT - 1}%", bottom + 4, fill=QUIET, text_anchor="end", class_="number"),
    ]
    width = min(WIDEST, (100 - LEFT) / max(1, len(moments)))
    for place, moment in enumerate(moments):
        x = LEFT + place * width
        height = HEIGHT * moment.count / most if most else 0
        # The whole height answers to the pointer, where there is no column too.
        room = element("rect", x=f"{x:.4g}%", y=top, width=f"{width:.4g}%", height=HEIGHT, fill_opacity=0)
        bar = element(
            "rect",
            x=f"{x + width / 10:.4g}%",
            y=bottom - height,
            width=f"{0.8 * width:.4g}%",
            height=height,
            fill=ACCENT,
        )
        parts.append(element("g", _said(f"{moment.said}: {count(moment.count)} {counted}"), room, bar))
        if moment.tick:
            parts.append(text(moment.tick, f"{x + width / 2:.4g}%", bottom + 16, fill=QUIET, text_anchor="middle"))
    return picture(title, description, parts, width="100%", height=bottom + 22, font_size=11)


def ranges(rows: Sequence[Span], *, title: str, description: str = "", unit: str = "s") -> SafeString:
    """A dot at each median, and a bar from the lower to the upper quartile, from 0 to the highest of them."""
    most = max((row.high for row in rows), default=0) or 1
    step = _step(most)
    end = step * (int(most / step) + 1)
    parts = [text("median (quartiles)", "100%", 13, fill=QUIET, text_anchor="end")]
    head = LINE_HEIGHT + 4
    bottom = head + ROW * len(rows)
    for number in range(int(end / step) + 1):
        tick = number * step
        x = f"{PLOT + PLOT_WIDTH * tick / end:.4g}%"
        parts.append(text(f"{tick:g} {unit}", x, head - 9, fill=QUIET, text_anchor="middle"))
        parts.append(element("line", x1=x, x2=x, y1=head - 4, y2=bottom, stroke=LINE))
    for top, row in zip(range(head, bottom, ROW), rows, strict=True):
        y = top + ROW / 2
        low, middle, high = (f"{PLOT + PLOT_WIDTH * value / end:.4g}%" for value in (row.low, row.middle, row.high))
        line = element("line", x1=low, x2=high, y1=y, y2=y, stroke=ACCENT, stroke_width=5, stroke_opacity=0.4)
        dot = element("circle", cx=middle, cy=y, r=4, fill=ACCENT)
        words = f"{row.middle:,.1f} ({row.low:,.1f}–{row.high:,.1f})"
        number = text(words, "100%", y + 4, text_anchor="end", class_="number")
        said = f"{row.name or row.label}: half of {count(row.count)} take {row.low:,.1f} to {row.high:,.1f} {unit}"
        parts.append(element("g", _said(said), _name(row, top, row.count), line, dot, number))
    parts.append(element("line", x1=0, x2="100%", y1=bottom, y2=bottom, stroke=LINE, stroke_opacity=0.5))
    return picture(title, description, parts, width="100%", height=bottom + 1, font_size=12)


def _step(most: float) -> float:
    """A round distance of ticks of which there are at most five up to `most`."""
    step = 0.1
    for factor in (2, 2.5, 2) * 8:
        if most / step <= 5:
            break
        step *= factor
    return step
