"""How far annotators agree: Krippendorff's alpha, observed agreement, each annotator against the rest.

Numbers in, numbers out; whose answers count is decided in annotate/quality/agreement.py. Every coefficient comes with a
percentile bootstrap interval over units: units are drawn anew with replacement, as many as there are, with all their
answers. The annotators are taken as they are, so it says how far other units of this kind may differ, not other
people. Hayes and Krippendorff (2007, Answering the Call for a Standard Reliability Measure for Coding Data,
Communication Methods and Measures 1(1)) draw single pairs of answers anew, and hold the expected disagreement still;
pairs within one unit are not independent, so units are drawn here, as in Zapf, Castell, Morawietz and Karch (2016,
Measuring inter-rater reliability for nominal data, BMC Medical Research Methodology 16:93).
"""

from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass

import numpy as np

from annotate.core.answers import Answers, Floats, Ints
from annotate.core.resampling import LEAST_UNITS, percentiles

REPLICATES = 1000


@dataclass(frozen=True)
class Measure:
    """A coefficient with its 95% interval, from `units` units.

    value: None if it is not defined. low, high: None if there are too few units for an interval, or if all of them say
    the same, which does not show that others would.
    """

    value: float | None
    low: float | None
    high: float | None
    units: int

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


# Margins, shape (..., K) -> squared distances of each two labels, (..., K, K).
Distance = Callable[[Floats], Floats]


def nominal(margins: Floats) -> Floats:
    """1 where two labels differ, 0 where they are the same."""
    size = margins.shape[-1]
    differ: Floats = np.broadcast_to(1.0 - np.eye(size), (*margins.shape, size))
    return differ


def ordinal(margins: Floats) -> Floats:
    """(sum of the margins from c to k - half of c's and of k's)^2: how many answers lie between two grades.

    Labels in the order of the grades, from either end (Krippendorff 2011, section D: ordinal metric).
    """
    # Counted up to the middle of each grade, so that the distance is a difference.
    middle = np.cumsum(margins, axis=-1) - margins / 2
    squared: Floats = (middle[..., :, None] - middle[..., None, :]) ** 2
    return squared


