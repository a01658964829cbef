"""The project's plots, as SVG in a string: intervals by language, bars, a heat map of confusions.

A plot needs neither script nor stylesheet, so it stands in a page under the strictest policy and in a file alone: its
colours are presentation attributes that take the page's custom properties (--accent, --quiet, --line, --paper), light
or dark, or their own where the page has none. Plots of rows are laid out in percent of the width, so that letters keep
their size on a phone; a narrow page hides what has the class `plot-wide`. Nothing is estimated here, and rows stand in
the order in which they come.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from django.utils.safestring import SafeString

from annotate.reports.numbers import count, percent, span
from annotate.reports.svg import ACCENT, LINE, ON_ACCENT, PAPER, QUIET, element, escaped, picture, text
from corpora.core.languages import UND

Cell = tuple[str, str, float]  # gold label, predicted label, posts (estimated numbers of them are fractional)
Axis = tuple[int, int]  # start and end, in percent

FILLS = (ACCENT, PAPER)  # of the first and the second series: a full and a hollow dot, told apart without colour

INK, DASHED = "currentColor", {"stroke_width": 1.5, "stroke_dasharray": "4 3"}  # a limit

# Of a plot of rows, in percent of its width: where the plot begins, its width, and where the counts end.
PLOT, PLOT_WIDTH, COUNTS = 21, 46, 78
LINE_HEIGHT, ROW, PAIR = 18, 20, 34  # pixels; a row of two series is a PAIR high
NAME = 52  # pixels from the code to the name

# How far an axis may be zoomed to one of its ends, the most first, and how far apart the ticks are: all in percent.
ZOOMED = (5, 10, 20, 30, 40, 50)
TICKS = {5: 1, 10: 2, 20: 5, 30: 10, 40: 10, 50: 10, 100: 25}
MOST_CUT = 0.1  # of the intervals may leave a zoomed axis; an arrow then says so

# The shades of errors: share of the gold label's posts, up to which; opacity; colour of a number on it. Steps and no
# ramp: on these a number keeps a contrast of 4.5 in light and in dark.
SHADES = (
    (0.001, 0.16, "currentColor"),
    (0.01, 0.3, "currentColor"),
    (0.05, 0.45, "currentColor"),
    (0.2, 0.85, ON_ACCENT),
    (float("inf"), 1, ON_ACCENT),
)
NUMBERED = 26  # labels at most where a heat map has its numbers in the cells
OTHERS = "others"


class Mark(NamedTuple):
    """An estimate between 0 and 1 with its interval; count: what it rests on. value None: not measured.

    Where both ends are the value, there is no interval to speak of.
    """

    value: float | None
    low: float = 0.0
    high: float = 1.0
    count: float | None = None

    @property
    def alone(self) -> bool:
        return self.low == self.high == self.value


class Row(NamedTuple):
    """One line of a plot: a code, the name behind it, and a mark for each series."""

    label: str
    name: str
    marks: tuple[Mark | None, ...]


def axis_of(rows: Iterable[Row]) -> Axis:
    """Zoomed to the upper or the lower end where every value lies there, and nearly every interval; else (0, 100)."""
    marks = [mark for row in rows for mark in row.marks if mark is not None and mark.value is not None]
    for width in ZOOMED if marks else ():
        # A value at the very edge would look like one that is cut off.
        inner, outer = 0.95 * width / 100, width / 100
        for axis, distances in (
            ((100 - width, 100), [(1 - mark.value, 1 - mark.low) for mark in marks]),
            ((0, width), [(mark.value, mark.high) for mark in marks]),
        ):
            cut = sum(far > outer + 1e-9 for _, far in distances)
            if max(near for near, _ in distances) <= inner and cut <= MOST_CUT * len(marks):
                return axis
    return 0, 100


def forest(
    rows: Sequence[Row],
    *,
    title: str,
    description: str = "",
    series: Sequence[str] = (),
    axis: Axis | None = None,
    counted: str = "posts",
    limit: tuple[float, str] | None = None,
    decimals: bool = False,
) -> SafeString:
    """A dot and an interval for each mark, its numbers at the right.

    series: the names of the marks where a row has two. axis: for several plots that are to share one; without it
    `axis_of` chooses. An axis that is not the whole one says so. counted: what the marks' counts are. limit: a share
    that is drawn as a line through all rows, and what it is; it should lie on the axis. decimals: 0.54, not 54.0%.
    """
    axis = axis or axis_of(rows)
    height = ROW if len(series) < 2 else PAIR
    draw = partial(_forest_row, decimals=decimals)
    return _plot(rows, draw, title, description, series, axis, height, (counted, "95% interval"), limit, decimals)


def bars(
    rows: Sequence[Row], *, title: str, description: str = "", axis: Axis | None = None, counted: str = "posts"
) -> SafeString:
    """A bar from 0 for each row's one mark, whose interval is not shown."""
    axis = (0, (axis or axis_of(rows))[1])
    return _plot(rows, _bar_row, title, description, (), axis, ROW, (counted, "share"))


