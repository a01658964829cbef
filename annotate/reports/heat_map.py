"""A heat map of confusions: which label is taken for which, as SVG in a string."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from django.utils.safestring import SafeString

from annotate.reports.numbers import count, percent
from annotate.reports.svg import ACCENT, LINE, ON_ACCENT, QUIET, ROW, element, escaped, picture, text

Cell = tuple[str, str, float]  # gold label, predicted label, posts (estimated numbers of them are fractional)

# The shades of errors: share of the gold label's posts, up to which; opacity; colour of a number on it. Steps, not
# a ramp, because on these a number keeps a contrast of 4.5 in light and in dark.
SHADES = (
    (0.001, 0.16, "currentColor"),
    (0.01, 0.3, "currentColor"),
    (0.05, 0.45, "currentColor"),
    (0.2, 0.85, ON_ACCENT),
    (float("inf"), 1, ON_ACCENT),
)
NUMBERED = 26  # labels up to which a heat map has its numbers in the cells
OTHERS = "others"


def heat_map(
    labels: Sequence[str], cells: Iterable[Cell], *, title: str, description: str = "", predicted: str = "predicted"
) -> SafeString:
    """Gold labels down, predicted ones across; labels that are not among `labels` go to a row and a column "others".

    An error's shade is its share of its gold label's posts, in steps that are nearly logarithmic, so that rare errors
    show; right answers have an outline and no shade. A map of few labels has numbers in its cells, one of many in
    tooltips.
    """
    known, sums, totals = set(labels), Counter(), Counter()
    for pair in cells:
        gold, said = (label if label in known else OTHERS for label in pair[:2])
        sums[gold, said] += pair[2]
        totals[gold] += pair[2]
    shown = [*labels, *([OTHERS] if any(OTHERS in pair for pair in sums) else [])]
    place = {label: number for number, label in enumerate(shown)}
    numbered = len(shown) <= NUMBERED
    side, left, top = (44, 72, 44) if numbered else (12, 64, 64)
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
    width, height = max(left + size, 560) + 2, top + size + 32
    measures = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}"}
    return picture(title, description, parts, font_size=13 if numbered else 11, **measures)


def _heat_cell(gold: str, said: str, weight: float, share: float, x: int, y: int, side: int) -> SafeString:
    ink = "currentColor"
    if gold != said:
        _, opacity, ink = next(shade for shade in SHADES if share < shade[0])
        paint, words = {"fill": ACCENT, "fill_opacity": opacity}, f"{gold} taken for {said}"
    elif gold == OTHERS:
        paint, words = {"fill": "none", "stroke": LINE}, "labels that are not shown, right or not"
    else:
        paint, words = {"fill": "none", "stroke": QUIET}, f"{gold}, right"
    parts = [element("title", escaped(f"{words}: {count(weight)}, {percent(share)} of {gold}"))]
    parts.append(element("rect", x=x + 1, y=y + 1, width=side - 2, height=side - 2, **paint))
    if side > ROW:
        parts.append(text(_short(weight), x + side / 2, y + side / 2 + 4, fill=ink, font_size=12, text_anchor="middle"))
    return element("g", *parts)


def _shades(y: int) -> SafeString:
    """The legend of the shades."""
    bounds = [f"{100 * bound:g}" for bound, _, _ in SHADES[:-1]]
    words = [f"<{bounds[0]}%", *(f"{low}–{high}%" for low, high in pairwise(bounds)), f"≥{bounds[-1]}%"]
    parts = []
    for number, (word, (_, opacity, _)) in enumerate(zip(words, SHADES, strict=True)):
        x = 72 * number
        parts.append(element("rect", x=x, y=y, width=12, height=12, fill=ACCENT, fill_opacity=opacity))
        parts.append(text(word, x + 16, y + 10))
    return element("g", *parts, text("of the gold label", 72 * len(words), y + 10, fill=QUIET))


def _short(weight: float) -> str:
    """A count that fits into a cell."""
    if weight >= 99_999.5:
        return f"{weight / 1000:,.0f}k"
    return f"{weight:.1f}" if weight < 0.95 else f"{weight:,.0f}"
