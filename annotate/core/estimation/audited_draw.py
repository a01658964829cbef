"""The share of each label in a corpus, from a uniform draw of which people read a part of each stratum.

The draw is a sample in two phases (Sarndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, chapter 9). Each
way of share_estimators.py estimates the corpus as if people had read the whole draw, and the draw by stratum from the
items that they did read. The distances of both intervals are squared and added up (MOVER: Zou and Donner 2008,
Statistics in Medicine 27(10)). The coverage is measured by tests/benchmarks/judge.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from annotate.core.aggregation.answer_table import Bools, Floats, Ints
from annotate.core.estimation.corpus_share import ALL, CorpusShare, Counts, people_alone
from annotate.core.estimation.proportions import moved
from annotate.core.estimation.share_estimators import LabelShares, power, prediction_powered, rogan_gladen

Way = Callable[[Counts], CorpusShare]


def _by_people(counts: Counts) -> CorpusShare:
    """The share in a stratum by what was read of it. Jeffreys' interval is enough where none or all of that has the
    label, since the distances of all strata are added up."""
    rate = counts.rate((ALL, ALL), (ALL, 1))
    return counts.share(rate.value, rate.low, rate.high)


def _powered(counts: Counts) -> CorpusShare:
    found = prediction_powered(counts)
    return _by_people(counts) if found.is_fallback else found


# Of the corpus from the draw, and of a stratum of the draw from what was read of it. Labels hardly vary in a stratum on
# which detectors agree, so that there the judge's errors cannot be corrected.
WAYS: tuple[tuple[Way, Way], ...] = (
    (people_alone, _by_people),
    (rogan_gladen, _by_people),
    (prediction_powered, _powered),
)


@dataclass(frozen=True)
class AuditedDraw:
    """A uniform draw of n items from a corpus that a judge labelled.

    labels: the K labels. corpus: number of items of the corpus by the judge's label, (K,).
    judge: the judge's label of each item drawn, its place in `labels`, (n,).
    people: people's label of each item drawn, -1 where nobody read it, (n,).
    stratum: the place of each item's stratum, in which the items to read were chosen with equal chances, (n,).

    ValueError where nobody read any item of a stratum.
    """

    labels: tuple[str, ...]
    corpus: Ints
    judge: Ints
    people: Ints
    stratum: Ints

    def __post_init__(self) -> None:
        if len(np.unique(self.stratum[self.people >= 0])) < len(np.unique(self.stratum)):
            raise ValueError("Nobody read any item of a stratum; leave out a set of which a stratum was not read.")


@dataclass(frozen=True)
class _Label:
    """One label in a draw. Tables have the judge's label in rows and people's in columns, as in Counts.

    corpus: number of items of the corpus by the judge's label, (2,). drawn: of those drawn, by stratum, (S, 2). read:
    of those read, (S, 2, 2).
    """

    corpus: Floats
    drawn: Floats
    read: Floats

    def strata(self, factor: float = 1.0) -> list[Counts]:
        """The items of each stratum, as a corpus of which a part was read. factor: by which the draw is larger."""
        found = []
        for drawn, read in zip(self.drawn * factor, self.read * factor, strict=True):
            weight = drawn.sum() / read.sum()
            found.append(Counts(drawn - read.sum(axis=1), read[None], read[None] * weight, read[None] * weight**2))
        return found

    def whole(self, factor: float = 1.0, *, by_judge: bool = True) -> Counts:
        """The corpus, as if the draw had been read completely and people had found what they are expected to: as often
        as among the items read of a stratum, and by_judge, to which the judge gave the label or not."""
        rows = self.read.sum(axis=2, keepdims=True) * by_judge
        by_row = np.divide(self.read, rows, out=np.zeros_like(self.read), where=rows > 0)
        in_all = self.read.sum(axis=1, keepdims=True) / self.read.sum(axis=(1, 2), keepdims=True)
        table = factor * (self.drawn[:, :, None] * np.where(rows > 0, by_row, in_all)).sum(axis=0)[None]
        weight = self.corpus.sum() / table.sum()
        return Counts(self.corpus - table.sum(axis=(0, 2)), table, table * weight, table * weight**2)

    def share(self, way: Way, of_stratum: Way, factor: float = 1.0) -> CorpusShare:
        found = way(self.whole(factor, by_judge=way is not people_alone))
        value = found.value or 0.0
        drawn, ends = float(self.drawn.sum() * factor), [(found.low, found.high)]
        for counts in self.strata(factor):
            part, of = counts.corpus / drawn, of_stratum(counts)
            middle = of.value or 0.0
            ends.append((value - part * (middle - of.low), value + part * (of.high - middle)))
        low, high = moved(value, ends)
        return replace(found, low=low, high=high)

    def with_more(self, way: Way, of_stratum: Way, half_width: float) -> CorpusShare:
        """With how many more items people have to read of a larger draw of the same design; None where a draw of the
        whole corpus is not enough."""
        found = self.share(way, of_stratum)
        read, low, high = float(self.read.sum()), 1.0, float(self.corpus.sum() / self.drawn.sum())
        if found.high - found.low <= 2 * half_width:
            return replace(found, more=0)
        for _ in range(20):
            middle = (low + high) / 2
            expected = self.share(way, of_stratum, middle)
            low, high = (low, middle) if expected.high - expected.low <= 2 * half_width else (middle, high)
        largest = high >= self.corpus.sum() / self.drawn.sum()
        return replace(found, more=None if largest else int(np.ceil((high - 1) * read)))


def shares_of_draw(draw: AuditedDraw, half_width: float | None = None) -> list[LabelShares]:
    """The share of each label, by each of the three ways. half_width: a wished half-width of intervals, a fraction."""
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
