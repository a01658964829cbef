"""Agreement of predicted and gold labels, as scikit-learn has it, and accuracy class by class, and their intervals."""

from itertools import product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from annotate.core.estimation.proportions import UNKNOWN, jeffreys
from annotate.core.measures import classification as classes
from annotate.core.measures.classification import ClassSample, Paired, compare, difference, mean


def drawn(seed, units=300, labels=4, weights=False, groups=0):
    chance = np.random.default_rng(seed)
    gold = chance.choice(labels, units, p=np.arange(1, labels + 1) / sum(range(1, labels + 1)))
    predicted = np.where(chance.random(units) < 0.7, gold, chance.integers(labels, size=units))
    heavy = chance.integers(1, 5, units).astype(float) if weights else np.ones(units)
    return Paired(gold, predicted, labels, heavy, chance.integers(groups, size=units) if groups else None)


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
    kappas = np.array([float(classes.kappa(pairs.where(left != part).margins)) for part in np.unique(left)])
    units, spread = pairs._jackknife(classes.kappa)
    assert units == len(kappas)
    assert spread == pytest.approx((len(kappas) - 1) * kappas.var())


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
            estimate = pairs.estimate(measure)
            held[name] += estimate.low <= truth[name] <= estimate.high
        estimate = pairs.coefficient(classes.kappa)
        held["kappa"] += estimate.low <= kappa <= estimate.high
    assert min(held.values()) >= 300 * 0.91, held


def test_a_better_system_is_named_and_equal_predictions_do_not_differ():
    pairs = drawn(4)
    [(gap, p)] = compare(Paired(pairs.gold, pairs.gold, 4, pairs.weights), pairs, classes.kappa)
    assert gap.better == "first"
    assert p < 0.001
    [(gap, p)] = compare(pairs, pairs, classes.accuracy)
    assert (gap.value, gap.low, gap.high, gap.better, p) == (0.0, 0.0, 0.0, None, 1.0)


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
    return [Paired(gold[units], predicted[units], 5, weights / weights.min()) for predicted in (first, second)]


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
        estimates = [compare(one, other, classes.accuracy)[0][0], *shares]
        held += [estimate.low <= truth <= estimate.high for estimate, truth in zip(estimates, truths, strict=True)]
    assert min(held) >= 300 * 0.92, held


DRAWS = 1000


def of_counts(*counts):
    """Classes of equal weight, from the (hits, documents) of each."""
    return [ClassSample(1 / len(counts), np.array([1.0] * hits + [0.0] * (of - hits))) for hits, of in counts]


def test_the_effective_count_is_that_of_the_variance_by_class():
    # One more in each class, as all together: (9 + 0.7) of 11, and (5 + 0.7) of 11, each squares less 11 times the mean
    # squared, over ten documents twice; and half of each.
    spread = sum((hits - hits**2 / 11) / 10**2 / 4 for hits in (9.7, 5.7))
    estimate = mean(of_counts((9, 10), (5, 10)))
    assert estimate.count == pytest.approx(0.7 * 0.3 / spread)
    assert estimate.value == pytest.approx(0.7)
    assert (estimate.low, estimate.high) == jeffreys(estimate.hits, estimate.count)
    heavy = [ClassSample(0.75, np.array([1.0, 0.0])), ClassSample(0.25, np.array([1.0, 1.0]))]
    assert mean(heavy).value == pytest.approx(0.625)
    # Where all are right or none, the interval is the plain one; documents that count half each count once.
    for hits in (0, 20):
        estimate = mean(of_counts((hits, 20), (hits, 20)))
        assert (estimate.low, estimate.high) == pytest.approx(jeffreys(2 * hits, 40))
    assert mean([ClassSample(1.0, np.full(30, 0.5))]).count == pytest.approx(30)


def test_no_documents_give_no_figure_and_a_class_without_any_does_not_count():
    assert mean([]) == UNKNOWN
    assert difference([], []) is None
    empty = ClassSample(0.0, np.array([]))
    classes = of_counts((9, 10), (5, 10))
    assert mean([*classes, empty]) == mean(classes)
    assert difference([*classes, empty], [*classes, empty]) == difference(classes, classes)


COUNTS = st.lists(st.integers(1, 60).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))), min_size=1)


@given(COUNTS, st.randoms())
def test_an_interval_holds_its_value_and_a_difference_is_that_of_the_means_and_leaves_ties_out(counts, random):
    first = of_counts(*counts)
    estimate = mean(first)
    assert 0 <= estimate.low <= estimate.value + 1e-9
    assert estimate.value - 1e-9 <= estimate.high <= 1
    second = [draw._replace(values=np.array([float(random.random() < 0.5) for _ in draw.values])) for draw in first]
    apart, back = difference(first, second), difference(second, first)
    assert apart.value == pytest.approx(mean(first).value - mean(second).value)
    assert (back.value, back.low, back.high) == pytest.approx((-apart.value, -apart.high, -apart.low))
    assert apart.low <= apart.value + 1e-9
    assert apart.value - 1e-9 <= apart.high
    same = difference(first, first)
    assert (same.value, same.better) == (0, None)
    assert same.low == pytest.approx(-same.high)