def _plot(rows, draw, title, description, series, axis, height, columns, limit=None, decimals=False) -> SafeString:
    """The frame around rows: legend, a word on a zoomed axis, names of columns and ticks, lines."""
    start, end = axis
    head, parts = 0, []
    for name, fill in zip(series, FILLS, strict=False) if len(series) > 1 else ():
        dot = element("circle", cx=5, cy=head + 9, r=4, fill=fill, stroke=ACCENT, stroke_width=1.5)
        parts.append(element("svg", dot, text(name, 16, head + 13), x=f"{PLOT}%", overflow="visible"))
        head += LINE_HEIGHT
    if axis != (0, 100):
        said = f"The axis starts at {start}%, not at 0." if start else f"The axis ends at {end}%, not at 100%."
        parts.append(text(said, f"{PLOT}%", head + 13, fill=QUIET))
        head += LINE_HEIGHT
    if limit:
        stroke = element("line", x1=0, x2=12, y1=head + 9, y2=head + 9, stroke=INK, **DASHED)
        parts.append(element("svg", stroke, text(limit[1], 18, head + 13), x=f"{PLOT}%", overflow="visible"))
        head += LINE_HEIGHT
    counted, said = columns
    parts.append(text(counted, f"{COUNTS}%", head + 13, fill=QUIET, text_anchor="end", class_="plot-wide"))
    parts.append(text(said, "100%", head + 13, fill=QUIET, text_anchor="end"))
    head += LINE_HEIGHT + 4
    bottom = head + height * len(rows)
    for tick in range(start, end + 1, TICKS.get(end - start, 25)):
        x = f"{PLOT + PLOT_WIDTH * (tick - start) / (end - start):g}%"
        written = f"{tick / 100:g}" if decimals else f"{tick}%"
        parts.append(text(written, x, head - 9, fill=QUIET, text_anchor="middle"))
        parts.append(element("line", x1=x, x2=x, y1=head - 4, y2=bottom, stroke=LINE))
    parts.extend(draw(row, top, height, axis) for top, row in zip(range(head, bottom, height), rows, strict=True))
    if limit:
        x = f"{PLOT + PLOT_WIDTH * (100 * limit[0] - start) / (end - start):g}%"
        parts.append(element("line", x1=x, x2=x, y1=head - 4, y2=bottom, stroke=INK, **DASHED))
    parts.append(element("line", x1=0, x2="100%", y1=bottom, y2=bottom, stroke=LINE, stroke_opacity=0.5))
    return picture(title, description, parts, width="100%", height=bottom + 1, font_size=12)


def _forest_row(row: Row, top: int, height: int, axis: Axis, *, decimals: bool) -> SafeString:
    marks, numbers = [], []
    for number, mark in enumerate(row.marks):
        y = height * (2 * number + 1) / (2 * len(row.marks))
        if mark is None or mark.value is None:
            numbers += _numbers(Mark(None), top + y, "not measured")
            continue
        marks += _dot_and_interval(mark, y, axis, FILLS[number])
        # The axis says that these are percents.
        in_percent = percent(mark.value)[:-1] + ("" if mark.alone else f" {span(mark.low, mark.high)}")
        numbers += _numbers(mark, top + y, _decimal(mark) if decimals else in_percent)
    plot = element("svg", *marks, x=f"{PLOT}%", y=top, width=f"{PLOT_WIDTH}%", height=height, overflow="visible")
    return element("g", _tooltip(row, decimals=decimals), _label(row, top, height), plot, *numbers)


def _decimal(mark: Mark) -> str:
    return f"{mark.value:.2f}" + ("" if mark.alone else f" [{mark.low:.2f}, {mark.high:.2f}]")


