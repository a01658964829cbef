"""The agreement of a judge with people beside that of people with each other."""

from itertools import combinations

import numpy as np
import pytest

from annotate.core.aggregation.answer_table import tabulate
from annotate.core.agreement.coefficients import alpha
from annotate.core.agreement.judge_agreement import judge_agreement


def made(units=60, seed=3, slips=0.2):
    """Three people's answers to each unit and a judge's, each of which slips; the last ten units have one answer."""
    chance = np.random.default_rng(seed)
    truth = chance.integers(0, 3, units)
    said = np.where(chance.random((4, units)) < slips, chance.integers(0, 3, (4, units)), truth)
    rows = [
        (unit, person, "abc"[said[person, unit]])
        for unit in range(units)
        for person in range(3 if unit < units - 10 else 1)
    ]
    return tabulate(rows, "abc"), said


def test_the_means_are_those_of_all_pairs_on_a_unit():
    answers, said = made()
    found = judge_agreement(answers, said[3], seed=1)
    shared = said[:, :50]
    pairs = [np.mean(shared[first] == shared[second]) for first, second in combinations(range(3), 2)]
    with_judge = [np.mean(shared[person] == shared[3]) for person in range(3)]
    assert found.people.value == pytest.approx(np.mean(pairs))
    assert found.judge_shared.value == pytest.approx(np.mean(with_judge))
    assert found.difference.value == pytest.approx(np.mean(with_judge) - np.mean(pairs))
    assert (found.units, found.units_shared) == (60, 50)
    assert found.people.low < found.people.value < found.people.high
    assert found.difference.low < found.difference.value < found.difference.high


def test_alpha_is_that_of_the_answers_with_the_judge_among_the_annotators_and_without():
    answers, said = made()
    found = judge_agreement(answers, said[3], seed=1)
    counts = answers.counts()
    assert found.people_alpha == alpha(counts[:50], seed=1)
    with_judge = counts[:50] + np.eye(3, dtype=int)[said[3, :50]]
    assert found.judge_alpha == alpha(with_judge, seed=1)


def test_units_that_the_judge_did_not_label_do_not_count():
    answers, said = made()
    judge = said[3].copy()
    judge[:30] = -1
    found = judge_agreement(answers, judge, seed=1)
    assert (found.units, found.units_shared) == (30, 20)


def test_one_answer_each_leaves_the_judge_alone():
    answers = tabulate([(unit, 0, "ab"[unit % 2]) for unit in range(40)], "ab")
    found = judge_agreement(answers, np.zeros(40, dtype=int), seed=1)
    assert found.judge.value == 0.5
    assert found.people.value is found.difference is found.people_alpha.value is None


def test_a_difference_that_is_the_same_everywhere_has_no_interval():
    answers = tabulate([(unit, person, "ab"[unit % 2]) for unit in range(40) for person in range(2)], "ab")
    found = judge_agreement(answers, np.arange(40) % 2, seed=1)
    assert found.judge_shared.value == found.people.value == 1
    assert found.people.low < 1
    assert found.difference is None


def test_nothing_gives_nothing():
    found = judge_agreement(tabulate([], "ab"), np.zeros(0, dtype=int), seed=1)
    assert (found.judge.value, found.people.value, found.difference, found.units) == (None, None, None, 0)


def test_the_intervals_cover_what_many_units_show():
    answers, said = made(units=60_010)
    true = judge_agreement(answers, said[3], seed=1, replicates=10)
    covered = np.zeros(3)
    for seed in range(200):
        found = judge_agreement(*_judged(seed), seed=1, replicates=1)
        for place, (one, of) in enumerate(
            ((found.judge_shared, true.judge_shared), (found.people, true.people), (found.difference, true.difference))
        ):
            covered[place] += one.low <= of.value <= one.high
    assert (covered >= 182).all(), covered


def _judged(seed):
    answers, said = made(seed=1000 + seed)
    return answers, said[3]
