"""Agreement coefficients: Krippendorff's alpha, Gwet's AC1, observed agreement, and each annotator against all others.

annotate/quality/answer_models.py decides whose answers count.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # loads `scipy.sparse` on first use

from annotate.core.aggregation.answer_table import Answers, Bools, Floats, Ints
from annotate.core.estimation.resampling import percentiles

# --- Intervals for coefficients that are computed from pairs of answers. This includes all coefficients below.
#
# Each unit contributes a table that counts how often one answer of a pair is c and the other is k. A coefficient is a
# function of the sum of these tables. Its interval runs from the 2.5% to the 97.5% quantile of a Bayesian bootstrap
# over units (Rubin 1981, The Bayesian Bootstrap, Annals of Statistics 9(1)).
#
# Pseudo-units are added to the observed units: half a unit on which all answers are the most frequent label, half a
# unit on which all answers are another label, and half a unit on which all answers differ, with labels at their
# observed frequencies. With two labels and two answers per unit, this is the Jeffreys prior, Dirichlet(1/2, 1/2, 1/2).
# Without pseudo-units, outcomes that were not observed would count as impossible, and the intervals would be too narrow
# if a label is rare (benchmarks/agreeing.py compares both).
#
# The annotators are treated as fixed, so an interval applies to other units like these, but not to other annotators.


REPLICATES = 1000
PSEUDO_UNITS = 0.5  # number of pseudo-units of each of the three kinds

# Squared distances of the labels (K, K), or a function from margins (..., K) to distances (..., K, K).
Distance = Floats | Callable[[Floats], Floats]


class Tables(NamedTuple):
    """Tables of pairs of answers. Each table is one row of all three arrays, (rows, K).

    A table is outer(first, second) - diag(less). We store these factors instead of the tables, which are huge and
    sparse if there are many labels. For example, if three annotators choose label sets for 300 documents, nearly every
    set is a distinct label, and the tables would have 200 million cells.
    """

    first: Floats
    second: Floats
    less: Floats

    def first_margins(self) -> Floats:
        """Return each table's row sums: the margins of the pairs' first answers."""
        margins: Floats = self.first * self.second.sum(axis=1, keepdims=True) - self.less
        return margins

    def second_margins(self) -> Floats:
        margins: Floats = self.second * self.first.sum(axis=1, keepdims=True) - self.less
        return margins

    def whole(self) -> Floats:
        """Return the full tables, (rows, K, K)."""
        cells: Floats = self.first[:, :, None] * self.second[:, None, :]
        places = np.arange(self.less.shape[1])
        cells[:, places, places] -= self.less
        return cells


class Sums(NamedTuple):
    """The inputs of a coefficient, for B sums of tables.

    observed: sum of cells times distances, (B,).
    first, second: margins of the first and second answers, (B, K).
    distances: distances of labels, (K, K) or (B, K, K).
    """

    observed: Floats
    first: Floats
    second: Floats
    distances: Floats


# Computes B coefficients from B sums of tables. A coefficient is NaN if it is undefined.
Coefficient = Callable[[Sums], Floats]


@dataclass(frozen=True)
class Measure:
    """A coefficient with its 95% interval.

    value: the coefficient; None if it is undefined.
    low, high: ends of the interval; None if there is no value or only one label.
    units: number of units.
    """

    value: float | None
    low: float | None
    high: float | None
    units: int

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of an array of counts, (U, C), and how often each occurs.

    Many units have the same counts: with two labels and three answers per unit, 8,000 units have only four distinct
    rows. Each row is encoded as one integer, because integers sort much faster than rows.
    """
    base = int(rows.max(initial=0)) + 1
    code, limit = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        if limit * base >= 2**63:
            code = np.unique(code, return_inverse=True)[1].astype(np.int64)
            limit = int(code.max(initial=0)) + 1
        code, limit = code * base + column, limit * base
    _, first, number = np.unique(code, return_index=True, return_counts=True)
    return rows[first], number.astype(np.int64)


