"""Recall and precision on the sets that were drawn for them, held to tables that were worked out by hand."""

import shutil
from dataclasses import replace

import pytest

from annotate.core.estimation.differences import detectable_difference, difference, mcnemar
from annotate.core.estimation.label_errors import false_among
from annotate.core.estimation.proportions import UNKNOWN, Guess, Stratum, Turn, jeffreys, proportion, stratified
from annotate.evaluation import metrics, unread_triggers
from annotate.evaluation.subjects import EvaluationError
from annotate.evaluation.uniform import Cell, Uniform
from annotate.goldsets.gold_set import read_gold_set
from annotate.models import Task
from annotate.reports.report_renderer import as_markdown
from tests.annotate.evaluation.figures import (
    accuracy,
    by_label,
    close,
    figures,
    interval,
    means,
    measures_of,
    run,
    values,
)

pytestmark = pytest.mark.slow


# The stratum agreed to be English, where German may be missed.
ENGLISH = Stratum(20, 10, 0, 0, Guess(0, 0, (Turn(1, 0, 20, 10, 0),)))


def test_a_recall_set_with_an_unknown_reach_represents_only_the_posts_of_its_authors(world, stream):
    shared = [("stream-0", "de"), ("stream-1", "de"), ("stream-86", "de")]  # two audited, one disputed that is missed
    folder, _ = world.verify("recall", "de", [(15, "de", "de"), (5, "de", "nl"), (2, "not-de", "de")], shared=shared)
    alone = run(world.subject(), folder)
    assert alone["gold"][0]["rows"] == 23  # those that are not German are not exported
    german = by_label(alone, "recall")["de"]
    assert (german["value"], german["units"]) == (close("17/23"), 23)
    assert interval(german) == jeffreys(17, 23)
    assert german["note"] == "the rate of false Yes answers is unknown because no decoy was answered"
    assert means(alone, "recall") == [("without und", close("17/23"), "1 language")]
    both = run(world.subject(), folder, stream)
    assert both["words"]["recall"][0].startswith("Measured on the recall set and uniform set")
    beside = by_label(both, "recall")["de"]
    assert beside | {"note": german["note"]} == german
    assert beside["note"].startswith("covers only posts by the drawn authors; their share of the language is unknown")
    assert detectable_difference(proportion(900, 1000), proportion(90, 100)) == pytest.approx(0.0884, abs=0.0005)
    assert detectable_difference(proportion(900, 1000), UNKNOWN) is None
    # Where there is one kind only, it stands alone.
    assert by_label(both, "recall")["en"]["value"] == close("28/32")


def stream_of(inside, outside):
    """A uniform set in which all was read. inside, outside: (posts in German, hits) by the authors, and by others."""
    posts = {}
    for place, (german, hits) in (("inside", inside), ("outside", outside)):
        for number in range(german):
            posts[f"{place}-{number}"] = Cell("", "", True, "de", "de" if number < hits else "nl")
    return Uniform(posts), {key for key in posts if key.startswith("inside")}


def set_of(posts, hits):
    return {f"set-{number}": "de" if number < hits else "nl" for number in range(posts)}


def recall_of_both(inside, outside, hits=950):
    """Recall of German on a uniform set and on a recall set of 1,000 posts, and its parts."""
    uniform, reached = stream_of(inside, outside)
    both = metrics.recall("de", uniform, {"de": set_of(1000, hits)}, {"de": reached})
    return both, metrics.two_frames("de", uniform, set_of(1000, hits), reached)


def test_recall_is_that_of_both_sets_within_the_reach_and_of_the_uniform_one_elsewhere():
    recall, parts = recall_of_both((60, 57), (40, 32))
    assert recall.estimate.value == pytest.approx(0.6 * 1007 / 1060 + 0.4 * 32 / 40)
    assert recall.posts == 1100
    assert recall.estimate.low < 0.85 < 0.9 < recall.estimate.high < 0.94
    assert tuple(figure.estimate.value for figure in (parts.part, parts.inside, parts.outside)) == (0.6, 0.95, 0.8)
    # What nobody knows of posts out of reach is anything, and sets that differ within it give no estimate.
    recall, parts = recall_of_both((30, 29), (0, 0))
    assert parts.part.estimate.value == 1
    assert recall.estimate.low <= parts.part.estimate.low * 0.95 + 0.001
    assert recall_of_both((60, 30), (40, 32))[0].estimate.value is None


