"""Readers who say Yes to posts that are not in the language: what that does to a figure of a recall- or precision-
oriented set, and how many decoys bound it well enough.

`evaluate` hands in what readers said of the decoys, `plan` and `open_task` what is expected of them.
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

# Of the posts that a recall-oriented draw takes, the share in another language than that of their author: a third to a
# half in the tweets of four languages.
OTHERS = 0.4
ASSUMED = (0.02, 0.05)  # shares of false Yes whose effect is shown where no decoy was answered
WIDER = 1.1  # the interval with the bound may be so many times as wide as without it


def false_among(answers: float, yes: float, is_so: float, is_not: float) -> float:
    """Of the posts that readers found to be in a language, the share that may be in another at most, by what they said
    of decoys: the upper end of their rate of false Yes, for as many posts as they found not to be in it. Decoys tempt
    more than such posts do, so it is a bound and no estimate. 0 where no decoy was answered, below 1 always."""
    if not answers or not is_so:
        return 0.0
    _, rate = jeffreys(yes, answers)
    return min(0.99, rate / max(0.01, 1 - rate) * is_not / is_so)


def in_recall(plain: Estimate, false_yes: float) -> Estimate:
    """Recall on posts of which a share may be in another language, and be missed for that, or found although it is."""
    return _widened(plain, lambda value: ((value - false_yes) / (1 - false_yes), value / (1 - false_yes)))


def in_precision(plain: Estimate, false_yes: float) -> Estimate:
    """Precision on posts, a share of whose right ones may be wrong."""
    return _widened(plain, lambda value: (value * (1 - false_yes), value))


def _widened(plain: Estimate, ends: Callable[[float], tuple[float, float]]) -> Estimate:
    """An estimate that false answers may move to these ends too."""
    if plain.value is None or ends(plain.value) == (plain.value, plain.value):
        return plain
    low, high = (min(1.0, max(0.0, end)) for end in ends(plain.value))
    return with_interval(plain.value, *moved(plain.value, [(plain.low, plain.high), (low, high)]), plain.count)


@dataclass(frozen=True)
class AskedSet:
    """A set that is drawn for one language, before it is drawn, and what is expected of it. by_author: whether it is
    recall-oriented, and not precision-oriented. accuracy: the recall, or the precision. others: the share of its posts
    that are in another language. rate: of the decoys, how many get a Yes.
    """

    by_author: bool
    accuracy: float = 0.95
    others: float = OTHERS
    rate: float = 0.0

    def counts(self, posts: float) -> tuple[float, float]:
        """How many of so many posts are in the language, and how many are not."""
        inside = posts * (1 - self.others if self.by_author else self.accuracy)
        return inside, posts - inside

    def estimate(self, posts: float, decoys: float) -> Estimate:
        """What `evaluate` says of so many posts and decoys if all is as expected."""
        inside, outside = self.counts(posts)
        false = false_among(decoys, self.rate * decoys, inside, outside)
        if self.by_author:
            return in_recall(proportion(inside * self.accuracy, inside), false)
        return in_precision(proportion(inside, posts), false)

    def widths_without_decoys(self, posts: float) -> dict[float, float]:
        """How wide the interval of so many posts is for each of ASSUMED, the shares of false Yes, if no decoy bounds
        that."""
        plain = self.estimate(posts, 0)
        widened = in_recall if self.by_author else in_precision
        return {share: _width(widened(plain, share)) for share in ASSUMED}

    def decoys(self, posts: int) -> int:
        """The fewest decoys with which the interval is hardly wider than if readers never said Yes by mistake; as many
        as there are posts at most, and one at least where there are posts. For that many posts it is about the number
        with which the interval is narrowest for all that is read, posts and decoys."""

        def is_enough(decoys: int) -> bool:
            return _width(self.estimate(posts, decoys)) <= most

        most = WIDER * _width(AskedSet(self.by_author, self.accuracy, self.others).estimate(posts, 0))
        return min(posts, bisect_left(range(posts), True, lo=min(1, posts), key=is_enough))


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


# --- Labels that one person gave: what their errors make of a figure that counts them.


class Errors(NamedTuple):
    """Of labels that one person gave. lost: of those that the predictor says too, the share that are wrong. gained: of
    all, the share that are wrong and where the predictor is right. gone: of all, the share that are wrong and where the
    predictor says otherwise."""

    lost: Estimate
    gained: Estimate
    gone: Estimate


_NEVER = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)


def of_adjudicators(slips: Estimate, right: float) -> Errors:
    """slips: how often they slip, without regard to what the predictor says. right: the share of their labels that the
    predictor says too, and so the share of their slips where it is right."""
    return Errors(_NEVER, part_of(slips, right), slips)


def part_of(slips: Estimate, share: float) -> Estimate:
    """Slips that fall on this share of the labels, as a rate of all labels."""
    value = None if slips.value is None else slips.value * share
    return replace(slips, value=value, low=slips.low * share, high=slips.high * share)


def with_slips(of: Callable[[Estimate | None], Estimate], slips: Estimate | None) -> Estimate:
    """A share that adjudicators' slips change. of: the share by how often they slip. Slips change the errors of all
    pools in the same direction, so they move the interval together: to the share with the fewest slips, and to that
    with the most."""
    if slips is None or slips.value is None:
        return of(None)
    shares = {rate: of(Estimate(rate, rate, rate, 0.0, 0.0)) for rate in {slips.value, slips.low, slips.high}}
    found = shares[slips.value]
    reached = {share.value for share in shares.values() if share.value is not None}
    if found.value is None or reached == {found.value}:
        return found
    by_slips = part_by(SECONDS, found.value, [(min(reached), max(reached))])
    return of_parts(found.value, [*found.parts, by_slips], found.count)


def turned(way: Way, posts: float, rate: Estimate, labels: float = 1.0) -> tuple[Way, Turned]:
    """How many of these posts turn in that way, where so many of all labels do.

    labels: how many there are in all for each among which those that turn are taken to lie. Wrong labels that the
    predictor does not say are taken to lie among the posts of a domain as they lie among all that it misses: a label
    that is given by mistake is mostly a rare one.
    """
    number, fewest, most = (min(posts, posts * labels * (each or 0.0)) for each in (rate.value, rate.low, rate.high))
    return way, (number, fewest, most)
