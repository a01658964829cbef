"""Accuracy by threshold, and thresholds for a wished precision: by hand, and in populations of known truth."""

import numpy as np
import pytest
from scipy.stats import binomtest

from annotate.core.measures.scored_units import Figure, scored_units, too_few
from annotate.core.measures.scores import MOST_POINTS, Point, precision_threshold, risk_coverage
from tests.annotate.simulated_scores import Population, sample, true_selection

pytestmark = pytest.mark.slow


def of_confidences(confidences, right, weights=None, groups=None):
    """Units of two labels whose answer has these confidences (0.5 or more) and is right or not."""
    high = np.asarray(confidences)
    return scored_units(1 - np.asarray(right, dtype=int), np.stack([high, 1 - high], axis=1), weights, groups)


def test_the_curve_has_a_point_for_each_confidence_and_the_area_is_the_mean_risk_over_units():
    found = risk_coverage(of_confidences([0.9, 0.8, 0.8, 0.6], [1, 1, 0, 0]))
    assert found.points == (Point(0.9, 0.25, 1.0), Point(0.8, 0.75, pytest.approx(2 / 3)), Point(0.6, 1.0, 0.5))
    assert found.area.value == pytest.approx((0 + 1 / 3 + 1 / 3 + 1 / 2) / 4)
    weighted = risk_coverage(of_confidences([0.9, 0.8, 0.6], [1, 0, 1], [1, 2, 3]))
    assert [point.accuracy for point in weighted.points] == pytest.approx([1, 1 / 3, 4 / 6])
    assert weighted.area.value == pytest.approx((0 * 1 + 2 / 3 * 2 + 2 / 6 * 3) / 6)


def test_a_long_curve_is_thinned_evenly_and_keeps_both_ends():
    chance = np.random.default_rng(3)
    found = risk_coverage(of_confidences(chance.uniform(0.5, 1, 5000), chance.random(5000) < 0.7))
    coverage = [point.coverage for point in found.points]
    assert len(coverage) == MOST_POINTS
    assert (coverage[0], coverage[-1]) == (1 / 5000, 1.0)
    assert max(np.diff(coverage)) < 1.1 / MOST_POINTS
    assert [point.threshold for point in found.points] == sorted((p.threshold for p in found.points), reverse=True)


def test_the_area_has_an_interval_where_enough_answers_are_wrong():
    chance = np.random.default_rng(4)
    confidences = chance.uniform(0.5, 1, 200)
    few = risk_coverage(of_confidences(confidences, [0] * 9 + [1] * 191)).area
    assert (few.low, few.reason) == (None, too_few(10, 9, " with right answers, and with wrong ones"))
    enough = risk_coverage(of_confidences(confidences, [0] * 10 + [1] * 190)).area
    assert 0 <= enough.low < enough.value < enough.high <= 1
    assert risk_coverage(scored_units(np.zeros(0, dtype=int), np.zeros((0, 2)))).points == ()


@pytest.mark.parametrize("right", [58, 59])
def test_without_an_error_59_units_show_a_precision_of_95_percent(right):
    found = precision_threshold(of_confidences(np.linspace(0.99, 0.6, right), [1] * right), 0.95)
    if right < 59:
        assert found.value is None
        assert found.reason == "Even without an error, 59 independent units are needed; there are 58."
        assert found.precision == Figure(None)
        return
    assert (found.value, found.recall, found.coverage) == (pytest.approx(0.6), 1.0, 1.0)
    assert found.precision.value == found.precision.high == 1.0
    assert found.precision.low == pytest.approx(0.05 ** (1 / 59))


def test_the_bounds_are_those_of_clopper_and_pearson_and_one_early_error_does_not_end_the_search():
    right = [1] * 190 + [0] * 5 + [1] * 5
    found = precision_threshold(of_confidences(np.linspace(0.99, 0.6, 200), right), 0.85)
    assert found.coverage == 1.0
    # Two chains of tests share the error.
    exact = binomtest(195, 200).proportion_ci(0.95)
    assert (found.precision.low, found.precision.high) == pytest.approx((exact.low, exact.high))
    found = precision_threshold(of_confidences(np.linspace(0.999, 0.5, 1000), [0] + [1] * 999), 0.95)
    assert found.coverage == 1.0
    # Units that tie are selected together.
    found = precision_threshold(of_confidences(np.repeat([0.9, 0.7], 100), [1] * 100 + [0, 1] * 50), 0.9)
    assert (found.value, found.coverage) == (0.9, 0.5)


