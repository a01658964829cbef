"""Agreement coefficients: Krippendorff's alpha, Gwet's AC1, observed agreement, and each annotator against all others.

annotate/quality/answer_models.py decides whose answers count. The intervals are computed below.
"""

from collections.abc import Callable, Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # loads `scipy.sparse` on first use

from annotate.core.aggregation.answer_table import Answers, Bools, Floats, Ints
from annotate.core.estimation.resampling import percentiles

# --- Intervals for coefficients that are computed from pairs of answers, as all measures below are.
#
# Each unit contributes a table that counts how often one answer of a pair is c and the other is k. A coefficient is a
# function of the sum of these tables. Its interval runs from the 2.5% to the 97.5% quantile of a Bayesian bootstrap
# over units (Rubin 1981, The Bayesian Bootstrap, Annals of Statistics 9(1)).
#
# Imaginary units are added to the observed ones: half a unit on which all agree on the most frequent label, half a
# unit on which all agree on another label, and half a unit on which all differ, with labels at their observed
# frequencies. With two labels and two answers per unit, this is Jeffreys' prior, Dirichlet(1/2, 1/2, 1/2). Without
# the imaginary units, outcomes that were not observed would count as impossible, and the intervals would be too
# narrow if a label is rare (benchmarks/agreeing.py compares both).
#
# The annotators are treated as fixed, so an interval applies to other units of this kind, but not to other
# annotators.


REPLICATES = 1000
IMAGINED = 0.5  # number of imaginary units of each kind

# Squared distances of the labels (K, K), or a function from margins (..., K) to distances (..., K, K).
Distance = Floats | Callable[[Floats], Floats]


class Tables(NamedTuple):
    """Tables of pairs of answers. Each has one row in all three arrays, which have the shape (rows, K).

    A table is outer(first, second) - diag(less). These factors are stored instead of the tables, because the tables are
    sparse if there are many labels. For example, if three people choose label sets for 300 documents, nearly every set
    is a distinct label, and the tables would have 200 million cells.
    """

    first: Floats
    second: Floats
    less: Floats

    def first_margins(self) -> Floats:
        """Return the row sums of each table, which are the margins of the first answers of the pairs."""
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

    off: sum of cells times distances, (B,).
    first, second: margins of the first and second answers, (B, K).
    apart: distances, (K, K) or (B, K, K).
    """

    off: Floats
    first: Floats
    second: Floats
    apart: Floats


# A function that computes B coefficients from B sums of tables. A coefficient is NaN if it is undefined.
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


def kinds_of(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of an array of counts (U, C), and how often each occurs.

    Many units have the same counts: with three answers from two labels, 8,000 units have only four kinds. Each row is
    encoded as one integer, because integers sort much faster than rows.
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

    If necessary, the interval is extended to contain the value. For example, the posterior of a coefficient of 1 lies
    below 1.

    value: function from sums of tables to coefficients.
    tables: for each kind of unit, the table that one unit contributes.
    number: number of units of each kind.
    distance: distances of labels. If it is a function of the margins, it is evaluated again in each replicate.
    seed, replicates: seed and number of replicates.
    """
    units, size = int(number.sum()), tables.first.shape[1]
    if not units:
        return Measure(None, None, None, 0)
    rows, summed = _fixed(distance) if isinstance(distance, np.ndarray) else _moving(distance, size)
    point = float(value(summed((number @ rows(tables))[None]))[0])
    if np.isnan(point):
        return Measure(None, None, None, units)
    if size < 2:
        return Measure(point, None, None, units)
    imagined, weights = _imagined(number @ tables.first_margins(), number @ tables.second_margins(), units)
    times = np.random.default_rng(seed).standard_gamma(
        np.concatenate([number, weights]), size=(replicates, len(number) + len(weights))
    )
    times *= units / times.sum(axis=1, keepdims=True)
    # If there are many labels, a unit uses only a few of them, so its row is nearly empty.
    matrix = scipy.sparse.csr_array(np.concatenate([rows(tables), rows(imagined)]))
    low, high = percentiles(value(summed((matrix.T @ times.T).T)))
    return Measure(point, min(low, point), max(high, point), units)


