"""Report rows (measure, slice, estimate, interval, note) for one system or for a comparison of two systems."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import log, sqrt
from typing import Any

import numpy as np
import scipy

from annotate.core.estimation.differences import Difference, holm, mcnemar
from annotate.core.estimation.proportions import LEVEL, SLACK, Estimate, Z, jeffreys
from annotate.core.estimation.resampling import LEAST_UNITS
from annotate.core.measures import classification as classes
from annotate.core.measures.classification import Measure, Paired

Row = dict[str, Any]
NO_UNITS, FEW, ALIKE = "no item", "too few items for an interval", "no variation among the items"
LOSSES = ("mae", "log_loss", "brier")  # measures where smaller is better


def row(measure: str, of: Mapping[str, str], figure: Any, units: float | None, note: str = "") -> Row:
    """Build the row for a figure.

    measure: name of the measure.
    of: the slice, as values of its dimensions, such as `label` or `language`. Empty for all units.
    figure: an Estimate, a Difference or another object with value, low and high, or a number without an interval. None
        if the figure is withheld; the row then needs a note.
    units: number of units. None for a mean of figures; the note then states the number of figures.
    note: explanation; by default, the figure's `reason`, or why there is no interval.
    """
    is_plain = figure is None or isinstance(figure, int | float)
    value, low, high = (figure, None, None) if is_plain else (figure.value, figure.low, figure.high)
    note = note or getattr(figure, "reason", "")
    if not is_plain and (low is None or not getattr(figure, "has_interval", True)):
        low = high = None
        note = note or (FEW if value is not None else NO_UNITS)
    count = figure.count if isinstance(figure, Estimate) else None
    return {
        "measure": measure, "of": dict(of), "value": value, "low": low, "high": high,
        "units": units, "count": count, "note": note,
    }  # fmt: skip


def difference_row(
    measure: str, of: Mapping[str, str], difference: Difference | None, units: float | None, note: str, p: float | None
) -> Row:
    """Build the row for a comparison; see `row`.

    p: p-value of the hypothesis that both systems have the same score; None if there is no test.
    """
    return row(measure, of, difference, units, note) | {"better": better(measure, difference), "p": p, "p_holm": None}


def better(measure: str, difference: Difference | None) -> str | None:
    """Return which system is better, `first` or `second`, or None if the interval includes zero."""
    greater = difference.better if difference else None
    if greater and measure in LOSSES:
        return "second" if greater == "first" else "first"
    return greater


def of_compared(rows: Iterable[Row], compared: Collection[Row]) -> list[Row]:
    """Return the system's rows whose measure and slice also occur in the comparison."""
    keys = {(figure["measure"], *figure["of"].items()) for figure in compared}
    return [figure for figure in rows if (figure["measure"], *figure["of"].items()) in keys]


def add_holm_p_values(rows: list[Row]) -> list[Row]:
    """Add Holm-adjusted p-values to the rows."""
    tested = [figure for figure in rows if figure["p"] is not None]
    for figure, p_holm in zip(tested, holm([figure["p"] for figure in tested]), strict=True):
        figure["p_holm"] = p_holm
    return rows


def compare_accuracy(of: Mapping[str, str], first: Paired, second: Paired) -> Row:
    """Compare the accuracy of two systems on the same units.

    For a simple random sample, the p-value is that of McNemar's exact test.
    """
    [(difference, p)] = classes.compare(first, second, classes.accuracy)
    if first.is_plain:
        only_one_right = [int((one.right & ~other.right).sum()) for one, other in ((first, second), (second, first))]
        p = mcnemar(*only_one_right)
    return difference_row(
        "accuracy", of, difference, len(first.gold), why_withheld(difference, len(first.gold), first), p
    )


def compare_measures(
    first: Paired,
    second: Paired,
    measures: Mapping[str, Measure],
    others: Mapping[str, Measure] | None = None,
    *,
    most: float = 1.0,
) -> Iterator[Row]:
    """Compare two systems in several measures over all units.

    measures: the measures, by name.
    others: the second system's measures, if their functions differ.
    most: largest possible difference.
    """

    def all_of(functions: Mapping[str, Measure]) -> Measure:
        return lambda of: np.stack([np.asarray(function(of)) for function in functions.values()], axis=-1)

    units, ends = len(first.gold), [most] * len(measures)
    results = classes.compare(first, second, all_of(measures), all_of(others or measures), most=ends)
    for name, (difference, p) in zip(measures, results, strict=True):
        yield difference_row(name, {}, difference, units, why_withheld(difference, units, first), p)


