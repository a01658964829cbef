"""Differences between two arms to which pairs of a person and a unit were assigned at random, one pair at a time."""

from math import sqrt

import numpy as np
import scipy

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
from annotate.core.estimation.differences import Difference
from annotate.core.estimation.proportions import LEVEL

LEAST_ANSWERS = 10  # minimum number of answers in each arm for an interval


def arm_difference(values: Floats, is_shown: Bools, people: Ints, units: Ints) -> Difference | None:
    """Return the mean value in the shown arm minus that in the other arm, with an interval clustered in two ways.

    Answers by the same person are dependent, and so are answers to the same unit. The variance is the sum of those
    clustered by person and by unit, minus that of single answers (Cameron, Gelbach and Miller 2011, JBES 29(2)). If
    this is not positive, it is the larger of the two. The interval uses Student's t with one degree of freedom less
    than the smaller number of clusters. A single person is not a cluster.

    In 400 simulated tasks each, with three answers to 400 or 800 units, the intervals covered the true difference in
    94% to 96% of tasks with 4 to 20 people who follow suggestions alike. If only half of the people follow them, they
    covered 93% with 6 people, and 95% to 96% with 12 and 30.

    values: value of each answer, from 0 to 1 (A,).
    is_shown: whether each answer is in the shown arm (A,).
    people, units: the person and the unit of each answer, as numbers from 0 (A,).

    Return None if an arm has no answers. There is no interval if an arm has fewer than LEAST_ANSWERS.
    """
    counts = np.array([(~is_shown).sum(), is_shown.sum()])
    if not counts.all():
        return None
    blind, shown = values[~is_shown].mean(), values[is_shown].mean()
    value = float(shown - blind)
    if counts.min() < LEAST_ANSWERS:
        return Difference(value, -1.0, 1.0)
    # What each answer contributes to the error of the difference.
    errors = np.where(is_shown, (values - shown) / counts[1], (blind - values) / counts[0])
    by_cluster: list[Floats] = [
        np.bincount(clusters, errors).astype(np.float64) for clusters in (people, units) if clusters.max() > 0
    ]
    variances = [_variance(sums) for sums in by_cluster]
    variance = sum(variances) - _variance(errors) if len(variances) > 1 else 0.0
    variance = variance if variance > 0 else max(variances, default=0.0)
    fewest = min(map(len, by_cluster), default=len(values))
    off = float(scipy.special.stdtrit(fewest - 1, (1 + LEVEL) / 2)) * sqrt(variance)
    return Difference(value, max(-1.0, value - off), min(1.0, value + off))


def _variance(sums: Floats) -> float:
    return float((sums**2).sum() * len(sums) / (len(sums) - 1))
