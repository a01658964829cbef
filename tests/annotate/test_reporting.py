"""The report of `evaluate` in its three forms, from whole reports to ones where nothing was measured."""

import copy
import re
from html.parser import HTMLParser
from unicodedata import east_asian_width
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from annotate.reports import predictor_report
from annotate.reports.terminal import WIDTH
from annotate.reports.writing import as_html, as_markdown, as_text

FORMS = (as_text, as_markdown, as_html)
MEASURED = ("accuracy", "recall", "precision", "recall_check", "unseen", "balanced", "comparison", "confusion")
VOID = {"meta", "br", "hr", "link", "img", "input"}
NASTY = "<b>|*x*_y_`z`[a](javascript:b) & \x1b[31m\n# c"


def made(value, low, high, count, posts=None):
    hits = None if value is None else value * count
    return {"value": value, "low": low, "high": high, "hits": hits, "count": count, "posts": posts or int(count)}


def apart(value, low, high, posts=31000):
    """How far two predictors are apart."""
    better = "first" if low > 0 else "second" if high < 0 else None
    return {"value": value, "low": low, "high": high, "posts": posts, "better": better}


NOTHING = made(None, 0.0, 1.0, 0)
BOTH = {"languages": 2, "classes": 2}  # what a mean is over


def predictor(spelled="mine@2", **fields):
    name, _, version = spelled.partition("@")
    return {"name": name, "version": version, "spelled": spelled, "voted": False, "mapping": {}} | fields


def gold_set(name, design, **fields):
    found = {"name": name, "design": design, "folder_name": f"{name}-folder", "posts": 12345, "finished": True}
    return found | {"predictor": None, "digest": "0123456789abcdef" * 4} | fields


@pytest.fixture
def report():
    czech, welsh, tibetan = (
        {"language": code, "name": name, "note": ""}
        for code, name in (("cs", "Czech"), ("cy", "Welsh"), ("bo", "Tibetan"))
    )
    few = {"note": "fewer than 30 posts"}
    return {
        "kind": "predictor",
        "predictor": predictor(mapping={"zh": ["zh-CN", "zh-TW"]}),
        "gold": [gold_set("all", "uniform"), gold_set("found", "recall", finished=False, predictor="mine@1")],
        "vanished": {"posts": 1213, "by_label": {"en": 1200, "und": 13}},
        "erased": {"posts": 3, "by_label": {"de": 3}},
        "accuracy": {
            "with_und": made(0.934, 0.928, 0.939, 9021.7, 120575),
            "without_und": made(0.953, 0.948, 0.957, 8611.3, 111020),
            "naive_with_und": made(0.9701, 0.969, 0.971, 120575),
            "naive_without_und": made(0.982, 0.981, 0.983, 111020),
        },
        "recall": {
            "source": "recall and uniform",
            "macro": {"with_und": 0.9123, "with_und_over": BOTH, "without_und": 0.9234, "languages": 2},
            "languages": [
                welsh | {"estimate": made(0.88, 0.86, 0.9, 1600)},
                czech | {"estimate": made(0.971, 0.958, 0.982, 983.4, 1204)},
                tibetan | few | {"estimate": NOTHING},
            ],
        },
        "precision": {
            "source": "precision",
            "macro": {"with_und": 0.8765, "with_und_over": BOTH, "without_und": None, "languages": 0},
            "languages": [
                czech | {"with_und": made(0.965, 0.95, 0.97, 1000), "without_und": made(0.985, 0.97, 0.99, 979)},
                tibetan | few | {"with_und": NOTHING, "without_und": NOTHING},
            ],
        },
        "recall_check": [
            czech
            | {"recall_set": made(0.97, 0.96, 0.98, 1600), "uniform_set": made(0.99, 0.985, 0.995, 812.5, 2000)}
            | {"p": 0.0021, "p_holm": 0.0042},
        ],
        "unseen": {
            "over": "corpus",
            "languages": [
                czech | {"triggers": 4000, "never_shown": 1320, "share": 0.33, "outside": None},
                tibetan | {"triggers": 0, "never_shown": 0, "share": None, "outside": 0},
            ],
        },
        "balanced": {
            "languages": [
                czech
                | {"balanced": made(0.991, 0.98, 0.999, 1500), "natural": {"value": 0.7, "low": 0.34, "high": 0.957}},
                welsh | {"balanced": made(0.9, 0.8, 0.95, 200), "natural": None},
            ]
        },
        "comparison": {
            "other": predictor("cld2", voted=True),
            "accuracy": {"with_und": apart(0.0138, 0.0021, 0.0255), "without_und": apart(0.0004, -0.0113, 0.0121)},
            "languages": [
                czech | {"recall": apart(-0.081, -0.095, -0.067, 1700), "precision": apart(0.02, -0.011, 0.051)}
            ],
            "mcnemar": {"items": 31000, "only_first": 420, "only_second": 377, "p": 0.1372},
        },
        "confusion": {
            "labels": ["cs", "en", "sk", "und"],
            "cells": [["cs", "cs", 1100.0], ["cs", "sk", 40.6], ["en", "en", 52000.0], ["und", "en", 17.0]],
        },
        "warnings": ["The gold set found is unfinished: 77 of its posts still wait for people.", "Another one."],
    }


