"""The share of each label in a corpus, from a uniform draw of which people read part of each stratum.

This is two-phase sampling (Sarndal, Swensson and Wretman 1992, Model Assisted Survey Sampling, chapter 9). Each
estimator of share_estimators.py is applied twice: to the corpus, as if people had read the whole draw, and to each
stratum of the draw, from the items they did read. The two intervals are combined by MOVER (Zou and Donner 2008,
Statistics in Medicine 27(10)). tests/benchmarks/judge.py measures the coverage.
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
    """Estimate the share in a stratum from people's labels, with Jeffreys' interval.

    Jeffreys' interval suffices even if all or none of the items read have the label, because it is combined with those
    of the other strata.
    """
    rate = counts.rate((ALL, ALL), (ALL, 1))
    return counts.share(rate.value, rate.low, rate.high)


def _powered(counts: Counts) -> CorpusShare:
    found = prediction_powered(counts)
    return _by_people(counts) if found.is_fallback else found


# Estimators for the corpus given the draw, and for a stratum given the items read. Labels hardly vary in a stratum
# where the detectors agree, so the judge's errors cannot be corrected there.
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
    people: index of people's label of each item drawn, -1 if nobody read it, (n,).
    stratum: index of each item's stratum, (n,). The items read are a simple random sample of the stratum.

    Raises ValueError if no item of some stratum was read.
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
    """Counts for one label in a draw, with the judge's label in rows and people's label in columns, as in Counts.

    corpus: number of corpus items by the judge's label, (2,).
    drawn: number of items drawn, by stratum and the judge's label, (S, 2).
    read: number of items read, by stratum, the judge's label and people's label, (S, 2, 2).
    """

    corpus: Floats
    drawn: Floats
    read: Floats

    def strata(self, factor: float = 1.0) -> list[Counts]:
        """Return the counts of each stratum, treated as a corpus that was read in part.

        factor: factor by which the size of the draw is multiplied.
        """
        found = []
        for drawn, read in zip(self.drawn * factor, self.read * factor, strict=True):
            weight = drawn.sum() / read.sum()
            found.append(Counts(drawn - read.sum(axis=1), read[None], read[None] * weight, read[None] * weight**2))
        return found

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
        """Estimate the share, and how many more items people must read for the half-width.

        The additional items come from a larger draw of the same design. `more` is None if even a draw of the whole
        corpus would not be enough.
        """
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
    """Estimate the share of each label by each of the three estimators.

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