def test_recall_on_both_kinds_of_sets_is_tested_for_a_difference_corrected_for_the_number_of_tests(world, stream):
    german, _ = world.verify("recall", "de", [(60, "de", "de"), (40, "de", "nl")])
    english, _ = world.verify("recall", "en", [(28, "en", "en"), (4, "en", "nl")])
    french, _ = world.verify("recall", "fr", [(9, "fr", "fr")])
    report = run(world.subject(), stream, german, english, french)
    rows = by_label(report, "uniform_set")
    assert set(rows) == {"de", "en"}  # the uniform set has no French
    agreed = Stratum(60, 30, 27, 27, Guess(60, 60, (Turn(-1, -1, 60, 30, 3),)))
    on_uniform = stratified([agreed, ENGLISH, Stratum(20, 20, 8, 6)])
    assert rows["de"]["p"] == difference(proportion(60, 100), on_uniform)
    assert rows["de"]["p_holm"] == 2 * rows["de"]["p"] < 0.05 < rows["en"]["p_holm"]
    assert (rows["de"]["note"], rows["en"]["note"]) == ("the two recalls differ", "")
    assert "Labels that differ at the 5% level: 1 of 2." in report["words"]["recall_check"][0]
    assert by_label(report, "recall_set")["de"]["units"] == 100
    assert rows["de"]["units"] == 35
    assert "recall_set" not in measures_of(run(world.subject(), german))
    # Posts of the uniform set with a place are a third sample, and all tests are corrected together.
    placed = [row.id for row in read_gold_set(stream).rows if row.label == "de"][::2]
    placed_report = run(world.subject(), stream, german, english, french, placed=placed)
    third = by_label(placed_report, "placed_set")
    assert set(third) == {"de"}
    assert 0 < third["de"]["units"] < rows["de"]["units"]
    assert by_label(placed_report, "uniform_set")["de"]["value"] == rows["de"]["value"]
    assert by_label(placed_report, "uniform_set")["de"]["p_holm"] == 3 * rows["de"]["p"]
    assert " of 3." in placed_report["words"]["recall_check"][0]


def test_false_yes_moves_the_ends_of_recall_and_of_precision():
    assert false_among(0, 0, 100, 50) == false_among(50, 0, 0, 50) == 0
    share = false_among(100, 5, 1000, 500)
    rate = jeffreys(5, 100)[1]
    assert share == pytest.approx(rate / (1 - rate) / 2)
    plain, widened = (metrics.recall_on_recall_set(set_of(1000, 900), "de", false) for false in (0.0, share))
    assert widened.estimate.value == plain.estimate.value
    assert widened.estimate.low < (0.9 - share) / (1 - share) + 0.001
    assert widened.estimate.high > 0.9 / (1 - share) - 0.001 > plain.estimate.high
    shown = {"de": {str(number): "de" if number < 90 else "not-de" for number in range(100)}}
    surer, unsure = (
        metrics.precision("de", None, shown, with_und=True, false_yes=false).estimate for false in (0.0, 0.1)
    )
    assert (unsure.value, unsure.high) == (surer.value, pytest.approx(surer.high))
    assert unsure.low < 0.81 < surer.low


