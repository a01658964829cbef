"""Units with a true label and a system's scores for all labels, and intervals of the figures computed from them.

The intervals use the infinitesimal jackknife (Efron 1982, The Jackknife, the Bootstrap and Other Resampling Plans,
chapter 6), which computes the derivative of a figure with respect to each row's weight. A row's influence is this
derivative times its weight, (n,). The variance is computed from the sums of influences by group. It is close to the
jackknife variance of resampling.py, but it supports weights and needs no loop over groups. benchmarks/scores.py
measures the coverage.
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
from annotate.core.estimation.proportions import LEVEL, SLACK, Z, jeffreys
from annotate.core.estimation.resampling import LEAST_LEFT_OUT, LEAST_UNITS

TOLERANCE = 1e-3  # tolerance for the sum of a row's scores
NO_UNITS = "There are no items."
NO_VARIATION = "All items have the same value, so the variation among other items is unknown."


def too_few(least: int, number: int, kind: str = "") -> str:
    """Return a sentence that explains why there is no interval.

    least: required number of independent units.
    number: actual number of independent units.
    kind: phrase that describes the units, appended to "items".
    """
    return f"An interval requires at least {least} independent items{kind}, but there are {number}."


class Figure(NamedTuple):
    """A measure with its 95% interval.

    reason: why the value or the interval is missing. If neither is, a note on what the value leaves out, or "".
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


class Fault(NamedTuple):
    """The first invalid row of scores.

    row: index of the row.
    what: sentence that describes the fault; it doesn't name the row.
    """

    row: int
    what: str


class ScoredUnits(NamedTuple):
    """Validated units, built by `scored_units`. Rows with weight 0 are removed from all arrays.

    row_count: number of rows before rows with weight 0 were removed.
    rows: original index of each row, (n,).
    truth: index of the true label, (n,).
    scores: probability of each label, (n, k).
    weights: weight of each row, (n,).
    group: index of each row's group, (n,).
    groups: number of groups.
    """

    row_count: int
    rows: Ints
    truth: Ints
    scores: Floats
    weights: Floats
    group: Ints
    groups: int

    @property
    def confidence(self) -> Floats:
        """The highest score of each unit, (n,)."""
        highest: Floats = self.scores.max(axis=1, initial=0.0)
        return highest

    @property
    def right(self) -> Bools:
        """Whether the true label has the highest score, (n,). If scores tie, the first of them counts."""
        matches: Bools = np.equal(self.scores.argmax(axis=1), self.truth)
        return matches

    @property
    def shares(self) -> Floats:
        """The weights, scaled to add up to 1, (n,)."""
        shares: Floats = self.weights / self.weights.sum()
        return shares

    @property
    def is_plain(self) -> bool:
        """Whether all weights are equal and each row is its own group."""
        return self.groups == len(self.rows) and bool(np.ptp(self.weights) <= SLACK * self.weights.max())

    def by_group(self, values: Floats) -> Floats:
        """Return the sum of the values in each group, (groups,)."""
        return np.bincount(self.group, values, self.groups).astype(np.float64, copy=False)

    def only(self, chosen: Bools | Ints) -> "ScoredUnits":
        """Return the units in the chosen rows.

        chosen: Boolean array (n,), or indices of rows.
        """
        groups, group = np.unique(self.group[chosen], return_inverse=True)
        return ScoredUnits(
            self.row_count,
            self.rows[chosen],
            self.truth[chosen],
            self.scores[chosen],
            self.weights[chosen],
            group,
            len(groups),
        )


