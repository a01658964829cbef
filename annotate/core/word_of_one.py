"""Labels that one person gave: what their errors make of a figure that counts them."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from annotate.core.estimation import SECONDS, Estimate, Turned, Way, of_parts, part_by


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
