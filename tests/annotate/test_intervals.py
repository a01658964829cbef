"""The Jeffreys interval, as the published formats state it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.estimation.proportions import jeffreys


@st.composite
def counts(draw):
    of = draw(st.floats(1e-3, 1e5))
    return draw(st.floats(0, 1)) * of, of


def test_one_of_1500_is_the_interval_that_the_article_prints():
    low, high = jeffreys(1, 1500)
    assert f"{low:.3%} to {high:.3%}" == "0.007% to 0.311%"


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        (0, 30, 0.0, 0.07968),
        (30, 30, 0.92032, 1.0),
        (0, 1, 0.0, 0.85325),
        (5, 10, 0.2235, 0.7765),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_ends_are_quantiles_but_for_none_and_all(hits, of, low, high):
    assert jeffreys(hits, of) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@given(counts())
def test_the_interval_holds_the_proportion_and_stays_between_0_and_1(given_counts):
    hits, of = given_counts
    low, high = jeffreys(hits, of)
    assert 0 <= low <= hits / of <= high <= 1


@given(st.integers(1, 500), st.data())
def test_one_more_hit_moves_both_ends_up(of, data):
    hits = data.draw(st.integers(0, of - 1))
    (low, high), (next_low, next_high) = jeffreys(hits, of), jeffreys(hits + 1, of)
    assert low < next_low
    assert high <= next_high


@given(st.integers(1, 500), st.data())
def test_hits_and_misses_mirror_each_other(of, data):
    hits = data.draw(st.integers(0, of))
    low, high = jeffreys(hits, of)
    assert jeffreys(of - hits, of) == (pytest.approx(1 - high), pytest.approx(1 - low))


def test_a_higher_level_is_wider():
    low, high = jeffreys(3, 30, level=0.99)
    assert low < jeffreys(3, 30)[0] < jeffreys(3, 30)[1] < high


@pytest.mark.parametrize(("hits", "of"), [(-1, 3), (4, 3), (float("nan"), 3)])
def test_what_is_no_proportion_is_refused(hits, of):
    with pytest.raises(ValueError, match="between 0 and the count"):
        jeffreys(hits, of)


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ValueError, match="not 95"):
        jeffreys(1, 3, level=95)
