"""What a filter kept and dropped, by what people read of each: how much of it is what the filter is meant to drop, and
the filter's recall and precision, each with its 95% interval. And how much of declared labels is wrong, which is the
same share.

Of each part some are read, drawn by lot, and it is the part itself that is told of, in whole numbers: what was read is
known, and of the rest the number of those meant is taken to be beta-binomial, as it is under Jeffreys' prior (Brown,
Cai and DasGupta 2001, as in intervals.py; for a finite population Smith 1984, Present position and potential
developments: Bayesian sampling inference, Journal of the Royal Statistical Society A 147(2)). So a part that was read
to the end is certain, and the two parts together need no approximation by a normal distribution.
annotate/controls/filter_precision.py and declared_audit.py count the answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy

from annotate.core.estimation.proportions import LEVEL, SLACK, UNKNOWN, Estimate

_TAIL = (1 - LEVEL) / 2
# Of so many unread or fewer each possible number has its own probability. Of more the share itself is taken, by as many
# quantiles: how far a number strays from it is far below what a sample that people can read leaves open.
MOST = 200_000
# Where each number of a distribution must be gone through, as many quantiles stand for more.
_POINTS = 10_000
# What is less likely than this is left out: the recall of two parts needs the product of two distributions.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Part:
    """What is known of a part: `size` items, of which `read` were read to the end and `found` of these to be meant, or
    wrong; `unresolved` were drawn, and have no label: left out by people, or not done yet.
    """

    size: int
    read: int
    found: int
    unresolved: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.found <= self.read and 0 <= self.unresolved <= self.size - self.read):
            raise ValueError(f"{self} cannot be: what was found is part of what was read, and that of the whole.")

    @property
    def expected(self) -> float:
        """How many of the part are meant if the unread are like the read."""
        return self.size * self.found / self.read if self.read else 0.0

    def if_unresolved(self, are_meant: bool) -> "Part":
        """The part if all that have no label were meant, or none."""
        found = self.found + self.unresolved * are_meant
        return replace(self, read=self.read + self.unresolved, found=found, unresolved=0)


@dataclass(frozen=True)
class Audit:
    """kept, dropped: how much of each part is meant; recall: of what is meant the dropped share; precision: of the
    dropped what is meant, which is the same as `dropped`.
    """

    kept: Estimate
    dropped: Estimate
    recall: Estimate

    @property
    def precision(self) -> Estimate:
        return self.dropped


def audit(kept: Part, dropped: Part) -> Audit:
    """The figures of a filter from both parts.

    What has no label may be meant or not: each interval reaches from its low end if it is what makes the figure small
    to its high end if it is what makes it great. A part of which nothing was read to the end tells nothing, and without
    it there is no recall; where nothing meant was found in either part, recall has no value, and reaches from 0 to 1.
    """
    return Audit(share(kept), share(dropped), recall(kept, dropped))


def share(*parts: Part) -> Estimate:
    """How much of a part is meant, or of several parts together; count: how many were read.

    Of several the unread are taken together, each item that was read standing for the unread ones of its part. The
    distribution is that of one part that knows as much (Kish 1965, Survey Sampling, section 11.7). The sum of the
    parts' own distributions will not do: half an item found and half an item not found in each part is far too much
    where there are many parts. With 28 parts of 50, of which 10 were read, it held a share of 1% in 9% of 300 draws.
    A part of which nothing was read to the end counts as the others do, and may be meant as a whole or not at all.
    """
    known, blind = [part for part in parts if part.read], sum(part.size for part in parts if not part.read)
    if not known:
        return UNKNOWN
    size, read = sum(part.size for part in known), sum(part.read for part in known)
    low, _ = _ends([part.if_unresolved(False) for part in known])
    _, high = _ends([part.if_unresolved(True) for part in known])
    value, whole = sum(part.expected for part in known) / size, size + blind
    found = sum(part.found for part in known)
    return Estimate(value, min(low / whole, value), max((high + blind) / whole, value), found, read)


def recall(kept: Part, dropped: Part) -> Estimate:
    """Of all that is meant the share that was dropped. A part that is empty holds nothing."""
    if any(part.size and not part.read for part in (kept, dropped)):
        return UNKNOWN
    meant = kept.expected + dropped.expected
    if not meant:
        return UNKNOWN
    low = _recall_end(kept.if_unresolved(True), dropped.if_unresolved(False), _TAIL)
    high = _recall_end(kept.if_unresolved(False), dropped.if_unresolved(True), 1 - _TAIL)
    value = dropped.expected / meant
    return Estimate(value, min(low, value), max(high, value), dropped.found, kept.found + dropped.found)


def _ends(parts: Sequence[Part]) -> tuple[float, float]:
    """The least and the greatest number of the parts that may be meant, all together.

    Those are left out of which the probability of less, or of more, and of half of themselves is below a fortieth
    (the mid-p interval: Lancaster 1961, Significance tests in discrete distributions, Journal of the American
    Statistical Association 56): with the whole of themselves, intervals of small parts held far more than 95%.
    """
    size, read, found = (sum(of) for of in zip(*((part.size, part.read, part.found) for part in parts), strict=True))
    numbers, chances = _more(size - read, *_as_one(parts))
    middle = np.cumsum(chances) - chances / 2
    within = np.flatnonzero((middle >= _TAIL) & (middle <= 1 - _TAIL))
    least, greatest = (within[0], within[-1]) if len(within) else (np.argmax(chances),) * 2
    low = 0.0 if not found else found + float(numbers[least])
    high = float(size) if found == read else found + float(numbers[greatest])
    return low, high


def _as_one(parts: Sequence[Part]) -> tuple[float, float]:
    """How many must be read of one part, and how many of these be found, to know as much of the unread. The effective
    count is the least of those by the weights of all that was read, of what was found, and of what was not."""
    if len(parts) == 1:
        return parts[0].read, parts[0].found
    counts = np.array([(part.size - part.read, part.read, part.found) for part in parts], dtype=np.float64).T
    weights = counts[0] / counts[1]
    unread, found = weights @ counts[1], weights @ counts[2]
    squares, squares_found = weights**2 @ counts[1], weights**2 @ counts[2]
    if not unread:
        return 0.0, 0.0
    sums = ((squares, unread), (squares_found, found), (squares - squares_found, unread - found))
    heaviest = max(square / weight for square, weight in sums if weight > SLACK * unread)
    return float(unread / heaviest), float(min(unread, found) / heaviest)


def _recall_end(kept: Part, dropped: Part, tail: float) -> float:
    """The recall below which the probability is `tail`, with half of that of itself."""
    # As in intervals.py: nothing found leaves room for nothing, and nothing else found for all.
    if tail < 0.5 and not dropped.found:
        return 0.0
    if tail > 0.5 and not kept.found:
        return 1.0
    kept_numbers, kept_chances = _numbers(kept)
    below = np.concatenate(([0.0], np.cumsum(kept_chances)))
    dropped_numbers, dropped_chances = _few(*_numbers(dropped))
    some = dropped_numbers > 0

    def under(wanted: float) -> float:
        """The probability of less than this recall, and half of that of just it."""
        # Recall is less where more than this was kept for what was dropped.
        most = dropped_numbers[some] * ((1 - wanted) / wanted)
        slack = 1e-12 * np.maximum(1.0, most)
        at_most = below[np.searchsorted(kept_numbers, most + slack, side="right")]
        less = below[np.searchsorted(kept_numbers, most - slack, side="left")]
        of_some = float(dropped_chances[some] @ (1 - (at_most + less) / 2))
        return of_some + float(dropped_chances[~some].sum())

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if under(middle) < tail else (low, middle)
    return (low + high) / 2


def _numbers(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """How many of a part may be meant, ascending, and how probable each is; of one that was read all, one number."""
    numbers, chances = _more(part.size - part.read, part.read, part.found)
    return part.found + numbers, chances


@lru_cache(maxsize=64)
def _more(unread: int, read: float, found: float) -> tuple[np.ndarray, np.ndarray]:
    """How many of the unread may be meant, ascending, and how probable each is."""
    a, b = found + 0.5, read - found + 0.5
    if unread > MOST:
        return unread * scipy.special.betaincinv(a, b, _middles(MOST)), np.full(MOST, 1 / MOST)
    numbers = np.arange(unread + 1)
    ways = scipy.special.betaln(numbers + a, unread - numbers + b) - scipy.special.betaln(a, b)
    ways -= scipy.special.betaln(numbers + 1, unread - numbers + 1) + np.log(unread + 1)
    chances = np.exp(ways)
    likely = chances > _NEGLIGIBLE
    chances = chances[likely]
    return numbers[likely], chances / chances.sum()


def _few(numbers: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same distribution by at most _POINTS numbers."""
    if len(numbers) <= _POINTS:
        return numbers, chances
    return numbers[np.searchsorted(np.cumsum(chances), _middles(_POINTS))], np.full(_POINTS, 1 / _POINTS)


def _middles(number: int) -> np.ndarray:
    """Probabilities, each in the middle of one of `number` equal parts."""
    return (np.arange(number) + 0.5) / number
