"""Units with a true label and the scores that a system gives to all labels: their checks, and intervals of figures.

Intervals come from the infinitesimal jackknife: how much a figure changes with the weight of each row, added up over
each group (Efron 1982, The Jackknife, the Bootstrap and Other Resampling Plans, chapter 6). Its variance is almost
that of the jackknife in resampling.py, but takes no loop over groups, and it keeps the weights. The influence of a row
is that change times the row's weight, shape (n,). tests/benchmarks/scores.py measures how often the intervals cover.
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

TOLERANCE = 1e-3  # how far the scores of a row may be from adding up to 1
NO_UNITS = "There are no units."
NO_VARIATION = "All units have the same value, which does not show that others would."


def too_few(least: int, there: int, kind: str = "") -> str:
    """The reason why there is no interval. kind: of units, as words that follow them."""
    return f"An interval needs at least {least} independent units{kind}; there are {there}."


class Figure(NamedTuple):
    """A measure with the ends of its 95% interval. reason: why the value, or else the interval, is None. Where both
    are there it is empty, or names what the value leaves out."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


class Fault(NamedTuple):
    """The first row of scores that is wrong. row: from 0. what: a sentence that does not name the row."""

    row: int
    what: str


class ScoredUnits(NamedTuple):
    """Made by `scored_units`. given: the number of its rows. rows: which of them have a weight, (n,); the other arrays
    have only these. group: the place of each row's group, from 0 to groups - 1, (n,)."""

    given: int
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
        """Whether the label with the highest score is the true one, (n,). Of labels that tie, the first counts."""
        found: Bools = np.equal(self.scores.argmax(axis=1), self.truth)
        return found

    @property
    def shares(self) -> Floats:
        """The weights, adding up to 1, (n,)."""
        found: Floats = self.weights / self.weights.sum()
        return found

    @property
    def is_plain(self) -> bool:
        """Whether weights are equal and each row is a group."""
        return self.groups == len(self.rows) and bool(np.ptp(self.weights) <= SLACK * self.weights.max())

    def by_group(self, values: Floats) -> Floats:
        """The sum over the rows of each group, (groups,)."""
        return np.bincount(self.group, values, self.groups).astype(np.float64, copy=False)

    def only(self, chosen: Bools | Ints) -> "ScoredUnits":
        """The chosen rows. chosen: (n,) or places of rows."""
        groups, group = np.unique(self.group[chosen], return_inverse=True)
        return ScoredUnits(
            self.given,
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
    """Checked arrays, one row a unit.

    truth: the place of the true label among the columns of scores, integers, (n,).
    scores: the probability of each label, (n, k), as `check_scores` asks.
    weights: how many units each row represents, 0 or more, (n,); 1 by default. Rows of weight 0 are left out.
    groups: integers or strings, (n,); rows with the same value were sampled together. By default each row is a group.

    ValueError for arrays that do not fit together, and for the first row that is wrong.
    """
    table = np.asarray(scores, dtype=np.float64)
    if fault := check_scores(table):
        raise ValueError(f"Row {fault.row}: {fault.what}")
    labels = np.asarray(truth)
    heavy = np.ones(len(table)) if weights is None else np.asarray(weights, dtype=np.float64)
    together = np.arange(len(table)) if groups is None else np.asarray(groups)
    for name, array in (("truth", labels), ("weights", heavy), ("groups", together)):
        if array.shape != (len(table),):
            raise ValueError(f"{name} must have one value for each of the {len(table)} rows, not {array.shape}.")
    if len(labels) and not (labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < table.shape[1]):
        raise ValueError(f"truth must be integers from 0 to {table.shape[1] - 1}, the places of labels.")
    if not (np.isfinite(heavy) & (heavy >= 0)).all():
        raise ValueError("weights must be finite numbers, 0 or more.")
    rows = np.flatnonzero(heavy)
    names, group = np.unique(together[rows], return_inverse=True)
    return ScoredUnits(len(table), rows, labels.astype(np.int64)[rows], table[rows], heavy[rows], group, len(names))


def check_scores(scores: npt.ArrayLike) -> Fault | None:
    """The first row that is no probability distribution, or None: each score must be a number from 0 to 1, and each row
    must add up to 1 within TOLERANCE. Nothing is rescaled, so percentages are faulty.

    scores: (n, k) with two or more labels; ValueError for another shape.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"Scores are a table with a column for each of two or more labels, not {table.shape}.")
    with np.errstate(invalid="ignore"):  # infinity less infinity
        sums = table.sum(axis=1)
    # Comparisons with NaN are false, so a row that has one is faulty.
    faulty = ~((table.min(axis=1) >= 0) & (table.max(axis=1) <= 1) & (np.abs(sums - 1) <= TOLERANCE))
    return Fault(row := int(faulty.argmax()), _what(table[row])) if faulty.any() else None


def _what(scores: Floats) -> str:
    """What is wrong with the scores of a row, (k,)."""
    if np.isnan(scores).any():
        return "A score is not a number."
    if np.isinf(scores).any():
        return "A score is infinite."
    if scores.min() < 0:
        return f"The score {scores.min():g} is negative."
    total = float(scores.sum())
    if abs(total - 100) <= 100 * TOLERANCE:
        return "The scores add up to 100, not 1; divide percentages by 100."
    if scores.max() > 1:
        return f"The score {scores.max():g} is above 1."
    return f"The scores add up to {total:.6g}, not 1."


def effective(weights: Floats) -> float:
    """How many units of equal weight are worth as much (Kish 1965, Survey Sampling)."""
    return float(weights.sum() ** 2 / (weights @ weights))


def quantile(units: ScoredUnits) -> float:
    """The 97.5% quantile of Student's t for the effective number of groups."""
    return _t(effective(units.by_group(units.weights)))


def _t(groups: float) -> float:
    return float(scipy.special.stdtrit(max(1.0, groups - 1), (1 + LEVEL) / 2))


def variance(units: ScoredUnits, influence: Floats) -> float:
    """The variance of a figure, with the divisor of a sample. influence: of each row, (n,); of two or more groups."""
    parts = units.by_group(influence)
    return float(parts @ parts) * units.groups / (units.groups - 1)


def mean(values: Floats, units: ScoredUnits, most: float = np.inf) -> Figure:
    """The weighted mean of values from 0 to `most`, (n,), with the interval of `skewed`."""
    if not units.groups:
        return Figure(None, reason=NO_UNITS)
    value = float(units.shares @ values)
    return skewed(value, units.shares * (values - value), units, most)


def skewed(value: float, influence: Floats, units: ScoredUnits, most: float = np.inf) -> Figure:
    """A figure from 0 to `most` with an interval that allows for skewness: losses are small for most units and large
    for a few, so that the upper end is further away. No interval for fewer than LEAST_UNITS groups.

    Student's t is transformed by a cubic that removes its skewness (Hall 1992, On the Removal of Skewness by
    Transformation, JRSS B 54(1), section 2). influence: of each row, (n,).
    """
    if units.groups < LEAST_UNITS:
        return Figure(value, reason=too_few(LEAST_UNITS, units.groups))
    parts, spread, t = units.by_group(influence), sqrt(variance(units, influence)), quantile(units)
    if spread <= SLACK:
        return Figure(value, reason=NO_VARIATION)
    skewness = float((parts**3).sum() / (parts @ parts) ** 1.5)  # divided by the root of the number of groups

    def transformed_back(x: float) -> float:
        if abs(skewness) <= SLACK:
            return x
        return 3 / skewness * (float(np.cbrt(1 + skewness * x - skewness**2 / 6)) - 1)

    low, high = value - spread * transformed_back(t), value - spread * transformed_back(-t)
    return Figure(value, max(0.0, low), min(most, high))


def share(value: float, influence: Floats, units: ScoredUnits, kinds: Sequence[Bools]) -> Figure:
    """A figure from 0 to 1 that compares kinds of units, with an interval on the scale of the log odds (Pepe 2003,
    The Statistical Evaluation of Medical Tests for Classification and Prediction, chapter 5).

    influence: of each row, (n,). kinds: which rows are of each kind, (n,) each. The rarest kind decides: Student's t
    has its number of groups, and two random groups of its largest weight are added, since a few that look alike do not
    show that others would (in the manner of Agresti and Coull 1998, The American Statistician 52(2)). So the intervals
    of rare labels and of unequal weights cover more often than 95%. No interval where a kind is in fewer than
    LEAST_LEFT_OUT groups.
    """
    groups = [len(np.unique(units.group[kind])) for kind in kinds]
    rarest = min(groups)
    if rarest < LEAST_LEFT_OUT:
        return Figure(value, reason=too_few(LEAST_LEFT_OUT, rarest, " of each kind that is compared"))
    if not SLACK < value < 1 - SLACK:
        return Figure(value, *jeffreys(round(value) * rarest, rarest))
    weights = [units.weights[kind] for kind in kinds]
    heaviest = max(float(own.max() / own.mean()) / count for own, count in zip(weights, groups, strict=True))
    odds, slope = float(scipy.special.logit(value)), value * (1 - value)
    added = 2 * slope * heaviest**2
    off = _t(rarest) * sqrt(variance(units, influence) + added) / slope
    return Figure(value, float(scipy.special.expit(odds - off)), float(scipy.special.expit(odds + off)))


def proportion(
    hits: Bools, units: ScoredUnits, ends: Callable[[float, float], tuple[float, float]] = jeffreys
) -> Figure:
    """The weighted proportion of hits, (n,), with the interval `ends` of its effective hits and count.

    Where weights are equal and each row is a group, these are the plain counts. Else the count is that of a plain
    sample with the same variance (Korn and Graubard 1998, Survey Methodology 24(2)), at most the effective number of
    rows, or of groups where all or none are hits; then fewer than LEAST_LEFT_OUT groups have no interval.
    """
    if not units.groups:
        return Figure(None, reason=NO_UNITS)
    if units.groups == len(hits):
        own = units.weights
        of_hits = [float((own**power) @ hits) for power in (0, 1, 2)]
        return of_sums(len(hits), (float(own.sum()), float(own @ own)), of_hits, ends, is_plain=units.is_plain)
    if units.groups < LEAST_LEFT_OUT:
        return Figure(min(1.0, float(units.shares @ hits)), reason=too_few(LEAST_LEFT_OUT, units.groups))
    value = min(1.0, float(units.shares @ hits))
    spread = variance(units, units.shares * (hits - value))
    most = effective(units.by_group(units.weights))
    return _of_count(value, spread, most, effective(units.weights), most, ends)


Ends = Callable[[float, float], tuple[float, float]]


def of_sums(number: int, weights: tuple[float, float], hits: Sequence[float], ends: Ends, *, is_plain: bool) -> Figure:
    """`proportion` where each row is a group, from sums over the rows. weights: of the weights, and of their squares;
    hits: the number of hits, and the sums of their weights and of the squares."""
    if is_plain:
        return Figure(hits[0] / number, *ends(hits[0], number))
    (total, squares), value = weights, min(1.0, hits[1] / weights[0])
    if number < LEAST_LEFT_OUT:
        return Figure(value, reason=too_few(LEAST_LEFT_OUT, number))
    spread = max(0.0, hits[2] * (1 - 2 * value) + value**2 * squares) / total**2 * number / (number - 1)
    most = total**2 / squares
    return _of_count(value, spread, most, most, most, ends)


def _of_count(value: float, spread: float, if_alike: float, most: float, groups: float, ends: Ends) -> Figure:
    """if_alike: the count where all or none are hits; most: the count otherwise, at most; groups: their effective
    number."""
    if not SLACK < value < 1 - SLACK:
        count = if_alike
    else:
        count = min(most, value * (1 - value) / spread if spread else np.inf) * (Z / _t(groups)) ** 2
    return Figure(value, *ends(value * count, count))
