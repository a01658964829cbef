"""How many units of each stratum are read for a total in all: as many as is best for the figures, within bounds.

The exponent of the power allocation was chosen by the benchmark `audit_defaults`: docs/explanation/audit.md.
"""

from bisect import bisect_left
from collections.abc import Mapping
from math import floor, fsum
from typing import TypeVar

from annotate.core.draws.hash_order import part_of

# With 0 every stratum would get as many, with 1 every unit the same chance (Bankier 1988, Power allocations:
# determining sample sizes for subnational areas, The American Statistician 42(3)).
EXPONENT = 0.7

Key = TypeVar("Key", str, tuple[str, ...])  # of a stratum


def spread(total: float, weights: Mapping[Key, float], most: Mapping[Key, float], least: float = 0) -> dict[Key, float]:
    """Shares of a total in proportion to the weights; not rounded.

    most: the units that a stratum has; least: what each stratum gets, if it has so many units, even if that adds up to
    more than the total. Weights are positive where there is a unit.
    """

    def at(level: float) -> dict[Key, float]:
        return {key: min(of, max(least, level * weights[key])) for key, of in most.items()}

    def sum_at(level: float) -> float:
        return fsum(at(level).values())

    # Between two of these levels, the sum is a straight line.
    levels = sorted({bound / weights[key] for key, of in most.items() if of for bound in (min(least, of), of)})
    place = bisect_left(levels, total, key=sum_at)
    if place == 0 or place == len(levels):
        return at(levels[max(0, place - 1)] if levels else 0)
    low, high = levels[place - 1 : place + 1]
    start, end = sum_at(low), sum_at(high)
    return at(low + (high - low) * (total - start) / (end - start))


def by_power(sizes: Mapping[Key, float], share: float, least: float) -> dict[Key, float]:
    """A share of all units, spread in proportion to the power of each stratum's size; not rounded."""
    return spread(share * fsum(sizes.values()), {key: size**EXPONENT for key, size in sizes.items()}, sizes, least)


def rounded(shares: Mapping[Key, float]) -> dict[Key, int]:
    """Whole numbers with the same sum, by largest remainder; of equal remainders, the first in order gets the unit."""
    whole = {key: floor(share) for key, share in sorted(shares.items())}
    by_remainder = sorted(whole, key=lambda key: whole[key] - shares[key])
    for key in by_remainder[: round(fsum(shares.values())) - sum(whole.values())]:
        whole[key] += 1
    return whole


def further(counts: Mapping[Key, tuple[int, int]], share: float, least: int) -> dict[Key, int]:
    """How many more units to choose by power allocation in each stratum, since the earlier choice stays.

    counts: stratum -> (units, chosen earlier). share: of all units, rounded up.
    """
    sizes = {key: units for key, (units, _) in counts.items()}
    weights = {key: units**EXPONENT for key, units in sizes.items()}
    wanted = rounded(spread(part_of(share, sum(sizes.values())), weights, sizes, least))
    return {key: max(0, wanted[key] - chosen) for key, (_, chosen) in counts.items()}
