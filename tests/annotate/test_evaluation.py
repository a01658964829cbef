"""A predictor measured on exported gold sets, held to tables that were worked out by hand."""

import json
import shutil
from dataclasses import replace
from fractions import Fraction

import pytest

from annotate.core.comparing import difference, mcnemar
from annotate.core.estimation import Guess, Stratum, proportion, stratified
from annotate.core.intervals import jeffreys
from annotate.evaluation import unread_triggers
from annotate.evaluation.evaluate import evaluate, write_report
from annotate.evaluation.matching import EvaluationError, read_sets
from annotate.goldsets.manifest import write_manifest
from annotate.models import Unit
from annotate.reports.writing import as_html, as_markdown, as_text
from tests.annotate.gold_folders import World

# 60 posts on which the detectors agree on German, half of them audited, 20 on English, half likewise, 20 disputed.
VOTER = (
    (27, "de", "audited", "de", "de"),
    (2, "de", "audited", "en", "de"),
    (1, "de", "audited", "und", "de"),
    (30, "de", "agreed", "", "de"),
    (10, "en", "audited", "en", "en"),
    (10, "en", "agreed", "", "en"),
    (6, "", "disputed", "de", "de"),
    (2, "", "disputed", "de", "en"),
    (8, "", "disputed", "en", "en"),
    (4, "", "disputed", "und", "en"),
)
FRAME = 200  # conftest's tasks are drawn from twice their posts


@pytest.fixture
def world(make_task, tmp_path):
    return World(make_task, tmp_path)


def run(subject, *folders, unfinished=False, allow_erased=False, **options):
    return evaluate(subject, read_sets(folders, unfinished=unfinished, allow_erased=allow_erased), **options)


def by_language(part):
    return {row["language"]: row for row in part["languages"]}


def values(part, key):
    return {row["language"]: row[key] and row[key]["value"] for row in part["languages"]}


def means(part):
    return {key: value for key, value in part["macro"].items() if key != "well_measured"}


def close(number):
    return pytest.approx(float(Fraction(number)))


def interval(estimate):
    return estimate["low"], estimate["high"]


# --- the uniform set, by stratum


@pytest.fixture
def stream(world):
    folder, _ = world.uniform(VOTER)
    return folder


def test_a_voter_is_right_on_agreed_posts_as_often_as_on_the_audited_ones(world, stream):
    report = run(world.subject("cld2", built_in=True), stream)
    accuracy = report["accuracy"]
    # 27 of 30 audited German stand for 60, 10 of 10 English for 20; of the disputed 14 of 20 are right.
    assert accuracy["with_und"]["value"] == close("88/100")
    assert accuracy["without_und"]["value"] == close("88/94")
    assert accuracy["naive_with_und"]["value"] == close("91/100")
    assert accuracy["naive_without_und"]["value"] == close("91/95")
    assert interval(accuracy["naive_with_und"]) == jeffreys(91, 100)
    assert [accuracy[key]["posts"] for key in ("with_und", "without_und", "naive_with_und")] == [60, 55, 100]
    strata = [Stratum(60, 30, 30, 27), Stratum(20, 10, 10, 10), Stratum(20, 20, 20, 14)]
    assert interval(accuracy["with_und"]) == interval(stratified(strata, frame=FRAME).as_dict())
    assert report["predictor"]["voted"] is True


def test_recall_and_precision_are_taken_by_stratum_from_a_uniform_set_alone(world, stream):
    report = run(world.subject("cld2", built_in=True), stream)
    assert report["recall"]["source"] == report["precision"]["source"] == "uniform"
    # German: 54 agreed and 8 disputed, of which 60 are found; English: 4 among the German, 20 and 8, of which 28.
    assert values(report["recall"], "estimate") == {"de": close("60/62"), "en": close("28/32"), "und": 0}
    assert means(report["recall"]) == {
        "with_und": pytest.approx((60 / 62 + 28 / 32) / 3),
        "without_und": pytest.approx((60 / 62 + 28 / 32) / 2),
        "languages": 2,
    }
    assert values(report["precision"], "with_und") == {"de": close("60/66"), "en": close("28/34")}
    assert values(report["precision"], "without_und") == {"de": close("60/64"), "en": close("28/30")}
    assert by_language(report["precision"])["de"]["with_und"]["posts"] == 36
    strata = [Stratum(60, 30, 27, 27), Stratum(20, 10, 0, 0), Stratum(20, 20, 8, 6)]
    german = by_language(report["recall"])["de"]["estimate"]
    assert interval(german) == interval(stratified(strata, frame=FRAME).as_dict())


