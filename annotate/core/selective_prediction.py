"""Answers that a system is to be trusted with: accuracy by threshold, and the threshold for a wished precision."""

from functools import partial
from math import ceil, log
from typing import NamedTuple

import numpy as np
import scipy

from annotate.core.answers import Bools, Floats, Ints
from annotate.core.estimation import SLACK
from annotate.core.intervals import LEVEL
from annotate.core.resampling import LEAST_LEFT_OUT
from annotate.core.scored_units import NO_UNITS, Figure, ScoredUnits, of_sums, proportion, skewed, too_few
from annotate.core.scores import mean_above

MOST_POINTS = 200  # of a risk-coverage curve
ERROR = 1 - LEVEL  # how often a threshold may miss its wish
STEP = 1.1  # each threshold tested selects at least this many times the units of the one before
# Each chain of tests starts with this many times the units of the one before. Where 1% to 3% of the most confident
# answers are wrong, 4, 6 and 8 select about as many units (33% to 34% in 60 draws), a single chain far fewer (22%). It
# selects slightly more where the most confident answers are all right.
START = 6.0


class Point(NamedTuple):
    """Answers with a confidence of at least `threshold`: their share of all units, and the share of them that is
    right."""

    threshold: float
    coverage: float
    accuracy: float


class RiskCoverage(NamedTuple):
    """area: under the curve of risk (the share of wrong answers) by coverage. points: from the highest threshold."""

    area: Figure
    points: tuple[Point, ...]


class Threshold(NamedTuple):
    """value: the lowest score at which the wish is shown to be reached, or None with a reason.

    precision: of the units with that score or more; its low end is the bound that was tested.
    recall: how many of the label's units, or for the whole answer of all units, are selected and right.
    coverage: the share of all units that is selected.
    """

    value: float | None
    precision: Figure = Figure(None)
    recall: float | None = None
    coverage: float | None = None
    reason: str = ""


def risk_coverage(units: ScoredUnits) -> RiskCoverage:
    """Accuracy of the answers at or above each confidence (the highest score), at most MOST_POINTS of them evenly
    spaced by coverage; and the area: the mean, over units, of the share of wrong answers at their confidence or above,
    0 at best (Geifman, Uziel and El-Yaniv 2019, Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers)."""
    if not units.groups:
        return RiskCoverage(Figure(None, reason=NO_UNITS), ())
    confidence, right = units.confidence, units.right
    value, influence = mean_above(confidence, units.weights, ~right, units.weights)
    thresholds, place = np.unique(-confidence, return_inverse=True)
    selected = np.bincount(place, units.weights).cumsum()
    accuracy = np.bincount(place, units.weights * right).cumsum() / selected
    coverage = selected / selected[-1]
    wanted = np.linspace(coverage[0], 1, MOST_POINTS) - SLACK
    points = (
        Point(-float(thresholds[at]), float(coverage[at]), float(accuracy[at])) for at in _first(coverage, wanted)
    )
    rarer = min(len(np.unique(units.group[kind])) for kind in (right, ~right))
    few = too_few(LEAST_LEFT_OUT, rarer, " with right answers, and with wrong ones")
    area = Figure(value, reason=few) if rarer < LEAST_LEFT_OUT else skewed(value, influence, units, 1.0)
    return RiskCoverage(area, tuple(points))


