"""Labels that one person gave: what their errors make of a figure that counts them."""

from dataclasses import replace
from typing import NamedTuple

from annotate.core.estimation import Estimate, Turned, Way


class Errors(NamedTuple):
    """Of labels that one person gave. lost: of those that the predictor says too, the share that are wrong. gained: of
    all, the share that are wrong and where the predictor is right. gone: of all, the share that are wrong and where the
    predictor says otherwise."""

    lost: Estimate
    gained: Estimate
    gone: Estimate


_NEVER = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)


def of_adjudicators(slips: Estimate) -> Errors:
    """slips: how often they slip. Nobody knows which of their labels are wrong, so the value stays, and the interval
    allows for it."""
    perhaps = replace(slips, value=0.0, low=0.0)
    return Errors(_NEVER, perhaps, perhaps)


def turned(way: Way, posts: float, rate: Estimate, labels: float = 1.0) -> tuple[Way, Turned]:
    """How many of these posts turn in that way, where so many of all labels do.

    labels: how many there are in all for each among which those that turn are taken to lie. Wrong labels that the
    predictor does not say are taken to lie among the posts of a domain as they lie among all that it misses: a label
    that is given by mistake is mostly a rare one.
    """
    number, fewest, most = (min(posts, posts * labels * (each or 0.0)) for each in (rate.value, rate.low, rate.high))
    return way, (number, fewest, most)
