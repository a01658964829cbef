"""The report of `evaluate` in its three formats, from complete reports to empty ones."""

import copy
import re
from html.parser import HTMLParser
from unicodedata import east_asian_width
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from annotate.evaluation.posts import READING, SECTIONS, WORDS
from annotate.reports import evaluation_report
from annotate.reports.report_renderer import as_html, as_markdown, as_text
from annotate.reports.table_formats import WIDTH

FORMS = (as_text, as_markdown, as_html)
VOID = {"meta", "br", "hr", "link", "img", "input"}
NASTY = "<b>|*x*_y_`z`[a](javascript:b) & \x1b[31m\n# c"


def row(measure, of, value, low=None, high=None, units=None, count=None, note=""):
    figure = {"measure": measure, "of": of, "value": value, "low": low, "high": high, "units": units, "count": count}
    return figure | {"note": note}


def of_label(measure, label, *figures, **more):
    return row(measure, {"label": label}, *figures, **more)


def apart(measure, of, value, low, high, units=31000, **more):
    """The difference between two predictors."""
    better = "first" if low > 0 else "second" if high < 0 else None
    return row(measure, of, value, low, high, units) | {"better": better, "p": None, "p_holm": None} | more


def predictor(spelled="mine@2", **fields):
    name, _, version = spelled.partition("@")
    return {"name": name, "version": version, "spelled": spelled, "voted": False, "mapping": {}} | fields


def gold_set(name, design, **fields):
    defaults = {"name": name, "design": design, "folder_name": f"{name}-folder", "rows": 12345, "finished": True}
    return defaults | {"predictor": "", "digest": "0123456789abcdef" * 4} | fields


@pytest.fixture
def report():
    few = {"note": "fewer than 30 posts"}
    return {
        "kind": evaluation_report.KIND,
        "form": "posts",
        "unit": "post",
        "names": {"cs": "Czech", "cy": "Welsh", "bo": "Tibetan", "sk": "Slovak", "en": "English"},
        "sections": SECTIONS,
        "head": [
            {"measure": "accuracy", "of": {"posts": "with und"}},
            {"measure": "mean_recall", "of": {"posts": "with und", "labels": "all"}},
        ],
        "words": {"accuracy": [WORDS["naive"]], "recall_check": ["Labels that differ at the 5% level: 1 of 1."]},
        "reading": READING,
        "told": ["The predictor uses coarser labels: zh stands for zh-CN, zh-TW.", "Listed as vanished: 1,213."],
        "predictor": predictor(),
        "gold": [gold_set("all", "uniform"), gold_set("found", "recall", finished=False, predictor="mine@1")],
        "rows": [
            row("accuracy", {"posts": "with und"}, 0.934, 0.928, 0.939, 120575, 9021.7),
            row("accuracy", {"posts": "without und"}, 0.953, 0.948, 0.957, 111020, 8611.3),
            row("naive_accuracy", {"posts": "with und"}, 0.9701, 0.969, 0.971, 120575, 120575),
            row("naive_accuracy", {"posts": "without und"}, 0.982, 0.981, 0.983, 111020, 111020),
            row("mean_recall", {"posts": "with und", "labels": "all"}, 0.9123, note="mean over 2 languages and und"),
            row("mean_recall", {"posts": "without und", "labels": "all"}, 0.9234, note="mean over 2 languages"),
            row("mean_precision", {"posts": "with und", "labels": "all"}, 0.8765, note="mean over 2 languages"),
            of_label("recall", "bo", None, 0.0, 1.0, 0, 0, **few),
            of_label("recall", "cs", 0.971, 0.958, 0.982, 1204, 983.4),
            of_label("recall", "cy", 0.88, 0.86, 0.9, 1600, 1600),
            of_label("precision", "bo", None, 0.0, 1.0, 0, 0, **few),
            of_label("precision_without_und", "bo", None, 0.0, 1.0, 0, 0, **few),
            of_label("precision", "cs", 0.965, 0.95, 0.97, 1000, 1000),
            of_label("precision_without_und", "cs", 0.985, 0.97, 0.99, 979, 979),
            of_label("f1", "cs", 0.968, 0.957, 0.977, 1204, 990),
            of_label("recall_set", "cs", 0.97, 0.96, 0.98, 1600, 1600),
            of_label("uniform_set", "cs", 0.99, 0.985, 0.995, 2000, 812.5) | {"p": 0.0021, "p_holm": 0.0042},
            of_label("visible", "cs", 0.031),
            of_label("never_shown", "cs", 0.33, units=4000),
            of_label("posts_never_shown", "cs", 1320, units=4000),
            of_label("outside", "cs", None, units=4000),
            of_label("never_shown", "bo", None, units=0),
            of_label("posts_never_shown", "bo", 0, units=0),
            of_label("outside", "bo", 0, units=0),
            of_label("balanced_precision", "cs", 0.991, 0.98, 0.999, 1500, 1500),
            of_label("natural_precision", "cs", 0.7, 0.34, 0.957, 1500),
            of_label("balanced_precision", "cy", 0.9, 0.8, 0.95, 200, 200),
            of_label("vanished", "en", 1200),
            of_label("erased", "en", 0),
        ],
        "comparison": {
            "other": predictor("cld2", voted=True),
            "rows": [
                apart("accuracy", {"posts": "with und"}, 0.0138, 0.0021, 0.0255, p=0.1372, p_holm=0.1372)
                | {"note": "of 31,000 posts, only A is right on 420 and only B on 377"},
                apart("accuracy", {"posts": "without und"}, 0.0004, -0.0113, 0.0121),
                apart("recall", {"label": "cs"}, -0.081, -0.095, -0.067, 1700),
                apart("precision", {"label": "cs"}, 0.02, -0.011, 0.051),
            ],
        },
        "confusion": {
            "labels": ["cs", "en", "sk", "und"],
            "cells": [["cs", "cs", 1100.0], ["cs", "sk", 40.6], ["en", "en", 52000.0], ["und", "en", 17.0]],
            "weighted": True,
        },
        "warnings": ["The gold set found is unfinished: 77 of its posts still wait for people.", "Another one."],
    }