def _dot_and_interval(mark: Mark, y: float, axis: Axis, fill: str) -> list[SafeString]:
    low, high, value = (_place(share, axis) for share in (mark.low, mark.high, mark.value))
    parts = [element("line", x1=low, x2=high, y1=y, y2=y, stroke=ACCENT, stroke_width=1.5)]
    if 100 * mark.low < axis[0]:
        parts.append(element("path", d=f"M-7 {y:g}l7 -4v8z", fill=ACCENT))
    if 100 * mark.high > axis[1]:
        arrow = element("path", d=f"M7 {y:g}l-7 -4v8z", fill=ACCENT)
        parts.append(element("svg", arrow, x="100%", overflow="visible"))
    return [*parts, element("circle", cx=value, cy=y, r=4, fill=fill, stroke=ACCENT, stroke_width=1.5)]


def _bar_row(row: Row, top: int, height: int, axis: Axis) -> SafeString:
    mark = row.marks[0] or Mark(None)
    bar = element("rect", y=4, width=_place(mark.value or 0, axis), height=height - 8, rx=2, fill=ACCENT)
    plot = element("svg", bar, x=f"{PLOT}%", y=top, width=f"{PLOT_WIDTH}%", height=height)
    numbers = _numbers(mark, top + height / 2, percent(mark.value))
    return element("g", _tooltip(row), _label(row, top, height), plot, *numbers)


def _place(share: float, axis: Axis) -> str:
    start, end = axis
    return f"{min(100.0, max(0.0, 100 * (100 * share - start) / (end - start))):.4g}%"


def code_text(label: str, y: float, wide: int, narrow: int) -> SafeString:
    """A row's code or a person's name, of which both ends are kept where it has more letters than there is room for.

    What is for narrow pages alone (class plot-narrow) shows only where a style sheet says so.
    """
    if len(label) <= narrow:
        return text(label, 0, y, font_weight=600)
    hidden = {"class_": "plot-narrow", "display": "none"}
    return text(_shortened(label, wide), 0, y, font_weight=600, class_="plot-wide") + text(
        _shortened(label, narrow), 0, y, font_weight=600, **hidden
    )


def _shortened(words: str, most: int) -> str:
    end = (most - 1) // 2
    return words if len(words) <= most else f"{words[: most - 1 - end].rstrip()}…{words[len(words) - end :].lstrip()}"


def _label(row: Row, top: int, height: int) -> SafeString:
    """A line above the row, the code, and the name beside it, cut off where it would reach into the plot."""
    y = height / 2 + 4
    line = element("line", x1=0, x2="100%", y1=top, y2=top, stroke=LINE, stroke_opacity=0.5)
    code = code_text(row.label, y, 24, 9)
    name = text(row.name, NAME, y, fill=QUIET, class_="plot-wide")
    return line + element("svg", code, name, y=top, width=f"{PLOT - 1}%", height=height)


def _numbers(mark: Mark, y: float, said: str) -> list[SafeString]:
    counted = "" if mark.count is None else count(mark.count)
    return [
        text(counted, f"{COUNTS}%", y + 4, fill=QUIET, text_anchor="end", class_="number plot-wide"),
        text(said, "100%", y + 4, text_anchor="end", class_="number"),
    ]


def _tooltip(row: Row, *, decimals: bool = False) -> SafeString:
    said = [
        _decimal(mark)
        if decimals
        else percent(mark.value) + ("" if mark.alone else f", 95% interval {percent(mark.low)} to {percent(mark.high)}")
        for mark in row.marks
        if mark is not None and mark.value is not None
    ]
    return element("title", escaped(f"{row.name or row.label}: {'; '.join(said) or 'not measured'}"))


def top_confusions(cells: Iterable[Cell], most: int) -> list[Cell]:
    """The commonest errors, those with the most posts first."""
    wrong = [(gold, predicted, weight) for gold, predicted, weight in cells if gold != predicted and weight > 0]
    return sorted(wrong, key=lambda cell: (-cell[2], cell[0], cell[1]))[:most]


def confused_labels(cells: Sequence[Cell], most: int) -> list[str]:
    """The labels of the commonest errors, `most` of them at most, in order of their code, und at the end."""
    chosen: dict[str, None] = {}
    for gold, predicted, _ in top_confusions(cells, len(cells)):
        if len(chosen.keys() | {gold, predicted}) <= most:
            chosen |= dict.fromkeys((gold, predicted))
    return sorted(chosen, key=lambda label: (label == UND, label))