def test_of_a_label_its_own_score_selects_and_recall_is_that_of_its_units():
    chance = np.random.default_rng(6)
    own = np.sort(chance.uniform(0, 1, 3000))[::-1]
    truth = (chance.random(3000) < np.where(own > 0.5, 0.97, 0.05)).astype(int)
    found = precision_threshold(scored_units(truth, np.stack([1 - own, own], axis=1)), 0.9, label=1)
    selected = own >= found.value
    assert found.precision.value == pytest.approx(truth[selected].mean())
    assert found.recall == pytest.approx(truth[selected].sum() / truth.sum())
    assert found.coverage == pytest.approx(selected.mean())
    assert 0.4 < found.value < 0.55


def test_where_no_threshold_reaches_the_wish_it_is_said_how_far_they_come():
    found = precision_threshold(of_confidences(np.linspace(0.99, 0.6, 200), [1, 0] * 100), 0.9)
    assert found.value is None
    assert found.reason.startswith("The lower bound of precision reaches ")
    few = of_confidences(np.linspace(0.99, 0.6, 200), [1] * 200, groups=np.arange(200) % 9)
    assert precision_threshold(few, 0.5).reason == "An interval needs at least 10 independent units; there are 9."
    nobody = scored_units(np.zeros(0, dtype=int), np.zeros((0, 2)))
    assert precision_threshold(nobody, 0.9).reason == "There are no units."
    for wish, label, message in ((1.0, None, "between 0 and 1"), (0.9, 2, "no label 2")):
        with pytest.raises(ValueError, match=message):
            precision_threshold(of_confidences([0.9], [1]), wish, label)


def test_equal_weights_and_groups_of_one_change_nothing_and_unequal_ones_widen():
    confidences, right = np.linspace(0.99, 0.6, 500), np.arange(500) % 200 < 190  # 20 are wrong, ten in a row
    plain = precision_threshold(of_confidences(confidences, right), 0.8)
    assert precision_threshold(of_confidences(confidences, right, [3] * 500, range(500)), 0.8) == plain
    unequal = precision_threshold(of_confidences(confidences, right, [1, 9] * 250), 0.8)
    grouped = precision_threshold(of_confidences(confidences, right, groups=np.arange(500) // 10), 0.8)
    assert plain.coverage == unequal.coverage == 1.0
    assert unequal.precision.low < plain.precision.low
    assert grouped.coverage == 0.374  # 19 groups without an error show it, and 20 groups with one do not


def lowest_uncorrected(units, wish):
    """The lowest threshold whose own exact bound reaches the wish, as though it had not been chosen from many."""
    order = np.argsort(-units.confidence)
    hits, of = units.right[order].cumsum(), np.arange(1, len(order) + 1)
    best = [n for n in range(20, len(of)) if binomtest(int(hits[n]), int(of[n]), wish, "greater").pvalue <= 0.05]
    return bool(best)


@pytest.mark.parametrize("weights", ["equal", "unequal"])
def test_where_no_threshold_has_the_precision_at_most_5_percent_of_samples_find_one(weights):
    chance, wish, draws, missed, uncorrected = np.random.default_rng(8), 0.9, 400, 0, 0
    for number in range(draws):
        # Scores show nothing, and the precision is just too low at every threshold.
        heavy = chance.choice([1, 4], 300) if weights == "unequal" else None
        units = of_confidences(chance.uniform(0.5, 1, 300), chance.random(300) < wish - 0.001, heavy)
        missed += precision_threshold(units, wish).value is not None
        if weights == "equal" and number < 100:
            uncorrected += lowest_uncorrected(units, wish)
    assert missed <= 0.05 * draws
    assert weights == "unequal" or uncorrected > 10


@pytest.mark.parametrize(
    "population",
    [Population(1000), Population(1000, temperature=0.5, easy=0.2), Population(1000, signal=2.0, group=5)],
    ids=["calibrated", "overconfident, weights 1 and 5", "200 groups of 5"],
)
def test_the_wished_precision_is_reached_in_95_percent_of_samples(population):
    chance, draws, wish = np.random.default_rng(9), 300, 0.85
    truth = {label: true_selection(population, label) for label in (None, 0)}
    missed, selected = {None: 0, 0: 0}, {None: [], 0: []}
    for _ in range(draws):
        units = sample(population, chance).units
        for label in missed:
            found = precision_threshold(units, wish, label)
            if found.value is not None:
                missed[label] += truth[label].precision(found.value) < wish
                selected[label].append(found.coverage)
    assert max(missed.values()) <= 0.05 * draws
    # It is found, and not far above the lowest one that has the precision in the population.
    for label, coverages in selected.items():
        assert len(coverages) >= 0.9 * draws
        assert np.mean(coverages) > 0.7 * truth[label].coverage(wish)
