"""How well a system's ranked labels find those that a document has: P@K, R@K, RP@K, nDCG@K, and micro-averaged F1.

The measures are those of Chalkidis et al. 2019, Extreme Multi-Label Legal Text Classification, and of their published
code (lmtc-eurlex57k). Documents without gold labels are left out. ndcg.py has the pages of a query, which have
grades; corpora/predictions/rankings.py makes rankings of scores.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.core.estimation.comparisons import Difference
from annotate.core.estimation.proportions import LEAST_COUNT, Estimate
from annotate.core.estimation.resampling import bayesian_bootstrap, bootstrap, randomization
from annotate.core.measures import accuracy_by_class

DEEPEST = 10  # 99.4% of the documents of EURLEX57K have at most ten labels

Labels = AbstractSet[str]
Ranking = Sequence[str]


class Judged(NamedTuple):
    """The labels of a document, and what a system says, best first, each label once."""

    gold: Labels
    ranking: Ranking


def with_gold(documents: Iterable[Judged]) -> list[Judged]:
    """Those that have gold labels."""
    return [each for each in documents if each.gold]


def within(documents: Iterable[Judged], bucket: Labels) -> list[Judged]:
    """With only the bucket's labels in gold and ranking, those that then have gold labels."""
    return with_gold(
        Judged(each.gold & bucket, [label for label in each.ranking if label in bucket]) for each in documents
    )


# --- at K


def at_each(documents: Sequence[Judged], deepest: int = DEEPEST) -> dict[str, Floats]:
    """Measure -> its value for each document and K from 1 to `deepest`: (documents, deepest), from 0 to 1.

    With R gold labels and hits among the first K, P@K = hits/K, R@K = hits/R, RP@K = hits/min(K, R), and nDCG@K is the
    sum of 1/log2(rank + 1) over the hits, divided by that of the first min(K, R) ranks. A ranking of fewer labels than
    K has no hits after its last. ValueError for a document without gold labels, or a label that is ranked twice.
    """
    hits = np.zeros((len(documents), deepest))
    for row, (gold, ranking) in enumerate(documents):
        _check(gold, ranking)
        found = [label in gold for label in ranking[:deepest]]
        hits[row, : len(found)] = found
    ranks = np.arange(1, deepest + 1)
    size = np.array([len(each.gold) for each in documents], dtype=np.int64)[:, None]
    reachable = np.minimum(size, ranks)
    so_far, discounts = hits.cumsum(axis=1), 1 / np.log2(ranks + 1)
    gains = (hits * discounts).cumsum(axis=1)
    return {
        "P": so_far / ranks,
        "R": so_far / size,
        "RP": so_far / reachable,
        "nDCG": gains / discounts.cumsum()[reachable - 1],
    }


def _check(gold: Labels, ranking: Ranking) -> None:
    if not gold:
        raise ValueError("A document without gold labels has no measure at K; leave it out.")
    if len(set(ranking)) < len(ranking):
        raise ValueError("A ranking has a label twice; give each label one rank.")


def means(documents: Sequence[Judged], deepest: int = DEEPEST, *, seed: str = "") -> dict[str, list[Estimate]]:
    """Measure -> its mean over documents at each K from 1 to `deepest`, with the interval for other documents drawn
    like these, as in by_class.py, or where values are sparse by the Bayesian bootstrap; UNKNOWN of no document.

    In 1,500 draws of 40 to 400 from the 20,000 simulated documents of tests/annotate/test_ranked_labels.py, those at
    K = 5 held the truth in 93.8% to 95.5%, and those of paired differences in 94.8% to 95.5%.
    """
    values = at_each(documents, deepest)
    found = {
        name: [accuracy_by_class.mean([accuracy_by_class.Drawn(1.0, column)]) for column in each.T]
        for name, each in values.items()
    }
    sparse = [(name, k) for name, each in values.items() for k, column in enumerate(each.T) if _is_sparse(column)]
    if sparse:
        lows, highs = bayesian_bootstrap(np.stack([values[name][:, k] for name, k in sparse], axis=1), seed=seed)
        for (name, k), low, high in zip(sparse, lows, highs, strict=True):
            mean = found[name][k]
            value = mean.value or 0.0
            found[name][k] = replace(mean, low=min(float(low), value), high=max(float(high), value))
    return found


def _is_sparse(values: Floats) -> bool:
    """Whether values add up to less than LEAST_COUNT hits, some of which are parts of one. Jeffreys' interval is too
    narrow there; of whole hits and misses it is right however few there are."""
    return bool(values.sum() < LEAST_COUNT and ((values > 0) & (values < 1)).any())


def differences(
    first: Sequence[Judged], second: Sequence[Judged], deepest: int = DEEPEST
) -> dict[str, list[Difference | None]]:
    """Measure -> what the first system reaches less what the second does, paired by document, at each K.

    ValueError unless both are of the same documents in the same order.
    """
    _check_same(first, second)
    ones, others = at_each(first, deepest), at_each(second, deepest)
    return {
        name: [
            accuracy_by_class.difference([accuracy_by_class.Drawn(1.0, one)], [accuracy_by_class.Drawn(1.0, other)])
            for one, other in zip(ones[name].T, others[name].T, strict=True)
        ]
        for name in ones
    }


