"""Measures of predicted probabilities: losses, calibration, ranking, and thresholds for selective prediction.

Each measure has a 95% interval. scored_units.py defines units, weights and groups.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
from annotate.core.estimation.differences import Difference
from annotate.core.estimation.proportions import LEVEL, SLACK, Z
from annotate.core.estimation.resampling import LEAST_LEFT_OUT, LEAST_UNITS, REPLICATES, generator
from annotate.core.measures.classification import Comparison
from annotate.core.measures.scored_units import (
    NO_UNITS,
    NO_VARIATION,
    Figure,
    ScoredUnits,
    check_scores,
    mean,
    proportion,
    proportion_from_sums,
    quantile,
    share,
    skewed,
    too_few,
    variance,
)

BINS = 15


class Bin(NamedTuple):
    """The units whose confidence is greater than `above` and at most `most`.

    units: number of units.
    weight: sum of the units' weights.
    confidence: weighted mean confidence; None if there are no units.
    accuracy: accuracy of the units.
    """

    above: float
    most: float
    units: int
    weight: float
    confidence: float | None
    accuracy: Figure


class Calibration(NamedTuple):
    """A system's calibration.

    error: expected calibration error.
    bins: reliability table, in order of confidence.
    """

    error: Figure
    bins: tuple[Bin, ...]


class ByLabel(NamedTuple):
    """A measure of each label against all others.

    labels: figure for each label, in column order.
    macro: unweighted mean over the labels that have a figure.
    """

    labels: tuple[Figure, ...]
    macro: Figure


def log_loss(units: ScoredUnits) -> Figure:
    """Estimate the mean of -ln(score of the true label), in nats; 0 is best.

    As in scikit-learn, scores are clipped to [e, 1 - e], where e is the machine epsilon. The loss of a unit is
    therefore at most 36.04 (Good 1952, Rational Decisions, JRSS B 14(1)).
    """
    return mean(_log_losses(units), units)


def _log_losses(units: ScoredUnits) -> Floats:
    return -np.log(_clip(_true_scores(units)))


def brier_score(units: ScoredUnits) -> Figure:
    """Estimate the mean squared distance between the scores and the one-hot true label, from 0 (best) to 2.

    See Brier 1950, Monthly Weather Review 78(1). With two labels, many programs report half of this, because they use
    the score of one label only.
    """
    return mean(_brier_scores(units), units, 2.0)


def _brier_scores(units: ScoredUnits) -> Floats:
    squares = np.einsum("nk,nk->n", units.scores, units.scores)
    scores: Floats = np.maximum(0, squares - 2 * _true_scores(units) + 1)
    return scores


def compare_losses(first: ScoredUnits, second: ScoredUnits) -> dict[str, Comparison]:
    """Compare the log loss and Brier score of two systems on the same units.

    For each measure, return the difference between the means, with a Student's t interval over groups, and the
    two-sided p-value of the hypothesis that the difference is zero.
    """
    return {
        name: _compare_means(losses(first) - losses(second), first)
        for name, losses in (("log_loss", _log_losses), ("brier", _brier_scores))
    }


def _compare_means(values: Floats, units: ScoredUnits) -> Comparison:
    if units.groups < LEAST_UNITS:
        return None, None
    value = float(units.shares @ values)
    spread = sqrt(variance(units, units.shares * (values - value)))
    if spread <= SLACK:
        return (Difference(0.0, 0.0, 0.0), 1.0) if abs(value) <= SLACK else (None, None)
    off = quantile(units) * spread
    p = 2 * float(scipy.special.ndtr(-abs(value) / spread * Z / quantile(units)))
    return Difference(value, value - off, value + off), p


def cross_entropy(shares: npt.ArrayLike, units: ScoredUnits) -> Figure:
    """Estimate the mean of -sum(share * ln(score)) over labels, in nats, with scores clipped as in `log_loss`.

    See Leonardelli et al. 2023, SemEval-2023 Task 11: Learning with Disagreements.

    shares: soft labels: the shares of the k labels among the annotators' answers, for each row passed to
        `scored_units`, (rows, k).

    Raise ValueError for any other shape, and for rows that `check_scores` rejects.
    """
    return mean(-np.einsum("nk,nk->n", _soft_labels(shares, units), np.log(_clip(units.scores))), units)


def manhattan_distance(shares: npt.ArrayLike, units: ScoredUnits) -> Figure:
    """Estimate the mean of sum(|share - score|) over labels, from 0 (best) to 2.

    This is the measure of the third edition of Learning with Disagreements (LeWiDi 2025).

    shares: see `cross_entropy`.
    """
    return mean(np.abs(_soft_labels(shares, units) - units.scores).sum(axis=1), units, 2.0)


def expected_calibration_error(units: ScoredUnits, *, bins: int = BINS, seed: str) -> Calibration:
    """Estimate the expected calibration error, and the reliability table by bins of equal width.

    The error is the weighted mean, over bins, of the distance between confidence (the highest score) and accuracy. See
    Guo et al. 2017, On Calibration of Modern Neural Networks, section 2.

    The estimate is biased upward, because chance deviations in either direction increase it. The low end of the
    interval corrects for this bias: bins without a clear deviation contribute the absolute value of their noise
    (numerical delta method: Fang and Santos 2019, Inference on Directionally Differentiable Functions, Review of
    Economic Studies 86(1)). The high end doesn't, so the interval is conservative. It applies to these bins only.

    bins: number of bins.
    seed: seed of the interval. The same seed gives the same interval.

    Raise ValueError if there is less than one bin.
    """
    if bins < 1:
        raise ValueError(f"The number of bins must be at least 1, not {bins}.")
    confidence, right = units.confidence, units.right
    edges = np.arange(bins + 1) / bins
    place = np.searchsorted(edges[1:-1], confidence)
    table = []
    for number, (above, most) in enumerate(pairwise(edges)):
        chosen = place == number
        in_bin, weight = units.only(chosen), float(units.weights[chosen].sum())
        middle = float(in_bin.weights @ confidence[chosen]) / weight if weight else None
        table.append(
            Bin(float(above), float(most), len(in_bin.rows), weight, middle, proportion(right[chosen], in_bin))
        )
    return Calibration(_calibration_error(confidence, place, bins, units, seed), tuple(table))


def _calibration_error(confidence: Floats, place: Ints, bins: int, units: ScoredUnits, seed: str) -> Figure:
    """Estimate the expected calibration error.

    confidence: confidence of each unit, (n,).
    place: index of each unit's bin, (n,).
    bins: number of bins.
    """
    if not units.groups:
        return Figure(None, reason=NO_UNITS)
    gap = confidence - units.right
    gaps = np.bincount(place, units.shares * gap, bins)
    value = float(np.abs(gaps).sum())
    if units.groups < LEAST_UNITS:
        return Figure(value, reason=too_few(LEAST_UNITS, units.groups))
    cells = np.bincount(units.group * bins + place, units.shares * gap, units.groups * bins)
    influence = cells.reshape(-1, bins) - np.outer(units.by_group(units.shares), gaps)
    covariance = influence.T @ influence * (units.groups / (units.groups - 1))
    # A bin with few answers, all of them right, has an estimated variance of 0. The variance of calibrated answers is a
    # lower limit.
    if_calibrated = np.bincount(place, units.shares**2 * confidence * (1 - confidence), bins)
    covariance += np.diag(np.maximum(0, if_calibrated - covariance.diagonal()))
    signs, wider = np.sign(gaps), quantile(units) / Z
    spread = sqrt(max(0.0, float(signs @ covariance @ signs)))
    if spread <= SLACK:
        return Figure(value, reason=NO_VARIATION)
    unclear = np.abs(gaps) <= sqrt(log(units.groups)) * np.sqrt(covariance.diagonal())
    drawing = generator(seed, "calibration")
    noise = drawing.multivariate_normal(np.zeros(bins), covariance, REPLICATES, check_valid="ignore", method="eigh")
    upward = np.where(unclear, np.abs(noise), noise * signs).sum(axis=1)
    low = value - wider * max(0.0, float(np.quantile(upward, (1 + LEVEL) / 2)))
    return Figure(value, max(0.0, low), min(1.0, value + wider * Z * spread))


def roc_auc(units: ScoredUnits) -> ByLabel:
    """Estimate the area under the ROC curve of each label against all others.

    The area is the probability that a unit with the label scores higher than a unit without it, where a tie counts as
    half (Hanley and McNeil 1982, Radiology 143(1)). The variance is that of DeLong et al. 1988 (Biometrics 44(3)), by
    group. There is no value for a label that all units or no units have.
    """
    return _by_label(units, _roc_auc)


def _roc_auc(scores: Floats, weights: Floats, has: Bools) -> tuple[float, Floats]:
    place = np.unique(scores, return_inverse=True)[1]
    positives, negatives = np.bincount(place, weights * has), np.bincount(place, weights * ~has)
    # For each score, the share of units without the label that score lower, and the share of units with the label that
    # score higher. Ties count as half.
    below = (negatives.cumsum() - negatives / 2) / negatives.sum()
    above = (positives.sum() - positives.cumsum() + positives / 2) / positives.sum()
    value = float(positives @ below / positives.sum())
    change = np.where(has, (below[place] - value) / positives.sum(), (above[place] - value) / negatives.sum())
    return value, weights * change


def average_precision(units: ScoredUnits) -> ByLabel:
    """Estimate the average precision of each label.

    This is the mean, over units with the label, of the precision among all units that score at least as high. As in
    scikit-learn, there is no interpolation, and tied units count together. There is no value for a label that all
    units or no units have.
    """
    return _by_label(units, lambda scores, weights, has: mean_above(scores, weights, has, weights * has))


def mean_above(scores: Floats, weights: Floats, hits: Bools, counted: Floats) -> tuple[float, Floats]:
    """Return the mean, over units, of the proportion of hits among all units that score at least as high.

    scores, weights, hits: each unit's score, weight, and whether it is a hit, (n,).
    counted: each unit's weight in the mean: its own weight, or 0 to leave it out, (n,).

    Return the mean, and the influence of each unit, (n,).
    """
    place = np.unique(scores, return_inverse=True)[1]

    def sum_above(values: Floats) -> Floats:
        sums: Floats = np.bincount(place, values)[::-1].cumsum()[::-1]
        return sums

    among, by_score = sum_above(weights), np.bincount(place, counted)
    proportions = sum_above(weights * hits) / among
    value = float(by_score @ proportions / by_score.sum())
    # A unit affects the proportions at its own score and at all lower scores.
    moved = (hits * (by_score / among).cumsum()[place]) - (by_score * proportions / among).cumsum()[place]
    influence: Floats = (counted * (proportions[place] - value) + weights * moved) / by_score.sum()
    return value, influence


def _by_label(units: ScoredUnits, measure: Callable[[Floats, Floats, Bools], tuple[float, Floats]]) -> ByLabel:
    """Compute a measure for each label, and the mean over labels.

    measure: function from the units' scores, weights and whether they have the label, (n,) each, to the value and the
        units' influences, (n,).
    """
    labels: list[Figure] = []
    values: list[float] = []
    kinds: list[Bools] = []
    total = np.zeros(len(units.rows))
    for label in range(units.scores.shape[1]):
        has = units.truth == label
        if not has.any() or has.all():
            reason = "All items have this label." if has.any() else "No item has this label."
            labels.append(Figure(None, reason=reason if len(has) else NO_UNITS))
            continue
        value, influence = measure(units.scores[:, label], units.weights, has)
        labels.append(share(value, influence, units, (has, ~has)))
        values.append(value)
        kinds += has, ~has
        total += influence
    if not values:
        return ByLabel(tuple(labels), Figure(None, reason="No label has both items with it and items without it."))
    macro = share(sum(values) / len(values), total / len(values), units, kinds)
    left_out = len(labels) - len(values)
    reason = f"The mean leaves out {left_out} of {len(labels)} labels." if left_out else ""
    return ByLabel(tuple(labels), macro._replace(reason=f"{reason} {macro.reason}".strip()))


def _true_scores(units: ScoredUnits) -> Floats:
    scores: Floats = units.scores[np.arange(len(units.rows)), units.truth]
    return scores


def _clip(scores: Floats) -> Floats:
    epsilon = np.finfo(np.float64).eps
    return np.clip(scores, epsilon, 1 - epsilon)


def _soft_labels(shares: npt.ArrayLike, units: ScoredUnits) -> Floats:
    table = np.asarray(shares, dtype=np.float64)
    if fault := check_scores(table):
        raise ValueError(f"Row {fault.row} of people's answers: {fault.what}")
    if table.shape != (units.row_count, units.scores.shape[1]):
        raise ValueError(
            "People's answers must be a table with a row per unit and a column per label, not an array of shape "
            f"{table.shape}."
        )
    selected: Floats = table[units.rows]
    return selected


# --- Selective prediction: accuracy by threshold, and the threshold for a target precision


MOST_POINTS = 200  # on a risk-coverage curve
ERROR = 1 - LEVEL  # probability that a threshold misses its target
STEP = 1.1  # smallest ratio between the unit counts of consecutive thresholds
# Ratio between the unit counts that consecutive chains of tests start with (see `precision_threshold`). In 60 draws in
# which 1% to 3% of the most confident answers were wrong, the ratios 4, 6 and 8 selected 33% to 34% of the units, and a
# single chain only 22%. If the most confident answers are all right, a single chain selects slightly more.
START = 6.0


class Point(NamedTuple):
    """A point of a risk-coverage curve.

    threshold: lowest confidence among the selected answers.
    coverage: share of all units that are selected.
    accuracy: accuracy of the selected answers.
    """

    threshold: float
    coverage: float
    accuracy: float


class RiskCoverage(NamedTuple):
    """A risk-coverage curve.

    area: area under the curve of risk (share of wrong answers) against coverage.
    points: points of the curve, starting with the highest threshold.
    """

    area: Figure
    points: tuple[Point, ...]


class Threshold(NamedTuple):
    """A threshold for a target precision.

    value: lowest score that was shown to reach the target; None if there is none.
    precision: precision of the units that score at or above the threshold. The low end of its interval is the tested
        bound.
    recall: share of the label's units that are selected. For whole answers, share of all units that are selected
        and right.
    coverage: share of all units that are selected.
    reason: why there is no threshold.
    """

    value: float | None
    precision: Figure = Figure(None)
    recall: float | None = None
    coverage: float | None = None
    reason: str = ""


def risk_coverage(units: ScoredUnits) -> RiskCoverage:
    """Return the risk-coverage curve and the area under it.

    Each point of the curve has the accuracy of all answers whose confidence (the highest score) reaches a threshold.
    The curve has at most MOST_POINTS points, evenly spaced by coverage. The area is the mean, over units, of the share
    of wrong answers among all units with at least the same confidence; 0 is best (Geifman, Uziel and El-Yaniv 2019,
    Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers).
    """
    if not units.groups:
        return RiskCoverage(Figure(None, reason=NO_UNITS), ())
    confidence, right = units.confidence, units.right
    value, influence = mean_above(confidence, units.weights, ~right, units.weights)
    thresholds, place = np.unique(-confidence, return_inverse=True)
    selected = np.bincount(place, units.weights).cumsum()
    accuracy = np.bincount(place, units.weights * right).cumsum() / selected
    coverage = selected / selected[-1]
    targets = np.linspace(coverage[0], 1, MOST_POINTS) - SLACK
    points = (
        Point(-float(thresholds[at]), float(coverage[at]), float(accuracy[at])) for at in _first(coverage, targets)
    )
    rarer = min(len(np.unique(units.group[kind])) for kind in (right, ~right))
    few = too_few(LEAST_LEFT_OUT, rarer, " both with right and with wrong answers")
    area = Figure(value, reason=few) if rarer < LEAST_LEFT_OUT else skewed(value, influence, units, 1.0)
    return RiskCoverage(area, tuple(points))


def precision_threshold(units: ScoredUnits, target: float, label: int | None = None) -> Threshold:
    """Find the lowest threshold whose selected answers reach a target precision with 95% confidence.

    Thresholds are tested in a chain, from the highest down, until one fails. This is fixed sequence testing
    (Angelopoulos et al. 2021, Learn then Test, algorithm 1). Each test uses the exact binomial (Clopper-Pearson) bound
    on the precision. With a single chain, one error among the highest scores would end the search, because a few units
    cannot show that the target is reached. Several chains therefore start at fixed numbers of selected units, and share
    the error probability of 5% equally.

    The tested thresholds depend only on scores and weights, so the chosen threshold reaches the target in 95% of
    samples, although it is chosen from the same sample. If weights differ or there are groups, the bound uses effective
    counts (`proportion`) and is not exact.

    target: target precision.
    label: index of the label whose scores are compared with the threshold. By default, each unit's highest score is
        compared, and the unit is a hit if this score belongs to the true label.

    Raise ValueError if `target` is not between 0 and 1, or if there is no such label.
    """
    if not 0 < target < 1:
        raise ValueError(f"The target precision must be between 0 and 1, not {target}.")
    if label is not None and not 0 <= label < units.scores.shape[1]:
        raise ValueError(
            f"The label {label} does not exist. Labels are numbered from 0 to {units.scores.shape[1] - 1}."
        )
    if not units.groups:
        return Threshold(None, reason=NO_UNITS)
    scores, hits = (units.confidence, units.right) if label is None else (units.scores[:, label], units.truth == label)
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.append(np.diff(scores[order]) < 0, True))  # the last row that has each score
    sums, squares = units.weights[order].cumsum()[last], (units.weights[order] ** 2).cumsum()[last]
    # The effective number of units that each score selects, given their weights and groups.
    counts = np.maximum.accumulate(sums**2 / squares) * (units.groups / len(order))
    chains = 1 + int(max(0.0, log(counts[-1] / _min_units(target, ERROR), START)))
    error, least = ERROR / chains, _min_units(target, ERROR / chains)
    if counts[-1] < least:
        few = f"Even without errors, {least:,} independent items are needed, but there are {int(counts[-1]):,}."
        return Threshold(None, reason=few)
    tested = _first(counts, np.append(_powers(least, STEP, counts[-1]), counts[-1]))
    bounds = _bounds(units, hits, order, last[tested], error)
    failed = np.array([bound.low is None or bound.low < target for bound in bounds] + [True])
    starts = np.searchsorted(counts[tested], _powers(least, START, counts[-1])[:chains])
    best = max((start + int(failed[start:].argmax()) for start in starts if not failed[start]), default=0) - 1
    if best < 0:
        return Threshold(None, reason=_why_missed(bounds))
    rows = order[: last[tested[best]] + 1]
    right = float(units.weights[rows] @ hits[rows])
    whole = float(units.weights.sum())
    return Threshold(
        float(scores[rows[-1]]),
        bounds[best],
        right / (whole if label is None else float(units.weights @ hits)),
        float(units.weights[rows].sum()) / whole,
    )


def _min_units(target: float, error: float) -> int:
    """Return the smallest number of units, all of them hits, that can show the target precision.

    target: target precision.
    error: probability that the bound fails.
    """
    return ceil(log(error) / log(target))


def _powers(first: float, step: float, most: float) -> Floats:
    """Return first * step**i up to `most`."""
    powers: Floats = first * step ** np.arange(1 + int(log(most / first, step)), dtype=np.float64)
    return powers


def _first(ascending: Floats, targets: Floats) -> Ints:
    """Find the first value that reaches each target, or else the last value. Return the distinct indices."""
    return np.unique(np.minimum(np.searchsorted(ascending, targets), len(ascending) - 1))


def _bounds(units: ScoredUnits, hits: Bools, order: Ints, last: Ints, error: float) -> list[Figure]:
    """Estimate the proportions of hits above several thresholds.

    The low end of each interval is a bound that is wrong with probability `error`.

    order: rows, sorted by descending score.
    last: position in `order` of the last row above each threshold.
    """
    ends = partial(_ends, error=error)
    if units.groups < len(order):
        return [proportion(hits[rows], units.only(rows), ends) for rows in (order[: place + 1] for place in last)]
    # Without groups, cumulative sums are enough to compute each bound.
    weights, hit = units.weights[order], hits[order]
    sums = [(weights**power).cumsum()[last].tolist() for power in (1, 2)]
    sums_of_hits = [(weights**power * hit).cumsum()[last].tolist() for power in (0, 1, 2)]
    totals = zip(last, zip(*sums, strict=True), map(list, zip(*sums_of_hits, strict=True)), strict=True)
    return [
        proportion_from_sums(int(place) + 1, of, of_hits, ends, is_plain=units.is_plain)
        for place, of, of_hits in totals
    ]


def _ends(hits: float, of: float, error: float) -> tuple[float, float]:
    low = float(scipy.special.betaincinv(hits, of - hits + 1, error)) if hits > 0 else 0.0
    high = float(scipy.special.betaincinv(hits + 1, of - hits, (1 + LEVEL) / 2)) if hits < of else 1.0
    return low, high


def _why_missed(bounds: list[Figure]) -> str:
    lows = [bound.low for bound in bounds if bound.low is not None]
    if not lows:
        return bounds[-1].reason
    return f"The lower bound of precision is at most {max(lows):.1%}."
