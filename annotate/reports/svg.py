"""SVG elements for plots, and the layout of plots with rows.

Text is escaped, and colours are those of the page. `plots.py` and `square_plots.py` draw the plots.
"""

import re
from collections.abc import Collection, Iterable

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from annotate.reports.numbers import end_apart, shortened

ACCENT, ON_ACCENT = "var(--accent, #24557f)", "var(--on-accent, #ffffff)"
QUIET, LINE, PAPER = "var(--quiet, #64605a)", "var(--line, #dcd8d0)", "var(--paper, #fbfaf7)"

# Left edge and width of the plot area in a plot of rows, in percent of the width.
PLOT, PLOT_WIDTH = 21, 46
LINE_HEIGHT, ROW = 18, 20  # pixels
NAME = 52  # distance from the start of the code to the start of the name, in pixels


def picture(title: str, description: str, parts: Iterable[SafeString], **attributes) -> SafeString:
    named = [element("title", escaped(title)), element("desc", escaped(description))]
    root = {"xmlns": "http://www.w3.org/2000/svg", "class_": "plot", "role": "img", "fill": "currentColor"}
    return element("svg", *named, *parts, **root, **attributes) + mark_safe("\n")


def text(words: str, x: str | float, y: float, **attributes) -> SafeString:
    return element("text", escaped(words), x=x, y=y, **attributes) if words else mark_safe("")


def element(tag: str, *children: SafeString, **attributes) -> SafeString:
    """Return an SVG element. Its children must be safe strings.

    In names of attributes, underscores become hyphens, except at the end. For example, stroke_width is written as
    stroke-width, and class_ as class.
    """
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(f"{value:g}" if isinstance(value, float) else value)}"'
        for name, value in attributes.items()
    )
    return mark_safe(f"<{tag}{written}>{''.join(children)}</{tag}>")  # noqa: S308 - made of escaped parts


def escaped(words: str) -> SafeString:
    """Escape text. Characters that XML cannot represent are replaced with the replacement character."""
    return escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", words))


def tooltip(words: str) -> SafeString:
    return element("title", escaped(words))


# --- The rows of a plot, laid out in percent of the width, so that text keeps its size on a phone


def picture_of_rows(title: str, description: str, parts: Iterable[SafeString], bottom: int) -> SafeString:
    """Return a plot of rows, with a line below the last row."""
    line = element("line", x1=0, x2="100%", y1=bottom, y2=bottom, stroke=LINE, stroke_opacity=0.5)
    return picture(title, description, [*parts, line], width="100%", height=bottom + 1, font_size=13)


def legend(mark: SafeString, words: str, top: float, *, room: int = 18) -> SafeString:
    """Return an entry of the legend: a mark at the left edge of the plot area, and its description.

    room: space for the mark (pixels).
    """
    return element("svg", mark, text(words, room, top + 13), x=f"{PLOT}%", overflow="visible")


def tick(x: str, words: str, head: int, bottom: int) -> list[SafeString]:
    """Return a vertical line through all rows, and its label above them."""
    line = element("line", x1=x, x2=x, y1=head - 4, y2=bottom, stroke=LINE)
    return [text(words, x, head - 9, fill=QUIET, text_anchor="middle"), line]


Letters = tuple[tuple[int, int], tuple[int, int]]


def letters_of(labels: Collection[str], wide: int, narrow: int) -> Letters:
    """Return how to shorten labels on a wide page and on a narrow page, so that they remain distinct.

    Both results are tuples of the maximum number of letters, and how many of these are from the end.

    wide, narrow: maximum number of letters on a wide and on a narrow page.
    """
    first, second = ((most, end_apart(labels, most, (most - 1) // 2)) for most in (wide, narrow))
    return first, second


def row_head(label: str, name: str, top: int, height: int, *, room: int, letters: Letters) -> SafeString:
    """Return the head of a row: a line above it, the code and the name. A name that is too long is cut off.

    room: space for the code and the name (percent of the width).
    letters: how to shorten the code, see `letters_of`.
    """
    y = height / 2 + 4
    line = element("line", x1=0, x2="100%", y1=top, y2=top, stroke=LINE, stroke_opacity=0.5)
    beside = text(name, NAME, y, fill=QUIET, class_="plot-wide")
    return line + element("svg", code_text(label, y, *letters), beside, y=top, width=f"{room}%", height=height)


def code_text(label: str, y: float, wide: tuple[int, int], narrow: tuple[int, int]) -> SafeString:
    """Return the code of a row, or the person's name if rows are people. If it is too long, its middle is left out.

    Elements of the class plot-narrow are hidden unless a style sheet shows them.
    """
    if len(label) <= narrow[0]:
        return text(label, 0, y, font_weight=600)
    hidden = {"class_": "plot-narrow", "display": "none"}
    return text(shortened(label, *wide), 0, y, font_weight=600, class_="plot-wide") + text(
        shortened(label, *narrow), 0, y, font_weight=600, **hidden
    )
