"""A corpus that a judge labelled and people read in part: the sample, its counts for one label, people's share alone.

The two ways that use the judge's labels are in share_estimators.py. All three estimate the items
that nobody read and add the items that people read, so a corpus that was read completely has an exact share.
"""

from dataclasses import dataclass, replace
from enum import Enum
from math import fsum, sqrt

import numpy as np

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
from annotate.core.estimation.proportions import LEVEL, SLACK, UNKNOWN, Estimate, Unread, Z, moved

# Below this many items on which judge and people disagree, the interval is mostly wider than 95% needs.
LEAST_DISAGREEMENTS = 5
MOST_CLASSES = 5  # of items by their chances; more chances than that are binned by quantiles
Cells = tuple[slice | int, slice | int]  # of a table of shape (2, 2)
ALL = slice(None)


class Reason(Enum):
    """Why an estimate is that of people alone, or what to know about its interval; the value says so in words."""

    WEAK = "as people alone, since judge and people correlate too weakly"
    UNRELATED = "as people alone, since the judge or people gave this label to none or all of the items read"
    UNINFORMATIVE = "as people alone, since the judge gives this label no more often where people give it"
    INCONSISTENT = "as people alone, since the judge gives this label less often than it does by mistake"
    FEW_DISAGREEMENTS = "judge and people disagree on fewer than five items, so the interval is too wide"

    @property
    def is_fallback(self) -> bool:
        return self is not Reason.FEW_DISAGREEMENTS


