"""Three estimators of each label's share in a corpus that a judge labelled completely and people labelled in part.

The estimators are people alone (the human labels only), the Rogan-Gladen correction, and prediction-powered inference.
All three treat human labels as correct, and estimate only the unread items, which have no human label. The share is
therefore exact if everything was read. The module also computes how many more items people must read for a target
width. judge_agreement.py measures how well the judge agrees with annotators, and benchmarks/judge.py measures the
coverage of the intervals.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from math import fsum, hypot, sqrt

import numpy as np

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
from annotate.core.estimation.proportions import LEVEL, SLACK, UNKNOWN, Estimate, Interval, Unread, Z, mover

# If the judge and people disagree on fewer items than this, the interval is usually wider than 95% coverage requires.
LEAST_DISAGREEMENTS = 5
MOST_CLASSES = 5  # with more distinct inclusion probabilities than this, classes are separated by quantiles
Cells = tuple[slice | int, slice | int]  # index into a table of shape (2, 2)
ALL = slice(None)


class Reason(Enum):
    """Why an estimate falls back to `people_alone`, or its interval needs caution. The value is the text to show."""

    WEAK = "same as people alone, because the judge's and people's labels correlate too weakly"
    UNRELATED = "same as people alone, because the judge or people gave this label to none or all of the items read"
    UNINFORMATIVE = "same as people alone, because the judge gives this label no more often when people give it"
    INCONSISTENT = (
        "same as people alone, because the judge gives this label less often than its rate of false positives"
    )
    FEW_DISAGREEMENTS = "judge and people disagree on fewer than five items, so the interval is too wide"

    @property
    def is_fallback(self) -> bool:
        return self is not Reason.FEW_DISAGREEMENTS


@dataclass(frozen=True)
class ReadSample:
    """A corpus of N items that a judge labelled, and a sample of n items that people read.

    labels: the K labels.
    corpus: number of corpus items by the judge's label, (K,). If the judge refused to label some items, their number is
        the last of K + 1 values, (K + 1,).
    judge: index of the judge's label of each item read, or K for a refusal, (n,).
    people: index of the final human label of each item read, (n,).
    chances: inclusion probability of each item read, above 0 and at most 1, (n,).

    Raise ValueError if the shapes differ, an index or probability is out of range, or more items were read than the
    corpus has.
    """

    labels: tuple[str, ...]
    corpus: Ints
    judge: Ints
    people: Ints
    chances: Floats

    def __post_init__(self) -> None:
        size = len(self.labels)
        counts = (size,), (size + 1,)
        if self.corpus.shape not in counts or not self.judge.shape == self.people.shape == self.chances.shape:
            raise ValueError(
                "The arrays of a sample differ in length. They must have a value per item read and a count per label."
            )
        for places, number in ((self.judge, len(self.corpus)), (self.people, size)):
            if len(places) and not (places.min() >= 0 and places.max() < number):
                raise ValueError(f"A label index is out of range. Indices must be from 0 to {number - 1}.")
        if not np.all((self.chances > 0) & (self.chances <= 1)):
            raise ValueError(
                "An inclusion probability is not above 0 and at most 1. Specify the probabilities of the design."
            )
        if np.any(np.bincount(self.judge, minlength=len(self.corpus)) > self.corpus):
            raise ValueError(
                "People read more items with a label than the corpus contains. Count the judge's labels again."
            )


@dataclass(frozen=True)
class CorpusShare(Interval):
    """A label's share in a corpus.

    value: the estimate, a fraction; None if nothing was read.
    low, high: ends of the 95% interval, fractions.
    reasons: why this is the estimate of `people_alone`, or why the interval needs caution.
    more: number of additional items to read for the target half-width; None if there is no target, or if no number of
        items is sufficient.
    """

    reasons: tuple[Reason, ...] = ()
    more: int | None = None

    @property
    def is_fallback(self) -> bool:
        return any(reason.is_fallback for reason in self.reasons)

    def is_within(self, half_width: float) -> bool:
        return self.high - self.low <= 2 * half_width


@dataclass(frozen=True)
class Counts:
    """Counts for one label in a sample.

    Arrays of shape (C, 2, 2) have one table for each class of items with similar inclusion probabilities. Rows are the
    judge's label and columns the human label: 1 for this label, 0 for all others. A refusal counts as row 0, because
    both corrections work with any prediction. Leaving out refusals would treat the remaining items as a random sample
    of the corpus, which they rarely are.

    unread: number of unread items by the judge's label, (2,).
    read: number of items read, (C, 2, 2).
    weight: sums of the weights 1/chance of the items read, (C, 2, 2).
    squares: sums of the squared weights, (C, 2, 2).
    """

    unread: Floats
    read: Floats
    weight: Floats
    squares: Floats

    @classmethod
    def of(cls, sample: ReadSample, place: int) -> "Counts":
        """Tabulate a sample for one label.

        place: index of the label.
        """
        judged, chances = float(sample.corpus[place]), sample.chances
        corpus = np.array([float(sample.corpus.sum()) - judged, judged])
        rows, columns = sample.judge == place, sample.people == place
        distinct, class_of = np.unique(chances, return_inverse=True)
        if len(distinct) > MOST_CLASSES:
            edges = np.quantile(chances, np.arange(1, MOST_CLASSES) / MOST_CLASSES)
            class_of = np.searchsorted(edges, chances, side="right")
        number = min(MOST_CLASSES, max(1, len(distinct)))
        cell, weights = 4 * class_of + 2 * rows.astype(np.int64) + columns, 1 / chances
        read, weight, squares = (
            np.bincount(cell, weights=weight_of_cell, minlength=4 * number).reshape(number, 2, 2).astype(np.float64)
            for weight_of_cell in (np.ones(len(cell)), weights, weights**2)
        )
        return cls(corpus - read.sum(axis=(0, 2)), read, weight, squares)

    @property
    def corpus(self) -> float:
        return float(self.unread.sum() + self.read.sum())

    @property
    def cautions(self) -> tuple[Reason, ...]:
        """Why intervals of estimates that use the judge's labels need caution."""
        disagreements = self.read[:, 0, 1].sum() + self.read[:, 1, 0].sum()
        return (Reason.FEW_DISAGREEMENTS,) if disagreements < LEAST_DISAGREEMENTS else ()

    def rate(self, of: Cells, hits: Cells) -> Estimate:
        """Estimate the share of unread items in the cells `hits` among the unread items in the cells `of`.

        Each item read represents weight - 1 unread items. Within a class, the rate has the Jeffreys interval at Kish's
        effective size (proportions.Unread). MOVER combines the intervals of all classes (Zou and Donner 2008,
        Statistics in Medicine 27(10)). It also includes the error from the unknown number of unread items per class.

        With a single effective size for all classes, the interval would often miss the rate of a label that is rare
        among the few items with large weights. With 500 items, its coverage was only 79%.
        """
        represented, spread = self.weight - self.read, self.squares - self.weight
        groups = [
            Unread(
                seen=float(items[of].sum()),
                off=float(items[hits].sum()),
                spread=float(squares[of].sum()),
                spread_off=float(squares[hits].sum()),
            )
            for items, squares in zip(represented, spread, strict=True)
        ]
        classes = [(group, group.rate()) for group in groups if group.seen > SLACK]
        if not classes:
            return UNKNOWN
        seen = fsum(group.seen for group, _ in classes)
        value = min(1.0, fsum(group.off for group, _ in classes) / seen)
        ends = [rate.contribution(value, group.seen / seen) for group, rate in classes]
        between = fsum(group.spread * ((rate.value or 0.0) - value) ** 2 for group, rate in classes)
        ends.append((value - Z * sqrt(between) / seen, value + Z * sqrt(between) / seen))
        count = seen**2 / fsum(group.spread for group, _ in classes)
        return Estimate(value, *mover(value, ends), value * count, count)

    def correlation(self) -> float | None:
        """Return the weighted phi coefficient between the judge's and the human labels; None if either is constant."""
        weight = self.weight.sum(axis=0)
        shares = weight / weight.sum() if weight.any() else weight
        judge, people = float(shares[1].sum()), float(shares[:, 1].sum())
        spread = judge * (1 - judge) * people * (1 - people)
        return float(shares[1, 1] - judge * people) / sqrt(spread) if spread > SLACK else None

    def least_correlation(self) -> float:
        """Return the correlation below which prediction-powered inference falls back to `people_alone`.

        It is 1/sqrt(n - 2), where n is Kish's effective number of items read, or 1 if n is below 3.
        """
        number = float(self.weight.sum()) ** 2 / float(self.squares.sum()) if self.squares.any() else 0.0
        return 1 / sqrt(max(1.0, number - 2))

    def expected(self, size: float) -> "Counts":
        """Return the expected counts for a sample of `size` items with the same design and error rates."""
        judged = self.unread + self.read.sum(axis=(0, 2))
        sample, weight = self.read.sum(axis=2), self.weight.sum(axis=2)
        if not sample.any():  # nothing was read, so treat all classes and labels the same
            sample, weight = sample + SLACK, weight + 1.0
        # Corpus items by class and by the judge's label. If no items with a label were read, the label's items are
        # distributed over the classes like all items.
        shares = np.where(weight.sum(axis=0) > 0, weight, weight.sum(axis=1, keepdims=True))
        items = judged * shares / shares.sum(axis=0)
        drawn = _allocate_draw(items.sum(axis=1), sample.sum(axis=1), size)
        part = np.divide(drawn, items.sum(axis=1), out=np.ones(len(items)), where=items.sum(axis=1) > 0)[:, None, None]
        confusion = np.divide(
            self.weight, weight[:, :, None], out=np.full(self.weight.shape, 0.5), where=weight[:, :, None] > 0
        )
        cells = items[:, :, None] * (sample[:, :, None] * confusion + 0.5) / (sample[:, :, None] + 1)
        # Design effect of the unequal inclusion probabilities within a class.
        cost = np.divide(self.squares * self.read, self.weight**2, out=np.ones(self.read.shape), where=self.weight > 0)
        read = part * cells
        return Counts(judged - read.sum(axis=(0, 2)), read, cells, cells + cost * (cells / part - cells))

    def share(self, value: float | None, low: float, high: float, *reasons: Reason) -> CorpusShare:
        """Convert a label's share in the unread items, with its interval, to its share in the whole corpus."""
        unread, hits, corpus = float(self.unread.sum()), float(self.read[:, :, 1].sum()), self.corpus
        if value is None and unread:
            return CorpusShare(None, 0.0, 1.0, reasons)
        estimate, least, most = ((hits + unread * end) / corpus for end in (value or 0.0, low, high))
        return CorpusShare(estimate, least, most, reasons)


