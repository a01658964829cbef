"""Several people's answers as a table of counts, the input of coefficients.py and annotator_models.py."""

from array import array
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from annotate.core.estimation.proportions import SLACK

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """The answers: who gave which answer on which unit.

    unit, annotator, label: one number an answer, shape (answers,), the place in units (U), annotators (A), labels (K).
    An annotator may have answered a unit more than once: every one of their answers is counted.
    """

    units: tuple[Hashable, ...]
    annotators: tuple[Hashable, ...]
    labels: tuple[str, ...]
    unit: Ints
    annotator: Ints
    label: Ints

    def counts(self) -> Ints:
        """How many answers each unit has with each label, shape (U, K)."""
        size = len(self.units), len(self.labels)
        return np.bincount(self.unit * size[1] + self.label, minlength=size[0] * size[1]).reshape(size)


def tabulate(rows: Iterable[tuple[Hashable, Hashable, str]], labels: Sequence[str]) -> Answers:
    """Answers from (unit, annotator, label), units and annotators in the order in which they come first.

    labels: every label there is, grades in their order. ValueError for an answer that is not one of them.
    """
    place = {label: number for number, label in enumerate(labels)}
    units: dict[Hashable, int] = {}
    annotators: dict[Hashable, int] = {}
    numbers = array("q")  # of millions of answers a list would take ten times the memory
    for unit, annotator, label in rows:
        if label not in place:
            raise ValueError(f"{label!r} is not one of the labels {', '.join(labels)}.")
        numbers.append(units.setdefault(unit, len(units)))
        numbers.append(annotators.setdefault(annotator, len(annotators)))
        numbers.append(place[label])
    table = np.array(numbers, dtype=np.int64).reshape(-1, 3)
    return Answers(tuple(units), tuple(annotators), tuple(labels), table[:, 0], table[:, 1], table[:, 2])


def winners(weights: Ints | Floats) -> Bools:
    """Which labels have the most of a unit's weight (votes, or a posterior), shape (U, K): several where they tie."""
    if not weights.size:
        return np.zeros(weights.shape, dtype=np.bool_)
    best: Bools = weights >= weights.max(axis=1, keepdims=True) - SLACK
    return best


def credit(weights: Ints | Floats, truth: Ints) -> Floats:
    """How right each unit's weights are, shape (U,): 1 where the true label wins, 1/t where it ties with t - 1 others.

    truth: the place of each unit's true label. This is the expected accuracy where ties are broken by a fair lot.
    """
    won = winners(weights)
    right: Floats = won[np.arange(len(truth)), truth] / won.sum(axis=1)
    return right