def test_confusions_are_weighted_by_stratum(world, stream):
    confusion = run(world.subject("cld2", built_in=True), stream)["confusion"]
    assert confusion["labels"] == ["de", "en", "und"]
    assert {(truth, said): weight for truth, said, weight in confusion["cells"]} == {
        ("de", "de"): 60,
        ("en", "de"): 4,
        ("und", "de"): 2,
        ("de", "en"): 2,
        ("en", "en"): 28,
        ("und", "en"): 4,
    }


def test_contested_posts_count_as_read_in_the_stratum_of_their_language(world):
    folder, _ = world.uniform(
        [
            (10, "de", "audited", "de", "de"),
            (10, "de", "contested", "en", "de"),
            (10, "en", "audited", "en", "en"),
            (30, "en", "agreed", "", "en"),
        ]
    )
    accuracy = run(world.subject("cld2", built_in=True), folder)["accuracy"]
    # All 20 on which they agree on German were read; 10 audited English stand for 40.
    assert accuracy["with_und"]["value"] == close("50/60")
    assert accuracy["with_und"]["posts"] == 30


def test_undefined_is_a_class_of_a_predictor_that_says_it(world):
    folder, _ = world.uniform(
        [(3, "", "disputed", "und", "und"), (1, "", "disputed", "und", "de"), (1, "", "disputed", "de", "und")]
    )
    report = run(world.subject(), folder)
    assert values(report["recall"], "estimate") == {"de": 0, "und": close("3/4")}
    assert values(report["precision"], "with_und") == {"de": 0, "und": close("3/4")}
    assert by_language(report["precision"])["und"]["without_und"] is None
    assert report["precision"]["macro"]["languages"] == 0
    assert report["precision"]["macro"]["without_und"] is None


def test_a_second_mean_is_of_the_languages_with_thirty_posts_and_says_how_many_they_are(world):
    table = [(24, "", "disputed", "de", "de"), (6, "", "disputed", "de", "nl"), (29, "", "disputed", "en", "en")]
    folder, _ = world.uniform([*table, (1, "", "disputed", "nl", "de"), (30, "", "disputed", "und", "und")])
    report = run(world.subject(), folder)
    recall = report["recall"]["macro"]
    assert recall["languages"] == 3
    assert recall["well_measured"] == {
        "least_posts": 30,
        "with_und": close("9/10"),
        "without_und": close("8/10"),
        "languages": 1,
    }
    # German was said of 25 posts, so of the languages none; und is right wherever it is said.
    assert report["precision"]["macro"]["well_measured"]["languages"] == 0
    for form in (as_text, as_markdown, as_html):
        told = " ".join(form(report).split())
        assert "Recall, 30+ posts" in told
        assert "Mean over the 1 language with at least 30 posts: 90.0% with und, 80.0% without und." in told


def test_a_mean_over_well_measured_languages_is_not_called_with_und_where_und_is_not_among_them(world):
    folder, _ = world.uniform([(30, "", "disputed", "de", "de"), (2, "", "disputed", "und", "und")])
    recall = run(world.subject(), folder)["recall"]["macro"]
    assert recall["with_und"] == 1
    assert recall["well_measured"] == {"least_posts": 30, "with_und": None, "without_und": 1, "languages": 1}


# --- too little read


SHORT = ((4, "de", "audited", "de", "de"), (50, "de", "agreed", "", "de"), (9, "", "disputed", "en", "en"))


@pytest.mark.parametrize("name", ["cld2", "langid", "fasttext", "majority"])
def test_a_predictor_that_voted_is_refused_where_too_few_agreed_posts_of_a_label_were_read(world, name):
    folder, _ = world.uniform(SHORT)
    told = rf"{name} voted in the gold set stream, .* It takes 5 of each label .* 30 in all, .* de \(4 of 54\)\. Open"
    with pytest.raises(EvaluationError, match=told):
        run(world.subject(name, built_in=True), folder)


