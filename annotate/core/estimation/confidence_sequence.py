"""Intervals that hold at every look. A manager who looks while people read, and stops when an interval is narrow
enough, still has the truth in it in 95% of cases. With intervals for one look this is not so.
"""

from collections.abc import Callable, Mapping
from math import log, sqrt
from typing import Any

import scipy

from annotate.core.estimation.comparisons import Difference
from annotate.core.estimation.proportions import LEVEL, SLACK, Z, jeffreys
from annotate.core.measures.figure_rows import better

TUNED = 100  # units at which a difference is least wide for its size
OF_MEANS = 1_000  # units that a mean of figures is taken to rest on, which does not name its own
_MISS = -log(1 - LEVEL)
# The variance, in units, that minimizes the width at TUNED units.
_RHO = (2 * _MISS + log(2 * _MISS + 1)) / TUNED
STEPS = 60  # of a bisection, which then is as exact as a float


def share_at_every_look(hits: float, of: float) -> tuple[float, float]:
    """The ends of a share's interval that hold at all sample sizes together, as fractions; (0, 1) of nothing.

    All shares are in it under which what was seen is at least 5% as likely as under the Beta(1/2, 1/2) mixture of all
    shares. By Ville's inequality the truth is left out, at any look, in 5% of cases at most (Robbins 1970, Statistical
    methods related to the law of the iterated logarithm, Annals of Mathematical Statistics 41(5); the betting form:
    Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting, JRSS B 86(1)).
    """
    if of == 0:
        return 0.0, 1.0
    value = hits / of
    least = float(scipy.special.betaln(hits + 0.5, of - hits + 0.5) - scipy.special.betaln(0.5, 0.5)) - _MISS

    def is_inside(share: float) -> bool:
        return float(scipy.special.xlogy(hits, share) + scipy.special.xlog1py(of - hits, -share)) >= least

    return _end(is_inside, value, 0.0), _end(is_inside, value, 1.0)


def _end(is_inside: Callable[[float], bool], inside: float, outside: float) -> float:
    if is_inside(outside):
        return outside
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return outside


def factor(units: float) -> float:
    """How many standard errors an end lies from a mean of so many units, at all sizes together, by the normal mixture
    (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Time-uniform central limit theory and asymptotic confidence
    sequences, Annals of Statistics 52(6), equation 5)."""
    spread = units * _RHO
    return sqrt((1 + 1 / spread) * (log(1 + spread) + 2 * _MISS))


def at_every_look(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a report (figure_rows.py) with an interval that holds at every look; as it is where it has none.

    A share keeps what its interval is wider than that of a plain sample of its effective count. For what is no share,
    the standard error is taken from the interval, with one unit more on either side, since of few units hardly any may
    differ. Tests for one look are withdrawn.
    """
    value, low, high, count, units = (row[name] for name in ("value", "low", "high", "count", "units"))
    if value is None or low is None:
        return dict(row)
    if count:
        plain, wider = jeffreys(value * count, count), share_at_every_look(value * count, count)
        down, up = (
            abs(end - value) * (abs(far - value) / abs(near - value) if abs(near - value) > SLACK else 1)
            for end, near, far in zip((low, high), plain, wider, strict=True)
        )
        low, high = max(0.0, value - down), min(1.0, value + up)
    else:
        units = units or OF_MEANS
        times = factor(units)
        low, high = (
            value + sign * times * sqrt((abs(end - value) / Z) ** 2 + 2 / units**2)
            for sign, end in ((-1, low), (1, high))
        )
    found = {**row, "low": low, "high": high}
    if "better" in row:
        found |= {"better": better(row["measure"], Difference(value, low, high)), "p": None, "p_holm": None}
    return found
