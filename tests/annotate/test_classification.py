"""Agreement of predicted and gold labels: as scikit-learn has it, and with intervals that hold the truth."""

import numpy as np
import pytest
from sklearn import metrics

from annotate.core import classification as classes
from annotate.core.classification import Paired, apart
from annotate.core.intervals import jeffreys


def drawn(seed, units=300, labels=4, weights=False, groups=0):
    chance = np.random.default_rng(seed)
    gold = chance.choice(labels, units, p=np.arange(1, labels + 1) / sum(range(1, labels + 1)))
    said = np.where(chance.random(units) < 0.7, gold, chance.integers(labels, size=units))
    heavy = chance.integers(1, 5, units).astype(float) if weights else np.ones(units)
    return Paired(gold, said, labels, heavy, chance.integers(groups, size=units) if groups else None)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_measure_is_scikit_learns(seed, weights):
    pairs = drawn(seed, weights=weights)
    theirs = {"sample_weight": pairs.weights}
    of = pairs.margins
    by_label = metrics.precision_recall_fscore_support(pairs.gold, pairs.said, zero_division=0, **theirs)
    for measure, expected in zip((classes.precisions, classes.recalls, classes.f1s), by_label, strict=False):
        assert measure(of) == pytest.approx(expected, abs=1e-9)
    for measure, expected in (
        (classes.accuracy, metrics.accuracy_score(pairs.gold, pairs.said, **theirs)),
        (classes.kappa, metrics.cohen_kappa_score(pairs.gold, pairs.said, **theirs)),
        (classes.matthews, metrics.matthews_corrcoef(pairs.gold, pairs.said, **theirs)),
        (classes.weighted_kappa, metrics.cohen_kappa_score(pairs.gold, pairs.said, weights="quadratic", **theirs)),
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


def test_a_share_of_a_plain_sample_has_the_interval_of_its_counts():
    pairs = drawn(2)
    hits = int(pairs.right.sum())
    found = pairs.share(pairs.right, np.ones(300, dtype=bool))
    assert (found.value, found.low, found.high) == (hits / 300, *jeffreys(hits, 300))


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


def test_two_systems_that_say_the_same_are_not_apart():
    pairs = drawn(3)
    found, p = apart(pairs, pairs, classes.accuracy)
    assert (found.value, found.low, found.high, found.better, p) == (0.0, 0.0, 0.0, None, 1.0)


def test_a_better_system_is_found():
    pairs = drawn(4)
    found, p = apart(Paired(pairs.gold, pairs.gold, 4, pairs.weights), pairs, classes.kappa)
    assert found.better == "first"
    assert p < 0.001
