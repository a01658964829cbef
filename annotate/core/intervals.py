"""Intervals of a proportion from counts. What is made of several counts is in estimation.py."""

import scipy  # which loads its part `special` when it is first used: a quarter of the start of a command

LEVEL = 0.95


def jeffreys(hits: float, of: float, level: float = LEVEL) -> tuple[float, float]:
    """The ends of the Jeffreys interval of a proportion, as fractions; (0, 1) where nothing was counted.

    The (1 - level)/2 quantiles from below and above of Beta(hits + 1/2, of - hits + 1/2), but 0 below where
    nothing was hit and 1 above where all was (Brown, Cai and DasGupta 2001, Interval Estimation for a Binomial
    Proportion, Statistical Science 16(2), section 4.1.2). Counts may be real, since effective counts are: then an
    end may pass hits/of where hits is far below 1, and is held there. ValueError where hits are not within 0 and
    `of`, or the level not between 0 and 1.
    """
    if not 0 <= hits <= of:
        raise ValueError(f"{hits} hits of {of} make no proportion; give hits between 0 and the count.")
    if not 0 < level < 1:
        raise ValueError(f"The level of an interval is between 0 and 1, not {level}.")
    if of == 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    value = hits / of
    low = 0.0 if hits == 0 else min(value, float(scipy.special.betaincinv(hits + 0.5, of - hits + 0.5, tail)))
    high = 1.0 if hits == of else max(value, float(scipy.special.betaincinv(hits + 0.5, of - hits + 0.5, 1 - tail)))
    return low, high
