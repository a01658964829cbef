"""Which pages there are and in which order: read from index.md, whose links are the one table of contents.

A heading of the second level there is a section, and each page that is linked to below it is one of its pages. A page
that several sections link to belongs to the last of them, in which things are looked up.
"""

import re
from functools import cache
from itertools import groupby, pairwise, takewhile
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

# --- Markdown as tokens, their words, and anchors of headings as code hosts make them

# Comments mark what is generated; any other HTML would be shown as text.
COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE)
# Where a line ends, and where it is broken on purpose.
BREAKS = {"softbreak": " ", "hardbreak": " · "}
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def parsed(text: str) -> list[Token]:
    return MARKDOWN.parse(COMMENT.sub("", text))


def words_of(token: Token) -> str:
    """The words of a line of text, without its marks."""
    if token.children is None:
        return token.content
    return "".join(BREAKS.get(child.type, child.content) for child in token.children)


def anchor_of(heading: str, taken: set[str]) -> str:
    """As GitHub makes it, so that a link to it works there too; a second heading of the same words is numbered."""
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
    """A page: its path in DOCS without .md, what the table of contents calls it, and its section there."""

    path: str
    title: str
    section: str = ""


class Section(NamedTuple):
    title: str
    entries: tuple[Entry, ...]


@cache
def files() -> dict[str, Path]:
    """Everything that stands in DOCS, by its path there."""
    return {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*")) if path.is_file()}


def source(path: str) -> str:
    return files()[f"{path}.md"].read_text(encoding="utf-8")


@cache
def entries() -> tuple[Entry, ...]:
    """All pages, in the order of the contents."""
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
                # Put anew at the end, where it stood before already.
                linked.pop(path, None)
                linked[path] = Entry(path, words[:1].upper() + words[1:], section)
    return tuple(linked.values())


def contents() -> list[Section]:
    return [Section(title, tuple(pages)) for title, pages in groupby(entries(), key=attrgetter("section"))]


def around(path: str) -> tuple[Entry | None, Entry | None]:
    """The page before and the page after, in the order of the contents."""
    row = [None, *entries(), None]
    place = next((place for place, entry in enumerate(row) if entry and entry.path == path), 0)
    return (row[place - 1], row[place + 1]) if place else (None, row[1])


def section_of_folder(folder: str) -> str:
    """The title of the section that has most pages of a folder; empty for what is no folder of pages."""
    titles = [entry.section for entry in entries() if entry.path.startswith(f"{folder}/")]
    return max(titles, key=titles.count, default="")


def crumbs(path: str) -> tuple[str, str]:
    """The section of a page, and what the contents call it; both empty for a page that is not among them."""
    return next(((entry.section, entry.title) for entry in entries() if entry.path == path), ("", ""))
