"""Accuracy, recall and precision of a predictor, from gold sets already joined with what it says.

Labels that count as one class have been taken together (subjects.py). proportions.py estimates proportions; the callers
decide which sets may be used for what.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

from annotate.core.estimation.annotator_error import in_precision, in_recall, with_slips
from annotate.core.estimation.comparisons import Difference, difference
from annotate.core.estimation.proportions import (
    UNKNOWN,
    UNRESOLVED,
    Estimate,
    Guess,
    Stratum,
    Turn,
    Way,
    moved,
    pooled,
    proportion,
    reweighted_precision,
    stratified,
    united,
    with_interval,
)
from annotate.evaluation.uniform import ANOTHER, Cell, Of, Uniform, turns
from corpora.core.languages import UND

# Language -> id -> what the predictor says of a post that is in it.
RecallSets = Mapping[str, Mapping[str, str]]
# Language -> the posts of the uniform set that its recall-oriented draw could have taken too.
Reach = Mapping[str, Collection[str]]
NOWHERE: Reach = {}
# Language -> id -> the label, X, not-X or und, of a post of its queue that the predictor labels X.
PrecisionSets = Mapping[str, Mapping[str, str]]


# --- shares of the posts of a uniform set, estimated by stratum


@dataclass(frozen=True)
class Measured:
    """An estimate and how many posts, read by people, it rests on.

    extremes: where posts are missing, the estimates if they are like those that were read, if they are what lowers the
    share most, and if they are what raises it most (Manski 2003, Partial Identification of Probability Distributions,
    section 1.2).
    """

    estimate: Estimate
    posts: int
    extremes: tuple[Estimate, ...] = ()

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between which the interval is, whatever the missing posts are; None where none is missing."""
        return bounds_of(self.extremes) if self.extremes else None


def together(*parts: Measured) -> Measured:
    """Join estimates from disjoint posts of the same language."""
    known = [part for part in parts if part.posts]
    if len(known) == 1:
        return known[0]
    return Measured(pooled(*(part.estimate for part in known)), sum(part.posts for part in known))


def counted(hits: int, of: int) -> Measured:
    return Measured(proportion(hits, of), of)


# The one turn of a guess that cannot turn, since without any turns every guess may.
NEVER = Turn(0, 0, 0, 0, 0)
Interval = TypeVar("Interval", Estimate, Difference)
FAR = 0.01  # bounds that are further apart are reported
MISSED: Way = (0, 1)  # the way in which a miss turns out to be a hit


def share(
    uniform: Uniform,
    domain: Of,
    right: Of,
    apart: Collection[str] = (),
    truths: Collection[str] = (),
    *,
    normal: bool = False,
) -> Measured:
    """The share of right labels in a domain of a uniform set, by stratum; see `strata_of`. normal: see `stratified`.
    What one reader alone decided is wrong as often as the checks say (uniform.py). Missing posts are taken to be like
    those of their stratum that were read, or wrong as often as `rates` says; the bounds take them for anything.
    """

    def measured(each: Uniform) -> Measured:
        """Without regard to missing posts."""
        cells = each.cells - Counter(each.posts[key] for key in apart if key in each.posts) if apart else each.cells
        strata = strata_of(each, cells, domain, right, truths)
        estimate = with_slips(
            lambda slips: stratified(
                strata,
                further=turns(cells, each.weights, rates, domain, right) if (rates := each.errors(slips)) else {},
                normal=normal,
            ),
            each.slips,
        )
        return Measured(estimate, round(sum(stratum.domain for stratum in strata)))

    if not uniform.missing:
        return measured(uniform)
    found, *others = map(measured, uniform.by_rate)
    if found.estimate.value is None:
        return found
    at_random = found if uniform.by_rate[0] is uniform else measured(uniform)
    settled = map(measured, uniform.extremes(worth(domain, right), truths))
    extremes = tuple(each.estimate for each in (at_random, *settled) if each.estimate.value is not None)
    by_rate = [within(bounds_of(extremes), each.estimate) for each in (found, *others)]
    return replace(found, estimate=united(by_rate[0], by_rate[1:], UNRESOLVED), extremes=extremes)


def bounds_of(extremes: Collection[Interval]) -> tuple[float, float]:
    """The ends between which all of these intervals lie."""
    return min(each.low for each in extremes), max(each.high for each in extremes)


