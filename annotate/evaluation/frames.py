"""Recall on a recall-oriented set, and on both kinds of sets together."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from annotate.core.comparing import difference
from annotate.core.estimation import UNKNOWN, Estimate, moved, with_interval
from annotate.core.false_yes import in_recall
from annotate.evaluation.uniform import Measured, Uniform, counted, share, together


def recall_in(found: Mapping[str, str], label: str, false_yes: float = 0.0) -> Measured:
    """Recall on a recall set's posts in one language. false_yes: of these, the share that may be in another one."""
    plain = counted(sum(said == label for said in found.values()), len(found))
    return Measured(in_recall(plain.estimate, false_yes), plain.posts)


class TwoFrames(NamedTuple):
    """part: of a language's posts, that within the reach of a recall-oriented draw. inside: recall there on the uniform
    set, without posts of the recall-oriented one; outside: elsewhere. p: of the test whether both sets have the same
    recall within the reach. estimate: of all posts of the language."""

    part: Measured
    inside: Measured
    outside: Measured
    p: float
    estimate: Estimate

    @property
    def differ(self) -> bool:
        return self.p < DIFFER


DIFFER = 0.01  # the sets differ where the test has a smaller p


def two_frames(
    label: str, uniform: Uniform, found: Mapping[str, str], reached: Collection[str], false_yes: float = 0.0
) -> TwoFrames:
    parted = uniform.with_each(lambda key, cell: cell._replace(other="inside" if key in reached else "outside"))

    def within(place: str, apart: Collection[str] = ()) -> Measured:
        is_there = lambda cell: cell.truth == label and cell.other == place  # noqa: E731
        return share(parted, is_there, lambda cell: cell.said == label, apart, (label,))

    part = share(parted, lambda cell: cell.truth == label, lambda cell: cell.other == "inside", (), (label,))
    here, inside, outside = recall_in(found, label, false_yes), within("inside", found), within("outside")
    p = difference(here.estimate, inside.estimate)
    in_reach = here.estimate if false_yes else together(here, inside).estimate
    estimate = _of_two_frames(part.estimate, in_reach, outside.estimate)
    return TwoFrames(part, inside, outside, p, estimate)


def _of_two_frames(part: Estimate, inside: Estimate, outside: Estimate) -> Estimate:
    """Where nothing is known of the posts outside, their recall is anything, and the value takes that inside for it."""
    if part.value is None or inside.value is None:
        return inside if part.value is None else UNKNOWN
    is_known = outside.value is not None
    elsewhere = outside.value if outside.value is not None else inside.value

    def joined(reached: float, inner: float, outer: float) -> float:
        return reached * inner + (1 - reached) * outer

    value = joined(part.value, inside.value, elsewhere)
    ends = [
        (joined(part.value, inside.low, elsewhere), joined(part.value, inside.high, elsewhere)),
        (joined(part.value, inside.value, outside.low), joined(part.value, inside.value, outside.high)),
    ]
    lowest, highest = (elsewhere, elsewhere) if is_known else (0.0, 1.0)
    by_part = [joined(reached, inside.value, outer) for reached in (part.low, part.high) for outer in (lowest, highest)]
    low, high = moved(value, [*ends, (min(by_part), max(by_part))])
    return with_interval(value, low, high, inside.count + outside.count)
