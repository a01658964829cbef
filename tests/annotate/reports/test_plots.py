"""The plots: what they show, valid XML, and legible text."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from annotate.figures.progress_report import since_plot
from annotate.reports.evaluation_report import confused_labels, top_confusions
from annotate.reports.numbers import count, estimate, p_value, percent
from annotate.reports.plots import (
    ON_ACCENT,
    Mark,
    Moment,
    Parts,
    Row,
    Span,
    axis_of,
    columns,
    forest,
    ranges,
    stacked,
    whole_axis,
)
from annotate.reports.square_plots import SHADES, heat_map
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import NUMBER, Column, table
from tests.running import ROOT

SVG = "{http://www.w3.org/2000/svg}"
STYLES = ROOT / "annotate" / "static" / "annotate" / "assay.css"
CZECH = Row("cs", "Czech", (Mark(0.971, 0.958, 0.982, 1204),))
WELSH = Row("cy", "Welsh", (Mark(0.93, 0.9, 0.95, 983.4),))
NASTY = '<b onload="x">&amp; "\x00\x1b\ud800'


def parsed(plot):
    return ElementTree.fromstring(plot.encode())


def texts(plot):
    return [element.text for element in parsed(plot).iter(f"{SVG}text")]


def circles(plot):
    return [circle.attrib["cx"] for circle in parsed(plot).iter(f"{SVG}circle")]


def test_a_forest_is_a_picture_with_a_title_of_each_number_with_its_interval_and_count_in_the_order_of_the_rows():
    plot = forest([WELSH, CZECH, Row("bo", "Tibetan", (Mark(None),)), Row("dv", "", (None,))], title="Recall")
    words = texts(plot)
    assert {"cs", "Czech", "1,204", "97.1 [95.8, 98.2]", "cy", "≈983", "93.0 [90.0, 95.0]"} <= set(words)
    assert words.index("cy") < words.index("cs")
    assert (len(circles(plot)), words.count("not measured")) == (2, 2)
    for picture in (
        forest([CZECH], title="Recall"),
        heat_map(["cs"], [["cs", "cs", 1]], title="Recall", predicted="predicted"),
    ):
        root = parsed(picture)
        assert root.attrib["role"] == "img"
        assert (root[0].tag, root[0].text) == (f"{SVG}title", "Recall")
        # It needs no more than a strict content security policy.
        for forbidden in (" style=", "<style", "<script", "href=", "url(", " on"):
            assert forbidden not in picture
    for empty in (forest([], title="a"), heat_map([], [], title="c", predicted="by x")):
        assert parsed(empty).tag == f"{SVG}svg"


def test_a_dot_stands_where_its_value_is_and_an_axis_or_interval_that_is_cut_says_so():
    whole, zoomed = (forest([CZECH], title="Recall", axis=axis) for axis in ((0, 100), (90, 100)))
    assert (circles(whole), circles(zoomed)) == (["97.1%"], ["71%"])
    assert not [text for text in texts(whole) if "axis" in text]
    assert "The axis starts at 90%, not at 0." in texts(zoomed)
    assert "The axis ends at 10%, not at 100%." in texts(forest([CZECH], title="Error", axis=(0, 10)))
    wide = Row("bo", "Tibetan", (Mark(0.95, 0.4, 1.0, 3),))
    arrows = [len([*parsed(forest([wide], title="Recall", axis=(low, 100))).iter(f"{SVG}path")]) for low in (90, 0)]
    assert arrows == [1, 0]


def test_two_series_are_told_apart_by_a_full_and_a_hollow_dot_and_named():
    row = Row("cs", "Czech", (Mark(0.97, 0.95, 0.98, 10), Mark(0.99, 0.98, 1.0, 9)))
    plot = forest([row], title="Precision", series=("with und", "without und"))
    assert {"with und", "without und", "97.0 [95.0, 98.0]", "99.0 [98.0, 100.0]"} <= set(texts(plot))
    fills = [circle.attrib["fill"] for circle in parsed(plot).iter(f"{SVG}circle")]
    assert fills[:2] == fills[2:]  # legend and row
    assert len(set(fills)) == 2


@pytest.mark.parametrize(
    ("marks", "axis"),
    [
        ([Mark(0.99, 0.97, 1.0), Mark(0.96, 0.952, 0.97)], (95, 100)),
        ([Mark(0.99, 0.98, 1.0), Mark(0.955, 0.94, 0.97)], (90, 100)),
        ([Mark(0.99, 0.98, 1.0), Mark(0.2, 0.1, 0.4)], (0, 100)),
        ([Mark(0.01, 0.0, 0.02), Mark(0.04, 0.03, 0.05)], (0, 5)),
        ([Mark(0.1, 0.0, 0.3), None], (0, 30)),
        ([Mark(None), None], (0, 100)),
        ([], (0, 100)),
    ],
)
def test_the_axis_is_zoomed_to_where_the_values_are(marks, axis):
    assert axis_of([Row("xx", "", (mark,)) for mark in marks]) == axis


def test_no_value_is_outside_of_the_axis_and_few_intervals_are():
    for low in range(100):
        marks = [Mark(share / 100, max(0, share - 30) / 100, 1.0) for share in range(low, 101)]
        start, end = axis_of([Row("xx", "", (mark,)) for mark in marks])
        assert all(start / 100 <= mark.value <= end / 100 for mark in marks)
        assert sum(mark.low < start / 100 for mark in marks) <= 0.1 * len(marks)


def test_plots_escape_all_their_texts_and_stay_xml():
    row = Row(NASTY, NASTY, (Mark(0.5, 0.4, 0.6, 3), Mark(0.5, 0.4, 0.6, 3)))
    for plot in (
        forest([row], series=(NASTY, NASTY), counted=NASTY, title=NASTY),
        heat_map([NASTY], [(NASTY, NASTY, 1), (NASTY, "de", 1)], predicted=NASTY, title=NASTY),
    ):
        root = parsed(plot)
        assert not list(root.iter(f"{SVG}b"))
        assert root[0].text == '<b onload="x">&amp; "���'


CELLS = [
    ("cs", "cs", 900.0),
    ("cs", "sk", 12.4),
    ("sk", "sk", 500.0),
    ("sk", "cs", 40.0),
    ("und", "cs", 13.0),
    ("de", "nl", 0.0),
    ("en", "en", 9000.0),
    ("en", "und", 1.0),
]


def test_the_commonest_confusions_come_first_and_what_is_right_never():
    assert top_confusions(CELLS, 3) == [("sk", "cs", 40.0), ("und", "cs", 13.0), ("cs", "sk", 12.4)]
    assert top_confusions([list(cell) for cell in CELLS], 99)[-1] == ("en", "und", 1.0)
    assert confused_labels(CELLS, 2) == ["cs", "sk"]
    assert confused_labels(CELLS, 9) == ["cs", "en", "sk", "und"]
    assert confused_labels([("cs", "cs", 1.0)], 9) == []


def test_a_small_heat_map_has_its_numbers_in_the_cells_and_the_rest_as_others():
    plot = heat_map(["cs", "sk"], CELLS, title="Confusions", predicted="by x")
    assert {"900", "12", "500", "40", "13", "9,001", "others"} <= set(texts(plot))
    tooltips = [title.text for title in parsed(plot).iter(f"{SVG}title")]
    assert "cs predicted as sk: ≈12, 1.4% of cs" in tooltips
    assert "cs, correct: 900, 98.6% of cs" in tooltips
    assert "labels that are not shown, correct or not: 9,001, 99.9% of others" in tooltips
    # The cells include all posts.
    plot = heat_map(["cs"], [(gold, label, 1.0) for gold, label, _ in CELLS], title="Confusions", predicted="by x")
    tooltips = [title.text for title in parsed(plot).iter(f"{SVG}title")][1:]
    assert sum(int(re.search(r": (\d+), ", tooltip)[1]) for tooltip in tooltips) == len(CELLS)


def test_long_labels_of_a_small_heat_map_stand_upright_so_that_they_do_not_overlap():
    def upright(labels):
        plot = parsed(heat_map(labels, [(labels[0], labels[1], 1.0)], title="Confusions", predicted="by x"))
        return [node.text for node in plot.iter(f"{SVG}text") if "rotate" in node.get("transform", "")]

    assert upright(["positive", "negative", "neutral"]) == ["positive", "negative", "neutral"]
    assert upright(["de", "en"]) == []


def test_a_heat_map_of_seventy_labels_keeps_its_numbers_in_tooltips():
    labels = [f"l{number:02}" for number in range(70)]
    cells = [(label, label, 100.0) for label in labels] + [("l03", "l69", 7.0)]
    plot = heat_map(labels, cells, title="Confusions", predicted="by x")
    assert "100" not in texts(plot)
    assert "l03 predicted as l69: 7, 6.5% of l03" in plot
    assert texts(plot).count("l03") == 2
    assert float(parsed(plot).attrib["width"]) < 920  # a desktop shows it without scrolling


def test_what_is_right_has_no_shade_and_rare_errors_have_one():
    plot = heat_map(["cs", "sk"], [("cs", "cs", 99_999.0), ("cs", "sk", 1.0)], title="Confusions", predicted="by x")
    right, wrong = (group.find(f"{SVG}rect").attrib for group in list(parsed(plot).iter(f"{SVG}g"))[:2])
    assert right["fill"] == "none"
    assert float(wrong["fill-opacity"]) == SHADES[0][1] > 0.1


def luminance(colour):
    def linear(part):
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    return sum(weight * linear(part) for weight, part in zip((0.2126, 0.7152, 0.0722), colour, strict=True))


def contrast(one, other):
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_numbers_on_every_shade_can_be_read_in_light_and_dark(mode):
    both = re.findall(r"--([a-z-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)", STYLES.read_text(encoding="utf-8"))
    colours = {name: tuple(int(digits[mode][n : n + 2], 16) / 255 for n in (0, 2, 4)) for name, *digits in both}
    for _, opacity, ink in SHADES:
        shade = [
            opacity * accent + (1 - opacity) * paper
            for accent, paper in zip(colours["accent"], colours["paper"], strict=True)
        ]
        letters = colours["on-accent" if ink == ON_ACCENT else "ink"]
        assert contrast(shade, letters) >= 4.5
    assert contrast(colours["paper"], colours["quiet"]) >= 4.5
    assert contrast(colours["paper"], colours["accent"]) >= 4.5


def test_numbers_are_written_so_that_they_say_neither_too_much_nor_too_little():
    shares, counts = (1, 0.99996, 0.971, 0.0004, 0, None), (1234, 1234.0, 120575.1, 3.25, 0.1 + 0.2 + 0.7, None)
    assert [*map(percent, shares)] == ["100.0%", ">99.9%", "97.1%", "<0.1%", "0.0%", "–"]
    assert [*map(count, counts)] == ["1,234", "1,234", "≈120,575", "≈3.2", "1", "–"]
    assert [*map(p_value, (1e-9, 0.0312, 1.0, None))] == ["<0.001", "0.031", "1.000", "–"]
    assert estimate({"value": 0.971, "low": 0.958, "high": 0.982}) == "97.1% [95.8, 98.2]"
    assert estimate({"value": None, "low": 0.0, "high": 1.0}) == estimate(None) == "–"


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("de", ["de"]),
        ("Annotator", ["Annotator"]),
        ("Annotator 117", ["Annotator 117", "Annot…r 117"]),
        ("Wolfeschlegelsteinhausen Bergerdorff", ["Wolfeschlege…Bergerdorff", "Wolfe…dorff"]),
    ],
)
def test_a_long_name_keeps_both_its_ends_and_has_a_shorter_form_for_narrow_pages(label, shown):
    plot = forest([Row(label, "", (Mark(0.5, 0.4, 0.6),))], title="Recall")
    heads = re.findall('<text[^>]*font-weight="600"[^>]*>([^<]+)</text>', plot)
    assert heads == shown
    assert [len(words) <= most for words, most in zip(shown, (24, 11), strict=False)] == [True] * len(shown)
    # Without a style sheet, only one of them shows.
    assert len(heads) - plot.count('display="none"') == 1
    # Rows whose names begin and end alike stay distinct on a phone.
    names = ["with und all labels", "without und all labels", "with und 30+ posts", "without und 30+ posts"]
    plot = forest([Row(name, "", (Mark(0.5, 0.4, 0.6),)) for name in names], title="Means")
    narrow = [words for words in re.findall('class="plot-narrow"[^>]*>([^<]+)<', plot) if "…" in words]
    assert len({*narrow}) == len(names)
    assert all(len(words) <= 11 for words in narrow)


def test_a_narrow_page_shows_the_name_of_a_row_in_place_of_its_code():
    long = Row("pcm", "Nigerian Pidgin", (Mark(0.5, 0.4, 0.6),))
    heads = {
        (node.attrib["class"], node.text)
        for node in parsed(forest([CZECH, long], title="Recall")).iter(f"{SVG}text")
        if node.text in ("cs", "Czech", "pcm", "Nigerian Pidgin", "Niger…idgin")
    }
    assert heads == {
        *(("plot-wide", words) for words in ("cs", "Czech", "pcm", "Nigerian Pidgin")),
        *(("plot-narrow", words) for words in ("Czech", "Niger…idgin")),
    }


def test_the_axis_reaches_below_0_where_a_value_does():
    below = Row("en", "English", (Mark(-0.3, -0.5, 0.1),))
    assert [axis_of([row]) for row in (below, CZECH)] == [(-50, 100), (95, 100)]
    assert whole_axis([below, Row("cs", "", (Mark(0.2, -0.6, 0.6), None))]) == (-100, 100)
    assert whole_axis([CZECH, Row("bo", "", (Mark(None),))]) == (0, 100)
    plot = forest([below], title="Alpha", axis=whole_axis([below]), decimals=True)
    assert circles(plot) == ["13.33%"]
    assert "−0.30 [−0.50, 0.10]" in texts(plot)
    assert [words for words in texts(plot) if words in ("−0.5", "0", "0.5", "1")] == ["−0.5", "0", "0.5", "1"]
    assert not [words for words in texts(plot) if "axis" in words]


def test_rows_that_a_terminal_has_no_room_for_can_be_told_apart_and_an_empty_column_takes_none():
    columns = (Column("of", "of"), *(Column(f"n{n}", "a" * 20, NUMBER) for n in range(4)))
    slices = ("agreement among people all agree", "agreement among people most agree", "language de")
    rows = [{"of": of} | {f"n{n}": "1" for n in range(4)} for of in slices]
    lines = as_lines(table("rows", columns, rows)).splitlines()[1:]
    assert len({line[:14].strip() for line in lines}) == 3
    assert max(map(len, lines)) <= 100
    columns = Column("of", "of"), Column("stuck", ""), Column("n", "units", NUMBER)
    lines = as_lines(table("rows", columns, [{"of": "de", "stuck": "", "n": "1"}])).splitlines()
    assert [line.split() for line in lines] == [["of", "units"], ["de", "1"]]


def test_stacked_bars_are_as_long_as_their_counts_and_name_the_parts_that_there_are():
    plot = parsed(
        stacked([Parts("de", "German", (30, 0, 10)), Parts("en", "English", (10, 0, 0))], ["a", "b", "c"], title="x")
    )
    assert {"de", "German", "40"} <= {node.text for node in plot.iter(f"{SVG}text")}
    widths = [bar.attrib["width"] for bar in plot.iter(f"{SVG}rect") if bar.attrib["width"].endswith("%")]
    assert widths == ["75%", "25%", "25%"]
    assert "German: 30 a, 10 c" in [node.text for node in plot.iter(f"{SVG}title")]


def test_columns_over_time_reach_as_high_as_their_counts():
    plot = parsed(columns([Moment("01", "one", 5), Moment("", "two", 0), Moment("03", "three", 10)], title="x"))
    heights = [float(node.attrib["height"]) for node in plot.iter(f"{SVG}rect") if node.attrib.get("fill")]
    assert heights == [80, 0, 160]
    assert [node.text for node in plot.iter(f"{SVG}text")] == ["10", "0", "01", "03"]
    assert parsed(columns([], title="nothing")) is not None
    # A long number stands above its line and begins at the edge.
    plot = parsed(columns([Moment("", "a week", 21317)], title="x"))
    [number] = [node for node in plot.iter(f"{SVG}text") if node.text == "21,317"]
    [line, *_] = plot.iter(f"{SVG}line")
    assert (number.get("x"), number.get("text-anchor")) == ("0%", None)
    assert float(number.get("y")) < float(line.get("y1"))


@pytest.mark.parametrize("hours", [1, 3, 7, 72])
def test_the_ticks_over_time_have_room_on_a_phone(hours):
    start = datetime(2026, 11, 26, 10, tzinfo=UTC)
    since = [{"at": start + timedelta(hours=number), "answers": number} for number in range(hours)]
    plot = parsed(since_plot({"since": since, "cut": "hour"}))
    ticks = [node for node in plot.iter(f"{SVG}text") if ":00" in node.text]
    letters = 7 / 320  # of the width of a phone, the widest there are
    places = [(float(node.get("x").rstrip("%")) / 100, letters * len(node.text) / 2) for node in ticks]
    assert places
    assert all(half <= x + 1e-4 and x + half <= 1 + 1e-4 for x, half in places)
    assert all(x + half < after - other for (x, half), (after, other) in pairwise(places))


def test_ranges_stand_where_their_quartiles_are():
    plot = parsed(ranges([Span("de", "German", 2.0, 5.0, 9.0, 30)], title="x"))
    labels = [node.text for node in plot.iter(f"{SVG}text")]
    assert labels[:7] == ["median (quartiles)", "0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]
    (dot,) = plot.iter(f"{SVG}circle")
    assert dot.attrib["cx"] == "46%"
    assert "5.0 (2.0–9.0)" in labels
    for most in (0.0, 0.04, 7.0, 123.0, 99_999.0):
        assert parsed(ranges([Span("x", "", 0.0, most / 2, most, 1)], title="x")) is not None
