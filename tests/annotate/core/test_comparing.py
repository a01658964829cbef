"""McNemar's exact test, whether two estimates differ, and Holm's correction."""

from math import comb

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.estimation.differences import benjamini_yekutieli, difference, holm, mcnemar
from annotate.core.estimation.proportions import Estimate, proportion

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
