"""Square plots as SVG in a string: shares against shares (a reliability diagram, accuracy by coverage), and several
lines of numbers against numbers.
"""

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import NamedTuple

from django.utils.safestring import SafeString

from annotate.reports.numbers import NOT_MEASURED, percent
from annotate.reports.svg import ACCENT, LINE, QUIET, element, picture, text, tooltip

SIDE, LEFT, TOP = 280, 62, 12  # pixels of the square, and of what is left of it and above
TICKS = 4
DASHES = ("none", "7 4", "2 3", "9 3 2 3")  # of lines that are told apart without colour


class Spot(NamedTuple):
    """A point at (x, y), both from 0 to 1, with the interval of y if it has one, and the words of its tooltip."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    words: str = ""


def curve(
    spots: Sequence[Spot], *, title: str, across: str, up: str, diagonal: bool = False, joined: bool = False
) -> SafeString:
    """across, up: what the axes are. diagonal: a dashed line where both are the same; joined: a line through the
    spots in place of dots. The vertical axis begins at a round share below all spots."""
    lowest = min((spot.low if spot.low is not None else spot.y for spot in spots), default=0.0)
    least = 0.0 if diagonal else min(0.75, int(lowest * TICKS) / TICKS)

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + SIDE * x, TOP + SIDE * (1 - (y - least) / (1 - least))

    parts = []
    for number in range(TICKS + 1):
        share = number / TICKS
        x, (_, y) = LEFT + SIDE * share, place(0, least + share * (1 - least))
        parts.append(element("path", d=f"M{x:g} {TOP}v{SIDE}M{LEFT} {y:g}h{SIDE}", stroke=LINE, fill="none"))
        parts.append(text(f"{share:.0%}", x, TOP + SIDE + 16, text_anchor="middle", fill=QUIET))
        parts.append(text(f"{least + share * (1 - least):.0%}", LEFT - 6, y + 4, text_anchor="end", fill=QUIET))
    if diagonal:
        ends = f"M{LEFT} {TOP + SIDE}L{LEFT + SIDE} {TOP}"
        parts.append(element("path", d=ends, stroke=QUIET, stroke_dasharray="4 3", fill="none"))
    if joined:
        steps = "L".join("{:.1f} {:.1f}".format(*place(spot.x, spot.y)) for spot in spots)
        parts.append(element("path", d=f"M{steps}", stroke=ACCENT, stroke_width=2, fill="none"))
    else:
        parts += [_spot(spot, place) for spot in spots]
    parts.append(text(across, LEFT + SIDE / 2, TOP + SIDE + 36, text_anchor="middle"))
    parts.append(text(up, 0, 0, transform=f"translate(12 {TOP + SIDE / 2}) rotate(-90)", text_anchor="middle"))
    width, height = LEFT + SIDE + 24, TOP + SIDE + 44
    return picture(title, "", parts, font_size=13, width=width, height=height, viewBox=f"0 0 {width} {height}")


def _spot(spot: Spot, place) -> SafeString:
    x, y = place(spot.x, spot.y)
    marks = [tooltip(spot.words or f"{percent(spot.x)}: {percent(spot.y) if spot.y is not None else NOT_MEASURED}")]
    if spot.low is not None and spot.high is not None:
        (_, low), (_, high) = place(0, spot.low), place(0, spot.high)
        marks.append(element("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}", stroke=ACCENT, stroke_width=1.5))
    return element("g", *marks, element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, fill=ACCENT))


def _end(most: float) -> float:
    """The least round number for an axis with TICKS parts that is not below the greatest value."""
    power = 10 ** floor(log10(most / TICKS)) if most else 1
    return next(TICKS * step * power for step in (1, 2, 2.5, 5, 10) if TICKS * step * power >= most)


def lines(series: Mapping[str, Sequence[Spot]], *, title: str, across: str, up: str) -> SafeString:
    """A line for each series, at most as many as there are DASHES, with a dot at each spot. Both axes begin at 0;
    Spot.words say what a dot is.
    """
    spots = [spot for of in series.values() for spot in of]
    wide, high = _end(max((spot.x for spot in spots), default=0)), _end(max((spot.y for spot in spots), default=0))
    head = TOP + 20 * len(series)

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + SIDE * x / wide, head + SIDE * (1 - y / high)

    parts = []
    for number in range(TICKS + 1):
        (x, _), (_, y) = (place(wide * number / TICKS, high * number / TICKS) for _ in range(2))
        parts.append(element("path", d=f"M{x:g} {head}v{SIDE}M{LEFT} {y:g}h{SIDE}", stroke=LINE, fill="none"))
        parts.append(text(f"{wide * number / TICKS:,.0f}", x, head + SIDE + 16, text_anchor="middle", fill=QUIET))
        parts.append(text(f"{high * number / TICKS:g}", LEFT - 6, y + 4, text_anchor="end", fill=QUIET))
    for number, ((name, of), dash) in enumerate(zip(series.items(), DASHES, strict=False)):
        stroke = {"stroke": ACCENT, "stroke_width": 2, "stroke_dasharray": dash, "fill": "none"}
        steps = "L".join("{:.1f} {:.1f}".format(*place(spot.x, spot.y)) for spot in of)
        top = TOP + 20 * number
        parts += [element("path", d=f"M{LEFT} {top + 8}h40", **stroke), text(name, LEFT + 48, top + 12)]
        parts += [element("path", d=f"M{steps}", **stroke)] if of else []
        for spot in of:
            x, y = place(spot.x, spot.y)
            parts.append(element("circle", tooltip(spot.words), cx=f"{x:.1f}", cy=f"{y:.1f}", r=4, fill=ACCENT))
    parts.append(text(across, LEFT + SIDE / 2, head + SIDE + 36, text_anchor="middle"))
    parts.append(text(up, 0, 0, transform=f"translate(12 {head + SIDE / 2}) rotate(-90)", text_anchor="middle"))
    width, height = LEFT + SIDE + 24, head + SIDE + 44
    return picture(title, "", parts, font_size=13, width=width, height=height, viewBox=f"0 0 {width} {height}")
