"""Accuracy, and how far two systems are apart in it, on documents that were drawn class by class.

Where a set has so many documents of each class, chance only chose which ones. What the classes differ by is then no
error of sampling, and an interval of the plain count, which takes it for one, is too wide.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # which loads its parts when they are first used

from annotate.core.aggregation.answer_table import Ints
from annotate.core.estimation.comparisons import Difference, paired
from annotate.core.estimation.proportions import UNKNOWN, Estimate, jeffreys

Values = npt.NDArray[np.float64]


class Drawn(NamedTuple):
    """The documents of one class in one language. weight: of the class in the figure; those of all classes and
    languages add up to 1. values: what each document counts, from 0 to 1, in their order; for one system 1 if it is
    right and 0 if not, for several the mean of that. units: the number of the unit that each document is part of, the
    same for translations of one document in several languages; None where each document is a unit by itself.
    """

    weight: float
    values: Values
    units: Ints | None = None


def mean(classes: Sequence[Drawn]) -> Estimate:
    """The weighted mean of the classes' means, with Jeffreys' interval of its effective count; UNKNOWN of no document.

    The effective count is that of a plain sample whose variance is that of a stratified one (Cochran 1977, Sampling
    Techniques, 3rd edition, section 5.3; intervals of effective counts: Franco, Little, Louis and Slud 2019, Journal of
    Survey Statistics and Methodology 7(3)). To each class one document is added that is as all documents together,
    so that a class of which all are right is not taken for one without errors. The same documents under several
    systems are one value each here, so that they count once, however many systems were right on them; and so are the
    translations of a document.
    """
    drawn = _by_unit(classes)
    if not drawn:
        return UNKNOWN
    value = min(1.0, max(0.0, sum(each.weight * float(each.values.mean()) for each in drawn)))
    spread = _covariance([(each.weight, each.values, each.values) for each in drawn])
    whole = 1 / sum(each.weight**2 / len(each.values) for each in drawn)
    # None where every document counts alike, but for the last bits of a float.
    count = value * (1 - value) / spread if 0 < value < 1 and spread * whole > 1e-9 else whole
    return Estimate(value, *jeffreys(value * count, count), value * count, count)


def difference(first: Sequence[Drawn], second: Sequence[Drawn]) -> Difference | None:
    """What the first reaches less what the second does on the same documents, with its interval; None of no document.

    first, second: the same classes with the same weights and documents. Only those count on which one of the two is
    better: by how much the first is, less by how much the second is, each as in `mean`, with their correlation
    (comparing.paired).
    """
    better: list[tuple[Drawn, Drawn]] = []
    for one, other in zip(first, second, strict=True):
        apart = one.values - other.values
        better.append((one._replace(values=np.maximum(apart, 0)), one._replace(values=np.maximum(-apart, 0))))
    ups, downs = (_by_unit(side) for side in ([up for up, _ in better], [down for _, down in better]))
    return paired(mean(ups), mean(downs), _correlation(ups, downs))


def _correlation(first: Sequence[Drawn], second: Sequence[Drawn]) -> float:
    pairs = [(one.weight, one.values, other.values) for one, other in zip(first, second, strict=True)]
    both = _covariance(pairs)
    squared = _covariance([(w, a, a) for w, a, _ in pairs]) * _covariance([(w, b, b) for w, _, b in pairs])
    return max(-1.0, min(1.0, both / sqrt(squared))) if squared > 0 else 0.0


def _by_unit(classes: Sequence[Drawn]) -> list[Drawn]:
    """The classes that have documents, those with units in common made one class, of these units.

    A unit's value is the mean, and what its documents add to the figure beyond what documents of their class and
    language do: the residuals of a sample of clusters (Cochran 1977, section 9A.4). Where each unit is in all
    languages, it is the mean over its translations.
    """
    drawn = [each for each in classes if len(each.values)]
    if not drawn or any(each.units is None for each in drawn):
        return drawn
    places = np.repeat(np.arange(len(drawn)), [len(each.values) for each in drawn])
    units = np.unique(np.concatenate([each.units for each in drawn if each.units is not None]), return_inverse=True)[1]
    has = scipy.sparse.csr_array((np.ones(len(units)), (places, units)), shape=(len(drawn), units.max() + 1))
    _, group = scipy.sparse.csgraph.connected_components(has @ has.T, directed=False)
    residuals = np.concatenate([each.weight / len(each.values) * (each.values - each.values.mean()) for each in drawn])
    found = []
    for number in range(group.max() + 1):
        own = np.flatnonzero(group == number)
        if len(own) == 1:
            found.append(drawn[own[0]])
            continue
        weight = sum(drawn[place].weight for place in own)
        value = sum(drawn[place].weight * float(drawn[place].values.mean()) for place in own) / weight
        inside = np.isin(places, own)
        sums = np.bincount(units[inside], weights=residuals[inside])[np.unique(units[inside])]
        found.append(Drawn(weight, value + sums * len(sums) / weight))
    return found


def _covariance(drawn: Sequence[tuple[float, Values, Values]]) -> float:
    """Of two weighted means of the same documents, with one more in each class that is as all together."""

    def together(parts: Sequence[Values]) -> float:
        return sum(weight * float(part.mean()) for (weight, _, _), part in zip(drawn, parts, strict=True))

    one, other = together([a for _, a, _ in drawn]), together([b for _, _, b in drawn])
    both = together([a * b for _, a, b in drawn])
    found = 0.0
    for weight, a, b in drawn:
        moment, first, second = float((a * b).sum()) + both, float(a.sum()) + one, float(b.sum()) + other
        # Of one more than there are, with one less as the divisor, as in the covariance of a sample.
        found += (weight / len(a)) ** 2 * (moment - first * second / (len(a) + 1))
    return found
