"""Answers as arrays of indices, and the rules that aggregate a unit's answers into its label."""

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from annotate.core.estimation.proportions import SLACK

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """All annotators' answers, as arrays of indices.

    An annotator can have several answers on a unit. All of them count.

    units, annotators, labels: the U units, A annotators and K labels.
    unit, annotator, label: for each answer, its index in `units`, `annotators` and `labels`, (answers,).
    """

    units: tuple[Any, ...]
    annotators: tuple[Any, ...]
    labels: tuple[str, ...]
    unit: Ints
    annotator: Ints
    label: Ints

    def counts(self) -> Ints:
        """Return the number of answers by unit and label, (U, K)."""
        size = len(self.units), len(self.labels)
        return np.bincount(self.unit * size[1] + self.label, minlength=size[0] * size[1]).reshape(size)


def tabulate(rows: Iterable[tuple[Hashable, Hashable, str]], labels: Sequence[str]) -> Answers:
    """Build Answers from rows. Units and annotators are in order of first appearance.

    rows: (unit, annotator, label) tuples, one for each answer.
    labels: all possible labels. Grades must be in order.

    Raise ValueError for an answer that is not a label.
    """
    place = {label: number for number, label in enumerate(labels)}
    units: dict[Hashable, int] = {}
    annotators: dict[Hashable, int] = {}
    numbers = array("q")  # a list would need ten times the memory
    for unit, annotator, label in rows:
        if label not in place:
            raise ValueError(f"{label!r} is not one of the labels {', '.join(labels)}.")
        numbers.append(units.setdefault(unit, len(units)))
        numbers.append(annotators.setdefault(annotator, len(annotators)))
        numbers.append(place[label])
    table = np.array(numbers, dtype=np.int64).reshape(-1, 3)
    return Answers(tuple(units), tuple(annotators), tuple(labels), table[:, 0], table[:, 1], table[:, 2])


def winners(weights: Ints | Floats) -> Bools:
    """Return whether each label has the largest weight on each unit, (U, K). If labels tie, all of them win.

    weights: number of votes, or posterior probability, by unit and label, (U, K).
    """
    if not weights.size:
        return np.zeros(weights.shape, dtype=np.bool_)
    best: Bools = weights >= weights.max(axis=1, keepdims=True) - SLACK
    return best


def credit(weights: Ints | Floats, truth: Ints) -> Floats:
    """Return the credit for each unit, (U,): 1 if the true label wins, 1/t if it ties with t - 1 others, otherwise 0.

    This is the expected accuracy if ties are broken at random.

    weights: number of votes, or posterior probability, by unit and label, (U, K).
    truth: index of the true label of each unit, (U,).
    """
    won = winners(weights)
    right: Floats = won[np.arange(len(truth)), truth] / won.sum(axis=1)
    return right


# --- Rules that decide a unit's label, or decide how many more answers it needs.


def needed(people: int) -> int:
    """Return how many of `people` annotators must agree: the smallest number that is more than half."""
    return people // 2 + 1


def majority(answers: Sequence[str], order: Sequence[str] = (), people: int = 0) -> str | None:
    """Return the answer given by more than half of the annotators, or None.

    If one annotator was asked, their answer is the label. If three were asked, two must agree ("We only keep the
    samples with two or three labeler have same label", XGLUE, Liang et al. 2020). If all three differed and more
    annotators were asked, two equal answers still suffice, unless as many annotators agree on another answer.

    answers: one label per annotator, in any order.
    order: not used; accepted because all rules take the order of the grades.
    people: number of annotators originally asked; by default, the number of answers.
    """
    counts = Counter(answers).most_common(2)
    if not counts:
        return None
    label, count = counts[0]
    tied = len(counts) > 1 and counts[1][1] == count
    return label if not tied and 2 * count > (people or len(answers)) else None


def median(answers: Sequence[str], order: Sequence[str] = (), people: int = 0) -> str | None:
    """Return the median grade, or None if there are no answers.

    If the number of answers is even, the result is the worse of the two middle grades.

    order: all grades, best first.

    Raise ValueError for an answer that is not a grade.
    """
    places = sorted(order.index(answer) for answer in answers)
    return order[places[len(places) // 2]] if places else None


Aggregation = Callable[[Sequence[str], Sequence[str], int], str | None]


def at_first(people: int, *, stop_early: bool) -> int:
    """Return how many annotators to ask first.

    people: maximum number of annotators to ask.
    stop_early: whether to ask only the smallest number of annotators who can decide the unit.
    """
    return needed(people) if stop_early else people


def outcome(answers: Sequence[str], *, aggregate: Aggregation, order: Sequence[str], people: int) -> str | int | None:
    """Return a unit's label, or how many answers it now needs in total. None means that its answers give no label.

    Call this once the unit has all the answers needed so far. If they don't decide the label and there are fewer than
    `people` answers, the unit needs one more.

    aggregate: rule that decides the label once there are `people` or more answers.
    order: all grades, best first.
    """
    number = len(answers)
    if number < people:
        return majority(answers, order, people) or number + 1
    return aggregate(answers, order, people)
