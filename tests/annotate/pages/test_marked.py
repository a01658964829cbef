"""What no page may contain: words that are not marked for translation, and styles without the design's tokens."""

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from annotate.manual.pages import source
from annotate.manual.views import COLOURS, ICONS
from tests.annotate.reports.test_plots import contrast
from tests.running import ROOT

PRODUCT = ROOT / "annotate"
TEMPLATES = PRODUCT / "templates"
# Reports, cards and shell output are in English for everybody.
IN_ENGLISH = {
    "_report_end.html",
    "_report_head.html",
    "_report_section.html",
    "_table.html",
    "_preview_concepts.html",
    "preview.html",
    "report.html",
    "report_in_notebook.html",
}
SEEN = [
    *sorted(TEMPLATES.glob("*.html")),
    *sorted(path for path in (TEMPLATES / "annotate").glob("*.html") if path.name not in IN_ENGLISH),
    *sorted((TEMPLATES / "annotate").glob("*.txt")),
]
SPOKEN = ("alt", "aria-label", "placeholder", "title")  # attributes that people read or hear
# Words that are the same in all languages.
NAMES = {"Assay"}
MARKED = re.compile(r"{% blocktrans(?:late)?\b.*?{% endblocktrans(?:late)? %}|{#.*?#}|{% block body_class %}\w+", re.S)
TAG = re.compile(r"{%.*?%}|{{.*?}}", re.S)
LITERAL = re.compile(r"\"([^\"]*)\"|'([^']*)'")


class Words(HTMLParser):
    """The words of a template outside Django's tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside: list[str] = []
        self.feed(TAG.sub("", MARKED.sub("", text)))

    def handle_starttag(self, tag, attrs):
        self.inside.append(tag)
        self.found += [value for name, value in attrs if name in SPOKEN and value and is_words(value)]

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if {"script", "style"}.isdisjoint(self.inside) and is_words(data) and not self._is_key(data):
            self.found.append(data.strip())

    def _is_key(self, data: str) -> bool:
        return "kbd" in self.inside and len(data.strip().removeprefix("⇧")) == 1


def is_words(text: str) -> bool:
    return any(word not in NAMES for word in re.findall(r"[^\W\d_]+", text))


def in_tags(text: str) -> list[str]:
    """Return the sentences in Django's tags, except in those that translate."""
    tags = [tag for tag in TAG.findall(MARKED.sub("", text)) if not tag.startswith("{% translate ")]
    literals = ["".join(pair) for tag in tags for pair in LITERAL.findall(tag)]
    return [words for words in literals if re.search(r"[^\W\d_]{2} +[^\W\d_]|[^\W\d_]{2}[.!?]$", words)]


def test_no_template_that_annotators_see_has_words_that_are_not_marked():
    texts = {path.name: path.read_text(encoding="utf-8") for path in SEEN}
    by_template = {name: Words(text).found + in_tags(text) for name, text in texts.items()}
    assert {name: words for name, words in by_template.items() if words} == {}


def test_words_that_are_not_marked_are_found():
    assert Words('<p title="A title">Some {{ number }} words</p>{% translate "marked" %}<kbd>Q</kbd>').found == [
        "A title",
        "Some  words",
    ]
    assert Words("{% blocktranslate %}marked{% endblocktranslate %}<b>Assay 1 · ↵</b>").found == []
    assert in_tags('{{ way|default:"To the page" }}{% include "a/b.html" with words="Not here." %}') == [
        "To the page",
        "Not here.",
    ]


# --- modules

