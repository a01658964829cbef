"""The label of a unit from its answers, or the number of further answers it needs."""

from collections import Counter
from collections.abc import Callable, Sequence


def needed(asked: int) -> int:
    """Return how many of `asked` people must agree: more than half."""
    return asked // 2 + 1


def majority(answers: Sequence[str], order: Sequence[str] = (), asked: int = 0) -> str | None:
    """Return the answer given by more than half of the people asked, or None.

    A single answer is its own majority. Of three answers, two must agree ("We only keep the samples with two or three
    labeler have same label", XGLUE, Liang et al. 2020). If more people were asked because all three differed, two still
    suffice, unless as many agree on another answer.

    answers: one label per annotator, in any order.
    order: order of the grades; unused.
    asked: number of people asked at first; the number of answers by default.
    """
    counts = Counter(answers).most_common(2)
    if not counts:
        return None
    label, count = counts[0]
    tied = len(counts) > 1 and counts[1][1] == count
    return label if not tied and count >= needed(asked or len(answers)) else None


def median(answers: Sequence[str], order: Sequence[str] = (), asked: int = 0) -> str | None:
    """Return the median grade, the worse of the two middle ones for an even number of answers; None without answers.

    order: all grades, best first.

    Raises ValueError for an answer that is not a grade.
    """
    places = sorted(order.index(answer) for answer in answers)
    return order[places[len(places) // 2]] if places else None


Aggregation = Callable[[Sequence[str], Sequence[str], int], str | None]


def at_first(asked: int, *, stop_early: bool) -> int:
    """Return how many people to ask at first: with stop_early, the smallest number that can decide the unit."""
    return needed(asked) if stop_early else asked


def outcome(answers: Sequence[str], *, aggregate: Aggregation, order: Sequence[str], asked: int) -> str | int | None:
    """Return the label of a unit, the new number of answers it needs, or None if it has no label.

    Call this once the unit has as many answers as it needs. If they do not decide it and fewer than `asked` people have
    answered, the new number is one more.
    """
    given = len(answers)
    if given < asked:
        return majority(answers, order, asked) or given + 1
    return aggregate(answers, order, asked)
