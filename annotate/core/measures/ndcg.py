"""How well predicted numbers rank the pages of a query: nDCG, as XGLUE's evaluation has it, and its mean over queries.

A page's gain is its grade (not 2 to the grade), and that of the page at rank r counts by 1/log2(r + 1), down to the
last page (Järvelin and Kekäläinen 2002, ACM TOIS 20(4); XGLUE's script calls scikit-learn's ndcg_score, which is so).
Pages that were predicted alike share their ranks: each counts with the mean of their gains, which is the mean over all
orders that they could have (McSherry and Najork 2008, ECIR).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum, log2

import numpy as np

from annotate.core.estimation.resampling import bootstrap


@dataclass(frozen=True)
class Ranked:
    """The mean nDCG over the queries that have two pages or more.

    value is None without such a query. low, high: the 2.5% and 97.5% quantiles of the mean over queries drawn again,
    None of fewer than 20.
    queries: of how many it is the mean; single: of one page, which cannot be ranked and are left out; irrelevant: of
    those counted, how many have no page of a grade above 0. Their nDCG, 0/0, is 0 in XGLUE, so the best mean there is
    is (queries - irrelevant)/queries.
    """

    value: float | None
    low: float | None
    high: float | None
    queries: int
    single: int
    irrelevant: int


def ndcg(grades: Sequence[float], scores: Sequence[float]) -> float:
    """Of one query: the grades of its pages and what was predicted for them, the highest first. 0 without any gain."""
    if len(grades) != len(scores):
        raise ValueError(f"{len(grades)} grades and {len(scores)} predictions are not of the same pages.")
    if any(grade < 0 for grade in grades):
        raise ValueError("A grade below 0 is a loss, and nDCG knows none; number the grades from 0 on.")
    ideal = fsum(grade * _discount(rank) for rank, grade in enumerate(sorted(grades, reverse=True), 1))
    return min(1.0, _gain(grades, scores) / ideal) if ideal else 0.0


def _gain(grades: Sequence[float], scores: Sequence[float]) -> float:
    """The discounted cumulated gain in the order of the scores, ties sharing their ranks."""
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
    """The nDCG of each query of two pages or more, how many queries have one page, and how many of the others no gain.

    pages: (query, grade, prediction) in the order of the file; a query's pages stand together."""
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
    """The mean over queries. pages: as in `by_query`."""
    values, single, irrelevant = by_query(pages)
    if not values:
        return Ranked(None, None, None, 0, single, 0)
    queries = len(values)
    low, high = bootstrap(np.array(values)[:, None], lambda total: float(total[0]) / queries, seed=seed)
    return Ranked(fsum(values) / queries, low, high, queries, single, irrelevant)
