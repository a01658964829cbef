"""Accuracy, recall and precision of a predictor on gold sets joined with its labels.

Labels are already merged into classes (joined_sets.py). Callers choose the sets for each measure, and proportions.py
estimates the proportions.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

from annotate.core.estimation.differences import Difference, difference
from annotate.core.estimation.label_errors import in_precision, in_recall, with_slips
from annotate.core.estimation.proportions import (
    UNKNOWN,
    UNRESOLVED,
    Estimate,
    Guess,
    Stratum,
    Turn,
    Way,
    mover,
    pool,
    proportion,
    reweighted_precision,
    stratified,
    widen_to_cover,
    with_interval,
)
from annotate.evaluation.uniform import ANOTHER, Cell, CellTest, Uniform, label_error_effects
from corpora.core.languages import UND

# For each language, a mapping from post id to predicted label, for the posts that annotators labelled as this language.
RecallSets = Mapping[str, Mapping[str, str]]
# For each language, the posts of the uniform set that the language's recall-oriented draw could have included.
Reach = Mapping[str, Collection[str]]
NOWHERE: Reach = {}
# For each language X, a mapping from post id to the annotators' label (`X`, `not-X` or `und`), for posts in X's queue
# that the predictor labels X.
PrecisionSets = Mapping[str, Mapping[str, str]]


# --- shares of the posts of a uniform set, estimated by stratum


@dataclass(frozen=True)
class Measured:
    """An estimate and the number of posts behind it.

    posts: number of annotated posts that the estimate is based on.
    extremes: empty if no post is missing. Otherwise three estimates under different assumptions about the missing
        posts: they resemble the annotated ones, lower the share as far as possible, or raise it as far as possible
        (Manski 2003, Partial Identification of Probability Distributions, section 1.2).
    """

    estimate: Estimate
    posts: int
    extremes: tuple[Estimate, ...] = ()

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The interval's range over all possible labels of the missing posts. None if no post is missing."""
        return bounds_of(self.extremes) if self.extremes else None


def combine(*parts: Measured) -> Measured:
    """Combine estimates from disjoint samples of the same language."""
    measured_parts = [part for part in parts if part.posts]
    if len(measured_parts) == 1:
        return measured_parts[0]
    return Measured(pool(*(part.estimate for part in measured_parts)), sum(part.posts for part in measured_parts))


def share_from_counts(hits: int, total: int) -> Measured:
    return Measured(proportion(hits, total), total)


# A Turn that affects no post, for strata without wrong guesses. An empty tuple of turns would mean that every guess may
# be wrong.
NEVER = Turn(0, 0, 0, 0, 0)
Interval = TypeVar("Interval", Estimate, Difference)
LEAST_GAP = 0.01  # bounds that are closer than this are not reported
MISSED: Way = (0, 1)  # a miss that is really a hit


def share(
    uniform: Uniform,
    domain: CellTest,
    right: CellTest,
    excluded: Collection[str] = (),
    truths: Collection[str] = (),
    *,
    normal: bool = False,
) -> Measured:
    """Estimate the share of correct labels in a domain of a uniform set, by stratum.

    Single-annotator labels are assumed to be wrong as often as the checks show (uniform.py). Missing posts are assumed
    to resemble the annotated posts of their stratum, or to be wrong as often as `uniform.rates` states. The bounds
    allow any labels for them.

    uniform: the uniform set.
    domain: returns whether a post is in the domain.
    right: returns whether the predictor's label of a post in the domain is correct.
    excluded: ids of posts to leave out.
    truths: candidates for the true label of unannotated posts, see `build_strata`.
    normal: see `stratified`.
    """

    def measured(part: Uniform) -> Measured:
        """Estimate the share without the missing posts."""
        cells = (
            part.cells - Counter(part.posts[key] for key in excluded if key in part.posts) if excluded else part.cells
        )
        strata = build_strata(part, cells, domain, right, truths)
        estimate = with_slips(
            lambda slips: stratified(
                strata,
                further=label_error_effects(cells, part.weights, rates, domain, right)
                if (rates := part.error_rates(slips))
                else {},
                normal=normal,
            ),
            part.slips,
        )
        return Measured(estimate, round(sum(stratum.domain for stratum in strata)))

    if not uniform.missing:
        return measured(uniform)
    likeliest, *end_points = map(measured, uniform.reweighted)
    if likeliest.estimate.value is None:
        return likeliest
    at_random = likeliest if uniform.reweighted[0] is uniform else measured(uniform)
    limits = map(measured, uniform.extremes(effect_sign(domain, right), truths))
    extremes = tuple(result.estimate for result in (at_random, *limits) if result.estimate.value is not None)
    reweighted = [clip(bounds_of(extremes), result.estimate) for result in (likeliest, *end_points)]
    return replace(likeliest, estimate=widen_to_cover(reweighted[0], reweighted[1:], UNRESOLVED), extremes=extremes)


