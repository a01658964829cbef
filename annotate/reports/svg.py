"""What the project's plots are made of: SVG elements, escaped, in the page's colours. The plots are in plots.py and
work_plots.py.
"""

import re
from collections.abc import Iterable

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

ACCENT, ON_ACCENT = "var(--accent, #24557f)", "var(--on-accent, #ffffff)"
QUIET, LINE, PAPER = "var(--quiet, #64605a)", "var(--line, #dcd8d0)", "var(--paper, #fbfaf7)"


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
    """The characters that XML has no way to write become one that says so."""
    return escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", words))