def test_it_is_refused_too_where_too_few_were_read_in_all_and_not_where_all_were(world):
    table = [
        (row, label, stratum, truth, label)
        for label in ("de", "en", "fr")
        for row, stratum, truth in ((9, "audited", label), (2, "agreed", ""))
    ]
    folder, _ = world.uniform(table, "few")
    with pytest.raises(EvaluationError, match=r"short are all of them together \(27 of 33\)\."):
        run(world.subject("cld2", built_in=True), folder)
    read, _ = world.uniform([row for row in table if row[2] == "audited"], "all-read")
    assert run(world.subject("cld2", built_in=True), read)["accuracy"]["with_und"]["value"] == 1


def test_a_predictor_that_did_not_vote_is_measured_on_agreement_with_a_warning(world):
    folder, _ = world.uniform(SHORT)
    report = run(world.subject(), folder)
    assert report["predictor"]["voted"] is False
    assert report["accuracy"]["with_und"]["posts"] == 63
    assert interval(report["accuracy"]["with_und"]) == interval(
        stratified([Stratum(63, 63, 63, 63)], frame=126).as_dict()
    )
    [warning] = report["warnings"]
    assert "the labels of the gold set stream are their own" in warning
    assert "de (4 of 54)" in warning


def test_a_predictor_that_did_not_vote_is_measured_by_stratum_where_enough_was_read(world, stream):
    report = run(world.subject(), stream)
    assert report["accuracy"]["with_und"]["value"] == close("88/100")
    assert report["warnings"] == []


def test_what_another_predictor_says_of_agreed_posts_that_nobody_read_counts_by_the_agreed_label(world):
    table = [(10, "de", "audited", "de", "de"), (80, "de", "agreed", "", "de"), (10, "de", "agreed", "", "nl")]
    many = [(30, "en", "audited", "en", "en")]
    folder, _ = world.uniform([*table, *many])
    report = run(world.subject(), folder)
    # None of the ten misses was read.
    assert report["accuracy"]["with_und"]["value"] == close("120/130")
    assert values(report["recall"], "estimate") == {"de": close("90/100"), "en": 1}
    # One of ten that were read is wrong, and stands for ten: of the 90 found, and of the 100.
    wrong = [(9, "de", "audited", "de", "de"), (1, "de", "audited", "en", "de"), *table[1:], *many]
    folder, _ = world.uniform(wrong, "wrong")
    report = run(world.subject(), folder)
    assert report["accuracy"]["with_und"]["value"] == close("110/130")
    assert values(report["recall"], "estimate") == {"de": close("80/90"), "en": close("30/40")}


# --- recall sets


def test_recall_is_pooled_over_both_kinds_of_sets_with_a_post_counted_once(world, stream):
    shared = [("stream-0", "de"), ("stream-1", "de"), ("stream-86", "de")]  # two audited, one disputed that is missed
    folder, _ = world.verify("recall", "de", [(15, "de", "de"), (5, "de", "nl"), (2, "not-de", "de")], shared=shared)
    alone = run(world.subject(), folder)
    assert alone["gold"][0]["posts"] == 23  # those that are not German are not exported
    german = by_language(alone["recall"])["de"]["estimate"]
    assert (german["value"], german["posts"]) == (close("17/23"), 23)
    assert interval(german) == jeffreys(17, 23)
    assert means(alone["recall"]) == {"with_und": None, "without_und": close("17/23"), "languages": 1}
    both = run(world.subject(), folder, stream)
    assert both["recall"]["source"] == "recall and uniform"
    german = by_language(both["recall"])["de"]["estimate"]
    # Of 60 posts agreed to be German 58 are left, and 3 of the 30 that were read are not.
    agreed = Stratum(60, 30, 25, 25, Guess(58, 58, ((3, -1, -1),)))
    rest = stratified([agreed, Stratum(20, 10, 0, 0), Stratum(20, 20, 7, 6)], frame=FRAME)
    assert german["posts"] == 23 + 25 + 7
    assert german["count"] == pytest.approx(23 + rest.count)
    assert german["hits"] == pytest.approx(17 + rest.hits)
    # Where there is one kind only, it stands alone.
    assert by_language(both["recall"])["en"]["estimate"]["value"] == close("28/32")