def test_the_decoys_of_an_exported_set_reach_its_figures(world, person, judged):
    table = [(60, "de", "de"), (10, "de", "nl"), (30, "not-de", "de")]
    folder, _ = world.verify("recall", "de", table)
    without = run(world.subject(), folder)
    plain = by_label(without, "recall")["de"]
    folder, keys = world.verify("recall", "de", table, name="tempted")
    task = Task.objects.get(name="tempted")
    reader = person("reader", "de")
    for unit in task.units.filter(label="not-de")[:10]:
        unit.known_answer = "not-de"
        unit.save()
        judged(reader, unit, "de" if unit.item.key == keys[-1] else "not-de")
    shutil.rmtree(folder)
    report = run(world.subject(), world.export(task))
    corrected = by_label(report, "recall")["de"]
    assert corrected["value"] == plain["value"]
    assert corrected["low"] < plain["low"]
    assert "of its Yes answers may be false" in corrected["note"]
    assert not [row for row in report["rows"] if "false_yes" in row["of"]]
    # Without decoys the same set does not seem surer: beside its interval stands what false Yes would make of it.
    assert plain["note"] == "the rate of false Yes answers is unknown because no decoy was answered"
    two, five = (figures(without, "recall", label="de", false_yes=share) for share in ("2%", "5%"))
    assert five["low"] < two["low"] < plain["low"]
    assert five["high"] > two["high"] > plain["high"]
    assert "Effect of false Yes answers" in as_markdown(without)


def test_precision_counts_posts_that_the_predictor_labels_so_and_und_as_wrong_or_not_at_all(world):
    folder, _ = world.verify(
        "precision", "de", [(12, "de", "de"), (3, "not-de", "de"), (5, "und", "de"), (7, "de", "nl"), (4, "und", "nl")]
    )
    report = run(world.subject("cld2", built_in=True), folder)
    german = by_label(report, "precision")["de"]
    assert interval(german) == jeffreys(12, 20)
    assert interval(by_label(report, "precision_without_und")["de"]) == jeffreys(12, 15)
    assert report["words"]["precision"] == ["Measured on the precision set."]
    assert means(report, "precision") == [("with und", 0.6, "1 language"), ("without und", 0.8, "1 language")]
    assert measures_of(report) == {"precision", "precision_without_und", "mean_precision"}
    assert report["confusion"] is None
    assert report["warnings"] == []
    # It has no decoys: what false Yes would make of it is stated.
    two, five = (figures(report, "precision", label="de", false_yes=share) for share in ("2%", "5%"))
    assert five["low"] < two["low"] < german["low"]
    assert "false Yes answers is unknown" in german["note"]
    # A file with the predictor's name is not taken for it, and without its corpus the unseen cannot be counted.
    of_file = run(replace(world.subject("cld2", built_in=True), predictor=None), folder)
    assert "were drawn by cld2, not by cld2" in of_file["warnings"][0]
    other = run(world.subject(), folder)
    assert never_shown(other) == {}
    assert "cannot be counted" in other["warnings"][1]


def test_precision_is_pooled_with_the_uniform_set_with_a_post_counted_once(world, stream):
    shared = [("stream-0", "de"), ("stream-27", "not-de")]  # both audited: German, and English that is taken for it
    folder, _ = world.verify("precision", "de", [(12, "de", "de"), (3, "not-de", "de")], shared=shared)
    german = by_label(run(world.subject("cld2", built_in=True), stream, folder), "precision")["de"]
    agreed = Stratum(60, 30, 28, 26, Guess(58, 58, (Turn(0, -1, 58, 28, 2),)))
    rest = stratified([agreed, Stratum(20, 10, 0, 0), Stratum(20, 20, 6, 6)])
    assert german["units"] == 17 + 34
    assert german["count"] == pytest.approx(17 + rest.count)
    assert german["value"] * german["count"] == pytest.approx(13 + rest.hits)


def never_shown(report):
    """Label -> (posts with that label, those never shown, their share, those outside the other predictor's)."""
    shares, posts, outside = (by_label(report, name) for name in ("never_shown", "posts_never_shown", "outside"))
    return {
        label: (row["units"], posts[label]["value"], row["value"], outside[label]["value"])
        for label, row in shares.items()
    }


