"""Estimates by stratum, from audits, pooled and reweighted, Jeffreys' interval, and whether two estimates differ."""

from dataclasses import astuple, replace
from math import comb, hypot

import numpy as np
import pytest
import scipy
from hypothesis import assume, given
from hypothesis import strategies as st

from annotate.core.estimation.differences import Difference, benjamini_yekutieli, difference, holm, mcnemar
from annotate.core.estimation.proportions import (
    UNKNOWN,
    Estimate,
    Guess,
    Stratum,
    Turn,
    Z,
    jeffreys,
    pool,
    proportion,
    reweighted_precision,
    stratified,
    with_interval,
)
from annotate.core.measures.figure_rows import at_every_look, difference_row, factor, row, share_at_every_look


@st.composite
def strata_of(draw, *, all_read=False):
    drawn = draw(st.integers(1, 400))
    read = drawn if all_read else draw(st.integers(0, drawn))
    domain = draw(st.sampled_from([0, read]) | st.integers(0, read))
    return Stratum(drawn, read, domain, draw(st.sampled_from([0, domain]) | st.integers(0, domain)))


STRATA = st.lists(strata_of(), min_size=1, max_size=6)
ALL_READ = st.lists(strata_of(all_read=True), min_size=1, max_size=6)


def holds(estimate):
    if estimate.value is None:
        return estimate == UNKNOWN
    return 0 <= estimate.low <= estimate.value <= estimate.high <= 1 and 0 <= estimate.hits <= estimate.count


def same(estimate):
    """The figures of an estimate, but for the last digits, which depend on the order of summing."""
    figures = numbers(estimate)
    return figures if estimate == UNKNOWN else pytest.approx(figures, rel=1e-6, abs=1e-9)


def numbers(estimate):
    return astuple(estimate)[:5]


def test_a_proportion_stands_with_its_interval_and_counts():
    low, high = jeffreys(45, 50)
    assert proportion(45, 50).as_dict() == {"value": 0.9, "low": low, "high": high, "hits": 45.0, "count": 50.0}
    assert pool(proportion(9, 10), proportion(30, 40), UNKNOWN) == proportion(39, 50)
    for nothing in (proportion(0, 0), pool(), stratified([]), stratified([Stratum(100, 30, 0, 0)])):
        assert nothing == UNKNOWN
    with pytest.raises(ValueError, match="impossible"):
        stratified([Stratum(10, 11, 5, 5)])


@given(ALL_READ)
def test_where_all_was_read_the_estimate_is_the_plain_interval_exactly(strata):
    hits, domain = sum(stratum.hits for stratum in strata), sum(stratum.domain for stratum in strata)
    assert stratified(strata) == proportion(hits, domain)


@given(STRATA)
def test_a_stratified_estimate_lies_in_its_interval_and_knows_no_more_than_the_draw_itself(strata):
    assert holds(stratified(strata))
    estimate = stratified(strata)
    assume(estimate.value is not None)
    assume(all(stratum.read for stratum in strata))
    domain = sum(stratum.drawn * stratum.domain / stratum.read for stratum in strata)
    assert estimate.count <= domain * (1 + 1e-9)


def test_the_audited_posts_stand_for_those_on_which_the_detectors_agreed():
    """The naive share would be 0.9 x 0.05 of the disputed, and 1 of the agreed."""
    strata = [Stratum(1000, 1000, 1000, 500), Stratum(9000, 300, 300, 291)]
    estimate = stratified(strata)
    assert estimate.value == pytest.approx(0.1 * 0.5 + 0.9 * 0.97)
    # Cochran's variance, worked by hand: 0.923 x 0.077 / 10,000, and 8,700 / 9,000 of 0.81 x 0.0291 / 300
    assert estimate.value * (1 - estimate.value) / estimate.count == pytest.approx(8.5e-5, rel=0.1)
    low, high = jeffreys(291, 300)
    assert estimate.low < 0.05 + 0.9 * (low + 0.005)
    assert estimate.high > 0.05 + 0.9 * (high - 0.005)


def test_an_audit_without_an_error_still_leaves_room_for_some():
    estimate = stratified([Stratum(1000, 1000, 1000, 500), Stratum(9000, 30, 30, 30)])
    assert estimate.value == 0.95
    assert estimate.low < 0.9
    certain = stratified([Stratum(9000, 30, 30, 30)])
    assert (certain.value, certain.high) == (1.0, 1.0)
    assert certain.low < 0.93
    assert certain.count == pytest.approx(30, rel=0.001)
    # The interval reaches further to where errors may hide, and a large stratum that nobody audited may be anything.
    estimate = stratified([Stratum(100, 100, 50, 35), Stratum(900, 30, 30, 29)])
    assert estimate.value - estimate.low > 2 * (estimate.high - estimate.value) > 0
    estimate = stratified([Stratum(1000, 100, 100, 98), Stratum(9000, 0, 0, 0)])
    assert estimate.value == pytest.approx(0.98)
    assert estimate.low < 0.1


