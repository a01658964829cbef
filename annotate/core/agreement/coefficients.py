"""How far annotators agree: Krippendorff's alpha, Gwet's AC1, observed agreement, each annotator against the rest.

Numbers in, numbers out. annotate/quality/answer_models.py decides whose answers count; pair_intervals.py computes the
interval of every coefficient.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from annotate.core.aggregation.answer_table import Answers, Bools, Floats, Ints
from annotate.core.agreement.pair_intervals import REPLICATES, Distance, Measure, Sums, Tables, kinds_of, measure

# Below so many units with another label than the most frequent one, alpha says little: of 10 among 1,000, with two
# answers each, on half of which people agree, its interval is 0.36 to 0.87, half of what lies between chance and 1.
LEAST_OTHERS = 10


def nominal(size: int) -> Floats:
    """1 where two of so many labels differ, 0 where they are the same."""
    differ: Floats = 1.0 - np.eye(size)
    return differ


def ordinal(margins: Floats) -> Floats:
    """(sum of the margins from c to k - half of c's and of k's)^2: how many answers lie between two grades.

    Labels in the order of the grades, from either end (Krippendorff 2011, section D: ordinal metric).
    """
    # Counted up to the middle of each grade, so that the distance is a difference.
    middle = np.cumsum(margins, axis=-1) - margins / 2
    squared: Floats = (middle[..., :, None] - middle[..., None, :]) ** 2
    return squared


def alpha(counts: Ints, distance: Distance | None = None, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Krippendorff's alpha: 1 - observed/expected disagreement; 1 is perfect, 0 is what chance would give.

    counts: answers by unit and label, (U, K). distance: of the K labels, nominal by default; of sets as label_sets.py
    has it. With n_uc answers c of m_u on unit u, units of two answers or more:

        o_ck  = sum over u of (n_uc n_uk - [c = k] n_uc) / (m_u - 1)           coincidences
        n_c   = sum over k of o_ck,  n = sum over c of n_c                     margins
        alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck                   d: squared distance

    (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Content Analysis, chapter 11.) Not defined where
    all answers are the same: without variation nothing can be said of reliability.
    """
    pairable, used = _pairable(counts)
    kinds, number = kinds_of(pairable)
    return _alpha(kinds, number, _between(distance, used, counts.shape[1]), seed, replicates)


def _alpha(kinds: Ints, number: Ints, distance: Distance, seed: int, replicates: int) -> Measure:
    def value(sums: Sums) -> Floats:
        margins = sums.own
        return _one_less(sums.off * (margins.sum(axis=1) - 1), _crossed(margins, sums.apart, margins))

    return measure(value, _coincidences(kinds), number, distance, seed=seed, replicates=replicates)


def _between(distance: Distance | None, used: Ints, size: int) -> Distance:
    """The distance of the labels that are used, of `size` labels."""
    if distance is None:
        return nominal(len(used))
    if not isinstance(distance, np.ndarray):
        return distance
    if distance.shape != (size, size):
        raise ValueError(f"Distances of shape {distance.shape} are not those of {size} labels; give one for each two.")
    between: Floats = distance[np.ix_(used, used)]
    return between


@dataclass(frozen=True)
class OfLabel:
    """One label against all others taken together. label: its place; units: with this label among their answers, on
    which the alpha of a rare label rests."""

    label: int
    units: int
    alpha: Measure


def by_label(counts: Ints, having: Bools | None = None, *, seed: int, replicates: int = REPLICATES) -> list[OfLabel]:
    """The nominal alpha of each label that was given on units of two answers or more, as if there were only this label
    and another, in the order of the labels. It is not defined for a label that all answers have.

    having: where answers are sets, which of the K sets have which of the C labels, (K, C).
    """
    kinds, number = kinds_of(counts[counts.sum(axis=1) > 1])
    with_label = kinds if having is None else kinds @ having.astype(np.int64)
    found = []
    for label in np.flatnonzero(with_label.any(axis=0)):
        own = with_label[:, label]
        two, place = np.unique(np.stack([own, kinds.sum(axis=1) - own], axis=1), axis=0, return_inverse=True)
        alike = np.bincount(place.ravel(), weights=number).astype(np.int64)
        found.append(OfLabel(int(label), int(number[own > 0].sum()), _alpha(two, alike, nominal(2), seed, replicates)))
    return found