def test_a_report_on_another_predictor_warns_and_counts_its_triggers_that_nobody_has_read(world, stream, monkeypatch):
    shared = [("stream-30", "de")]  # agreed on and not audited, but read in the other set
    folder, _ = world.verify("precision", "de", [(12, "de", "de"), (3, "not-de", "de")], shared=shared)
    # It finds German in two English posts, one of which was read.
    labels = {"stream-60": "de", "stream-79": "de"}
    first = world.subject("cld2", built_in=True)
    monkeypatch.setattr(unread_triggers, "subject_of_corpus", lambda corpus, spelled: first)
    report = run(world.subject("mine", "2", changes=labels), stream, folder)
    assert report["words"]["unseen"][0].endswith("counted in the uniform set.")
    assert never_shown(report) == {"de": (68, 30, close("30/68"), 2)}
    assert report["names"]["de"] == "German"
    [warning] = report["warnings"]
    assert "The precision-oriented posts for de were drawn by cld2, not by mine@2." in warning
    note = by_label(report, "precision")["de"]["note"]
    assert note.startswith(
        "drawn by cld2; precision on other posts is unknown; the rate of false Yes answers is unknown"
    )
    assert by_label(report, "precision")["en"]["note"] == ""
    # The predictor that it was drawn for hears nothing of the kind.
    assert never_shown(run(first, stream, folder)) == {}


def test_where_the_first_predictor_is_gone_what_is_outside_of_it_is_not_known(world, stream):
    folder, _ = world.verify("precision", "de", [(12, "de", "de")], predictor="old@1")
    assert never_shown(run(world.subject(), stream, folder)) == {"de": (66, 30, close("30/66"), None)}


def test_where_a_predictor_has_a_precision_set_of_its_own_that_of_another_does_not_count(world):
    first, _ = world.verify("precision", "de", [(10, "de", "de")], predictor="mine@1", name="first")
    second, _ = world.verify(
        "precision", "de", [(10, "de", "de"), (10, "not-de", "de")], predictor="mine@2", name="own"
    )
    for folders in ((first, second), (second, first)):
        report = run(world.subject("mine", "2"), *folders)
        assert interval(by_label(report, "precision")["de"]) == jeffreys(10, 20)
        assert "drawn by" not in by_label(report, "precision")["de"]["note"]
        [warning] = report["warnings"]
        assert "In the precision-oriented set first, the posts for de were drawn by another predictor" in warning


def test_precision_from_a_recall_set_is_refused_and_named_hypothetical_where_it_is_wanted(world):
    german, _ = world.verify("recall", "de", [(18, "de", "de"), (2, "de", "nl")])
    dutch, _ = world.verify("recall", "nl", [(9, "nl", "nl"), (1, "nl", "de")])
    subject = world.subject()
    report = run(subject, german, dutch)
    assert measures_of(report) == {"recall", "mean_recall"}
    assert "Precision is not measured: a recall-oriented set has as many posts" in report["warnings"][0]
    with pytest.raises(EvaluationError, match="--balanced-precision reports it under that name"):
        run(subject, german, dutch, measures=["precision"])
    report = run(subject, german, dutch, measures=["precision"], balanced=True)
    assert measures_of(report) == {"balanced_precision"}
    # As if as common: 18 of 20 are found, one of 10 Dutch is taken for it.
    assert values(report, "balanced_precision") == {"de": close("9/10"), "nl": close("9/10")}


def test_reweighted_to_natural_shares_the_interval_is_as_wide_as_it_is(world):
    german, _ = world.verify("recall", "de", [(18, "de", "de"), (2, "de", "nl")])
    dutch, _ = world.verify("recall", "nl", [(9, "nl", "nl"), (1, "nl", "de")])
    stream, _ = world.uniform([(50, "", "disputed", "de", "de"), (1, "", "disputed", "nl", "nl")])
    report = run(world.subject(), german, dutch, stream, balanced=True)
    rows = by_label(report, "natural_precision")
    # 50 Germans to a Dutch post: 0.9 of one is found, and a tenth of 50 is taken for it.
    assert rows["nl"]["value"] == close("9/59")
    low, high = jeffreys(2, 20)
    by_triggers = 0.9 / (0.9 + 50 * high), 0.9 / (0.9 + 50 * low)
    assert interval(rows["nl"]) == pytest.approx(by_triggers, abs=0.01)
    # Ten posts tell little of its own recall.
    assert rows["nl"]["low"] < by_triggers[0] < by_triggers[1] < rows["nl"]["high"]
    assert rows["de"]["value"] == pytest.approx(0.9 / (0.9 + 0.1 / 50))