def test_recall_on_both_kinds_of_sets_is_tested_for_a_difference_corrected_for_the_number_of_tests(world, stream):
    german, _ = world.verify("recall", "de", [(60, "de", "de"), (40, "de", "nl")])
    english, _ = world.verify("recall", "en", [(28, "en", "en"), (4, "en", "nl")])
    french, _ = world.verify("recall", "fr", [(9, "fr", "fr")])
    report = run(world.subject(), stream, german, english, french)
    rows = {row["language"]: row for row in report["recall_check"]}
    assert set(rows) == {"de", "en"}  # the uniform set has no French
    on_uniform = stratified([Stratum(60, 30, 27, 27), Stratum(20, 10, 0, 0), Stratum(20, 20, 8, 6)], frame=FRAME)
    assert rows["de"]["p"] == difference(proportion(60, 100), on_uniform)
    assert rows["de"]["p_holm"] == 2 * rows["de"]["p"] < 0.05 < rows["en"]["p_holm"]
    assert rows["de"]["recall_set"]["posts"] == 100
    assert rows["de"]["uniform_set"]["posts"] == 35
    assert run(world.subject(), german)["recall_check"] is None


# --- precision sets


def test_precision_counts_posts_that_the_predictor_labels_so_and_und_as_wrong_or_not_at_all(world):
    folder, _ = world.verify(
        "precision", "de", [(12, "de", "de"), (3, "not-de", "de"), (5, "und", "de"), (7, "de", "nl"), (4, "und", "nl")]
    )
    report = run(world.subject("cld2", built_in=True), folder)
    german = by_language(report["precision"])["de"]
    assert interval(german["with_und"]) == jeffreys(12, 20)
    assert interval(german["without_und"]) == jeffreys(12, 15)
    assert report["precision"]["source"] == "precision"
    assert means(report["precision"]) == {"with_und": 0.6, "without_und": 0.8, "languages": 1}
    assert report["unseen"] is None
    assert report["accuracy"] is report["recall"] is report["confusion"] is None
    assert report["warnings"] == []


def test_precision_is_pooled_with_the_uniform_set_with_a_post_counted_once(world, stream):
    shared = [("stream-0", "de"), ("stream-27", "not-de")]  # both audited: German, and English that is taken for it
    folder, _ = world.verify("precision", "de", [(12, "de", "de"), (3, "not-de", "de")], shared=shared)
    german = by_language(run(world.subject("cld2", built_in=True), stream, folder)["precision"])["de"]
    agreed = Stratum(60, 30, 28, 26, Guess(58, 58, ((2, 0, -1),)))
    rest = stratified([agreed, Stratum(20, 10, 0, 0), Stratum(20, 20, 6, 6)], frame=FRAME)
    assert german["with_und"]["posts"] == 17 + 34
    assert german["with_und"]["count"] == pytest.approx(17 + rest.count)
    assert german["with_und"]["hits"] == pytest.approx(13 + rest.hits)


def test_the_mean_precision_is_of_languages_that_were_found(world):
    folder, _ = world.uniform([(3, "", "disputed", "de", "de"), (1, "", "disputed", "de", "nl")])
    precision = run(world.subject(), folder)["precision"]
    assert values(precision, "with_und") == {"de": 1, "nl": 0}
    assert by_language(precision)["nl"]["note"] == "no post in it was found; not in the mean"
    assert means(precision) == {"with_und": 1, "without_und": 1, "languages": 1}


# --- a predictor that the precision set was not drawn for


def test_another_predictor_is_warned_of_and_told_how_much_of_its_own_nobody_has_read(world, stream, monkeypatch):
    shared = [("stream-30", "de")]  # agreed on and not audited, but read in the other set
    folder, _ = world.verify("precision", "de", [(12, "de", "de"), (3, "not-de", "de")], shared=shared)
    # It finds German in two English posts, one of which was read.
    said = {"stream-60": "de", "stream-79": "de"}
    first = world.subject("cld2", built_in=True)
    monkeypatch.setattr(unread_triggers, "of_corpus", lambda corpus, spelled: first)
    report = run(world.subject("mine", "2", said=said), stream, folder)
    assert report["unseen"] == {
        "over": "uniform set",
        "languages": [
            {
                "language": "de",
                "name": "German",
                "triggers": 68,
                "never_shown": 30,
                "share": close("30/68"),
                "outside": 2,
            }
        ],
    }
    [warning] = report["warnings"]
    assert "The precision-oriented posts of de were drawn by cld2, not by mine@2." in warning
    assert by_language(report["precision"])["de"]["note"] == "drawn by cld2; precision on other posts is unknown"
    assert by_language(report["precision"])["en"]["note"] == ""
    # The predictor that it was drawn for hears nothing of the kind.
    assert run(first, stream, folder)["unseen"] is None


