"""Which pages there are and in which order: read from index.md, whose links are the one table of contents.

A heading of the second level there is a section, and each page that is linked to below it is one of its pages. A page
that several sections link to belongs to the last of them, in which things are looked up.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise, takewhile
from operator import itemgetter
from pathlib import Path

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


@dataclass(frozen=True)
class Entry:
    """A page: its path in DOCS without .md, and what the table of contents calls it."""

    path: str
    title: str


@dataclass(frozen=True)
class Section:
    title: str
    entries: tuple[Entry, ...]


@cache
def files() -> dict[str, Path]:
    """Everything that stands in DOCS, by its path there."""
    return {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*")) if path.is_file()}


def source(path: str) -> str:
    return files()[f"{path}.md"].read_text(encoding="utf-8")


@cache
def contents() -> tuple[Section, ...]:
    linked: dict[str, tuple[str, Entry]] = {}
    title = ""
    for before, token in pairwise(parsed(source(INDEX))):
        if before.type == "heading_open":
            title = words_of(token) if before.tag == "h2" else ""
        for entry in _linked(token):
            # Put anew at the end, where it stood before already.
            linked.pop(entry.path, None)
            linked[entry.path] = (title, entry)
    sections = groupby(linked.values(), key=itemgetter(0))
    return tuple(Section(title, tuple(entry for _, entry in each)) for title, each in sections)


def _linked(token: Token) -> Iterator[Entry]:
    """The pages that a line of text links to."""
    children = token.children or []
    for place, child in enumerate(children):
        href = str(child.attrGet("href")) if child.type == "link_open" else ""
        if href.endswith(".md"):
            words = "".join(
                each.content for each in takewhile(lambda each: each.type != "link_close", children[place:])
            )
            yield Entry(href.removesuffix(".md"), words[:1].upper() + words[1:])


def entries() -> list[Entry]:
    return [entry for section in contents() for entry in section.entries]


def around(path: str) -> tuple[Entry | None, Entry | None]:
    """The page before and the page after, in the order of the contents."""
    row = [None, *entries(), None]
    place = next((place for place, entry in enumerate(row) if entry and entry.path == path), 0)
    return (row[place - 1], row[place + 1]) if place else (None, row[1])


def section_of_folder(folder: str) -> str:
    """The title of the section that has most pages of a folder; empty for what is no folder of pages."""
    titles = [
        section.title for section in contents() for entry in section.entries if entry.path.startswith(f"{folder}/")
    ]
    return max(titles, key=titles.count, default="")


def crumbs(path: str) -> tuple[str, str]:
    """The section of a page, and what the contents call it; both empty for a page that is not among them."""
    found = ((section.title, entry.title) for section in contents() for entry in section.entries if entry.path == path)
    return next(found, ("", ""))