def _allocate_draw(items: Floats, read: Floats, size: float) -> Floats:
    """Allocate a draw of `size` items to classes in proportion to the items read, up to the size of each class."""
    if len(items) == 1:
        return np.array([min(size, float(items[0]))])
    low, high = 0.0, 1 + float(np.divide(items, read, out=np.zeros(len(items)), where=read > 0).max(initial=0.0))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(np.minimum(items, middle * read).sum()) < size else (low, middle)
    drawn: Floats = np.minimum(items, high * read)
    return drawn


def people_alone(counts: Counts) -> CorpusShare:
    """Estimate the share from the human labels only, weighted by the design (Hajek estimator).

    See Sarndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, section 5.7. The interval is the Jeffreys
    interval at the effective size. However, the high end is Clopper and Pearson's if none of the items read have the
    label, and the low end is theirs if all of them do. The Jeffreys interval would cover a share of 10% in 30 items too
    rarely (Brown, Cai and DasGupta 2001, Statistical Science 16(2), section 4.1.2). The interval does not use strata,
    so it tends to be too wide for a stratified draw.
    """
    rate, hits = counts.rate((ALL, ALL), (ALL, 1)), float(counts.read[:, :, 1].sum())
    low, high = rate.low, rate.high
    if rate.count:
        end = 1 - ((1 - LEVEL) / 2) ** (1 / rate.count)
        low = low if hits < counts.read.sum() else min(low, 1 - end)
        high = high if hits else max(high, end)
    return counts.share(rate.value, low, high)


