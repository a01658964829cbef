"""The area under the ROC curve: how well a score separates hidden units from others."""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np


def auc(hidden: Sequence[float], others: Sequence[float]) -> float:
    """Return the probability that a hidden unit has a higher score than another unit. Ties count as half."""
    return float(_below(hidden, others).mean())


def _below(scores: Sequence[float], others: Sequence[float]) -> np.ndarray:
    """Return for each score the share of the others that are lower. Ties count as half."""
    ordered = np.sort(others)
    ranks = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return ranks / (2 * len(ordered))


def standard_error(hidden: Sequence[float], others: Sequence[float]) -> float:
    """Return the standard error of the area (DeLong, DeLong and Clarke-Pearson 1988, *Biometrics* 44). Both groups must
    have at least two units.
    """
    both = (_below(hidden, others), _below(others, hidden))
    return float(sum(values.var(ddof=1) / len(values) for values in both) ** 0.5)


def sure(level: float) -> float:
    """Return the half-width of an interval with this confidence level (standard errors)."""
    return NormalDist().inv_cdf((1 + level) / 2)


def interval(hidden: Sequence[float], others: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    area, apart = auc(hidden, others), sure(level) * standard_error(hidden, others)
    return max(0.0, area - apart), min(1.0, area + apart)
