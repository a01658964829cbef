"""How far answers that are sets of labels differ: MASI, Jaccard, F1; what coefficients.py takes for distances.

Distances of each two of K sets, (K, K), from 0 for the same set to 1 for sets without a common label. ValueError for
an empty set, which no answer is.
"""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import scipy  # which loads its part `sparse` when it is first used

from annotate.core.aggregation.answer_table import Bools, Floats

Labels = AbstractSet[str]


def f1(said: Labels, known: Labels) -> float:
    """2 |both| / (|said| + |known|), the harmonic mean of precision and recall; either way round."""
    if not (said and known):
        raise ValueError("A set without labels has no F1; leave out what has none.")
    return 2 * len(said & known) / (len(said) + len(known))


def masi(sets: Sequence[Labels]) -> Floats:
    """1 - J M, with J = |both| / |either|, and M 1 where two sets are equal, 2/3 where one is a part of the other, 1/3
    where they have labels in common, and 0 where they have none (Passonneau 2006, Measuring Agreement on Set-valued
    Items (MASI) for Semantic and Pragmatic Annotation, LREC). NLTK rounds M to 0.67 and 0.33.
    """
    common, sizes, other = _common(sets)
    both, less = common == np.maximum(sizes, other), common == np.minimum(sizes, other)
    kind = np.where(both, 3, np.where(less, 2, np.where(common > 0, 1, 0))) / 3
    apart: Floats = 1 - common / (sizes + other - common) * kind
    return apart


def jaccard(sets: Sequence[Labels]) -> Floats:
    """1 - |both| / |either| (Jaccard 1912, The Distribution of the Flora in the Alpine Zone, New Phytologist 11(2))."""
    common, sizes, other = _common(sets)
    apart: Floats = 1 - common / (sizes + other - common)
    return apart


def unlike(sets: Sequence[Labels]) -> Floats:
    """1 - F1, as `f1` has it."""
    common, sizes, other = _common(sets)
    apart: Floats = 1 - 2 * common / (sizes + other)
    return apart


def having(sets: Sequence[Labels], labels: Collection[str]) -> Bools:
    """Which sets have which of the labels, in their order: (sets, labels)."""
    found = np.array([[label in each for label in labels] for each in sets], dtype=np.bool_)
    return found.reshape(len(sets), len(labels))


def _common(sets: Sequence[Labels]) -> tuple[Floats, Floats, Floats]:
    """How many labels each two sets have in common, (K, K), and how many each has, (K, 1) and (1, K)."""
    if not all(sets):
        raise ValueError("A set without labels has no distance from others; leave out what has none.")
    place = {label: number for number, label in enumerate(sorted(set().union(*sets)))}
    columns = [place[label] for each in sets for label in each]
    sizes = np.array([len(each) for each in sets], dtype=np.float64)
    ends = np.concatenate([[0], np.cumsum([len(each) for each in sets], dtype=np.int64)])
    # Thousands of labels, of which a set has few.
    table = scipy.sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(sets), len(place)))
    common: Floats = (table @ table.T).toarray()
    return common, sizes[:, None], sizes[None, :]
