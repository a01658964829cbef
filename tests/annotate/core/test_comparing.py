"""McNemar's exact test, whether two estimates differ, and Holm's correction."""

from math import comb

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.estimation.differences import Difference, benjamini_yekutieli, difference, holm, mcnemar
from annotate.core.estimation.proportions import Estimate, Z, jeffreys, proportion
from annotate.core.measures.figure_rows import at_every_look, difference_row, factor, row, share_at_every_look

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


def test_it_costs_half_as_much_again_of_ten_and_twice_as_much_of_ten_thousand():
    def price(hits, of):
        wide, plain = share_at_every_look(hits, of), jeffreys(hits, of)
        return (wide[1] - wide[0]) / (plain[1] - plain[0])

    assert 1.4 < price(9, 10) < price(90, 100) < price(9_000, 10_000) < 2.1
    assert 1.5 < factor(100) / Z < 1.6 < factor(10_000) / Z < 1.9


def test_a_plain_share_has_the_interval_of_its_counts_and_a_withheld_one_stays():
    found = at_every_look(row("accuracy", {}, proportion(90, 100), 100))
    assert (found["low"], found["high"]) == pytest.approx(share_at_every_look(90, 100))
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
            found = at_every_look(
                difference_row("accuracy", {}, Difference(value, value - off, value + off), units, "", 0.01)
            )
            held &= found["low"] <= 0.02 <= found["high"]
            assert found["p"] is None
            assert (found["better"] == "first") == (found["low"] > 1e-9)
        inside += held
    assert inside >= 0.95 * 300