def languages(number):
    """As many languages as an article has, none of which exists."""
    return [f"q{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(number)]


@pytest.fixture
def large(report):
    """Sixty languages, each with its own note, whose names are long."""
    for section in ("recall", "precision", "unseen", "balanced", "comparison"):
        row = report[section]["languages"][0]
        report[section]["languages"] = [
            row | {"language": code, "name": f"A long name of {code}", "note": f"note on {code}"}
            for code in languages(60)
        ]
    report["confusion"]["labels"] = languages(60)
    report["confusion"]["cells"] += [[code, code, 10.0] for code in languages(60)]
    report["confusion"]["cells"] += [["qaa", code, 2.0] for code in languages(60)]
    return report


class Tree(HTMLParser):
    """Tags that open and close in order, their attributes, the text."""

    def __init__(self, source):
        super().__init__()
        self.open, self.seen, self.words = [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "number",
    [
        *("93.4% [92.8, 93.9]", "97.0% [96.9, 97.1]", "120,575", "≈9,022"),  # accuracy, and the naive one
        *("97.1% [95.8, 98.2]", "1,204", "≈983", "91.2%", "92.3%"),  # recall
        *("96.5% [95.0, 97.0]", "98.5% [97.0, 99.0]", "87.6%"),  # precision
        *("99.0% [98.5, 99.5]", "0.002", "0.004"),  # the check of recall
        *("4,000", "1,320", "33.0%"),  # what was never shown
        *("99.1% [98.0, 99.9]", "70.0% [34.0, 95.7]"),  # balanced
        *("+1.4 [+0.2, +2.5]", "0.0 [−1.1, +1.2]", "−8.1 [−9.5, −6.7]", "1,700"),  # the comparison
        *("31,000", "420", "377", "0.137"),
        *("≈41", "3.6%"),  # confusions
        *("1,213", "0123456789ab"),  # what is gone, digests
    ],
)
def test_the_numbers_are_there(form, report, number):
    assert number in form(report).replace("&lt;", "<")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("missing", [*MEASURED, None])
def test_what_was_not_measured_has_no_section_and_breaks_none(form, report, missing):
    whole = form(report)
    for section in MEASURED if missing is None else [missing]:
        report[section] = None
    if missing is None:
        report |= {"vanished": {"posts": 0, "by_label": {}}, "erased": {"posts": 0, "by_label": {}}, "warnings": []}
    assert len(form(report)) < len(whole)
    assert "What was measured against what" in form(report)


@pytest.mark.parametrize("form", FORMS)
def test_every_number_in_a_report_may_be_unmeasured(form, report):
    """The estimates, one kind after the other, as None and as an estimate without a value."""

    def without(part, lost):
        if isinstance(part, dict):
            return lost if "high" in part else {key: without(value, lost) for key, value in part.items()}
        return [without(value, lost) for value in part] if isinstance(part, list) else part

    assert "–" in form(without(copy.deepcopy(report), NOTHING))
    for row in report["recall_check"] + [report["comparison"]["mcnemar"]]:
        row |= {"p": None, "p_holm": None}
    for section in ("recall", "precision"):
        report[section]["macro"] = None
    assert "–" in form(without(report, None))


@pytest.mark.parametrize("form", FORMS)
def test_lists_that_are_empty_are_no_tables(form, report):
    # Accuracy, and by language.
    assert form(report).count("A less B") == 3
    for section in ("recall", "precision", "unseen", "balanced", "comparison"):
        report[section]["languages"] = []
    report["confusion"] = {"labels": [], "cells": []}
    assert form(report).count("A less B") == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_report_is_made_the_same_twice_and_leaves_the_dict_as_it_was(form, report):
    before = copy.deepcopy(report)
    assert form(report) == form(report)
    assert report == before


@pytest.mark.parametrize("form", FORMS)
def test_a_comparison_is_named_in_the_title_the_summary_and_the_first_section(form, report):
    told = " ".join(form(report).split())
    assert "mine@2 against cld2, measured on 2 gold sets" in told
    better = "mine@2 is more accurate: mine@2 less cld2, in points of accuracy with und, is +1.4 [+0.2, +2.5]"
    assert told.count(better) == 2
    assert f"Compared with: cld2. On the same posts, {better}" in told
    assert "run evaluate with it in the first place" in told
    report["comparison"] = None
    assert "cld2" not in form(report)


@pytest.mark.parametrize("form", FORMS)
def test_languages_in_which_nothing_was_measured_are_one_line(form, report):
    welsh, czech, tibetan = report["recall"]["languages"]
    report |= dict.fromkeys(MEASURED)
    report["recall"] = {
        "source": "uniform",
        "macro": None,
        "languages": [row | {"estimate": NOTHING} for row in (welsh, czech, tibetan)],
    }
    told = " ".join(form(report).split())
    assert "Nothing was measured: Tibetan (bo), Czech (cs), Welsh (cy)." in told
    assert "not measured" not in told
    assert "–" not in told
    assert "<svg xmlns" not in told


def test_a_picture_with_nothing_measured_is_not_drawn(large):
    rows = large["recall"]["languages"]
    large["recall"]["languages"] = [row | {"estimate": NOTHING} if n > 20 else row for n, row in enumerate(rows)]
    told = as_html(large)
    assert "<title>Recall by language</title>" in told
    assert "<title>Recall by language, part 2</title>" not in told


@pytest.mark.parametrize("form", FORMS)
def test_no_example_is_given_that_could_be_read_as_the_result(form, report):
    report |= dict.fromkeys(MEASURED)
    told = " ".join(form(report).split())
    assert "x% [a, b], is an estimate" in told
    assert not re.findall(r"\d% \[", told)


@pytest.mark.parametrize("form", FORMS)
def test_vanished_posts_are_said_to_be_left_out_because_they_are_listed(form, report):
    told = " ".join(form(report).split())
    assert "Posts left out because they are listed as vanished: 1,213." in told
    assert "has no label" not in told


@pytest.mark.parametrize("form", FORMS)
def test_the_warnings_come_before_every_number(form, report):
    written = form(report)
    assert written.index("77 of its posts") < written.index("Another one") < written.index("93.4%")


@pytest.mark.parametrize("form", FORMS)
def test_a_balanced_distribution_is_called_hypothetical_aloud(form, report):
    assert "HYPOTHETICAL" in form(report)


@pytest.mark.parametrize("form", FORMS)
def test_the_better_of_two_is_named_and_the_recalls_that_differ(form, report):
    assert "A is mine@2, B is cld2" in form(report)
    assert "differ at the 5% level: 1 of 1" in " ".join(form(report).split())


def test_the_better_of_two_stands_in_the_tables_by_its_name(report):
    compared = next(section for section in predictor_report.sections(report) if section.slug == "comparison")
    # Over all posts mine@2 is better; without und neither is, and cld2 finds more Czech.
    whole, by_language = compared.tables
    assert [row[-1].shown for row in whole.rows] == ["mine@2", ""]
    assert [(row[-4].shown, row[-1].shown) for row in by_language.rows] == [("cld2", "")]


@pytest.mark.parametrize("form", FORMS)
def test_without_a_uniform_set_the_better_recalls_are_counted(form, report):
    report["comparison"] |= {"accuracy": None, "mcnemar": None}
    report["comparison"]["languages"][0]["precision"] = None
    told = " ".join(form(report).split())
    assert "of 1 label, mine@2 has the better recall in 0 and cld2 in 1" in told
    assert "Without a uniform set, accuracy and precision cannot be compared." in told


def nasty(part):
    """Every word of a report that comes from files, people or other programs, replaced."""
    if isinstance(part, dict):
        return {
            NASTY if key in ("en", "und", "zh") else key: value if key == "kind" else nasty(value)
            for key, value in part.items()
        }
    if isinstance(part, list):
        return [nasty(value) for value in part]
    return NASTY if isinstance(part, str) else part


def test_no_text_in_the_html_is_taken_for_markup(report):
    written = as_html(nasty(report) | {"recall": report["recall"]})
    tree = Tree(written)
    assert "b" not in {tag for tag, _ in tree.seen}
    assert "<b>|*x*" in tree.text


def test_no_text_in_the_markdown_is_taken_for_markup(report):
    source = as_markdown(nasty(report))
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(source)
    tree = Tree(rendered)
    assert {tag for tag, _ in tree.seen} <= {
        *("h1", "h2", "p", "blockquote", "strong", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"),
    }
    assert "<b>|*x*_y_`z`[a](javascript:b) & \x1b[31m # c" in tree.text


def test_no_text_reaches_the_terminal_as_a_command(report):
    written = as_text(nasty(report))
    assert "\x1b" not in written
    assert all(letter.isprintable() or letter == "\n" for letter in written)


def test_the_rows_of_a_markdown_table_have_as_many_cells_as_its_head(large):
    for source in (as_markdown(large), as_markdown(nasty(large))):
        blocks = re.findall(r"(?:^\|.*\n)+", source, re.MULTILINE)
        assert len(blocks) >= 10
        for block in blocks:
            rows = [len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()]
            assert len(set(rows)) == 1, block
            assert re.fullmatch(r"\|(-{3}:?\|)+", block.splitlines()[1])


def test_markdown_escapes_no_more_than_it_must(report):
    assert "\\" not in as_markdown(report)


@pytest.mark.parametrize("wide", ["precision-oriented-set-of-july-2014-by-three-readers", "日本語のデータセット" * 6])
def test_the_terminal_needs_a_hundred_columns_whatever_the_names(large, wide):
    large["gold"] = [gold_set(wide, "uniform", folder_name=wide, predictor=wide)]
    large["warnings"] = [f"{wide} " * 9]
    lines = as_text(large).splitlines()
    columns = [sum(2 if east_asian_width(letter) in "WF" else 1 for letter in line) for line in lines]
    assert max(columns) <= WIDTH


def test_a_note_stands_once_below_a_terminals_table_with_its_languages(report):
    for row in report["recall"]["languages"]:
        row["note"] = "drawn from few authors" if row["language"] != "bo" else "no posts"
    lines = as_text(report).splitlines()
    assert "* cs, cy: drawn from few authors" in lines
    assert "* bo: no posts" in lines


def test_tables_are_in_the_order_of_the_codes_and_pictures_in_that_of_the_values(report):
    codes = re.findall(r"^(bo|cs|cy) .*\d", as_text(report), re.MULTILINE)
    assert codes[:3] == ["bo", "cs", "cy"]
    plot = next(svg for svg in svgs(as_html(report)) if "<title>Recall by language</title>" in svg)
    assert re.findall(r">(bo|cs|cy)<", plot) == ["cs", "cy", "bo"]


def svgs(source):
    return re.findall(r"<svg xmlns.*?</svg>\n", source, re.DOTALL)


def test_every_picture_is_xml_and_the_html_is_well_formed(large):
    source = as_html(large)
    Tree(source)
    assert len(svgs(source)) >= 8
    for svg in svgs(source):
        ElementTree.fromstring(svg)


def test_the_html_fetches_nothing_and_runs_nothing(large):
    source = as_html(large)
    tree = Tree(source)
    assert not {tag for tag, _ in tree.seen} & {"script", "link", "img", "iframe", "object", "embed", "use", "image"}
    for _, attributes in tree.seen:
        assert not {"src", "srcset", "style", "onload", "onclick"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in source
    assert "@import" not in source
    assert re.findall(r'https?://[^"\s<]+', source.replace("http://www.w3.org/2000/svg", "")) == []


def test_the_contents_lead_to_the_sections(report):
    tree = Tree(as_html(report))
    targets = [attributes["href"][1:] for tag, attributes in tree.seen if tag == "a"]
    assert len(targets) == 10
    assert set(targets) == {attributes["id"] for tag, attributes in tree.seen if tag == "section"}


def test_long_tables_are_folded_and_short_ones_open(report, large):
    assert as_html(large).count("<details>") >= 5
    for section in ("recall", "precision", "unseen", "balanced", "comparison"):
        report[section]["languages"] = report[section]["languages"][:3]
    report["confusion"] = None
    assert "<details>" not in as_html(report)


def test_a_predictor_that_voted_is_said_to_have_voted(report):
    assert "It voted" not in as_text(report)
    report["predictor"] = predictor("cld2", voted=True)
    assert "It voted" in as_text(report)


def test_an_unfinished_gold_set_is_marked(report):
    assert re.search(r"^found .*\bNO\b", as_text(report), re.MULTILINE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_a_phone_and_asks_no_server(browser, large, tmp_path, scheme):
    file = tmp_path / "report.html"
    file.write_text(as_html(large), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (asked, said) == ([file.as_uri()], [])
    assert page.locator("#recall .plot-wide").first.is_hidden()
    assert page.locator("#accuracy .scroll").evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    page.close()
