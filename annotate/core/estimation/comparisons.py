"""Whether two predictors, or two estimates, differ, and by how much; and the correction for many tests at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, lgamma, sqrt

import scipy

from annotate.core.estimation.proportions import SLACK, Estimate


def mcnemar(only_first: int, only_second: int) -> float:
    """The two-sided p-value of McNemar's exact test: that neither of two predictors is right more often.

    only_first, only_second: items that only one of them has right; those that both or neither have say nothing.
    Under the null hypothesis each is a fair coin's, so p is twice the tail of Binomial(both together, 1/2) from the
    larger on, and 1 at most (Dietterich 1998, Neural Computation 10(7), section 3.1, has the approximate form).
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"{only_first} and {only_second} are not counts of items; give numbers from 0 up.")
    return min(1.0, 2 * float(scipy.special.bdtr(min(only_first, only_second), only_first + only_second, 0.5)))


@dataclass(frozen=True)
class Difference:
    """The first of two shares less the second, as a fraction, with its 95% interval, from -1 to 1 where it has none."""

    value: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        return (self.low, self.high) != (-1.0, 1.0)

    def within(self, most: float) -> "Difference":
        """The same where the two are known to be no further apart than that."""
        value, low, high = (max(-most, min(most, each)) for each in (self.value, self.low, self.high))
        return Difference(value, low, high)

    def undecided(self) -> "Difference":
        """The same with an interval that holds zero."""
        return replace(self, low=min(0.0, self.low), high=max(0.0, self.high))

    @property
    def better(self) -> str | None:
        """Which of the two is, "first" or "second", where zero lies outside the interval by more than rounding."""
        return "first" if self.low > SLACK else "second" if self.high < -SLACK else None


def paired(first: Estimate, second: Estimate, correlation: float) -> Difference | None:
    """How far two estimates from the same posts are apart; None where one of them knows nothing. Where one has no
    interval, the difference has none either.

    correlation: that of the two, from -1 to 1; ValueError for any other. The interval keeps the distances of each
    estimate from its own bounds, and so leans as they do (MOVER: Zou and Donner 2008, Statistics in Medicine 27(10),
    for proportions that are paired: Newcombe 1998, Statistics in Medicine 17(22), method 10).
    """
    if not -1 <= correlation <= 1:
        raise ValueError(f"A correlation is from -1 to 1; {correlation} is none.")
    if first.value is None or second.value is None:
        return None
    apart = first.value - second.value
    if not (first.has_interval and second.has_interval):
        return Difference(apart, -1.0, 1.0)
    down = _distance(first.value - first.low, second.high - second.value, correlation)
    up = _distance(first.high - first.value, second.value - second.low, correlation)
    return Difference(apart, max(-1.0, apart - down), min(1.0, apart + up))


def _distance(one: float, other: float, correlation: float) -> float:
    return sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: those at 0.05 or less hold together with an error of 0.05 at most.

    The k-th smallest of m is multiplied by m - k + 1 and never let below the one before it (Holm 1979,
    Scandinavian Journal of Statistics 6(2), section 3).
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def benjamini_yekutieli(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: of those at 0.05 or less, 5% at most are expected to be false discoveries,
    whatever the dependence between the tests.

    The k-th smallest of m is multiplied by (m / k) (1 + 1/2 + ... + 1/m) and never let above the one after it
    (Benjamini and Yekutieli 2001, Annals of Statistics 29(4), theorem 1.3).
    """
    adjusted, number = [0.0] * len(p_values), len(p_values)
    factor, least = number * fsum(1 / rank for rank in range(1, number + 1)), 1.0
    descending = sorted(range(number), key=lambda place: p_values[place], reverse=True)
    for rank, place in zip(range(number, 0, -1), descending, strict=True):
        least = min(least, factor / rank * p_values[place])
        adjusted[place] = least
    return adjusted


def difference(first: Estimate, second: Estimate) -> float:
    """The two-sided p-value that two independent estimates are of the same share; 1 where one knows nothing.

    The score test on effective counts, with (N - 1)/N (Campbell 2007, Statistics in Medicine 26(19)), where five are
    expected of the rarer kind in the smaller sample; else Fisher's test with half of what was seen, the mid-p value,
    of the counts rounded. Of true nulls it
    rejects, in samples of 5 to 700, at most 6.2% at 5% and 0.6% at 0.5%; the score test alone 4.8% at 0.5%.
    """
    if not (first.count and second.count):
        return 1.0
    total = first.count + second.count
    share = (first.hits + second.hits) / total
    if min(share, 1 - share) * min(first.count, second.count) >= 5:
        apart = first.hits / first.count - second.hits / second.count
        spread = share * (1 - share) * (1 / first.count + 1 / second.count) * total / (total - 1)
        return 2 * float(scipy.special.ndtr(-abs(apart) / sqrt(spread)))
    return _mid_p(round(first.hits), round(first.count), round(second.hits), round(second.count))


def visible(first: Estimate, second: Estimate) -> float | None:
    """The least difference that `difference` finds at 5% in four of five pairs of such samples; None where one knows
    nothing. By normal approximation, the share being that of both together with a hit and a miss more."""
    if not (first.count and second.count):
        return None
    share = (first.hits + second.hits + 1) / (first.count + second.count + 2)
    quantiles = float(scipy.special.ndtri(0.975) + scipy.special.ndtri(0.8))
    return min(1.0, quantiles * sqrt(share * (1 - share) * (1 / first.count + 1 / second.count)))


def _mid_p(hits: int, of: int, other_hits: int, other_of: int) -> float:
    """Fisher's exact test, two-sided by probability, what was seen counted half (Lancaster 1961, JASA 56(294))."""
    rare = hits + other_hits
    if 2 * rare > of + other_of:
        return _mid_p(of - hits, of, other_of - other_hits, other_of)
    if min(of, other_of, rare) == 0:
        return 1.0
    # In logarithms, since the counts may be large: the number of ways to k rare ones in the first sample.
    ways = {
        k: -fsum(lgamma(1 + part) for part in (k, of - k, rare - k, other_of - rare + k))
        for k in range(max(0, rare - other_of), min(of, rare) + 1)
    }
    likeliest = max(ways.values())
    chances = [exp(way - likeliest) for way in ways.values()]
    seen = exp(ways[hits] - likeliest)
    slack = 1 + 1e-7  # equal but for rounding
    rarer = fsum(chance for chance in chances if chance * slack < seen)
    as_rare = fsum(chance for chance in chances if seen <= chance * slack <= seen * slack**2)
    return (rarer + as_rare / 2) / fsum(chances)
