"""Square SVG plots: curves of shares, lines of numbers, and heat maps of confusions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from annotate.reports.numbers import count, percent
from annotate.reports.plots import ACCENT, LINE, ON_ACCENT, QUIET, ROW, element, picture, text, tooltip

SIDE, LEFT, TOP = 280, 62, 12  # side of the square, margin to its left, and margin above it, in pixels
TICKS = 4
DASHES = ("none", "7 4", "2 3", "9 3 2 3")  # dash patterns, which distinguish lines without colour


class Spot(NamedTuple):
    """A point in a plot, optionally with an interval for y and a tooltip."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    words: str = ""


@dataclass(frozen=True)
class _Square:
    """The frame of a plot.

    wide, high: largest number on each axis.
    least: number at the start of the vertical axis.
    top: margin above the plot (pixels).
    """

    wide: float = 1.0
    high: float = 1.0
    least: float = 0.0
    top: int = TOP

    def place(self, x: float, y: float) -> tuple[float, float]:
        return LEFT + SIDE * x / self.wide, self.top + SIDE * (1 - (y - self.least) / (self.high - self.least))

    def line(self, spots: Iterable[Spot]) -> str:
        """Return the path through the spots."""
        return "M" + "L".join("{:.1f} {:.1f}".format(*self.place(spot.x, spot.y)) for spot in spots)

    def picture(self, title: str, axes: Mapping[str, str], parts: Iterable[SafeString]) -> SafeString:
        """Return the plot.

        axes: number formats by the axis's name, with the horizontal axis first.
        """
        grid, bottom, middle = [], self.top + SIDE, {"text_anchor": "middle"}
        (across, wide), (up, high) = axes.items()
        for share in (number / TICKS for number in range(TICKS + 1)):
            ends = share * self.wide, self.least + share * (self.high - self.least)
            x, y = self.place(*ends)
            grid.append(element("path", d=f"M{x:g} {self.top}v{SIDE}M{LEFT} {y:g}h{SIDE}", stroke=LINE, fill="none"))
            grid.append(text(format(ends[0], wide), x, bottom + 16, **middle, fill=QUIET))
            grid.append(text(format(ends[1], high), LEFT - 6, y + 4, text_anchor="end", fill=QUIET))
        turned = f"translate(12 {self.top + SIDE / 2}) rotate(-90)"
        names = text(across, LEFT + SIDE / 2, bottom + 36, **middle) + text(up, 0, 0, transform=turned, **middle)
        return picture(title, [*grid, *parts, names], font_size=13, **_size(LEFT + SIDE + 24, bottom + 44))


def _size(width: int, height: int) -> dict[str, Any]:
    return {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}


def curve(
    spots: Sequence[Spot], *, title: str, across: str, up: str, diagonal: bool = False, joined: bool = False
) -> SafeString:
    """Plot shares against shares, such as a reliability diagram or accuracy by coverage.

    The vertical axis starts at a round share below all spots.

    across, up: names of the axes.
    diagonal: whether to draw a dashed line of equality and start the vertical axis at 0.
    joined: whether to draw a line through the spots instead of a dot at each spot.
    """
    lowest = min((spot.low if spot.low is not None else spot.y for spot in spots), default=0.0)
    square = _Square(least=0.0 if diagonal else min(0.75, int(lowest * TICKS) / TICKS))
    parts = []
    if diagonal:
        ends = f"M{LEFT} {TOP + SIDE}L{LEFT + SIDE} {TOP}"
        parts.append(element("path", d=ends, stroke=QUIET, stroke_dasharray="4 3", fill="none"))
    if joined:
        parts.append(element("path", d=square.line(spots), stroke=ACCENT, stroke_width=2, fill="none"))
    for spot in () if joined else spots:
        x, y = square.place(spot.x, spot.y)
        marks = [tooltip(spot.words or f"{percent(spot.x)}: {percent(spot.y)}")]
        if spot.low is not None and spot.high is not None:
            (_, low), (_, high) = square.place(0, spot.low), square.place(0, spot.high)
            marks.append(element("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}", stroke=ACCENT, stroke_width=1.5))
        parts.append(element("g", *marks, element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, fill=ACCENT)))
    return square.picture(title, {across: ".0%", up: ".0%"}, parts)


def lines(series: Mapping[str, Sequence[Spot]], *, title: str, across: str, up: str) -> SafeString:
    """Plot numbers against numbers, with a line for each series and a dot at each spot. Both axes start at 0.

    series: spots by the series's name; at most as many series as DASHES.
    across, up: names of the axes.
    """

    def end(highest: float) -> float:
        """Return the smallest round number, not below the maximum, at which an axis with TICKS parts can end."""
        power = 10 ** floor(log10(highest / TICKS)) if highest else 1
        return next(TICKS * step * power for step in (1, 2, 2.5, 5, 10) if TICKS * step * power >= highest)

    spots = [(spot.x, spot.y) for series_spots in series.values() for spot in series_spots]
    wide, high = (end(max(numbers, default=0)) for numbers in ([x for x, _ in spots], [y for _, y in spots]))
    square, parts = _Square(wide, high, top=TOP + 20 * len(series)), []
    for number, ((name, series_spots), dash) in enumerate(zip(series.items(), DASHES, strict=False)):
        stroke = {"stroke": ACCENT, "stroke_width": 2, "stroke_dasharray": dash, "fill": "none"}
        top = TOP + 20 * number
        parts += [element("path", d=f"M{LEFT} {top + 8}h40", **stroke), text(name, LEFT + 48, top + 12)]
        parts += [element("path", d=square.line(series_spots), **stroke)] if series_spots else []
        for spot in series_spots:
            x, y = square.place(spot.x, spot.y)
            parts.append(element("circle", tooltip(spot.words), cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, fill=ACCENT))
    return square.picture(title, {across: ",.0f", up: "g"}, parts)


