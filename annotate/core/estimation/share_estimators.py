"""The share of each label in a corpus that a judge labelled and people read in part, estimated in three ways.

People alone (corpus_share.py), Rogan and Gladen's correction, and prediction-powered inference, which
is here; and how many more items people have to read for a wished width. How far the judge agrees with people is in
judge_agreement.py. The coverage of the intervals is measured by tests/benchmarks/judge.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot

import numpy as np

from annotate.core.estimation.corpus_share import (
    ALL,
    LEAST_DISAGREEMENTS,
    CorpusShare,
    Counts,
    ReadSample,
    Reason,
    fallback,
    people_alone,
)
from annotate.core.estimation.proportions import SLACK, Estimate, moved

# --- The judge's share of a label, corrected by the judge's sensitivity and specificity.


ROUNDING = 1e-7  # of the roots of an equation


def rogan_gladen(counts: Counts) -> CorpusShare:
    """The judge's share q, corrected by its sensitivity and specificity (Rogan and Gladen 1978, Estimating Prevalence
    from the Results of a Screening Test, American Journal of Epidemiology 107(1)):

        p = (q + specificity - 1) / (sensitivity + specificity - 1)

    q is known of all unread items; the other two are estimated from the items read. The interval holds every p for
    which q lies in the interval of p sensitivity + (1 - p) (1 - specificity), which is made of Jeffreys' intervals of
    both (MOVER: Zou and Donner 2008, Statistics in Medicine 27(10)). It stays between 0 and 1, and is wide where the
    judge is hardly better than chance. A normal approximation is not (Lang and Reiczigel 2014, Confidence Limits for
    Prevalence of Disease Adjusted for Estimated Sensitivity and Specificity, Preventive Veterinary Medicine 113(1)).

    It falls back to people alone where no item read has the label or none is without it, and where the sensitivity is
    not above the rate of false positives, by which the correction divides.
    """
    unread = float(counts.unread.sum())
    if not unread:
        return counts.share(0.0, 0.0, 0.0)
    hit, false = (counts.rate((ALL, column), (1, column)) for column in (1, 0))
    if hit.value is None or false.value is None:
        return fallback(counts, Reason.UNRELATED)
    gain, judged = hit.value - false.value, float(counts.unread[1]) / unread
    if gain <= SLACK:
        return fallback(counts, Reason.UNINFORMATIVE)
    value = min(1.0, max(0.0, (judged - false.value) / gain))
    ends = [end for end in (0.0, 1.0, value, *_roots(hit, false, judged)) if _holds(hit, false, judged, end)]
    if not ends:
        return fallback(counts, Reason.INCONSISTENT)
    few = counts.disagreements < LEAST_DISAGREEMENTS
    reasons = [Reason.FEW_DISAGREEMENTS] if few else []
    return counts.share(value, min(value, *ends), max(value, *ends), *reasons)


def _roots(hit: Estimate, false: Estimate, judged: float) -> list[float]:
    """Every p at which an end of the interval of p hit + (1 - p) false is the judge's share; from a quadratic equation,
    as in Fieller's theorem."""
    gain, start = (hit.value or 0.0) - (false.value or 0.0), (false.value or 0.0) - judged
    found: list[float] = []
    for of_hit, of_false in _distances(hit, false):
        roots = np.roots([gain**2 - of_hit**2 - of_false**2, 2 * (gain * start + of_false**2), start**2 - of_false**2])
        found.extend(float(root.real) for root in roots if abs(root.imag) < SLACK and 0 <= root.real <= 1)
    return found


def _holds(hit: Estimate, false: Estimate, judged: float, rate: float) -> bool:
    """Whether the judge's share lies in the interval of rate hit + (1 - rate) false."""
    middle = rate * (hit.value or 0.0) + (1 - rate) * (false.value or 0.0)
    down, up = (hypot(rate * of_hit, (1 - rate) * of_false) for of_hit, of_false in _distances(hit, false))
    return middle - down - ROUNDING <= judged <= middle + up + ROUNDING


def _distances(hit: Estimate, false: Estimate) -> tuple[tuple[float, float], tuple[float, float]]:
    """How far the lower ends of both lie below their values, and the upper ends above."""
    hit_value, false_value = hit.value or 0.0, false.value or 0.0
    return (hit_value - hit.low, false_value - false.low), (hit.high - hit_value, false.high - false_value)


