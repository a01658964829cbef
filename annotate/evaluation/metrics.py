"""Accuracy, recall and precision of a predictor, from gold sets already joined with what it says.

Labels that count as one class have been taken together (subjects.py). proportions.py estimates proportions; the callers
decide which sets may be used for what.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from annotate.core.estimation.annotator_error import in_precision, in_recall
from annotate.core.estimation.comparisons import difference
from annotate.core.estimation.proportions import UNKNOWN, Estimate, moved, reweighted_precision, with_interval
from annotate.evaluation.uniform import Measured, Uniform, counted, share, together
from corpora.core.languages import UND

# Language -> id -> what the predictor says of a post that is in it.
RecallSets = Mapping[str, Mapping[str, str]]
# Language -> the posts of the uniform set that its recall-oriented draw could have taken too.
Reach = Mapping[str, Collection[str]]
NOWHERE: Reach = {}
# Language -> id -> the label, X, not-X or und, of a post of its queue that the predictor labels X.
PrecisionSets = Mapping[str, Mapping[str, str]]


def accuracy(uniform: Uniform, *, with_und: bool) -> Measured:
    return share(
        uniform,
        lambda cell: with_und or cell.truth != UND,
        lambda cell: cell.said == cell.truth,
        truths=(UND,),
        normal=True,
    )


# --- by language; und is one of the classes if a uniform set measures it


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


def recall(
    label: str,
    uniform: Uniform | None,
    sets: RecallSets,
    reach: Reach = NOWHERE,
    false_yes: float = 0.0,
    apart: Collection[str] = (),
) -> Measured:
    """Recall on both kinds of sets, as far as they are given. false_yes: as in `recall_in`. apart: ids of posts of the
    uniform set that do not count.

    Where both have posts in the language, and it is known which posts of the uniform set the recall-oriented draw
    could have taken: with a, the part of the language's posts that is within its reach, a times the recall there, by
    both sets, and 1 - a times the recall elsewhere, by the uniform set alone (Hartley 1962, Multiple frame surveys,
    Proceedings of the Social Statistics Section, American Statistical Association, with one frame within the other).
    Where that is not known, the recall-oriented set stands alone, and tells of its authors' posts. UNKNOWN where the
    two sets differ within that reach.
    """
    found = sets.get(label, {})
    if uniform and not found:
        return share(uniform, lambda cell: cell.truth == label, lambda cell: cell.said == label, apart, (label,))
    if uniform is None:
        return recall_in(found, label, false_yes)
    here = recall_in(found, label, false_yes)
    if label not in reach:
        return here
    both = two_frames(label, uniform, found, reach[label], false_yes)
    if both.differ:
        return Measured(UNKNOWN, here.posts)
    return Measured(both.estimate, here.posts + both.inside.posts + both.outside.posts)


def precision(
    label: str, uniform: Uniform | None, sets: PrecisionSets, *, with_und: bool, false_yes: float = 0.0
) -> Measured:
    """Precision on both kinds of sets. Without und, posts that people called undefined are left out; with it, they
    are wrong. false_yes: of the posts found to be right on a precision set, the share that may be wrong.
    """
    shown = sets.get(label, {})
    kept = [truth for truth in shown.values() if with_und or truth != UND]
    parts = []
    if kept:
        plain = counted(sum(truth == label for truth in kept), len(kept))
        parts.append(Measured(in_precision(plain.estimate, false_yes), plain.posts))
    if uniform:
        on_uniform = share(
            uniform,
            lambda cell: cell.said == label and (with_und or cell.truth != UND),
            lambda cell: cell.truth == label,
            shown,
            (UND,),
        )
        if not parts:
            return on_uniform
        parts.append(on_uniform)
    return together(*parts)


def und_last(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: (label == UND, label))


# --- precision on languages in equal parts


def balanced_precision(label: str, sets: RecallSets, weights: Mapping[str, float] | None = None) -> Measured:
    """Precision on recall sets, as if all their languages were equally common, or as common as `weights` say.

    Undefined posts, and posts of languages without a recall set, do not count. UNKNOWN if the language's own weight is
    0.
    """
    own = sets[label]
    own_weight = weights.get(label, 0.0) if weights is not None else 1.0
    triggers = sum(said == label for found in sets.values() for said in found.values())
    if not own_weight:
        return Measured(UNKNOWN, triggers)
    others = [
        (
            float(sum(said == label for said in found.values())),
            float(len(found)),
            (weights.get(other, 0.0) if weights is not None else 1.0) / own_weight,
        )
        for other, found in sets.items()
        if other != label and found
    ]
    right = float(sum(said == label for said in own.values()))
    return Measured(reweighted_precision((right, float(len(own))), others), triggers)


def natural_weights(uniform: Uniform) -> dict[str, float]:
    """Label -> how many posts of the draw have it, estimated by stratum."""
    weights: dict[str, float] = {}
    for cell, posts in uniform.cells.items():
        weights[cell.truth] = weights.get(cell.truth, 0.0) + posts * uniform.weights[cell]
    return weights