# Two functions. The first turns tables into rows that can be added up. The second turns sums of these rows into the
# inputs of a coefficient.
_Summing = tuple[Callable[[Tables], Floats], Callable[[Floats], Sums]]


def _fixed(apart: Floats) -> _Summing:
    size = len(apart)

    def rows(tables: Tables) -> Floats:
        off = ((tables.first @ apart) * tables.second).sum(axis=1) - tables.less @ np.diag(apart)
        return np.concatenate([off[:, None], tables.first_margins(), tables.second_margins()], axis=1)

    return rows, lambda sums: Sums(sums[:, 0], sums[:, 1 : 1 + size], sums[:, 1 + size :], apart)


def _moving(distance: Callable[[Floats], Floats], size: int) -> _Summing:
    def summed(sums: Floats) -> Sums:
        tables = sums.reshape(-1, size, size)
        margins = tables.sum(axis=2)
        apart = distance(margins)
        return Sums((tables * apart).sum(axis=(1, 2)), margins, tables.sum(axis=1), apart)

    return lambda tables: tables.whole().reshape(-1, size * size), summed


def _imagined(first: Floats, second: Floats, units: int) -> tuple[Tables, Floats]:
    """Return the tables and weights of the imaginary units.

    For each label, there is one unit on which all answers have this label. On one more unit, all answers differ. Each
    unit has the mean number of pairs per unit.

    first, second: margins of all units together.
    units: number of units.
    """
    size, pairs = len(first), first.sum() / units
    weights = np.full(size + 1, IMAGINED)
    weights[:size] /= size - 1
    weights[np.argmax(first + second)] = IMAGINED
    # Half an answer per label is added, in case all answers have the same label.
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

# Alpha is reported with a warning if fewer units than this have a label other than the most frequent one. For example,
# if 10 of 1,000 units have such a label, and the two answers to a unit agree on 5 of the 10, the interval of alpha is
# 0.36 to 0.87.
LEAST_OTHERS = 10


def nominal(size: int) -> Floats:
    """Return nominal distances of `size` labels: 0 for the same label, 1 for different labels, (size, size)."""
    differ: Floats = 1.0 - np.eye(size)
    return differ


def ordinal(margins: Floats) -> Floats:
    """Return the squared ordinal distances of the labels.

    The distance of the grades c and k is the number of answers between them: the sum of the margins from c to k, minus
    half of c's and half of k's (Krippendorff 2011, section D).

    margins: number of answers with each grade, (..., K). The grades are in order, best or worst first.

    Return an array of shape (..., K, K).
    """
    # Cumulative counts up to the middle of each grade. Each distance is the difference of two of these.
    middle = np.cumsum(margins, axis=-1) - margins / 2
    squared: Floats = (middle[..., :, None] - middle[..., None, :]) ** 2
    return squared