def fallback(counts: Counts, reason: Reason) -> CorpusShare:
    """Return the estimate of `people_alone` and the reason for falling back to it."""
    return replace(people_alone(counts), reasons=(reason,))


# --- The label's share according to the judge, corrected for the judge's sensitivity and specificity.


ROUNDING = 1e-7  # tolerance for the roots of an equation


def rogan_gladen(counts: Counts) -> CorpusShare:
    """Estimate a label's share by the Rogan-Gladen correction of its share q according to the judge.

        p = (q + specificity - 1) / (sensitivity + specificity - 1)

    (Rogan and Gladen 1978, Estimating Prevalence from the Results of a Screening Test, American Journal of Epidemiology
    107(1).) q is known for the unread items. Sensitivity and specificity are estimated from the items read, with
    Jeffreys intervals. For any p, MOVER combines these into an interval for p sensitivity + (1 - p) (1 - specificity)
    (Zou and Donner 2008, Statistics in Medicine 27(10)). The interval of the estimate contains every p for which q lies
    in that interval. Unlike a normal approximation, it stays between 0 and 1, and is wide if the judge is hardly better
    than chance (Lang and Reiczigel 2014, Confidence Limits for Prevalence of Disease Adjusted for Estimated Sensitivity
    and Specificity, Preventive Veterinary Medicine 113(1)).

    Fall back to `people_alone` if all or none of the items read have the label, if the sensitivity does not exceed the
    false positive rate, or if no p is compatible with q.
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
    ends = [end for end in (0.0, 1.0, value, *_roots(hit, false, judged)) if _is_compatible(hit, false, judged, end)]
    if not ends:
        return fallback(counts, Reason.INCONSISTENT)
    return counts.share(value, min(value, *ends), max(value, *ends), *counts.cautions)


def _roots(hit: Estimate, false: Estimate, judged: float) -> list[float]:
    """Return every p for which q is an end of the interval of p hit + (1 - p) false.

    Each p is the root of a quadratic equation, as in Fieller's theorem.

    hit, false: the judge's sensitivity and false positive rate.
    judged: the share q according to the judge.
    """
    gain, start = (hit.value or 0.0) - (false.value or 0.0), (false.value or 0.0) - judged
    ends: list[float] = []
    for of_hit, of_false in _distances(hit, false):
        roots = np.roots([gain**2 - of_hit**2 - of_false**2, 2 * (gain * start + of_false**2), start**2 - of_false**2])
        ends.extend(float(root.real) for root in roots if abs(root.imag) < SLACK and 0 <= root.real <= 1)
    return ends


def _is_compatible(hit: Estimate, false: Estimate, judged: float, rate: float) -> bool:
    """Return whether q lies in the interval of rate hit + (1 - rate) false. See `_roots` for the parameters."""
    middle = rate * (hit.value or 0.0) + (1 - rate) * (false.value or 0.0)
    down, up = (hypot(rate * of_hit, (1 - rate) * of_false) for of_hit, of_false in _distances(hit, false))
    return middle - down - ROUNDING <= judged <= middle + up + ROUNDING


def _distances(hit: Estimate, false: Estimate) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the distances from both values to their lower ends, followed by those to their upper ends."""
    hit_value, false_value = hit.value or 0.0, false.value or 0.0
    return (hit_value - hit.low, false_value - false.low), (hit.high - hit_value, false.high - false_value)


