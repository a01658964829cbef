"""The planned widths of intervals are those of the estimator that reports use."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.estimation.label_errors import (
    WIDER,
    AskedSet,
    Audit,
    error,
    false_among,
    in_precision,
    in_recall,
    slips_of,
)
from annotate.evaluation import metrics
from annotate.evaluation.uniform import Cell, Uniform
from annotate.figures.draw_plan import cheapest, is_stated, least_audit, single_language_set
from annotate.figures.interval_width import NO_CHECKS, Checks, Draw, Expected, Stream, planned, reading, width

LABELS = ("a", "b", "c")
EVEN = Stream(dict.fromkeys(LABELS, 4_000), dict.fromkeys(LABELS, 2_000))
HALF = Draw(9_000, share=0.5, least=0)
FIFTHS = Checks(share=0.2, least=5, recheck=0.2, second=0.5)
# How common languages are on Twitter, roughly.
UNEVEN = Stream(
    {"en": 240_000, "ja": 200_000, "es": 70_000, "de": 3_000, "sv": 400},
    {"en": 60_000, "ja": 40_000, "es": 30_000, "de": 2_000, "sv": 200, "und": 30_000},
)
POSSIBLE = st.builds(
    Expected,
    accuracy=st.floats(0.5, 0.999),
    wrong=st.sampled_from([0.001, 0.01, 0.05, 0.15]),
    voted=st.booleans(),
)
FIGURES = st.sampled_from(
    [("accuracy", ""), *product(("recall", "precision", "error"), ("en", "ja", "es", "de", "sv"))]
)


def expected_set(voted, checks):
    """The uniform set that HALF expects, in whole posts: agreement is wrong in 10%, and the predictor right in 90%. An
    adjudicator decides a fifth of the readers' posts again, and gives the same label."""
    posts = {}

    def add(number, *cell):
        cell = Cell(*cell)
        for n in range(number):
            source = "audited" if cell.stratum else "unaudited"
            checked = {"first_label": cell.truth, "chance": 0.2} if n % 5 == 0 else {}
            decision = {"source": source, **checked} if checks and cell.annotated else {}
            posts[f"{len(posts)}"] = cell._replace(**decision)

    for label in LABELS:
        others = [other for other in LABELS if other != label]
        for half in (True, False):
            if voted:
                add(900, label, label, half, label, label)
                for other in others:
                    add(50, label, label, half, other, label)
                continue
            add(810, label, label, half, label, label)
            for other in others:
                add(45, label, label, half, label, other)
                add(45, label, label, half, other, other)
                add(5, label, label, half, other, label)
        add(900, "", "", True, label, label)
        for other in others:
            add(50, "", "", True, label, other)
    # What nobody has read has the detectors' label.
    read = {key: cell if cell.annotated else cell._replace(truth=cell.agreed) for key, cell in posts.items()}
    return Uniform(read)


@pytest.mark.parametrize("checks", [NO_CHECKS, FIFTHS], ids=["no checks", "checks"])
@pytest.mark.parametrize("voted", [True, False], ids=["voted", "did not vote"])
def test_the_planned_interval_is_that_of_a_report_on_the_set_that_is_expected(voted, checks):
    uniform, expected = expected_set(voted, checks != NO_CHECKS), Expected(0.9, 0.1, voted)
    draw = HALF._replace(checks=checks)
    if checks.second:
        uniform = replace(uniform, slips=slips_of(reading(EVEN, draw).seconds, 0))
    measured = {
        ("accuracy", ""): metrics.accuracy(uniform, with_und=True),
        ("recall", "a"): metrics.recall("a", uniform, {}),
        ("precision", "b"): metrics.precision("b", uniform, {}, with_und=True),
    }
    for (measure, label), figure in measured.items():
        ahead = planned(measure, label, EVEN, draw, expected)
        assert ahead.as_dict() == pytest.approx(figure.estimate.as_dict(), rel=1e-6), measure
        assert ahead.value == pytest.approx(0.9, abs=0.01)


