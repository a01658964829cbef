"""Three estimators of the share of each label in a corpus that a judge labelled and people read in part.

They are people alone (corpus_share.py), the Rogan-Gladen correction, and prediction-powered inference. The module also
computes how many more items people must read for a target width. judge_agreement.py measures how well the judge agrees
with people, and benchmarks/judge.py measures the coverage of the intervals.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot

import numpy as np

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
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

# --- The judge's share of a label, corrected for the judge's sensitivity and specificity.


ROUNDING = 1e-7  # tolerance for the roots of an equation


def rogan_gladen(counts: Counts) -> CorpusShare:
    """Estimate a label's share by the Rogan-Gladen correction of the judge's share q.

        p = (q + specificity - 1) / (sensitivity + specificity - 1)

    (Rogan and Gladen 1978, Estimating Prevalence from the Results of a Screening Test, American Journal of Epidemiology
    107(1).) q is known for all unread items. Sensitivity and specificity are estimated from the items read, with
    Jeffreys' intervals. For any p, MOVER combines these into an interval for p sensitivity + (1 - p) (1 - specificity)
    (Zou and Donner 2008, Statistics in Medicine 27(10)). The interval of the estimate contains every p for which q lies
    in that interval. Unlike a normal approximation, it stays between 0 and 1, and it is wide if the judge is hardly
    better than chance (Lang and Reiczigel 2014, Confidence Limits for Prevalence of Disease Adjusted for Estimated
    Sensitivity and Specificity, Preventive Veterinary Medicine 113(1)).

    Fall back to people alone if all or none of the items read have the label, if the sensitivity does not exceed the
    false positive rate, or if no p fits q.
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
    """Return every p at which the judge's share is an end of the interval of p hit + (1 - p) false.

    This solves a quadratic equation, as in Fieller's theorem.
    """
    gain, start = (hit.value or 0.0) - (false.value or 0.0), (false.value or 0.0) - judged
    ends: list[float] = []
    for of_hit, of_false in _distances(hit, false):
        roots = np.roots([gain**2 - of_hit**2 - of_false**2, 2 * (gain * start + of_false**2), start**2 - of_false**2])
        ends.extend(float(root.real) for root in roots if abs(root.imag) < SLACK and 0 <= root.real <= 1)
    return ends


def _holds(hit: Estimate, false: Estimate, judged: float, rate: float) -> bool:
    """Return whether the judge's share lies in the interval of rate hit + (1 - rate) false."""
    middle = rate * (hit.value or 0.0) + (1 - rate) * (false.value or 0.0)
    down, up = (hypot(rate * of_hit, (1 - rate) * of_false) for of_hit, of_false in _distances(hit, false))
    return middle - down - ROUNDING <= judged <= middle + up + ROUNDING


def _distances(hit: Estimate, false: Estimate) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the distances of both lower ends from their values, and then those of both upper ends."""
    hit_value, false_value = hit.value or 0.0, false.value or 0.0
    return (hit_value - hit.low, false_value - false.low), (hit.high - hit_value, false.high - false_value)


@dataclass(frozen=True)
class LabelShares:
    """The share of a label in the corpus by each of the three estimators.

    label: the label.
    judged: the judge's own share, uncorrected.
    correlation: correlation of the judge's and people's labels (0 or 1 for this label); None if either is constant.
    least_correlation: correlation above which PPI++ improves on people alone, 1/sqrt(n - 2).
    power: tuned weight (lambda) of the judge's labels; 0 if prediction-powered inference falls back to people alone.
    people, rogan_gladen, prediction_powered: the three estimates.
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
    """Estimate the share of each label in the corpus by each of the three estimators.

    sample: the corpus and the items read.
    half_width: target half-width of the intervals, a fraction; None for no target.

    Return one entry per label, in the order of the labels. Raise ValueError if the half-width is not between 0 and 1,
    or if the corpus is empty.
    """
    if half_width is not None and not 0 < half_width < 1:
        raise ValueError(f"The half-width must be between 0 and 1, not {half_width}.")
    if not sample.corpus.sum():
        raise ValueError("The corpus is empty. Specify how many items have each of the judge's labels.")
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
    """Return PPI++'s tuned lambda, the weighted least-squares slope of people's labels on the judge's labels."""
    other, judged = (counts.rate((row, ALL), (row, 1)).value for row in (0, 1))
    return (judged or 0.0) - (other or 0.0)