def is_held(interval, truth):
    return interval.low <= truth <= interval.high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recalls", "documents"),
    [
        ((0.3, 0.6, 0.75, 0.9, 0.97, 0.99, 0.8), 20),  # of each class
        ((0.93, 0.97, 0.9, 0.98), 250),
        ((0.8,) * 7, 5),
    ],
)
def test_95_percent_intervals_of_accuracy_hold_the_truth_in_about_95_percent_of_draws(recalls, documents):
    chance = np.random.default_rng(2018)
    held, widths, plain = [], [], []
    for _ in range(DRAWS):
        hits = chance.binomial(documents, recalls)
        estimate = mean(of_counts(*((int(number), documents) for number in hits)))
        held.append(is_held(estimate, fmean(recalls)))
        widths.append(estimate.high - estimate.low)
        low, high = jeffreys(int(hits.sum()), documents * len(recalls))
        plain.append(high - low)
    assert 0.93 <= fmean(held) <= 0.975
    # Where classes differ, they are narrower than those that take the classes for chance.
    assert fmean(widths) < fmean(plain) * (1.05 if len(set(recalls)) == 1 else 1.01)


@pytest.mark.slow
@pytest.mark.parametrize(("languages", "systems", "documents"), [(3, 3, 10), (2, 8, 100)])
def test_means_over_systems_and_their_differences_are_held_though_the_systems_err_on_the_same_documents(
    languages, systems, documents
):
    chance = np.random.default_rng(7)
    classes = 7
    # A document is right under a system where its ease, which all systems share by half, lies below the system's.
    ease = chance.normal(1.0, 0.5, (2, languages, classes, systems, 1))
    truth = [(ease[side] > np.random.default_rng(1).normal(size=200_000)).mean() for side in (0, 1)]
    held, apart, as_others = [], [], []
    for _ in range(500):
        shared = chance.normal(size=(languages, classes, 1, documents))
        right = [
            ease[side] > (shared + chance.normal(size=(languages, classes, systems, documents))) / np.sqrt(2)
            for side in (0, 1)
        ]
        first, second = (
            [ClassSample(1 / (languages * classes), one) for one in side.mean(axis=2).reshape(-1, documents)]
            for side in right
        )
        held.append(is_held(mean(first), truth[0]))
        low, high = jeffreys(int(right[0].sum()), right[0].size)
        as_others.append(low <= truth[0] <= high)
        apart.append(is_held(difference(first, second), truth[0] - truth[1]))
    assert 0.93 <= fmean(held) <= 0.975
    assert 0.93 <= fmean(apart) <= 0.975
    # If each system's documents count as different ones, intervals are too narrow, more so with more systems.
    assert fmean(as_others) < (0.93 if systems == 3 else 0.85)


def test_translations_of_a_document_are_one_value_their_mean():
    chance = np.random.default_rng(3)
    values = chance.random((2, 3, 20)).round()  # by class and language
    units = np.arange(40).reshape(2, 20)
    by_language = [ClassSample(1 / 6, values[k, n], units[k]) for k in (0, 1) for n in range(3)]
    by_unit = [ClassSample(1 / 2, values[k].mean(axis=0)) for k in (0, 1)]
    assert mean(by_language).as_dict() == pytest.approx(mean(by_unit).as_dict())
    others = [ClassSample(1 / 6, chance.random(20).round(), draw.units) for draw in by_language]
    apart = difference(by_language, others)
    # Documents without translations are documents by themselves.
    classes = of_counts((9, 10), (5, 10), (8, 20))
    numbers = np.split(np.arange(40), [10, 20])
    assert mean([draw._replace(units=units) for draw, units in zip(classes, numbers, strict=True)]) == mean(classes)
    assert apart.value == pytest.approx(mean(by_language).value - mean(others).value)


@pytest.mark.slow
@pytest.mark.parametrize("documents", [20, 33])
def test_means_over_eight_languages_of_translated_documents_are_held(documents):
    """Three systems, and in each language 20 of this many test documents of each of 7 classes. A document is equally
    hard in all languages."""
    chance = np.random.default_rng(200)
    ease = np.linspace(2, 4, 8)[:, None] + np.linspace(0, 0.5, 3)

    def right(hard):
        size = (*hard.shape, *ease.shape)
        of_systems = hard[..., None, None] + 0.7 * chance.normal(size=size) + chance.logistic(size=size)
        return (ease > of_systems).mean(axis=-1)

    truth = right(chance.normal(size=100_000)).mean()
    held, taken_for_others = [], []
    for _ in range(300):
        values = right(chance.normal(size=(7, documents)))
        drawn = []
        for label, language in product(range(7), range(8)):
            places = chance.permutation(documents)[:20]
            drawn.append(ClassSample(1 / 56, values[label, places, language], 100 * label + places))
        held.append(is_held(mean(drawn), truth))
        taken_for_others.append(is_held(mean([draw._replace(units=None) for draw in drawn]), truth))
    assert 0.925 <= fmean(held) <= 0.975
    assert fmean(taken_for_others) < 0.9
