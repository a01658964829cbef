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
from annotate.core.measures.classification import Apart
from annotate.core.measures.scored_units import (
    NO_UNITS,
    NO_VARIATION,
    Figure,
    ScoredUnits,
    check_scores,
    mean,
    of_sums,
    proportion,
    quantile,
    share,
    skewed,
    too_few,
    variance,
)

BINS = 15


class Bin(NamedTuple):
    """Units whose confidence is greater than `above` and at most `most`.

    units: number of units.
    weight: sum of their weights.
    confidence: their weighted mean confidence; None if there are no units.
    accuracy: their accuracy.
    """

    above: float
    most: float
    units: int
    weight: float
    confidence: float | None
    accuracy: Figure


class Calibration(NamedTuple):
    """Calibration of a system.

    error: expected calibration error.
    bins: reliability table, in order of confidence.
    """

    error: Figure
    bins: tuple[Bin, ...]


class ByLabel(NamedTuple):
    """A measure of each label against all others.

    labels: figure of each label, in the order of the columns.
    macro: unweighted mean of the figures, without labels that have no figure.
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
    return -np.log(_clipped(_true_scores(units)))


def brier_score(units: ScoredUnits) -> Figure:
    """Estimate the mean squared distance between the scores and the one-hot true label, from 0 (best) to 2.

    See Brier 1950, Monthly Weather Review 78(1). With two labels, many programs report half of this, because they only
    use the score of one label.
    """
    return mean(_brier_scores(units), units, 2.0)


def _brier_scores(units: ScoredUnits) -> Floats:
    squares = np.einsum("nk,nk->n", units.scores, units.scores)
    scores: Floats = np.maximum(0, squares - 2 * _true_scores(units) + 1)
    return scores


def losses_apart(first: ScoredUnits, second: ScoredUnits) -> dict[str, Apart]:
    """Compare the log loss and Brier score of two systems on the same units.

    For each measure, return the difference of the means, with the interval of Student's t by group, and the two-sided
    p-value of the hypothesis that the difference is zero.
    """
    return {
        name: _mean_apart(losses(first) - losses(second), first)
        for name, losses in (("log_loss", _log_losses), ("brier", _brier_scores))
    }


def _mean_apart(values: Floats, units: ScoredUnits) -> Apart:
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

    shares: shares of the k labels among people's answers, for each row passed to `scored_units`, (rows, k).

    Raise ValueError for any other shape, and for rows that `check_scores` rejects.
    """
    return mean(-np.einsum("nk,nk->n", _people(shares, units), np.log(_clipped(units.scores))), units)


def manhattan_distance(shares: npt.ArrayLike, units: ScoredUnits) -> Figure:
    """Estimate the mean of sum(|share - score|) over labels, from 0 (best) to 2.

    This is the measure of the third edition of Learning with Disagreements (LeWiDi 2025).

    shares: see `cross_entropy`.
    """
    return mean(np.abs(_people(shares, units) - units.scores).sum(axis=1), units, 2.0)


def expected_calibration_error(units: ScoredUnits, *, bins: int = BINS, seed: str) -> Calibration:
    """Estimate the expected calibration error, and the reliability table by bins of equal width.

    The error is the weighted mean, over bins, of the distance between confidence (the highest score) and accuracy. See
    Guo et al. 2017, On Calibration of Modern Neural Networks, section 2.

    The estimate is biased upward, because a chance deviation in either direction adds to it. The low end of the
    interval allows for this: bins without a clear deviation contribute the absolute value of their noise (numerical
    delta method: Fang and Santos 2019, Inference on Directionally Differentiable Functions, Review of Economic Studies
    86(1)). The high end does not, so the interval is conservative. It is an interval for the error with these bins, and
    not for other bins.

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
    """Estimate the calibration error.

    confidence: confidence of each unit, (n,).
    place: index of each unit's bin, (n,).
    bins: number of bins.
    """
    if not units.groups:
        return Figure(None, reason=NO_UNITS)
    apart = confidence - units.right
    gaps = np.bincount(place, units.shares * apart, bins)
    value = float(np.abs(gaps).sum())
    if units.groups < LEAST_UNITS:
        return Figure(value, reason=too_few(LEAST_UNITS, units.groups))
    cells = np.bincount(units.group * bins + place, units.shares * apart, units.groups * bins)
    influence = cells.reshape(-1, bins) - np.outer(units.by_group(units.shares), gaps)
    covariance = influence.T @ influence * (units.groups / (units.groups - 1))
    # If a bin has few answers and all are right, their variance is 0. Calibrated answers would have some variance, so
    # the result is at least that.
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

    It is the probability that a unit with the label scores higher than a unit without it, where a tie counts as half
    (Hanley and McNeil 1982, Radiology 143(1)). The variance is that of DeLong et al. 1988 (Biometrics 44(3)), by group.
    A figure is None if all units or no units have the label.
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
    scikit-learn, there is no interpolation, and tied units count together. A figure is None if all units or no units
    have the label.
    """
    return _by_label(units, lambda scores, weights, has: mean_above(scores, weights, has, weights * has))


