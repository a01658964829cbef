"""The pages of the documentation and their order.

Both are read from index.md, which holds the only table of contents. Each second-level heading in index.md begins a
section, to which the pages linked below the heading belong. A page that is linked in several sections belongs to the
last of them, which is the reference.
"""

import re
from functools import cache
from itertools import groupby, pairwise, takewhile
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

# --- Parsing Markdown into tokens, the text of tokens, and anchors of headings

# HTML comments mark generated parts. They are removed, because the parser does not allow HTML and would show them.
COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE)
# Type of a line break's token -> text that replaces the line break.
BREAKS = {"softbreak": " ", "hardbreak": " · "}
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def parsed(text: str) -> list[Token]:
    return MARKDOWN.parse(COMMENT.sub("", text))


def words_of(token: Token) -> str:
    """Return the text of a token, without markup."""
    if token.children is None:
        return token.content
    return "".join(BREAKS.get(child.type, child.content) for child in token.children)


def anchor_of(heading: str, taken: set[str]) -> str:
    """Return the anchor of a heading. If a heading occurs repeatedly on a page, its anchors are numbered.

    GitHub forms anchors in the same way, so links work there too.

    taken: anchors of the headings above; the function adds the new anchor
    """
    plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    number, anchor = 0, plain
    while anchor in taken:
        number += 1
        anchor = f"{plain}-{number}"
    taken.add(anchor)
    return anchor


DOCS = Path(__file__).resolve().parent.parent / "docs"
INDEX = "index"


class Entry(NamedTuple):
    """A page in the table of contents.

    path: path of the page's file in DOCS, without .md
    title: title of the page in the table of contents
    section: title of the section to which the page belongs
    """

    path: str
    title: str
    section: str = ""


class Section(NamedTuple):
    title: str
    entries: tuple[Entry, ...]


@cache
def files() -> dict[str, Path]:
    """Return a mapping from path in DOCS to file."""
    return {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*")) if path.is_file()}


def source(path: str) -> str:
    return files()[f"{path}.md"].read_text(encoding="utf-8")


@cache
def entries() -> tuple[Entry, ...]:
    """Return all pages in the order of the table of contents."""
    linked: dict[str, Entry] = {}
    section = ""
    for before, token in pairwise(parsed(source(INDEX))):
        if before.type == "heading_open":
            section = words_of(token) if before.tag == "h2" else ""
        children = token.children or []
        for place, child in enumerate(children):
            href = str(child.attrGet("href")) if child.type == "link_open" else ""
            if href.endswith(".md"):
                words = "".join(
                    each.content for each in takewhile(lambda each: each.type != "link_close", children[place:])
                )
                path = href.removesuffix(".md")
                # If the page was linked before, move it to the end.
                linked.pop(path, None)
                linked[path] = Entry(path, words[:1].upper() + words[1:], section)
    return tuple(linked.values())


def contents() -> list[Section]:
    return [Section(title, tuple(pages)) for title, pages in groupby(entries(), key=attrgetter("section"))]


def around(path: str) -> tuple[Entry | None, Entry | None]:
    """Return the pages before and after a page in the table of contents. Each is None if there is no such page."""
    row = [None, *entries(), None]
    place = next((place for place, entry in enumerate(row) if entry and entry.path == path), 0)
    return (row[place - 1], row[place + 1]) if place else (None, row[1])


def section_of_folder(folder: str) -> str:
    """Return the section to which most pages in a folder belong, or an empty string if the folder has no pages."""
    titles = [entry.section for entry in entries() if entry.path.startswith(f"{folder}/")]
    return max(titles, key=titles.count, default="")


def crumbs(path: str) -> tuple[str, str]:
    """Return the section and the title that a page has in the table of contents. Both are empty if it is not listed."""
    return next(((entry.section, entry.title) for entry in entries() if entry.path == path), ("", ""))