def prediction_powered(counts: Counts) -> CorpusShare:
    """Estimate a label's share by prediction-powered inference with a tuned lambda (PPI++).

    Let f be the judge's label and Y people's label, 1 for this label and 0 for all others. The estimate is lambda times
    the mean of f over the unread items, plus the weighted mean of Y - lambda f over the items read (Angelopoulos, Duchi
    and Zrnic 2023, arXiv 2311.01453, section 6). The variance is smallest if lambda is the slope of Y on f. The
    estimate is then

        q a + (1 - q) b,  lambda = a - b

    where q is the judge's share among the unread items, and a and b are the rates at which people give the label where
    the judge does and does not (poststratification). The interval combines the Jeffreys intervals of a and b by MOVER
    (Zou and Donner 2008, Statistics in Medicine 27(10)). It needs neither a normal approximation nor a variance
    estimate, and it allows for the estimation of lambda.

    Fall back to people alone if the correlation of f and Y is below 1/sqrt(n - 2), because tuning then adds more
    variance than the judge's labels remove (Mani, Xu, Lipton and Oberst 2025, arXiv 2505.20178). Also fall back if the
    judge or people gave this label to all or none of the items read.
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
    """Estimate the share, and how many more items people must read for the half-width.

    The rates in these items are assumed to be those observed in the items already read.

    way: the estimator.
    half_width: target half-width, a fraction.
    """
    share = way(counts)
    if share.high - share.low <= 2 * half_width:
        return replace(share, more=0)
    read = few = int(counts.read.sum())
    enough = int(counts.corpus)
    while enough - few > 1:
        middle = (few + enough) // 2
        expected = way(counts.expected(middle))
        few, enough = (few, middle) if expected.high - expected.low <= 2 * half_width else (middle, enough)
    return replace(share, more=enough - read)


# --- The share of each label in a corpus, from a uniform draw in which people read part of each stratum.
#
# This is two-phase sampling (Sarndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, chapter 9). Each
# estimator is applied twice. First it is applied to the corpus, as if people had read the whole draw. Then it is
# applied to each stratum of the draw, with the items that people did read. MOVER combines the two intervals (Zou and
# Donner 2008, Statistics in Medicine 27(10)). benchmarks/judge.py measures the coverage.


Way = Callable[[Counts], CorpusShare]


def _by_people(counts: Counts) -> CorpusShare:
    """Estimate the share in a stratum from people's labels, with Jeffreys' interval.

    This interval suffices even if all or none of the items read have the label, because it is combined with the
    intervals of the other strata.
    """
    rate = counts.rate((ALL, ALL), (ALL, 1))
    return counts.share(rate.value, rate.low, rate.high)


def _powered(counts: Counts) -> CorpusShare:
    share = prediction_powered(counts)
    return _by_people(counts) if share.is_fallback else share


# Each pair has the estimator for the corpus, given the draw, and the estimator for a stratum, given the items read. The
# detectors agree in some strata. Labels hardly vary there, so the judge's errors cannot be corrected.
WAYS: tuple[tuple[Way, Way], ...] = (
    (people_alone, _by_people),
    (rogan_gladen, _by_people),
    (prediction_powered, _powered),
)


@dataclass(frozen=True)
class AuditedDraw:
    """A uniform draw of n items from a corpus that a judge labelled.

    labels: the K labels.
    corpus: number of corpus items by the judge's label, (K,).
    judge: index of the judge's label of each item drawn, (n,).
    people: index of people's label of each item drawn, or -1 if nobody read it, (n,).
    stratum: index of each item's stratum, (n,). The items read are a simple random sample of the stratum.

    Raise ValueError if no item of some stratum was read.
    """

    labels: tuple[str, ...]
    corpus: Ints
    judge: Ints
    people: Ints
    stratum: Ints

    def __post_init__(self) -> None:
        if len(np.unique(self.stratum[self.people >= 0])) < len(np.unique(self.stratum)):
            raise ValueError(
                "Nobody read any item of a stratum. Use a set in which people read items of every stratum."
            )


@dataclass(frozen=True)
class _Label:
    """Counts for one label in a draw. As in Counts, rows are the judge's label and columns people's label.

    corpus: number of corpus items by the judge's label, (2,).
    drawn: number of items drawn, by stratum and the judge's label, (S, 2).
    read: number of items read, by stratum, the judge's label and people's label, (S, 2, 2).
    """

    corpus: Floats
    drawn: Floats
    read: Floats

    def strata(self, factor: float = 1.0) -> list[Counts]:
        """Return the counts of each stratum, which is treated as a corpus that people read in part.

        factor: factor by which the size of the draw is multiplied.
        """
        counts = []
        for drawn, read in zip(self.drawn * factor, self.read * factor, strict=True):
            weight = drawn.sum() / read.sum()
            counts.append(Counts(drawn - read.sum(axis=1), read[None], read[None] * weight, read[None] * weight**2))
        return counts

    def whole(self, factor: float = 1.0, *, by_judge: bool = True) -> Counts:
        """Return the expected counts of the corpus if people had read the whole draw.

        factor: factor by which the size of the draw is multiplied.
        by_judge: whether people's labels depend on the judge's label within a stratum.
        """
        rows = self.read.sum(axis=2, keepdims=True) * by_judge
        by_row = np.divide(self.read, rows, out=np.zeros_like(self.read), where=rows > 0)
        in_all = self.read.sum(axis=1, keepdims=True) / self.read.sum(axis=(1, 2), keepdims=True)
        table = factor * (self.drawn[:, :, None] * np.where(rows > 0, by_row, in_all)).sum(axis=0)[None]
        weight = self.corpus.sum() / table.sum()
        return Counts(self.corpus - table.sum(axis=(0, 2)), table, table * weight, table * weight**2)

    def share(self, way: Way, of_stratum: Way, factor: float = 1.0) -> CorpusShare:
        whole = way(self.whole(factor, by_judge=way is not people_alone))
        value = whole.value or 0.0
        drawn, ends = float(self.drawn.sum() * factor), [(whole.low, whole.high)]
        for counts in self.strata(factor):
            part, of = counts.corpus / drawn, of_stratum(counts)
            middle = of.value or 0.0
            ends.append((value - part * (middle - of.low), value + part * (of.high - middle)))
        low, high = moved(value, ends)
        return replace(whole, low=low, high=high)

    def with_more(self, way: Way, of_stratum: Way, half_width: float) -> CorpusShare:
        """Estimate the share, and how many more items people must read for the half-width.

        The additional items come from a larger draw of the same design. `more` is None if even a draw of the whole
        corpus would not be enough.

        way: the estimator for the corpus.
        of_stratum: the estimator for a stratum.
        half_width: target half-width, a fraction.
        """
        share = self.share(way, of_stratum)
        read, low, high = float(self.read.sum()), 1.0, float(self.corpus.sum() / self.drawn.sum())
        if share.high - share.low <= 2 * half_width:
            return replace(share, more=0)
        for _ in range(20):
            middle = (low + high) / 2
            expected = self.share(way, of_stratum, middle)
            low, high = (low, middle) if expected.high - expected.low <= 2 * half_width else (middle, high)
        largest = high >= self.corpus.sum() / self.drawn.sum()
        return replace(share, more=None if largest else int(np.ceil((high - 1) * read)))


def shares_of_draw(draw: AuditedDraw, half_width: float | None = None) -> list[LabelShares]:
    """Estimate the share of each label in the corpus by each of the three estimators.

    draw: the draw and the items that people read.
    half_width: target half-width of the intervals, a fraction; None for no target.
    """
    return [_shares(draw, place, half_width) for place in range(len(draw.labels))]


def _shares(draw: AuditedDraw, place: int, half_width: float | None) -> LabelShares:
    judged: Bools = draw.judge == place
    is_read: Bools = draw.people >= 0
    size = int(draw.stratum.max()) + 1
    cell = 2 * draw.stratum + judged
    corpus = float(draw.corpus.sum())
    label = _Label(
        np.array([corpus - draw.corpus[place], draw.corpus[place]]),
        np.bincount(cell, minlength=2 * size).reshape(size, 2).astype(np.float64),
        np.bincount(2 * cell[is_read] + (draw.people[is_read] == place), minlength=4 * size)
        .reshape(size, 2, 2)
        .astype(np.float64),
    )
    people, corrected, powered = (
        label.share(*ways) if half_width is None else label.with_more(*ways, half_width) for ways in WAYS
    )
    whole = label.whole()
    return LabelShares(
        draw.labels[place],
        float(draw.corpus[place]) / corpus,
        whole.correlation(),
        whole.least_correlation(),
        0.0 if powered.is_fallback else power(whole),
        people,
        corrected,
        powered,
    )