def languages(number):
    """As many languages as an article has, none of which exists."""
    return [f"q{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(number)]


@pytest.fixture
def large(report):
    """Sixty languages, each with its own note, whose names are long."""
    report["names"] = {code: f"A long name of {code}" for code in languages(60)}
    for part in (report, report["comparison"]):
        part["rows"] = [row for row in part["rows"] if "label" not in row["of"]] + [
            row | {"of": {"label": code}, "note": f"note on {code}"}
            for row in part["rows"]
            if row["of"].get("label") == "cs"
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


NUMBERS = (
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
)
SENTENCES = (
    "mine@2 against cld2, measured on",
    "mine@2: accuracy 93.4% [92.8, 93.9] on 120,575 posts; 1.4 points more than cld2 [0.2, 2.5].",
    "Compared with: cld2.",
    "A is mine@2 and B is cld2",
    "A minus B",
    "differ at the 5% level: 1 of 1",
    "Listed as vanished: 1,213.",
    "HYPOTHETICAL",
)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_all_numbers_and_begins_with_the_result_and_its_caveats(form, report):
    before = copy.deepcopy(report)
    written = form(report)
    assert [number for number in NUMBERS if number not in written.replace("&lt;", "<")] == []
    words = " ".join(written.split())
    assert [sentence for sentence in SENTENCES if sentence not in words] == []
    assert "has no label" not in words
    assert written.index("93.4%") < written.index("77 of its posts") < written.index("Another one")
    assert written.index("Another one") < written.index("Recall by label")
    # The output is the same twice, and the report is unchanged.
    assert form(report) == written
    assert report == before


@pytest.mark.parametrize("form", FORMS)
def test_what_a_report_lacks_is_not_mentioned_and_every_number_may_be_unmeasured(form, report):
    def words(**changes):
        return " ".join(form(copy.deepcopy(report) | changes).split())

    whole, comparison, confusion = form(report), report["comparison"], report["confusion"]
    counted = words(comparison=comparison | {"rows": comparison["rows"][2:3]})
    assert "of 1 figure by label, mine@2 is better in 0 and cld2 is better in 1" in counted
    assert "A minus B" not in words(
        comparison=comparison | {"rows": []}, confusion={"labels": [], "cells": [], "weighted": False}
    )
    assert "cld2" not in words(comparison=None)
    # Confusions name their unit, and each section is there for its measures.
    assert "weighted posts" in whole
    assert "weighted posts" not in words(confusion=confusion | {"weighted": False})
    for part in SECTIONS:
        rest = [row for row in report["rows"] if row["measure"] not in part["measures"]]
        assert len(form(report | {"rows": rest})) < len(whole) or part["slug"] in ("false_yes", "lone", "width")
    nothing = words(rows=[], comparison=None, confusion=None, warnings=[])
    assert "Predictions and gold sets" in nothing
    # No example is given that could be read as the result.
    assert "x% [a, b] is an estimate" in nothing
    assert not re.findall(r"\d% \[", nothing)
    lost = {"value": None, "low": None, "high": None, "p": None, "p_holm": None}
    for part in (report, comparison):
        part["rows"] = [row | {key: lost[key] for key in lost if key in row} for row in part["rows"]]
    assert "–" in form(report)


def test_the_sentence_turns_a_loss_round_and_says_if_neither_is_better(report):
    [main, *others] = report["comparison"]["rows"]

    def sentence(**changes):
        return evaluation_report.contents(
            report | {"comparison": report["comparison"] | {"rows": [main | changes, *others]}}
        ).sentence

    assert sentence(value=-0.024, low=-0.052, high=-0.004, better="second").endswith(
        "; 2.4 points less than cld2 [0.4, 5.2]."
    )
    assert sentence(value=0.004, low=-0.011, high=0.019, better=None).endswith(
        "; 0.4 points more than cld2 [−1.1, 1.9], so neither is shown to be better."
    )
    assert sentence(low=None, high=None, note="too few").endswith("; not compared with cld2 (too few).")
    # Without a main figure, the first measured one is stated, or that there are too few items.
    alone = report | {"comparison": None, "head": []}
    assert evaluation_report.contents(alone).sentence == "mine@2: accuracy 93.4% [92.8, 93.9] on 120,575 posts."
    assert evaluation_report.contents(alone | {"rows": []}).sentence == (
        "mine@2: too few items for a main figure (24690)."
    )


def test_a_caveat_is_one_line_with_the_rest_folded_and_the_plot_in_characters_has_a_line_for_each_system(report):
    report["warnings"] = ["It is unfinished. Disputed posts are harder.", "Alone."]
    source = as_html(report)
    assert "<summary>It is unfinished.</summary><p>Disputed posts are harder.</p></details>" in source
    assert "<summary>Alone.</summary></details>" in source
    assert "<summary>It is unfinished.</summary>\n\nDisputed posts" in as_markdown(report)
    assert "\n- Alone.\n" in as_markdown(report)
    # The plot in characters has a line for each system.
    report["comparison"]["other_rows"] = [row("accuracy", {"posts": "with und"}, 0.92, 0.912, 0.927, 120575)]
    lines = as_text(report).splitlines()
    [mine] = [line for line in lines if line.startswith("Accuracy: mine@2 ")]
    [other] = [line for line in lines if line.startswith("Accuracy: cld2 ")]
    assert "93.4% [92.8, 93.9]" in mine
    assert other.index("●") < mine.index("●")
    # A measure that only the first system has is shown with that alone.
    assert [line.split(":")[0] for line in lines if line.startswith("Macro recall: ")] == ["Macro recall"]


def test_tables_name_the_better_system_unless_the_printed_interval_touches_zero(report):
    def shown():
        tables = {section.slug: section.tables for section in evaluation_report.sections(report)}
        [whole], [recall] = tables["comparison"], tables["comparison-recall"]
        place = [column.key for column in whole.columns].index("better")
        return [row[place].shown for row in whole.rows], [cell.shown for cell in recall.rows[0]]

    # Over all posts mine@2 is better; without und neither is, and cld2 finds more Czech.
    better, recall = shown()
    assert better == ["mine@2", ""]
    assert "−8.1 [−9.5, −6.7]*" in recall
    for row in report["comparison"]["rows"]:
        row["high" if row["better"] == "second" else "low"] = -0.0004 if row["better"] == "second" else 0.0004
    better, recall = shown()
    assert better == ["", ""]
    assert "−8.1 [−9.5, 0.0]" in recall


PLAIN = ("kind", "measure", "measures", "plotted", "slug", "sections", "head", "reading", "unit")


def nasty(part):
    """Replace every word of a report that comes from files, people or other programs."""
    if isinstance(part, dict):
        return {
            NASTY if key in ("en", "cs") else key: value if key in PLAIN else nasty(value)
            for key, value in part.items()
        }
    if isinstance(part, list):
        return [nasty(value) for value in part]
    return NASTY if isinstance(part, str) else part


def test_no_text_is_taken_for_markup_or_for_a_command_of_the_terminal(report):
    tree = Tree(as_html(nasty(report)))
    assert "b" not in {tag for tag, _ in tree.seen}
    assert "<b>|*x*" in tree.text
    markdown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tree = Tree(markdown.render(as_markdown(nasty(report))))
    assert {tag for tag, _ in tree.seen} <= {
        *("h1", "h2", "p", "blockquote", "strong", "ol", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
        *("pre", "code", "details", "summary"),
    }
    assert "<b>|*x*_y_`z`[a](javascript:b) & \x1b[31m # c" in tree.text
    assert "\\" not in as_markdown(report | {"comparison": None})  # no more is escaped than must be
    assert all(letter.isprintable() or letter == "\n" for letter in as_text(nasty(report)))


def test_the_rows_of_a_markdown_table_have_as_many_cells_as_its_head(large):
    for source in (as_markdown(large), as_markdown(nasty(large))):
        blocks = re.findall(r"(?:^\|.*\n)+", source, re.MULTILINE)
        assert len(blocks) >= 10
        for block in blocks:
            rows = [len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()]
            assert len(set(rows)) == 1, block
            assert re.fullmatch(r"\|(-{3}:?\|)+", block.splitlines()[1])


@pytest.mark.parametrize("wide", ["precision-oriented-set-of-july-2014-by-three-readers", "日本語のデータセット" * 6])
def test_the_terminal_needs_a_hundred_columns_whatever_the_names(large, wide):
    large["gold"] = [gold_set(wide, "uniform", folder_name=wide, predictor=wide)]
    large["warnings"] = [f"{wide} " * 9]
    lines = as_text(large).splitlines()
    columns = [sum(2 if east_asian_width(letter) in "WF" else 1 for letter in line) for line in lines]
    assert max(columns) <= WIDTH


def test_tables_are_in_the_order_of_the_rows_pictures_in_that_of_the_values_and_a_note_stands_once(report):
    codes = re.findall(r"^(bo|cs|cy) .*\d", as_text(report), re.MULTILINE)
    assert codes[:3] == ["bo", "cs", "cy"]
    assert re.search(r"^found .*\bunfinished\b", as_text(report), re.MULTILINE)  # an unfinished set is marked
    plot = next(svg for svg in svgs(as_html(report)) if "<title>Recall by label</title>" in svg)
    assert re.findall(r">(bo|cs|cy)<", plot) == ["cs", "cy", "bo"]
    # A note appears once below a terminal's table, with its languages.
    for row in report["rows"]:
        if row["measure"] == "recall":
            row["note"] = "drawn from few authors" if row["of"]["label"] != "bo" else "no posts"
    lines = as_text(report).splitlines()
    assert "* cs, cy: drawn from few authors" in lines
    assert "* bo: no posts" in lines


def svgs(source):
    return re.findall(r"<svg xmlns.*?</svg>\n", source, re.DOTALL)


def test_every_picture_is_xml_and_the_html_is_well_formed_fetches_nothing_and_runs_nothing(large):
    source = as_html(large)
    tree = Tree(source)
    assert not {tag for tag, _ in tree.seen} & {"script", "link", "img", "iframe", "object", "embed", "use", "image"}
    for _, attributes in tree.seen:
        assert not {"src", "srcset", "style", "onload", "onclick"} & attributes.keys()
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in source
    assert "@import" not in source
    assert re.findall(r'https?://[^"\s<]+', source.replace("http://www.w3.org/2000/svg", "")) == []
    assert len(svgs(source)) >= 8
    assert source.count("<details>") >= 5  # long tables are folded
    # Without measurements there are no plots.
    assert "<title>Recall by label, part 2</title>" in source
    for row in [row for row in large["rows"] if row["measure"] == "recall"][21:]:
        row |= {"value": None, "low": 0.0, "high": 1.0}
    assert "<title>Recall by label, part 2</title>" not in as_html(large)
    for svg in svgs(source):
        ElementTree.fromstring(svg)


def test_each_figure_leads_to_its_method_at_the_end_of_the_file(report):
    source = as_html(report)
    linked = dict(re.findall(r'<th scope="col" class="number"><a href="#(row-[^"]*)">([^<]*)</a>', source))
    assert linked["row-difference-of-two-systems"] == "A minus B"
    assert linked.keys() >= {"row-recall", "row-precision"}
    assert '<a href="#row-accuracy">accuracy</a>' in source
    listed = re.findall(r'<li id="(row-[^"]*)">', source)
    assert set(re.findall(r'href="#(row-[^"]*)"', source)) <= set(listed)
    assert len(set(listed)) == len(listed)
    assert "- Recall: recall\n" in as_markdown(report)
    # The contents lead to the sections.
    tree = Tree(source)
    targets = {link["href"][1:] for tag, link in tree.seen if tag == "a" and not link["href"].startswith("#row-")}
    assert targets == {attributes["id"] for tag, attributes in tree.seen if tag == "section"}
    assert len(targets) == 15


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_a_phone_and_asks_no_server(browser, large, tmp_path, scheme):
    file = tmp_path / "report.html"
    file.write_text(as_html(large), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    requests, messages = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (requests, messages) == ([file.as_uri()], [])
    assert page.locator("#recall .plot-wide").first.is_hidden()
    assert page.locator("#accuracy .scroll").evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    page.close()
