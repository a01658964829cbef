"""The share of hits in a domain where parts of a population were sampled with chances of their own."""

from math import hypot

import numpy as np

from annotate.core.answers import Bools, Floats, Ints
from annotate.core.estimation import Estimate, moved, with_interval
from annotate.core.intervals import jeffreys


def stratified_share(hits: Bools, domain: Bools, weights: Floats, strata: Ints) -> Estimate:
    """hits, domain: whether each unit is in the domain, and right, (n,), of which some are in the domain. weights: how
    many units each stands for, (n,). strata: the stratum of each, (n,).

    The ends of the interval lie as far from the value as three things take it, squared and added up (MOVER: Zou and
    Donner 2008, Statistics in Medicine 27(10)): Jeffreys' interval of the share in each stratum; the size of the domain
    in each stratum, which was estimated too (Cochran 1977, Sampling Techniques, 3rd edition, section 5A.14); and what
    may be of the domain in strata where nothing of it was read. So a stratum has an interval even if all that was read
    in it is right, where the linearized variance is 0.
    """
    _, strata = np.unique(strata, return_inverse=True)

    def sums(of: Floats) -> Floats:
        return np.bincount(strata, of).astype(np.float64)

    sizes, read = sums(np.ones(len(weights))), sums(domain.astype(np.float64))
    whole, right, squares = sums(weights * domain), sums(weights * (hits & domain)), sums(weights**2 * domain)
    total = float(whole.sum())
    value = float(right.sum()) / total
    seen = read > 0
    shares, counts = right[seen] / whole[seen], whole[seen] ** 2 / squares[seen]
    ends = [
        (value - part * (share - low), value + part * (high - share))
        for share, part, count in zip(shares, whole[seen] / total, counts, strict=True)
        for low, high in [jeffreys(min(count, share * count), count)]
    ]
    off = float(np.sqrt((squares[seen] * (1 - read[seen] / sizes[seen]) * (shares - value) ** 2).sum())) / total
    unread = zip(sums(weights)[~seen], sizes[~seen], strict=True)
    unseen = hypot(*(weight * jeffreys(0, size)[1] for weight, size in unread))
    ends += [(value - off, value + off), tuple(np.array([value * total, value * total + unseen]) / (total + unseen))]
    return with_interval(value, *moved(value, ends), float(read.sum()))