def test_where_a_predictor_has_a_precision_set_of_its_own_that_of_another_does_not_count(world):
    first, _ = world.verify("precision", "de", [(10, "de", "de")], predictor="mine@1", name="first")
    second, _ = world.verify(
        "precision", "de", [(10, "de", "de"), (10, "not-de", "de")], predictor="mine@2", name="own"
    )
    for folders in ((first, second), (second, first)):
        report = run(world.subject("mine", "2"), *folders)
        assert interval(by_language(report["precision"])["de"]["with_und"]) == jeffreys(10, 20)
        assert by_language(report["precision"])["de"]["note"] == ""
        [warning] = report["warnings"]
        assert "The posts of de in the precision-oriented set first were drawn by another predictor" in warning


def test_a_file_with_a_predictor_s_name_is_not_taken_for_it(world):
    folder, _ = world.verify("precision", "de", [(12, "de", "de")], predictor="cld2")
    file = replace(world.subject("cld2", built_in=True), predictor=None)
    assert "were drawn by cld2, not by cld2" in run(file, folder)["warnings"][0]


def test_where_the_first_predictor_is_gone_what_is_outside_of_it_is_not_known(world, stream):
    folder, _ = world.verify("precision", "de", [(12, "de", "de")], predictor="old@1")
    [row] = run(world.subject(), stream, folder)["unseen"]["languages"]
    assert (row["triggers"], row["never_shown"], row["outside"]) == (66, 30, None)


def test_without_a_corpus_or_a_uniform_set_the_unseen_cannot_be_counted_and_that_is_said(world):
    folder, _ = world.verify("precision", "de", [(12, "de", "de")])
    report = run(world.subject(), folder)
    assert report["unseen"] is None
    assert "cannot be counted here" in report["warnings"][1]


# --- precision on recall sets


def test_precision_from_a_recall_set_is_refused_and_named_hypothetical_where_it_is_wanted(world):
    german, _ = world.verify("recall", "de", [(18, "de", "de"), (2, "de", "nl")])
    dutch, _ = world.verify("recall", "nl", [(9, "nl", "nl"), (1, "nl", "de")])
    subject = world.subject()
    report = run(subject, german, dutch)
    assert report["precision"] is report["balanced"] is None
    assert "Precision is not measured: a recall-oriented set has as many posts" in report["warnings"][0]
    with pytest.raises(EvaluationError, match="--balanced-precision computes it, under that name"):
        run(subject, german, dutch, measures=["precision"])
    report = run(subject, german, dutch, measures=["precision"], balanced=True)
    assert report["precision"] is report["recall"] is None
    # As if as common: 18 of 20 are found, one of 10 Dutch is taken for it.
    assert values(report["balanced"], "balanced") == {"de": close("9/10"), "nl": close("9/10")}
    assert values(report["balanced"], "natural") == {"de": None, "nl": None}


def test_reweighted_to_natural_shares_the_interval_is_as_wide_as_it_is(world):
    german, _ = world.verify("recall", "de", [(18, "de", "de"), (2, "de", "nl")])
    dutch, _ = world.verify("recall", "nl", [(9, "nl", "nl"), (1, "nl", "de")])
    stream, _ = world.uniform([(50, "", "disputed", "de", "de"), (1, "", "disputed", "nl", "nl")])
    report = run(world.subject(), german, dutch, stream, balanced=True)
    rows = by_language(report["balanced"])
    # 50 Germans to a Dutch post: 0.9 of one is found, and a tenth of 50 is taken for it.
    assert rows["nl"]["natural"]["value"] == close("9/59")
    low, high = jeffreys(2, 20)
    assert interval(rows["nl"]["natural"]) == pytest.approx((0.9 / (0.9 + 50 * high), 0.9 / (0.9 + 50 * low)))
    assert rows["de"]["natural"]["value"] == pytest.approx(0.9 / (0.9 + 0.1 / 50))


