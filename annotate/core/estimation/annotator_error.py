"""Effect of annotator errors on estimates: false Yes answers, and labels that rest on a single annotator.

Annotators sometimes answer Yes to a post that is not in the language. Decoys are such posts, so the answers to decoys
bound how often this happens. `evaluate` applies the bound to a finished set; `plan` and `open_task` use it to choose
the number of decoys.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from annotate.core.estimation.proportions import (
    SECONDS,
    Estimate,
    Turned,
    Way,
    jeffreys,
    moved,
    of_parts,
    part_by,
    proportion,
    with_interval,
)

# Share of a recall-oriented draw that is not in the author's language. It was a third to a half in tweets of four
# languages.
OTHERS = 0.4
ASSUMED = (0.02, 0.05)  # shares of false Yes to report if no decoy was answered
WIDER = 1.1  # largest ratio of the width with the bound to the width of the plain interval


def false_among(answers: float, yes: float, is_so: float, is_not: float) -> float:
    """Return an upper bound on the share of Yes posts that are not in the language.

    The bound applies the upper end of the false-Yes rate on decoys to all posts outside the language. Decoys are more
    tempting than ordinary posts, so this is a bound and not an estimate.

    answers: number of answered decoys.
    yes: number of decoys that got a Yes.
    is_so: number of posts that annotators placed in the language.
    is_not: number of posts that they placed outside it.

    Return 0 if no decoy was answered or no post is in the language. The result is always less than 1.
    """
    if not answers or not is_so:
        return 0.0
    _, rate = jeffreys(yes, answers)
    return min(0.99, rate / max(0.01, 1 - rate) * is_not / is_so)


def in_recall(plain: Estimate, false_yes: float) -> Estimate:
    """Widen the interval of recall to allow for a share `false_yes` of posts that are not in the language.

    The predictor may have missed all of those posts, or matched all of them.
    """
    return _widened(plain, lambda value: ((value - false_yes) / (1 - false_yes), value / (1 - false_yes)))


def in_precision(plain: Estimate, false_yes: float) -> Estimate:
    """Widen the interval of precision to allow for a share `false_yes` of hits that are wrong."""
    return _widened(plain, lambda value: (value * (1 - false_yes), value))


def _widened(plain: Estimate, ends: Callable[[float], tuple[float, float]]) -> Estimate:
    """Widen an interval so that it allows for the values that false answers may lead to.

    ends: function that takes the estimate and returns the lowest and the highest of these values.
    """
    if plain.value is None or ends(plain.value) == (plain.value, plain.value):
        return plain
    low, high = (min(1.0, max(0.0, end)) for end in ends(plain.value))
    return with_interval(plain.value, *moved(plain.value, [(plain.low, plain.high), (low, high)]), plain.count)


@dataclass(frozen=True)
class AskedSet:
    """Expected properties of a set for one language, before it is drawn.

    by_author: True for a recall-oriented set, False for a precision-oriented one.
    accuracy: expected recall or precision.
    others: expected share of posts that are in other languages.
    rate: expected share of decoys that get a Yes.
    """

    by_author: bool
    accuracy: float = 0.95
    others: float = OTHERS
    rate: float = 0.0

    def counts(self, posts: float) -> tuple[float, float]:
        """Return the expected number of posts inside and outside the language."""
        inside = posts * (1 - self.others if self.by_author else self.accuracy)
        return inside, posts - inside

    def estimate(self, posts: float, decoys: float) -> Estimate:
        """Return the estimate that `evaluate` is expected to report."""
        inside, outside = self.counts(posts)
        false = false_among(decoys, self.rate * decoys, inside, outside)
        if self.by_author:
            return in_recall(proportion(inside * self.accuracy, inside), false)
        return in_precision(proportion(inside, posts), false)

    def widths_without_decoys(self, posts: float) -> dict[float, float]:
        """Return the width of the interval without decoys, for each share of false Yes answers in ASSUMED."""
        plain = self.estimate(posts, 0)
        widened = in_recall if self.by_author else in_precision
        return {share: _width(widened(plain, share)) for share in ASSUMED}

    def decoys(self, posts: int) -> int:
        """Return the smallest number of decoys that keeps the interval narrow.

        The interval is then at most WIDER times as wide as it would be without false Yes answers. The result is at most
        the number of posts, and at least 1 if there are any posts. It is also close to the number that gives the
        narrowest interval if the total number of posts and decoys is fixed.
        """

        def is_enough(decoys: int) -> bool:
            return _width(self.estimate(posts, decoys)) <= most

        most = WIDER * _width(AskedSet(self.by_author, self.accuracy, self.others).estimate(posts, 0))
        return min(posts, bisect_left(range(posts), True, lo=min(1, posts), key=is_enough))


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


# --- Labels that rest on a single annotator.


class Errors(NamedTuple):
    """Error rates of labels that rest on a single annotator.

    lost: share of wrong labels among those that match the prediction.
    gained: share of all labels that are wrong while the prediction is right.
    gone: share of all labels that are wrong and differ from the prediction.
    """

    lost: Estimate
    gained: Estimate
    gone: Estimate


_NEVER = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)


def of_adjudicators(slips: Estimate, right: float) -> Errors:
    """Return the error rates of adjudicators, whose errors are assumed to be independent of the predictions.

    slips: share of their labels that are wrong.
    right: share of their labels that match the prediction. The prediction is assumed to be right for the same share of
        the labels that are wrong.
    """
    return Errors(_NEVER, part_of(slips, right), slips)


def part_of(slips: Estimate, share: float) -> Estimate:
    """Multiply an error rate by a share, to count only the errors in this share of the labels."""
    value = None if slips.value is None else slips.value * share
    return replace(slips, value=value, low=slips.low * share, high=slips.high * share)


def with_slips(of: Callable[[Estimate | None], Estimate], slips: Estimate | None) -> Estimate:
    """Widen the interval of a share to allow for adjudicators' errors.

    These errors affect all gold pools in the same direction, so they count as a single source of error. It moves the
    share from its value at the lowest error rate to its value at the highest.

    of: function that takes the adjudicators' error rate and returns the share.
    slips: the adjudicators' error rate; None if unknown.
    """
    if slips is None or slips.value is None:
        return of(None)
    shares = {rate: of(Estimate(rate, rate, rate, 0.0, 0.0)) for rate in {slips.value, slips.low, slips.high}}
    estimate = shares[slips.value]
    reached = {share.value for share in shares.values() if share.value is not None}
    if estimate.value is None or reached == {estimate.value}:
        return estimate
    by_slips = part_by(SECONDS, estimate.value, [(min(reached), max(reached))])
    return of_parts(estimate.value, [*estimate.parts, by_slips], estimate.count)


def turned(way: Way, posts: float, rate: Estimate, labels: float = 1.0) -> tuple[Way, Turned]:
    """Return how many items change in the given way because of wrong labels, together with the way.

    Wrong labels that differ from the prediction are assumed to be spread over the domain like all of the predictor's
    misses, because a label given by mistake is usually a rare one.

    way: what an item that changes adds to the domain and to the hits.
    posts: number of items that can change.
    rate: share of all labels that are wrong.
    labels: ratio of all labels to the labels that can change.
    """
    number, fewest, most = (min(posts, posts * labels * (share or 0.0)) for share in (rate.value, rate.low, rate.high))
    return way, (number, fewest, most)
