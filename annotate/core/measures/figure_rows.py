"""Figures as rows (measure, slice, estimate, interval, note), of one system or of two that are compared."""

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
LOSSES = ("mae", "log_loss", "brier")  # measures in which the system with the smaller figure is better


def row(measure: str, of: Mapping[str, str], found: Any, units: float | None, note: str = "") -> Row:
    """A figure. of: dimension, such as `label` or `language` -> its value; empty for all units. found: an Estimate, a
    Difference or a plain number, which has no interval; None where it is withheld, which needs a note. units: on how
    many it rests; None of a mean of figures, whose note says of how many."""
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
    """A row of a comparison, as `row` has it; p: of the test that both systems reach the same, None without one."""
    return row(measure, of, found, units, note) | {"better": better(measure, found), "p": p, "p_holm": None}


def better(measure: str, found: Difference | None) -> str | None:
    """Which of two systems is better by a difference, `first` or `second`; None where its interval does not say."""
    greater = found.better if found else None
    if greater and measure in LOSSES:
        return "second" if greater == "first" else "first"
    return greater


def of_compared(rows: Iterable[Row], compared: Collection[Row]) -> list[Row]:
    """The rows of a system that stand beside those of a comparison: of the same measures and slices."""
    keys = {(each["measure"], *each["of"].items()) for each in compared}
    return [each for each in rows if (each["measure"], *each["of"].items()) in keys]


def holm_corrected(rows: list[Row]) -> list[Row]:
    """The rows, with Holm's correction of their p-values."""
    tested = [each for each in rows if each["p"] is not None]
    for each, p_holm in zip(tested, holm([each["p"] for each in tested]), strict=True):
        each["p_holm"] = p_holm
    return rows


def accuracy_apart(of: Mapping[str, str], first: Paired, second: Paired) -> Row:
    """How far two systems are apart in accuracy on the same units; p is McNemar's on a plain sample."""
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
    """How far two systems are apart in measures of all units. others: the measures of the second, where they are other
    functions. most: how far apart they can be."""

    def all_of(functions: Mapping[str, Measure]) -> Measure:
        return lambda of: np.stack([np.asarray(each(of)) for each in functions.values()], axis=-1)

    units, ends = len(first.gold), [most] * len(measures)
    found = classes.apart(first, second, all_of(measures), all_of(others or measures), most=ends)
    for name, (difference, p) in zip(measures, found, strict=True):
        yield difference_row(name, {}, difference, units, why_withheld(difference, units, first), p)


def why_withheld(found: Difference | None, units: int, pairs: Paired) -> str:
    """Why a figure has no interval, or two systems are not compared in it; empty where that is not so. units: on which
    it rests. pairs: all units."""
    if units < LEAST_UNITS:
        return f"fewer than {LEAST_UNITS} units"
    if pairs.groups is not None and len(np.unique(pairs.groups)) < LEAST_UNITS:
        return f"fewer than {LEAST_UNITS} groups of units"
    return "" if found and found.has_interval else ALIKE


def averaged(rows: Sequence[Row]) -> Difference | None:
    """The plain mean of figures of different units, each with its own interval, or of differences; None of none.

    The interval keeps the distances of each figure from its own bounds (MOVER: Zou and Donner 2008, Statistics in
    Medicine 27(10)); there is none where a figure has none."""
    known = [each for each in rows if each["value"] is not None]
    if not known:
        return None
    value = sum(each["value"] for each in known) / len(known)
    if any(each["low"] is None for each in known):
        return Difference(value, -1.0, 1.0)
    down, up = (sqrt(sum((each["value"] - each[end]) ** 2 for each in known)) / len(known) for end in ("low", "high"))
    return Difference(value, value - down, value + up)


def resampled(found: "Ranked | Generated") -> Difference | None:
    """A figure with a bootstrap interval, if it has one, as `row` takes it."""
    if found.value is None:
        return None
    low, high = (-1.0, 1.0) if found.low is None or found.high is None else (found.low, found.high)
    return Difference(found.value, low, high)