# --- two predictors


def test_two_predictors_are_compared_on_what_people_have_read_with_a_post_counted_once(world, stream):
    folder, _ = world.verify("recall", "de", [(6, "de", "nl"), (4, "de", "de")], shared=[("stream-80", "de")])
    wrong_now = dict.fromkeys(["stream-0", "stream-1"], "nl")
    right_now = dict.fromkeys([f"recall-de-{n}" for n in range(6)] + ["stream-86", "stream-87"], "de")
    never_read = {"stream-30": "nl"}
    other = world.subject("mine", "2", said=wrong_now | right_now | never_read)
    comparison = run(world.subject("mine", "1"), stream, folder, against=other)["comparison"]
    assert comparison["other"]["spelled"] == "mine@2"
    assert comparison["overall"] == {"items": 60 + 10, "only_first": 2, "only_second": 8, "p": mcnemar(2, 8)}
    rows = by_language(comparison)
    assert {label: (row["items"], row["only_first"], row["only_second"]) for label, row in rows.items()} == {
        "de": (27 + 8 + 10, 2, 8),
        "en": (2 + 10 + 8, 0, 0),
        "und": (5, 0, 0),
    }
    assert rows["de"]["p_holm"] == pytest.approx(3 * mcnemar(2, 8))
    assert rows["en"]["p_holm"] == 1


def test_two_predictors_are_compared_by_the_classes_that_neither_splits(world):
    folder, _ = world.uniform([(5, "", "disputed", "zh-TW", "zh-TW"), (5, "", "disputed", "zh-CN", "zh-TW")])
    coarse = world.subject("coarse", said=dict.fromkeys(world.said, "zh"), mapping={"zh": ("zh-CN", "zh-TW")})
    report = run(world.subject("fine"), folder, against=coarse)
    assert values(report["recall"], "estimate") == {"zh-CN": 0, "zh-TW": 1}
    assert report["comparison"]["overall"] == {"items": 10, "only_first": 0, "only_second": 0, "p": 1}


# --- coarse classes


def test_a_predictor_that_says_zh_is_right_on_both_scripts(world):
    folder, _ = world.uniform(
        [(3, "", "disputed", "zh-CN", "zh"), (1, "", "disputed", "zh-TW", "zh"), (1, "", "disputed", "zh-TW", "ja")]
    )
    report = run(world.subject(mapping={"zh": ("zh-CN", "zh-TW")}), folder)
    assert values(report["recall"], "estimate") == {"zh": close("4/5")}
    assert values(report["precision"], "with_und") == {"ja": 0, "zh": 1}
    assert by_language(report["recall"])["zh"]["note"] == "zh-CN, zh-TW taken together"


def test_a_predictor_that_tells_the_scripts_apart_is_right_where_chinese_was_asked(world):
    folder, _ = world.verify("precision", "zh", [(3, "zh", "zh-CN"), (2, "zh", "zh-TW"), (1, "not-zh", "zh-TW")])
    report = run(world.subject("cld2", built_in=True), folder)
    assert interval(by_language(report["precision"])["zh"]["with_und"]) == jeffreys(5, 6)


def test_what_was_asked_about_one_script_says_nothing_of_the_precision_of_both(world):
    folder, _ = world.verify("precision", "zh-CN", [(3, "zh-CN", "zh"), (2, "not-zh-CN", "zh")], predictor="mine@1")
    report = run(world.subject(mapping={"zh": ("zh-CN", "zh-TW")}), folder)
    assert report["precision"] is None
    assert "left out of precision: zh, of which zh-CN was asked" in report["warnings"][0]


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
    assert both["accuracy"] == alone["accuracy"]
    assert both["recall"] == alone["recall"]
    assert both["confusion"] == alone["confusion"]
    rows = by_language(both["precision"])
    assert interval(rows["sh"]["with_und"]) == jeffreys(5, 6)
    assert "bs, hr, sr taken together on posts where people used sh, and nowhere else" in rows["sh"]["note"]
    assert {label: rows[label] for label in ("hr", "sr")} == by_language(alone["precision"])
    assert both["precision"]["macro"] == alone["precision"]["macro"]
    assert not [warning for warning in both["warnings"] if "takes labels together" in warning]


