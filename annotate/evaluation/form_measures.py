"""The measures of each form of answer, as rows (measure, slice, estimate, interval, note)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from annotate.core import classification as classes
from annotate.core.answers import Bools
from annotate.core.bleu import Generated
from annotate.core.classification import Measure, Paired
from annotate.core.comparing import Difference, holm, mcnemar
from annotate.core.estimation import Estimate
from annotate.core.ranking import Ranked, mean_ndcg
from annotate.core.resampling import LEAST_UNITS

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


class Choice:
    """One label out of several. Macro means are over the labels that occur, in gold or predicted; a label that is never
    predicted has the precision 0 there."""

    head = ("accuracy", "macro_f1", "kappa")

    def __init__(self, pairs: Paired, labels: Sequence[str]) -> None:
        self.pairs, self.labels = pairs, labels
        margins = pairs.margins
        self.occurring: Bools = (margins.gold + margins.said) > 0

    def rows(self) -> Iterator[Row]:
        pairs, units = self.pairs, len(self.pairs.gold)
        every = np.ones(units, dtype=np.bool_)
        yield row("accuracy", {}, pairs.share(pairs.right, every), units)
        for name, measure in self.macros.items():
            yield row(name, {}, pairs.estimate(measure, self.units_of_labels), units)
        yield self._coefficient("kappa", classes.kappa)
        yield self._coefficient("mcc", classes.matthews)
        for place, label in enumerate(self.labels):
            of, is_gold, is_said = {"label": label}, pairs.gold == place, pairs.said == place
            if self.occurring[place]:
                gold, said, either = (int(domain.sum()) for domain in (is_gold, is_said, is_gold | is_said))
                yield row("precision", of, pairs.share(is_gold, is_said), said, "" if said else "never predicted")
                yield row("recall", of, pairs.share(is_said, is_gold), gold, "" if gold else "never in gold")
                yield row("f1", of, pairs.estimate(self._f1_of(place), [either]), either)

    def _coefficient(self, name: str, measure: Measure) -> Row:
        found, units = self.pairs.coefficient(measure), len(self.pairs.gold)
        alike = units >= LEAST_UNITS and not found.has_interval
        return row(name, {}, found, units, "no variation among the units" if alike else "")

    @property
    def units_of_labels(self) -> list[int]:
        """How many units have each label that occurs, in gold or predicted."""
        gold, said = self.pairs.gold, self.pairs.said
        return [int(((gold == place) | (said == place)).sum()) for place in np.flatnonzero(self.occurring)]

    @property
    def macros(self) -> dict[str, Measure]:
        by_label = {"macro_precision": classes.precisions, "macro_recall": classes.recalls, "macro_f1": classes.f1s}
        return {name: classes.macro(measure, self.occurring) for name, measure in by_label.items()}

    @staticmethod
    def _f1_of(place: int) -> Measure:
        return lambda of: classes.f1s(of)[..., place]

    def sliced(self, of: Mapping[str, str], kept: Bools) -> Iterator[Row]:
        """The first measures of some of the units; macro F1 over the labels that occur there."""
        part = Choice(self.pairs.where(kept), self.labels)
        pairs, units = part.pairs, len(part.pairs.gold)
        yield row("accuracy", of, pairs.share(pairs.right, np.ones(units, dtype=np.bool_)), units)
        yield row("macro_f1", of, pairs.estimate(part.macros["macro_f1"], part.units_of_labels), units)

    def compared(self) -> dict[str, Measure]:
        """The measures in which two systems are compared."""
        return {"accuracy": classes.accuracy, **self.macros, "kappa": classes.kappa, "mcc": classes.matthews}


class Grades(Choice):
    """One of several grades, best first: numbers too, by which errors are far or near, and pages are ranked."""

    head = ("accuracy", "mae", "weighted_kappa")

    def rows(self) -> Iterator[Row]:
        yield from super().rows()
        pairs, units = self.pairs, len(self.pairs.gold)
        yield row("mae", {}, pairs.mean(np.abs(pairs.gold - pairs.said).astype(np.float64)), units)
        yield self._coefficient("weighted_kappa", classes.weighted_kappa)
        if pairs.groups is not None:
            grade = len(self.labels) - 1
            pages = sorted(zip(pairs.groups.tolist(), grade - pairs.gold, grade - pairs.said, strict=True))
            found = mean_ndcg(((str(group), float(true), float(said)) for group, true, said in pages), seed="ndcg")
            yield row("ndcg", {}, resampled(found), found.queries, "" if found.queries else "no group has two units")

    def compared(self) -> dict[str, Measure]:
        return super().compared() | {"weighted_kappa": classes.weighted_kappa}


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


def resampled(found: Ranked | Generated) -> Difference | None:
    """A figure with a bootstrap interval, if it has one, as `row` takes it."""
    if found.value is None:
        return None
    low, high = (-1.0, 1.0) if found.low is None or found.high is None else (found.low, found.high)
    return Difference(found.value, low, high)


FORMS: Mapping[str, Callable[[Paired, Sequence[str]], Choice]] = {"choice": Choice, "grades": Grades, "pair": Choice}