def test_the_planned_error_of_agreement_is_that_of_the_audit():
    audit = Audit(2_000, doubted=100, doubted_wrong=100, confirmed=900, checked=180, checked_wrong=0)
    assert planned("error", "a", EVEN, HALF, Expected(wrong=0.1)) == error(audit)
    # Of a label that no post has nothing is known.
    assert planned("recall", "z", EVEN, HALF, Expected()).value is None
    assert width(planned("error", "z", EVEN, HALF, Expected())) == 1


SHARES = st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)).map(sorted)


@given(FIGURES, POSSIBLE, st.integers(1_000, 300_000), SHARES, st.floats(1, 2))
def test_more_posts_audits_or_checks_never_widen_an_interval(figure, expected, size, shares, more):
    less, most = shares
    for few, many in (
        (Draw(size, less, 0), Draw(round(size * more), less, 0)),
        (Draw(size, less, 0), Draw(size, most, 0)),
        [Draw(20_000, 0.1, 30, Checks(share / 2, 5, share / 2, share / 2)) for share in shares],
    ):
        one, other = (width(planned(*figure, UNEVEN, draw, expected)) for draw in (few, many))
        assert other <= one + 1e-4


@given(FIGURES, POSSIBLE, st.sampled_from([0.03, 0.05, 0.1, 0.2]))
def test_the_cheapest_draw_is_enough_and_the_next_smaller_one_is_not(figure, expected, wished):
    def is_enough(draw):
        return width(planned(*figure, UNEVEN, draw, expected)) <= wished

    draw = cheapest(UNEVEN, is_enough)
    if draw is None:
        # Not even the largest draw with the most audits is.
        assert not is_enough(Draw(UNEVEN.posts, 1.0, 0))
        return
    assert is_enough(draw)
    place = UNEVEN.sizes.index(draw.size)
    assert place == 0 or not is_enough(draw._replace(size=UNEVEN.sizes[place - 1]))
    assert draw.size in UNEVEN.sizes


def test_a_rare_language_can_be_stated_once_enough_of_the_others_is_audited():
    """Among the posts of the common languages that nobody has read may be more of it than were found."""
    draw = Draw(50_000, 0.02, 30)

    def recall(audited):
        return planned("recall", "sv", UNEVEN, audited, Expected())

    assert not is_stated(recall(draw))
    stated = least_audit(draw, lambda audited: is_stated(recall(audited)))
    assert stated.share > 0.02
    assert is_stated(recall(stated))
    assert not is_stated(recall(stated._replace(share=stated.share - 0.001)))
    assert least_audit(draw, lambda audited: width(recall(audited)) <= 0.001) is None


def test_an_adjudicator_reads_a_share_of_what_one_reader_decided_and_another_one_a_share_of_that():
    read = reading(UNEVEN, Draw(UNEVEN.posts, 0.1, 0, Checks(share=0.01, least=500, recheck=0.2, second=0.1)))
    assert read.checks == pytest.approx(500 * 5 + 200 + 0.2 * read.audits)
    more = reading(UNEVEN, Draw(UNEVEN.posts, 0.1, 0, Checks(share=0.1, least=500, recheck=0.2, second=0.1)))
    assert more.checks == pytest.approx(0.1 * UNEVEN.all_disputed + 0.2 * more.audits)
    assert read.seconds == pytest.approx(0.1 * read.checks)
    # What is read are the disputed posts and the audits.
    tenth = UNEVEN.posts // 10
    read = reading(UNEVEN, Draw(tenth, 0.1, 30))
    assert read.disputed == pytest.approx(UNEVEN.all_disputed / 10, abs=1)
    assert read.audits == pytest.approx(0.1 * (24_000 + 20_000 + 7_000 + 300 + 40), abs=1)
    assert reading(UNEVEN, Draw(tenth, 0, 30)).audits == pytest.approx(150, abs=1)
    assert reading(UNEVEN, Draw(UNEVEN.posts, 0, 30), lambda label: label == "sv")[:2] == (200, 30)


