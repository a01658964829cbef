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


def turned(errors: Errors, inside: float, hits: float, per_miss: float, *, leaves: bool) -> list[tuple[Way, Turned]]:
    """How many posts turn, in each way, of `inside` posts in a domain of which `hits` are hits: hits to misses, and
    misses to hits; or, with `leaves`, all that are wrong leave the domain, as for recall.

    per_miss: how many labels there are in all for each that the predictor does not say. Wrong labels are taken to lie
    among those as they lie among the domain's misses: a label that is given by mistake is mostly a rare one.
    """
    misses = inside - hits
    ways = (
        ((-1, -1) if leaves else (0, -1), errors.lost, hits, hits),
        ((-1, 0) if leaves else (0, 1), errors.gone if leaves else errors.gained, misses * per_miss, misses),
    )
    return [
        (way, (min(most, of * (rate.value or 0.0)), min(most, of * rate.low), min(most, of * rate.high)))
        for way, rate, of, most in ways
    ]