@dataclass(frozen=True)
class LabelShares:
    """A label's share in the corpus according to each of the three estimators.

    label: the label.
    correlation: phi coefficient between the judge's and the human labels (1 for this label, 0 for all others); None if
        either is constant.
    least_correlation: correlation above which PPI++ improves on `people_alone`, 1/sqrt(n - 2).
    people, rogan_gladen, prediction_powered: the three estimates.
    """

    label: str
    correlation: float | None
    least_correlation: float
    people: CorpusShare
    rogan_gladen: CorpusShare
    prediction_powered: CorpusShare


def corpus_shares(sample: ReadSample, half_width: float | None = None) -> list[LabelShares]:
    """Estimate each label's share in the corpus by all three estimators.

    sample: the corpus and the items read.
    half_width: target half-width of the intervals, a fraction; None for no target.

    Return one entry per label, in the order of the labels. Raise ValueError if the half-width is not between 0 and 1,
    or if the corpus is empty.
    """
    if half_width is not None and not 0 < half_width < 1:
        raise ValueError(f"The half-width must be between 0 and 1, not {half_width}.")
    if not sample.corpus.sum():
        raise ValueError("The corpus is empty. Specify how many items have each of the judge's labels.")
    shares = []
    for place, label in enumerate(sample.labels):
        counts = Counts.of(sample, place)
        estimates = (with_more(estimator, counts, half_width) for estimator, _ in ESTIMATORS)
        shares.append(LabelShares(label, counts.correlation(), counts.least_correlation(), *estimates))
    return shares


