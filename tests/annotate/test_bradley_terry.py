"""Strengths of systems from paired comparisons, held against choix."""

import choix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.special import expit

from annotate.core.measures.paired_comparisons import groups, strengths

# Won by the row's system against the column's.
THREE = np.array([[0, 6, 4], [2, 0, 5], [1, 3, 0]], float)


def by_choix(wins):
    pairs = [(a, b) for a, row in enumerate(wins) for b, number in enumerate(row) for _ in range(int(number))]
    found = choix.ilsr_pairwise(len(wins), pairs, alpha=0, max_iter=1000, tol=1e-12)
    return found - found.mean()


@hypothesis_settings(deadline=None)
@given(st.integers(2, 6).flatmap(lambda size: st.lists(st.integers(1, 30), min_size=size**2, max_size=size**2)))
def test_strengths_are_those_of_a_kept_library(numbers):
    size = int(len(numbers) ** 0.5)
    wins = np.array(numbers, float).reshape(size, size) * (1 - np.eye(size))
    assert strengths(wins) == pytest.approx(by_choix(wins), abs=1e-6)


def test_strengths_add_up_to_nothing_and_expect_as_many_wins_as_there_were():
    found = strengths(THREE)
    assert found.sum() == pytest.approx(0, abs=1e-12)
    expected = (THREE + THREE.T) * expit(found[:, None] - found[None, :])
    assert expected.sum(axis=1) == pytest.approx(THREE.sum(axis=1))


def test_of_two_systems_the_strengths_are_the_logarithm_of_the_odds():
    found = strengths(np.array([[0, 9], [3, 0]], float))
    assert found[0] - found[1] == pytest.approx(np.log(9 / 3))


def test_systems_that_never_met_are_ordered_through_others():
    wins = np.array([[0, 6, 0], [2, 0, 6], [0, 2, 0]], float)
    assert np.diff(strengths(wins)) == pytest.approx([-np.log(3), -np.log(3)])


def test_halves_count_and_very_uneven_counts_have_strengths_too():
    assert strengths(np.array([[0, 0.5], [0.5, 0]])) == pytest.approx([0, 0])
    found = strengths(np.array([[0, 1e6], [1, 0]]))
    assert found[0] - found[1] == pytest.approx(np.log(1e6))


def test_a_system_that_was_never_beaten_has_no_finite_strength():
    wins = np.array([[0, 2, 3], [0, 0, 2], [0, 1, 0]], float)
    assert groups(wins) == [[0], [1, 2]]
    assert np.isnan(strengths(wins)).all()


def test_systems_that_were_compared_in_two_rooms_have_no_strengths_together():
    wins = np.zeros((4, 4))
    wins[0, 1] = wins[1, 0] = wins[2, 3] = wins[3, 2] = 3
    assert groups(wins) == [[0, 1], [2, 3]]
    assert np.isnan(strengths(wins)).all()


def test_the_group_that_nobody_of_another_beats_comes_first():
    wins = np.zeros((3, 3))
    wins[2, 1] = wins[1, 0] = 1
    assert groups(wins) == [[2], [1], [0]]


def test_many_comparisons_at_once_have_the_strengths_that_each_has_alone():
    unbeaten = np.array([[0, 2, 3], [0, 0, 2], [0, 1, 0]], float)
    whole = np.array([[THREE, unbeaten], [THREE.T, 100 * THREE]])
    assert strengths(whole) == pytest.approx(
        np.array([[strengths(each) for each in row] for row in whole]), abs=1e-9, nan_ok=True
    )
