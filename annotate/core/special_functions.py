"""The distributions of intervals and tests, and the functions of statistical models.

SciPy has them too, but it takes 140 MB, a quarter of an installation. The tests compare each function with SciPy's.
"""

from math import erfc, exp, lgamma, log, log1p, pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SETTLED = 2.0**-50  # relative change below which the continued fraction has converged; rounding changes it by less
_TERMS = 100_000  # maximum number of its terms; it needs about the square root of the counts
_HALF_LOG_TWO_PI = log(2 * pi) / 2
_LARGE = 10.0  # from this argument on, `_series` is exact to the last digit
# Halley's method triples the number of correct digits. A step is therefore the last one if it changes both the quantile
# and the probability by less than this share.
_CLOSE = 1e-5
_STEPS = 200  # maximum number of steps; bisection alone needs fewer, unless the quantile is almost 0
_SPACING = 100  # one in this many quantiles of a series is computed first; the others start from it


def normal_cdf(z: float) -> float:
    """Return the probability that a standard normal variable is at most z."""
    return erfc(-z / sqrt(2)) / 2


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most k successes in n trials."""
    return 1.0 if k >= n else beta_cdf(n - k, k + 1, 1 - p)


def binomial_tail(k: int, n: int, p: float) -> float:
    """Return the probability of at least k successes in n trials."""
    if not 0 < k <= n:
        return float(k <= 0)
    return beta_cdf(k, n - k + 1, p)


def t_cdf(t: float, freedom: float) -> float:
    """Return the probability that a variable with Student's t distribution is at most t.

    freedom: the degrees of freedom
    """
    if not t:
        return 0.5
    x, y = freedom / (freedom + t**2), t**2 / (freedom + t**2)
    tail = _cdf_and_density(freedom / 2, 0.5, x, y, _scale(freedom / 2, 0.5))[0] / 2
    return tail if t < 0 else 1 - tail


def t_quantile(p: float, freedom: float) -> float:
    """Return the p-quantile of Student's t distribution, for p above 1/2.

    freedom: the degrees of freedom
    """
    share = beta_quantile(0.5, freedom / 2, 2 * p - 1)
    return sqrt(freedom * share / (1 - share))


def beta_cdf(a: float, b: float, x: float) -> float:
    """Return the probability that a Beta(a, b) variable is at most x: the regularized incomplete beta function."""
    return _cdf_and_density(a, b, x, 1 - x, _scale(a, b))[0] if 0 < x < 1 else float(x >= 1)


def beta_quantile(a: float, b: float, p: float) -> float:
    """Return the p-quantile of Beta(a, b), for p between 0 and 1. It is found by Halley's method in a bracket."""
    scale, low, high, x = _scale(a, b), 0.0, 1.0, _approximate_quantile(a, b, p)
    for _ in range(_STEPS):
        if not low < x < high:
            x = (low + high) / 2
        below, density = _cdf_and_density(a, b, x, 1 - x, scale)
        low, high = (x, high) if below < p else (low, x)
        newton = (below - p) / density if density else 1.0
        bend = newton * ((a - 1) / x - (b - 1) / (1 - x))
        step = newton / (1 - bend / 2) if abs(bend) < 1 else newton
        x -= step
        if abs(step) <= _CLOSE * min(x, 1 - x) and abs(below - p) <= _CLOSE * min(p, 1 - p):
            break
    return x


def beta_quantiles(a: float, b: float, p: Floats) -> Floats:
    """Return the quantiles of Beta(a, b) for many ascending probabilities."""
    places = np.append(np.arange(0, len(p) - 1, _SPACING), len(p) - 1)
    known = np.array([beta_quantile(a, b, each) for each in p[places].tolist()])
    after = np.searchsorted(places[1:-1], np.arange(len(p)), side="right") + 1
    low, high, scale = known[after - 1], known[after], _scale(a, b)
    x: Floats = np.interp(p, p[places], known)
    for _ in range(_STEPS):
        below, density = _cdfs_and_densities(a, b, x, scale)
        low, high = np.where(below < p, x, low), np.where(below < p, high, x)
        newton = (below - p) / density
        bend = newton * ((a - 1) / x - (b - 1) / (1 - x))
        step = newton / (1 - np.clip(bend, -1, 1) / 2)
        is_last = np.abs(step) <= _CLOSE * np.minimum(x, 1 - x)
        is_last &= np.abs(below - p) <= _CLOSE * np.minimum(p, 1 - p)
        x = np.where(is_last | ((x - step > low) & (x - step < high)), x - step, (low + high) / 2)
        if is_last.all():
            break
    return x