def test_how_many_posts_of_a_coarse_code_nobody_has_read_is_counted_by_all_of_its_labels(world, southern):
    [row] = run(world.subject(), *southern)["unseen"]["languages"]
    assert (row["language"], row["triggers"], row["never_shown"]) == ("sh", 13, 0)


def test_a_recall_set_labelled_with_a_coarse_code_has_a_row_of_its_own(world, southern):
    stream, _ = southern
    folder, _ = world.verify("recall", "sh", [(3, "sh", "hr"), (2, "sh", "bs"), (1, "sh", "sl")])
    alone, both = run(world.subject(), stream), run(world.subject(), stream, folder)
    rows = by_language(both["recall"])
    assert interval(rows.pop("sh")["estimate"]) == jeffreys(5, 6)
    assert rows == by_language(alone["recall"])
    assert both["recall"]["macro"] == alone["recall"]["macro"]


def test_a_coarse_code_in_a_balanced_stream_is_taken_for_any_of_its_labels(world):
    south, _ = world.verify("recall", "sh", [(9, "sh", "hr"), (1, "sh", "sl")])
    croatian, _ = world.verify("recall", "hr", [(10, "hr", "sr")])
    german, _ = world.verify("recall", "de", [(9, "de", "de"), (1, "de", "sr")])
    rows = by_language(run(world.subject(), south, croatian, german, balanced=True)["balanced"])
    # All ten Croatian posts are found as such: 19 of 20, against one of ten German ones.
    assert rows["sh"]["balanced"]["value"] == close("19/21")
    assert rows["de"]["balanced"]["value"] == 1


def test_a_comparison_takes_labels_together_for_itself_alone_and_says_so(world, southern):
    stream, _ = southern
    coarse = world.subject("coarse", said=dict.fromkeys(world.said, "sh"), mapping={"sh": ("bs", "hr", "sr")})
    alone, both = run(world.subject(), stream), run(world.subject(), stream, against=coarse)
    assert {key: both[key] for key in ("accuracy", "recall", "precision")} == {
        key: alone[key] for key in ("accuracy", "recall", "precision")
    }
    assert both["comparison"]["together"] == {"sh": ["bs", "hr", "sr"]}
    assert "are taken together: bs, hr, sr as sh." in " ".join(as_text(both).split())


def test_a_class_with_only_some_labels_of_a_code_that_was_asked_is_refused(world, southern):
    with pytest.raises(EvaluationError, match="The class south of a predictor has sl besides labels of sh"):
        run(world.subject(mapping={"south": ("hr", "sl")}), *southern)


def test_a_label_of_two_classes_is_refused(world, stream):
    one, two = {"one": ("de", "nl")}, {"two": ("de", "af")}
    with pytest.raises(EvaluationError, match="The label de is of two classes, one and two; declare it in one"):
        run(world.subject(mapping=one), stream, against=world.subject("other", mapping=two))


# --- what is gone


def test_a_set_whose_posts_have_all_vanished_measures_nothing_and_is_said_to_be_nothing_else(world):
    folder, keys = world.uniform(VOTER)
    report = run(world.subject("cld2", built_in=True), folder, vanished=set(keys))
    assert report["vanished"]["posts"] == 100
    assert report["accuracy"]["with_und"]["value"] is report["recall"] is report["precision"] is None
    assert report["warnings"] == []


def test_vanished_posts_are_left_out_and_counted_by_label(world, stream):
    folder, _ = world.verify("recall", "de", [(4, "de", "de")], shared=[("stream-80", "de")])
    vanished = {"stream-0", "stream-80", "stream-99", "recall-de-0", "unheard-of"}
    report = run(world.subject(), stream, folder, vanished=vanished)
    assert report["vanished"] == {"posts": 4, "by_label": {"de": 3, "und": 1}}
    assert [gold["posts"] for gold in report["gold"]] == [97, 3]
    # 26 of 29 audited German stand for 59.
    assert report["accuracy"]["with_und"]["value"] == close(Fraction(59 * 26, 29) / 97 + Fraction(20 + 13, 97))