# Packages whose messages reach annotators, and their modules that only address managers and programs. These have the
# package's name if a module of that name in another package addresses annotators.
ROOMS = ("work", "quality", "figures", "pages")
OF_OTHERS = {
    # work/: opening and importing, accounts of others
    *("judgment_import", "task_creation", "task_settings", "unit_entry", "people_file"),
    *("interventions", "routes", "routing", "closure", "job_store"),
    *("webhook_address", "webhook_outbox", "webhook_sender"),
    # quality/: reports for managers
    *("agreement_statistics", "answer_models", "guideline_versions", "preference_statistics"),
    *("agreement_report", "preference_report"),
    # figures/: progress for managers
    *("annotator_statistics", "draw_plan", "figure_cache", "finish_forecast", "finish_simulation", "further_work"),
    *("interval_width", "overview_report", "people_report", "plan_report", "progress_report", "queue_states"),
    *("task_overview", "task_statistics"),
    # pages/: previews for managers
    "kind_preview",
}
KINDS = (
    *("concept_kind", "record_kind", "language", "language_questions", "preference_kind"),
    *("forms/choice", "forms/labels"),
)
CONTROLS = ("honeypots", "qualification")
MODULES = [
    *(
        path
        for room in ROOMS
        for path in sorted((PRODUCT / room).glob("*.py"))
        if not {path.stem, f"{room}/{path.stem}"} & OF_OTHERS
    ),
    *(PRODUCT / "kinds" / f"{name}.py" for name in KINDS),
    *(PRODUCT / "controls" / f"{name}.py" for name in CONTROLS),
]
# Exceptions whose messages are for authors of programs or of a kind's file (`fault`), and exceptions of others.
OF_PROGRAMS = {"AssertionError", "KeyError", "TypeError", "Http404", "ObjectDoesNotExist", "fault"}
# Functions for managers, or for authors of packages, in modules that otherwise address annotators.
OF_MANAGERS = {
    *("check_may_change", "check_grant", "check_system"),
    # of members
    *("parse_quota", "check_may_change_members", "set_groups"),
    # of languages for which people ask
    *("grant", "refuse", "_store_decision", "requests"),
    # of flags and notes
    *("reply", "dismiss", "discard", "make_example", "_lock_flag", "_clean_text", "write_note", "withdraw_note"),
    # of packages
    "_checked_label",
}
# Functions whose return values are shown to people.
TOLD = {"why_empty", "not_a_reader", "_why_not_qualified", "pending_tests", "waiting_for_others", "decision_text"}


