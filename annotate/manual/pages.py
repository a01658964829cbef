"""A page of the documentation as HTML: links that lead to the app's addresses, headings with anchors, wide tables in a
frame of their own, and the picture of the stages where the Markdown has a diagram for code hosts.
"""

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from urllib.parse import urlsplit

from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from annotate.manual.contents import INDEX, files, source
from annotate.manual.markdown import MARKDOWN, anchor_of, parsed, words_of
from annotate.manual.stages_picture import list_of_moves, stages_picture

DIAGRAM = "mermaid"
LONG = 40  # letters in a cell of a table
MANY = 4  # sections of a page, which a phone then lists above them


@dataclass(frozen=True)
class Heading:
    level: int
    words: str
    anchor: str


@dataclass(frozen=True)
class Passage:
    """What stands under one heading, as plain text: a line for each paragraph, entry of a list and row of a table."""

    heading: Heading
    text: str


@dataclass(frozen=True)
class Page:
    path: str
    title: str
    html: SafeString
    passages: tuple[Passage, ...]

    @property
    def is_long(self) -> bool:
        return len(self.headings) >= MANY

    @property
    def headings(self) -> list[Heading]:
        return [passage.heading for passage in self.passages if passage.heading.level == 2]


def address(path: str) -> str:
    """Where the app shows a page, given its path without .md."""
    return reverse("docs") if path == INDEX else reverse("docs-page", args=[path])


@cache
def page(path: str) -> Page:
    tokens = parsed(source(path))
    passages = tuple(_passages(tokens))
    _anchor_headings(tokens, passages)
    html = _RENDERER.render(tokens, MARKDOWN.options, {"path": path})
    return Page(path, passages[0].heading.words, mark_safe(html), passages)  # noqa: S308 - rendered with HTML off


def _passages(tokens: list[Token]) -> Iterator[Passage]:
    taken: set[str] = set()
    heading, said, in_head, row = Heading(1, "", ""), list[str](), False, list[str]()
    for before, token in zip([None, *tokens], tokens, strict=False):
        in_head = token.type == "thead_open" or (in_head and token.type != "thead_close")
        if token.type == "tr_close" and row:
            said.append(" · ".join(filter(None, row)))
            row = []
        if before and before.type == "heading_open":
            if heading.words:
                yield Passage(heading, "\n".join(said))
            words = words_of(token)
            heading, said = Heading(int(before.tag[1]), words, anchor_of(words, taken)), []
        elif token.type in ("inline", "fence", "code_block") and token.info != DIAGRAM and not in_head:
            (row if before and before.type == "td_open" else said).append(words_of(token))
    yield Passage(heading, "\n".join(said))


def _anchor_headings(tokens: list[Token], passages: tuple[Passage, ...]) -> None:
    """Each heading but the page's own is a link to itself."""
    opened = [place for place, token in enumerate(tokens) if token.type == "heading_open"]
    for place, passage in zip(opened, passages, strict=True):
        heading, line = passage.heading, tokens[place + 1]
        tokens[place].attrSet("id", heading.anchor)
        if heading.level > 1:
            link = Token("link_open", "a", 1, attrs={"class": "anchor", "href": f"#{heading.anchor}"})
            line.children = [link, *(line.children or []), Token("link_close", "a", -1)]


class _Renderer(RendererHTML):
    """Writes tokens as HTML; the methods are for those that the library would write otherwise. env: the page's path."""

    def fence(self, tokens, place, options, env):
        token = tokens[place]
        if token.info == DIAGRAM:
            return format_html(f"{_FRAME}{{}}</div>\n{{}}\n", "A picture", stages_picture(), list_of_moves())
        return format_html('<pre tabindex="0"><code>{}</code></pre>\n', token.content)

    code_block = fence

    def code_inline(self, tokens, place, options, env):
        # A path breaks after a slash, rather than anywhere.
        return f"<code>{escape(tokens[place].content).replace('/', '/<wbr>')}</code>"

    def table_open(self, tokens, place, options, env):
        return format_html(f"{_FRAME}<table>\n", f"Table: {', '.join(_heads(tokens[place:]))}")

    def table_close(self, tokens, place, options, env):
        return "</table></div>\n"

    def td_open(self, tokens, place, options, env):
        # A column of sentences needs room, one of numbers or names does not. Styles in the page are forbidden.
        token = tokens[place]
        classes = ["long"] if len(tokens[place + 1].content) > LONG else []
        classes += ["right"] if token.attrGet("style") == "text-align:right" else []
        return f'<{token.tag} class="{" ".join(classes)}">' if classes else f"<{token.tag}>"

    th_open = td_open

    def tr_open(self, tokens, place, options, env):
        # A row can be linked to by its first cell. The head has no anchor.
        opened, words = tokens[place + 1 : place + 3]
        if opened.type == "th_open":
            return "<tr>"
        return format_html('<tr id="row-{}">', anchor_of(words_of(words), env.setdefault("rows", set())))

    def link_open(self, tokens, place, options, env):
        token = tokens[place]
        href = led(str(token.attrGet("href")), env["path"])
        # Without an address where it names a file of the source, which is not at hand where only the package is.
        token.attrs = {**token.attrs, "href": href} if href else {}
        return self.renderToken(tokens, place, options, env)

    def image(self, tokens, place, options, env):
        token = tokens[place]
        token.attrs = {**token.attrs, "src": led(str(token.attrGet("src")), env["path"]), "loading": "lazy"}
        return super().image(tokens, place, options, env)


_RENDERER = _Renderer()
# What may be wider than the page, and scrolls; by keys too.
_FRAME = '<div class="wide" tabindex="0" role="group" aria-label="{}">'


def _heads(tokens: Sequence[Token]) -> Iterator[str]:
    """What a table is called by those who cannot see it: the heads of its columns."""
    for token in takewhile(lambda token: token.type != "thead_close", tokens):
        if token.type == "inline":
            yield words_of(token)


def led(href: str, path: str) -> str:
    """The app's address for a link on a page; as it is where it leads elsewhere, empty where the app has it not."""
    parts = urlsplit(href)
    if parts.scheme or parts.netloc or not parts.path:
        return href
    file = named(parts.path, path)
    if file not in files():
        return ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    found = address(file.removesuffix(".md")) if file.endswith(".md") else reverse("docs-file", args=[file])
    return f"{found}{fragment}"


def named(link: str, path: str) -> str:
    """The file that a relative link on a page names, by its path in the folder of the documentation."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
