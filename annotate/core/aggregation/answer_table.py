"""Answers as arrays, the input of coefficients.py and annotator_models.py."""

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
    """Which annotator gave which answer to which unit.

    An annotator may have several answers on a unit; all of them count.

    units, annotators, labels: the U units, A annotators and K labels.
    unit, annotator, label: indices into these, one per answer, (answers,).
    """

    units: tuple[Hashable, ...]
    annotators: tuple[Hashable, ...]
    labels: tuple[str, ...]
    unit: Ints
    annotator: Ints
    label: Ints

    def counts(self) -> Ints:
        """Return the number of answers by unit and label, (U, K)."""
        size = len(self.units), len(self.labels)
        return np.bincount(self.unit * size[1] + self.label, minlength=size[0] * size[1]).reshape(size)


def tabulate(rows: Iterable[tuple[Hashable, Hashable, str]], labels: Sequence[str]) -> Answers:
    """Build Answers from rows, with units and annotators in order of first appearance.

    rows: (unit, annotator, label) for each answer.
    labels: all labels; grades in their order.

    Raises ValueError for an answer that is not a label.
    """
    place = {label: number for number, label in enumerate(labels)}
    units: dict[Hashable, int] = {}
    annotators: dict[Hashable, int] = {}
    numbers = array("q")  # a list would take ten times the memory
    for unit, annotator, label in rows:
        if label not in place:
            raise ValueError(f"{label!r} is not one of the labels {', '.join(labels)}.")
        numbers.append(units.setdefault(unit, len(units)))
        numbers.append(annotators.setdefault(annotator, len(annotators)))
        numbers.append(place[label])
    table = np.array(numbers, dtype=np.int64).reshape(-1, 3)
    return Answers(tuple(units), tuple(annotators), tuple(labels), table[:, 0], table[:, 1], table[:, 2])


def winners(weights: Ints | Floats) -> Bools:
    """Return which labels have the largest weight on each unit, (U, K); several if they tie.

    weights: votes or posterior by unit and label, (U, K).
    """
    if not weights.size:
        return np.zeros(weights.shape, dtype=np.bool_)
    best: Bools = weights >= weights.max(axis=1, keepdims=True) - SLACK
    return best


def credit(weights: Ints | Floats, truth: Ints) -> Floats:
    """Return the credit for each unit, (U,): 1 if the true label wins, 1/t if it ties with t - 1 others, otherwise 0.

    This is the expected accuracy if ties are broken at random.

    weights: votes or posterior by unit and label, (U, K).
    truth: index of the true label of each unit, (U,).
    """
    won = winners(weights)
    right: Floats = won[np.arange(len(truth)), truth] / won.sum(axis=1)
    return right
