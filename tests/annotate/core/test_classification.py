"""Agreement of predicted and gold labels: as scikit-learn has it, and with intervals that hold the truth."""

import numpy as np
import pytest
from sklearn import metrics

from annotate.core.measures import classification as classes
from annotate.core.measures.classification import Paired, apart


def drawn(seed, units=300, labels=4, weights=False, groups=0):
    chance = np.random.default_rng(seed)
    gold = chance.choice(labels, units, p=np.arange(1, labels + 1) / sum(range(1, labels + 1)))
    said = np.where(chance.random(units) < 0.7, gold, chance.integers(labels, size=units))
    heavy = chance.integers(1, 5, units).astype(float) if weights else np.ones(units)
    return Paired(gold, said, labels, heavy, chance.integers(groups, size=units) if groups else None)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_every_measure_is_scikit_learns(seed, weights):
    pairs = drawn(seed, weights=weights)
    theirs = {"sample_weight": pairs.weights}
    of = pairs.margins
    by_label = metrics.precision_recall_fscore_support(pairs.gold, pairs.predicted, zero_division=0, **theirs)
    for measure, expected in zip((classes.precisions, classes.recalls, classes.f1s), by_label, strict=False):
        assert measure(of) == pytest.approx(expected, abs=1e-9)
    for measure, expected in (
        (classes.accuracy, metrics.accuracy_score(pairs.gold, pairs.predicted, **theirs)),
        (classes.kappa, metrics.cohen_kappa_score(pairs.gold, pairs.predicted, **theirs)),
        (classes.matthews, metrics.matthews_corrcoef(pairs.gold, pairs.predicted, **theirs)),
        (classes.weighted_kappa, metrics.cohen_kappa_score(pairs.gold, pairs.predicted, weights="quadratic", **theirs)),
    ):
        assert float(measure(of)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("how", [{}, {"weights": True}, {"groups": 40}])
def test_the_jackknife_leaves_out_each_unit_or_group_as_by_hand(how):
    pairs = drawn(1, 120, **how)
    left = pairs.groups if pairs.groups is not None else np.arange(120)
    found = np.array([float(classes.kappa(pairs.where(left != each).margins)) for each in np.unique(left)])
    units, spread = pairs._jackknife(classes.kappa)
    assert units == len(found)
    assert spread == pytest.approx((len(found) - 1) * found.var())


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"weights": True}, {"groups": 60}])
def test_intervals_hold_the_value_of_a_large_sample(how):
    """Of 300 draws; the truth is that of a sample of 400,000."""
    measures = {"accuracy": classes.accuracy, "macro F1": classes.macro(classes.f1s, np.ones(4, dtype=bool))}
    truth = {name: float(measure(drawn(99, 400_000, **how).margins)) for name, measure in measures.items()}
    kappa = float(classes.kappa(drawn(99, 400_000, **how).margins))
    held = dict.fromkeys((*measures, "kappa"), 0)
    for seed in range(300):
        pairs = drawn(1000 + seed, **how)
        for name, measure in measures.items():
            found = pairs.estimate(measure)
            held[name] += found.low <= truth[name] <= found.high
        found = pairs.coefficient(classes.kappa)
        held["kappa"] += found.low <= kappa <= found.high
    assert min(held.values()) >= 300 * 0.91, held


def test_a_better_system_is_found_and_one_that_predicts_the_same_is_not_apart():
    pairs = drawn(4)
    [(found, p)] = apart(Paired(pairs.gold, pairs.gold, 4, pairs.weights), pairs, classes.kappa)
    assert found.better == "first"
    assert p < 0.001
    [(found, p)] = apart(pairs, pairs, classes.accuracy)
    assert (found.value, found.low, found.high, found.better, p) == (0.0, 0.0, 0.0, None, 1.0)


def two_systems(chance, units=20_000):
    """Gold labels and what two systems say, right in 94 and 92%, with errors that are partly the same."""
    gold = chance.choice(5, units, p=[0.4, 0.25, 0.15, 0.12, 0.08])
    first_right = chance.random(units) < 0.94
    second_right = np.where(first_right, chance.random(units) < 0.946, chance.random(units) < 0.5)
    wrong = (gold + chance.integers(1, 5, units)) % 5
    return gold, np.where(first_right, gold, wrong), np.where(second_right, gold, wrong)


def contrasted(chance, gold, first, second, size):
    """Four fifths of the units are drawn where the two differ."""
    differ, agree = np.flatnonzero(first != second), np.flatnonzero(first == second)
    taken = [(differ, size - size // 5), (agree, size // 5)]
    units = np.concatenate([chance.choice(part, number, replace=False) for part, number in taken])
    weights = np.repeat([len(part) / number for part, number in taken], [number for _, number in taken])
    return [Paired(gold[units], said[units], 5, weights / weights.min()) for said in (first, second)]


@pytest.mark.slow
def test_intervals_hold_the_truth_where_parts_have_chances_of_their_own():
    """300 draws of 200 units: the difference of two accuracies, one accuracy, and the recall of two labels. A part in
    which all that was read is right still leaves room."""
    chance = np.random.default_rng(4)
    gold, first, second = two_systems(chance)
    right = first == gold
    truths = [right.mean() - (second == gold).mean(), right.mean(), *(right[gold == label].mean() for label in (0, 1))]
    held = np.zeros(4)
    for _ in range(300):
        one, other = contrasted(chance, gold, first, second, 200)
        shares = [one.share(one.right, domain) for domain in (one.gold >= 0, one.gold == 0, one.gold == 1)]
        found = [apart(one, other, classes.accuracy)[0][0], *shares]
        held += [each.low <= truth <= each.high for each, truth in zip(found, truths, strict=True)]
    assert min(held) >= 300 * 0.92, held


def test_two_hundred_units_where_two_systems_differ_tell_as_much_as_a_thousand_of_all():
    chance = np.random.default_rng(5)
    gold, first, second = two_systems(chance)

    def width(pairs):
        [(found, _)] = apart(*pairs, classes.accuracy)
        return found.high - found.low

    def uniform(size):
        units = chance.choice(len(gold), size, replace=False)
        return [Paired(gold[units], said[units], 5, np.ones(size)) for said in (first, second)]

    widths = [(width(contrasted(chance, gold, first, second, 200)), width(uniform(1_000))) for _ in range(40)]
    assert np.mean(widths, axis=0)[0] < np.mean(widths, axis=0)[1]