@pytest.mark.parametrize("measure", ["recall", "precision"])
def test_a_set_of_its_own_is_as_wide_as_evaluate_makes_it(measure):
    """With the decoys that it has by default, and as few posts as suffice."""
    plan = single_language_set(measure, Expected(0.95), 0.05)
    # In whole posts it may be a little wider, or narrower.
    widths = [width(evaluated(measure, posts, plan.decoys)) for posts in (plan.posts - 20, plan.posts + 20)]
    assert widths[1] <= 0.05 < widths[0]
    plain = 296
    assert plan.posts > plain
    assert plan.inside == pytest.approx(plan.posts * {"recall": 0.6, "precision": 0.95}[measure])
    assert single_language_set(measure, Expected(0.95), 1e-6) is None
    assert single_language_set("accuracy", Expected(), 0.05) is single_language_set("error", Expected(), 0.05) is None
    # It is larger where more is in other languages or readers say Yes by mistake.
    usual, mixed, erring = (
        single_language_set("recall", expected, 0.05)
        for expected in (Expected(), Expected(others=0.6), Expected(false_yes=0.01))
    )
    assert mixed.posts > usual.posts
    assert mixed.decoys > usual.decoys
    assert erring.posts + erring.decoys > usual.posts + usual.decoys


def evaluated(measure, posts, decoys, accuracy=0.95, others=0.4):
    """The estimate of `evaluate` for a set in which readers say Yes to no decoy, in whole posts."""
    inside = round(posts * (1 - others if measure == "recall" else accuracy))
    false = false_among(decoys, 0, inside, posts - inside)
    hits = round(inside * accuracy)
    if measure == "recall":
        return metrics.recall("de", None, {"de": labels(hits, inside, "nl")}, {}, false).estimate
    shown = {"de": labels(inside, posts, "not-de")}
    return metrics.precision("de", None, shown, with_und=True, false_yes=false).estimate


def labels(german, posts, other):
    return {str(number): "de" if number < german else other for number in range(posts)}


@pytest.mark.parametrize("rate", [0.0, 0.01])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_planned_widths_of_recall_sets_agree_with_those_of_simulated_ones(share, rate):
    """As many posts as in three languages of a set of tweets, drawn, read and answered by chance."""
    chance = np.random.default_rng(31)
    for posts, inside, recall in ((420, 286, 0.937), (420, 200, 0.91), (420, 245, 0.955)):
        decoys = round(share * posts)
        widths = []
        for _ in range(300):
            is_so = int(chance.binomial(posts, inside / posts))
            false = false_among(decoys, int(chance.binomial(decoys, rate)), is_so, posts - is_so)
            hits = int(chance.binomial(is_so, recall))
            widths.append(width(metrics.recall("de", None, {"de": labels(hits, is_so, "nl")}, {}, false).estimate))
        planned = width(AskedSet(True, recall, 1 - inside / posts, rate).estimate(posts, decoys))
        assert np.median(widths) == pytest.approx(planned, abs=0.02), (posts, inside, share)


@pytest.mark.parametrize("by_author", [True, False])
def test_without_decoys_an_interval_is_as_wide_as_false_yes_makes_it(by_author):
    of = AskedSet(by_author)
    plain = of.estimate(500, 0)
    two, five = of.widths_without_decoys(500).values()
    assert plain.high - plain.low < two < five
    widened = (in_recall if by_author else in_precision)(plain, 0.05)
    assert five == widened.high - widened.low


def test_decoys_are_as_many_as_keep_the_interval_about_as_narrow_as_without_false_yes():
    for posts in (100, 420, 3_000, 20_000):
        of = AskedSet(by_author=True)
        number, plain = of.decoys(posts), width(of.estimate(posts, 0))
        assert width(of.estimate(posts, number)) <= WIDER * plain < width(of.estimate(posts, number - 1)) + 1e-3
        # By the share that was the default the interval of 420 posts is half as wide again.
        assert number > 0.05 * posts or posts > 10_000
    assert [AskedSet(True).decoys(posts) for posts in (0, 1, 2)] == [0, 1, 2]
    assert AskedSet(False).decoys(420) < AskedSet(True).decoys(420) < AskedSet(True, others=0.6).decoys(420)


@pytest.mark.parametrize("wrong", ["misread", "slips"])
def test_errors_that_checks_and_second_opinions_find_widen_accuracy(wrong):
    draw = HALF._replace(checks=FIFTHS)
    none, some = (planned("accuracy", "", EVEN, draw, replace(Expected(), **{wrong: share})) for share in (0, 0.02))
    assert width(some) > width(none)