def test_posts_that_nobody_read_may_all_be_wrong_or_all_be_right():
    """Five posts that the predictor labels so are in a large stratum of another label, and none of them was read."""
    estimate = stratified([Stratum(7000, 140, 0, 0, Guess(5, 0, ())), Stratum(40, 40, 40, 38)])
    assert estimate.value == 38 / 45
    assert estimate.low < jeffreys(38, 45)[0] + 0.01
    assert estimate.high > 43 / 45


def test_the_value_takes_posts_like_those_read_elsewhere_for_a_guide_and_the_interval_does_not():
    unread = Guess(5, 0, (Turn(0, 1, 5, 0, 0, usual=0.4),))
    strata = [Stratum(7000, 140, 0, 0, unread), Stratum(40, 40, 40, 38)]
    assert stratified(strata).value == pytest.approx(40 / 45)
    unguided = stratified([replace(strata[0], guess=Guess(5, 0, ())), strata[1]])
    assert stratified(strata).high == pytest.approx(unguided.high, abs=0.02)


def test_where_hits_and_misses_turn_what_both_come_to_may_be_normal():
    """Worked by hand, for weights of ten: of the posts that nobody has read each way has the deviation
    sqrt(p(1 - p) x 10 x 9 x n + 10 x 10 / 2) x 1.96 / 9n."""
    ways = (Turn(0, -1, 900, 90, 9), Turn(0, 1, 100, 10, 2))
    stratum = Stratum(1000, 100, 100, 83, Guess(1000, 900, ways))
    estimate = stratified([stratum], normal=True)
    assert estimate.value == pytest.approx((900 - 90 + 20) / 1000)
    lost = 810 * Z * (0.1 * 0.9 * 10 * 9 * 90 + 50) ** 0.5 / (9 * 90)
    gained = 90 * Z * (0.2 * 0.8 * 10 * 9 * 10 + 50) ** 0.5 / (9 * 10)
    low, high = (1000 * abs(end - estimate.value) for end in jeffreys(830, 1000))
    assert estimate.value - estimate.low == pytest.approx(hypot(low, lost, min(gained, 18)) / 1000, rel=1e-6)
    assert estimate.high - estimate.value == pytest.approx(hypot(high, min(lost, 81), gained) / 1000, rel=1e-6)
    # Where only hits turn, the interval is the same however many were read.
    stratum = Stratum(1000, 100, 100, 91, Guess(1000, 1000, (Turn(0, -1, 1000, 100, 9),)))
    assert stratified([stratum], normal=True) == stratified([stratum])