def measure(
    value: Coefficient, tables: Tables, number: Ints, distance: Distance, *, seed: int, replicates: int = REPLICATES
) -> Measure:
    """Compute a coefficient and its interval.

    If necessary, the interval is extended to contain the value. For example, all replicates of a coefficient of 1 are
    below 1.

    value: function from sums of tables to coefficients.
    tables: for each pattern of answers, the table that a unit with this pattern contributes.
    number: number of units with each pattern.
    distance: distances of labels. A function of the margins is evaluated again in each replicate.
    seed, replicates: seed and number of bootstrap replicates.
    """
    units, size = int(number.sum()), tables.first.shape[1]
    if not units:
        return Measure(None, None, None, 0)
    rows, summed = (
        _fixed_distances(distance) if isinstance(distance, np.ndarray) else _marginal_distances(distance, size)
    )
    point = float(value(summed((number @ rows(tables))[None]))[0])
    if np.isnan(point):
        return Measure(None, None, None, units)
    if size < 2:
        return Measure(point, None, None, units)
    pseudo_tables, weights = _pseudo_units(number @ tables.first_margins(), number @ tables.second_margins(), units)
    times = np.random.default_rng(seed).standard_gamma(
        np.concatenate([number, weights]), size=(replicates, len(number) + len(weights))
    )
    times *= units / times.sum(axis=1, keepdims=True)
    # With many labels, each unit uses only a few of them, so the rows are sparse.
    matrix = scipy.sparse.csr_array(np.concatenate([rows(tables), rows(pseudo_tables)]))
    low, high = percentiles(value(summed((matrix.T @ times.T).T)))
    return Measure(point, min(low, point), max(high, point), units)


# Two functions: one converts tables to rows that can be added up, the other converts sums of these rows to `Sums`.
_Summing = tuple[Callable[[Tables], Floats], Callable[[Floats], Sums]]


def _fixed_distances(distances: Floats) -> _Summing:
    size = len(distances)

    def rows(tables: Tables) -> Floats:
        observed = ((tables.first @ distances) * tables.second).sum(axis=1) - tables.less @ np.diag(distances)
        return np.concatenate([observed[:, None], tables.first_margins(), tables.second_margins()], axis=1)

    return rows, lambda sums: Sums(sums[:, 0], sums[:, 1 : 1 + size], sums[:, 1 + size :], distances)


def _marginal_distances(distance: Callable[[Floats], Floats], size: int) -> _Summing:
    def summed(sums: Floats) -> Sums:
        tables = sums.reshape(-1, size, size)
        margins = tables.sum(axis=2)
        distances = distance(margins)
        return Sums((tables * distances).sum(axis=(1, 2)), margins, tables.sum(axis=1), distances)

    return lambda tables: tables.whole().reshape(-1, size * size), summed


def _pseudo_units(first: Floats, second: Floats, units: int) -> tuple[Tables, Floats]:
    """Return the tables and weights of the pseudo-units.

    For each label, there is one pseudo-unit on which all answers are this label. On one more, all answers differ. All
    pseudo-units have the mean number of pairs per unit.

    first, second: margins over all units.
    units: number of units.
    """
    size, pairs = len(first), first.sum() / units
    weights = np.full(size + 1, PSEUDO_UNITS)
    weights[:size] /= size - 1
    weights[np.argmax(first + second)] = PSEUDO_UNITS
    # Add half an answer per label, in case all answers are the same label.
    first, second = first + 0.5, second + 0.5
    scale = pairs / (first.sum() * second.sum() - first @ second)
    agreed = np.eye(size)
    tables = Tables(
        np.concatenate([agreed * pairs, first[None] * scale]),
        np.concatenate([agreed, second[None]]),
        np.concatenate([np.zeros((size, size)), (first * second)[None] * scale]),
    )
    return tables, weights


# --- Coefficients

# Alpha is reported with a warning if fewer units than this have an answer other than the most frequent label. For
# example, if 10 of 1,000 units have such an answer, and the two answers agree on 5 of the 10, the interval of alpha is
# 0.36 to 0.87.
LEAST_OTHERS = 10


def nominal(size: int) -> Floats:
    """Return nominal distances between labels: 0 for the same label, 1 for different labels, (size, size)."""
    distances: Floats = 1.0 - np.eye(size)
    return distances


