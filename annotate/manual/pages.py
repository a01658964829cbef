"""Rendering of the documentation's pages as HTML.

Links point to URLs of the app, headings have anchors, and wide tables scroll in a frame. The Mermaid diagram of a
unit's stages is replaced with a picture, because browsers do not render Mermaid.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise, takewhile
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from annotate.core.stages import (
    ADJUDICATION,
    AGREED,
    COPIED,
    DISCARDED,
    FINISHED,
    LABELLED,
    NEW,
    QUEUED,
    STAGES,
    arrows,
)
from annotate.reports.plots import ACCENT, LINE, ON_ACCENT, QUIET, element, escaped, picture, text, tooltip

# --- Parse Markdown into tokens, and get the text of tokens and the anchors of headings

# HTML comments mark generated parts. They are removed, because the parser doesn't allow HTML and would show them.
COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE)
# Token type of a line break -> text that replaces the line break.
BREAKS = {"softbreak": " ", "hardbreak": " · "}
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def parse_markdown(text: str) -> list[Token]:
    return MARKDOWN.parse(COMMENT.sub("", text))


def words_of(token: Token) -> str:
    """Return the text of a token, without markup."""
    if token.children is None:
        return token.content
    return "".join(BREAKS.get(child.type, child.content) for child in token.children)


def anchor_of(heading: str, taken: set[str]) -> str:
    """Return the anchor of a heading. If headings on a page are equal, their anchors are numbered.

    Anchors are the same as on GitHub, so links work there too.

    taken: existing anchors on the page; the new anchor is added to them
    """
    plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    number, anchor = 0, plain
    while anchor in taken:
        number += 1
        anchor = f"{plain}-{number}"
    taken.add(anchor)
    return anchor


# --- The pages of the documentation and their order.
#
# Both are defined by the table of contents in index.md. Each second-level heading in index.md begins a
# section, which consists of the pages linked below the heading. A page that is linked in several sections belongs to
# the last of them, which is the reference.


DOCS = Path(__file__).resolve().parent.parent / "docs"
INDEX = "index"


class Entry(NamedTuple):
    """A page in the table of contents.

    path: path of the page's file in DOCS, without .md
    title: title of the page in the table of contents
    section: title of the section that the page belongs to
    """

    path: str
    title: str
    section: str = ""


class Section(NamedTuple):
    title: str
    entries: tuple[Entry, ...]


@cache
def files() -> dict[str, Path]:
    """Return the documentation's files by path in DOCS."""
    return {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*")) if path.is_file()}


def source(path: str) -> str:
    return files()[f"{path}.md"].read_text(encoding="utf-8")


@cache
def entries() -> tuple[Entry, ...]:
    """Return all pages in the order of the table of contents."""
    linked: dict[str, Entry] = {}
    section = ""
    for previous, token in pairwise(parse_markdown(source(INDEX))):
        if previous.type == "heading_open":
            section = words_of(token) if previous.tag == "h2" else ""
        children = token.children or []
        for position, child in enumerate(children):
            href = str(child.attrGet("href")) if child.type == "link_open" else ""
            if href.endswith(".md"):
                title = "".join(
                    part.content for part in takewhile(lambda part: part.type != "link_close", children[position:])
                )
                path = href.removesuffix(".md")
                # If the page was already linked, move it to the end.
                linked.pop(path, None)
                linked[path] = Entry(path, title[:1].upper() + title[1:], section)
    return tuple(linked.values())


def contents() -> list[Section]:
    return [Section(title, tuple(pages)) for title, pages in groupby(entries(), key=attrgetter("section"))]


def neighbours(path: str) -> tuple[Entry | None, Entry | None]:
    """Return the previous and the next page in the table of contents. Either is None if there is no such page."""
    row = [None, *entries(), None]
    index = next((index for index, entry in enumerate(row) if entry and entry.path == path), 0)
    return (row[index - 1], row[index + 1]) if index else (None, row[1])


def section_of_folder(folder: str) -> str:
    """Return the section that most pages in a folder belong to, or an empty string if the folder has no pages."""
    titles = [entry.section for entry in entries() if entry.path.startswith(f"{folder}/")]
    return max(titles, key=titles.count, default="")


def breadcrumbs(path: str) -> tuple[str, str]:
    """Return a page's section and title in the table of contents. Both are empty if the page is not listed."""
    return next(((entry.section, entry.title) for entry in entries() if entry.path == path), ("", ""))


# --- The stages of a unit as a picture and, for phones, as a list
#
# The tables below contain the positions of the stages and the paths of the arrows. core/stages.py defines the arrows
# and their labels. A test checks that both modules have the same arrows.


WIDTH, HEIGHT = 680, 640
BOX_WIDTH, BOX_HEIGHT, LINE_HEIGHT = 116, 34, 15

# Stage -> (x, y) of the centre of the box.
PLACES: Mapping[str, tuple[int, int]] = {
    NEW: (340, 30),
    COPIED: (600, 30),
    AGREED: (190, 130),
    QUEUED: (340, 255),
    ADJUDICATION: (340, 455),
    LABELLED: (110, 600),
    DISCARDED: (570, 600),
}


class Route(NamedTuple):
    """The SVG path of an arrow, and the position and alignment of its label."""

    path: str
    x: int
    y: int
    anchor: str = "middle"


ROUTES: Mapping[tuple[str, str], Route] = {
    (NEW, COPIED): Route("M398 30H538", 468, 22),
    (NEW, AGREED): Route("M300 47L222 109", 248, 74, "end"),
    (NEW, LABELLED): Route("M282 26H70Q40 26 40 56V540Q40 560 56 579", 48, 300, "start"),
    (NEW, QUEUED): Route("M340 47V234", 348, 132, "start"),
    (AGREED, QUEUED): Route("M212 147L296 234", 248, 208, "end"),
    (QUEUED, QUEUED): Route("M398 247C456 217 456 283 402 262", 450, 240, "start"),
    (QUEUED, ADJUDICATION): Route("M318 272V434", 310, 340, "end"),
    (ADJUDICATION, QUEUED): Route("M362 438V276", 370, 352, "start"),
    (QUEUED, LABELLED): Route("M282 262C180 290 104 400 98 579", 130, 380, "end"),
    (LABELLED, QUEUED): Route("M124 583C132 450 196 330 285 278", 186, 420, "start"),
    (QUEUED, DISCARDED): Route("M398 271C500 300 576 400 584 579", 556, 380, "start"),
    (DISCARDED, QUEUED): Route("M558 583C550 450 484 340 394 278", 488, 398, "end"),
    (ADJUDICATION, ADJUDICATION): Route("M398 447C456 417 456 483 402 462", 446, 452, "start"),
    (ADJUDICATION, LABELLED): Route("M300 472L172 585", 206, 532, "end"),
    (LABELLED, ADJUDICATION): Route("M168 606Q290 590 326 476", 258, 585, "start"),
    (ADJUDICATION, DISCARDED): Route("M380 472L508 585", 474, 532, "start"),
    (DISCARDED, ADJUDICATION): Route("M512 606Q390 590 354 476", 422, 585, "end"),
    (LABELLED, DISCARDED): Route("M168 612H508", 340, 628),
    (DISCARDED, DISCARDED): Route("M628 592C676 566 676 634 632 607", 672, 568, "end"),
}


def stages_picture() -> SafeString:
    description = ". ".join(f"From {start} to {end}: {', '.join(events)}" for (start, end), events in arrows().items())
    head = element("path", d="M0 0L8 4L0 8z", fill=QUIET)
    arrow_head = {"viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerWidth": 8, "markerHeight": 8, "orient": "auto"}
    marker = element("marker", head, id="arrow-head", markerUnits="userSpaceOnUse", **arrow_head)
    parts = [element("defs", marker)]
    parts += [part for edge, events in arrows().items() for part in _arrow(ROUTES[edge], events)]
    parts += [_box(stage) for stage in STAGES]
    size = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT, "font_size": 12}
    title = "The stages of a unit and the moves between them"
    return picture(title, parts, f"{description}.", **size)