def heat_map(
    labels: Sequence[str], cells: Iterable[Cell], *, title: str, description: str = "", predicted: str = "predicted"
) -> SafeString:
    """Gold labels down, predicted ones across; what is not among `labels` goes to a row and a column "others".

    An error's shade is its share of its gold label's posts, in steps that are nearly logarithmic, so that rare errors
    show; what is right has an outline and no shade. Few labels have their numbers in the cells, many in tooltips.
    """
    known, sums, totals = set(labels), Counter(), Counter()
    for pair in cells:
        gold, said = (label if label in known else OTHERS for label in pair[:2])
        sums[gold, said] += pair[2]
        totals[gold] += pair[2]
    shown = [*labels, *([OTHERS] if any(OTHERS in pair for pair in sums) else [])]
    place = {label: number for number, label in enumerate(shown)}
    numbered = len(shown) <= NUMBERED
    side, left, top = (36, 64, 40) if numbered else (12, 64, 64)
    size = side * len(shown)
    parts = [text(f"{predicted} →", left, 12, fill=QUIET), text("gold ↓", 0, top - 6, fill=QUIET)]
    for n in range(len(shown) + 1):
        path = f"M{left} {top + side * n}h{size}M{left + side * n} {top}v{size}"
        parts.append(element("path", d=path, stroke=LINE, fill="none"))
    for label, number in place.items():
        middle = side * (number + 0.5)
        parts.append(text(label, left - 6, top + middle + 4, text_anchor="end"))
        if numbered:
            parts.append(text(label, left + middle, top - 6, text_anchor="middle"))
        else:
            turn = f"translate({left + middle + 4:g} {top - 6}) rotate(-90)"
            parts.append(text(label, 0, 0, transform=turn))
    for (gold, said), weight in sums.items():
        if weight > 0:
            x, y = left + side * place[said], top + side * place[gold]
            parts.append(_heat_cell(gold, said, weight, weight / totals[gold], x, y, side))
    parts.append(_shades(top + size + 14))
    width, height = max(left + size, 480) + 2, top + size + 32
    measures = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}
    return picture(title, description, parts, font_size=11 if numbered else 10, **measures)


def _heat_cell(gold: str, said: str, weight: float, share: float, x: int, y: int, side: int) -> SafeString:
    ink = "currentColor"
    if gold != said:
        _, opacity, ink = next(shade for shade in SHADES if share < shade[0])
        paint, words = {"fill": ACCENT, "fill_opacity": opacity}, f"{gold} taken for {said}"
    elif gold == OTHERS:
        paint, words = {"fill": "none", "stroke": LINE}, "labels that are not shown, right or not"
    else:
        paint, words = {"fill": "none", "stroke": QUIET}, f"{gold}, right"
    parts = [element("title", escaped(f"{words}: {count(weight)} posts, {percent(share)} of {gold}"))]
    parts.append(element("rect", x=x + 1, y=y + 1, width=side - 2, height=side - 2, **paint))
    if side > ROW:
        parts.append(text(_short(weight), x + side / 2, y + side / 2 + 4, fill=ink, font_size=10, text_anchor="middle"))
    return element("g", *parts)


def _shades(y: int) -> SafeString:
    """The legend of the shades."""
    bounds = [f"{100 * bound:g}" for bound, _, _ in SHADES[:-1]]
    words = [f"<{bounds[0]}%", *(f"{low}–{high}%" for low, high in pairwise(bounds)), f"≥{bounds[-1]}%"]
    parts = []
    for number, (word, (_, opacity, _)) in enumerate(zip(words, SHADES, strict=True)):
        x = 64 * number
        parts.append(element("rect", x=x, y=y, width=12, height=12, fill=ACCENT, fill_opacity=opacity))
        parts.append(text(word, x + 16, y + 10))
    return element("g", *parts, text("of the gold label’s posts", 64 * len(words), y + 10, fill=QUIET))


def _short(weight: float) -> str:
    """A count that fits into a cell."""
    if weight >= 99_999.5:
        return f"{weight / 1000:,.0f}k"
    return f"{weight:.1f}" if weight < 0.95 else f"{weight:,.0f}"