def few_others(counts: Ints) -> tuple[int, int] | None:
    """The place of the most frequent label, and how many units have any other, if these are few: fewer than
    LEAST_OTHERS, and fewer than half of the units of two answers or more. None if they are not.

    Where nearly all answers are one label, alpha depends on those units alone, however many there are of the rest.
    """
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        return None
    frequent = int(counts.sum(axis=0).argmax())
    others = int((counts.sum(axis=1) > counts[:, frequent]).sum())
    return (frequent, others) if others < LEAST_OTHERS and 2 * others < len(counts) else None


def observed_agreement(counts: Ints, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """The share of pairs of answers on one unit that are the same: the sum of o_cc / n, with the symbols of `alpha`.

    A unit weighs as it has answers, as in alpha, which is this corrected for chance. Not corrected, it is high
    wherever one label is frequent.
    """
    kinds, number = kinds_of(_pairable(counts)[0])
    return measure(_alike, _coincidences(kinds), number, nominal(kinds.shape[1]), seed=seed, replicates=replicates)


def ac1(counts: Ints, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Gwet's AC1: observed agreement corrected for chance, where chance is small if one label is frequent.

    With the symbols of `alpha`, over the U units of two answers or more, each of which weighs the same:

        p_a = sum of o_cc / m_u over units and labels / U                      agreement
        x_c = sum of n_uc / m_u over units / U                                 how frequent a label is
        p_e = sum over c of x_c (1 - x_c) / (K - 1)                            agreement by chance
        AC1 = (p_a - p_e) / (1 - p_e)

    (Gwet 2008, Computing inter-rater reliability and its variance in the presence of high agreement, British Journal
    of Mathematical and Statistical Psychology 61(1), section 6.) K is the number of labels that may be given, whether
    or not they were. Labels are names here: of grades a near miss counts as a miss. Not defined for a single label.
    """
    size = counts.shape[1]
    kinds, number = kinds_of(_pairable(counts)[0])

    def value(sums: Sums) -> Floats:
        shares = sums.own / sums.own.sum(axis=1, keepdims=True)
        chance = (shares * (1 - shares)).sum(axis=1) / (size - 1)
        return _one_less(1 - _alike(sums), 1 - chance)

    if size < 2:
        return Measure(None, None, None, int(number.sum()))
    each = _coincidences(kinds)
    answers = kinds.sum(axis=1, keepdims=True)
    each = each._replace(first=each.first / answers, less=each.less / answers)
    return measure(value, each, number, nominal(kinds.shape[1]), seed=seed, replicates=replicates)


@dataclass(frozen=True)
class AgainstRest:
    """One annotator against all others who answered the same units.

    agreement: the mean, over units, of the share of the others' answers that are the annotator's own, or of how much
    of them is. Over all annotators, weighted by their units, its mean is the observed agreement (but for repeats).
    kappa: the same corrected for chance: a person who always gives the frequent label agrees often, but has a kappa of
    0.
    """

    annotator: Hashable
    units: int  # with an answer of somebody else
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
    """Each annotator against the rest, in the order of `answers.annotators`.

    On a unit where the annotator's answer is c (a share a_c of their answers, if there are several) and the others'
    are k by shares r_k, with sums over the annotator's units and d the squared distance:

        agreement = 1 - sum a_c r_k u_ck / units
        kappa     = 1 - sum a_c r_k d_ck / (sum over c, k of (sum a_c) (sum r_k) d_ck / units)

    the latter being Cohen's kappa, weighted where labels are grades, with the rest as the second annotator (Cohen
    1968, Psychological Bulletin 70(4)). Distances of grades are those of all answers together, and the same in all
    replicates. Not defined where annotator and rest gave one and the same label throughout.

    unlike: u_ck, from 0 to 1, (K, K); by default 1 where two labels differ, so that the sum is the share of the others'
    answers that are not the annotator's. Of sets with 1 - F1 (label_sets.py), agreement is the annotator's mean F1.
    """
    counts = answers.counts()
    size = counts.shape[1]
    margins = counts[counts.sum(axis=1) > 1].sum(axis=0).astype(np.float64)
    fixed = _between(distance, np.arange(size), size)
    apart = fixed(margins) if callable(fixed) else fixed
    unlike = nominal(size) if unlike is None else unlike
    by_annotator = np.argsort(answers.annotator, kind="stable")
    first = np.searchsorted(answers.annotator[by_annotator], np.arange(len(answers.annotators) + 1))
    # One after another: all of them together have as many cells as there are answers times labels.
    return [
        _one_against_rest(
            annotator,
            own_and_rest(answers, counts, by_annotator[first[place] : first[place + 1]])[1],
            (unlike, apart),
            seed,
            replicates,
        )
        for place, annotator in enumerate(answers.annotators)
    ]


def own_and_rest(answers: Answers, counts: Ints, own: Ints) -> tuple[Ints, Ints]:
    """The units that an annotator and somebody else answered, (units,), and on each of them the annotator's answers by
    label, then the others', (units, 2K). counts: all answers by unit and label; own: the places of the annotator's."""
    size = counts.shape[1]
    units, unit = np.unique(answers.unit[own], return_inverse=True)
    said = np.bincount(unit * size + answers.label[own], minlength=len(units) * size).reshape(len(units), size)
    rest = counts[units] - said
    shared = rest.sum(axis=1) > 0
    return units[shared], np.concatenate([said[shared], rest[shared]], axis=1)


def _one_against_rest(
    annotator: Hashable, both: Ints, distances: tuple[Floats, Floats], seed: int, replicates: int
) -> AgainstRest:
    """both: own answers by label, then the others', for each unit: (units, 2K). distances: by which answers agree, and
    those of kappa."""
    kinds, number = kinds_of(both)
    size = kinds.shape[1] // 2
    used = _two_or_more(kinds[:, :size] + kinds[:, size:])
    own, rest = kinds[:, :size][:, used], kinds[:, size:][:, used]
    own, rest = own / own.sum(axis=1, keepdims=True), rest / rest.sum(axis=1, keepdims=True)
    tables = Tables(own, rest, np.zeros(own.shape))

    def kappa(sums: Sums) -> Floats:
        return _one_less(sums.off * sums.own.sum(axis=1), _crossed(sums.own, sums.apart, sums.rest))

    agreement, corrected = (
        measure(value, tables, number, apart[np.ix_(used, used)], seed=seed, replicates=replicates)
        for value, apart in zip((_alike, kappa), distances, strict=True)
    )
    return AgainstRest(annotator, int(number.sum()), agreement, corrected)


def _pairable(counts: Ints) -> tuple[Ints, Ints]:
    """Units of two answers or more, and labels that they have, with the places of these: no other adds anything to any
    coefficient."""
    counts = counts[counts.sum(axis=1) > 1]
    used = _two_or_more(counts)
    return counts[:, used], used


def _two_or_more(counts: Ints) -> Ints:
    """The places of the labels that were given; and of another, if it is only one, as others may give it."""
    given = np.asarray(counts.any(axis=0))
    places: Ints = np.sort(np.argsort(~given, kind="stable")[: max(2, int(given.sum()))])
    return places


def _coincidences(kinds: Ints) -> Tables:
    """o_ck of a unit of each kind."""
    each = kinds / (kinds.sum(axis=1, keepdims=True) - 1)
    return Tables(each, kinds.astype(np.float64), each)


def _alike(sums: Sums) -> Floats:
    shares: Floats = 1 - sums.off / sums.own.sum(axis=1)
    return shares


def _crossed(own: Floats, apart: Floats, rest: Floats) -> Floats:
    """The sum over c, k of own_c d_ck rest_k, for each row of own and rest."""
    by_label = own @ apart if apart.ndim == 2 else (own[:, None, :] @ apart)[:, 0, :]
    sums: Floats = (by_label * rest).sum(axis=1)
    return sums


def _one_less(observed: Floats, expected: Floats) -> Floats:
    """1 - observed/expected; NaN where nothing is expected."""
    ratios: Floats = np.divide(observed, expected, out=np.full(expected.shape, np.nan), where=expected > 0)
    return 1 - ratios