def list_of_moves() -> SafeString:
    """Return the picture's content as a list, which replaces the picture on narrow screens."""
    parts = []
    for stage in STAGES:
        moves = [(end, ", ".join(events)) for (start, end), events in arrows().items() if start == stage]
        parts += [element("dt", escaped(stage))] if moves else []
        parts += [element("dd", escaped(end), element("small", escaped(events))) for end, events in moves]
    return element("dl", *parts, class_="moves")


def _arrow(route: Route, events: list[str]) -> list[SafeString]:
    line = element("path", d=route.path, fill="none", stroke=QUIET, stroke_width=1.25, marker_end="url(#arrow-head)")
    labels = [
        text(event, route.x, route.y + LINE_HEIGHT * line_number, text_anchor=route.anchor)
        for line_number, event in enumerate(events)
    ]
    return [line, *labels]


def _box(stage: str) -> SafeString:
    """Return the box of a stage. The box is filled if units in this stage are finished."""
    x, y = PLACES[stage]
    is_finished = stage in FINISHED
    box = element(
        "rect",
        x=x - BOX_WIDTH / 2,
        y=y - BOX_HEIGHT / 2,
        width=BOX_WIDTH,
        height=BOX_HEIGHT,
        rx=8,
        fill=ACCENT if is_finished else "var(--raised, #ffffff)",
        stroke=ACCENT if is_finished else LINE,
        stroke_width=1.5,
    )
    fill = {"fill": ON_ACCENT} if is_finished else {}
    name = text(stage, x, y + 4, text_anchor="middle", font_weight=600, **fill)
    return element("g", tooltip(f"{stage}: {STAGES[stage]}"), box, name)


