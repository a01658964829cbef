"""What the project's plots are made of: SVG elements, escaped, in the page's colours, and the rows of a plot.

The plots themselves are in plots.py and heat_map.py.
"""

import re
from collections.abc import Collection, Iterable

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from annotate.reports.numbers import end_apart, shortened

ACCENT, ON_ACCENT = "var(--accent, #24557f)", "var(--on-accent, #ffffff)"
QUIET, LINE, PAPER = "var(--quiet, #64605a)", "var(--line, #dcd8d0)", "var(--paper, #fbfaf7)"

# Of a plot of rows, in percent of its width: where the plot begins, and its width.
PLOT, PLOT_WIDTH = 21, 46
LINE_HEIGHT, ROW = 18, 20  # pixels
NAME = 52  # pixels from the code to the name


def picture(title: str, description: str, parts: Iterable[SafeString], **attributes) -> SafeString:
    named = [element("title", escaped(title)), element("desc", escaped(description))]
    root = {"xmlns": "http://www.w3.org/2000/svg", "class_": "plot", "role": "img", "fill": "currentColor"}
    return element("svg", *named, *parts, **root, **attributes) + mark_safe("\n")


def text(words: str, x: str | float, y: float, **attributes) -> SafeString:
    return element("text", escaped(words), x=x, y=y, **attributes) if words else mark_safe("")


def element(tag: str, *children: SafeString, **attributes) -> SafeString:
    """An element; stroke_width=1 is written stroke-width="1", class_ is class. Children must be safe already."""
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(f"{value:g}" if isinstance(value, float) else value)}"'
        for name, value in attributes.items()
    )
    return mark_safe(f"<{tag}{written}>{''.join(children)}</{tag}>")  # noqa: S308 - made of escaped parts


def escaped(words: str) -> SafeString:
    """Characters that XML cannot represent become the replacement character."""
    return escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", words))


def tooltip(words: str) -> SafeString:
    return element("title", escaped(words))


# --- the rows of a plot, laid out in percent of the width, so that letters keep their size on a phone


def picture_of_rows(title: str, description: str, parts: Iterable[SafeString], bottom: int) -> SafeString:
    """With a line below the last row."""
    line = element("line", x1=0, x2="100%", y1=bottom, y2=bottom, stroke=LINE, stroke_opacity=0.5)
    return picture(title, description, [*parts, line], width="100%", height=bottom + 1, font_size=13)


def legend(mark: SafeString, words: str, top: float, *, room: int = 18) -> SafeString:
    """A mark, drawn from the left end of the plot on, and what it stands for."""
    return element("svg", mark, text(words, room, top + 13), x=f"{PLOT}%", overflow="visible")


def tick(x: str, words: str, head: int, bottom: int) -> list[SafeString]:
    """A line through all rows, and its words above them."""
    line = element("line", x1=x, x2=x, y1=head - 4, y2=bottom, stroke=LINE)
    return [text(words, x, head - 9, fill=QUIET, text_anchor="middle"), line]


Letters = tuple[tuple[int, int], tuple[int, int]]


def letters_of(labels: Collection[str], wide: int, narrow: int) -> Letters:
    """How many letters the rows of a plot have on a wide page and on a narrow one, and how many of them from the end,
    so that rows can be told apart."""
    first, second = ((most, end_apart(labels, most, (most - 1) // 2)) for most in (wide, narrow))
    return first, second


def row_head(label: str, name: str, top: int, height: int, *, room: int, letters: Letters) -> SafeString:
    """A line above the row, the code, and the name beside it, cut off where it would reach beyond its room.

    room: in percent of the width; letters: of the code, see `letters_of`.
    """
    y = height / 2 + 4
    line = element("line", x1=0, x2="100%", y1=top, y2=top, stroke=LINE, stroke_opacity=0.5)
    beside = text(name, NAME, y, fill=QUIET, class_="plot-wide")
    return line + element("svg", code_text(label, y, *letters), beside, y=top, width=f"{room}%", height=height)


def code_text(label: str, y: float, wide: tuple[int, int], narrow: tuple[int, int]) -> SafeString:
    """A row's code or a person's name; if it is too long for its room, both ends are kept.

    Elements for narrow pages only (class plot-narrow) show only if a style sheet says so.
    """
    if len(label) <= narrow[0]:
        return text(label, 0, y, font_weight=600)
    hidden = {"class_": "plot-narrow", "display": "none"}
    return text(shortened(label, *wide), 0, y, font_weight=600, class_="plot-wide") + text(
        shortened(label, *narrow), 0, y, font_weight=600, **hidden
    )
