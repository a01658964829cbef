"""Measures of scores and thresholds held against scikit-learn and sums by hand, and how often their intervals cover."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics

from annotate.core.estimation.proportions import jeffreys
from annotate.core.estimation.resampling import LEAST_LEFT_OUT, LEAST_UNITS
from annotate.core.measures.scored_units import NO_VARIATION, Fault, Figure, check_scores, scored_units, too_few
from annotate.core.measures.scores import (
    MOST_POINTS,
    Point,
    _roc_auc,
    average_precision,
    brier_score,
    cross_entropy,
    expected_calibration_error,
    log_loss,
    manhattan_distance,
    mean_above,
    precision_threshold,
    risk_coverage,
    roc_auc,
)
from tests.annotate.simulated_scores import (
    POPULATIONS,
    Population,
    Sample,
    figures,
    sample,
    true_figures,
    true_selection,
)

EXACT = {"rel": 0, "abs": 1e-9}


def random_units(labels, seed, count=400):
    """Truth, scores with many ties, and weights with some zeros."""
    chance = np.random.default_rng(seed)
    scores = chance.multinomial(10, chance.dirichlet(np.ones(labels), count)) / 10
    truth = (scores.cumsum(axis=1) < chance.random((count, 1)) - 0.1).sum(axis=1).clip(0, labels - 1)
    weights = chance.exponential(5, count) * (chance.random(count) < 0.9)
    return truth, scores, weights


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", [2, 3, 6])
def test_measures_equal_those_of_scikit_learn_with_ties_and_weights(labels, weighted):
    truth, scores, weights = random_units(labels, labels)
    units = scored_units(truth, scores, weights if weighted else None)
    how = {"sample_weight": weights} if weighted else {}
    every = {"labels": range(labels)} | how
    assert log_loss(units).value == pytest.approx(metrics.log_loss(truth, scores, **every), **EXACT)
    assert cross_entropy(np.eye(labels)[truth], units) == pytest.approx(log_loss(units))  # where people are of one mind
    brier = metrics.brier_score_loss(truth, scores, scale_by_half=False, **every)
    assert brier_score(units).value == pytest.approx(brier, **EXACT)
    columns = np.eye(labels, dtype=int)[truth]
    for measure, theirs in ((roc_auc, metrics.roc_auc_score), (average_precision, metrics.average_precision_score)):
        areas = measure(units)
        expected = [theirs(columns[:, label], scores[:, label], **how) for label in range(labels)]
        assert [figure.value for figure in areas.labels] == pytest.approx(expected, **EXACT)
        assert areas.macro.value == pytest.approx(theirs(columns, scores, average="macro", **how), **EXACT)


def test_the_calibration_error_is_the_mean_gap_over_bins_and_the_table_has_each_bin():
    scores = [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    calibration = expected_calibration_error(scored_units([0, 1, 1, 0], scores, [1, 1, 2, 4]), bins=5, seed="")
    # (0.4, 0.6]: 0.6 and right; (0.6, 0.8]: 0.8 and right; (0.8, 1]: 0.9 and half right.
    assert calibration.error.value == pytest.approx((4 * 0.4 + 2 * 0.2 + 2 * 0.4) / 8)
    rows = [(table.above, table.most, table.units, table.weight, table.confidence) for table in calibration.bins]
    assert rows == [
        (0.0, 0.2, 0, 0.0, None),
        (0.2, 0.4, 0, 0.0, None),
        (0.4, 0.6, 1, 4.0, pytest.approx(0.6)),
        (0.6, 0.8, 1, 2.0, pytest.approx(0.8)),
        (0.8, 1.0, 2, 2.0, pytest.approx(0.9)),
    ]
    assert [table.accuracy.value for table in calibration.bins] == [None, None, 1.0, 1.0, 0.5]
    assert calibration.bins[0].accuracy.reason == "There are no items."
    # Of plain counts the interval is that of Jeffreys, as everywhere.
    assert (calibration.bins[4].accuracy.low, calibration.bins[4].accuracy.high) == jeffreys(1, 2)


def test_distances_to_peoples_answers_are_those_of_the_shared_tasks():
    units = scored_units([0, 1], [[0.7, 0.3], [0.2, 0.8]], [1, 3])
    people = [[0.5, 0.5], [0.0, 1.0]]
    assert manhattan_distance(people, units).value == pytest.approx((0.4 + 3 * 0.4) / 4)
    entropies = -(np.log(0.7) + np.log(0.3)) / 2, -np.log(0.8)
    assert cross_entropy(people, units).value == pytest.approx((entropies[0] + 3 * entropies[1]) / 4)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([np.nan, 1.0], "A score is not a number."),
        ([np.inf, -np.inf], "A score is infinite."),
        ([-0.1, 1.1], "The score -0.1 is negative."),
        ([1.2, 0.0], "The score 1.2 is above 1."),
        ([0.4, 0.4], "The scores add up to 0.8, not 1."),
        ([0.5, 0.5011], "The scores add up to 1.0011, not 1."),
        ([97.0, 3.0], "The scores add up to 100, not 1. Divide percentages by 100."),
    ],
)
def test_the_first_row_that_is_no_distribution_is_found(row, what):
    scores = [[0.5, 0.5], [0.5, 0.5009], row, [7.0, 7.0]]
    assert check_scores(scores[:2]) is None
    assert check_scores(scores) == Fault(2, what)
    with pytest.raises(ValueError, match=f"^Row 2: {what}$"):
        scored_units([0, 0, 0, 0], scores)
    for few in ([0.5, 0.5], [[1.0], [1.0]]):
        with pytest.raises(ValueError, match="at least two columns, one per label"):
            check_scores(few)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"truth": [0]}, "truth must have one value for each of the 2 rows"),
        ({"truth": [0, 2]}, "from 0 to 1"),
        ({"truth": [0, -1]}, "from 0 to 1"),
        ({"truth": [0.0, 1.0]}, "label indices"),
        ({"weights": [1]}, "weights must have one value"),
        ({"weights": [1, -1]}, "0 or more"),
        ({"weights": [1, np.nan]}, "0 or more"),
        ({"groups": [1, 2, 3]}, "groups must have one value"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        scored_units(**({"truth": [0, 1], "scores": [[0.5, 0.5], [0.5, 0.5]]} | changed))


@pytest.mark.parametrize("people", [[[0.5, 0.5]], [[0.5, 0.5]] * 3, [[0.5, 0.25, 0.25]] * 2, [[0.5, 0.5], [2, 3]]])
def test_peoples_answers_that_do_not_fit_are_refused(people):
    with pytest.raises(ValueError, match=r"of people's answers|People's answers"):
        cross_entropy(people, scored_units([0, 1], [[0.5, 0.5]] * 2))


def test_a_label_without_units_or_without_others_has_no_figure_and_the_mean_leaves_it_out():
    scores = [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]] * 20
    areas = roc_auc(scored_units([0, 1] * 20, scores))
    assert areas.labels[2] == Figure(None, reason="No item has this label.")
    assert (areas.macro.value, areas.macro.reason) == (1.0, "The mean leaves out 1 of 3 labels.")
    assert areas.macro.low is not None
    nobody = scored_units(np.zeros(0, dtype=int), np.zeros((0, 3)))
    for figure in (log_loss(nobody), roc_auc(nobody).labels[0], expected_calibration_error(nobody, seed="").error):
        assert figure == Figure(None, reason="There are no items.")
    same = log_loss(scored_units([0] * 30, [[0.8, 0.2]] * 30))
    assert (same.low, same.reason) == (None, NO_VARIATION)
    only = average_precision(scored_units([1] * 40, scores))
    assert only.labels[1].reason == "All items have this label."
    assert only.macro == Figure(None, reason="No label has both items with it and items without it.")


def test_the_area_of_a_label_needs_enough_units_of_it_and_a_perfect_one_has_an_interval_of_the_rarer_kind():
    scores = np.random.default_rng(1).dirichlet([1, 1], 100)
    for positives, there in ((LEAST_LEFT_OUT - 1, False), (LEAST_LEFT_OUT, True)):
        truth = np.array([1] * positives + [0] * (100 - positives))
        figure = roc_auc(scored_units(truth, scores)).labels[1]
        assert (figure.low is not None) == there == (not figure.reason)
    truth = np.array([1] * 20 + [0] * 1000)
    right = np.where(truth == 1, 0.9, 0.1)
    figure = roc_auc(scored_units(truth, np.stack([1 - right, right], axis=1))).labels[1]
    assert (figure.value, figure.high) == (1.0, 1.0)
    assert figure.low == pytest.approx(0.883, abs=1e-3)  # of 20 of 20, not of 1,020


@pytest.mark.parametrize("groups", [LEAST_UNITS - 1, LEAST_UNITS])
def test_an_interval_needs_enough_groups(groups):
    truth, scores, _ = random_units(2, 3)
    units = scored_units(truth, scores, groups=np.arange(len(truth)) % groups)
    losses = log_loss(units), brier_score(units), expected_calibration_error(units, seed="").error
    for figure in losses:
        assert figure.value is not None
        assert (figure.low is None) == (groups < LEAST_UNITS) == ("at least 20 independent items" in figure.reason)


def every_figure(truth, scores, weights=None, groups=None):
    return dict(figures(Sample(scored_units(truth, scores, weights, groups), scores[::-1]), "seed"))


@pytest.mark.parametrize(
    "measure", [_roc_auc, lambda scores, weights, has: mean_above(scores, weights, has, weights * has)]
)
def test_the_influence_of_a_row_is_how_the_figure_changes_with_its_weight(measure):
    truth, scores, weights = random_units(2, 8, count=60)
    weights += 0.1
    value, influence = measure(scores[:, 1], weights, truth == 1)
    for row in range(60):
        changed = weights.copy()
        changed[row] *= 1 + 1e-6
        assert (measure(scores[:, 1], changed, truth == 1)[0] - value) / 1e-6 == pytest.approx(influence[row], abs=1e-7)


def test_units_repeated_within_their_group_and_larger_weights_say_no_more():
    truth, scores, weights = random_units(3, 10)
    once = every_figure(truth, scores, weights)
    heavier = every_figure(truth, scores, 7 * weights)
    twice = every_figure(truth.repeat(2), scores.repeat(2, axis=0), weights.repeat(2), np.arange(400).repeat(2))
    assert once == every_figure(truth, scores, weights)
    for name, figure in once.items():
        assert figure.low <= figure.value <= figure.high
        assert heavier[name][:3] == pytest.approx(figure[:3]), name
        if name != "calibration error" and "people" not in name:
            assert twice[name][:3] == pytest.approx(figure[:3]), name
    apart = every_figure(truth.repeat(2), scores.repeat(2, axis=0), weights.repeat(2))
    assert apart["log loss"].high < once["log loss"].high


@pytest.mark.slow
@pytest.mark.parametrize("name", ["overconfident, 300 units", "60 groups of 10", "weights 1 and 5, 500 units"])
def test_intervals_cover_the_truth_in_hard_populations(name):
    population = POPULATIONS[name]
    chance, truth, covered, draws = np.random.default_rng(2017), true_figures(population), Counter(), 200
    for number in range(draws):
        for measure, figure in figures(sample(population, chance), str(number)):
            covered[measure] += figure.low <= truth[measure] <= figure.high
    # 93% of 200 draws, less twice what chance does.
    assert {measure: count for measure, count in covered.items() if count < 0.895 * draws} == {}


def of_confidences(confidences, right, weights=None, groups=None):
    """Units of two labels whose answer has these confidences (0.5 or more) and is right or not."""
    high = np.asarray(confidences)
    return scored_units(1 - np.asarray(right, dtype=int), np.stack([high, 1 - high], axis=1), weights, groups)


def test_the_curve_has_a_point_for_each_confidence_and_the_area_is_the_mean_risk_over_units():
    curve = risk_coverage(of_confidences([0.9, 0.8, 0.8, 0.6], [1, 1, 0, 0]))
    assert curve.points == (Point(0.9, 0.25, 1.0), Point(0.8, 0.75, pytest.approx(2 / 3)), Point(0.6, 1.0, 0.5))
    assert curve.area.value == pytest.approx((0 + 1 / 3 + 1 / 3 + 1 / 2) / 4)
    weighted = risk_coverage(of_confidences([0.9, 0.8, 0.6], [1, 0, 1], [1, 2, 3]))
    assert [point.accuracy for point in weighted.points] == pytest.approx([1, 1 / 3, 4 / 6])
    assert weighted.area.value == pytest.approx((0 * 1 + 2 / 3 * 2 + 2 / 6 * 3) / 6)


def test_a_long_curve_is_thinned_evenly_and_keeps_both_ends():
    chance = np.random.default_rng(3)
    curve = risk_coverage(of_confidences(chance.uniform(0.5, 1, 5000), chance.random(5000) < 0.7))
    coverage = [point.coverage for point in curve.points]
    assert len(coverage) == MOST_POINTS
    assert (coverage[0], coverage[-1]) == (1 / 5000, 1.0)
    assert max(np.diff(coverage)) < 1.1 / MOST_POINTS
    assert [point.threshold for point in curve.points] == sorted((p.threshold for p in curve.points), reverse=True)


def test_the_area_has_an_interval_where_enough_answers_are_wrong():
    chance = np.random.default_rng(4)
    confidences = chance.uniform(0.5, 1, 200)
    few = risk_coverage(of_confidences(confidences, [0] * 9 + [1] * 191)).area
    assert (few.low, few.reason) == (None, too_few(10, 9, " both with right and with wrong answers"))
    enough = risk_coverage(of_confidences(confidences, [0] * 10 + [1] * 190)).area
    assert 0 <= enough.low < enough.value < enough.high <= 1
    assert risk_coverage(scored_units(np.zeros(0, dtype=int), np.zeros((0, 2)))).points == ()


@pytest.mark.parametrize("right", [58, 59])
def test_without_an_error_59_units_show_a_precision_of_95_percent(right):
    threshold = precision_threshold(of_confidences(np.linspace(0.99, 0.6, right), [1] * right), 0.95)
    if right < 59:
        assert threshold.value is None
        assert threshold.reason == "Even without errors, 59 independent items are needed, but there are 58."
        assert threshold.precision == Figure(None)
        return
    assert (threshold.value, threshold.recall, threshold.coverage) == (pytest.approx(0.6), 1.0, 1.0)
    assert threshold.precision.value == threshold.precision.high == 1.0
    assert threshold.precision.low == pytest.approx(0.05 ** (1 / 59))


def test_the_bounds_are_those_of_clopper_and_pearson_and_one_early_error_does_not_end_the_search():
    right = [1] * 190 + [0] * 5 + [1] * 5
    threshold = precision_threshold(of_confidences(np.linspace(0.99, 0.6, 200), right), 0.85)
    assert threshold.coverage == 1.0
    # Two chains of tests share the error.
    exact = binomtest(195, 200).proportion_ci(0.95)
    assert (threshold.precision.low, threshold.precision.high) == pytest.approx((exact.low, exact.high))
    threshold = precision_threshold(of_confidences(np.linspace(0.999, 0.5, 1000), [0] + [1] * 999), 0.95)
    assert threshold.coverage == 1.0
    # Units that tie are selected together.
    threshold = precision_threshold(of_confidences(np.repeat([0.9, 0.7], 100), [1] * 100 + [0, 1] * 50), 0.9)
    assert (threshold.value, threshold.coverage) == (0.9, 0.5)


def test_of_a_label_its_own_score_selects_and_recall_is_that_of_its_units():
    chance = np.random.default_rng(6)
    scores = np.sort(chance.uniform(0, 1, 3000))[::-1]
    truth = (chance.random(3000) < np.where(scores > 0.5, 0.97, 0.05)).astype(int)
    threshold = precision_threshold(scored_units(truth, np.stack([1 - scores, scores], axis=1)), 0.9, label=1)
    selected = scores >= threshold.value
    assert threshold.precision.value == pytest.approx(truth[selected].mean())
    assert threshold.recall == pytest.approx(truth[selected].sum() / truth.sum())
    assert threshold.coverage == pytest.approx(selected.mean())
    assert 0.4 < threshold.value < 0.55


def test_where_no_threshold_reaches_the_precision_the_reason_says_how_far_they_come():
    threshold = precision_threshold(of_confidences(np.linspace(0.99, 0.6, 200), [1, 0] * 100), 0.9)
    assert threshold.value is None
    assert threshold.reason.startswith("The lower bound of precision is at most ")
    few = of_confidences(np.linspace(0.99, 0.6, 200), [1] * 200, groups=np.arange(200) % 9)
    assert (
        precision_threshold(few, 0.5).reason == "An interval requires at least 10 independent items, but there are 9."
    )
    nobody = scored_units(np.zeros(0, dtype=int), np.zeros((0, 2)))
    assert precision_threshold(nobody, 0.9).reason == "There are no items."
    for wish, label, message in ((1.0, None, "between 0 and 1"), (0.9, 2, "label 2 does not exist")):
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


@pytest.mark.slow
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


@pytest.mark.slow
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
            threshold = precision_threshold(units, wish, label)
            if threshold.value is not None:
                missed[label] += truth[label].precision(threshold.value) < wish
                selected[label].append(threshold.coverage)
    assert max(missed.values()) <= 0.05 * draws
    # It is found, and not far above the lowest one that has the precision in the population.
    for label, coverages in selected.items():
        assert len(coverages) >= 0.9 * draws
        assert np.mean(coverages) > 0.7 * truth[label].coverage(wish)