def log_beta(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Return the logarithm of the beta function.

    The remainders of Stirling's formula keep the digits that a difference of logarithms of the gamma function loses if
    the arguments are large.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    total = a + b
    leading = _HALF_LOG_TWO_PI + np.log(total / a / b) / 2 - a * np.log1p(b / a) - b * np.log1p(a / b)
    found: Floats = leading + _remainders(a) + _remainders(b) - _remainders(total)
    return found


def logistic(x: npt.ArrayLike) -> Floats:
    """Return 1 / (1 + exp(-x))."""
    return np.exp(log_logistic(x))


def log_logistic(x: npt.ArrayLike) -> Floats:
    """Return the logarithm of `logistic`."""
    found: Floats = -np.logaddexp(0, -np.asarray(x, np.float64))
    return found


def digamma(x: Floats) -> Floats:
    """Return the derivative of the logarithm of the gamma function, for positive numbers.

    It is the asymptotic series from 10 on (Abramowitz and Stegun 1964, formula 6.3.18). Below, the recurrence
    digamma(x) = digamma(x + 1) - 1 / x leads there.
    """
    added, x = np.zeros_like(x), x.copy()
    while (is_small := x < _LARGE).any():
        added[is_small] -= 1 / x[is_small]
        x[is_small] += 1
    s = 1 / (x * x)
    series = (1 / 12 - (1 / 120 - (1 / 252 - (1 / 240 - (1 / 132 - 691 / 32760 * s) * s) * s) * s) * s) * s
    found: Floats = added + np.log(x) - 0.5 / x - series
    return found


# --- The incomplete beta function: x^a (1 - x)^b / B(a, b) times a continued fraction (DiDonato and Morris 1992, ACM
# Transactions on Mathematical Software 18(3), equation 9). The first factor is computed as Loader computes binomial
# probabilities (2000, Fast and Accurate Computation of Binomial Probabilities), because logarithms of the gamma
# function would lose digits.


def _cdf_and_density(a: float, b: float, x: float, y: float, scale: float) -> tuple[float, float]:
    """Return the probability below x, and the density at x. For an x close to 1, y = 1 - x has the digits."""
    off = (a + b) * x - a if x < 0.5 else b - (a + b) * y
    power = scale * exp(-a * _excess(off / a, (a + b) * x / a) - b * _excess(-off / b, (a + b) * y / b))
    below = power * _fraction(a, b, x, -off) if off <= 0 else 1 - power * _fraction(b, a, y, off)
    return below, power / x / y


def _cdfs_and_densities(a: float, b: float, x: Floats, scale: float) -> tuple[Floats, Floats]:
    y = 1 - x
    off = np.where(x < 0.5, (a + b) * x - a, b - (a + b) * y)
    power = scale * np.exp(-a * _excesses(off / a, (a + b) * x / a) - b * _excesses(-off / b, (a + b) * y / b))
    left, right, below = off <= 0, off > 0, np.empty_like(x)
    below[left] = power[left] * _fraction(a, b, x[left], -off[left])
    below[right] = 1 - power[right] * _fraction(b, a, y[right], off[right])
    return below, power / x / y


def _fraction(a: float, b: float, x: Any, short: Any) -> Any:
    """Return the continued fraction for one x, or for an array of them.

    short: a - (a + b) x, which must not be negative.
    """
    is_settled = np.all if isinstance(x, np.ndarray) else bool
    above, below, above_before, below_before = 1.0, a * (1 + short) / (a + 1), 0.0, 1.0
    value = above / below
    for step in range(1, _TERMS):
        product, at = step * (b - step) * x, a + 2 * step
        alpha = (a + step - 1) * (a + b + step - 1) / (at - 1) ** 2 * product * x
        beta = step + product / (at - 1) + (a + step) / (at + 1) * (1 + short + step * (2 - x))
        above, above_before = (alpha * above_before + beta * above), above
        below, below_before = (alpha * below_before + beta * below), below
        before, value = value, above / below
        if is_settled(abs(value - before) <= _SETTLED * value):
            break
        above, above_before, below, below_before = value, above_before / below, 1.0, below_before / below
    return value


def _approximate_quantile(a: float, b: float, p: float) -> float:
    """Return a first approximation of a quantile (Numerical Recipes, section 6.14.12)."""
    if a < 1 or b < 1:
        left, right = exp(a * log(a / (a + b))) / a, exp(b * log(b / (a + b))) / b
        if p < left / (left + right):
            return float((a * (left + right) * p) ** (1 / a))
        return float(1 - (b * (left + right) * (1 - p)) ** (1 / b))
    root = sqrt(-2 * log(min(p, 1 - p)))
    z = (2.30753 + root * 0.27061) / (1 + root * (0.99229 + root * 0.04481)) - root
    z = -z if p < 0.5 else z
    first, second = 1 / (2 * a - 1), 1 / (2 * b - 1)
    mean, bend = 2 / (first + second), (z**2 - 3) / 6
    log_odds = z * sqrt(bend + mean) / mean - (second - first) * (bend + 5 / 6 - 2 / (3 * mean))
    return a / (a + b * exp(2 * log_odds))


def _scale(a: float, b: float) -> float:
    """Return x^a (1 - x)^b / B(a, b) at x = a / (a + b), where it is greatest."""
    return sqrt(a / (a + b) * b / (2 * pi)) * exp(_remainder(a + b) - _remainder(a) - _remainder(b))


def _excess(off: float, ratio: float) -> float:
    """Return off - log(ratio), where ratio is 1 + off."""
    return off - (log(ratio) if off < -0.5 else log1p(off))


def _excesses(off: Floats, ratio: Floats) -> Floats:
    return off - np.where(off < -0.5, np.log(ratio), np.log1p(off))


# --- The remainder of Stirling's formula: log(gamma(z)) - (z - 1/2) log(z) + z - log(2 pi) / 2


def _remainder(z: float) -> float:
    return float(_series(z)) if z >= _LARGE else lgamma(z) - (z - 0.5) * log(z) + z - _HALF_LOG_TWO_PI


def _remainders(z: Floats) -> Floats:
    found = np.array(_series(np.maximum(z, _LARGE)), ndmin=1)
    is_small = np.atleast_1d(z < _LARGE)
    found[is_small] = [_remainder(each) for each in np.atleast_1d(z)[is_small].tolist()]
    return found.reshape(np.shape(z))


def _series(z: Any) -> Any:
    s = 1 / (z * z)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - (1 / 1188 - 691 / 360360 * s) * s) * s) * s) * s) / z
