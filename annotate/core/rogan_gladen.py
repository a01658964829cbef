"""The judge's share of a label, corrected by the judge's sensitivity and specificity."""

from math import hypot

import numpy as np

from annotate.core.corpus_share import ALL, LEAST_DISAGREEMENTS, CorpusShare, Counts, Reason, fallback
from annotate.core.estimation import SLACK, Estimate

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
