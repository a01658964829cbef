"""Figures as rows (measure, slice, estimate, interval, note), of one system or of two that are compared."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from annotate.core import classification as classes
from annotate.core.classification import Measure, Paired
from annotate.core.comparing import Difference, holm, mcnemar
from annotate.core.estimation import Estimate
from annotate.core.resampling import LEAST_UNITS

if TYPE_CHECKING:
    from annotate.core.bleu import Generated
    from annotate.core.ranking import Ranked

Row = dict[str, Any]
NO_UNITS, FEW = "no unit", "too few units for an interval"


def row(measure: str, of: Mapping[str, str], found: Any, units: float | None, note: str = "") -> Row:
    """A figure. of: dimension, such as `label` or `language` -> its value; empty for all units. found: an Estimate or
    a Difference, None where it is withheld, which needs a note. units: on how many it rests;
    None of a mean of figures, whose note says of how many."""
    value, low, high = (None, None, None) if found is None else (found.value, found.low, found.high)
    if found is not None and not found.has_interval:
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
    return row(measure, of, found, units, note) | {"better": found.better if found else None, "p": p, "p_holm": None}


def holm_corrected(rows: list[Row]) -> list[Row]:
    """The rows, with Holm's correction of their p-values."""
    tested = [each for each in rows if each["p"] is not None]
    for each, p_holm in zip(tested, holm([each["p"] for each in tested]), strict=True):
        each["p_holm"] = p_holm
    return rows


def apart(measure: str, of: Mapping[str, str], first: Paired, second: Paired, function: Measure) -> Row:
    """How far two systems are apart in a measure on the same units; p of accuracy is McNemar's on a plain sample."""
    found, p = classes.apart(first, second, function)
    if measure == "accuracy" and first.is_plain:
        alone = [int((one.right & ~other.right).sum()) for one, other in ((first, second), (second, first))]
        p = mcnemar(*alone)
    return difference_row(measure, of, found, len(first.gold), "" if found else f"fewer than {LEAST_UNITS} units", p)


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