def bounds_of(extremes: Collection[Interval]) -> tuple[float, float]:
    """Return the smallest range that contains all intervals."""
    return min(interval.low for interval in extremes), max(interval.high for interval in extremes)


def clip(bounds: tuple[float, float], interval: Interval) -> Interval:
    """Clip an interval to bounds that hold for any labels of the missing posts."""
    low, high = bounds
    return replace(interval, low=min(high, max(low, interval.low)), high=max(low, min(high, interval.high)))


def effect_sign(domain: CellTest, right: CellTest) -> Callable[[Cell], int]:
    """Return a function that maps a cell to 1 if its posts raise the share, -1 if they lower it, and 0 otherwise."""
    return lambda cell: (1 if right(cell) else -1) if domain(cell) else 0


def build_strata(
    uniform: Uniform, cells: Mapping[Cell, float], domain: CellTest, right: CellTest, truths: Collection[str] = ()
) -> list[Stratum]:
    """Return a uniform set's strata, with each stratum's number of posts in the domain and of correct labels.

    For unannotated posts, the detectors' agreed label serves as a guess at the truth.

    uniform: the uniform set.
    cells: number of posts in each cell to include.
    domain, right: see `share`.
    truths: labels that an unannotated post may truly have, besides the predicted labels. Only labels that affect the
        share are needed.
    """
    # For each stratum, `annotated` and `guessed` hold the number of posts in the domain and the number of correct ones,
    # according to the annotators' and to the detectors' labels. `turning` holds the fields of each Turn.
    annotated, guessed = (dict[str, list[float]]({name: [0, 0] for name in uniform.drawn}) for _ in range(2))
    turning: dict[str, dict[Way, list[Any]]] = {name: {} for name in uniform.drawn}

    @cache  # the same labels occur in the cells of several strata
    def counted_as(truth: str, predicted: str, other: str) -> tuple[int, int]:
        cell = Cell("", "", True, truth, predicted, other)
        inside = domain(cell)
        return int(inside), int(inside and right(cell))

    for (name, agreed, is_annotated, truth, predicted, other, *_), posts in cells.items():
        true, guess, as_predicted = (counted_as(label, predicted, other) for label in (truth, agreed, predicted))
        for index in (0, 1):
            annotated[name][index] += posts * true[index] * is_annotated
            guessed[name][index] += posts * guess[index]
        if not name:
            continue
        possible = {as_predicted, *(counted_as(label, predicted, other) for label in (other, *truths, ANOTHER))}
        for outcome in possible - {guess}:
            turn = turning[name].setdefault((outcome[0] - guess[0], outcome[1] - guess[1]), [0, 0, 0, None])
            turn[0] += posts
            if is_annotated:
                turn[1:3] = turn[1] + posts, turn[2] + posts * (true == outcome)
            # A stratum may have few or no annotated posts on which the predictor disagrees with the detectors, so also
            # pass the rate over all strata.
            if outcome == as_predicted and outcome[1]:
                turn[3] = uniform.lone_right
    strata = []
    for name, drawn in uniform.drawn.items():
        turns = tuple(Turn(*way, *turn) for way, turn in turning[name].items())
        guess_of = Guess(guessed[name][0], guessed[name][1], turns or (NEVER,)) if name else None
        strata.append(Stratum(drawn, uniform.annotated[name], annotated[name][0], annotated[name][1], guess_of))
    return strata


class Lone(NamedTuple):
    """Unannotated posts that the predictor gives a label although the detectors agree on another label.

    posts: number of these posts.
    bounds: the label's precision if the predictor is wrong on all these posts, and if it is right on all of them.
    """

    posts: int
    bounds: tuple[float, float]


