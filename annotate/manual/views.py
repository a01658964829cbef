"""Views of the documentation: pages, Markdown files, pictures and search. All views are public."""

import mimetypes
import re
import sqlite3
import tomllib
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache, wraps
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import conditional_page, require_safe

from annotate.manual import pages
from annotate.manual.pages import INDEX, Entry, entries
from annotate.reports.plots import Mark, Row, forest

# --- Search. On the first search, each process builds an in-memory index of all passages.
#
# SQLite's Porter stemmer treats words with the same stem, such as "audit" and "audited", as equal. The last word of a
# query also matches as a prefix, because the user may still be typing.


LONGEST, MOST, MOST_WORDS = 200, 30, 12  # maximum number of characters, results and words
FEW = 5  # if fewer passages contain all words of the query, passages with some of the words are added
BEGINNING = 4  # minimum length of a prefix, in characters
ALIKE = 0.8  # minimum similarity between a suggested word and the word in the query, from 0 to 1
SNIPPET = 240  # maximum length of a snippet, in characters
# Weights of the index columns. Words in a heading count most, followed by the page title and the text.
WEIGHTS = (0, 6, 12, 1)
# Characters that mark the beginning and end of a match until the text is escaped. Pages never contain them.
BEGIN, END = "\x02", "\x03"
_LOCK = Lock()
WORDS = tomllib.loads(Path(__file__).with_name("search_words.toml").read_text(encoding="utf-8"))
STOP_WORDS = frozenset(WORDS["stop_words"].split())


class Passage(NamedTuple):
    """A search result. `kind` is the kind of the page, such as "How-to"."""

    address: str
    page: str
    heading: str
    snippet: SafeString
    kind: str


class SearchResults(NamedTuple):
    """The best passages for a query, and the total number of matching passages."""

    passages: list[Passage]
    number: int


def search(query: str) -> SearchResults:
    """Return the passages that contain all words of a query, best first.

    If there are too few, add passages that match the last word as a prefix. If there are still too few, add passages
    that contain only some of the words.
    """
    query_words = _words(query[:LONGEST])[:MOST_WORDS]
    query_words = WORDS["rephrased"].get(" ".join(query_words), "").split() or query_words
    if not query_words:
        return SearchResults([], 0)
    exact = [_any_of(word, *WORDS["synonyms"].get(word, ())) for word in query_words]
    extended = [*exact[:-1], _any_of(query_words[-1], *_words_with_prefix(query_words[-1]))]
    passages_by_number: dict[int, Passage] = {}
    for match in (" AND ".join(exact), " AND ".join(extended), " OR ".join(exact)):
        if len(passages_by_number) < FEW:
            # Passages whose heading equals the query come first.
            matches = sorted(_find_passages(match), key=lambda match: _words(match[1].heading) != query_words)
            passages_by_number |= {number: match for number, match in matches if number not in passages_by_number}
    return SearchResults(list(passages_by_number.values())[:MOST], len(passages_by_number))


def _words(text: str) -> list[str]:
    """Return the text's words without stop words, or all words if there are only stop words."""
    words = re.findall(r"[^\W_]+", text.lower())
    return [word for word in words if word not in STOP_WORDS] or words


def _any_of(*words: str) -> str:
    quoted = (f'"{word}"' for word in words)
    return f"({' OR '.join(quoted)})"


def _words_with_prefix(beginning: str) -> list[str]:
    """Return the documentation's words that begin with a prefix, or an empty list if the prefix is too short."""
    return sorted(word for word in _all_words() if word.startswith(beginning)) if len(beginning) >= BEGINNING else []


def _find_passages(match: str) -> list[tuple[int, Passage]]:
    query = f"""
        SELECT rowid, address, title, heading, highlight(passages, 3, '{BEGIN}', '{END}') FROM passages
        WHERE passages MATCH ? ORDER BY bm25(passages, {", ".join(map(str, WEIGHTS))}), rowid
    """  # noqa: S608 - consists of constants
    with _LOCK:
        rows = _index().execute(query, [match]).fetchall()
    return [
        (number, Passage(url, title, heading, _snippet(text), pages.kind_of(url)))
        for number, url, title, heading, text in rows
    ]


def not_offered(query: str) -> list[dict[str, Any]]:
    """Return the entries of search_words.toml for features that a query mentions but Assay does not offer."""
    terms = set(_words(query[:LONGEST]))
    return [
        feature
        for feature in WORDS["not_offered"]
        if any(terms.issuperset(words.split()) for words in feature["words"])
    ]


def did_you_mean(query: str) -> str:
    """Return the query with its unknown words replaced by similar known words, or "" if no word is replaced."""
    words = re.findall(r"[^\W_]+", query[:LONGEST].lower())[:MOST_WORDS]
    vocabulary = _all_words() | STOP_WORDS | WORDS["synonyms"].keys()
    corrected = [
        word
        if word in vocabulary or len(word) < BEGINNING or _words_with_prefix(word)
        else next(iter(get_close_matches(word, _all_words(), 1, ALIKE)), word)
        for word in words
    ]
    return " ".join(corrected) if corrected != words else ""


