"""Measures of how well predicted labels agree with gold labels (accuracy, F1, kappa, MCC), with one label per unit.

Each measure can be computed from the diagonal of the confusion matrix, its margins, and the sums of absolute and
squared errors. The jackknife leaves out one group of units at a time, so it only needs these sums for each group.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np
import scipy

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
from annotate.core.estimation.differences import Difference, paired
from annotate.core.estimation.proportions import SLACK, UNKNOWN, Estimate, Z, jeffreys, mover, proportion, with_interval
from annotate.core.estimation.resampling import LEAST_LEFT_OUT, LEAST_UNITS

AT_ONCE = 1 << 22  # maximum number of cells per margin in memory


@dataclass(frozen=True)
class Margins:
    """Weighted sums over units, by label (..., K) or in total (...).

    both: weight of units whose gold and predicted labels are both this label, (..., K).
    gold: weight of units with this gold label, (..., K).
    predicted: weight of units with this predicted label, (..., K).
    distances: weighted sum of the distances between gold and predicted indices, (...).
    squares: weighted sum of the squared distances, (...).
    """

    both: Floats
    gold: Floats
    predicted: Floats
    distances: Floats
    squares: Floats

    @property
    def total(self) -> Floats:
        total: Floats = self.gold.sum(axis=-1)
        return total


Measure = Callable[[Margins], Floats]


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole. Where whole is 0, the result is 0, as in scikit-learn with zero_division=0."""
    ratio: Floats = np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=whole > SLACK)
    return ratio


def accuracy(of: Margins) -> Floats:
    return _ratio(of.both.sum(axis=-1), of.total)


def precisions(of: Margins) -> Floats:
    return _ratio(of.both, of.predicted)


def recalls(of: Margins) -> Floats:
    return _ratio(of.both, of.gold)


def f1s(of: Margins) -> Floats:
    return _ratio(2 * of.both, of.gold + of.predicted)


def macro(measure: Measure, labels: Bools) -> Measure:
    """Return the unweighted mean of a measure over labels, as a function of the margins.

    measure: function from margins to one value per label, (..., K).
    labels: whether each label counts, (K,).
    """
    return lambda of: measure(of)[..., labels].mean(axis=-1)


def kappa(of: Margins) -> Floats:
    """Return Cohen's kappa (Cohen 1960, Educational and Psychological Measurement 20(1)).

    Kappa is 0 if the agreement expected by chance is 1.
    """
    total = of.total
    expected = _ratio((of.gold * of.predicted).sum(axis=-1), total**2)
    return _ratio(accuracy(of) - expected, 1 - expected)


def matthews(of: Margins) -> Floats:
    """Return the multiclass Matthews correlation coefficient (Gorodkin 2004, Computational Biology and Chemistry 28).

    The coefficient is 0 if all gold labels or all predictions are the same.
    """
    total = of.total
    product = total**2 - (of.gold**2).sum(axis=-1), total**2 - (of.predicted**2).sum(axis=-1)
    covariance = of.both.sum(axis=-1) * total - (of.gold * of.predicted).sum(axis=-1)
    spread = np.sqrt(np.maximum(product[0], 0) * np.maximum(product[1], 0))
    return np.asarray(np.where(spread > SLACK * total**2, _ratio(covariance, spread), 0.0))


def weighted_kappa(of: Margins) -> Floats:
    """Return Cohen's kappa with quadratic weights for ordered labels (Cohen 1968, Psychological Bulletin 70(4)).

    Kappa is 0 if all gold labels and all predictions are the same label.
    """
    place = np.arange(of.gold.shape[-1], dtype=np.float64)
    first, second = (side @ place for side in (of.gold, of.predicted))
    expected = of.total * (of.gold @ place**2 + of.predicted @ place**2) - 2 * first * second
    return np.asarray(np.where(expected > SLACK, 1 - _ratio(of.squares * of.total, expected), 0.0))


def mean_absolute_error(of: Margins) -> Floats:
    """Return the mean absolute difference between the indices of the gold and the predicted label."""
    return _ratio(of.distances, of.total)