def test_rows_that_were_erased_are_counted_where_they_are_allowed(world, stream):
    lines = (stream / "gold.jsonl").read_bytes().splitlines(keepends=True)
    gone = {json.loads(line)["id"] for line in lines[:2]}
    (stream / "gold.jsonl").write_bytes(b"".join(lines[2:]))
    tsv = stream / "uniformly_sampled.tsv"
    kept = [line for line in tsv.read_text().splitlines(keepends=True) if line.split("\t")[1].strip() not in gone]
    tsv.write_text("".join(kept))
    (stream / "gold.parquet").unlink()
    report = run(world.subject(), stream, allow_erased=True)
    assert report["erased"] == {"posts": 2, "by_label": {"de": 2}}
    assert report["gold"][0]["posts"] == 98


# --- sets that do not go together


def test_sets_that_do_not_go_together_are_refused(world, stream, tmp_path):
    second, _ = world.uniform([(1, "", "disputed", "de", "de")], "second")
    with pytest.raises(EvaluationError, match="are both uniform sets, and an evaluation takes one; extend the task"):
        read_sets([stream, second], allow_erased=False, unfinished=False)
    shutil.copytree(stream, tmp_path / "copy")
    for twin in (stream, tmp_path / "copy"):
        with pytest.raises(EvaluationError, match="are the same gold set; name it once"):
            read_sets([stream, twin], allow_erased=False, unfinished=False)
    folder, _ = world.verify("recall", "de", [(4, "de", "de")])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["corpus"]["name"] = "another"
    write_manifest(folder, manifest)
    with pytest.raises(EvaluationError, match=r"is from corpus corpus and .* from corpus another; evaluate on each"):
        read_sets([stream, folder], allow_erased=False, unfinished=False)


def test_an_unfinished_set_is_refused_without_leave_and_warned_of_with_it(world):
    world.uniform([(2, "", "disputed", "de", "de")])
    waiting = Unit.objects.last()
    Unit.objects.filter(pk=waiting.pk).update(stage="QUEUED", label="", language="de", round=1)
    folder = world.export(waiting.task)
    with pytest.raises(EvaluationError, match=r"The gold set stream in .* is unfinished: .* or pass --unfinished"):
        run(world.subject(), folder)
    report = run(world.subject(), folder, unfinished=True)
    assert report["gold"][0]["finished"] is False
    assert "is unfinished" in report["warnings"][0]
    assert report["accuracy"]["with_und"]["posts"] == 1


@pytest.mark.parametrize(
    ("designs", "options", "told"),
    [
        (["recall"], {"measures": ["accuracy"]}, "Accuracy takes a uniform set, and none is given"),
        (["precision"], {"measures": ["recall"]}, "Recall takes a recall-oriented or a uniform set, and none"),
        (["precision"], {"balanced": True}, "--balanced-precision takes a recall-oriented set, and none"),
        (["precision", "recall"], {"measures": ["recall"]}, "precision-de is precision-oriented, which nothing that"),
        (["precision"], {"against": True}, "compared on uniform and recall-oriented sets, and none is given"),
    ],
)
def test_what_the_sets_cannot_tell_and_sets_that_tell_nothing_asked_for_are_refused(world, designs, options, told):
    folders = [world.verify(design, "de", [(4, "de", "de")])[0] for design in designs]
    if "against" in options:
        options = {"against": world.subject("other")}
    with pytest.raises(EvaluationError, match=told):
        run(world.subject(), *folders, **options)


def test_a_measure_that_is_asked_for_comes_alone(world, stream):
    report = run(world.subject(), stream, measures=["recall"])
    assert report["recall"]
    assert report["accuracy"] is report["precision"] is None


# --- on disk


def test_a_report_replaces_an_earlier_one_of_the_predictor_and_nothing_else(world, stream, tmp_path):
    out = tmp_path / "report"
    report = run(world.subject(), stream)
    for _ in range(2):
        write_report(report, out)
        assert {path.name for path in out.iterdir()} == {"manifest.json", "report.json", "report.md", "report.html"}
    assert json.loads((out / "report.json").read_text()) == report
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(EvaluationError, match="holds something else than an evaluation of mine@2"):
        write_report(run(world.subject(version="2"), stream), out)
    with pytest.raises(EvaluationError, match="holds something else than an evaluation of mine@1"):
        write_report(report, stream)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
