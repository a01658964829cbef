"""Rows of a report (measure, slice, estimate, interval, note) for one system, or for the comparison of two."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from annotate.core.estimation.comparisons import Difference, holm, mcnemar
from annotate.core.estimation.proportions import Estimate
from annotate.core.estimation.resampling import LEAST_UNITS
from annotate.core.measures import classification as classes
from annotate.core.measures.classification import Measure, Paired

if TYPE_CHECKING:
    from annotate.core.measures.bleu import Generated
    from annotate.core.measures.ndcg import Ranked

Row = dict[str, Any]
NO_UNITS, FEW, ALIKE = "no unit", "too few units for an interval", "no variation among the units"
LOSSES = ("mae", "log_loss", "brier")  # measures where smaller is better


def row(measure: str, of: Mapping[str, str], found: Any, units: float | None, note: str = "") -> Row:
    """Build the row of a figure.

    measure: name of the measure.
    of: value of each dimension of the slice, such as `label` or `language`; empty for all units.
    found: an Estimate, a Difference or a number without interval; None for a withheld figure, which needs a note.
    units: number of units; None for a mean of figures, whose note gives their number.
    note: explanation, by default the reason for a missing interval.
    """
    is_plain = found is None or isinstance(found, int | float)
    value, low, high = (found, None, None) if is_plain else (found.value, found.low, found.high)
    if not is_plain and not found.has_interval:
        low = high = None
        note = note or (FEW if value is not None else NO_UNITS)
    count = found.count if isinstance(found, Estimate) else None
    return {
        "measure": measure, "of": dict(of), "value": value, "low": low, "high": high,
        "units": units, "count": count, "note": note,
    }  # fmt: skip


def difference_row(
    measure: str, of: Mapping[str, str], found: Difference | None, units: float | None, note: str, p: float | None
) -> Row:
    """Build the row of a comparison; see `row`.

    p: p-value of the test that both systems score the same; None without a test.
    """
    return row(measure, of, found, units, note) | {"better": better(measure, found), "p": p, "p_holm": None}


def better(measure: str, found: Difference | None) -> str | None:
    """Return which of two systems is better, `first` or `second`, or None if the interval includes zero."""
    greater = found.better if found else None
    if greater and measure in LOSSES:
        return "second" if greater == "first" else "first"
    return greater


def of_compared(rows: Iterable[Row], compared: Collection[Row]) -> list[Row]:
    """Return the rows of a system with the same measure and slice as a row of the comparison."""
    keys = {(each["measure"], *each["of"].items()) for each in compared}
    return [each for each in rows if (each["measure"], *each["of"].items()) in keys]


def holm_corrected(rows: list[Row]) -> list[Row]:
    """Add Holm-adjusted p-values to the rows."""
    tested = [each for each in rows if each["p"] is not None]
    for each, p_holm in zip(tested, holm([each["p"] for each in tested]), strict=True):
        each["p_holm"] = p_holm
    return rows


def accuracy_apart(of: Mapping[str, str], first: Paired, second: Paired) -> Row:
    """Compare the accuracy of two systems on the same units. On a simple random sample, p is McNemar's."""
    [(found, p)] = classes.apart(first, second, classes.accuracy)
    if first.is_plain:
        alone = [int((one.right & ~other.right).sum()) for one, other in ((first, second), (second, first))]
        p = mcnemar(*alone)
    return difference_row("accuracy", of, found, len(first.gold), why_withheld(found, len(first.gold), first), p)


def measures_apart(
    first: Paired,
    second: Paired,
    measures: Mapping[str, Measure],
    others: Mapping[str, Measure] | None = None,
    *,
    most: float = 1.0,
) -> Iterator[Row]:
    """Compare two systems in several measures over all units.

    measures: the measures by name.
    others: the measures of the second system, if they are different functions.
    most: largest possible difference.
    """

    def all_of(functions: Mapping[str, Measure]) -> Measure:
        return lambda of: np.stack([np.asarray(each(of)) for each in functions.values()], axis=-1)

    units, ends = len(first.gold), [most] * len(measures)
    found = classes.apart(first, second, all_of(measures), all_of(others or measures), most=ends)
    for name, (difference, p) in zip(measures, found, strict=True):
        yield difference_row(name, {}, difference, units, why_withheld(difference, units, first), p)


def why_withheld(found: Difference | None, units: int, pairs: Paired) -> str:
    """Return why a figure has no interval, or two systems are not compared; empty if neither is the case.

    units: number of units of the figure.
    pairs: all units.
    """
    if units < LEAST_UNITS:
        return f"fewer than {LEAST_UNITS} units"
    if pairs.groups is not None and len(np.unique(pairs.groups)) < LEAST_UNITS:
        return f"fewer than {LEAST_UNITS} groups of units"
    return "" if found and found.has_interval else ALIKE


def averaged(rows: Sequence[Row]) -> Difference | None:
    """Return the unweighted mean of the figures in some rows, which must be independent.

    MOVER combines the intervals (Zou and Donner 2008, Statistics in Medicine 27(10)). There is no interval if any
    figure has none. Returns None if no row has a value.
    """
    known = [each for each in rows if each["value"] is not None]
    if not known:
        return None
    value = sum(each["value"] for each in known) / len(known)
    if any(each["low"] is None for each in known):
        return Difference(value, -1.0, 1.0)
    down, up = (sqrt(sum((each["value"] - each[end]) ** 2 for each in known)) / len(known) for end in ("low", "high"))
    return Difference(value, value - down, value + up)


def resampled(found: "Ranked | Generated") -> Difference | None:
    """Convert a figure with a bootstrap interval for use in `row`."""
    if found.value is None:
        return None
    low, high = (-1.0, 1.0) if found.low is None or found.high is None else (found.low, found.high)
    return Difference(found.value, low, high)
