"""Intervals that hold at every look, beside those for one."""

import numpy as np
import pytest
import scipy

from annotate.core.estimation.differences import Difference
from annotate.core.estimation.proportions import Z, jeffreys, proportion
from annotate.core.measures.figure_rows import at_every_look, difference_row, factor, row, share_at_every_look


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