@dataclass(frozen=True)
class Paired:
    """Gold and predicted labels of n units.

    gold, predicted: label indices, (n,).
    labels: number K of labels.
    weights: number of units of the population that each unit represents, (n,).
    groups: index of each unit's group, (n,), if units were drawn in groups; None otherwise.
    """

    gold: Ints
    predicted: Ints
    labels: int
    weights: Floats
    groups: Ints | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the units are a simple random sample."""
        return self.groups is None and (len(self.weights) == 0 or bool(np.ptp(self.weights) <= SLACK))

    @property
    def strata(self) -> Ints:
        """The stratum of each unit, (n,).

        Units with the same weight form a stratum. Strata with a single unit are merged into one.
        """
        _, strata, sizes = np.unique(self.weights, return_inverse=True, return_counts=True)
        return np.where(sizes[strata] > 1, strata, len(sizes))

    def where(self, selected: Bools) -> "Paired":
        groups = None if self.groups is None else self.groups[selected]
        return Paired(self.gold[selected], self.predicted[selected], self.labels, self.weights[selected], groups)

    @cached_property
    def margins(self) -> Margins:
        is_right = self.gold == self.predicted
        return Margins(
            self._sums(self.gold[is_right], self.weights[is_right])[0],
            self._sums(self.gold, self.weights)[0],
            self._sums(self.predicted, self.weights)[0],
            np.asarray((self.weights * np.abs(self.gold - self.predicted)).sum()),
            np.asarray((self.weights * (self.gold - self.predicted) ** 2).sum()),
        )

    def _sums(self, label: Ints, weights: Floats, part: Ints | int = 0, size: int = 1) -> Floats:
        """Return sums of weights by part and label, (size, K).

        label: index of each unit's label.
        weights: weight of each unit.
        part: index of each unit's part.
        size: number of parts.
        """
        sums = np.bincount(part * self.labels + label, weights, size * self.labels)
        return sums.astype(np.float64).reshape(size, self.labels)

    @property
    def confusion(self) -> Floats:
        """The weighted confusion matrix, (K, K), with gold labels in rows and predicted labels in columns."""
        cells = np.bincount(self.gold * self.labels + self.predicted, self.weights, self.labels**2)
        return cells.astype(np.float64).reshape(self.labels, self.labels)

    # --- Shares

    def share(self, hits: Bools, domain: Bools) -> Estimate:
        """Estimate the share of hits in a domain.

        For a simple random sample, the estimate has the Jeffreys interval. If the weights differ, see
        `stratified_share`. If units were drawn in groups, it has the Jeffreys interval at the effective sample size,
        which follows from the linearized variance of a ratio (Cochran 1977, Sampling Techniques, 3rd edition, sections
        2.11 and 9A; Franco, Little, Louis and Slud 2019).

        hits, domain: whether each unit is a hit, and whether it is in the domain, (n,).
        """
        hits = hits & domain
        if self.is_plain:
            return proportion(int(hits.sum()), int(domain.sum()))
        if not domain.any():
            return UNKNOWN
        if self.groups is None:
            return stratified_share(hits, domain, self.weights, self.strata)
        weights = self.weights[domain]
        _, groups = np.unique(self.groups[domain], return_inverse=True)
        hit, whole = (np.bincount(groups, of).astype(np.float64) for of in (weights * hits[domain], weights))
        return clustered(hit, whole)

    @property
    def right(self) -> Bools:
        matches: Bools = self.gold == self.predicted
        return matches

    def mean(self, values: Floats) -> Difference:
        """Estimate the weighted mean of non-negative values.

        The interval is normal, with the linearized variance between groups (or between units without groups). There is
        no interval with fewer than LEAST_UNITS units or groups.

        values: value of each unit, (n,).
        """
        places = np.arange(len(values)) if self.groups is None else np.unique(self.groups, return_inverse=True)[1]
        sums, whole = np.bincount(places, self.weights * values), np.bincount(places, self.weights)
        number, total = len(whole), float(whole.sum())
        mean = float(sums.sum()) / total
        if number < LEAST_UNITS:
            return Difference(mean, -1.0, 1.0)
        off = Z * sqrt(float(((sums - mean * whole) ** 2).sum()) / total**2 * number / (number - 1))
        return Difference(mean, max(0.0, mean - off), mean + off)

    # --- Other measures

    def estimate(self, measure: Measure, of_labels: Sequence[int] = ()) -> Estimate:
        """Estimate a measure between 0 and 1, with the Jeffreys interval at the effective sample size.

        The effective size follows from the jackknife variance. If this variance is 0, the measure is treated as a mean
        of independent shares, one per label. `of_labels` holds their sample sizes.

        measure: function from margins to the measure.
        of_labels: number of units of each label that the measure averages over. By default, the measure is treated as a
            single share of all units.
        """
        value = min(1.0, max(0.0, float(measure(self.margins))))
        units, spread = self._jackknife(measure)
        size = len(of_labels) ** 2 / sum(1 / size for size in of_labels) if of_labels else float(units)
        count = value * (1 - value) / spread if 0 < value < 1 and spread * units > SLACK else min(units, size)
        if units < LEAST_LEFT_OUT:
            return Estimate(value, 0.0, 1.0, value * count, count)
        return Estimate(value, *jeffreys(value * count, count), value * count, count)

    def coefficient(self, measure: Measure) -> Difference:
        """Estimate a measure between -1 and 1, with a normal jackknife interval on Fisher's z scale.

        The interval is -1 to 1 if there are fewer than LEAST_UNITS units, or if the jackknife variance is 0.
        """
        value = float(measure(self.margins))
        units, spread = self._jackknife(measure)
        if units < LEAST_UNITS or spread * units <= SLACK or abs(value) >= 1:
            return Difference(value, -1.0, 1.0)
        off = Z * sqrt(spread) / (1 - value**2)
        return Difference(value, float(np.tanh(np.arctanh(value) - off)), float(np.tanh(np.arctanh(value) + off)))

    def _jackknife(self, measure: Measure) -> tuple[int, float]:
        """Return the number of units or groups, and the jackknife variance of a measure."""
        parts, times = self._parts
        units = int(times.sum())
        if units < 2:
            return units, 0.0
        values = np.concatenate([np.asarray(measure(margins)) for margins in self._without(parts)])
        mean = float((values * times).sum()) / units
        return units, float(((values - mean) ** 2 * times).sum()) * (units - 1) / units

    @cached_property
    def _parts(self) -> tuple[tuple[Ints, ...], Floats]:
        """The parts that the jackknife leaves out, and the multiplicity of each part.

        If there are groups, each group is a part. Otherwise, leaving out any of the units with the same gold label,
        prediction and weight gives the same result. One of these units is then the part, and their number is its
        multiplicity.

        The first element is a pair of arrays: the index of a part, and the index of a unit in this part.
        """
        places = np.arange(len(self.gold))
        if self.groups is not None:
            _, parts = np.unique(self.groups, return_inverse=True)
            return (parts, places), np.ones(int(parts.max()) + 1 if len(parts) else 0)
        return _distinct_rows(self.gold, self.predicted, self.weights)

    def _without(self, parts: tuple[Ints, ...]) -> Iterator[Margins]:
        """Yield the margins without each part, in chunks that fit into memory."""
        number, place = parts
        count = int(number.max()) + 1 if len(number) else 0
        step = max(1, AT_ONCE // max(1, self.labels))
        for begun in range(0, count, step):
            taken = (number >= begun) & (number < begun + step)
            part, units = number[taken] - begun, place[taken]
            size = min(step, count - begun)
            gold, predicted, weights = self.gold[units], self.predicted[units], self.weights[units]
            whole, distances = self.margins, np.abs(gold - predicted)
            yield Margins(
                np.maximum(whole.both - self._sums(gold, weights * (gold == predicted), part, size), 0.0),
                np.maximum(whole.gold - self._sums(gold, weights, part, size), 0.0),
                np.maximum(whole.predicted - self._sums(predicted, weights, part, size), 0.0),
                np.maximum(whole.distances - np.bincount(part, weights * distances, size), 0.0),
                np.maximum(whole.squares - np.bincount(part, weights * distances**2, size), 0.0),
            )


def _distinct_rows(*columns: Ints | Floats) -> tuple[tuple[Ints, ...], Floats]:
    """Return the distinct rows of several columns and their multiplicities, as `Paired._parts` does."""
    order = np.lexsort(columns[::-1])
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    begun = np.flatnonzero(begins)
    return (np.arange(len(begun)), order[begun]), np.diff(begun, append=len(order)).astype(np.float64)


def clustered(hits: Floats, of: Floats) -> Estimate:
    """Estimate a share from the weighted sums of each group; see `Paired.share`.

    hits: weight of each group's hits, (groups,).
    of: weight of each group's units in the domain, (groups,).
    """
    groups, whole = len(of), float(of.sum())
    if not whole:
        return UNKNOWN
    value = min(1.0, max(0.0, float(hits.sum()) / whole))
    most = whole**2 / float((of**2).sum())
    count = most
    if 0 < value < 1 and groups > 1:
        spread = float(((hits - value * of) ** 2).sum()) / whole**2 * groups / (groups - 1)
        count = value * (1 - value) / spread if spread > SLACK / most else most
    return Estimate(value, *jeffreys(value * count, count), value * count, count)


Comparison = tuple[Difference | None, float | None]


def compare(
    first: Paired, second: Paired, measure: Measure, other: Measure | None = None, *, most: Sequence[float] = (1.0,)
) -> list[Comparison]:
    """Compare two systems on the same units in M measures.

    first, second: labels of the two systems, with the same gold labels, weights and groups.
    measure: function from margins to the measures of the first system, (..., M).
    other: the same for the second system; `measure` by default.
    most: largest possible difference in each measure, (M,).

    For each measure, return the difference with its normal jackknife interval, and the two-sided p-value of the
    hypothesis that the difference is zero. Both are None if there are fewer than LEAST_UNITS units or groups, or if the
    systems differ but the jackknife variance is 0.
    """
    other = other or measure
    values = np.atleast_1d(measure(first.margins) - other(second.margins))
    units, spreads = _PairedSystems(first, second).jackknife(measure, other, values)
    return [
        _difference(float(value), float(spread), units, end)
        for value, spread, end in zip(values, spreads, most, strict=True)
    ]


def _difference(value: float, spread: float, units: int, most: float) -> Comparison:
    if units < LEAST_UNITS:
        return None, None
    if spread * units <= SLACK:
        return (Difference(0.0, 0.0, 0.0), 1.0) if abs(value) <= SLACK else (None, None)
    off = Z * sqrt(spread)
    p = 2 * float(scipy.special.ndtr(-abs(value) / sqrt(spread)))
    return Difference(value, max(-most, value - off), min(most, value + off)), p


@dataclass(frozen=True)
class _PairedSystems:
    first: Paired
    second: Paired

    def jackknife(self, measure: Measure, other: Measure, values: Floats) -> tuple[int, Floats]:
        """Return the number of units or groups, and the stratified jackknife variance of each difference, (M,).

        See Wolter 2007, Introduction to Variance Estimation, 2nd edition, section 4.5. Leaving out any of the units
        with the same gold label, weight and predictions gives the same result, so we compute it once for all of them.

        values: differences on all units, (M,).
        """
        one, two = self.first, self.second
        parts, times = (
            _distinct_rows(one.gold, one.predicted, two.predicted, one.weights) if one.groups is None else one._parts
        )
        if (units := int(times.sum())) < 2:
            return units, np.zeros_like(values)
        strata, begun = np.zeros(len(times), dtype=np.int64), 0
        if one.groups is None:
            number, place = parts
            strata[number] = one.strata[place]
        sizes = np.bincount(strata, times).astype(np.float64)[:, None]
        sums, squares = (np.zeros((len(sizes), len(values))) for _ in range(2))
        for mine, theirs in zip(one._without(parts), two._without(parts), strict=True):
            # Centre the differences to avoid loss of precision.
            changed = (measure(mine) - other(theirs)).reshape(-1, len(values)) - values
            chunk = slice(begun, begun := begun + len(changed))
            np.add.at(sums, strata[chunk], times[chunk, None] * changed)
            np.add.at(squares, strata[chunk], times[chunk, None] * changed**2)
        spread = np.maximum(squares - _ratio(sums**2, sizes), 0.0) * _ratio(sizes - 1, sizes)
        return units, spread.sum(axis=0)


def places_of(values: Sequence[str], labels: Sequence[str]) -> Ints:
    """Return the index of each value among the labels, (n,). Raise KeyError for an unknown label."""
    places = {label: place for place, label in enumerate(labels)}
    return np.fromiter((places[value] for value in values), dtype=np.int64, count=len(values))


# --- Shares from strata with different inclusion probabilities


def stratified_share(hits: Bools, domain: Bools, weights: Floats, strata: Ints) -> Estimate:
    """Estimate the share of hits in a domain from a stratified sample.

    MOVER combines three sources of error (Zou and Donner 2008, Statistics in Medicine 27(10)). The first is the share
    within each stratum, with the Jeffreys interval. The second is the size of the domain in each stratum, which is
    itself an estimate (Cochran 1977, Sampling Techniques, 3rd edition, section 5A.14). The third is that the domain may
    include units in strata where none were observed. A stratum without errors therefore still has an interval, although
    its linearized variance is 0.

    hits, domain: whether each unit is a hit, and whether it is in the domain, (n,). At least one unit is in the domain.
    weights: number of units that each unit represents, (n,).
    strata: stratum of each unit, (n,).
    """
    _, strata = np.unique(strata, return_inverse=True)

    def sums(of: Floats) -> Floats:
        return np.bincount(strata, of).astype(np.float64)

    sizes, observed = sums(np.ones(len(weights))), sums(domain.astype(np.float64))
    whole, right, squares = sums(weights * domain), sums(weights * (hits & domain)), sums(weights**2 * domain)
    total = float(whole.sum())
    value = float(right.sum()) / total
    seen = observed > 0
    shares, counts = right[seen] / whole[seen], whole[seen] ** 2 / squares[seen]
    ends = [
        (value - part * (share - low), value + part * (high - share))
        for share, part, count in zip(shares, whole[seen] / total, counts, strict=True)
        for low, high in [jeffreys(min(count, share * count), count)]
    ]
    off = float(np.sqrt((squares[seen] * (1 - observed[seen] / sizes[seen]) * (shares - value) ** 2).sum())) / total
    unobserved = zip(sums(weights)[~seen], sizes[~seen], strict=True)
    unseen = hypot(*(weight * jeffreys(0, size)[1] for weight, size in unobserved))
    ends += [(value - off, value + off), tuple(np.array([value * total, value * total + unseen]) / (total + unseen))]
    return with_interval(value, *mover(value, ends), float(observed.sum()))


# --- Accuracy of one system, or the difference between two systems, on documents drawn class by class.
#
# If a set has a fixed number of documents per class, chance only decides which documents of each class it contains, so
# differences between classes aren't sampling error. An interval for a simple random sample would be too wide.


class ClassSample(NamedTuple):
    """The documents of one class in one language.

    weight: weight of the class in the estimate. The weights of all classes and languages add up to 1.
    values: score of each document: 1 if the system is right and 0 if not, or the mean over several systems.
    units: index of each document's unit. A document and its translations are one unit. None if each document is its own
        unit.
    """

    weight: float
    values: Floats
    units: Ints | None = None


def mean(classes: Sequence[ClassSample]) -> Estimate:
    """Estimate the weighted mean of the class means, with the Jeffreys interval at the effective sample size.

    The effective size is that of a simple random sample with the same variance (Cochran 1977, Sampling Techniques, 3rd
    edition, section 5.3; for intervals at effective sizes Franco, Little, Louis and Slud 2019, Journal of Survey
    Statistics and Methodology 7(3)). To compute the variance, one document with the overall mean is added to each
    class. Otherwise, a class without observed errors would count as free of errors. A document that several systems
    labelled counts once, and so does a document with its translations.

    Return UNKNOWN if there are no documents.
    """
    drawn = _by_unit(classes)
    if not drawn:
        return UNKNOWN
    value = min(1.0, max(0.0, sum(group.weight * float(group.values.mean()) for group in drawn)))
    spread = _covariance([(group.weight, group.values, group.values) for group in drawn])
    whole = 1 / sum(group.weight**2 / len(group.values) for group in drawn)
    # The variance is zero, up to rounding, if all documents have the same value.
    count = value * (1 - value) / spread if 0 < value < 1 and spread * whole > 1e-9 else whole
    return Estimate(value, *jeffreys(value * count, count), value * count, count)


def difference(first: Sequence[ClassSample], second: Sequence[ClassSample]) -> Difference | None:
    """Estimate the difference between two systems on the same documents, first minus second.

    The estimate is the first system's mean advantage minus the second's. Documents on which the systems tie contribute
    to neither mean. The interval allows for the correlation of the two means (differences.paired).

    first, second: each system's samples, with the same classes, weights and documents.

    Return None if there are no documents.
    """
    better: list[tuple[ClassSample, ClassSample]] = []
    for one, other in zip(first, second, strict=True):
        advantage = one.values - other.values
        better.append((one._replace(values=np.maximum(advantage, 0)), one._replace(values=np.maximum(-advantage, 0))))
    ups, downs = (_by_unit(side) for side in ([up for up, _ in better], [down for _, down in better]))
    return paired(mean(ups), mean(downs), _correlation(ups, downs))


def _correlation(first: Sequence[ClassSample], second: Sequence[ClassSample]) -> float:
    pairs = [(one.weight, one.values, other.values) for one, other in zip(first, second, strict=True)]
    both = _covariance(pairs)
    squared = _covariance([(w, a, a) for w, a, _ in pairs]) * _covariance([(w, b, b) for w, _, b in pairs])
    return max(-1.0, min(1.0, both / sqrt(squared))) if squared > 0 else 0.0


def _by_unit(classes: Sequence[ClassSample]) -> list[ClassSample]:
    """Merge classes that share units, and drop empty classes.

    In a merged class, a unit's value is the class mean plus the residuals of the unit's documents within their class
    and language, as in cluster sampling (Cochran 1977, section 9A.4). If each unit appears in all languages, this is
    the mean over its translations.
    """
    drawn = [group_of_class for group_of_class in classes if len(group_of_class.values)]
    if not drawn or any(group_of_class.units is None for group_of_class in drawn):
        return drawn
    places = np.repeat(np.arange(len(drawn)), [len(group_of_class.values) for group_of_class in drawn])
    units = np.unique(
        np.concatenate([group_of_class.units for group_of_class in drawn if group_of_class.units is not None]),
        return_inverse=True,
    )[1]
    has = scipy.sparse.csr_array((np.ones(len(units)), (places, units)), shape=(len(drawn), units.max() + 1))
    _, group = scipy.sparse.csgraph.connected_components(has @ has.T, directed=False)
    residuals = np.concatenate(
        [
            group_of_class.weight / len(group_of_class.values) * (group_of_class.values - group_of_class.values.mean())
            for group_of_class in drawn
        ]
    )
    merged = []
    for number in range(group.max() + 1):
        members = np.flatnonzero(group == number)
        if len(members) == 1:
            merged.append(drawn[members[0]])
            continue
        weight = sum(drawn[place].weight for place in members)
        value = sum(drawn[place].weight * float(drawn[place].values.mean()) for place in members) / weight
        inside = np.isin(places, members)
        sums = np.bincount(units[inside], weights=residuals[inside])[np.unique(units[inside])]
        merged.append(ClassSample(weight, value + sums * len(sums) / weight))
    return merged


def _covariance(drawn: Sequence[tuple[float, Floats, Floats]]) -> float:
    """Return the covariance of two weighted means over the same documents.

    A document with the overall mean is added to each class.
    """

    def overall_mean(parts: Sequence[Floats]) -> float:
        return sum(weight * float(part.mean()) for (weight, _, _), part in zip(drawn, parts, strict=True))

    one, other = overall_mean([a for _, a, _ in drawn]), overall_mean([b for _, _, b in drawn])
    both = overall_mean([a * b for _, a, b in drawn])
    covariance = 0.0
    for weight, a, b in drawn:
        moment, first, second = float((a * b).sum()) + both, float(a.sum()) + one, float(b.sum()) + other
        # The sample covariance (divisor n - 1) of the documents and the added document.
        covariance += (weight / len(a)) ** 2 * (moment - first * second / (len(a) + 1))
    return covariance
