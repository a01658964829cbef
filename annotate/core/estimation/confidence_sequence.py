"""Confidence sequences: intervals that hold at every look.

A manager who watches an interval while people annotate, and stops once it is narrow enough, still has 95% coverage.
Ordinary intervals lose it.
"""

from collections.abc import Callable, Mapping
from math import log, sqrt
from typing import Any

import scipy

from annotate.core.estimation.comparisons import Difference
from annotate.core.estimation.proportions import LEVEL, SLACK, Z, jeffreys
from annotate.core.measures.figure_rows import better

TUNED = 100  # sample size at which the interval of a difference is tightest
OF_MEANS = 1_000  # sample size assumed for a mean that does not report its own
_MISS = -log(1 - LEVEL)
# The mixture variance that minimizes the width at TUNED units.
_RHO = (2 * _MISS + log(2 * _MISS + 1)) / TUNED
STEPS = 60  # bisection steps, enough for float precision


def share_at_every_look(hits: float, of: float) -> tuple[float, float]:
    """Return the ends of an interval for a share that holds at all sample sizes simultaneously.

    The interval contains every share under which the data are at least 5% as likely as under the Beta(1/2, 1/2)
    mixture. By Ville's inequality, the probability that it ever excludes the true share is at most 5% (Robbins 1970,
    Statistical methods related to the law of the iterated logarithm, Annals of Mathematical Statistics 41(5); for the
    betting form, Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting, JRSS B 86(1)).

    hits: number of hits, which may be fractional.
    of: number of observations; with 0 the interval is (0, 1).
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
    """Return the half-width, in standard errors, of an interval for a mean that holds at all sample sizes.

    This is the normal mixture of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Time-uniform central limit
    theory and asymptotic confidence sequences, Annals of Statistics 52(6), equation 5.

    units: current sample size.
    """
    spread = units * _RHO
    return sqrt((1 + 1 / spread) * (log(1 + spread) + 2 * _MISS))


def at_every_look(row: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the interval of a report row (figure_rows.py) by one that holds at every look.

    The interval of a share keeps its ratio to the interval of a simple random sample of the same effective size. For
    other figures, the standard error is taken from the interval, with one unit added on each side because few units
    show too little variation. P-values that are valid for a single look are removed.

    Returns the row unchanged if it has no interval.
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
