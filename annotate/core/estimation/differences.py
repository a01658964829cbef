"""Tests and intervals for the difference between two predictors or estimates, and corrections for multiple testing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, lgamma, sqrt

import numpy as np
import scipy

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
from annotate.core.estimation.proportions import LEVEL, SLACK, Estimate


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test that two predictors are right equally often.

    Only items on which exactly one predictor is right carry information. Under the null hypothesis, either predictor is
    equally likely to be right on such an item. The p-value is twice the smaller tail probability of Binomial(only_first
    + only_second, 1/2), and at most 1 (Dietterich 1998, Neural Computation 10(7), section 3.1, gives the approximate
    test).

    only_first, only_second: counts of items on which only the first or only the second predictor is right.

    Raise ValueError for a negative count.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"{only_first} and {only_second} must be counts of items (0 or more).")
    return min(1.0, 2 * float(scipy.special.bdtr(min(only_first, only_second), only_first + only_second, 0.5)))


@dataclass(frozen=True)
class Difference:
    """The first share minus the second, with its 95% interval. The ends are -1 and 1 if there is no interval."""

    value: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        return (self.low, self.high) != (-1.0, 1.0)

    def within(self, most: float) -> "Difference":
        """Return the difference and its interval, clipped to the range from -most to most."""
        value, low, high = (max(-most, min(most, number)) for number in (self.value, self.low, self.high))
        return Difference(value, low, high)

    def undecided(self) -> "Difference":
        """Return the difference with its interval widened to contain zero."""
        return replace(self, low=min(0.0, self.low), high=max(0.0, self.high))

    @property
    def better(self) -> str | None:
        """Which share is greater, "first" or "second". None if the interval includes zero (within rounding error)."""
        return "first" if self.low > SLACK else "second" if self.high < -SLACK else None


def paired(first: Estimate, second: Estimate, correlation: float) -> Difference | None:
    """Return the difference between two estimates from the same items.

    The interval is computed by MOVER, which preserves the asymmetry of the two intervals (Zou and Donner 2008,
    Statistics in Medicine 27(10); for paired proportions Newcombe 1998, Statistics in Medicine 17(22), method 10).

    correlation: correlation of the two estimates, from -1 to 1.

    Return None if either estimate has no value. The difference has no interval if either estimate has none. Raise
    ValueError if the correlation is out of range.
    """
    if not -1 <= correlation <= 1:
        raise ValueError(f"A correlation must be between -1 and 1, not {correlation}.")
    if first.value is None or second.value is None:
        return None
    value = first.value - second.value
    if not (first.has_interval and second.has_interval):
        return Difference(value, -1.0, 1.0)
    down = _distance(first.value - first.low, second.high - second.value, correlation)
    up = _distance(first.high - first.value, second.value - second.low, correlation)
    return Difference(value, max(-1.0, value - down), min(1.0, value + up))


def _distance(one: float, other: float, correlation: float) -> float:
    return sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's method, which controls the family-wise error rate.

    The k-th smallest of m p-values is multiplied by m - k + 1. If the result is smaller than the previous adjusted
    p-value, that value is used instead (Holm 1979, Scandinavian Journal of Statistics 6(2), section 3).

    Return the adjusted p-values in the original order.
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(order))
    raised = np.arange(len(order), 0, -1) * np.asarray(p_values)[order]
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, raised))
    return adjusted.tolist()


def benjamini_yekutieli(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values to control the false discovery rate under any dependence between the tests.

    The k-th smallest of m p-values is multiplied by (m / k) (1 + 1/2 + ... + 1/m). If the result is larger than the
    next adjusted p-value, that value is used instead (Benjamini and Yekutieli 2001, Annals of Statistics 29(4), theorem
    1.3).

    Return the adjusted p-values in the original order.
    """
    descending, number = np.argsort(p_values, kind="stable")[::-1], len(p_values)
    ranks, adjusted = np.arange(number, 0, -1), np.empty(number)
    raised = number * fsum(1 / ranks) / ranks * np.asarray(p_values)[descending]
    adjusted[descending] = np.minimum.accumulate(np.minimum(1.0, raised))
    return adjusted.tolist()


def difference(first: Estimate, second: Estimate) -> float:
    """Return the two-sided p-value of the hypothesis that two independent estimates have the same true share.

    If the expected count of the rarer outcome in the smaller sample is at least five, this is the score test on
    effective counts with the (N - 1)/N correction (Campbell 2007, Statistics in Medicine 26(19)). Otherwise, it is
    Fisher's exact test with the mid-p value, on rounded counts. In samples of 5 to 700, this combination rejects at
    most 6.2% of true hypotheses at the 5% level, and at most 0.6% at the 0.5% level. The score test alone would reject
    up to 4.8% at the 0.5% level.

    Return 1 if either estimate has no observations.
    """
    if not (first.count and second.count):
        return 1.0
    total = first.count + second.count
    share = (first.hits + second.hits) / total
    if min(share, 1 - share) * min(first.count, second.count) >= 5:
        value = first.hits / first.count - second.hits / second.count
        spread = share * (1 - share) * (1 / first.count + 1 / second.count) * total / (total - 1)
        return 2 * float(scipy.special.ndtr(-abs(value) / sqrt(spread)))
    return _mid_p(round(first.hits), round(first.count), round(second.hits), round(second.count))