# --- Heat map of confusions


Cell = tuple[str, str, float]  # gold label, predicted label, and number of units (fractional if estimated)

# Shades of errors, as (upper limit, opacity, colour of a number on it). The limit is a share of the gold label's units.
# Discrete steps ensure that numbers have a contrast of at least 4.5 in light and dark mode.
SHADES = (
    (0.001, 0.16, "currentColor"),
    (0.01, 0.3, "currentColor"),
    (0.05, 0.45, "currentColor"),
    (0.2, 0.85, ON_ACCENT),
    (float("inf"), 1, ON_ACCENT),
)
NUMBERED = 21  # maximum number of labels in a heat map with numbers in its cells
UPRIGHT_FROM, LETTER = 5, 8  # longest label that fits above a numbered cell (letters), and width of a letter (pixels)
OTHERS = "others"


def heat_map(labels: Sequence[str], cells: Iterable[Cell], *, title: str, predicted: str) -> SafeString:
    """Plot a confusion matrix, with gold labels in rows and predictions in columns.

    An error's shade depends on its share of the gold label's units. The steps are nearly logarithmic, so that rare
    errors are visible. Correct predictions are outlined instead of shaded. With few labels, the numbers are in the
    cells; otherwise, only in the tooltips.

    labels: labels to show; all other labels share a row and a column named "others".
    predicted: heading of the columns.
    """
    shown_labels, sums, totals = set(labels), defaultdict[tuple[str, str], float](float), defaultdict[str, float](float)
    for *pair, weight in cells:
        gold, predicted_label = (label if label in shown_labels else OTHERS for label in pair)
        sums[gold, predicted_label] += weight
        totals[gold] += weight
    axis_labels = [*labels, *[OTHERS] * any(OTHERS in pair for pair in sums)]
    positions = {label: number for number, label in enumerate(axis_labels)}
    numbered = len(axis_labels) <= NUMBERED
    side, left, top = (44, 72, 44) if numbered else (12, 64, 64)
    longest = max(map(len, axis_labels), default=0)
    upright = not numbered or longest > UPRIGHT_FROM
    if upright and numbered:
        left, top = max(left, LETTER * longest + 12), LETTER * longest + 32
    size = side * len(axis_labels)
    parts = [text(f"{predicted} →", left, 12, fill=QUIET), text("gold ↓", 0, top - 6, fill=QUIET)]
    for n in range(len(axis_labels) + 1):
        path = f"M{left} {top + side * n}h{size}M{left + side * n} {top}v{size}"
        parts.append(element("path", d=path, stroke=LINE, fill="none"))
    for label, number in positions.items():
        middle = side * (number + 0.5)
        above: dict[str, Any] = {"x": left + middle, "y": top - 6, "text_anchor": "middle"}
        if upright:
            above = {"x": 0, "y": 0, "transform": f"translate({left + middle + 4:g} {top - 6}) rotate(-90)"}
        parts += [text(label, left - 6, top + middle + 4, text_anchor="end"), text(label, **above)]
    for (gold, predicted_label), weight in sums.items():
        if weight > 0:
            x, y = left + side * positions[predicted_label], top + side * positions[gold]
            parts.append(_heat_cell(gold, predicted_label, weight, weight / totals[gold], x, y, side))
    parts.append(_shades(top + size + 14))
    measures = _size(max(left + size, 560) + 2, top + size + 32)
    return picture(title, parts, font_size=13 if numbered else 11, **measures)


def _heat_cell(gold: str, predicted: str, weight: float, share: float, x: int, y: int, side: int) -> SafeString:
    ink = "currentColor"
    if gold != predicted:
        _, opacity, ink = next(shade for shade in SHADES if share < shade[0])
        paint, description = {"fill": ACCENT, "fill_opacity": opacity}, f"{gold} predicted as {predicted}"
    elif gold == OTHERS:
        paint, description = {"fill": "none", "stroke": LINE}, "labels that are not shown, correct or not"
    else:
        paint, description = {"fill": "none", "stroke": QUIET}, f"{gold}, correct"
    parts = [tooltip(f"{description}: {count(weight)}, {percent(share)} of {gold}")]
    parts.append(element("rect", x=x + 1, y=y + 1, width=side - 2, height=side - 2, **paint))
    if side > ROW:
        thousands = weight >= 99_999.5  # larger counts do not fit into a cell
        short = f"{weight / 1000:,.0f}k" if thousands else f"{weight:.1f}" if weight < 0.95 else f"{weight:,.0f}"
        parts.append(text(short, x + side / 2, y + side / 2 + 4, fill=ink, font_size=12, text_anchor="middle"))
    return element("g", *parts)


def _shades(y: int) -> SafeString:
    """Return the legend for the shades."""
    bounds = [f"{100 * bound:g}" for bound, _, _ in SHADES[:-1]]
    legend_texts = [f"<{bounds[0]}%", *(f"{low}–{high}%" for low, high in pairwise(bounds)), f"≥{bounds[-1]}%"]
    parts = []
    for x, word, (_, opacity, _) in zip(range(0, 72 * len(legend_texts), 72), legend_texts, SHADES, strict=True):
        parts.append(element("rect", x=x, y=y, width=12, height=12, fill=ACCENT, fill_opacity=opacity))
        parts.append(text(word, x + 16, y + 10))
    return element("g", *parts, text("of the gold label", 72 * len(legend_texts), y + 10, fill=QUIET))
