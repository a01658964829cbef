"""Tests between predictors on the same items, and the correction for many tests at once."""

from collections.abc import Sequence

from scipy.special import bdtr


def mcnemar(only_first: int, only_second: int) -> float:
    """The two-sided p-value of McNemar's exact test: that neither of two predictors is right more often.

    only_first, only_second: items that only one of them has right; those that both or neither have say nothing.
    Under the null hypothesis each is a fair coin's, so p is twice the tail of Binomial(both together, 1/2) from the
    larger on, and 1 at most (Dietterich 1998, Neural Computation 10(7), section 3.1, has the approximate form).
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"{only_first} and {only_second} are no counts of items; give numbers from 0 on.")
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), only_first + only_second, 0.5)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: those at 0.05 or less hold together with an error of 0.05 at most.

    The k-th smallest of m is multiplied by m - k + 1 and never let below the one before it (Holm 1979,
    Scandinavian Journal of Statistics 6(2), section 3).
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted
