"""Allocation of a reading budget to strata, with a minimum and a maximum for each.

The benchmark `audit_defaults` chose the exponent of the power allocation; see docs/explanation/audit.md.
"""

from bisect import bisect_left
from collections.abc import Mapping
from math import floor, fsum
from typing import TypeVar

from annotate.core.draws.hash_order import part_of

# 0 gives every stratum the same number of units, 1 gives every unit the same probability (Bankier 1988, Power
# allocations: determining sample sizes for subnational areas, The American Statistician 42(3)).
EXPONENT = 0.7

Key = TypeVar("Key", str, tuple[str, ...])  # identifies a stratum


def spread(total: float, weights: Mapping[Key, float], most: Mapping[Key, float], least: float = 0) -> dict[Key, float]:
    """Divide a total among strata in proportion to their weights, within bounds.

    total: number of units to allocate.
    weights: weight of each stratum, positive if the stratum has units.
    most: number of units in each stratum, the most it can get.
    least: number of units that each stratum gets at least, or all of its units if it has fewer. The minimums hold even
        if they add up to more than the total.

    Returns the share of each stratum, not rounded.
    """

    def at(level: float) -> dict[Key, float]:
        return {key: min(of, max(least, level * weights[key])) for key, of in most.items()}

    def sum_at(level: float) -> float:
        return fsum(at(level).values())

    # The sum is linear between two adjacent levels.
    levels = sorted({bound / weights[key] for key, of in most.items() if of for bound in (min(least, of), of)})
    place = bisect_left(levels, total, key=sum_at)
    if place == 0 or place == len(levels):
        return at(levels[max(0, place - 1)] if levels else 0)
    low, high = levels[place - 1 : place + 1]
    start, end = sum_at(low), sum_at(high)
    return at(low + (high - low) * (total - start) / (end - start))


def by_power(sizes: Mapping[Key, float], share: float, least: float) -> dict[Key, float]:
    """Allocate a share of all units in proportion to stratum size raised to EXPONENT, without rounding."""
    return spread(share * fsum(sizes.values()), {key: size**EXPONENT for key, size in sizes.items()}, sizes, least)


def rounded(shares: Mapping[Key, float]) -> dict[Key, int]:
    """Round shares to integers with the same sum, by largest remainder. Ties go to the first key in sorted order."""
    whole = {key: floor(share) for key, share in sorted(shares.items())}
    by_remainder = sorted(whole, key=lambda key: whole[key] - shares[key])
    for key in by_remainder[: round(fsum(shares.values())) - sum(whole.values())]:
        whole[key] += 1
    return whole


def further(counts: Mapping[Key, tuple[int, int]], share: float, least: int) -> dict[Key, int]:
    """Return how many more units to select in each stratum, keeping those already selected.

    counts: number of units and number already selected, by stratum.
    share: share of all units to select in total, rounded up.
    least: minimum number of units per stratum.
    """
    sizes = {key: units for key, (units, _) in counts.items()}
    weights = {key: units**EXPONENT for key, units in sizes.items()}
    wanted = rounded(spread(part_of(share, sum(sizes.values())), weights, sizes, least))
    return {key: max(0, wanted[key] - chosen) for key, (_, chosen) in counts.items()}