def lone_triggers(uniform: Uniform, label: str) -> Lone | None:
    """Count unannotated posts that the predictor labels `label` but the detectors do not. Bound the label's precision.

    Returns None if there are no such posts, precision cannot be estimated, or its bounds differ by at most LEAST_GAP.
    """
    is_predicted, is_right = (lambda cell: cell.predicted == label), (lambda cell: cell.truth == label)
    if_wrong: list[Stratum] = []
    if_right: list[Stratum] = []
    unannotated = 0.0
    for stratum in build_strata(uniform, uniform.cells, is_predicted, is_right):
        guess = stratum.guess or Guess(0, 0, ())
        misses = [turn for turn in guess.turns if turn[:2] == MISSED]
        remaining = tuple(turn for turn in guess.turns if turn not in misses) or (NEVER,)
        unannotated += sum(turn.posts - turn.read for turn in misses)
        for strata, counts_as_right in ((if_wrong, False), (if_right, True)):
            hits = guess.hits + int(sum(turn.off + counts_as_right * (turn.posts - turn.read) for turn in misses))
            changed = replace(stratum, guess=Guess(guess.domain, hits, remaining))
            strata.append(changed if misses else stratum)
    rates = uniform.error_rates(uniform.slips)
    further = label_error_effects(uniform.cells, uniform.weights, rates, is_predicted, is_right) if rates else {}
    low, high = (stratified(strata, further=further).value for strata in (if_wrong, if_right))
    if not unannotated or low is None or high is None or high - low <= LEAST_GAP:
        return None
    return Lone(int(unannotated), (low, high))


# --- accuracy, recall and precision


def accuracy(uniform: Uniform, *, with_und: bool) -> Measured:
    return share(
        uniform,
        lambda cell: with_und or cell.truth != UND,
        lambda cell: cell.predicted == cell.truth,
        truths=(UND,),
        normal=True,
    )


# --- by language; `und` is a class too if there is a uniform set


def recall_on_recall_set(predicted: Mapping[str, str], label: str, false_yes: float = 0.0) -> Measured:
    """Estimate a language's recall from its recall-oriented set.

    predicted: mapping from post id to predicted label, for the posts that annotators labelled as this language.
    label: the language.
    false_yes: upper bound on the share of these posts that are not in the language.
    """
    plain = share_from_counts(sum(prediction == label for prediction in predicted.values()), len(predicted))
    return Measured(in_recall(plain.estimate, false_yes), plain.posts)


class TwoFrames(NamedTuple):
    """A language's recall, estimated from a uniform set and a recall-oriented set.

    part: share of the language's posts that the recall-oriented draw can reach.
    inside: recall within reach, from the uniform set without the posts of the recall-oriented set.
    outside: recall out of reach, from the uniform set.
    p: p-value of the test that recall within reach is equal in both sets.
    estimate: recall on all posts of the language.
    """

    part: Measured
    inside: Measured
    outside: Measured
    p: float
    estimate: Estimate

    @property
    def differ(self) -> bool:
        return self.p < DIFFER


DIFFER = 0.01  # the two sets are considered to differ if p is smaller than this


def two_frames(
    label: str, uniform: Uniform, predicted: Mapping[str, str], reached: Collection[str], false_yes: float = 0.0
) -> TwoFrames:
    parted = uniform.map_cells(lambda key, cell: cell._replace(other="inside" if key in reached else "outside"))

    def within(location: str, excluded: Collection[str] = ()) -> Measured:
        is_there = lambda cell: cell.truth == label and cell.other == location  # noqa: E731
        return share(parted, is_there, lambda cell: cell.predicted == label, excluded, (label,))

    part = share(parted, lambda cell: cell.truth == label, lambda cell: cell.other == "inside", (), (label,))
    from_recall_set = recall_on_recall_set(predicted, label, false_yes)
    inside, outside = within("inside", predicted), within("outside")
    p = difference(from_recall_set.estimate, inside.estimate)
    in_reach = from_recall_set.estimate if false_yes else combine(from_recall_set, inside).estimate
    estimate = _combine_frames(part.estimate, in_reach, outside.estimate)
    return TwoFrames(part, inside, outside, p, estimate)


def _combine_frames(part: Estimate, inside: Estimate, outside: Estimate) -> Estimate:
    """Combine the recall within reach with the recall out of reach.

    If the recall out of reach is unknown, the value assumes that both are equal, and the interval allows any recall out
    of reach.

    part: share of the posts within reach.
    """
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
    low, high = mover(value, [*ends, (min(by_part), max(by_part))])
    return with_interval(value, low, high, inside.count + outside.count)


