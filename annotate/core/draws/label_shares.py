"""Label frequencies in the documents of a set: buckets by training frequency, and differences between splits.

A document is represented by the set of its labels.
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
    """Return the number of documents with each label."""
    return Counter(label for labels in documents for label in labels)


def buckets(
    splits: Mapping[str, Iterable[Labels]], train: str, *, frequent_over: int = FREQUENT_OVER
) -> dict[str, frozenset[str]]:
    """Group the labels of all splits by their frequency in the split `train` (Chalkidis et al. 2019).

    frequent_over: number of documents above which a label is frequent.

    Returns the labels that are frequent, few (at least one document) and zero. Raises ValueError if `frequent_over` is
    below 1 or the split is missing.
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
    """Return the total variation distance of two label distributions, from 0 for equal to 1 for disjoint.

    It is half the sum of the absolute differences of the labels' shares. The shares of all labels in a split add up to
    1. Returns None if either split has no labels.
    """
    one, other = first.total(), second.total()
    if not (one and other):
        return None
    # Integers, so that the order of the labels cannot change the result.
    apart = sum(abs(first[label] * other - second[label] * one) for label in first.keys() | second.keys())
    return float(Fraction(apart, 2 * one * other))


class Apart(NamedTuple):
    """Distance of the label distributions of two splits.

    Rare labels are never evenly split, so two small splits differ considerably by chance alone.

    value: total variation distance; None if either split has no labels.
    low, high: range that holds 95% of random splits of the same sizes.
    """

    value: float | None
    low: float | None
    high: float | None


def apart(first: Sequence[Labels], second: Sequence[Labels], *, seed: str) -> Apart:
    """Compare the label distributions of two splits with those of random splits of the same documents.

    The same lists and seed give the same result.
    """
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
    """Return the total variation distance of two label counts; 0 if either is empty.

    A random part may be empty if most documents have no label.
    """
    one, other = int(some.sum()), int(others.sum())
    return int(np.abs(some * other - others * one).sum()) / (2 * one * other) if one and other else 0.0
