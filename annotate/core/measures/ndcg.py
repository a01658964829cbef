"""nDCG of ranked pages as in XGLUE's evaluation, and its mean over queries.

The gain of a page is its grade, not 2 to the power of the grade, and the discount at rank r is 1/log2(r + 1), down to
the last page (Järvelin and Kekäläinen 2002, ACM TOIS 20(4)). XGLUE uses scikit-learn's ndcg_score, which does the same.
Pages with equal predictions share their ranks and get the mean of their gains, which is the mean over all possible
orders (McSherry and Najork 2008, ECIR).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum, log2

import numpy as np

from annotate.core.estimation.resampling import bootstrap


@dataclass(frozen=True)
class Ranked:
    """Mean nDCG over the queries with two or more pages.

    value: the mean; None without such a query.
    low, high: ends of the bootstrap interval over queries; None with fewer than 20.
    queries: number of queries in the mean.
    single: number of queries with a single page, which are left out.
    irrelevant: number of queries in the mean without a grade above 0. XGLUE defines their nDCG (0/0) as 0, so the
        highest possible mean is (queries - irrelevant)/queries.
    """

    value: float | None
    low: float | None
    high: float | None
    queries: int
    single: int
    irrelevant: int


def ndcg(grades: Sequence[float], scores: Sequence[float]) -> float:
    """Return the nDCG of one query, 0 if no page has a grade above 0.

    grades: grade of each page, 0 or more.
    scores: prediction for each page; the highest ranks first.

    Raises ValueError for a negative grade, or if the lengths differ.
    """
    if len(grades) != len(scores):
        raise ValueError(f"{len(grades)} grades and {len(scores)} predictions are not of the same pages.")
    if any(grade < 0 for grade in grades):
        raise ValueError("A grade below 0 is a loss, and nDCG knows none; number the grades from 0 on.")
    ideal = fsum(grade * _discount(rank) for rank, grade in enumerate(sorted(grades, reverse=True), 1))
    return min(1.0, _gain(grades, scores) / ideal) if ideal else 0.0


def _gain(grades: Sequence[float], scores: Sequence[float]) -> float:
    """Return the discounted cumulative gain in the order of the scores, with ties sharing their ranks."""
    ordered = sorted(zip(scores, grades, strict=True), key=lambda pair: -pair[0])
    rank, gains = 0, []
    for _, group in groupby(ordered, key=lambda pair: pair[0]):
        tied = [grade for _, grade in group]
        discounts = fsum(_discount(rank + place) for place in range(1, len(tied) + 1))
        gains.append(fsum(tied) / len(tied) * discounts)
        rank += len(tied)
    return fsum(gains)


def _discount(rank: int) -> float:
    return 1 / log2(rank + 1)


def by_query(pages: Iterable[tuple[str, float, float]]) -> tuple[list[float], int, int]:
    """Return the nDCG of each query with two or more pages, and the counts of single and irrelevant queries.

    pages: (query, grade, prediction), with the pages of a query in succession.
    """
    values, single, irrelevant = [], 0, 0
    for _, group in groupby(pages, key=lambda page: page[0]):
        found = list(group)
        if len(found) < 2:
            single += 1
            continue
        grades = [grade for _, grade, _ in found]
        values.append(ndcg(grades, [score for _, _, score in found]))
        irrelevant += not any(grades)
    return values, single, irrelevant


def mean_ndcg(pages: Iterable[tuple[str, float, float]], *, seed: str) -> Ranked:
    """Estimate the mean nDCG over queries.

    pages: see `by_query`.
    seed: seed of the bootstrap.
    """
    values, single, irrelevant = by_query(pages)
    if not values:
        return Ranked(None, None, None, 0, single, 0)
    queries = len(values)
    low, high = bootstrap(np.array(values)[:, None], lambda total: float(total[0]) / queries, seed=seed)
    return Ranked(fsum(values) / queries, low, high, queries, single, irrelevant)