def alpha(counts: Ints, distance: Distance | None = None, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Estimate Krippendorff's alpha, which is 1 for perfect agreement and 0 for agreement by chance.

    counts: number of answers by unit and label, (U, K).
    distance: squared distances of the K labels; nominal by default. `masi`, `jaccard` and `unlike` are for label sets.
    seed: seed of the interval.
    replicates: number of replicates for the interval.

    Alpha is 1 - observed/expected disagreement. Let n_uc be the number of answers c on unit u, and m_u the number of
    all answers on u. Over units with two or more answers:

        o_ck  = sum over u of (n_uc n_uk - [c = k] n_uc) / (m_u - 1)           coincidences
        n_c   = sum over k of o_ck,  n = sum over c of n_c                     margins
        alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck                   d: squared distance

    (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Content Analysis, chapter 11.) Alpha is undefined if
    all answers are the same.
    """
    pairable, used = _pairable(counts)
    kinds, number = kinds_of(pairable)
    return _alpha(kinds, number, _between(distance, used, counts.shape[1]), seed, replicates)


def _alpha(kinds: Ints, number: Ints, distance: Distance, seed: int, replicates: int) -> Measure:
    def value(sums: Sums) -> Floats:
        return _one_less(sums.off * (sums.first.sum(axis=1) - 1), _crossed(sums.first, sums.apart, sums.first))

    return measure(value, _coincidences(kinds), number, distance, seed=seed, replicates=replicates)


def _between(distance: Distance | None, used: Ints, size: int) -> Distance:
    """Return the distances between the labels in use.

    used: indices of these labels.
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
    units: number of units with this label among their answers. The alpha of a rare label depends on these units.
    alpha: nominal alpha with all other labels merged into one.
    """

    label: int
    units: int
    alpha: Measure


def by_label(counts: Ints, having: Bools | None = None, *, seed: int, replicates: int = REPLICATES) -> list[OfLabel]:
    """Estimate the nominal alpha of each label against all others.

    Only units with two or more answers count, and only labels in use on these units have an alpha.

    counts: number of answers by unit and label, (U, K).
    having: for label sets, whether each of the K sets contains each of C labels, (K, C). The alphas are then of the C
        labels.

    Return the labels in order. Alpha is undefined for a label that every answer has.
    """
    kinds, number = kinds_of(counts[counts.sum(axis=1) > 1])
    with_label = kinds if having is None else kinds @ having.astype(np.int64)
    results = []
    for label in np.flatnonzero(with_label.any(axis=0)):
        of_label = with_label[:, label]
        binary = np.stack([of_label, kinds.sum(axis=1) - of_label], axis=1)
        two, place = np.unique(binary, axis=0, return_inverse=True)
        alike = np.bincount(place.ravel(), weights=number).astype(np.int64)
        alpha = _alpha(two, alike, nominal(2), seed, replicates)
        results.append(OfLabel(int(label), int(number[of_label > 0].sum()), alpha))
    return results


def few_others(counts: Ints) -> tuple[int, int] | None:
    """Return the index of the most frequent label and the number of units with any other label, if these units are few.

    If nearly all answers have the same label, alpha depends only on the few units with other labels, however large the
    sample is. "Few" means fewer than LEAST_OTHERS, and fewer than half of the units with two or more answers.
    Otherwise, return None.

    counts: number of answers by unit and label, (U, K).
    """
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        return None
    frequent = int(counts.sum(axis=0).argmax())
    others = int((counts.sum(axis=1) > counts[:, frequent]).sum())
    return (frequent, others) if others < LEAST_OTHERS and 2 * others < len(counts) else None


def observed_agreement(counts: Ints, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Estimate the observed agreement: the share of pairs of answers on the same unit that agree.

    In the notation of `alpha`, this is the sum of o_cc / n. As in alpha, units are weighted by their number of answers.
    Alpha corrects this share for chance. The share itself is high whenever one label is frequent.
    """
    kinds, number = kinds_of(_pairable(counts)[0])
    return measure(_alike, _coincidences(kinds), number, nominal(kinds.shape[1]), seed=seed, replicates=replicates)


def ac1(counts: Ints, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Estimate Gwet's AC1: observed agreement corrected for chance, for data in which one label may dominate.

    In the notation of `alpha`, over the U units with two or more answers, each with the same weight:

        p_a = sum of o_cc / m_u over units and labels / U                      agreement
        x_c = sum of n_uc / m_u over units / U                                 share of a label
        p_e = sum over c of x_c (1 - x_c) / (K - 1)                            chance agreement
        AC1 = (p_a - p_e) / (1 - p_e)

    (Gwet 2008, Computing inter-rater reliability and its variance in the presence of high agreement, British Journal of
    Mathematical and Statistical Psychology 61(1), section 6.) K is the number of labels that annotators can choose,
    including labels that nobody chose. Chance agreement is small if one label is frequent. Labels are nominal, so a
    near miss on a grade counts as a miss. AC1 is undefined if there is only one label.
    """
    size = counts.shape[1]
    kinds, number = kinds_of(_pairable(counts)[0])

    def value(sums: Sums) -> Floats:
        shares = sums.first / sums.first.sum(axis=1, keepdims=True)
        chance = (shares * (1 - shares)).sum(axis=1) / (size - 1)
        return _one_less(1 - _alike(sums), 1 - chance)

    if size < 2:
        return Measure(None, None, None, int(number.sum()))
    tables = _coincidences(kinds)
    answers = kinds.sum(axis=1, keepdims=True)
    tables = tables._replace(first=tables.first / answers, less=tables.less / answers)
    return measure(value, tables, number, nominal(kinds.shape[1]), seed=seed, replicates=replicates)


@dataclass(frozen=True)
class AgainstRest:
    """Agreement of one annotator with all others who answered the same units.

    annotator: the annotator.
    units: number of units that somebody else answered too.
    agreement: mean, over these units, of the share of the others' answers that equal the annotator's. Its mean over
        annotators, weighted by their units, is the observed agreement (except for repeated answers).
    kappa: agreement corrected for chance. It is 0 for an annotator who always gives the frequent label.
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
    others' answers. With d the squared distance, u the parameter `unlike`, and sums over the annotator's units:

        agreement = 1 - sum a_c r_k u_ck / units
        kappa     = 1 - sum a_c r_k d_ck / (sum over c, k of (sum a_c) (sum r_k) d_ck / units)

    Kappa is Cohen's, with the rest as the second annotator. It is weighted if labels are grades (Cohen 1968,
    Psychological Bulletin 70(4)). Ordinal distances are computed once, from the answers of all annotators, and used in
    all replicates. Kappa is undefined if the annotator and the rest always gave the same single label.

    distance: squared distances for kappa; nominal by default.
    unlike: u_ck, from 0 for equal to 1 for entirely different labels, (K, K). By default, all different labels have 1.
        For label sets, use 1 - F1; agreement is then the annotator's mean F1.
    seed: seed of the intervals.
    replicates: number of replicates for the intervals.
    """
    counts = answers.counts()
    size = counts.shape[1]
    margins = counts[counts.sum(axis=1) > 1].sum(axis=0).astype(np.float64)
    fixed = _between(distance, np.arange(size), size)
    apart = fixed(margins) if callable(fixed) else fixed
    unlike = nominal(size) if unlike is None else unlike
    by_annotator = np.argsort(answers.annotator, kind="stable")
    first = np.searchsorted(answers.annotator[by_annotator], np.arange(len(answers.annotators) + 1))
    results = []
    # Process one annotator at a time. A table for all of them would have as many cells as answers times labels.
    for place, annotator in enumerate(answers.annotators):
        _, both = with_others(answers, counts, by_annotator[first[place] : first[place + 1]])
        results.append(_one_against_rest(annotator, both, (unlike, apart), seed, replicates))
    return results


def with_others(answers: Answers, counts: Ints, places: Ints) -> tuple[Ints, Ints]:
    """Count the answers of an annotator and of all others, on the units that the annotator and somebody else answered.

    counts: number of answers by unit and label, (U, K).
    places: indices of the annotator's answers.

    Return the indices of these units (units,), and the annotator's counts followed by the others' (units, 2K).
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

    both: counts of the annotator's answers, then of the others', by unit (units, 2K).
    distances: distances for agreement and for kappa.
    """
    kinds, number = kinds_of(both)
    size = kinds.shape[1] // 2
    used = _two_or_more(kinds[:, :size] + kinds[:, size:])
    counts = kinds[:, :size][:, used], kinds[:, size:][:, used]
    first, second = (of / of.sum(axis=1, keepdims=True) for of in counts)
    tables = Tables(first, second, np.zeros(first.shape))

    def kappa(sums: Sums) -> Floats:
        return _one_less(sums.off * sums.first.sum(axis=1), _crossed(sums.first, sums.apart, sums.second))

    agreement, corrected = (
        measure(value, tables, number, apart[np.ix_(used, used)], seed=seed, replicates=replicates)
        for value, apart in zip((_alike, kappa), distances, strict=True)
    )
    return AgainstRest(annotator, int(number.sum()), agreement, corrected)


def _pairable(counts: Ints) -> tuple[Ints, Ints]:
    """Restrict the counts to units with two or more answers and to labels in use.

    No coefficient depends on any other units or labels. Return the counts and the indices of the labels.
    """
    counts = counts[counts.sum(axis=1) > 1]
    used = _two_or_more(counts)
    return counts[:, used], used


def _two_or_more(counts: Ints) -> Ints:
    """Return the indices of the labels in use. If only one label is in use, add one that is not."""
    used = np.asarray(counts.any(axis=0))
    places: Ints = np.sort(np.argsort(~used, kind="stable")[: max(2, int(used.sum()))])
    return places


def _coincidences(kinds: Ints) -> Tables:
    """Return the coincidences o_ck that a unit of each kind contributes."""
    coincidences = kinds / (kinds.sum(axis=1, keepdims=True) - 1)
    return Tables(coincidences, kinds.astype(np.float64), coincidences)


def _alike(sums: Sums) -> Floats:
    shares: Floats = 1 - sums.off / sums.first.sum(axis=1)
    return shares


def _crossed(first: Floats, apart: Floats, second: Floats) -> Floats:
    """Return the sum over c, k of first_c d_ck second_k for each row."""
    by_label = first @ apart if apart.ndim == 2 else (first[:, None, :] @ apart)[:, 0, :]
    sums: Floats = (by_label * second).sum(axis=1)
    return sums


def _one_less(observed: Floats, expected: Floats) -> Floats:
    """Return 1 - observed/expected, NaN if the expected value is 0."""
    ratios: Floats = np.divide(observed, expected, out=np.full(expected.shape, np.nan), where=expected > 0)
    return 1 - ratios


# --- Distances of label sets: MASI, Jaccard and F1.
#
# Each function returns the distances of K sets, (K, K), from 0 for the same set to 1 for disjoint sets. It raises
# ValueError if a set is empty.


Labels = AbstractSet[str]


def f1(predicted: AbstractSet[Any], reference: AbstractSet[Any]) -> float:
    """Return F1 of two label sets: 2 |both| / (|predicted| + |reference|), which is symmetric.

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


def unitizing(sets: Sequence[AbstractSet[Any]]) -> Floats:
    """Return how many characters differ between the spans that two people mark in a text.

    The number weights each disagreement by its length (Krippendorff, Mathet, Bouvry and Widlöcher 2016, On the
    Reliability of Unitizing Textual Continua: Further Developments, Quality & Quantity 50). There, chance is computed
    from all positions of one continuum; here, alpha computes it from the answers to all units.

    sets: the marked characters, each with its label
    """
    common, sizes, other = _common(sets)
    apart: Floats = sizes + other - 2 * common
    return apart


def unlike(sets: Sequence[Labels]) -> Floats:
    """Return 1 - F1 for each pair of sets."""
    common, sizes, other = _common(sets)
    apart: Floats = 1 - 2 * common / (sizes + other)
    return apart


def having(sets: Sequence[Labels], labels: Collection[str]) -> Bools:
    """Return whether each set contains each label, (sets, labels)."""
    table = np.array([[label in labels_of_set for label in labels] for labels_of_set in sets], dtype=np.bool_)
    return table.reshape(len(sets), len(labels))


def _common(sets: Sequence[AbstractSet[Any]]) -> tuple[Floats, Floats, Floats]:
    """Return the number of labels that each pair of sets shares (K, K), and the set sizes as (K, 1) and (1, K).

    Raise ValueError for an empty set.
    """
    if not all(sets):
        raise ValueError("A set without labels has no distance from others. Remove empty sets.")
    place = {label: number for number, label in enumerate(sorted(set().union(*sets)))}
    columns = [place[label] for labels in sets for label in labels]
    sizes = np.array([len(labels) for labels in sets], dtype=np.float64)
    ends = np.concatenate([[0], np.cumsum([len(labels) for labels in sets], dtype=np.int64)])
    # The table is sparse, because each set has only a few of thousands of labels.
    table = scipy.sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(sets), len(place)))
    common: Floats = (table @ table.T).toarray()
    return common, sizes[:, None], sizes[None, :]