def precision_threshold(units: ScoredUnits, wish: float, label: int | None = None) -> Threshold:
    """The lowest threshold whose selected answers are right as often as wished, shown with 95% confidence.

    wish: the precision; ValueError unless it lies between 0 and 1.
    label: the place of the label whose score selects units; ValueError if there is none such. By default the highest
    score selects them, and an answer is right if its label is the true one.

    Thresholds are tested from the highest down, each with the exact binomial (Clopper-Pearson) bound, until one fails:
    fixed sequence testing (Angelopoulos et al. 2021, Learn then Test, algorithm 1). A few units can
    show nothing, and one error among the highest scores would end everything; so several chains of tests start
    at fixed numbers of selected units and share the error of 5% equally. What is tested depends on scores and weights
    alone. So a threshold chosen in this way reaches the wish in 95% of samples, though the same sample chose it.

    With unequal weights or groups the bound is that of effective counts (`proportion`), which is not exact.
    """
    if not 0 < wish < 1:
        raise ValueError(f"A wished precision lies between 0 and 1; {wish} does not.")
    if label is not None and not 0 <= label < units.scores.shape[1]:
        raise ValueError(f"There is no label {label}; labels are 0 to {units.scores.shape[1] - 1}.")
    if not units.groups:
        return Threshold(None, reason=NO_UNITS)
    scores, hits = (units.confidence, units.right) if label is None else (units.scores[:, label], units.truth == label)
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.append(np.diff(scores[order]) < 0, True))  # of the units with each score
    sums, squares = units.weights[order].cumsum()[last], (units.weights[order] ** 2).cumsum()[last]
    # How many independent units are selected, as far as weights and groups show.
    counts = np.maximum.accumulate(sums**2 / squares) * (units.groups / len(order))
    chains = 1 + int(max(0.0, log(counts[-1] / _least(wish, ERROR), START)))
    error, least = ERROR / chains, _least(wish, ERROR / chains)
    if counts[-1] < least:
        few = f"Even without an error, {least:,} independent units are needed; there are {int(counts[-1]):,}."
        return Threshold(None, reason=few)
    tested = _first(counts, np.append(_powers(least, STEP, counts[-1]), counts[-1]))
    if units.groups == len(order):  # sums of all units before give each bound without another pass
        sums_of_hits = [(units.weights[order] ** power * hits[order]).cumsum()[last] for power in (0, 1, 2)]
        bounds = [
            of_sums(
                int(last[at]) + 1,
                (float(sums[at]), float(squares[at])),
                [float(each[at]) for each in sums_of_hits],
                partial(_ends, error=error),
                is_plain=units.is_plain,
            )
            for at in tested
        ]
    else:
        bounds = [_bounded(order[: last[at] + 1], hits, units, error) for at in tested]
    failed = np.array([bound.low is None or bound.low < wish for bound in bounds] + [True])
    starts = np.searchsorted(counts[tested], _powers(least, START, counts[-1])[:chains])
    best = max((start + int(failed[start:].argmax()) for start in starts if not failed[start]), default=0) - 1
    if best < 0:
        return Threshold(None, reason=_missed(bounds))
    rows = order[: last[tested[best]] + 1]
    found = float(units.weights[rows] @ hits[rows])
    all_there = float(units.weights.sum())
    return Threshold(
        float(scores[rows[-1]]),
        bounds[best],
        found / (all_there if label is None else float(units.weights @ hits)),
        float(units.weights[rows].sum()) / all_there,
    )


def _least(wish: float, error: float) -> int:
    """The fewest units that show the wish if all are hits."""
    return ceil(log(error) / log(wish))


def _powers(first: float, step: float, most: float) -> Floats:
    """first * step**i, as far as it is not more than most."""
    found: Floats = first * step ** np.arange(1 + int(log(most / first, step)), dtype=np.float64)
    return found


def _first(ascending: Floats, wanted: Floats) -> Ints:
    """The places of the first values that are as high as each that is wanted, each place once."""
    return np.unique(np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1))


def _bounded(rows: Ints, hits: Bools, units: ScoredUnits, error: float) -> Figure:
    """The proportion of hits with a lower bound that fails as often as `error`, and an upper one as in an interval."""
    return proportion(hits[rows], units.only(rows), partial(_ends, error=error))


def _ends(found: float, of: float, error: float) -> tuple[float, float]:
    low = float(scipy.special.betaincinv(found, of - found + 1, error)) if found > 0 else 0.0
    high = float(scipy.special.betaincinv(found + 1, of - found, (1 + LEVEL) / 2)) if found < of else 1.0
    return low, high


def _missed(bounds: list[Figure]) -> str:
    lows = [bound.low for bound in bounds if bound.low is not None]
    if not lows:
        return bounds[-1].reason
    return f"The lower bound of precision reaches {max(lows):.1%} at most."