@dataclass(frozen=True)
class ReadSample:
    """A corpus of N items that a judge labelled, and the n items of it that people read.

    labels: the K labels.
    corpus: number of items of the corpus by the judge's label, (K,); or (K + 1,), where the last one is the number of
        items that the judge refused to label.
    judge: the judge's label of each item read, its place in `labels`, K for a refusal, (n,).
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
        counts = (size,), (size + 1,)
        if self.corpus.shape not in counts or not self.judge.shape == self.people.shape == self.chances.shape:
            raise ValueError("The arrays of a sample differ in length; give a row per item read and a count per label.")
        for places, number in ((self.judge, len(self.corpus)), (self.people, size)):
            if len(places) and not (places.min() >= 0 and places.max() < number):
                raise ValueError(f"A place is not one of the {number} labels; give places from 0 to {number - 1}.")
        if not np.all((self.chances > 0) & (self.chances <= 1)):
            raise ValueError("An inclusion chance is not above 0 and at most 1; give the chance of the design.")
        if np.any(np.bincount(self.judge, minlength=len(self.corpus)) > self.corpus):
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
    """One label in a sample. Arrays of shape (C, 2, 2) have a table for each class of items that were drawn with about
    the same chance. Its rows are the judge's label and its columns people's: 0 for any other label, 1 for this one.

    A refusal of the judge is in row 0, as it is not this label: both corrections hold for any prediction of the label.
    To leave such items out would take them for a plain sample of all, which they seldom are.

    unread: number of items that nobody read, by the judge's label, (2,).
    read: number of items read, (C, 2, 2).
    weight, squares: the sums of the weights 1/chance of the items read, and of their squares, (C, 2, 2).
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
        distinct, place = np.unique(chances, return_inverse=True)
        if len(distinct) > MOST_CLASSES:
            edges = np.quantile(chances, np.arange(1, MOST_CLASSES) / MOST_CLASSES)
            place = np.searchsorted(edges, chances, side="right")
        number = min(MOST_CLASSES, max(1, len(distinct)))
        cell, weights = 4 * place + 2 * rows.astype(np.int64) + columns, 1 / chances
        read, weight, squares = (
            np.bincount(cell, weights=each, minlength=4 * number).reshape(number, 2, 2).astype(np.float64)
            for each in (np.ones(len(cell)), weights, weights**2)
        )
        return cls(corpus - read.sum(axis=(0, 2)), read, weight, squares)

    @property
    def corpus(self) -> float:
        return float(self.unread.sum() + self.read.sum())

    @property
    def disagreements(self) -> float:
        """Number of items read to which judge and people gave this label and another."""
        return float(self.read[:, 0, 1].sum() + self.read[:, 1, 0].sum())

    def rate(self, of: Cells, hits: Cells) -> Estimate:
        """How often an unread item like those in the cells `of` is like those in the cells `hits`, with its interval.

        Each item read stands for weight - 1 unread ones. In each class the rate has Jeffreys' interval of Kish's
        effective count (estimation.Unread). The distances of the ends of all classes are squared and added up, with
        those that come from not knowing how many unread items a class has (MOVER: Zou and Donner 2008, Statistics in
        Medicine 27(10)). With one effective count for all classes, an interval misses what is rare among the few items
        with a great weight: of 500 items it covered in 79%.
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
        ends = [(value - part * (own - rate.low), value + part * (rate.high - own)) for part, own, rate in rates]
        between = fsum(group.spread * ((rate.value or 0.0) - value) ** 2 for group, rate in classes)
        ends.append((value - Z * sqrt(between) / seen, value + Z * sqrt(between) / seen))
        count = seen**2 / all_spread
        return Estimate(value, *moved(value, ends), value * count, count)

    def correlation(self) -> float | None:
        """Between the judge's labels and people's, weighted (phi); None where one of them is constant."""
        weight = self.weight.sum(axis=0)
        shares = weight / weight.sum() if weight.any() else weight
        judge, people = float(shares[1].sum()), float(shares[:, 1].sum())
        spread = judge * (1 - judge) * people * (1 - people)
        return float(shares[1, 1] - judge * people) / sqrt(spread) if spread > SLACK else None

    def least_correlation(self) -> float:
        """1/sqrt(n - 2), with Kish's effective number of items read; 1 where that is below 3."""
        number = float(self.weight.sum()) ** 2 / float(self.squares.sum()) if self.squares.any() else 0.0
        return 1 / sqrt(max(1.0, number - 2))

    def expected(self, size: float) -> "Counts":
        """What a draw of `size` items by the same design is expected to find, if the judge errs as often as it did."""
        judged = self.unread + self.read.sum(axis=(0, 2))
        own, weight = self.read.sum(axis=2), self.weight.sum(axis=2)
        if not own.any():  # nothing was read, so all classes and labels are equal
            own, weight = own + SLACK, weight + 1.0
        # Items of the corpus by class and the judge's label; of a label that nobody read, as of all.
        shares = np.where(weight.sum(axis=0) > 0, weight, weight.sum(axis=1, keepdims=True))
        items = judged * shares / shares.sum(axis=0)
        drawn = _drawn(items.sum(axis=1), own.sum(axis=1), size)
        part = np.divide(drawn, items.sum(axis=1), out=np.ones(len(items)), where=items.sum(axis=1) > 0)[:, None, None]
        found = np.divide(
            self.weight, weight[:, :, None], out=np.full(self.weight.shape, 0.5), where=weight[:, :, None] > 0
        )
        cells = items[:, :, None] * (own[:, :, None] * found + 0.5) / (own[:, :, None] + 1)
        # What unequal chances within a class cost.
        cost = np.divide(self.squares * self.read, self.weight**2, out=np.ones(self.read.shape), where=self.weight > 0)
        read = part * cells
        return Counts(judged - read.sum(axis=(0, 2)), read, cells, cells + cost * (cells / part - cells))

    def share(self, value: float | None, low: float, high: float, *reasons: Reason) -> CorpusShare:
        """The share in the corpus, from the share among the unread items: value, low and high."""
        unread, hits, corpus = float(self.unread.sum()), float(self.read[:, :, 1].sum()), self.corpus
        if value is None and unread:
            return CorpusShare(None, 0.0, 1.0, reasons)
        found, least, most = ((hits + unread * end) / corpus for end in (value or 0.0, low, high))
        return CorpusShare(found, least, most, reasons)


def _drawn(items: Floats, read: Floats, size: float) -> Floats:
    """How many items of each class a draw has, in proportion to those read now, none more than there are."""
    if len(items) == 1:
        return np.array([min(size, float(items[0]))])
    low, high = 0.0, 1 + float(np.divide(items, read, out=np.zeros(len(items)), where=read > 0).max(initial=0.0))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(np.minimum(items, middle * read).sum()) < size else (low, middle)
    drawn: Floats = np.minimum(items, high * read)
    return drawn


def people_alone(counts: Counts) -> CorpusShare:
    """The share by people's labels alone, weighted by the design (Hajek: Sarndal, Swensson and Wretman 1992, Model
    Assisted Survey Sampling, section 5.7), with Jeffreys' interval of the effective count.

    Where all items read have the label, or none, the end away from 1 or 0 is Clopper and Pearson's, as Jeffreys' is too
    near for a label of 10% in 30 items (Brown, Cai and DasGupta 2001, Statistical Science 16(2), section 4.1.2). Of a
    stratified draw the interval is too wide rather than too narrow, since it does not use the strata.
    """
    rate, hits = counts.rate((ALL, ALL), (ALL, 1)), float(counts.read[:, :, 1].sum())
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
