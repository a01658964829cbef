"""How often labels are in the documents of a set: buckets by the train count, and how far splits differ.

A document is here the set of its labels.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from annotate.core.aggregation.answer_table import Ints
from annotate.core.draws.hash_order import lot
from annotate.core.estimation.resampling import percentiles

FREQUENT_OVER = 50
FREQUENT, FEW, ZERO = BUCKETS = ("frequent", "few", "zero")
SHUFFLES = 200

Labels = AbstractSet[str]


def counts(documents: Iterable[Labels]) -> Counter[str]:
    """Label -> the documents that have it."""
    return Counter(label for labels in documents for label in labels)


def buckets(
    splits: Mapping[str, Iterable[Labels]], train: str, *, frequent_over: int = FREQUENT_OVER
) -> dict[str, frozenset[str]]:
    """Bucket -> its labels: those of more than `frequent_over` documents of the split `train`, of 1 to so many, and of
    none, of all labels that any split has (Chalkidis et al. 2019: 50). ValueError for less than 1, or where that split
    is missing.
    """
    if frequent_over < 1:
        raise ValueError(f"Frequent labels are those over 1 document or more, not over {frequent_over}.")
    if train not in splits:
        raise ValueError(f"There is no split {train!r}, whose documents are counted; there are {', '.join(splits)}.")
    found = {name: counts(documents) for name, documents in splits.items()}
    trained = found[train]
    used = set().union(*found.values())
    return {
        FREQUENT: frozenset(label for label in used if trained[label] > frequent_over),
        FEW: frozenset(label for label in used if 0 < trained[label] <= frequent_over),
        ZERO: frozenset(label for label in used if not trained[label]),
    }


def total_variation(first: Counter[str], second: Counter[str]) -> float | None:
    """Half the sum, over labels, of how far their shares differ: the part of either that would have to change; 0 where
    all shares are the same, 1 where no label is in both, None where one has no labels.

    The share of a label is that of all labels given, so those of a split add up to 1.
    """
    one, other = first.total(), second.total()
    if not (one and other):
        return None
    # In whole numbers, so that the order of the labels changes no bit.
    apart = sum(abs(first[label] * other - second[label] * one) for label in first.keys() | second.keys())
    return float(Fraction(apart, 2 * one * other))


class Apart(NamedTuple):
    """How far two splits differ in the shares of their labels, by total variation, and between what it lies in 95% of
    such splits by chance, None where one has no labels. Labels that are rare are never evenly split, so that two small
    splits differ by much."""

    value: float | None
    low: float | None
    high: float | None


def apart(first: Sequence[Labels], second: Sequence[Labels], *, seed: str) -> Apart:
    """By chance: the documents of both, shuffled, and split into as many as before. Documents are told apart by their
    place, so the same lists and seed give the same figures."""
    value = total_variation(counts(first), counts(second))
    if value is None:
        return Apart(None, None, None)
    documents = [*first, *second]
    place = {label: number for number, label in enumerate(counts(documents))}
    given = np.array([place[label] for labels in documents for label in labels])
    document = np.repeat(np.arange(len(documents)), [len(labels) for labels in documents])
    everything = np.bincount(given)
    shuffling = np.random.Generator(np.random.PCG64(int(lot(seed, "label shares", ""), 16)))
    found = []
    for _ in range(SHUFFLES):
        in_first = np.zeros(len(documents), dtype=np.bool_)
        in_first[shuffling.permutation(len(documents))[: len(first)]] = True
        some = np.bincount(given[in_first[document]], minlength=len(place))
        found.append(_apart(some, everything - some))
    return Apart(value, *percentiles(np.array(found)))


def _apart(some: Ints, others: Ints) -> float:
    """total_variation of two counts of the same labels; 0 where one of them is of none, as a part may be where most
    documents have no label.
    """
    one, other = int(some.sum()), int(others.sum())
    return int(np.abs(some * other - others * one).sum()) / (2 * one * other) if one and other else 0.0