def detectable_difference(first: Estimate, second: Estimate) -> float | None:
    """Return the minimum detectable difference of the test `difference`, at the 5% level with 80% power.

    It is computed by the normal approximation, from the pooled share with one hit and one miss added. Return None if
    either estimate has no observations.
    """
    if not (first.count and second.count):
        return None
    share = (first.hits + second.hits + 1) / (first.count + second.count + 2)
    quantiles = float(scipy.special.ndtri(0.975) + scipy.special.ndtri(0.8))
    return min(1.0, quantiles * sqrt(share * (1 - share) * (1 / first.count + 1 / second.count)))


def _mid_p(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """Return the two-sided mid-p value of Fisher's exact test (Lancaster 1961, JASA 56(294)).

    It is the probability of all tables that are less likely than the observed table, plus half the probability of all
    tables that are equally likely.
    """
    rare = hits + other_hits
    if 2 * rare > of + other_of:
        return _mid_p(of - hits, of, other_of - other_hits, other_of)
    if min(of, other_of, rare) == 0:
        return 1.0
    # The logarithm of the number of ways to get k rare outcomes in the first sample, up to a constant. Logarithms avoid
    # overflow with large counts.
    ways = {
        k: -fsum(lgamma(1 + part) for part in (k, of - k, rare - k, other_of - rare + k))
        for k in range(max(0, rare - other_of), min(of, rare) + 1)
    }
    likeliest = max(ways.values())
    chances = [exp(way - likeliest) for way in ways.values()]
    observed = exp(ways[hits] - likeliest)
    slack = 1 + 1e-7  # tolerance for rounding error
    rarer = fsum(chance for chance in chances if chance * slack < observed)
    as_rare = fsum(chance for chance in chances if observed <= chance * slack <= observed * slack**2)
    return (rarer + as_rare / 2) / fsum(chances)


# --- Two arms. Each (annotator, unit) pair is assigned to one of them at random.

LEAST_ANSWERS = 10  # minimum number of answers in each arm for an interval


def arm_difference(values: Floats, is_shown: Bools, people: Ints, units: Ints) -> Difference | None:
    """Return the difference in means, shown arm minus other arm, with an interval clustered by annotator and by unit.

    Answers by the same annotator are dependent, and so are answers to the same unit. The variance is the sum of the
    variances clustered by annotator and by unit, minus the variance of single answers (Cameron, Gelbach and Miller
    2011, JBES 29(2)). If the result is not positive, the larger of the two clustered variances is used. The interval
    uses Student's t with one degree of freedom less than the smaller number of clusters. A single annotator does not
    count as a cluster.

    In simulations of 400 tasks each, with three answers to 400 or 800 units, the intervals covered the true difference
    in 94% to 96% of tasks with 4 to 20 annotators who follow suggestions equally often. If only half of the annotators
    follow suggestions, they covered it in 93% with 6 annotators, and in 95% to 96% with 12 and 30.

    values: value of each answer, from 0 to 1, (A,).
    is_shown: whether each answer is in the shown arm, (A,).
    people, units: indices of each answer's annotator and unit, (A,).

    Return None if an arm has no answers. There is no interval if an arm has fewer than LEAST_ANSWERS.
    """
    counts = np.array([(~is_shown).sum(), is_shown.sum()])
    if not counts.all():
        return None
    blind, shown = values[~is_shown].mean(), values[is_shown].mean()
    value = float(shown - blind)
    if counts.min() < LEAST_ANSWERS:
        return Difference(value, -1.0, 1.0)
    # The contribution of each answer to the error of the difference.
    errors = np.where(is_shown, (values - shown) / counts[1], (blind - values) / counts[0])
    by_cluster: list[Floats] = [
        np.bincount(clusters, errors).astype(np.float64) for clusters in (people, units) if clusters.max() > 0
    ]
    variances = [_clustered_variance(sums) for sums in by_cluster]
    variance = sum(variances) - _clustered_variance(errors) if len(variances) > 1 else 0.0
    variance = variance if variance > 0 else max(variances, default=0.0)
    fewest = min(map(len, by_cluster), default=len(values))
    off = float(scipy.special.stdtrit(fewest - 1, (1 + LEVEL) / 2)) * sqrt(variance)
    return Difference(value, max(-1.0, value - off), min(1.0, value + off))


def _clustered_variance(sums: Floats) -> float:
    return float((sums**2).sum() * len(sums) / (len(sums) - 1))