def ordinal(margins: Floats) -> Floats:
    """Return the squared ordinal distances between grades, (..., K, K).

    The distance between the grades c and k is the number of answers between them: the sum of the margins from c to k,
    minus half of c's and half of k's (Krippendorff 2011, section D).

    margins: number of answers with each grade, (..., K). The grades are in order, best or worst first.
    """
    # Cumulative counts up to the middle of each grade. Distances are differences between these counts.
    middle = np.cumsum(margins, axis=-1) - margins / 2
    squared: Floats = (middle[..., :, None] - middle[..., None, :]) ** 2
    return squared


def alpha(counts: Ints, distance: Distance | None = None, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Estimate Krippendorff's alpha, which is 1 for perfect agreement and 0 for chance agreement.

    counts: number of answers by unit and label, (U, K).
    distance: squared distances between the K labels; nominal by default. For label sets, use `masi`, `jaccard` or
        `unlike`.
    seed: seed of the interval.
    replicates: number of bootstrap replicates for the interval.

    Alpha is 1 - observed/expected disagreement. Let n_uc be the number of answers c on unit u, and m_u the number of
    all answers on u. Over units with two or more answers:

        o_ck  = sum over u of (n_uc n_uk - [c = k] n_uc) / (m_u - 1)           coincidences
        n_c   = sum over k of o_ck,  n = sum over c of n_c                     margins
        alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck                   d: squared distance

    (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Content Analysis, chapter 11.) Alpha is undefined if
    all answers are the same.
    """
    pairable, used = _pairable(counts)
    patterns, number = distinct_rows(pairable)
    return _alpha(patterns, number, _used_distances(distance, used, counts.shape[1]), seed, replicates)


def _alpha(patterns: Ints, number: Ints, distance: Distance, seed: int, replicates: int) -> Measure:
    def value(sums: Sums) -> Floats:
        return _one_minus_ratio(
            sums.observed * (sums.first.sum(axis=1) - 1), _expected_sum(sums.first, sums.distances, sums.first)
        )

    return measure(value, _coincidences(patterns), number, distance, seed=seed, replicates=replicates)


def _used_distances(distance: Distance | None, used: Ints, size: int) -> Distance:
    """Return the distances between the labels in use.

    used: indices of the labels in use.
    size: number of all labels.
    """
    if distance is None:
        return nominal(len(used))
    if not isinstance(distance, np.ndarray):
        return distance
    if distance.shape != (size, size):
        raise ValueError(
            f"The distances have the shape {distance.shape}, but {size} labels require the shape {(size, size)}."
        )
    between: Floats = distance[np.ix_(used, used)]
    return between


@dataclass(frozen=True)
class OfLabel:
    """Alpha of one label against all others.

    label: index of the label.
    units: number of units with this label among their answers. If the label is rare, alpha depends on these units.
    alpha: nominal alpha with all other labels merged into one.
    """

    label: int
    units: int
    alpha: Measure


def by_label(counts: Ints, having: Bools | None = None, *, seed: int, replicates: int = REPLICATES) -> list[OfLabel]:
    """Estimate the nominal alpha of each label against all others.

    Only units with two or more answers count, and only labels in use on these units have an alpha.

    counts: number of answers by unit and label, (U, K).
    having: for label sets, whether each of the K sets contains each of C labels, (K, C). The result is then for the C
        labels.

    Return the labels in order. A label's alpha is undefined if every answer has the label.
    """
    patterns, number = distinct_rows(counts[counts.sum(axis=1) > 1])
    with_label = patterns if having is None else patterns @ having.astype(np.int64)
    results = []
    for label in np.flatnonzero(with_label.any(axis=0)):
        of_label = with_label[:, label]
        binary = np.stack([of_label, patterns.sum(axis=1) - of_label], axis=1)
        distinct, place = np.unique(binary, axis=0, return_inverse=True)
        units = np.bincount(place.ravel(), weights=number).astype(np.int64)
        alpha = _alpha(distinct, units, nominal(2), seed, replicates)
        results.append(OfLabel(int(label), int(number[of_label > 0].sum()), alpha))
    return results


def few_others(counts: Ints) -> tuple[int, int] | None:
    """Check whether alpha depends on few units, because nearly all answers are the same label.

    Alpha then depends on the few units with other labels, however large the sample is. "Few" means fewer than
    LEAST_OTHERS, and fewer than half of the units with two or more answers.

    counts: number of answers by unit and label, (U, K).

    Return the most frequent label's index and the number of units with other labels, or None if they are not few.
    """
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        return None
    frequent = int(counts.sum(axis=0).argmax())
    others = int((counts.sum(axis=1) > counts[:, frequent]).sum())
    return (frequent, others) if others < LEAST_OTHERS and 2 * others < len(counts) else None


def observed_agreement(counts: Ints, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Estimate the observed agreement: the share of agreeing pairs among all pairs of answers on the same unit.

    In the notation of `alpha`, this is the sum of o_cc / n. As in alpha, units are weighted by their number of answers.
    Unlike alpha, the share is not corrected for chance, so it is high whenever one label is frequent.
    """
    patterns, number = distinct_rows(_pairable(counts)[0])
    return measure(
        _observed_agreement,
        _coincidences(patterns),
        number,
        nominal(patterns.shape[1]),
        seed=seed,
        replicates=replicates,
    )


def ac1(counts: Ints, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Estimate Gwet's AC1: observed agreement corrected for chance, for data in which one label may dominate.

    In the notation of `alpha`, over the U units with two or more answers, each with the same weight:

        p_a = sum of o_cc / m_u over units and labels / U                      agreement
        x_c = sum of n_uc / m_u over units / U                                 share of a label
        p_e = sum over c of x_c (1 - x_c) / (K - 1)                            chance agreement
        AC1 = (p_a - p_e) / (1 - p_e)

    (Gwet 2008, Computing inter-rater reliability and its variance in the presence of high agreement, British Journal of
    Mathematical and Statistical Psychology 61(1), section 6.) K is the number of labels that annotators can choose,
    including labels that nobody chose. Chance agreement is small if one label is frequent. Labels are nominal, so
    adjacent grades count as different. AC1 is undefined if there is only one label.
    """
    size = counts.shape[1]
    patterns, number = distinct_rows(_pairable(counts)[0])

    def value(sums: Sums) -> Floats:
        shares = sums.first / sums.first.sum(axis=1, keepdims=True)
        chance = (shares * (1 - shares)).sum(axis=1) / (size - 1)
        return _one_minus_ratio(1 - _observed_agreement(sums), 1 - chance)

    if size < 2:
        return Measure(None, None, None, int(number.sum()))
    tables = _coincidences(patterns)
    answers = patterns.sum(axis=1, keepdims=True)
    tables = tables._replace(first=tables.first / answers, less=tables.less / answers)
    return measure(value, tables, number, nominal(patterns.shape[1]), seed=seed, replicates=replicates)


@dataclass(frozen=True)
class AgainstRest:
    """One annotator's agreement with all others who answered the same units.

    annotator: the annotator.
    units: number of units that somebody else answered too.
    agreement: share of the others' answers that equal the annotator's, averaged over these units. Averaged again over
        annotators, weighted by their units, it is the observed agreement (except for repeated answers).
    kappa: agreement corrected for chance; 0 for an annotator who always gives the most frequent label.
    """

    annotator: Any
    units: int
    agreement: Measure
    kappa: Measure


def against_rest(
    answers: Answers,
    distance: Distance | None = None,
    unlike: Floats | None = None,
    *,
    seed: int,
    replicates: int = REPLICATES,
) -> list[AgainstRest]:
    """Compare each annotator with the rest, in the order of `answers.annotators`.

    On each unit, let a_c be the share of label c among the annotator's answers, and r_k the share of label k among the
    others' answers. Let d be the squared distance, and u the `unlike` parameter. With sums over the annotator's units:

        agreement = 1 - sum a_c r_k u_ck / units
        kappa     = 1 - sum a_c r_k d_ck / (sum over c, k of (sum a_c) (sum r_k) d_ck / units)

    Kappa is Cohen's, with the rest as the second annotator. It is weighted if labels are grades (Cohen 1968,
    Psychological Bulletin 70(4)). Ordinal distances are computed once, from all annotators' answers, and used in all
    replicates. Kappa is undefined if the annotator and the rest always gave the same single label.

    distance: squared distances for kappa; nominal by default.
    unlike: u_ck, from 0 (equal labels) to 1 (entirely different labels), (K, K); nominal by default. For label sets,
        use 1 - F1; agreement is then the annotator's mean F1.
    seed: seed of the intervals.
    replicates: number of bootstrap replicates for the intervals.
    """
    counts = answers.counts()
    size = counts.shape[1]
    margins = counts[counts.sum(axis=1) > 1].sum(axis=0).astype(np.float64)
    distance = _used_distances(distance, np.arange(size), size)
    distances = distance(margins) if callable(distance) else distance
    unlike = nominal(size) if unlike is None else unlike
    by_annotator = np.argsort(answers.annotator, kind="stable")
    first = np.searchsorted(answers.annotator[by_annotator], np.arange(len(answers.annotators) + 1))
    results = []
    # Process one annotator at a time. A table for all annotators would have as many cells as answers times labels.
    for place, annotator in enumerate(answers.annotators):
        _, both = counts_with_others(answers, counts, by_annotator[first[place] : first[place + 1]])
        results.append(_one_against_rest(annotator, both, (unlike, distances), seed, replicates))
    return results


def counts_with_others(answers: Answers, counts: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Count the answers of an annotator and of everyone else, on the units both have answered.

    counts: number of answers by unit and label, (U, K).
    places: indices of the annotator's answers.

    Return the indices of the units, (units,), and the annotator's counts followed by everyone else's, (units, 2K).
    """
    size = counts.shape[1]
    units, unit = np.unique(answers.unit[places], return_inverse=True)
    of_annotator = np.bincount(unit * size + answers.label[places], minlength=len(units) * size).reshape(
        len(units), size
    )
    rest = counts[units] - of_annotator
    shared = rest.sum(axis=1) > 0
    return units[shared], np.concatenate([of_annotator[shared], rest[shared]], axis=1)


def _one_against_rest(
    annotator: Hashable, both: Ints, distances: tuple[Floats, Floats], seed: int, replicates: int
) -> AgainstRest:
    """Compare one annotator with the rest.

    both: the annotator's answer counts followed by the others', by unit, (units, 2K).
    distances: distances for agreement and for kappa.
    """
    patterns, number = distinct_rows(both)
    size = patterns.shape[1] // 2
    used = _used_labels(patterns[:, :size] + patterns[:, size:])
    counts = patterns[:, :size][:, used], patterns[:, size:][:, used]
    first, second = (of / of.sum(axis=1, keepdims=True) for of in counts)
    tables = Tables(first, second, np.zeros(first.shape))

    def kappa(sums: Sums) -> Floats:
        return _one_minus_ratio(
            sums.observed * sums.first.sum(axis=1), _expected_sum(sums.first, sums.distances, sums.second)
        )

    agreement, corrected = (
        measure(value, tables, number, distance[np.ix_(used, used)], seed=seed, replicates=replicates)
        for value, distance in zip((_observed_agreement, kappa), distances, strict=True)
    )
    return AgainstRest(annotator, int(number.sum()), agreement, corrected)


def _pairable(counts: Ints) -> tuple[Ints, Ints]:
    """Restrict the counts to units with two or more answers and to labels in use.

    The coefficients depend on no other units or labels. Return the counts and the indices of the labels.
    """
    counts = counts[counts.sum(axis=1) > 1]
    used = _used_labels(counts)
    return counts[:, used], used


def _used_labels(counts: Ints) -> Ints:
    """Return the indices of the labels in use. If there is only one, add an unused label."""
    used = np.asarray(counts.any(axis=0))
    places: Ints = np.sort(np.argsort(~used, kind="stable")[: max(2, int(used.sum()))])
    return places


def _coincidences(patterns: Ints) -> Tables:
    """Return the coincidences o_ck that a unit with each pattern contributes."""
    coincidences = patterns / (patterns.sum(axis=1, keepdims=True) - 1)
    return Tables(coincidences, patterns.astype(np.float64), coincidences)


def _observed_agreement(sums: Sums) -> Floats:
    shares: Floats = 1 - sums.observed / sums.first.sum(axis=1)
    return shares


def _expected_sum(first: Floats, distances: Floats, second: Floats) -> Floats:
    """Return the sum over c, k of first_c d_ck second_k for each row."""
    by_label = first @ distances if distances.ndim == 2 else (first[:, None, :] @ distances)[:, 0, :]
    sums: Floats = (by_label * second).sum(axis=1)
    return sums


def _one_minus_ratio(observed: Floats, expected: Floats) -> Floats:
    """Return 1 - observed/expected, or NaN if the expected value is 0."""
    ratios: Floats = np.divide(observed, expected, out=np.full(expected.shape, np.nan), where=expected > 0)
    return 1 - ratios


# --- Distances between label sets: MASI, Jaccard and F1.
#
# Each function returns the distances between K sets, (K, K), from 0 (the same set) to 1 (disjoint sets). It raises
# ValueError if a set is empty.


Labels = AbstractSet[str]


def f1(predicted: AbstractSet[Any], reference: AbstractSet[Any]) -> float:
    """Return the F1 of two label sets: 2 |both| / (|predicted| + |reference|), which is symmetric.

    Raise ValueError for an empty set.
    """
    if not (predicted and reference):
        raise ValueError("A set without labels has no F1. Remove empty sets.")
    return 2 * len(predicted & reference) / (len(predicted) + len(reference))


def masi(sets: Sequence[Labels]) -> Floats:
    """Return MASI distances: 1 - J M, where J = |both| / |either|.

    M is 1 if the sets are equal, 2/3 if one contains the other, 1/3 if they overlap, and 0 if they are disjoint
    (Passonneau 2006, Measuring Agreement on Set-valued Items (MASI) for Semantic and Pragmatic Annotation, LREC). NLTK
    rounds M to 0.67 and 0.33.
    """
    common, sizes, other = _common(sets)
    equal, contained = common == np.maximum(sizes, other), common == np.minimum(sizes, other)
    overlap = np.where(equal, 3, np.where(contained, 2, np.where(common > 0, 1, 0))) / 3
    distances: Floats = 1 - common / (sizes + other - common) * overlap
    return distances


def jaccard(sets: Sequence[Labels]) -> Floats:
    """Return Jaccard distances: 1 - |both| / |either|.

    See Jaccard 1912, The Distribution of the Flora in the Alpine Zone, New Phytologist 11(2).
    """
    common, sizes, other = _common(sets)
    distances: Floats = 1 - common / (sizes + other - common)
    return distances


def unitizing(sets: Sequence[AbstractSet[Any]]) -> Floats:
    """Return how many characters differ between two annotations of spans, for each pair of annotations, (K, K).

    Each disagreement is therefore weighted by its length (Krippendorff, Mathet, Bouvry and Widlöcher 2016, On the
    Reliability of Unitizing Textual Continua: Further Developments, Quality & Quantity 50). The article computes chance
    agreement from all positions of one continuum. Here, alpha computes it from the answers to all units.

    sets: each annotation's marked characters, each paired with its label
    """
    common, sizes, other = _common(sets)
    distances: Floats = sizes + other - 2 * common
    return distances


def unlike(sets: Sequence[Labels]) -> Floats:
    """Return 1 - F1 for each pair of sets."""
    common, sizes, other = _common(sets)
    distances: Floats = 1 - 2 * common / (sizes + other)
    return distances


def having(sets: Sequence[Labels], labels: Collection[str]) -> Bools:
    """Return whether each set contains each label, (sets, labels)."""
    table = np.array([[label in labels_of_set for label in labels] for labels_of_set in sets], dtype=np.bool_)
    return table.reshape(len(sets), len(labels))


def _common(sets: Sequence[AbstractSet[Any]]) -> tuple[Floats, Floats, Floats]:
    """Return the number of labels that each pair of sets shares, (K, K), and the set sizes, as (K, 1) and (1, K).

    Raise ValueError for an empty set.
    """
    if not all(sets):
        raise ValueError("A set without labels has no distance from others. Remove empty sets.")
    place = {label: number for number, label in enumerate(sorted(set().union(*sets)))}
    columns = [place[label] for labels in sets for label in labels]
    sizes = np.array([len(labels) for labels in sets], dtype=np.float64)
    ends = np.concatenate([[0], np.cumsum([len(labels) for labels in sets], dtype=np.int64)])
    # Each set has only a few of thousands of labels, so the table is sparse.
    table = scipy.sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(sets), len(place)))
    common: Floats = (table @ table.T).toarray()
    return common, sizes[:, None], sizes[None, :]
