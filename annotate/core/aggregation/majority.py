"""From several people's answers on one unit to its label, or to how many more people must be asked."""

from collections import Counter
from collections.abc import Callable, Sequence


def needed(asked: int) -> int:
    """How many of `asked` people must agree: more than half of them, so two of three."""
    return asked // 2 + 1


def majority(answers: Sequence[str], order: Sequence[str] = (), asked: int = 0) -> str | None:
    """The answer that was given most often, by more than half of the people asked, or None.

    answers: one label per annotator, in any order. asked: how many people were asked at first; by default as many as
    answered. One answer is its own majority; of three, two must agree ("We only keep the samples with two or three
    labeler have same label", XGLUE, Liang et al. 2020). If others were asked because all three differed, two still
    suffice, unless as many agree on something else. `order`, the order of the grades, plays no part.
    """
    counts = Counter(answers).most_common(2)
    if not counts:
        return None
    label, count = counts[0]
    tied = len(counts) > 1 and counts[1][1] == count
    return label if not tied and count >= needed(asked or len(answers)) else None


def median(answers: Sequence[str], order: Sequence[str] = (), asked: int = 0) -> str | None:
    """The grade in the middle, the worse of the two middle grades if their number is even; None without answers.

    order: all grades, best first. ValueError for an answer that is not a grade.
    """
    places = sorted(order.index(answer) for answer in answers)
    return order[places[len(places) // 2]] if places else None


Aggregation = Callable[[Sequence[str], Sequence[str], int], str | None]


def at_first(asked: int, *, stop_early: bool) -> int:
    """How many people are asked at once: with stop_early, as many as can settle it if they agree."""
    return needed(asked) if stop_early else asked


def outcome(answers: Sequence[str], *, aggregate: Aggregation, order: Sequence[str], asked: int) -> str | int | None:
    """What a unit's answers come to, once as many as its redundancy are there.

    The label; or the new redundancy, one more, if the answers do not settle it and further people may be asked (up to
    `asked`); or None if they give no label.
    """
    given = len(answers)
    if given < asked:
        return majority(answers, order, asked) or given + 1
    return aggregate(answers, order, asked)