def within(bounds: tuple[float, float], found: Interval) -> Interval:
    """The same with an interval that lies within the bounds, which hold whatever the missing posts are."""
    low, high = bounds
    return replace(found, low=min(high, max(low, found.low)), high=max(low, min(high, found.high)))


def worth(domain: Of, right: Of) -> Callable[[Cell], int]:
    """What a post does to a share: 1 raises it, -1 lowers it."""
    return lambda cell: (1 if right(cell) else -1) if domain(cell) else 0


def strata_of(
    uniform: Uniform, cells: Mapping[Cell, float], domain: Of, right: Of, truths: Collection[str] = ()
) -> list[Stratum]:
    """The strata of a uniform set, with the posts of each in a domain and the right ones. cells: those that count here.

    For posts that people have not read, the label that the detectors agreed on is a guess at the truth. truths: the
    labels that such a post may have in truth, as far as they make a difference, besides what was said of it.
    """
    # By stratum: posts in the domain and right ones, read and as guessed; and how they may turn, as fields of a Turn.
    read, guessed = (dict[str, list[float]]({name: [0, 0] for name in uniform.drawn}) for _ in range(2))
    turning: dict[str, dict[Way, list[Any]]] = {name: {} for name in uniform.drawn}

    @cache  # asked many times of each, since cells differ in their strata too
    def counted_as(truth: str, said: str, other: str) -> tuple[int, int]:
        cell = Cell("", "", True, truth, said, other)
        inside = domain(cell)
        return int(inside), int(inside and right(cell))

    for cell, posts in cells.items():
        told, true = (cell.said, cell.other), counted_as(cell.truth, cell.said, cell.other)
        guess, as_said = counted_as(cell.agreed, *told), counted_as(cell.said, *told)
        for place in (0, 1):
            read[cell.stratum][place] += posts * true[place] * cell.read
            guessed[cell.stratum][place] += posts * guess[place]
        could_be = {as_said, *(counted_as(truth, *told) for truth in (cell.other, *truths, ANOTHER))} - {guess}
        for could in could_be if cell.stratum else ():
            turn = turning[cell.stratum].setdefault((could[0] - guess[0], could[1] - guess[1]), [0, 0, 0, None])
            turn[0] += posts
            if cell.read:
                turn[1:3] = turn[1] + posts, turn[2] + posts * (true == could)
            # Of the few posts where the predictor says otherwise than the detectors hardly any may have been read.
            if could == as_said and could[1]:
                turn[3] = uniform.lone_right
    found = []
    for name, drawn in uniform.drawn.items():
        turns = tuple(Turn(*way, *turn) for way, turn in turning[name].items())
        guess_of = Guess(guessed[name][0], guessed[name][1], turns or (NEVER,)) if name else None
        found.append(Stratum(drawn, uniform.read[name], read[name][0], read[name][1], guess_of))
    return found


class Lone(NamedTuple):
    """Posts that nobody has read and that the predictor alone labels so, not the detectors, which agree there. bounds:
    the share if all of them are wrong, and if all are right."""

    posts: int
    bounds: tuple[float, float]


def lone_triggers(uniform: Uniform, label: str) -> Lone | None:
    """Posts that nobody has read, and that the predictor labels so while the detectors agree on something else; None
    if there is none, if nothing is known of the label, or if the bounds are no further apart than FAR."""
    is_said, is_right = (lambda cell: cell.said == label), (lambda cell: cell.truth == label)
    if_wrong: list[Stratum] = []
    if_right: list[Stratum] = []
    unread = 0.0
    for stratum in strata_of(uniform, uniform.cells, is_said, is_right):
        guess = stratum.guess
        misses = [turn for turn in guess.turns if turn[:2] == MISSED] if guess else []
        unread += sum(turn.posts - turn.read for turn in misses)
        for strata, right in ((if_wrong, False), (if_right, True)):
            if guess and misses:
                hits = guess.hits + int(sum(turn.off + right * (turn.posts - turn.read) for turn in misses))
                others = tuple(turn for turn in guess.turns if turn not in misses)
                strata.append(replace(stratum, guess=Guess(guess.domain, hits, others or (NEVER,))))
            else:
                strata.append(stratum)
    rates = uniform.errors(uniform.slips)
    further = turns(uniform.cells, uniform.weights, rates, is_said, is_right) if rates else {}
    low, high = (stratified(strata, further=further).value for strata in (if_wrong, if_right))
    return (
        Lone(int(unread), (low, high)) if unread and low is not None and high is not None and high - low > FAR else None
    )


# --- accuracy, recall and precision


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