def p_values(first: Sequence[Judged], second: Sequence[Judged], at: int, *, seed: str) -> dict[str, float]:
    """Measure -> the p-value of the randomization test that both systems reach the same at K = `at`; Chalkidis et al.
    2019 test theirs so. ValueError unless both are of the same documents in the same order."""
    _check_same(first, second)
    ones, others = at_each(first, at), at_each(second, at)
    return {
        name: randomization(ones[name][:, -1:], others[name][:, -1:], lambda sums: sums[0], seed=seed) for name in ones
    }


def _check_same(first: Sequence["Judged | Answered"], second: Sequence["Judged | Answered"]) -> None:
    if [each.gold for each in first] != [each.gold for each in second]:
        raise ValueError("The two systems are not measured on the same documents in the same order; give the same.")


# --- sets of labels


class Answered(NamedTuple):
    """The labels of a document, and those that a system gives it."""

    gold: Labels
    said: Labels


class Share(NamedTuple):
    """A figure with its 95% interval over documents. value: None of nothing. low, high: None of fewer than 20
    documents, where all say the same (resampling.py), or where some of the drawings have nothing to count."""

    value: float | None
    low: float | None
    high: float | None


class Micro(NamedTuple):
    """Of all labels of all documents together: precision, of those that were given, recall, of the gold labels, and F1;
    hits, said, gold: how many."""

    precision: Share
    recall: Share
    f1: Share
    hits: int
    said: int
    gold: int


def first_of(documents: Iterable[Judged], number: int | None) -> list[Answered]:
    """The first so many labels of each ranking, taken for the answer; None for all of them."""
    return [Answered(each.gold, frozenset(each.ranking[:number])) for each in documents]


def above(scores: Mapping[str, float], threshold: float) -> frozenset[str]:
    """The labels with a score of the threshold or more."""
    return frozenset(label for label, score in scores.items() if score >= threshold)


def with_ancestors(labels: Iterable[str], parents: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The labels and all their ancestors. parents: label -> its parents, of which a label may have several; a circle
    ends where it began."""
    found: set[str] = set()
    left = [*labels]
    while left:
        label = left.pop()
        if label not in found:
            found.add(label)
            left += parents.get(label, ())
    return frozenset(found)


def widened(documents: Iterable[Answered], parents: Mapping[str, Collection[str]]) -> list[Answered]:
    """With all ancestors on both sides, so that a near miss costs less than a far one."""
    return [Answered(with_ancestors(each.gold, parents), with_ancestors(each.said, parents)) for each in documents]


# Sums over documents of hits, labels given, and gold labels -> a share, NaN of nothing.
_Ratio = Callable[[Floats], float]


def _over(sums: Floats, whole: float) -> float:
    return float(sums[0] / whole) if whole else float("nan")


_RATIOS: dict[str, _Ratio] = {
    "precision": lambda sums: _over(sums, sums[1]),
    "recall": lambda sums: _over(sums, sums[2]),
    "f1": lambda sums: _over(2 * sums, sums[1] + sums[2]),
}


def micro(documents: Sequence[Answered], *, seed: str) -> Micro:
    """Documents without gold labels count too: what a system gives them is wrong."""
    table = _table(documents)
    hits, said, gold = (int(number) for number in table.sum(axis=0))
    shares = {name: _share(table, ratio, seed) for name, ratio in _RATIOS.items()}
    return Micro(**shares, hits=hits, said=said, gold=gold)


def micro_differences(first: Sequence[Answered], second: Sequence[Answered], *, seed: str) -> dict[str, Share]:
    """precision, recall and f1 of the first system less those of the second, the same documents being drawn again for
    both. ValueError unless both are of the same documents in the same order."""
    _check_same(first, second)
    table = np.concatenate([_table(first), _table(second)], axis=1)

    def less(ratio: _Ratio) -> _Ratio:
        return lambda sums: ratio(sums[:3]) - ratio(sums[3:])

    return {name: _share(table, less(ratio), seed) for name, ratio in _RATIOS.items()}


def micro_p_value(first: Sequence[Answered], second: Sequence[Answered], *, seed: str) -> float:
    """Of the randomization test that both systems reach the same micro-averaged F1. ValueError unless both are of the
    same documents in the same order."""
    _check_same(first, second)

    def f1(sums: Floats) -> Floats:
        # Whole numbers, of which only 0 is below 1: where nothing is given and nothing is gold.
        found: Floats = 2 * sums[0] / np.maximum(sums[1] + sums[2], 1)
        return found

    return randomization(_table(first), _table(second), f1, seed=seed)


def _table(documents: Sequence[Answered]) -> Floats:
    rows = [(len(each.gold & each.said), len(each.said), len(each.gold)) for each in documents]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def _share(table: Floats, ratio: _Ratio, seed: str) -> Share:
    value = ratio(table.sum(axis=0))
    if np.isnan(value):
        return Share(None, None, None)
    return Share(value, *bootstrap(table, ratio, seed=seed))