def alpha(counts: Ints, distance: Distance = nominal, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """Krippendorff's alpha: 1 - observed/expected disagreement; 1 is perfect, 0 is what chance would give.

    counts: answers by unit and label, (U, K). With n_uc answers c of m_u on unit u, units of two answers or more:

        o_ck  = sum over u of (n_uc n_uk - [c = k] n_uc) / (m_u - 1)           coincidences
        n_c   = sum over k of o_ck,  n = sum over c of n_c                     margins
        alpha = 1 - (n - 1) sum o_ck d_ck / sum n_c n_k d_ck                   d: squared distance

    (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Content Analysis, chapter 11.) Not defined where
    all answers are the same: without variation nothing can be said of reliability.
    """
    counts = _pairable(counts)
    kinds, number = _kinds(counts)
    size = counts.shape[1]
    answers = kinds.sum(axis=1)
    together = kinds[:, :, None] * kinds[:, None, :] - np.eye(size) * kinds[:, :, None]
    each = (together / (answers - 1)[:, None, None]).reshape(len(kinds), size * size)

    def value(times: Floats) -> Floats:
        coincidences = (times @ each).reshape(-1, size, size)
        margins = coincidences.sum(axis=2)
        apart = distance(margins)
        observed = (coincidences * apart).sum(axis=(1, 2))
        expected = np.einsum("bc,bck,bk->b", margins, apart, margins, optimize=True)
        return _one_less(observed * (margins.sum(axis=1) - 1), expected)

    return _measure(value, number, seed, replicates)


def observed_agreement(counts: Ints, *, seed: int, replicates: int = REPLICATES) -> Measure:
    """The share of pairs of answers on one unit that are the same: the sum of o_cc / n, with the symbols of `alpha`.

    A unit weighs as it has answers, as in alpha, which is this corrected for chance. Not corrected, it is high
    wherever one label is frequent.
    """
    counts = _pairable(counts)
    kinds, number = _kinds(counts)
    answers = kinds.sum(axis=1)
    each = np.stack([(kinds * (kinds - 1)).sum(axis=1) / (answers - 1), answers], axis=1)
    return _measure(lambda times: _ratio(*(times @ each).T), number, seed, replicates)


@dataclass(frozen=True)
class AgainstRest:
    """One annotator against all others who answered the same units.

    agreement: the mean, over units, of the share of the others' answers that are the annotator's own. Over all
    annotators, weighted by their units, its mean is the observed agreement (but for repeats).
    kappa: the same corrected for chance: a person who always gives the frequent label agrees often, but has a kappa of
    0.
    """

    annotator: Hashable
    units: int  # with an answer of somebody else
    agreement: Measure
    kappa: Measure


def against_rest(
    answers: Answers, distance: Distance = nominal, *, seed: int, replicates: int = REPLICATES
) -> list[AgainstRest]:
    """Each annotator against the rest, in the order of `answers.annotators`.

    On a unit where the annotator's answer is c (a share a_c of their answers, if there are several) and the others'
    are k by shares r_k, with sums over the annotator's units and d the squared distance:

        agreement = sum a_c r_c / units
        kappa     = 1 - sum a_c r_k d_ck / (sum over c, k of (sum a_c) (sum r_k) d_ck / units)

    the latter being Cohen's kappa, weighted where labels are grades, with the rest as the second annotator (Cohen
    1968, Psychological Bulletin 70(4)). Distances of grades are those of all answers together, and the same in all
    replicates. Not defined where annotator and rest gave one and the same label throughout.
    """
    counts = answers.counts()
    size = counts.shape[1]
    apart = distance(counts[counts.sum(axis=1) > 1].sum(axis=0).astype(np.float64))
    # One row for each annotator and unit, sorted by annotator.
    pairs, pair = np.unique(answers.annotator * len(answers.units) + answers.unit, return_inverse=True)
    own = np.bincount(pair * size + answers.label, minlength=len(pairs) * size).reshape(len(pairs), size)
    rest = counts[pairs % max(1, len(answers.units))] - own
    shared = rest.sum(axis=1) > 0
    who = (pairs // max(1, len(answers.units)))[shared]
    first = np.searchsorted(who, np.arange(len(answers.annotators) + 1))
    both = np.concatenate([own[shared], rest[shared]], axis=1)
    return [
        _one_against_rest(annotator, both[first[place] : first[place + 1]], apart, seed, replicates)
        for place, annotator in enumerate(answers.annotators)
    ]


def _one_against_rest(annotator: Hashable, both: Ints, apart: Floats, seed: int, replicates: int) -> AgainstRest:
    """both: own answers by label, then the others', for each unit: (units, 2K)."""
    kinds, number = _kinds(both)
    size = kinds.shape[1] // 2
    own = kinds[:, :size] / kinds[:, :size].sum(axis=1, keepdims=True)
    rest = kinds[:, size:] / kinds[:, size:].sum(axis=1, keepdims=True)
    same = (own * rest).sum(axis=1)
    off = np.einsum("uc,ck,uk->u", own, apart, rest, optimize=True)

    def kappa(times: Floats) -> Floats:
        expected = np.einsum("bc,ck,bk->b", times @ own, apart, times @ rest, optimize=True)
        return _one_less(times @ off * times.sum(axis=1), expected)

    return AgainstRest(
        annotator,
        int(number.sum()),
        _measure(lambda times: _ratio(times @ same, times.sum(axis=1)), number, seed, replicates),
        _measure(kappa, number, seed, replicates),
    )


def _pairable(counts: Ints) -> Ints:
    """Units of two answers or more, and labels that they have: no other adds anything to any coefficient."""
    counts = counts[counts.sum(axis=1) > 1]
    used: Ints = counts[:, counts.any(axis=0)]
    return used


def _kinds(counts: Ints) -> tuple[Ints, Ints]:
    """Units that are alike, once, and how many there are of each.

    Drawing units anew is drawing how often each kind comes, which is multinomial: of 8,000 units with three answers
    of two labels there are four kinds.
    """
    kinds, number = np.unique(counts, axis=0, return_counts=True)
    return kinds, number.astype(np.int64)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole; NaN where the whole is nothing."""
    ratios: Floats = np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)
    return ratios


def _one_less(observed: Floats, expected: Floats) -> Floats:
    return 1 - _ratio(observed, expected)


def _measure(value: Callable[[Floats], Floats], number: Ints, seed: int, replicates: int) -> Measure:
    """value: from how often each kind of unit comes, (B, kinds), to B coefficients; number: how often each does come.

    Replicates in which the coefficient is not defined are left out.
    """
    units = int(number.sum())
    if not units:
        return Measure(None, None, None, 0)
    point = float(value(number[None, :].astype(np.float64))[0])
    if np.isnan(point):
        return Measure(None, None, None, units)
    if units < LEAST_UNITS or len(number) < 2:
        return Measure(point, None, None, units)
    times = np.random.default_rng(seed).multinomial(units, number / units, size=replicates)
    drawn = value(times.astype(np.float64))
    drawn = drawn[~np.isnan(drawn)]
    if not len(drawn) or drawn.min() == drawn.max():
        return Measure(point, None, None, units)
    return Measure(point, *percentiles(drawn), units)