def recall(
    label: str,
    uniform: Uniform | None,
    sets: RecallSets,
    reach: Reach = NOWHERE,
    false_yes: float = 0.0,
    excluded: Collection[str] = (),
) -> Measured:
    """Estimate a language's recall from the uniform set, a recall-oriented set, or both.

    With both sets and a known reach of the recall-oriented draw, recall is a * r + (1 - a) * s, where a is the share of
    the language's posts within reach, r is the recall within reach, estimated from both sets, and s is the recall out
    of reach, estimated from the uniform set alone (Hartley 1962, Multiple frame surveys, Proceedings of the Social
    Statistics Section, American Statistical Association, with one frame inside the other).

    If the reach is unknown, only the recall-oriented set is used. The figure then describes only posts by the authors
    this set was drawn from.

    label: the language.
    uniform: the uniform set; None if there is none.
    sets: the recall-oriented sets.
    reach: posts within reach of the recall-oriented draws.
    false_yes: see `recall_on_recall_set`.
    excluded: ids of posts to leave out of the uniform set; used only if the language has no recall-oriented set.

    The estimate is UNKNOWN if the two sets differ in their recall within reach.
    """
    predicted = sets.get(label, {})
    if uniform and not predicted:
        return share(
            uniform, lambda cell: cell.truth == label, lambda cell: cell.predicted == label, excluded, (label,)
        )
    if uniform is None:
        return recall_on_recall_set(predicted, label, false_yes)
    from_recall_set = recall_on_recall_set(predicted, label, false_yes)
    if label not in reach:
        return from_recall_set
    both = two_frames(label, uniform, predicted, reach[label], false_yes)
    if both.differ:
        return Measured(UNKNOWN, from_recall_set.posts)
    return Measured(both.estimate, from_recall_set.posts + both.inside.posts + both.outside.posts)


def precision(
    label: str, uniform: Uniform | None, sets: PrecisionSets, *, with_und: bool, false_yes: float = 0.0
) -> Measured:
    """Estimate a language's precision from the uniform set, a precision-oriented set, or both.

    label: the language.
    uniform: the uniform set; None if there is none.
    sets: precision-oriented sets.
    with_und: whether posts that annotators labelled `und` count as wrong; otherwise they are left out.
    false_yes: upper bound on the share of confirmed posts in the precision-oriented set that are wrong.
    """
    truths = sets.get(label, {})
    judged = [truth for truth in truths.values() if with_und or truth != UND]
    plain = share_from_counts(sum(truth == label for truth in judged), len(judged))
    parts = [Measured(in_precision(plain.estimate, false_yes), plain.posts)] if judged else []
    if uniform:
        is_predicted = lambda cell: cell.predicted == label and (with_und or cell.truth != UND)  # noqa: E731
        on_uniform = share(uniform, is_predicted, lambda cell: cell.truth == label, truths, (UND,))
        if not parts:
            return on_uniform
        parts.append(on_uniform)
    return combine(*parts)


def und_last(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: (label == UND, label))


# --- precision on recall-oriented sets, with equal or custom language weights


def balanced_precision(label: str, sets: RecallSets, weights: Mapping[str, float] | None = None) -> Measured:
    """Estimate precision from recall-oriented sets, as if languages were as common as their weights.

    Ignores posts labelled `und` and posts in languages without a recall-oriented set.

    label: the language.
    sets: recall-oriented sets.
    weights: weight of each language; None for equal weights.

    The estimate is UNKNOWN if the weight of `label` is 0.
    """
    own_weight = weights.get(label, 0.0) if weights is not None else 1.0
    triggers = sum(prediction == label for predicted in sets.values() for prediction in predicted.values())
    if not own_weight:
        return Measured(UNKNOWN, triggers)

    def counts(predicted: Mapping[str, str]) -> tuple[float, float]:
        return float(sum(prediction == label for prediction in predicted.values())), float(len(predicted))

    other_languages = [
        (*counts(predicted), (weights.get(other, 0.0) if weights is not None else 1.0) / own_weight)
        for other, predicted in sets.items()
        if other != label and predicted
    ]
    return Measured(reweighted_precision(counts(sets[label]), other_languages), triggers)


def natural_weights(uniform: Uniform) -> dict[str, float]:
    """Estimate each label's number of posts in the draw."""
    weights: defaultdict[str, float] = defaultdict(float)
    for cell, posts in uniform.cells.items():
        weights[cell.truth] += posts * uniform.weights[cell]
    return weights