def why_withheld(difference: Difference | None, units: int, pairs: Paired) -> str:
    """Return why a figure has no interval, or why a comparison has no result; "" if nothing is missing.

    units: number of units in the figure.
    pairs: all units, with their groups.
    """
    if units < LEAST_UNITS:
        return f"fewer than {LEAST_UNITS} items"
    if pairs.groups is not None and len(np.unique(pairs.groups)) < LEAST_UNITS:
        return f"fewer than {LEAST_UNITS} groups of items"
    return "" if difference and difference.has_interval else ALIKE


def mean_of_rows(rows: Sequence[Row]) -> Difference | None:
    """Return the unweighted mean of the figures in the rows. The figures must be independent.

    MOVER combines their intervals (Zou and Donner 2008, Statistics in Medicine 27(10)). There is no interval if any of
    the figures has none. Return None if no row has a value.
    """
    figures = [figure for figure in rows if figure["value"] is not None]
    if not figures:
        return None
    value = sum(figure["value"] for figure in figures) / len(figures)
    if any(figure["low"] is None for figure in figures):
        return Difference(value, -1.0, 1.0)
    down, up = (
        sqrt(sum((figure["value"] - figure[end]) ** 2 for figure in figures)) / len(figures) for end in ("low", "high")
    )
    return Difference(value, value - down, value + up)


# --- Confidence sequences: intervals that are valid at every look.
#
# A manager may monitor an interval during annotation, and stop once it is narrow enough. A confidence sequence keeps
# its 95% coverage under such optional stopping. An ordinary interval doesn't.


TUNED = 100  # sample size at which the interval of a difference is tightest
OF_MEANS = 1_000  # sample size assumed for a mean of figures, whose row has no number of units
_LOG_ERROR = -log(1 - LEVEL)
# The mixture variance that minimizes the width at TUNED units.
_RHO = (2 * _LOG_ERROR + log(2 * _LOG_ERROR + 1)) / TUNED
STEPS = 60  # bisection steps, enough for float precision


def share_at_every_look(hits: float, of: float) -> tuple[float, float]:
    """Return the ends of a confidence sequence for a share: intervals valid at all sample sizes simultaneously.

    The interval contains every share under which the data are at least 5% as likely as under the Beta(1/2, 1/2)
    mixture. By Ville's inequality, the probability that it ever excludes the true share is at most 5% (Robbins 1970,
    Statistical methods related to the law of the iterated logarithm, Annals of Mathematical Statistics 41(5); for the
    betting form, Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting, JRSS B 86(1)).

    hits: number of hits; may be fractional.
    of: number of observations; with 0 the interval is (0, 1).
    """
    if of == 0:
        return 0.0, 1.0
    value = hits / of
    least = float(scipy.special.betaln(hits + 0.5, of - hits + 0.5) - scipy.special.betaln(0.5, 0.5)) - _LOG_ERROR

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
    """Return the half-width, in standard errors, of a confidence sequence for a mean.

    This is the normal mixture of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, Time-uniform central limit
    theory and asymptotic confidence sequences, Annals of Statistics 52(6), equation 5.

    units: current sample size.
    """
    spread = units * _RHO
    return sqrt((1 + 1 / spread) * (log(1 + spread) + 2 * _LOG_ERROR))


def at_every_look(row: Mapping[str, Any]) -> dict[str, Any]:
    """Replace a report row's interval with one that is valid at every look.

    For a share, each side of the interval is widened in the same ratio as for a simple random sample of the same
    effective size. For other figures, the standard error is computed from the interval. One unit is then added on each
    side, because few units show too little variation. P-values are removed, because they are only valid for a single
    look.

    Return the row unchanged if it has no interval.
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
    adjusted = {**row, "low": low, "high": high}
    if "better" in row:
        adjusted |= {"better": better(row["measure"], Difference(value, low, high)), "p": None, "p_holm": None}
    return adjusted
