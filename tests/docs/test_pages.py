"""The documentation's pages: well-formed, without dead links on a code host or in the app, and searchable."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from html import unescape
from urllib.parse import unquote, urlsplit

import pytest
from django.template.loader import render_to_string
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from annotate.core import stages
from annotate.manual import pages, views
from annotate.manual.pages import (
    PLACES,
    ROUTES,
    address,
    anchor_of,
    list_of_moves,
    page,
    parse_markdown,
    resolve_link,
    stages_picture,
)
from corpora.system import VERSION
from tests.docs.markdown import DOCUMENTS, PAGES, ROOT, inline, names, page_text, raw_html, text_of

TEMPLATES = ROOT / "annotate" / "templates"
LINKING = [*DOCUMENTS, ROOT / "deploy" / "README.md"]
# One client for all, because each one builds the whole chain of middleware.
CLIENT = Client()


@cache
def served(path):
    """Return the text of a page, or nothing for a file. Each is requested only once."""
    answer = get(path)
    return answer.text if path.endswith("/") else ""


def get(path, status=200):
    answer = CLIENT.get(path)
    assert answer.status_code == status, path
    return answer


# --- what there is


def test_every_page_stands_once_in_the_table_of_contents():
    listed = [entry.path for entry in pages.entries()]
    assert sorted(listed) == sorted({*PAGES} - {pages.INDEX})


def test_the_pages_before_and_after_are_those_of_the_contents():
    row = pages.entries()
    assert pages.neighbours(pages.INDEX) == (None, row[0])
    assert pages.neighbours(row[0].path) == (None, row[1])
    assert pages.neighbours(row[1].path) == (row[0], row[2])
    assert pages.neighbours(row[-1].path) == (row[-2], None)
    section = pages.contents()[-1]
    assert pages.breadcrumbs(section.entries[0].path) == (section.title, section.entries[0].title)
    assert pages.breadcrumbs(pages.INDEX) == ("", "")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_well_formed_served_as_markdown_and_found_by_its_title(name):
    tokens = parse_markdown(page_text(name))
    assert tokens[0].tag == "h1"
    assert [token.type for token in tokens if token.tag == "h1"] == ["heading_open", "heading_close"]
    headings = [after for before, after in itertools.pairwise(tokens) if before.type == "heading_open"]
    assert not [heading.content for heading in headings if any(child.type == "link_open" for child in heading.children)]
    rendered = page(name)
    levels = [passage.heading.level for passage in rendered.passages]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), "a level of headings is left out"
    html = re.sub(r"<pre.*?</pre>", "", rendered.html, flags=re.DOTALL)
    assert re.findall(r"^(?:<p>)?\|.*", html, re.MULTILINE) == [], "a row of a table is not rendered as one"
    answer = get(f"/docs/{name}.md")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.text == page_text(name)
    assert name == pages.INDEX or address(name) in addresses_of(rendered.title)


@pytest.mark.parametrize("path", DOCUMENTS, ids=names(DOCUMENTS))
def test_there_is_no_html_in_the_markdown_but_comments(path):
    assert [tag for tag in raw_html(path) if not re.fullmatch(r"<!--.*-->", tag)] == []


# --- links


@cache
def anchors(path):
    taken = set()
    tokens = parse_markdown(text_of(path))
    pairs = itertools.pairwise(tokens)
    return {anchor_of(pages.words_of(after), taken) for before, after in pairs if before.type == "heading_open"}


def links(path):
    for token in inline(path):
        if token.type in ("link_open", "image"):
            yield unquote(str(token.attrGet("href") or token.attrGet("src")))


@pytest.mark.parametrize("path", LINKING, ids=names(LINKING))
def test_no_link_is_dead_on_a_code_host(path):
    for link in links(path):
        parts = urlsplit(link)
        if parts.scheme:
            assert (parts.scheme, bool(parts.netloc)) in (("https", True), ("http", True)), link
            continue
        target = (path.parent / parts.path).resolve() if parts.path else path
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        if parts.fragment:
            assert parts.fragment in anchors(target), link


@pytest.mark.parametrize("name", PAGES)
def test_no_link_is_dead_in_the_app(name):
    html = served(address(name))
    ids = re.findall(r' id="([^"]*)"', html)
    assert len(ids) == len(set(ids))
    for link in map(unescape, re.findall(r'(?:href|src)="([^"]*)"', html)):
        parts = urlsplit(link)
        if parts.scheme or parts.path.startswith("/static/"):
            continue
        assert not parts.path or parts.path.startswith("/"), link
        aim = html
        if parts.path.startswith("/docs/"):
            aim = served(parts.path)
        if parts.fragment:
            assert f' id="{parts.fragment}"' in aim, link


def test_a_link_to_a_page_leads_to_the_app_and_one_to_the_source_nowhere():
    for link, target in {
        "stages.md#moves": "/docs/reference/stages/#moves",
        "../index.md": "/docs/",
        "#audit": "#audit",
        "https://example.org/a.md": "https://example.org/a.md",
        "../../../LICENSE": "",
        "../../core/stages.py": "",
        "nothing.md": "",
        "/etc/passwd": "",
        "../../../../../etc/passwd": "",
    }.items():
        assert resolve_link(link, "reference/commands") == target


def test_pages_that_the_app_links_to_are_there():
    named = [name for path in TEMPLATES.rglob("*.html") for name in re.findall(r"'docs-page' '([^']+)'", text_of(path))]
    controls = "".join(text_of(path) for path in (ROOT / "annotate/controls").glob("*.py"))
    named += re.findall(r'page="((?:explanation|how-to|reference)/[a-z-]+)"', controls)
    assert len(named) >= 4
    assert {"explanation/audit", "how-to/pairs", "how-to/balanced-sets"} <= set(named)
    assert set(named) <= set(PAGES)


def test_an_error_page_leads_to_the_documentation(client, db):
    assert 'href="/docs/"' in client.get("/nothing").text
    assert 'href="/docs/"' in render_to_string("500.html")


# --- what is served


OUTSIDE = "../settings.py %2e%2e/%2e%2e/manage.py reference/../index.md"


@pytest.mark.parametrize("path", ["nothing/", "nothing.md", "index/", "how-to/nothing/", *OUTSIDE.split()])
def test_nothing_else_is_served(path):
    html = get(f"/docs/{path}", 404).text
    assert "There is no such page in the documentation" in html
    assert html.count('href="/docs/reference/stages/"') >= 3  # in the page's contents, besides those at its side


def test_the_words_of_an_address_that_is_none_are_looked_for():
    html = get("/docs/how-to/check_kind.html", 404).text
    assert 'value="how to check kind"' in html
    assert '<a href="/docs/reference/commands/#check_kind">' in html


@pytest.mark.parametrize(
    ("folder", "section"),
    [("how-to", "you-manage-a-task"), ("reference", "look-up"), ("explanation", "you-do-research")],
)
def test_a_folder_leads_to_its_part_of_the_contents(folder, section):
    assert CLIENT.get(f"/docs/{folder}/").headers["Location"] == f"/docs/#{section}"
    assert f' id="{section}"' in served("/docs/")


SERVED = ["", "?q=audit", "glossary/", "glossary.md", "pictures/queue.png"]


@pytest.mark.parametrize("path", [*SERVED, "nothing/"])
def test_a_page_can_only_be_read_and_is_not_sent_again_to_a_reader_who_has_it(path):
    strict = Client(enforce_csrf_checks=True)
    for method in (strict.post, strict.put, strict.patch, strict.delete):
        assert method(f"/docs/{path}").status_code == 405
    if path in SERVED:
        tag = get(f"/docs/{path}").headers["ETag"]
        again = CLIENT.get(f"/docs/{path}", headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")


def test_the_skip_link_leads_past_the_contents_and_a_page_needs_no_login():
    # Without the database fixture, any statement would fail.
    assert "Log in" in get("/docs/").text
    html = served("/docs/glossary/")
    link, contents_begin = html.index('href="#main"'), html.index('aria-label="Contents"')
    assert link < contents_begin < html.index('<main class="leaf" id="main" tabindex="-1">')
    assert html.count("<main") == 1
    assert Client().get("/docs/reference/stages").headers["Location"] == "/docs/reference/stages/"


def test_of_the_contents_the_part_with_the_page_is_open_alone():
    def parts(path):
        side = served(path).partition('aria-label="Contents"')[2].partition("</nav>")[0]
        return re.findall(r"<details( open)?><summary>([^<]+)", side)

    titles = [section.title for section in pages.contents() if section.title]
    assert parts("/docs/reference/stages/") == [(" open" if title == "Look up" else "", title) for title in titles]
    assert parts("/docs/") == [("", title) for title in titles]


def test_every_word_of_the_glossary_is_found_by_itself():
    terms = page("glossary").headings
    assert len(terms) > 40
    for term in terms:
        assert f"/docs/glossary/#{term.anchor}" in addresses_of(term.words)[:3], term


def rendered(markdown):
    return pages._RENDERER.render(parse_markdown(markdown), pages.MARKDOWN.options, {"path": "index"})


def test_markdown_is_escaped_and_numbers_are_aligned_without_a_style_that_the_policy_forbids():
    html = rendered("# A\n\n<script>x</script> [a](javascript:alert) `<b>`\n\n```\n<i>\n```\n")
    assert not any(tag in html for tag in ("<script>", "<b>", "<i>"))
    assert "javascript:" not in re.findall(r'href="([^"]*)', html)
    html = rendered("# A\n\n| a | b |\n|---|---:|\n| c | 1 |\n")
    assert '<th class="right">b</th>' in html
    assert '<td class="right">1</td>' in html
    assert "style" not in html


# --- search


def addresses_of(words):
    return [passage.address for passage in views.search(words).passages]


# Search terms -> the page that must come first.
ASKED = {
    "how do I add a language": "how-to/languages/#add-a-language",
    "what is a gold answer": "glossary/#gold-answer",
    "interval of precision": "explanation/measuring/#recall-precision-accuracy",
    "lease ran out": "glossary/#lease",
    "timeout": "glossary/#lease",
    "upgrade": "how-to/server/#update",
    "kappa": "explanation/agreement/#alpha",
    "GDPR": "explanation/privacy-and-licences/",
    "SSL": "how-to/server/#tls",
    "docker": "how-to/server/#with-containers",
    "systemd": "how-to/server/#without-containers",
    "contribute": "#you-develop",
    "run the tests": "how-to/develop/#run-the-tests",
    "forgot password": "how-to/people/#a-forgotten-password",
    "check_kind": "reference/commands/#check_kind",
    "open a task": "reference/commands/#open_task",
    "exit status": "reference/commands/#how-a-command-ends",
    "API token": "how-to/api/#a-token",
    "restore": "how-to/server/#back-up-and-restore",
    "SQLite or PostgreSQL": "how-to/server/#postgresql",
    "Dawid and Skene": "explanation/agreement/#dawid-and-skene",
    "keyboard shortcuts": "reference/keys/",
    "jupyter": "how-to/api/#notebooks",
    "webhooks": "how-to/api/#webhooks",
    "free text": "how-to/own-kind/#texts-that-people-write",
    "add an option": "how-to/develop/#add-an-option",
    "how many annotators do I need": "how-to/campaign/#how-many-annotators-do-you-need",
    "export to Hugging Face": "how-to/publish/#export-to-hugging-face",
    "two annotators disagree": "explanation/routing/#when-two-annotators-disagree",
    "how do I find careless annotators": "how-to/campaign/#careless-annotators",
    "attention check": "how-to/records/#gold-answers",
    "hidden gold": "how-to/records/#gold-answers",
    "gold questions": "how-to/records/#gold-answers",
    "honeypot": "how-to/records/#gold-answers",
    "undo": "how-to/your-pages/#undo-or-change-an-answer",
    "how many annotators per item": "how-to/records/#who-decides",
    "write my own question": "how-to/own-kind/",
    "change an annotator's languages": "how-to/people/#change-an-annotators-languages",
    "compare two classifiers": "how-to/measure-a-classifier/#compare-two-classifiers",
    "change my answer": "how-to/your-pages/#undo-or-change-an-answer",
    "LLM as a judge": "how-to/measure-a-classifier/#a-machine-judge",
    "crowdsourcing": "how-to/records/",
    "toxic": "how-to/pairs/#drop-what-is-toxic",
    "upload file too large": "how-to/set-up-in-the-browser/#how-jobs-work",
    "multi-label": "how-to/several-labels/",
    "Label Studio": "how-to/publish/#import-a-project-of-label-studio-or-another-tool",
    "semicolon": "reference/formats/#csv-files-from-excel-semicolons-and-encoding",
    "encoding": "reference/formats/#csv-files-from-excel-semicolons-and-encoding",
    "Latin-1": "reference/formats/#csv-files-from-excel-semicolons-and-encoding",
    "Excel": "reference/formats/#csv-files-from-excel-semicolons-and-encoding",
    "enlarge a task": "how-to/campaign/#draw-more-posts",
    "careless annotators": "how-to/campaign/#careless-annotators",
    "figure without an interval": "how-to/measure-a-classifier/#a-figure-has-no-interval",
    "expired link": "how-to/people/#a-lost-or-expired-link",
    "lost invitation link": "how-to/people/#a-lost-or-expired-link",
    "comparison": "explanation/other-tools/",
    "alternative": "explanation/other-tools/",
    "Assay vs Prodigy": "explanation/other-tools/#assay-vs-each-tool",
    "can people mark spans": "how-to/own-kind/#spans-of-a-text",
    "named entity": "how-to/own-kind/#spans-of-a-text",
    "stop an annotator": "how-to/campaign/#stop-an-annotator-and-throw-away-the-answers",
    "too fast": "how-to/campaign/#stop-an-annotator-and-throw-away-the-answers",
    "spam": "how-to/campaign/#careless-annotators",
    "significant": "how-to/measure-a-classifier/#compare-two-classifiers",
    "cannot log in": "how-to/your-pages/#if-you-cannot-log-in",
    "plugin": "how-to/develop/#install-a-plug-in",
    "can I use my own question": "how-to/own-kind/",
    "what does an audit cost": "how-to/campaign/#what-a-draw-of-one-size-gives",
    "what if annotators disagree": "explanation/routing/#when-two-annotators-disagree",
    "backup": "how-to/server/#back-up-and-restore",
    "PostgreSQL": "how-to/server/#postgresql",
    "privacy": "explanation/privacy-and-licences/",
    "Label Studio vs Assay": "explanation/other-tools/#assay-vs-each-tool",
    "how do I install it": "tutorial/#install",
    "getting started": "tutorial/#install",
    "git clone": "tutorial/#install",
    "bad annotators": "how-to/campaign/#careless-annotators",
    "right to be forgotten": "explanation/privacy-and-licences/#if-somebody-asks-to-be-deleted",
    "delete a person": "explanation/privacy-and-licences/#if-somebody-asks-to-be-deleted",
    "99%": "explanation/audit/#how-large-must-an-audit-be-to-claim-that-99-is-right",
    "see each other's answers": "explanation/privacy-and-licences/#what-people-see",
    "which set do I need": "explanation/designs/#which-set-do-i-need",
    "low alpha": "explanation/agreement/#what-to-report-and-what-a-low-alpha-means",
    "how long will it take": "how-to/campaign/#how-long-will-it-take",
}


def test_what_people_ask_for_comes_first():
    assert {words: addresses_of(words)[0] for words in ASKED} == {
        words: f"/docs/{target}" for words, target in ASKED.items()
    }


def test_the_beginning_of_the_last_word_is_enough_from_four_letters_on():
    assert "/docs/glossary/#adjudication" in addresses_of("adjudi")
    assert addresses_of("queue adjudication")[0] in addresses_of("queue adjudi")[:3]
    assert addresses_of("adjudi xyzzy") == addresses_of("adj") == addresses_of("xyzzy") == []
    # If no passage has all words, those with some are found; a similar word does not count.
    assert addresses_of("rerouted xyzzy") == addresses_of("rerouted") != []
    snippets = [passage.snippet for passage in views.search("lease").passages]
    assert any("<mark>" in snippet for snippet in snippets)
    assert not any("<mark>least" in snippet for snippet in snippets)


def test_what_is_not_offered_is_said_with_what_to_do_instead():
    for query, words in {
        "annotate relations": "relations between spans",
        "label images": "images, audio or video",
        "is there active learning": "active learning",
        "S3": "cloud storage",
    }.items():
        html = get(f"/docs/?q={query}").text
        assert re.search(rf'<p class="notice">Assay does not offer [^<]*{words}', html), query
        assert "Nothing was found" not in html
    assert not views.not_offered("learning to audit")
    assert all(lack["page"] in PAGES for lack in views.WORDS["not_offered"])


def test_a_word_that_is_not_there_is_corrected():
    assert views.did_you_mean("adjudicaton of flags") == "adjudication of flags"
    assert 'Did you mean <a href="/docs/?q=glossary">glossary</a>?' in get("/docs/?q=glosary").text
    assert [views.did_you_mean(words) for words in ("audit", "adjudi", "xyzzy", "")] == [""] * 4


def test_each_result_says_what_kind_of_page_it_is():
    kinds = {passage.kind for passage in views.search("audit").passages}
    assert kinds >= {"How-to", "Reference", "Explanation"}
    assert '<small class="badge quiet">Glossary</small>' in get("/docs/?q=lease").text


def test_every_synonym_stands_for_words_that_the_pages_have():
    text = " ".join(page_text(name).lower() for name in PAGES)
    for synonym, words in views.WORDS["synonyms"].items():
        assert all(re.search(rf"\b{word}", text) for word in words), synonym


def test_a_snippet_is_of_one_line_or_row():
    (first, *_) = views.search("--skip-limit item's round").passages
    assert first.address == "/docs/reference/commands/#open_task-routing"
    assert "--least-level" not in first.snippet
    shown = re.sub(r"</?mark>", "", first.snippet)
    assert shown.startswith("--skip-limit N whole number, 1 to 99 · default 1; verify: 2; ad_relevance, better_replies")
    for passage in views.search("task people label").passages:
        shown = re.sub(r"</?mark>", "", passage.snippet)
        assert len(unescape(shown)) <= views.SNIPPET + len("… " + " …")


def test_the_number_of_passages_is_shown_and_what_is_asked_beyond_the_longest_is_left_out():
    few, many = views.search("systemd"), views.search("task")
    assert few.number == len(few.passages) == 1
    assert many.number > len(many.passages) == views.MOST
    assert "1 passage." in get("/docs/?q=systemd").text
    assert f"The best {views.MOST} of {many.number} passages." in get("/docs/?q=task").text
    assert views.search("a" * views.LONGEST + " audit").number == 0
    assert f'value="{"a" * views.LONGEST}"' in get(f"/docs/?q={'a' * 300}").text


def test_an_option_is_found_however_it_is_written():
    for words in ("--audit-share", "audit_share", "audit share", "AUDIT shar"):
        assert "/docs/reference/commands/#open_task-the-audit-of-that-agreement" in addresses_of(words), words


def test_what_is_found_is_marked_and_escaped():
    snippets = [passage.snippet for passage in views.search("adjudicator").passages]
    assert any("<mark>adjudicator</mark>" in snippet for snippet in snippets)
    assert not any(re.search(r"<(?!/?mark>)", snippet) for snippet in snippets)


def test_the_page_of_search_says_what_was_asked_and_no_more():
    html = get("/docs/?q=%22%3E%3Cxyzzy%3E").text
    assert "<xyzzy>" not in html
    assert "Search for “&quot;&gt;&lt;xyzzy&gt;”" in html
    assert "Nothing was found." in html
    assert "<h2>Contents</h2>" in html
    assert "Write a word or several" in get("/docs/?q=").text
    html = get("/docs/?q=stage").text
    assert '<a href="/docs/reference/stages/">' in html


@given(st.text(max_size=60))
def test_nothing_that_is_asked_is_an_error(words):
    for passage in views.search(words).passages:
        assert passage.address.startswith("/docs/")


def test_a_search_in_several_threads_at_once_finds_the_same():
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(addresses_of, ["audit"] * 50))
    assert answers == [addresses_of("audit")] * 50


# --- the picture of the stages


def test_picture_and_list_of_the_stages_have_every_stage_and_every_arrow_with_its_events():
    assert set(PLACES) == set(stages.STAGES)
    assert set(ROUTES) == set(stages.arrows())
    html, picture, moves = page("reference/stages").html, stages_picture(), list_of_moves()
    for events in stages.arrows().values():
        assert all(f">{event}</text>" in picture for event in events)
    assert picture in html
    assert moves in html
    listed = {
        (start, end, events)
        for start, ends in re.findall(r"<dt>(.*?)</dt>((?:<dd>.*?</dd>)+)", moves)
        for end, events in re.findall(r"<dd>(.*?)<small>(.*?)</small></dd>", ends)
    }
    assert listed == {(start, end, ", ".join(events)) for (start, end), events in stages.arrows().items()}
    # The diagram for code hosts is not text in the app.
    assert "stateDiagram" not in html
    assert "stateDiagram" in page_text("reference/stages")


def test_formulas_are_set_as_formulas():
    html = page("explanation/measuring").html
    assert html.count("<math") == pages.source("explanation/measuring").count("```math") > 10
    assert "\\frac" not in html


# --- the pages that a code host shows first


def test_the_readme_is_a_screen_and_a_half_and_its_picture_is_light():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 700
    [picture] = re.findall(r"!\[.+?\]\((\S+)\)", text)
    assert (ROOT / picture).stat().st_size <= 150_000


def test_the_changelog_and_the_citation_are_of_this_version():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\d\S*)\]", changes, re.MULTILINE)[0] == VERSION
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