DIAGRAM, FORMULA = "mermaid", "math"  # languages of fenced blocks that are not code
LONG = 40  # a table column gets more space if one of its cells is longer (characters)
MANY = 4  # phones show a list of sections on pages with at least this many sections


@dataclass(frozen=True)
class Heading:
    level: int
    words: str
    anchor: str


@dataclass(frozen=True)
class Passage:
    """A heading and the plain text below it. Each paragraph, list item and table row is one line of the text."""

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


@cache
def definitions() -> Mapping[str, str]:
    """Return the first paragraph on each term in the glossary, by term in lower case."""
    passages = page("glossary").passages[1:]
    return {passage.heading.words.lower(): passage.text.partition("\n")[0] for passage in passages}


def address(path: str) -> str:
    """Return the URL of a page in the app.

    path: path of the page's file in DOCS, without .md
    """
    return reverse("docs") if path == INDEX else reverse("docs-page", args=[path])


# First part of a page's path -> kind of page.
KINDS = {
    "architecture": "Explanation",
    "explanation": "Explanation",
    "glossary": "Glossary",
    "how-to": "How-to",
    "reference": "Reference",
    "tutorial": "Tutorial",
}


def kind_of(url: str) -> str:
    """Return the kind of the page at a URL of the documentation, or "" for the overview."""
    return KINDS.get(url.removeprefix(reverse("docs")).partition("/")[0], "")


@cache
def page(path: str) -> Page:
    tokens = parse_markdown(source(path))
    passages = tuple(_passages(tokens))
    _anchor_headings(tokens, passages)
    html = _RENDERER.render(tokens, MARKDOWN.options, {"path": path})
    return Page(path, passages[0].heading.words, mark_safe(html), passages)  # noqa: S308 - rendered with HTML off


def _passages(tokens: list[Token]) -> Iterator[Passage]:
    anchors: set[str] = set()
    heading, lines, in_head, row = Heading(1, "", ""), list[str](), False, list[str]()
    for previous, token in zip([None, *tokens], tokens, strict=False):
        in_head = token.type == "thead_open" or (in_head and token.type != "thead_close")
        if token.type == "tr_close" and row:
            lines.append(" · ".join(filter(None, row)))
            row = []
        if previous and previous.type == "heading_open":
            if heading.words:
                yield Passage(heading, "\n".join(lines))
            title = words_of(token)
            heading, lines = Heading(int(previous.tag[1]), title, anchor_of(title, anchors)), []
        elif token.type in ("inline", "fence", "code_block") and token.info not in (DIAGRAM, FORMULA) and not in_head:
            (row if previous and previous.type == "td_open" else lines).append(words_of(token))
    yield Passage(heading, "\n".join(lines))


