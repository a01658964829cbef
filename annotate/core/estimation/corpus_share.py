"""A corpus that a judge labelled and people read in part: the sample, its counts, and the estimate from people alone.

share_estimators.py has the two estimators that also use the judge's labels. All three take the labels of the items that
people read as they are, and estimate only the unread items. The share is therefore exact if everything was read.
"""

from dataclasses import dataclass, replace
from enum import Enum
from math import fsum, sqrt

import numpy as np

from annotate.core.aggregation.answer_table import Floats, Ints
from annotate.core.estimation.proportions import LEVEL, SLACK, UNKNOWN, Estimate, Unread, Z, moved

# If judge and people disagree on fewer items than this, the interval is usually wider than 95% coverage requires.
LEAST_DISAGREEMENTS = 5
MOST_CLASSES = 5  # maximum number; quantiles separate the classes if there are more inclusion probabilities
Cells = tuple[slice | int, slice | int]  # index into a table of shape (2, 2)
ALL = slice(None)


class Reason(Enum):
    """Why an estimate falls back to people alone, or why its interval needs caution. The value is the text to show."""

    WEAK = "same as people alone, because judge and people correlate too weakly"
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
    """A corpus of N items that a judge labelled, and the n items that people read.

    labels: the K labels.
    corpus: number of corpus items by the judge's label, (K,). If the judge refused to label some items, their number is
        the last of K + 1 values, (K + 1,).
    judge: index of the judge's label of each item read, or K for a refusal, (n,).
    people: index of people's final label of each item read, (n,).
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
                raise ValueError(f"An index is not one of the {number} labels. Indices must be from 0 to {number - 1}.")
        if not np.all((self.chances > 0) & (self.chances <= 1)):
            raise ValueError(
                "An inclusion probability is not above 0 and at most 1. Specify the probabilities of the design."
            )
        if np.any(np.bincount(self.judge, minlength=len(self.corpus)) > self.corpus):
            raise ValueError(
                "People read more items with a label than the corpus contains. Count the judge's labels again."
            )


@dataclass(frozen=True)
class CorpusShare:
    """The share of a label in a corpus.

    value: the estimate, a fraction; None if nothing was read.
    low, high: the ends of its 95% interval, fractions.
    reasons: why this is the estimate from people alone, or why its interval needs caution.
    more: number of additional items to read for the target half-width; None if there is no target, or if no number of
        items is enough.
    """

    value: float | None
    low: float
    high: float
    reasons: tuple[Reason, ...] = ()
    more: int | None = None

    @property
    def is_fallback(self) -> bool:
        return any(reason.is_fallback for reason in self.reasons)


@dataclass(frozen=True)
class Counts:
    """Counts for one label in a sample.

    Arrays of shape (C, 2, 2) have one table per class of items with similar inclusion probability. Rows are the judge's
    label and columns people's: 1 for this label, 0 for all others. A refusal counts as row 0, because both corrections
    work with any prediction. If refusals were left out, the remaining items would be treated as a random sample of the
    corpus, which they rarely are.

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
        """Tabulate the items read: in row 1 those that the judge gave a label, in column 1 those that people gave it.

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
    def disagreements(self) -> float:
        """Number of items read on which judge and people disagree about this label."""
        return float(self.read[:, 0, 1].sum() + self.read[:, 1, 0].sum())

    def rate(self, of: Cells, hits: Cells) -> Estimate:
        """Estimate how often an unread item that belongs to the cells `of` belongs to the cells `hits`.

        Each item read represents weight - 1 unread items. Within a class, the rate has Jeffreys' interval at Kish's
        effective size (proportions.Unread). MOVER combines the intervals of all classes (Zou and Donner 2008,
        Statistics in Medicine 27(10)). It also includes the error that arises because the number of unread items per
        class is unknown.

        With a single effective size for all classes, the interval would often miss the rate of a label that is rare
        among the few items with a large weight. With 500 items, it covered only 79%.
        """
        alike, spread = self.weight - self.read, self.squares - self.weight
        classes = []
        for place in range(len(self.read)):
            group = Unread()
            group.seen, group.off = float(alike[place][of].sum()), float(alike[place][hits].sum())
            group.spread, group.spread_off = float(spread[place][of].sum()), float(spread[place][hits].sum())
            if group.seen > SLACK:
                classes.append((group, group.rate()))
        if not classes:
            return UNKNOWN
        seen, all_spread = fsum(group.seen for group, _ in classes), fsum(group.spread for group, _ in classes)
        value = min(1.0, fsum(group.off for group, _ in classes) / seen)
        rates = [(group.seen / seen, rate.value or 0.0, rate) for group, rate in classes]
        ends = [
            (value - part * (middle - rate.low), value + part * (rate.high - middle)) for part, middle, rate in rates
        ]
        between = fsum(group.spread * ((rate.value or 0.0) - value) ** 2 for group, rate in classes)
        ends.append((value - Z * sqrt(between) / seen, value + Z * sqrt(between) / seen))
        count = seen**2 / all_spread
        return Estimate(value, *moved(value, ends), value * count, count)

    def correlation(self) -> float | None:
        """Return the weighted correlation (phi) of the judge's and people's labels; None if either is constant."""
        weight = self.weight.sum(axis=0)
        shares = weight / weight.sum() if weight.any() else weight
        judge, people = float(shares[1].sum()), float(shares[:, 1].sum())
        spread = judge * (1 - judge) * people * (1 - people)
        return float(shares[1, 1] - judge * people) / sqrt(spread) if spread > SLACK else None

    def least_correlation(self) -> float:
        """Return the correlation below which prediction-powered inference falls back to people alone.

        It is 1/sqrt(n - 2), where n is Kish's effective number of items read, or 1 if n is below 3.
        """
        number = float(self.weight.sum()) ** 2 / float(self.squares.sum()) if self.squares.any() else 0.0
        return 1 / sqrt(max(1.0, number - 2))

    def expected(self, size: float) -> "Counts":
        """Return the expected counts of a draw of `size` items by the same design and with the same error rates."""
        judged = self.unread + self.read.sum(axis=(0, 2))
        sample, weight = self.read.sum(axis=2), self.weight.sum(axis=2)
        if not sample.any():  # if nothing was read, all classes and labels are treated as equal
            sample, weight = sample + SLACK, weight + 1.0
        # Corpus items by class and the judge's label. If nothing was read under a label, its items are spread over the
        # classes like the items of all labels together.
        shares = np.where(weight.sum(axis=0) > 0, weight, weight.sum(axis=1, keepdims=True))
        items = judged * shares / shares.sum(axis=0)
        drawn = _drawn(items.sum(axis=1), sample.sum(axis=1), size)
        part = np.divide(drawn, items.sum(axis=1), out=np.ones(len(items)), where=items.sum(axis=1) > 0)[:, None, None]
        confusion = np.divide(
            self.weight, weight[:, :, None], out=np.full(self.weight.shape, 0.5), where=weight[:, :, None] > 0
        )
        cells = items[:, :, None] * (sample[:, :, None] * confusion + 0.5) / (sample[:, :, None] + 1)
        # The factor by which unequal probabilities within a class increase the variance.
        cost = np.divide(self.squares * self.read, self.weight**2, out=np.ones(self.read.shape), where=self.weight > 0)
        read = part * cells
        return Counts(judged - read.sum(axis=(0, 2)), read, cells, cells + cost * (cells / part - cells))

    def share(self, value: float | None, low: float, high: float, *reasons: Reason) -> CorpusShare:
        """Convert the share of a label in the unread items, with its interval, to its share in the whole corpus."""
        unread, hits, corpus = float(self.unread.sum()), float(self.read[:, :, 1].sum()), self.corpus
        if value is None and unread:
            return CorpusShare(None, 0.0, 1.0, reasons)
        estimate, least, most = ((hits + unread * end) / corpus for end in (value or 0.0, low, high))
        return CorpusShare(estimate, least, most, reasons)


def _drawn(items: Floats, read: Floats, size: float) -> Floats:
    """Allocate a draw of `size` items to classes in proportion to the items read, but not more than a class has."""
    if len(items) == 1:
        return np.array([min(size, float(items[0]))])
    low, high = 0.0, 1 + float(np.divide(items, read, out=np.zeros(len(items)), where=read > 0).max(initial=0.0))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(np.minimum(items, middle * read).sum()) < size else (low, middle)
    drawn: Floats = np.minimum(items, high * read)
    return drawn


def people_alone(counts: Counts) -> CorpusShare:
    """Estimate the share from people's labels alone, weighted by the design (Hajek estimator).

    See Sarndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, section 5.7. The interval is Jeffreys' at
    the effective size. If none of the items read have the label, the high end is Clopper and Pearson's instead; if all
    of them have it, the low end is. Jeffreys' interval would cover a share of 10% in 30 items too rarely (Brown, Cai
    and DasGupta 2001, Statistical Science 16(2), section 4.1.2). The interval does not use strata, so it tends to be
    too wide for a stratified draw.
    """
    rate, hits = counts.rate((ALL, ALL), (ALL, 1)), float(counts.read[:, :, 1].sum())
    low, high = rate.low, rate.high
    if rate.count:
        end = 1 - ((1 - LEVEL) / 2) ** (1 / rate.count)
        low = low if hits < counts.read.sum() else min(low, 1 - end)
        high = high if hits else max(high, end)
    return counts.share(rate.value, low, high)


def fallback(counts: Counts, reason: Reason) -> CorpusShare:
    """Return the estimate from people alone, with the reason why another estimator falls back to it."""
    return replace(people_alone(counts), reasons=(reason,))
