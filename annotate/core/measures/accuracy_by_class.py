"""Accuracy of one system, or the difference between two systems, on documents drawn class by class.

If a set has a fixed number of documents per class, chance only decides which documents of each class it contains.
Differences between classes are then not sampling error. An interval that treated all documents as one random sample
would be too wide.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # loads its subpackages on first use

from annotate.core.aggregation.answer_table import Ints
from annotate.core.estimation.differences import Difference, paired
from annotate.core.estimation.proportions import UNKNOWN, Estimate, jeffreys

Values = npt.NDArray[np.float64]


class Drawn(NamedTuple):
    """The documents of one class in one language.

    weight: weight of the class in the figure. The weights of all classes and languages add up to 1.
    values: value of each document, from 0 to 1. For one system, it is 1 if the system is right and 0 if not. For
        several systems, it is their mean.
    units: index of each document's unit. A document and its translations have the same unit. None if each document is a
        unit.
    """

    weight: float
    values: Values
    units: Ints | None = None


def mean(classes: Sequence[Drawn]) -> Estimate:
    """Estimate the weighted mean of the class means, with Jeffreys' interval at the effective size.

    The effective size is that of a simple random sample with the same variance (Cochran 1977, Sampling Techniques, 3rd
    edition, section 5.3; for intervals at effective sizes Franco, Little, Louis and Slud 2019, Journal of Survey
    Statistics and Methodology 7(3)). To compute the variance, one document with the mean value of all documents is
    added to each class. Otherwise, a class in which no errors were observed would count as free of errors. A document
    that several systems labelled counts once, and so does a document with its translations.

    Return UNKNOWN if there are no documents.
    """
    drawn = _by_unit(classes)
    if not drawn:
        return UNKNOWN
    value = min(1.0, max(0.0, sum(each.weight * float(each.values.mean()) for each in drawn)))
    spread = _covariance([(each.weight, each.values, each.values) for each in drawn])
    whole = 1 / sum(each.weight**2 / len(each.values) for each in drawn)
    # The variance is zero, up to rounding, if all documents have the same value.
    count = value * (1 - value) / spread if 0 < value < 1 and spread * whole > 1e-9 else whole
    return Estimate(value, *jeffreys(value * count, count), value * count, count)


def difference(first: Sequence[Drawn], second: Sequence[Drawn]) -> Difference | None:
    """Estimate the difference between two systems on the same documents, first minus second.

    The estimate is the mean amount by which the first system is better, minus the mean amount by which the second is
    better. Documents on which both systems are equal contribute to neither mean. The interval allows for the
    correlation of the two means (differences.paired).

    first, second: the values of each system, for the same classes with the same weights and documents.

    Return None if there are no documents.
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
    """Merge classes that share units, and drop empty classes.

    In a merged class, the value of a unit is the mean of the class plus the residuals of the unit's documents within
    their class and language, as in cluster sampling (Cochran 1977, section 9A.4). If each unit appears in all
    languages, this is the mean over its translations.
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
    """Return the covariance of two weighted means over the same documents, with a mean document added to each class."""

    def together(parts: Sequence[Values]) -> float:
        return sum(weight * float(part.mean()) for (weight, _, _), part in zip(drawn, parts, strict=True))

    one, other = together([a for _, a, _ in drawn]), together([b for _, _, b in drawn])
    both = together([a * b for _, a, b in drawn])
    found = 0.0
    for weight, a, b in drawn:
        moment, first, second = float((a * b).sum()) + both, float(a.sum()) + one, float(b.sum()) + other
        # This is the sample covariance, with divisor n - 1, of the documents and the added document.
        found += (weight / len(a)) ** 2 * (moment - first * second / (len(a) + 1))
    return found