def _anchor_headings(tokens: list[Token], passages: tuple[Passage, ...]) -> None:
    """Add anchors to the headings, and turn each heading except the page title into a link to itself."""
    opened = [position for position, token in enumerate(tokens) if token.type == "heading_open"]
    for position, passage in zip(opened, passages, strict=True):
        heading, line = passage.heading, tokens[position + 1]
        tokens[position].attrSet("id", heading.anchor)
        if heading.level > 1:
            link = Token("link_open", "a", 1, attrs={"class": "anchor", "href": f"#{heading.anchor}"})
            line.children = [link, *(line.children or []), Token("link_close", "a", -1)]


class _Renderer(RendererHTML):
    """Renders tokens as HTML. Each method overrides markdown-it's method for a token type.

    env: dictionary with the path of the page
    """

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        if token.info == DIAGRAM:
            return format_html(f"{_FRAME}{{}}</div>\n{{}}\n", "A picture", stages_picture(), list_of_moves())
        if token.info == FORMULA:
            from latex2mathml.converter import convert  # imported here, because it takes 20 ms and is rarely needed

            formula = mark_safe(convert(token.content, display="block"))  # noqa: S308 - from our own pages
            return format_html(f"{_FRAME}{{}}</div>\n", "A formula", formula)
        return format_html('<pre tabindex="0"><code>{}</code></pre>\n', token.content)

    code_block = fence

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        # Allow a line break after each slash in a path.
        return f"<code>{escape(tokens[idx].content).replace('/', '/<wbr>')}</code>"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return format_html(f"{_FRAME}<table>\n", f"Table: {', '.join(_column_headings(tokens[idx:]))}")

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        # A column of sentences needs more space than a column of numbers or names. Use classes, because the site's
        # content security policy forbids inline styles.
        token = tokens[idx]
        classes = ["long"] if len(tokens[idx + 1].content) > LONG else []
        classes += ["right"] if token.attrGet("style") == "text-align:right" else []
        return f'<{token.tag} class="{" ".join(classes)}">' if classes else f"<{token.tag}>"

    th_open = td_open

    def tr_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        # Each row except the header has an anchor derived from its first cell, so that links can point to the row.
        first_token, first_cell = tokens[idx + 1 : idx + 3]
        if first_token.type == "th_open":
            return "<tr>"
        return format_html('<tr id="row-{}">', anchor_of(words_of(first_cell), env.setdefault("rows", set())))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        href = resolve_link(str(token.attrGet("href")), env["path"])
        # Remove the link if the app doesn't serve its target, for example source code.
        token.attrs = {**token.attrs, "href": href} if href else {}
        return self.renderToken(tokens, idx, options, env)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        token.attrs = {**token.attrs, "src": resolve_link(str(token.attrGet("src")), env["path"]), "loading": "lazy"}
        return super().image(tokens, idx, options, env)


_RENDERER = _Renderer()
# A frame in which wide content scrolls. It is focusable, so that users can scroll with the keyboard too.
_FRAME = '<div class="wide" tabindex="0" role="group" aria-label="{}">'


def _column_headings(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield a table's column headings, which form its accessible name."""
    for token in takewhile(lambda token: token.type != "thead_close", tokens):
        if token.type == "inline":
            yield words_of(token)


def resolve_link(href: str, path: str) -> str:
    """Return the URL in the app for a link on a page.

    External links and anchors are returned unchanged. The URL is empty if the app does not serve the linked file.

    href: target of the link
    path: path of the page
    """
    parts = urlsplit(href)
    if parts.scheme or parts.netloc or not parts.path:
        return href
    file = linked_path(parts.path, path)
    if file not in files():
        return ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    url = address(file.removesuffix(".md")) if file.endswith(".md") else reverse("docs-file", args=[file])
    return f"{url}{fragment}"


def linked_path(link: str, path: str) -> str:
    """Return the path in DOCS for a relative link on a page."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
