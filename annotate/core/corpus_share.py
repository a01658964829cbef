"""A corpus that a judge labelled and people read in part: the sample, its counts for one label, people's share alone.

The two ways that use the judge's labels are in rogan_gladen.py and prediction_powered.py. All three estimate the items
that nobody read and add the items that people read, so a corpus that was read completely has an exact share.
"""

from dataclasses import dataclass, replace
from enum import Enum
from math import sqrt

import numpy as np

from annotate.core.answers import Bools, Floats, Ints
from annotate.core.estimation import SLACK, Estimate, Unread, proportion
from annotate.core.intervals import LEVEL

# Below this many items on which judge and people disagree, the interval is mostly wider than 95% needs.
LEAST_DISAGREEMENTS = 5
LEAST_EACH = 10  # items read with a label, and without it, for a variance estimated from their weights
Cells = tuple[slice | int, slice | int]  # of a table of shape (2, 2)
ALL = slice(None)


class Reason(Enum):
    """Why an estimate is that of people alone, or what to know about its interval; the value is the sentence."""

    WEAK = "The judge's labels correlate too weakly with people's to help; these are the figures of people alone."
    UNRELATED = (
        "Too few items were read to relate the judge's label to people's; these are the figures of people alone."
    )
    UNINFORMATIVE = "The judge gives the label no more often where people do; these are the figures of people alone."
    INCONSISTENT = "The judge's share is below its rate of false positives; these are the figures of people alone."
    FEW_DISAGREEMENTS = "Judge and people disagree on fewer than five items; the interval is wider than 95% needs."

    @property
    def is_fallback(self) -> bool:
        return self is not Reason.FEW_DISAGREEMENTS


@dataclass(frozen=True)
class ReadSample:
    """A corpus of N items that a judge labelled, and the n items of it that people read.

    labels: the K labels.
    corpus: number of items of the corpus by the judge's label, (K,).
    judge: the judge's label of each item read, its place in `labels`, (n,).
    people: people's final label of each item read, (n,).
    chances: the chance with which each was drawn, above 0 and at most 1, (n,).

    ValueError where the shapes differ, a place or a chance is out of range, or more items were read than there are.
    """

    labels: tuple[str, ...]
    corpus: Ints
    judge: Ints
    people: Ints
    chances: Floats

    def __post_init__(self) -> None:
        size = len(self.labels)
        if self.corpus.shape != (size,) or not self.judge.shape == self.people.shape == self.chances.shape:
            raise ValueError("The arrays of a sample differ in length; give a row per item read and a count per label.")
        for places in (self.judge, self.people):
            if len(places) and not (places.min() >= 0 and places.max() < size):
                raise ValueError(f"A place is not one of the {size} labels; give places from 0 to {size - 1}.")
        if not np.all((self.chances > 0) & (self.chances <= 1)):
            raise ValueError("An inclusion chance is not above 0 and at most 1; give the chance of the design.")
        if np.any(np.bincount(self.judge, minlength=size) > self.corpus):
            raise ValueError("More items with a label were read than the corpus has; count the judge's labels again.")


