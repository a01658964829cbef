"""Distances of label sets: MASI, Jaccard and F1, for use in coefficients.py.

Each distance is an array (K, K) over K sets, from 0 for the same set to 1 for disjoint sets. An empty set raises
ValueError.
"""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import scipy  # loads `scipy.sparse` on first use

from annotate.core.aggregation.answer_table import Bools, Floats

Labels = AbstractSet[str]


def f1(said: Labels, known: Labels) -> float:
    """Return F1 of two label sets: 2 |both| / (|said| + |known|), which is symmetric.

    Raises ValueError for an empty set.
    """
    if not (said and known):
        raise ValueError("A set without labels has no F1; leave out what has none.")
    return 2 * len(said & known) / (len(said) + len(known))


def masi(sets: Sequence[Labels]) -> Floats:
    """Return MASI distances: 1 - J M, where J = |both| / |either|.

    M is 1 for equal sets, 2/3 if one contains the other, 1/3 if they overlap, and 0 if they are disjoint (Passonneau
    2006, Measuring Agreement on Set-valued Items (MASI) for Semantic and Pragmatic Annotation, LREC). NLTK rounds M to
    0.67 and 0.33.
    """
    common, sizes, other = _common(sets)
    both, less = common == np.maximum(sizes, other), common == np.minimum(sizes, other)
    kind = np.where(both, 3, np.where(less, 2, np.where(common > 0, 1, 0))) / 3
    apart: Floats = 1 - common / (sizes + other - common) * kind
    return apart


def jaccard(sets: Sequence[Labels]) -> Floats:
    """Return Jaccard distances: 1 - |both| / |either|.

    See Jaccard 1912, The Distribution of the Flora in the Alpine Zone, New Phytologist 11(2).
    """
    common, sizes, other = _common(sets)
    apart: Floats = 1 - common / (sizes + other - common)
    return apart


def unlike(sets: Sequence[Labels]) -> Floats:
    """Return 1 - F1 for each pair of sets."""
    common, sizes, other = _common(sets)
    apart: Floats = 1 - 2 * common / (sizes + other)
    return apart


def having(sets: Sequence[Labels], labels: Collection[str]) -> Bools:
    """Return which sets contain which labels, (sets, labels)."""
    found = np.array([[label in each for label in labels] for each in sets], dtype=np.bool_)
    return found.reshape(len(sets), len(labels))


def _common(sets: Sequence[Labels]) -> tuple[Floats, Floats, Floats]:
    """Return the number of labels that each pair of sets shares (K, K), and the set sizes as (K, 1) and (1, K).

    Raises ValueError for an empty set.
    """
    if not all(sets):
        raise ValueError("A set without labels has no distance from others; leave out what has none.")
    place = {label: number for number, label in enumerate(sorted(set().union(*sets)))}
    columns = [place[label] for each in sets for label in each]
    sizes = np.array([len(each) for each in sets], dtype=np.float64)
    ends = np.concatenate([[0], np.cumsum([len(each) for each in sets], dtype=np.int64)])
    # Sparse, because each set has only a few of thousands of labels.
    table = scipy.sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(sets), len(place)))
    common: Floats = (table @ table.T).toarray()
    return common, sizes[:, None], sizes[None, :]