def prediction_powered(counts: Counts) -> CorpusShare:
    """Estimate a label's share by prediction-powered inference with a tuned lambda (PPI++).

    Let f be the judge's label and Y the human label, 1 for this label and 0 for all others. The estimate is lambda
    times the mean of f over the unread items, plus the weighted mean of Y - lambda f over the items read (Angelopoulos,
    Duchi and Zrnic 2023, arXiv 2311.01453, section 6). The variance is smallest if lambda is the slope of Y on f. The
    estimate is then

        q a + (1 - q) b,  lambda = a - b

    where q is the label's share in the unread items according to the judge, a is the rate at which people give the
    label where the judge does, and b the rate where the judge does not (poststratification). MOVER combines the
    Jeffreys intervals of a and b (Zou and Donner 2008, Statistics in Medicine 27(10)). This needs neither a normal
    approximation nor a variance estimate, and allows for the estimation of lambda.

    Fall back to `people_alone` if the correlation of f and Y is below 1/sqrt(n - 2), because tuning then adds more
    variance than the judge's labels remove (Mani, Xu, Lipton and Oberst 2025, arXiv 2505.20178). Also fall back if the
    judge or people gave this label to all or none of the items read.
    """
    correlation = counts.correlation()
    if correlation is None:
        return fallback(counts, Reason.UNRELATED)
    if abs(correlation) < counts.least_correlation():
        return fallback(counts, Reason.WEAK)
    shares = [float(unread) / max(1.0, float(counts.unread.sum())) for unread in counts.unread]
    rates = [counts.rate((row, ALL), (row, 1)) for row in (0, 1)]
    if any(share and rate.value is None for share, rate in zip(shares, rates, strict=True)):
        return fallback(counts, Reason.UNRELATED)
    value = sum(share * (rate.value or 0.0) for share, rate in zip(shares, rates, strict=True))
    low, high = mover(value, [rate.contribution(value, share) for share, rate in zip(shares, rates, strict=True)])
    return counts.share(value, low, high, *counts.cautions)


Estimator = Callable[[Counts], CorpusShare]


def with_more(estimator: Estimator, counts: Counts, half_width: float | None) -> CorpusShare:
    """Estimate the share, and how many more items people must read for the target half-width.

    The additional items are assumed to have the same rates as the items already read.

    estimator: the estimator.
    half_width: target half-width, a fraction; None for no target.
    """
    share = estimator(counts)
    if half_width is None or share.is_within(half_width):
        return replace(share, more=None if half_width is None else 0)

    def is_enough(number: int) -> bool:
        return estimator(counts.expected(number)).is_within(half_width)

    read, corpus = int(counts.read.sum()), int(counts.corpus)
    return replace(share, more=bisect_left(range(corpus), True, lo=read + 1, key=is_enough) - read)


# --- Each label's share in a corpus, estimated from a uniform draw. People read part of each stratum of the draw.
#
# This is two-phase sampling (Sarndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, chapter 9). Each
# estimator is applied to the corpus, as if people had read the whole draw, and to each stratum of the draw, using only
# the items that people did read. MOVER combines the intervals (Zou and Donner 2008, Statistics in Medicine 27(10)).
# benchmarks/judge.py measures the coverage.


def _people_in_stratum(counts: Counts) -> CorpusShare:
    """Estimate the share in a stratum from the human labels, with the Jeffreys interval.

    The interval suffices even if all or none of the items read have the label, because it is combined with the
    intervals of the other strata.
    """
    rate = counts.rate((ALL, ALL), (ALL, 1))
    return counts.share(rate.value, rate.low, rate.high)


def _prediction_powered_in_stratum(counts: Counts) -> CorpusShare:
    share = prediction_powered(counts)
    return _people_in_stratum(counts) if share.is_fallback else share


# Pairs of the estimator for the corpus and the estimator for a stratum. In strata where the detectors agree, labels
# hardly vary, so Rogan-Gladen cannot correct the judge's errors there.
ESTIMATORS: tuple[tuple[Estimator, Estimator], ...] = (
    (people_alone, _people_in_stratum),
    (rogan_gladen, _people_in_stratum),
    (prediction_powered, _prediction_powered_in_stratum),
)