def scored_units(
    truth: npt.ArrayLike,
    scores: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> ScoredUnits:
    """Validate arrays with one row per unit.

    truth: index of the true label's column in `scores`, integers, (n,).
    scores: probability of each label, (n, k), see `check_scores`.
    weights: number of units that each row represents, 0 or more, (n,); 1 by default. Rows with weight 0 are removed.
    groups: integers or strings, (n,). Rows with the same value were sampled together. By default, each row is a group.

    Raise ValueError if the shapes differ, a value is out of range, or a row of scores is invalid.
    """
    table = np.asarray(scores, dtype=np.float64)
    if fault := check_scores(table):
        raise ValueError(f"Row {fault.row}: {fault.what}")
    labels = np.asarray(truth)
    row_weights = np.ones(len(table)) if weights is None else np.asarray(weights, dtype=np.float64)
    group_names = np.arange(len(table)) if groups is None else np.asarray(groups)
    for name, array in (("truth", labels), ("weights", row_weights), ("groups", group_names)):
        if array.shape != (len(table),):
            raise ValueError(
                f"{name} must have one value for each of the {len(table)} rows, not the shape {array.shape}."
            )
    if len(labels) and not (labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < table.shape[1]):
        raise ValueError(f"truth must contain label indices from 0 to {table.shape[1] - 1}.")
    if not (np.isfinite(row_weights) & (row_weights >= 0)).all():
        raise ValueError("weights must be finite numbers, 0 or more.")
    rows = np.flatnonzero(row_weights)
    names, group = np.unique(group_names[rows], return_inverse=True)
    return ScoredUnits(
        len(table), rows, labels.astype(np.int64)[rows], table[rows], row_weights[rows], group, len(names)
    )


def check_scores(scores: npt.ArrayLike) -> Fault | None:
    """Return the first row that is not a probability distribution, or None if all rows are valid.

    Each score must be between 0 and 1, and each row must add up to 1 within TOLERANCE. Scores are not rescaled, so
    percentages are invalid.

    scores: probabilities of two or more labels, (n, k).

    Raise ValueError for any other shape.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(
            f"Scores must be a table with at least two columns, one per label, not an array of shape {table.shape}."
        )
    with np.errstate(invalid="ignore"):  # the sum of a row may be infinity minus infinity
        sums = table.sum(axis=1)
    # Comparisons with NaN are false, so a row with NaN is invalid.
    faulty = ~((table.min(axis=1) >= 0) & (table.max(axis=1) <= 1) & (np.abs(sums - 1) <= TOLERANCE))
    return Fault(row := int(faulty.argmax()), _describe_fault(table[row])) if faulty.any() else None


def _describe_fault(scores: Floats) -> str:
    """Describe what is wrong with a row of scores, (k,)."""
    if np.isnan(scores).any():
        return "A score is not a number."
    if np.isinf(scores).any():
        return "A score is infinite."
    if scores.min() < 0:
        return f"The score {scores.min():g} is negative."
    total = float(scores.sum())
    if abs(total - 100) <= 100 * TOLERANCE:
        return "The scores add up to 100, not 1. Divide percentages by 100."
    if scores.max() > 1:
        return f"The score {scores.max():g} is above 1."
    return f"The scores add up to {total:.6g}, not 1."


def effective(weights: Floats) -> float:
    """Return Kish's effective sample size (Kish 1965, Survey Sampling)."""
    return float(weights.sum() ** 2 / (weights @ weights))


def quantile(units: ScoredUnits) -> float:
    """Return the 97.5% quantile of Student's t distribution for the effective number of groups."""
    return _t(effective(units.by_group(units.weights)))


def _t(groups: float) -> float:
    return float(scipy.special.stdtrit(max(1.0, groups - 1), (1 + LEVEL) / 2))


def variance(units: ScoredUnits, influence: Floats) -> float:
    """Return the variance of a figure over two or more groups, with divisor n - 1 like a sample variance.

    influence: influence of each row, (n,).
    """
    parts = units.by_group(influence)
    return float(parts @ parts) * units.groups / (units.groups - 1)


def mean(values: Floats, units: ScoredUnits, most: float = np.inf) -> Figure:
    """Estimate the weighted mean of values, with the interval of `skewed`.

    values: value of each unit, from 0 to `most`, (n,).
    """
    if not units.groups:
        return Figure(None, reason=NO_UNITS)
    value = float(units.shares @ values)
    return skewed(value, units.shares * (values - value), units, most)


def skewed(value: float, influence: Floats, units: ScoredUnits, most: float = np.inf) -> Figure:
    """Return a figure from 0 to `most` with an interval that allows for skewness.

    Most units have small losses and a few have large losses, so the upper end must be farther from the value than the
    lower end. A cubic transformation removes the skewness of the t statistic (Hall 1992, On the Removal of Skewness by
    Transformation, JRSS B 54(1), section 2). There is no interval with fewer than LEAST_UNITS groups.

    influence: influence of each row, (n,).
    """
    if units.groups < LEAST_UNITS:
        return Figure(value, reason=too_few(LEAST_UNITS, units.groups))
    parts, spread, t = units.by_group(influence), sqrt(variance(units, influence)), quantile(units)
    if spread <= SLACK:
        return Figure(value, reason=NO_VARIATION)
    skewness = float((parts**3).sum() / (parts @ parts) ** 1.5)  # skewness / sqrt(number of groups)

    def back_transform(x: float) -> float:
        if abs(skewness) <= SLACK:
            return x
        return 3 / skewness * (float(np.cbrt(1 + skewness * x - skewness**2 / 6)) - 1)

    low, high = value - spread * back_transform(t), value - spread * back_transform(-t)
    return Figure(value, max(0.0, low), min(most, high))


def share(value: float, influence: Floats, units: ScoredUnits, kinds: Sequence[Bools]) -> Figure:
    """Return a figure from 0 to 1 that compares kinds of units, with an interval on the logit scale.

    See Pepe 2003, The Statistical Evaluation of Medical Tests for Classification and Prediction, chapter 5. The kind
    with the fewest groups determines the degrees of freedom of Student's t. The variance of two random groups with the
    largest weight is added, because a few similar groups do not show that all groups are similar (compare Agresti and
    Coull 1998, The American Statistician 52(2)). Intervals for rare labels and unequal weights therefore cover more
    than 95%. There is no interval if a kind has fewer than LEAST_LEFT_OUT groups.

    influence: influence of each row, (n,).
    kinds: for each kind, whether each row belongs to it, (n,).
    """
    groups = [len(np.unique(units.group[kind])) for kind in kinds]
    rarest = min(groups)
    if rarest < LEAST_LEFT_OUT:
        return Figure(value, reason=too_few(LEAST_LEFT_OUT, rarest, " of each compared kind"))
    if not SLACK < value < 1 - SLACK:
        return Figure(value, *jeffreys(round(value) * rarest, rarest))
    weights = [units.weights[kind] for kind in kinds]
    heaviest = max(
        float(group_weights.max() / group_weights.mean()) / count
        for group_weights, count in zip(weights, groups, strict=True)
    )
    odds, slope = float(scipy.special.logit(value)), value * (1 - value)
    added = 2 * slope * heaviest**2
    off = _t(rarest) * sqrt(variance(units, influence) + added) / slope
    return Figure(value, float(scipy.special.expit(odds - off)), float(scipy.special.expit(odds + off)))


def proportion(
    hits: Bools, units: ScoredUnits, ends: Callable[[float, float], tuple[float, float]] = jeffreys
) -> Figure:
    """Estimate the weighted proportion of hits, with an interval from effective counts.

    With equal weights and one row per group, the effective counts are the plain counts. Otherwise, the effective sample
    size is that of a simple random sample with the same variance (Korn and Graubard 1998, Survey Methodology 24(2)), up
    to the effective number of rows. If all rows or no rows are hits, it is the effective number of groups. Except for
    plain counts, there is no interval with fewer than LEAST_LEFT_OUT groups.

    hits: whether each unit is a hit, (n,).
    ends: function from the counts of hits and units to the ends of the interval.
    """
    if not units.groups:
        return Figure(None, reason=NO_UNITS)
    if units.groups == len(hits):
        weights = units.weights
        of_hits = [float((weights**power) @ hits) for power in (0, 1, 2)]
        return proportion_from_sums(
            len(hits), (float(weights.sum()), float(weights @ weights)), of_hits, ends, is_plain=units.is_plain
        )
    if units.groups < LEAST_LEFT_OUT:
        return Figure(min(1.0, float(units.shares @ hits)), reason=too_few(LEAST_LEFT_OUT, units.groups))
    value = min(1.0, float(units.shares @ hits))
    spread = variance(units, units.shares * (hits - value))
    most = effective(units.by_group(units.weights))
    return _at_effective_size(value, spread, most, effective(units.weights), most, ends)


Ends = Callable[[float, float], tuple[float, float]]


def proportion_from_sums(
    number: int, weights: tuple[float, float], hits: Sequence[float], ends: Ends, *, is_plain: bool
) -> Figure:
    """Compute `proportion` for one row per group, from sums over the rows.

    number: number of rows.
    weights: sums of the weights and of the squared weights.
    hits: number of hits, and sums of the hits' weights and squared weights.
    ends: see `proportion`.
    is_plain: whether all weights are equal.
    """
    if is_plain:
        return Figure(hits[0] / number, *ends(hits[0], number))
    (total, squares), value = weights, min(1.0, hits[1] / weights[0])
    if number < LEAST_LEFT_OUT:
        return Figure(value, reason=too_few(LEAST_LEFT_OUT, number))
    spread = max(0.0, hits[2] * (1 - 2 * value) + value**2 * squares) / total**2 * number / (number - 1)
    most = total**2 / squares
    return _at_effective_size(value, spread, most, most, most, ends)


def _at_effective_size(
    value: float, spread: float, if_constant: float, most: float, groups: float, ends: Ends
) -> Figure:
    """Return a proportion with the interval at its effective size.

    if_constant: effective size if all rows or no rows are hits.
    most: upper limit of the effective size otherwise.
    groups: effective number of groups.
    """
    if not SLACK < value < 1 - SLACK:
        count = if_constant
    else:
        count = min(most, value * (1 - value) / spread if spread else np.inf) * (Z / _t(groups)) ** 2
    return Figure(value, *ends(value * count, count))
