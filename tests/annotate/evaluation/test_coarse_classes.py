"""Predictors and sets with labels that stand for several, such as zh."""

import pytest

from annotate.core.estimation.proportions import jeffreys
from annotate.evaluation.subjects import EvaluationError
from annotate.reports.report_renderer import as_text
from corpora.core import CorpusError
from tests.annotate.evaluation.figures import by_label, close, interval, means, measures_of, run, values


def test_a_predictor_that_says_zh_is_right_on_both_scripts(world):
    folder, _ = world.uniform(
        [(3, "", "disputed", "zh-CN", "zh"), (1, "", "disputed", "zh-TW", "zh"), (1, "", "disputed", "zh-TW", "ja")]
    )
    report = run(world.subject(mapping={"zh": ("zh-CN", "zh-TW")}), folder)
    assert values(report, "recall") == {"zh": close("4/5")}
    assert values(report, "precision") == {"ja": 0, "zh": 1}
    assert by_label(report, "recall")["zh"]["note"] == "zh-CN, zh-TW taken together"


def test_a_predictor_that_tells_the_scripts_apart_is_right_where_chinese_was_asked(world):
    folder, _ = world.verify("precision", "zh", [(3, "zh", "zh-CN"), (2, "zh", "zh-TW"), (1, "not-zh", "zh-TW")])
    report = run(world.subject("cld2", built_in=True), folder)
    assert interval(by_label(report, "precision")["zh"]) == jeffreys(5, 6)


def test_what_was_asked_about_one_script_says_nothing_of_the_precision_of_both(world):
    folder, _ = world.verify("precision", "zh-CN", [(3, "zh-CN", "zh"), (2, "not-zh-CN", "zh")], predictor="mine@1")
    report = run(world.subject(mapping={"zh": ("zh-CN", "zh-TW")}), folder)
    assert "precision" not in measures_of(report)
    assert "left out of precision: zh, of which zh-CN was asked" in report["warnings"][0]


UNSEEN = ("never_shown", "posts_never_shown", "outside")


@pytest.fixture
def southern(world):
    """A stream whose Croatian and Serbian are told apart, and a set that asked about both together."""
    table = [(6, "", "disputed", "hr", "hr"), (2, "", "disputed", "hr", "sr"), (4, "", "disputed", "sr", "sr")]
    stream, _ = world.uniform([*table, (1, "", "disputed", "de", "hr")])
    asked = [(3, "sh", "hr"), (2, "sh", "sr"), (1, "not-sh", "bs"), (4, "not-sh", "sl")]
    drawn, _ = world.verify("precision", "sh", asked, predictor="fasttext")
    return stream, drawn


def test_a_set_that_asked_about_a_coarse_code_changes_no_figure_of_posts_that_others_read(world, southern):
    stream, drawn = southern
    alone, both = run(world.subject(), stream), run(world.subject(), stream, drawn)
    asked = [row for row in both["rows"] if row["of"].get("label") == "sh"]
    assert [row for row in both["rows"] if row not in asked] == alone["rows"]
    assert both["confusion"] == alone["confusion"]
    rows = by_label(both, "precision")
    assert {row["measure"] for row in asked} == {"precision", "precision_without_und", *UNSEEN}
    assert interval(rows["sh"]) == jeffreys(5, 6)
    assert "bs, hr, sr taken together on posts where people used sh, and nowhere else" in rows["sh"]["note"]
    assert not [warning for warning in both["warnings"] if "takes labels together" in warning]
    [(label, row)] = by_label(both, "posts_never_shown").items()
    assert (label, row["units"], row["value"]) == ("sh", 13, 0)  # counted by all of its labels


def test_a_recall_set_labelled_with_a_coarse_code_has_a_row_of_its_own(world, southern):
    stream, _ = southern
    folder, _ = world.verify("recall", "sh", [(3, "sh", "hr"), (2, "sh", "bs"), (1, "sh", "sl")])
    alone, both = run(world.subject(), stream), run(world.subject(), stream, folder)
    rows = by_label(both, "recall")
    assert interval(rows.pop("sh")) == jeffreys(5, 6)
    assert rows == by_label(alone, "recall")
    assert means(both, "recall") == means(alone, "recall")


def test_a_coarse_code_in_a_balanced_stream_is_taken_for_any_of_its_labels(world):
    south, _ = world.verify("recall", "sh", [(9, "sh", "hr"), (1, "sh", "sl")])
    croatian, _ = world.verify("recall", "hr", [(10, "hr", "sr")])
    german, _ = world.verify("recall", "de", [(9, "de", "de"), (1, "de", "sr")])
    found = values(run(world.subject(), south, croatian, german, balanced=True), "balanced_precision")
    # All ten Croatian posts are found as such: 19 of 20, against one of ten German ones.
    assert found["sh"] == close("19/21")
    assert found["de"] == 1


def test_a_comparison_takes_labels_together_for_itself_alone_and_says_so(world, southern):
    stream, _ = southern
    coarse = world.subject("coarse", said=dict.fromkeys(world.said, "sh"), mapping={"sh": ("bs", "hr", "sr")})
    alone, both = run(world.subject(), stream), run(world.subject(), stream, against=coarse)
    assert both["rows"] == alone["rows"]
    assert both["comparison"]["together"] == {"sh": ["bs", "hr", "sr"]}
    assert "are taken together: bs, hr, sr as sh." in " ".join(as_text(both).split())


def test_a_class_with_only_some_labels_of_a_code_that_was_asked_is_refused(world, southern):
    with pytest.raises(EvaluationError, match="The class south of a predictor has sl besides labels of sh"):
        run(world.subject(mapping={"south": ("hr", "sl")}), *southern)


def test_a_label_of_two_classes_is_refused(world, stream):
    one, two = {"one": ("de", "nl")}, {"two": ("de", "af")}
    with pytest.raises(CorpusError, match="The label de is in two classes, one and two; declare it in one"):
        run(world.subject(mapping=one), stream, against=world.subject("other", mapping=two))