@dataclass(frozen=True)
class CorpusShare:
    """A share in the corpus.

    value: the estimate, a fraction; None where nothing was read.
    low, high: the ends of its 95% interval, fractions.
    reasons: why this is the estimate of people alone, or what to know about the interval.
    more: how many more items people have to read for the wished half-width; None where none was wished.
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
    """One label in a sample. Arrays of shape (2, 2) have a row for the judge's label and a column for people's: 0 for
    any other label, 1 for this one.

    unread: number of items that nobody read, by the judge's label, (2,).
    read: number of items read, (2, 2).
    weight, squares: the sums of the weights 1/chance of the items read, and of their squares, (2, 2).
    """

    unread: Floats
    read: Floats
    weight: Floats
    squares: Floats

    @classmethod
    def of(cls, sample: ReadSample, place: int) -> "Counts":
        judged = float(sample.corpus[place])
        corpus = np.array([float(sample.corpus.sum()) - judged, judged])
        return cls._tabulated(corpus, sample.judge == place, sample.people == place, sample.chances)

    @classmethod
    def of_accuracy(cls, sample: ReadSample) -> "Counts":
        """Column 1 has the items on which judge and people agree; all are in row 0."""
        agreed: Bools = sample.judge == sample.people
        corpus = np.array([float(sample.corpus.sum()), 0.0])
        return cls._tabulated(corpus, np.zeros_like(agreed), agreed, sample.chances)

    @classmethod
    def _tabulated(cls, corpus: Floats, rows: Bools, columns: Bools, chances: Floats) -> "Counts":
        """corpus: number of items by row, (2,); rows, columns: 1 or 0 for each item read, (n,)."""
        cell, weights = 2 * rows.astype(np.int64) + columns, 1 / chances
        read, weight, squares = (
            np.bincount(cell, weights=each, minlength=4).reshape(2, 2).astype(np.float64)
            for each in (np.ones(len(cell)), weights, weights**2)
        )
        return cls(corpus - read.sum(axis=1), read, weight, squares)

    @property
    def corpus(self) -> float:
        return float(self.unread.sum() + self.read.sum())

    def rate(self, of: Cells, hits: Cells, least: int = LEAST_EACH) -> Estimate:
        """How often an unread item like those in the cells `of` is like those in the cells `hits`, with its interval.

        Each item read stands for weight - 1 unread ones. The interval is Jeffreys' of the effective count, the size of
        a uniform sample with the same variance by linearization (Korn and Graubard 1998, Confidence Intervals for
        Proportions with Small Expected Number of Positive Counts Estimated from Survey Data, Survey Methodology 24(2)).
        Where fewer than `least` items were read of either sort, the variance is not trusted, and the count is the
        smaller one of estimation.Unread. A uniform sample has the same count either way.
        """
        group = Unread()
        alike, spread = self.weight - self.read, self.squares - self.weight
        group.seen, group.off = float(alike[of].sum()), float(alike[hits].sum())
        group.spread, group.spread_off = float(spread[of].sum()), float(spread[hits].sum())
        rate, number = group.rate(), float(self.read[hits].sum())
        if rate.value is None or min(number, float(self.read[of].sum()) - number) < least:
            return rate
        misses = group.spread - group.spread_off
        variance = (group.spread_off * (1 - rate.value) ** 2 + misses * rate.value**2) / group.seen**2
        spread_of_one = rate.value * (1 - rate.value)
        return proportion(spread_of_one / variance * rate.value, spread_of_one / variance) if variance else rate

    def correlation(self) -> float | None:
        """Between the judge's labels and people's, weighted (phi); None where one of them is constant."""
        shares = self.weight / self.weight.sum() if self.weight.any() else self.weight
        judge, people = float(shares[1].sum()), float(shares[:, 1].sum())
        spread = judge * (1 - judge) * people * (1 - people)
        return float(shares[1, 1] - judge * people) / sqrt(spread) if spread > SLACK else None

    def least_correlation(self) -> float:
        """1/sqrt(n - 2), with Kish's effective number of items read; 1 where that is below 3."""
        number = float(self.weight.sum()) ** 2 / float(self.squares.sum()) if self.squares.any() else 0.0
        return 1 / sqrt(max(1.0, number - 2))

    def expected(self, size: float) -> "Counts":
        """What a draw of `size` items by the same design is expected to find, if the judge errs as often as it did."""
        judged, part = self.unread + self.read.sum(axis=1), size / self.corpus
        number, weights = self.read.sum(axis=1, keepdims=True), self.weight.sum(axis=1, keepdims=True)
        shares = np.divide(self.weight, weights, out=np.full((2, 2), 0.5), where=weights > 0)
        read = part * judged[:, None] * (number * shares + 0.5) / (number + 1)
        # What the unequal chances cost: how many items of this design know as much as one of a uniform draw.
        alike, spread = (self.weight - self.read).sum(axis=1), (self.squares - self.weight).sum(axis=1)
        uniform = self.read.sum(axis=1) * (1 - self.read.sum() / self.corpus)
        cost = np.maximum(1.0, np.divide(uniform * spread, alike**2, out=np.ones(2), where=alike > 0))[:, None]
        weight = read / part
        return Counts(judged - read.sum(axis=1), read, weight, weight + cost * (weight / part - weight))

    def share(self, value: float | None, low: float, high: float, *reasons: Reason) -> CorpusShare:
        """The share in the corpus, from the share among the unread items: value, low and high."""
        unread, hits, corpus = float(self.unread.sum()), float(self.read[:, 1].sum()), self.corpus
        if value is None and unread:
            return CorpusShare(None, 0.0, 1.0, reasons)
        found, least, most = ((hits + unread * end) / corpus for end in (value or 0.0, low, high))
        return CorpusShare(found, least, most, reasons)


def people_alone(counts: Counts) -> CorpusShare:
    """The share by people's labels alone, weighted by the design (Hajek: Sarndal, Swensson and Wretman 1992, Model
    Assisted Survey Sampling, section 5.7), with Jeffreys' interval of the effective count.

    Where all items read have the label, or none, the end away from 1 or 0 is Clopper and Pearson's, as Jeffreys' is too
    near for a label of 10% in 30 items (Brown, Cai and DasGupta 2001, Statistical Science 16(2), section 4.1.2). Of a
    stratified draw the interval is too wide rather than too narrow, since it does not use the strata.
    """
    rate, hits = counts.rate((ALL, ALL), (ALL, 1)), float(counts.read[:, 1].sum())
    low, high = rate.low, rate.high
    if rate.count:
        end = 1 - ((1 - LEVEL) / 2) ** (1 / rate.count)
        low = low if hits < counts.read.sum() else min(low, 1 - end)
        high = high if hits else max(high, end)
    return counts.share(rate.value, low, high)


def fallback(counts: Counts, reason: Reason) -> CorpusShare:
    """People's share alone, and why."""
    return replace(people_alone(counts), reasons=(reason,))


def judge_accuracy(sample: ReadSample) -> CorpusShare:
    """The share of the corpus on which people would give the judge's label, weighted by the design."""
    return people_alone(Counts.of_accuracy(sample))