def mean_above(scores: Floats, weights: Floats, hits: Bools, counted: Floats) -> tuple[float, Floats]:
    """Return the mean, over units, of the proportion of hits among all units with an equal or higher score.

    scores, weights, hits: score and weight of each unit, and whether it is a hit, (n,).
    counted: weight of each unit in the mean: its own weight, or 0 to leave it out, (n,).

    Return the mean, and the influence of each unit, (n,).
    """
    place = np.unique(scores, return_inverse=True)[1]

    def as_high(values: Floats) -> Floats:
        sums: Floats = np.bincount(place, values)[::-1].cumsum()[::-1]
        return sums

    among, by_score = as_high(weights), np.bincount(place, counted)
    proportions = as_high(weights * hits) / among
    value = float(by_score @ proportions / by_score.sum())
    # A unit affects the proportions at its own score and at all lower ones.
    moved = (hits * (by_score / among).cumsum()[place]) - (by_score * proportions / among).cumsum()[place]
    influence: Floats = (counted * (proportions[place] - value) + weights * moved) / by_score.sum()
    return value, influence


def _by_label(units: ScoredUnits, measure: Callable[[Floats, Floats, Bools], tuple[float, Floats]]) -> ByLabel:
    """Compute a measure for each label, and the mean of these values.

    measure: function that takes the scores, the weights and whether each unit has the label, (n,) each. It returns the
        value and the influence of each unit, (n,).
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


def _clipped(scores: Floats) -> Floats:
    epsilon = np.finfo(np.float64).eps
    return np.clip(scores, epsilon, 1 - epsilon)


def _people(shares: npt.ArrayLike, units: ScoredUnits) -> Floats:
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
STEP = 1.1  # each tested threshold selects at least this many times as many units as the previous one
# Each chain of tests starts with this many times as many units as the previous chain (see `precision_threshold`). In 60
# draws in which 1% to 3% of the most confident answers were wrong, the values 4, 6 and 8 selected 33% to 34% of the
# units, and a single chain only 22%. If the most confident answers are all right, a single chain selects slightly more.
START = 6.0


class Point(NamedTuple):
    """A point of a risk-coverage curve.

    threshold: lowest confidence of the selected answers.
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

    value: the lowest score shown to reach the target; None if there is none.
    precision: precision of the selected units, whose scores reach the threshold. The low end of its interval is the
        bound that was tested.
    recall: share of the units with the label that are selected. For whole answers, share of all units that are selected
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
    """Return the risk-coverage curve, and the area under it.

    A point of the curve has the accuracy of all answers whose confidence (the highest score) reaches a threshold. The
    curve has at most MOST_POINTS points, evenly spaced by coverage. To compute the area, take for each unit the share
    of wrong answers among all units with the same or a higher confidence. The area is the mean of these shares; 0 is
    best (Geifman, Uziel and El-Yaniv 2019, Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers).
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


def precision_threshold(units: ScoredUnits, wish: float, label: int | None = None) -> Threshold:
    """Find the lowest threshold whose selected answers reach a target precision with 95% confidence.

    Thresholds are tested in a chain, from the highest down, until one fails. This is fixed sequence testing
    (Angelopoulos et al. 2021, Learn then Test, algorithm 1). Each test uses the exact binomial (Clopper-Pearson) bound
    on the precision. With a single chain, one error among the highest scores would end the search, because a few units
    cannot show that the target is reached. Several chains therefore start at fixed numbers of selected units, and share
    the error probability of 5% equally.

    The tested thresholds depend only on scores and weights. The chosen threshold therefore reaches the target in 95% of
    samples, although it is chosen from the same sample. If weights differ or there are groups, the bound uses effective
    counts (`proportion`) and is not exact.

    wish: target precision.
    label: index of the label whose score selects units. By default, the highest score selects them, and an answer is
        right if its label is the true label.

    Raise ValueError if `wish` is not between 0 and 1, or if there is no such label.
    """
    if not 0 < wish < 1:
        raise ValueError(f"The target precision must be between 0 and 1, not {wish}.")
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
    # Effective number of independent units that each score selects, given their weights and groups.
    counts = np.maximum.accumulate(sums**2 / squares) * (units.groups / len(order))
    chains = 1 + int(max(0.0, log(counts[-1] / _least(wish, ERROR), START)))
    error, least = ERROR / chains, _least(wish, ERROR / chains)
    if counts[-1] < least:
        few = f"Even without errors, {least:,} independent items are needed, but there are {int(counts[-1]):,}."
        return Threshold(None, reason=few)
    tested = _first(counts, np.append(_powers(least, STEP, counts[-1]), counts[-1]))
    bounds = _bounds(units, hits, order, last[tested], error)
    failed = np.array([bound.low is None or bound.low < wish for bound in bounds] + [True])
    starts = np.searchsorted(counts[tested], _powers(least, START, counts[-1])[:chains])
    best = max((start + int(failed[start:].argmax()) for start in starts if not failed[start]), default=0) - 1
    if best < 0:
        return Threshold(None, reason=_missed(bounds))
    rows = order[: last[tested[best]] + 1]
    right = float(units.weights[rows] @ hits[rows])
    whole = float(units.weights.sum())
    return Threshold(
        float(scores[rows[-1]]),
        bounds[best],
        right / (whole if label is None else float(units.weights @ hits)),
        float(units.weights[rows].sum()) / whole,
    )


def _least(wish: float, error: float) -> int:
    """Return the smallest number of units that can show the target precision if all of them are hits.

    wish: target precision.
    error: probability that the bound fails.
    """
    return ceil(log(error) / log(wish))


def _powers(first: float, step: float, most: float) -> Floats:
    """Return first * step**i up to `most`."""
    powers: Floats = first * step ** np.arange(1 + int(log(most / first, step)), dtype=np.float64)
    return powers


def _first(ascending: Floats, targets: Floats) -> Ints:
    """Return the distinct indices of the first values that reach each target.

    A target that is never reached gives the last index.
    """
    return np.unique(np.minimum(np.searchsorted(ascending, targets), len(ascending) - 1))


def _bounds(units: ScoredUnits, hits: Bools, order: Ints, last: Ints, error: float) -> list[Figure]:
    """Estimate proportions of hits, with lower bounds that are wrong with probability `error`.

    order: the rows, sorted by score.
    last: for each proportion, the place in `order` of its last row.
    """
    ends = partial(_ends, error=error)
    if units.groups < len(order):
        return [proportion(hits[rows], units.only(rows), ends) for rows in (order[: place + 1] for place in last)]
    # Without groups, cumulative sums are enough to compute each bound.
    weights, hit = units.weights[order], hits[order]
    sums = [(weights**power).cumsum()[last].tolist() for power in (1, 2)]
    sums_of_hits = [(weights**power * hit).cumsum()[last].tolist() for power in (0, 1, 2)]
    totals = zip(last, zip(*sums, strict=True), map(list, zip(*sums_of_hits, strict=True)), strict=True)
    return [of_sums(int(place) + 1, of, of_hits, ends, is_plain=units.is_plain) for place, of, of_hits in totals]


def _ends(hits: float, of: float, error: float) -> tuple[float, float]:
    low = float(scipy.special.betaincinv(hits, of - hits + 1, error)) if hits > 0 else 0.0
    high = float(scipy.special.betaincinv(hits + 1, of - hits, (1 + LEVEL) / 2)) if hits < of else 1.0
    return low, high


def _missed(bounds: list[Figure]) -> str:
    lows = [bound.low for bound in bounds if bound.low is not None]
    if not lows:
        return bounds[-1].reason
    return f"The lower bound of precision is at most {max(lows):.1%}."