def test_two_predictors_are_compared_as_each_is_estimated_with_a_post_counted_once(world, stream):
    folder, _ = world.verify("recall", "de", [(6, "de", "nl"), (4, "de", "de")], shared=[("stream-80", "de")])
    wrong_now = dict.fromkeys(["stream-0", "stream-1"], "nl")
    right_now = dict.fromkeys([f"recall-de-{n}" for n in range(6)] + ["stream-86", "stream-87"], "de")
    never_read = {"stream-30": "nl"}
    first, other = world.subject("mine", "1"), world.subject("mine", "2", changes=wrong_now | right_now | never_read)
    report = run(first, stream, folder, against=other)
    comparison = report["comparison"]
    assert comparison["other"]["spelled"] == "mine@2"
    alone = [run(subject, stream) for subject in (first, other)]
    for posts in ("with und", "without und"):
        apart = accuracy(alone[0], posts)["value"] - accuracy(alone[1], posts)["value"]
        row = accuracy(comparison, posts)
        assert row["value"] == pytest.approx(apart, abs=0.005)
        assert row["low"] < apart < row["high"]
    rows = by_label(comparison, "recall")
    # On the recall set: the other one alone finds six of its eleven posts.
    assert rows["de"]["units"] == 11
    assert rows["de"]["value"] == close("-6/11")
    assert (rows["de"]["better"], rows["en"]["value"]) == ("second", 0)
    # People have not read all, so the posts have not the same chance.
    assert accuracy(comparison)["p"] is None


def test_a_recall_set_alone_shows_whose_recall_is_better(world):
    folder, _ = world.verify("recall", "de", [(60, "de", "nl"), (60, "de", "de")])
    other = world.subject("mine", "2", changes={f"recall-de-{n}": "de" for n in range(60)})
    comparison = run(world.subject("mine", "1"), folder, against=other)["comparison"]
    recall = by_label(comparison, "recall")["de"]
    assert (recall["value"], recall["units"], recall["better"]) == (-0.5, 120, "second")
    low, high = jeffreys(60, 120)
    assert (-high, -low) == pytest.approx((recall["low"], recall["high"]), abs=0.02)
    assert measures_of(comparison) == {"recall"}


def test_where_people_have_read_all_the_plain_test_stands_beside(world):
    folder, _ = world.uniform([(40, "", "disputed", "de", "de"), (40, "", "disputed", "en", "en")])
    other = world.subject("other", changes={f"stream-{n}": "nl" for n in range(9)} | {"stream-79": "nl"})
    comparison = run(world.subject(), folder, against=other)["comparison"]
    assert accuracy(comparison)["p"] == accuracy(comparison)["p_holm"] == mcnemar(10, 0)
    assert accuracy(comparison)["note"] == "of 80 posts, only A is right on 10 and only B on 0"
    assert accuracy(comparison)["value"] == pytest.approx(10 / 80)
    assert accuracy(comparison)["better"] == "first"


def test_two_predictors_are_compared_by_the_classes_that_neither_splits(world):
    folder, _ = world.uniform([(5, "", "disputed", "zh-TW", "zh-TW"), (5, "", "disputed", "zh-CN", "zh-TW")])
    coarse = world.subject("coarse", changes=dict.fromkeys(world.predictions, "zh"), mapping={"zh": ("zh-CN", "zh-TW")})
    report = run(world.subject("fine"), folder, against=coarse)
    assert values(report, "recall") == {"zh-CN": 0, "zh-TW": 1}
    row = accuracy(report["comparison"])
    assert (row["value"], row["p"]) == (0, 1)
    assert row["note"] == "of 10 posts, only A is right on 0 and only B on 0"