def _snippet(text: str) -> SafeString:
    """Return the line with the most distinct matches. A long line is shortened around its first match."""
    line = max(text.split("\n"), key=lambda line: len(set(re.findall(f"{BEGIN}(.*?){END}", line.lower()))))
    start = line.rfind(" ", 0, max(0, line.find(BEGIN) - SNIPPET // 3)) + 1
    end = len(line) if len(line) - start <= SNIPPET else line.rfind(" ", start, start + SNIPPET)
    cut = line[start : end if end > start else start + SNIPPET]
    cut += END * (cut.count(BEGIN) - cut.count(END))
    marked = escape(cut).replace(BEGIN, "<mark>").replace(END, "</mark>")
    prefix, suffix = "… " if start else "", " …" if start + len(cut.rstrip(END)) < len(line.rstrip(END)) else ""
    return mark_safe(f"{prefix}{marked}{suffix}")  # noqa: S308 - escaped before it was marked


@cache
def _index() -> sqlite3.Connection:
    index = sqlite3.connect(":memory:", check_same_thread=False)
    columns = "address UNINDEXED, title, heading, text"
    index.execute(f"CREATE VIRTUAL TABLE passages USING fts5({columns}, tokenize = 'porter unicode61')")
    index.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", _rows())
    return index


@cache
def _all_words() -> frozenset[str]:
    return frozenset(word for row in _rows() for column in row[1:] for word in _words(column))


def _rows() -> Iterator[tuple[str, str, str, str]]:
    for entry in (Entry(INDEX, "Overview"), *entries()):
        page = pages.page(entry.path)
        for passage in page.passages:
            is_first = passage.heading.level == 1
            url = pages.address(entry.path) if is_first else f"{pages.address(entry.path)}#{passage.heading.anchor}"
            yield url, entry.title, passage.heading.words, passage.text


NEAR = 5  # maximum number of passages to suggest if a URL has no page


def public_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Make a view public and its responses cacheable. The view must not change any data.

    The decorated view allows GET and HEAD, and returns status 304 if the browser's copy of the page is current. Other
    methods get status 405 instead of 403, because the view doesn't check CSRF tokens. Pages for logged-in users contain
    the user's name, so they are not cached.
    """

    @wraps(view)
    def cached_view(request: HttpRequest, *arguments: Any, **keywords: Any) -> HttpResponse:
        response = view(request, *arguments, **keywords)
        if not request.user.is_authenticated:
            patch_cache_control(response, no_cache=True)
        return response

    return login_not_required(csrf_exempt(require_safe(conditional_page(cached_view))))


@public_page
def index(request: HttpRequest) -> HttpResponse:
    """Show the overview, or the results of a search.

    ?q=: search query
    """
    return _search_page(request, request.GET["q"]) if "q" in request.GET else _page_response(request, INDEX)


@public_page
def page(request: HttpRequest, page: str) -> HttpResponse:
    if section := pages.section_of_folder(page):
        return redirect(f"{pages.address(INDEX)}#{pages.anchor_of(section, set())}")
    if page == INDEX or f"{page}.md" not in pages.files():
        return _not_found(request, page)
    return _page_response(request, page)


@public_page
def file(request: HttpRequest, file: str) -> HttpResponse:
    """Serve the Markdown of a page, a picture or another file."""
    path = pages.files().get(file)
    if path is None:
        return _not_found(request, file.rpartition(".")[0])
    # Serve Markdown as plain text, which all browsers can show.
    kind = "text/plain; charset=utf-8" if file.endswith(".md") else mimetypes.guess_type(file)[0]
    return HttpResponse(path.read_bytes(), content_type=kind or "application/octet-stream")


# The additional content of the page on the design system, read from the app's static files.
DESIGN = "design"
STATIC = Path(__file__).resolve().parents[1] / "static" / "annotate"
COLOURS = re.findall(r"--([a-z-]+): light-dark", (STATIC / "assay.css").read_text(encoding="utf-8"))
ICONS = re.findall(r'symbol id="([a-z0-9-]+)"', (STATIC / "icons.svg").read_text(encoding="utf-8"))

CHART = [Row("de", "German", (Mark(0.971, 0.958, 0.982, 1204),)), Row("nl", "Dutch", (Mark(0.93, 0.9, 0.95, 318),))]


def _page_response(request: HttpRequest, path: str) -> HttpResponse:
    previous, following = pages.neighbours(path)
    context = {"page": pages.page(path), "before": previous, "after": following, **_base_context(path)}
    if path == DESIGN:
        context |= {
            "colours": COLOURS,
            "icons": ICONS,
            "spacing": (4, 8, 16, 24, 40),
            "chart": forest(CHART, title="Accuracy"),
        }
    return render(request, "annotate/docs/page.html", context)


def _search_page(request: HttpRequest, query: str, missing: bool = False) -> HttpResponse:
    query = query.strip()[:LONGEST]
    passages, number = search(query)
    # If the page doesn't exist, show only a few results, so that the table of contents below remains visible.
    visible = passages[:NEAR] if missing else passages
    context = {"query": query, "passages": visible, "number": number, "missing": missing, **_base_context("")}
    if not missing:
        context |= {"lacking": not_offered(query), "meant": did_you_mean(query)}
    return render(request, "annotate/docs/found.html", context, status=404 if missing else 200)


def _not_found(request: HttpRequest, path: str) -> HttpResponse:
    """Return the response for a missing page: search results for the URL's words, and the table of contents."""
    return _search_page(request, re.sub(r"[\W_]+", " ", path), missing=True)


def _base_context(path: str) -> dict[str, Any]:
    """Return the template context that all pages need: the table of contents and the page's position in it."""
    return {"contents": pages.contents(), "here": path, "crumbs": pages.breadcrumbs(path), "longest": LONGEST}