def test_what_may_hide_in_a_large_stratum_counts_however_wide_that_makes_the_interval():
    """Of 7,000 posts agreed to be in another language, 140 were read, and none is in this one; 40 are known to be."""
    read, hiding = Stratum(40, 40, 40, 38), Stratum(7000, 140, 0, 0, Guess(0, 0, (Turn(1, 0, 7000, 140, 0),)))
    estimate = stratified([read, hiding])
    most = 7000 * jeffreys(0, 140)[1]
    assert estimate.value == 38 / 40
    assert 0.2 < estimate.low < 38 / (40 + most) < 0.24
    better = stratified([read, replace(hiding, read=7000 // 4, guess=Guess(0, 0, (Turn(1, 0, 7000, 1750, 0),)))])
    assert 0 < better.low < 0.9


def test_an_effective_count_of_three_has_a_wide_interval_and_one_below_1_has_none():
    """A large stratum of which almost nothing was read has a great weight."""
    weighed = stratified([Stratum(9000, 3, 3, 2), Stratum(10, 10, 10, 10)])
    assert 3 < weighed.count < 3.1
    assert (weighed.low, weighed.high) == pytest.approx((0.178, 0.961), abs=1e-3)
    assert weighed.value == pytest.approx((6000 + 10) / 9010)
    estimate = with_interval(0.5, 0.005, 0.995, 100)
    assert estimate.count < 1
    assert not estimate.has_interval
    low, high = jeffreys(1, 1)
    estimate = with_interval(1.0, low, high, 100)
    assert (estimate.low, estimate.high, estimate.has_interval) == (low, high, True)


def test_strata_outside_the_domain_may_stay_away_and_one_of_which_nothing_was_read_counts_as_the_mean_of_others():
    strata = [Stratum(40, 40, 40, 30), Stratum(900, 30, 30, 28)]
    outside = [Stratum(500, 30, 0, 0), Stratum(20, 20, 0, 0)]
    assert stratified([*strata, *outside]) == stratified(strata)
    assert numbers(stratified([Stratum(20, 20, 10, 7), Stratum(80, 40, 0, 0)])) == same(proportion(7, 10))
    disputed, some = Stratum(100, 100, 100, 50), Stratum(800, 40, 40, 38)
    estimate = stratified([disputed, some, Stratum(100, 0, 0, 0)])
    assert estimate.value == pytest.approx((50 + 900 * 0.95) / 1000)
    assert stratified([disputed, Stratum(100, 0, 0, 0)]) == UNKNOWN


def test_one_post_read_of_a_stratum_takes_the_variance_of_the_others():
    guessed = Guess(3, 3, (Turn(-1, -1, 3, 1, 1),))  # the post that was read of three is not in the domain
    estimate = stratified([Stratum(2, 2, 2, 1), Stratum(3, 1, 0, 0, guessed)])
    assert holds(estimate)
    assert estimate.low < 0.5 < estimate.high
    assert holds(stratified([Stratum(100, 100, 100, 50), Stratum(100, 1, 1, 1)]))
    alone = stratified([Stratum(900, 30, 29, 20), Stratum(9, 1, 1, 1)])
    assert holds(alone)
    assert alone.count < 40


def test_the_article_s_example_gives_the_interval_that_it_calls_hardly_useful():
    """It rounds to 52 false triggers first, and so prints 95.8%."""
    estimate = reweighted_precision((1200, 1500), [(1, 1500, 500)])
    assert f"{estimate.high:.1%} to {estimate.low:.1%}" == "95.7% to 34.0%"
    assert estimate.value == pytest.approx(1200 / 1700)
    # Several languages add up to less than their worst together, and what a balanced set cannot say stays unknown.
    other = (1, 1500, 500)
    two = reweighted_precision((1200, 1500), [other, other])
    assert two.value == pytest.approx(1200 / 2200)
    assert 0.8 / (0.8 + 2 * (0.8 / estimate.low - 0.8)) < two.low < estimate.low
    assert two.high < estimate.high
    assert reweighted_precision((0, 1500), [other]) == reweighted_precision((0, 0), []) == UNKNOWN
    assert reweighted_precision((1200, 1500), []).value == 1
    unread = reweighted_precision((1200, 1500), [(0, 0, 500)])
    assert (unread.value, unread.low, unread.high) == (None, pytest.approx(0.8 / 500.8), 1.0)


def test_reweighted_precision_is_no_surer_than_the_few_posts_of_its_language():
    """However certain the false triggers of other languages are."""
    precision = reweighted_precision((12, 20), [(100_000, 1_000_000, 1)])
    low, high = jeffreys(12, 20)
    assert (precision.low, precision.value, precision.high) == pytest.approx(
        (low / (low + 0.1), 0.6 / 0.7, high / (high + 0.1)), abs=1e-3
    )


@given(
    st.integers(1, 1500),
    st.lists(st.tuples(st.integers(0, 50), st.integers(50, 1500), st.floats(1e-3, 1e3)), max_size=5),
)
def test_a_reweighted_precision_lies_in_its_interval(hits, others):
    assert holds(reweighted_precision((hits, 1500), others))


@st.composite
def counts(draw):
    of = draw(st.floats(1e-3, 1e5))
    return draw(st.floats(0, 1)) * of, of


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        (0, 30, 0.0, 0.079678),
        (30, 30, 0.920322, 1.0),
        (0, 1, 0.0, 0.853254),
        (5, 10, 0.223529, 0.776471),
        (1, 1500, 0.00007, 0.00311),  # as the article prints it
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_ends_are_quantiles_but_for_none_and_all(hits, of, low, high):
    assert jeffreys(hits, of) == (pytest.approx(low, abs=5e-6), pytest.approx(high, abs=5e-6))


@given(counts())
def test_the_interval_holds_the_proportion_and_stays_between_0_and_1(pair):
    hits, of = pair
    low, high = jeffreys(hits, of)
    assert 0 <= low <= hits / of <= high <= 1


@pytest.mark.parametrize(("hits", "of"), [(-1, 3), (4, 3), (float("nan"), 3)])
def test_what_is_no_proportion_is_refused(hits, of):
    with pytest.raises(ValueError, match="between 0 and 3"):
        jeffreys(hits, of)


P_VALUES = st.lists(st.floats(0, 1), max_size=12)


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_p_value_is_twice_the_tail_of_a_fair_coin_whichever_predictor_comes_first(only_first, only_second):
    p = mcnemar(only_first, only_second)
    assert p == mcnemar(only_second, only_first)
    tail = sum(comb(only_first + only_second, k) for k in range(min(only_first, only_second) + 1))
    assert p == pytest.approx(min(1, 2 * tail / 2 ** (only_first + only_second)))
    with pytest.raises(ValueError, match="must be counts"):
        mcnemar(-1 - only_first, only_second)


def test_the_smallest_p_value_pays_for_all_and_the_largest_for_itself():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(P_VALUES)
def test_false_discoveries_are_those_of_scipy(p_values):
    expected = scipy.stats.false_discovery_control(p_values, method="by") if p_values else []
    assert benjamini_yekutieli(p_values) == pytest.approx(list(expected))


@given(P_VALUES)
def test_correction_raises_keeps_the_order_and_stays_within_1(p_values):
    adjusted = holm(p_values)
    assert all(raw <= corrected <= 1 for raw, corrected in zip(p_values, adjusted, strict=True))
    by_raw = [corrected for _, corrected in sorted(zip(p_values, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        (proportion(950, 1000), proportion(880, 1000), 2.1e-8),
        (proportion(60, 100), proportion(50, 100), 0.156),
        (proportion(8, 10), proportion(1, 10), 0.0028),  # few: Fisher's 0.0055 with its own table counted half
        (proportion(5, 5), proportion(500, 500), 1.0),
        (proportion(0, 0), proportion(3, 9), 1.0),
        (Estimate(0.04, 0.0, 0.1, 0.31, 8.4), Estimate(0.5, 0.4, 0.6, 60.2, 120.4), 0.0044),
    ],
)
def test_a_difference_has_the_p_value_of_its_counts(first, second, p):
    assert difference(first, second) == pytest.approx(difference(second, first)) == pytest.approx(p, rel=0.05)


# --- intervals that hold at every look, beside those for one


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_in_500_samples_the_truth_is_inside_at_every_look_of_95_percent(share):
    """Looked at after each of 2,000 units. Intervals for one look leave it out at some look far more often."""
    hits = (np.random.default_rng(1).random((500, 2_000)) < share).cumsum(axis=1)
    of = np.arange(1, 2_001)
    evidence = scipy.special.betaln(hits + 0.5, of - hits + 0.5) - scipy.special.betaln(0.5, 0.5)
    likely = scipy.special.xlogy(hits, share) + scipy.special.xlog1py(of - hits, -share)
    is_inside = likely >= evidence + np.log(0.05)
    assert is_inside.all(axis=1).mean() >= 0.95
    for place in [(3, 9), (4, 99), (5, 1_999)]:  # the function says the same
        low, high = share_at_every_look(hits[place], of[place[1]])
        assert (low <= share <= high) == is_inside[place]
    tail = scipy.special.bdtr(hits, of, share), scipy.special.bdtrc(hits - 1, of, share)
    assert (np.minimum(*tail) >= 0.025).all(axis=1).mean() < 0.85


def test_intervals_for_every_look_are_half_as_wide_again_for_ten_units_and_twice_as_wide_for_ten_thousand():
    def price(hits, of):
        wide, plain = share_at_every_look(hits, of), jeffreys(hits, of)
        return (wide[1] - wide[0]) / (plain[1] - plain[0])

    assert 1.4 < price(9, 10) < price(90, 100) < price(9_000, 10_000) < 2.1
    assert 1.5 < factor(100) / Z < 1.6 < factor(10_000) / Z < 1.9


def test_a_plain_share_has_the_interval_of_its_counts_and_a_withheld_one_stays():
    figure = at_every_look(row("accuracy", {}, proportion(90, 100), 100))
    assert (figure["low"], figure["high"]) == pytest.approx(share_at_every_look(90, 100))
    nothing = row("accuracy", {}, None, 0, "no item")
    assert at_every_look(nothing) == nothing
    assert share_at_every_look(0, 0) == (0, 1)
    # Of a loss less is better.
    assert at_every_look(difference_row("mae", {}, Difference(0.5, 0.4, 0.6), 400, "", None))["better"] == "second"


def test_a_difference_holds_at_every_look_and_names_a_winner_later():
    """300 comparisons of which the first is right alone in 4 of 100 units and the second in 2, looked at after each
    twenty from 40 units on."""
    chance, looks, inside = np.random.default_rng(2), range(40, 2_001, 20), 0
    for _ in range(300):
        apart = chance.choice([1, 0, -1], 2_000, p=[0.04, 0.94, 0.02])
        held = True
        for units in looks:
            value, off = apart[:units].mean(), Z * apart[:units].std() / np.sqrt(units)
            figure = at_every_look(
                difference_row("accuracy", {}, Difference(value, value - off, value + off), units, "", 0.01)
            )
            held &= figure["low"] <= 0.02 <= figure["high"]
            assert figure["p"] is None
            assert (figure["better"] == "first") == (figure["low"] > 1e-9)
        inside += held
    assert inside >= 0.95 * 300