def is_sentence(node: ast.AST) -> bool:
    """Return whether a node is a literal sentence, whole or in pieces. A call such as _() is none."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and " " in node.value
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.BinOp):
        return is_sentence(node.left) or is_sentence(node.right)
    return isinstance(node, ast.IfExp) and (is_sentence(node.body) or is_sentence(node.orelse))


def of_annotators(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below a node, like ast.walk, except for managers' functions."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.FunctionDef) and node.name in OF_MANAGERS):
            yield node
            yield from of_annotators(node)


def unmarked(tree: ast.AST) -> list[str]:
    """Return the literal sentences that a module raises or returns."""
    sentences = []
    for node in of_annotators(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = getattr(node.exc.func, "id", "") or getattr(node.exc.func, "attr", "")
            # Wrong takes a sentence and the values of its gaps, and is translated when it is shown.
            if name not in OF_PROGRAMS | {"Wrong"}:
                sentences += [ast.unparse(part) for part in node.exc.args if is_sentence(part)]
            if name == "Wrong":
                sentences += [ast.unparse(part) for part in node.exc.args if isinstance(part, ast.JoinedStr)]
        if isinstance(node, ast.FunctionDef) and node.name in TOLD:
            returned = [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value]
            sentences += [ast.unparse(value) for value in returned if is_sentence(value)]
    return sentences


def test_no_module_tells_annotators_a_sentence_that_is_not_marked():
    by_module = {path.relative_to(PRODUCT).as_posix(): unmarked(ast.parse(path.read_bytes())) for path in MODULES}
    assert {path: sentences for path, sentences in by_module.items() if sentences} == {}


def test_sentences_that_are_not_marked_are_found():
    raised = (
        'def f():\n    raise NotFound("There is none.")\n    raise NotFound(f"No {x}")\n    raise NotFound(_("None."))'
    )
    assert unmarked(ast.parse(raised)) == ["'There is none.'", "f'No {x}'"]
    assert unmarked(ast.parse('def why_empty(permit):\n    return "Nothing waits."')) == ["'Nothing waits.'"]
    assert unmarked(ast.parse('def f():\n    raise Wrong("%(x)s is wrong.", x=x)')) == []


def shadowing(tree: ast.AST) -> list[str]:
    """Return the functions that use _ to translate and also assign to it."""
    functions = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == "_"]
            if len({type(name.ctx) for name in names}) > 1:
                functions.append(node.name)
    return functions


def test_no_function_takes_away_the_name_by_which_it_translates():
    for path in (path for room in ("kinds", *ROOMS) for path in sorted((PRODUCT / room).rglob("*.py"))):
        source = path.read_text(encoding="utf-8")
        if "gettext as _\n" in source:
            assert shadowing(ast.parse(source)) == [], path
    assert shadowing(ast.parse('def f(x):\n    a, _, b = x\n    return _("All")')) == ["f"]


def test_modules_of_others_are_there():
    paths = [(room, path.stem) for room in ROOMS for path in (PRODUCT / room).glob("*.py")]
    assert {stem for _, stem in paths} | {f"{room}/{stem}" for room, stem in paths} >= OF_OTHERS


# --- the stylesheet: one set of tokens, legible in light and dark


STATIC = PRODUCT / "static" / "annotate"
STYLES = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("assay.css", "manage.css", "docs.css"))
TOKENS, RULES = STYLES.split("/* # Elements */")
HEX = r"#[0-9a-f]{3,8}\b"
GROUNDS = ("paper", "raised", "hover")
# Text colours -> the backgrounds on which they are used.
PAIRS = {
    "ink": (*GROUNDS, "notice", "good", "bad"),
    "quiet": GROUNDS,
    "accent": GROUNDS,
    "gold": (*GROUNDS, "notice"),
    "right": (*GROUNDS, "good"),
    "danger": (*GROUNDS, "bad"),
    "on-accent": ("accent",),
    "paper": ("ink",),
}


def colours(mode):
    both = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", TOKENS)
    return {name: [int(modes[mode][n : n + 2], 16) / 255 for n in (1, 3, 5)] for name, *modes in both}


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("letters", PAIRS)
def test_letters_have_the_contrast_of_level_aa_on_their_grounds(letters, mode):
    of = colours(mode)
    assert {ground: contrast(of[letters], of[ground]) >= 4.5 for ground in PAIRS[letters]} == dict.fromkeys(
        PAIRS[letters], True
    )


def test_only_tokens_hold_colours():
    [paper] = re.findall(r":root, :root\[data-theme\] \{[^}]*\}", RULES)
    screen = RULES.replace(paper, "").replace("#answers", "").replace("#flag", "")
    assert re.findall(HEX, re.sub(r"/\*.*?\*/", "", screen)) == []
    assert {*re.findall(HEX, paper)} == {"#ffffff", "#000000", "#4a4741"}


def test_type_and_spacing_are_those_of_the_scales():
    sizes = re.findall(r"font-size: ([^;}]+)", RULES)
    fluid = r"clamp\(var\(--t20\), [^,]+, var\(--t28\)\)"
    assert [size for size in sizes if re.search(r"\d(rem|px)", size) and not re.fullmatch(fluid, size)] == []
    spaced = re.findall(r"(?:[{;] ?|^ *)(?:padding|margin|gap)[a-z-]*: ([^;}]*\d(?:rem|px)[^;}]*)", RULES, re.MULTILINE)
    # Space for the guidelines panel and for the icon of a search.
    allowed = r"-?1px|clamp\(.*\)|\.2rem .*|30rem|3rem var\(--s24\)"
    assert [value for value in spaced if not re.fullmatch(allowed, value)] == []


def classes_of(css):
    return {*re.findall(r"\.([a-z][a-z0-9-]*)", css)}


def test_every_used_token_is_there():
    named = {*re.findall(r"--([a-z0-9-]+):", TOKENS)} | {"from-above", "from-below", "from-left", "most"}
    assert {*re.findall(r"var\(--([a-z0-9-]+)", STYLES)} <= named


def test_the_page_of_the_design_shows_what_the_stylesheet_has(client):
    page = client.get("/docs/design/").text
    shown = page.partition('id="components"')[2].partition('class="turn"')[0]
    assert {*" ".join(re.findall(r'class="([^"]+)"', shown)).split()} <= classes_of(STYLES)
    assert {*re.findall(r"\.([a-z-]+)", " ".join(re.findall(r"<dt><code>(.*?)</code>", shown)))} <= classes_of(STYLES)
    assert {*colours(0)} == {*COLOURS} - {"shade"}
    assert [*ICONS] == re.findall(r'symbol id="([a-z0-9-]+)"', (STATIC / "icons.svg").read_text(encoding="utf-8"))
    for token in re.findall(r"--(t\d+|s\d+)", TOKENS):
        assert f"--{token}" in shown or f"--{token}" in source("design")


def test_icons_in_templates_are_in_the_sprite():
    used = {name for path in TEMPLATES.rglob("*.html") for name in re.findall(r'{% icon "([^"]+)"', path.read_text())}
    assert used <= {*ICONS}