@dataclass(frozen=True)
class LabelShares:
    """A label's share in the corpus by each of the three ways.

    judged: the judge's own share of the label, uncorrected.
    correlation: between the judge's labels and people's (0 or 1 for this label); None where one of them is constant.
    least_correlation: the correlation from which PPI++ improves on people alone, 1/sqrt(n - 2).
    power: the tuned weight of the judge's labels, lambda; 0 where that way falls back to people alone.
    """

    label: str
    judged: float
    correlation: float | None
    least_correlation: float
    power: float
    people: CorpusShare
    rogan_gladen: CorpusShare
    prediction_powered: CorpusShare


def corpus_shares(sample: ReadSample, half_width: float | None = None) -> list[LabelShares]:
    """The share of each label in the corpus by each of the three ways, in the order of the labels.

    sample: the corpus and the items read.
    half_width: the wished half-width of the intervals, a fraction; None if none is wished.

    ValueError where the half-width is not between 0 and 1, or the corpus is empty.
    """
    if half_width is not None and not 0 < half_width < 1:
        raise ValueError(f"A half-width of {half_width} is not possible; give a fraction between 0 and 1.")
    if not sample.corpus.sum():
        raise ValueError("The corpus is empty; give the number of its items by the judge's label.")
    return [_label_shares(Counts.of(sample, place), label, half_width) for place, label in enumerate(sample.labels)]


def _label_shares(counts: Counts, label: str, half_width: float | None) -> LabelShares:
    people, corrected, powered = (
        way(counts) if half_width is None else with_more(way, counts, half_width)
        for way in (people_alone, rogan_gladen, prediction_powered)
    )
    return LabelShares(
        label,
        float(counts.unread[1] + counts.read[:, 1].sum()) / counts.corpus,
        counts.correlation(),
        counts.least_correlation(),
        0.0 if powered.is_fallback else power(counts),
        people,
        corrected,
        powered,
    )


def power(counts: Counts) -> float:
    """PPI++'s tuned lambda: the slope of people's labels on the judge's, by weighted least squares."""
    other, judged = (counts.rate((row, ALL), (row, 1)).value for row in (0, 1))
    return (judged or 0.0) - (other or 0.0)


def prediction_powered(counts: Counts) -> CorpusShare:
    """The prediction-powered share with a tuned lambda (PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453,
    section 6).

    f is the judge's label and Y people's, 1 for this label and 0 for any other. The estimate is lambda times the mean f
    of the unread items, plus the weighted mean of Y - lambda f of the items read. The lambda of least variance is the
    slope of Y on f, and with it the estimate is

        q a + (1 - q) b,  lambda = a - b

    where q is the judge's share among the unread items, and a and b are how often people give the label where the judge
    does and where it does not (poststratification). So the interval needs neither a normal approximation nor an
    estimated variance, and knows that lambda was estimated: a and b have Jeffreys' intervals, whose distances are
    squared and added up (MOVER: Zou and Donner 2008, Statistics in Medicine 27(10)).

    Where the correlation of f and Y is below 1/sqrt(n - 2), tuning adds more variance than the judge's labels remove
    (Mani, Xu, Lipton and Oberst 2025, arXiv 2505.20178): the estimate falls back to people alone. So it does where a
    label of the judge or of people is missing among the items read.
    """
    correlation = counts.correlation()
    if correlation is None:
        return fallback(counts, Reason.UNRELATED)
    if abs(correlation) < counts.least_correlation():
        return fallback(counts, Reason.WEAK)
    value, ends = 0.0, []
    for row in (0, 1):
        share = float(counts.unread[row]) / max(1.0, float(counts.unread.sum()))
        rate = counts.rate((row, ALL), (row, 1))
        if share and rate.value is None:
            return fallback(counts, Reason.UNRELATED)
        middle = rate.value or 0.0
        value += share * middle
        ends.append((share * (rate.low - middle), share * (rate.high - middle)))
    low, high = moved(value, [(value + down, value + up) for down, up in ends])
    few = counts.disagreements < LEAST_DISAGREEMENTS
    return counts.share(value, low, high, *([Reason.FEW_DISAGREEMENTS] if few else []))


def with_more(way: Callable[[Counts], CorpusShare], counts: Counts, half_width: float) -> CorpusShare:
    """The share by one way, with how many more items people have to read until half the width of its interval is
    `half_width`, if they find what they are expected to."""
    found = way(counts)
    if found.high - found.low <= 2 * half_width:
        return replace(found, more=0)
    read = few = int(counts.read.sum())
    enough = int(counts.corpus)
    while enough - few > 1:
        middle = (few + enough) // 2
        expected = way(counts.expected(middle))
        few, enough = (few, middle) if expected.high - expected.low <= 2 * half_width else (middle, enough)
    return replace(found, more=enough - read)
