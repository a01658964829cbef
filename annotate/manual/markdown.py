"""How the documentation's Markdown is read: tokens, the words of one, and a heading's anchor as code hosts have it."""

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

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
