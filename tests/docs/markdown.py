"""Parsers for the Markdown files in the project."""

import re
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

from annotate.manual.pages import DOCS, parse_markdown, words_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.relative_to(DOCS).as_posix().removesuffix(".md") for path in DOCS.rglob("*.md"))
# In addition to the documentation pages, the files that code hosts show.
DOCUMENTS = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))]


def text_of(path):
    return path.read_text(encoding="utf-8")


def page_text(page):
    return text_of(DOCS / f"{page}.md")


def names(documents):
    return [path.relative_to(ROOT).as_posix() for path in documents]


@cache
def inline(path):
    """Yield all inline elements, such as links, code and images."""
    return [child for token in parse_markdown(text_of(path)) if token.type == "inline" for child in token.children]


def cells(text, column=0):
    """Return the code in a column of all tables, without the headings."""
    texts, place = [], -1
    for token in parse_markdown(text):
        if token.type == "tr_open":
            place = -1
        elif token.type == "td_open":
            place += 1
        elif token.type == "inline" and place == column:
            texts.append(words_of(token))
        elif token.type == "table_close":
            place = -1
    return texts


def sections(text, level=2):
    """Return the text below each heading of a level, by heading."""
    parts = re.split(rf"^{'#' * level} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def raw_html(path):
    """Return raw HTML, which code hosts render but the app shows as text."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text_of(path))
    every = [child for token in tokens for child in [token, *(token.children or [])]]
    return [token.content.strip() for token in every if token.type in ("html_block", "html_inline")]