@dataclass(frozen=True)
class AuditedDraw:
    """A uniform draw of n items from a corpus that a judge labelled.

    labels: the K labels.
    corpus: number of corpus items by the judge's label, (K,).
    judge: index of the judge's label of each item drawn, (n,).
    people: index of the human label of each item drawn, or -1 if nobody read it, (n,).
    stratum: index of each item's stratum, (n,). The items read are a simple random sample of the stratum.

    Raise ValueError if no items of a stratum were read.
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
    """Counts for one label in a draw. As in Counts, rows are the judge's label and columns the human label.

    corpus: number of corpus items by the judge's label, (2,).
    drawn: number of items drawn, by stratum and the judge's label, (S, 2).
    read: number of items read, by stratum, the judge's label and the human label, (S, 2, 2).
    """

    corpus: Floats
    drawn: Floats
    read: Floats

    def strata(self, factor: float = 1.0) -> list[Counts]:
        """Return the counts of each stratum, treated as a corpus that people read in part.

        factor: factor by which the draw is enlarged.
        """
        counts = []
        for drawn, read in zip(self.drawn * factor, self.read * factor, strict=True):
            weight = drawn.sum() / read.sum()
            counts.append(Counts(drawn - read.sum(axis=1), read[None], read[None] * weight, read[None] * weight**2))
        return counts

    def whole(self, factor: float = 1.0, *, by_judge: bool = True) -> Counts:
        """Return the expected counts of the corpus if people had read the whole draw.

        factor: factor by which the draw is enlarged.
        by_judge: whether human labels depend on the judge's label within a stratum.
        """
        rows = self.read.sum(axis=2, keepdims=True) * by_judge
        by_row = np.divide(self.read, rows, out=np.zeros_like(self.read), where=rows > 0)
        in_all = self.read.sum(axis=1, keepdims=True) / self.read.sum(axis=(1, 2), keepdims=True)
        table = factor * (self.drawn[:, :, None] * np.where(rows > 0, by_row, in_all)).sum(axis=0)[None]
        weight = self.corpus.sum() / table.sum()
        return Counts(self.corpus - table.sum(axis=(0, 2)), table, table * weight, table * weight**2)

    def share(self, estimator: Estimator, in_stratum: Estimator, factor: float = 1.0) -> CorpusShare:
        whole = estimator(self.whole(factor, by_judge=estimator is not people_alone))
        value = whole.value or 0.0
        drawn = float(self.drawn.sum() * factor)
        by_stratum = (in_stratum(counts).contribution(value, counts.corpus / drawn) for counts in self.strata(factor))
        low, high = mover(value, [(whole.low, whole.high), *by_stratum])
        return replace(whole, low=low, high=high)

    def with_more(self, estimator: Estimator, in_stratum: Estimator, half_width: float | None) -> CorpusShare:
        """Estimate the share, and how many more items people must read for the target half-width.

        The additional items come from a larger draw with the same design. `more` is None if even a draw of the whole
        corpus would not be sufficient.

        estimator: the estimator for the corpus.
        in_stratum: the estimator for a stratum.
        half_width: target half-width, a fraction; None for no target.
        """
        share = self.share(estimator, in_stratum)
        if half_width is None or share.is_within(half_width):
            return replace(share, more=None if half_width is None else 0)
        low, high = 1.0, float(self.corpus.sum() / self.drawn.sum())
        for _ in range(20):
            middle = (low + high) / 2
            is_enough = self.share(estimator, in_stratum, middle).is_within(half_width)
            low, high = (low, middle) if is_enough else (middle, high)
        is_largest = high >= self.corpus.sum() / self.drawn.sum()
        return replace(share, more=None if is_largest else int(np.ceil((high - 1) * self.read.sum())))


def shares_of_draw(draw: AuditedDraw, half_width: float | None = None) -> list[LabelShares]:
    """Estimate each label's share in the corpus by all three estimators.

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
    whole, estimates = label.whole(), (label.with_more(*estimators, half_width) for estimators in ESTIMATORS)
    return LabelShares(draw.labels[place], whole.correlation(), whole.least_correlation(), *estimates)
