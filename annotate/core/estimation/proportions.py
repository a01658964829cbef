"""Estimates of proportions: plain, stratified, pooled and reweighted.

Plain counts are not enough for items on which the detectors agreed. Annotators read (label) only a sample of these
items, the audits, so each audited item represents many. For unread items, the detectors' label is a guess. The audits
show how often, and in which way, such guesses are wrong. The callers decide which items count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from math import fsum, hypot, sqrt
from typing import NamedTuple

import scipy  # loads `scipy.special` on first use, which saves a quarter of a command's startup time

# --- Interval of a proportion from its counts.


LEVEL = 0.95


def jeffreys(hits: float, of: float) -> tuple[float, float]:
    """Return the ends of the 95% Jeffreys interval of a proportion, as fractions.

    The ends are the (1 - LEVEL)/2 and (1 + LEVEL)/2 quantiles of Beta(hits + 1/2, of - hits + 1/2). If there are no
    hits, the low end is 0; if all are hits, the high end is 1 (Brown, Cai and DasGupta 2001, Interval Estimation for a
    Binomial Proportion, Statistical Science 16(2), section 4.1.2).

    hits: number of hits. Effective counts may be fractional; the interval is extended to contain hits/of if necessary.
    of: number of observations; with 0 the interval is (0, 1).

    Raise ValueError if `hits` is not between 0 and `of`.
    """
    if not 0 <= hits <= of:
        raise ValueError(f"{hits} hits out of {of} are impossible. The number of hits must be between 0 and {of}.")
    if of == 0:
        return 0.0, 1.0
    value, tail = hits / of, (1 - LEVEL) / 2
    low = 0.0 if hits == 0 else min(value, float(scipy.special.betaincinv(hits + 0.5, of - hits + 0.5, tail)))
    high = 1.0 if hits == of else max(value, float(scipy.special.betaincinv(hits + 0.5, of - hits + 0.5, 1 - tail)))
    return low, high


# Below this many items, most approximations are unreliable.
LEAST_COUNT = 5
# An estimate that depends on guesses has no interval if its effective size is smaller than this. With a higher limit,
# only estimates that look certain would have intervals, and these cover the true value too rarely. Plain counts always
# have an interval.
LEAST_EFFECTIVE = 1
# Effective counts come from bisection, so a count that should be 1 may be 0.9999997.
PRECISION = 1e-6  # relative tolerance
ENOUGH = 1 - 10 * PRECISION  # smallest accepted ratio of an effective count to the required count
SLACK = 1e-9  # floats that differ by less count as equal, because the order of summation changes the last digits
Z = 1.959964  # the 97.5% quantile of the normal distribution
# Sources of error that contribute to an interval.
DRAW, UNREAD, SECONDS, UNRESOLVED = "draw", "unread posts", "second opinions", "unresolved audits"
CHECKS, RECHECKS = "checks of disputed posts", "checks of confirmed audits"


class Part(NamedTuple):
    """The part of an interval that is due to one source of error.

    down, up: distances from the value to the interval's ends if this were the only source of error.
    """

    source: str
    down: float
    up: float


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its 95% interval. The value is None if nothing was counted."""

    value: float | None
    low: float
    high: float

    def contribution(self, total: float, part: float) -> tuple[float, float]:
        """Return the ends of the interval of a total that includes this estimate, if its other terms are known exactly.

        total: the total.
        part: coefficient of this estimate in the total.
        """
        middle = self.value or 0.0
        return total - part * (middle - self.low), total + part * (self.high - middle)


@dataclass(frozen=True)
class Estimate(Interval):
    """A proportion with its 95% interval, as fractions.

    value: the estimate; None if nothing was counted.
    low, high: ends of the interval; 0 and 1 if there is no interval, because the estimate depends on guesses and
        `count` is below LEAST_EFFECTIVE.
    hits, count: effective counts, possibly fractional. A simple random sample with these counts has an interval of the
        same width.
    parts: contributions of the sources of error, if known. Their distances are combined as the root of the sum of
        squares, and the ends are then clipped to 0 and 1.
    """

    hits: float
    count: float
    parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)

    @property
    def has_interval(self) -> bool:
        return (self.low, self.high) != (0.0, 1.0)

    @property
    def sources(self) -> dict[str, float]:
        """Each source's share of the squared distances from the value to the interval's ends.

        The shares add up to 1. The mapping is empty if there is no interval.
        """
        squares = {part.source: part.down**2 + part.up**2 for part in self.parts if self.has_interval}
        total = fsum(squares.values())
        return {source: square / total for source, square in squares.items() if square}

    def as_dict(self) -> dict[str, float | None]:
        """Return all fields except `parts`. The ends are None if there is a value but no interval."""
        fields = {name: value for name, value in asdict(self).items() if name != "parts"}
        return fields if self.has_interval or self.value is None else fields | {"low": None, "high": None}


UNKNOWN = Estimate(None, 0.0, 1.0, 0.0, 0.0)


def proportion(hits: float, of: float) -> Estimate:
    low, high = jeffreys(hits, of)
    return Estimate(hits / of if of else None, low, high, float(hits), float(of))


def pool(*estimates: Estimate) -> Estimate:
    """Pool the estimates from disjoint samples of the same population by adding up their effective counts."""
    count = fsum(estimate.count for estimate in estimates)
    return proportion(min(count, fsum(estimate.hits for estimate in estimates)), count)


class Turn(NamedTuple):
    """One way that a stratum's items may differ from their guess.

    domain: change in the size of the domain for each differing item (-1, 0 or 1).
    hits: change in the number of hits for each differing item (-1, 0 or 1).
    posts: number of items that may differ in this way.
    read: number of these items that were read.
    off: number of the items read that differ.
    usual: rate at which similar items differ in strata where more of them were read; None if unknown.
    """

    domain: int
    hits: int
    posts: float
    read: float
    off: float
    usual: float | None = None


class Guess(NamedTuple):
    """A stratum's totals if the detectors' labels are right.

    domain: number of items in the domain.
    hits: number of these items that are hits.
    turns: ways in which the truth may differ from the guess. If empty, no item that was read differs from its guess,
        and the domain is known for all items: only a hit can turn out to be a miss, or a miss a hit.
    """

    domain: float
    hits: float
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True)
class Stratum:
    """A part of a draw. Annotators read a random subset of its items.

    The counts are integers for an actual draw, and may be fractional for a planned draw (figures/interval_width.py).

    drawn: number of items drawn.
    read: number of these items that annotators read.
    domain: number of items read that are in the estimate's domain. For the recall of label X, these are the items whose
        true label is X.
    hits: number of items in the domain on which the predictor is right.
    guess: totals if the detectors' labels are right; None if there is no guess.
    """

    drawn: float
    read: float
    domain: float
    hits: float
    guess: Guess | None = None


@dataclass
class Unread:
    """Weighted counts to estimate how many unread items, over all strata, differ from their guess in one way.

    Each item read represents `weight` items, including itself.

    usual: see Turn.
    posts: number of unread items in partly read strata.
    blind: number of unread items in strata where nothing was read.
    seen: sum of (weight - 1) over the items read.
    off: sum of (weight - 1) over the items read that differ.
    spread, spread_off: the same two sums with each term multiplied by the weight.
    """

    usual: float | None = None
    posts: float = 0.0
    blind: float = 0.0
    seen: float = 0.0
    off: float = 0.0
    spread: float = 0.0
    spread_off: float = 0.0

    def add(self, weight: float, unread: float, seen: float, off: float) -> None:
        self.posts += unread
        self.seen += (weight - 1) * seen
        self.off += (weight - 1) * off
        self.spread += weight * (weight - 1) * seen
        self.spread_off += weight * (weight - 1) * off

    def turned(self, *, normal: bool = False) -> "Turned":
        """Estimate how many of the unread items differ from their guess.

        normal: whether to use the normal approximation for the interval.
        """
        low, high = self._normal_ends() if normal else self._ends()
        rate = min(high, max(low, self._rate()))
        return (self.posts + self.blind) * rate, self.posts * low, self.posts * high + self.blind

    def rate(self) -> Estimate:
        """Estimate how often an unread item differs from its guess; UNKNOWN if none was read."""
        if not self.seen:
            return UNKNOWN
        value, (low, high), count = self._rate(), self._ends(), self.seen**2 / self.spread
        return Estimate(value, low, high, value * count, count)

    def _rate(self) -> float:
        """Return the rate of differing items, with one pseudo-item that differs at the usual rate, if it is known."""
        if self.usual is None:
            return self.off / self.seen if self.seen else 0.0
        more = self.spread / self.seen if self.seen else 1.0
        return (self.off + more * self.usual) / (self.seen + more)

    def _ends(self) -> tuple[float, float]:
        """Return the Jeffreys interval at Kish's effective size.

        The size is reduced if either the differing or the other items have larger weights than all items.
        """
        if not self.seen:
            return 0.0, 1.0
        parts = (
            (self.spread, self.seen),
            (self.spread_off, self.off),
            (self.spread - self.spread_off, self.seen - self.off),
        )
        heaviest = max(spread / weights for spread, weights in parts if weights > 1e-9 * self.seen)
        count = self.seen / heaviest
        return jeffreys(min(count, self.off / heaviest), count)

    def _normal_ends(self) -> tuple[float, float]:
        """Return the normal interval of a weighted share.

        Half a differing item of mean weight is added to the variance. Otherwise, the interval would have no width if no
        items differ.
        """
        if not self.seen:
            return 0.0, 1.0
        rate, mean = self.off / self.seen, self.spread / self.seen
        squares = self.spread_off * (1 - rate) ** 2 + (self.spread - self.spread_off) * rate**2
        deviation = Z * sqrt(max(0.0, squares) + mean**2 / 2) / self.seen
        return max(0.0, rate - deviation), min(1.0, rate + deviation)


Way = tuple[int, int]  # changes in the domain and in the hits for an item that differs from its guess
HIT_TO_MISS: Way = (0, -1)
MISS_TO_HIT: Way = (0, 1)
Turned = tuple[float, float, float]  # number of differing items: the estimate and the ends of its interval
NOTHING: Mapping[str, Sequence[tuple[Way, Turned]]] = {}


def stratified(
    strata: Iterable[Stratum], *, further: Mapping[str, Sequence[tuple[Way, Turned]]] = NOTHING, normal: bool = False
) -> Estimate:
    """Estimate the share of hits in the domain from a uniform draw with partly read strata.

    strata: strata of the whole draw, in any order. Strata known to lie outside the domain can be omitted.
    further: (way, number) pairs for each source of error: a way in which items may differ although annotators read
        them, and the number of items that differ in this way.
    normal: whether to use normal intervals if some hits may be misses and some misses may be hits. The result is then
        close to prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Science 382).

    If everything was read, this is the plain proportion with its interval. Otherwise, each unread item counts as its
    guess. The weighted items read show how many unread items differ from their guess, and in which way: for example, a
    presumed hit may be a miss, or an item may belong to the domain after all (Sarndal, Swensson and Wretman 1992, Model
    Assisted Survey Sampling, section 9.6).

    The number of items that differ in one way has a Jeffreys interval at its effective size (Kish 1965, Survey
    Sampling, section 11.7; Franco, Little, Louis and Slud 2019, Comparative Study of Confidence Intervals for
    Proportions in Complex Sample Surveys, Journal of Survey Statistics and Methodology 7(3)). The interval therefore
    allows for unobserved errors. For example, if annotators read 30 of 900 items and find no errors, there may still be
    70. If none of the items that may differ in one way were read, the interval allows for all or none of them to
    differ, and the value uses the rate of similar items if known. MOVER combines these intervals with the plain
    interval of the draw (Zou and Donner 2008, Statistics in Medicine 27(10)).

    There is no finite-population correction, because the share describes how well a predictor does on items like these.
    Twenty items are the same evidence about that whether they are a sample or the whole corpus (Deming 1953, On the
    Distinction between Enumerative and Analytic Surveys, Journal of the American Statistical Association 48(262);
    Cochran 1977, Sampling Techniques, section 2.14, for comparisons of domains).

    docs/explanation/measuring.md reports the coverage and the widths that benchmarks/measuring.py measures.

    Return UNKNOWN if no items in the domain were read, or if some unread items have no guess and nothing was read in
    any of their strata. Raise ValueError for a stratum with inconsistent counts.
    """
    drawn = []
    for stratum in strata:
        if not 0 <= stratum.hits <= stratum.domain <= stratum.read <= stratum.drawn:
            raise ValueError(
                f"{stratum} is impossible: hits must be in the domain, the domain among the posts read, and these "
                "among the posts drawn."
            )
        drawn += [stratum] if stratum.drawn else []
    partly = [stratum for stratum in drawn if stratum.read < stratum.drawn]
    plain = [stratum for stratum in partly if stratum.guess is None]
    if not any(stratum.domain for stratum in drawn) or (plain and not any(stratum.read for stratum in plain)):
        return UNKNOWN
    guesses = [(stratum, _guess(stratum, plain)) for stratum in partly]
    whole = [stratum for stratum in drawn if stratum.read == stratum.drawn]
    domain, hits = fsum(stratum.domain for stratum in whole), fsum(stratum.hits for stratum in whole)
    unread: dict[Way, Unread] = {}
    for stratum, guess in guesses:
        domain += guess.domain + fsum(turn.off * turn.domain for turn in guess.turns)
        hits += guess.hits + fsum(turn.off * turn.hits for turn in guess.turns)
        for turn in guess.turns:
            if turn.posts > turn.read:
                _add(unread.setdefault((turn.domain, turn.hits), Unread(turn.usual)), stratum, turn)
    cancels = normal and unread.keys() >= {HIT_TO_MISS, MISS_TO_HIT}
    turned = [(way, group.turned(normal=cancels)) for way, group in unread.items()]
    return combine(domain, hits, {UNREAD: turned, **further})


def _guess(stratum: Stratum, plain: Sequence[Stratum]) -> Guess:
    """Return a stratum's guess, including the ways in which the truth may differ from it.

    If the stratum has no guess, use the most common outcome among the items read in `plain`, which are all strata
    without a guess. There is one exception: if the items read in each of these strata are all inside or all outside the
    domain, the same is assumed of its unread items. A stratum where nothing was read then counts as inside if all other
    strata are inside.
    """
    drawn, read, domain, hits = stratum.drawn, stratum.read, stratum.domain, stratum.hits
    if guess := stratum.guess:
        wrong = Turn(0, -1, guess.hits, hits, 0), Turn(0, 1, guess.domain - guess.hits, domain - hits, 0)
        return guess if guess.turns else guess._replace(turns=wrong)
    some_read = [other for other in plain if other.read]
    all_in = all(other.domain == other.read for other in some_read)
    if all_in or (len(some_read) == len(plain) and all(other.domain in (0, other.read) for other in plain)):
        inside = drawn if domain or not read else 0
        return Guess(inside, 0, (Turn(0, 1, inside, domain, hits),))
    inside, right = most = _most_common(plain)
    counts = {(0, 0): read - domain, (1, 0): domain - hits, (1, 1): hits}
    turns = (Turn(way[0] - inside, way[1] - right, drawn, read, off) for way, off in counts.items() if way != most)
    return Guess(drawn * inside, drawn * right, tuple(turns))


def _most_common(strata: Iterable[Stratum]) -> Way:
    """Return the outcome with the largest total weight among the items read.

    The outcomes are (0, 0) outside the domain, (1, 0) for a miss in the domain, and (1, 1) for a hit.
    """
    sums = {(0, 0): 0.0, (1, 0): 0.0, (1, 1): 0.0}
    for stratum in strata:
        weight = stratum.drawn / stratum.read if stratum.read else 0.0
        for way, number in zip(
            sums, (stratum.read - stratum.domain, stratum.domain - stratum.hits, stratum.hits), strict=True
        ):
            sums[way] += weight * number
    return max(sums, key=lambda way: sums[way])


def _add(group: Unread, stratum: Stratum, turn: Turn) -> None:
    if not stratum.read:
        group.blind += turn.posts
        return
    group.add(stratum.drawn / stratum.read, turn.posts - turn.read, turn.read, turn.off)


def combine(domain: float, hits: float, by_source: Mapping[str, Sequence[tuple[Way, Turned]]]) -> Estimate:
    """Estimate the share of hits in a domain, for the stream that the items were drawn from.

    domain, hits: totals if no items differ from their guesses.
    by_source: (way, number) pairs for each source of error: a way in which items may differ, and the number of items
        that differ in this way, with its interval.
    """
    turned = [turn for turns in by_source.values() for turn in turns]

    def share(numbers: Sequence[float]) -> float:
        inside = domain + fsum(way[0] * number for (way, _), number in zip(turned, numbers, strict=True))
        right = hits + fsum(way[1] * number for (way, _), number in zip(turned, numbers, strict=True))
        return min(1.0, max(0.0, right / inside)) if inside > 0 else 0.0

    values = [value for _, (value, _, _) in turned]
    posts = domain + fsum(way[0] * value for (way, _), value in zip(turned, values, strict=True))
    if posts <= 0:
        return UNKNOWN
    if not turned:
        plain = proportion(hits, domain)
        return replace(plain, parts=(part_by(DRAW, hits / domain, [(plain.low, plain.high)]),))
    value = share(values)
    ends = []
    for place, (_, (_, fewest, highest)) in enumerate(turned):
        reached = [share([*values[:place], number, *values[place + 1 :]]) for number in (fewest, highest)]
        ends.append((min(reached), max(reached)))
    parts, rest = [part_by(DRAW, value, [jeffreys(value * posts, posts)])], iter(ends)
    for source, turns in by_source.items():
        parts.append(part_by(source, value, list(islice(rest, len(turns)))))
    return from_parts(value, parts, posts)


def from_parts(value: float, parts: Sequence[Part], most: float) -> Estimate:
    """Return an estimate whose interval combines several sources of error.

    most: upper limit of the effective size, see `with_interval`.
    """
    low, high = mover(value, [(value - part.down, value + part.up) for part in parts])
    return replace(with_interval(value, low, high, most), parts=tuple(parts))


def mover(value: float, ends: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Combine independent sources of error by MOVER, and return the ends of the interval.

    MOVER (method of variance estimates recovery) adds up the squared distances of the ends from the value.

    value: the estimate.
    ends: for each source, the lowest and the highest value of the estimate if this were the only source of error.
    """
    _, down, up = part_by("", value, ends)
    return max(0.0, value - down), min(1.0, value + up)


def part_by(source: str, value: float, ends: Iterable[tuple[float, float]]) -> Part:
    """Return the part of an interval that is due to one source of error.

    ends: (lowest, highest) values that the source can cause. Their distances from the value are combined as the root of
        the sum of squares.
    """
    ends = list(ends)
    down = hypot(*(max(0.0, value - low) for low, _ in ends))
    return Part(source, down, hypot(*(max(0.0, high - value) for _, high in ends)))


def widen_to_cover(estimate: Estimate, others: Iterable[Estimate], source: str) -> Estimate:
    """Widen the interval of an estimate to contain the intervals of all others.

    source: name of the source of error to which the added width is attributed.
    """
    finite = [other for other in others if other.value is not None]
    if estimate.value is None or not finite:
        return estimate
    low, high = (
        min(estimate.low, *(other.low for other in finite)),
        max(estimate.high, *(other.high for other in finite)),
    )
    down = sqrt(max(0.0, (estimate.value - low) ** 2 - (estimate.value - estimate.low) ** 2))
    up = sqrt(max(0.0, (high - estimate.value) ** 2 - (estimate.high - estimate.value) ** 2))
    wider = with_interval(estimate.value, low, high, estimate.count)
    return replace(wider, parts=(*estimate.parts, Part(source, down, up)))


def with_interval(value: float, low: float, high: float, most: float) -> Estimate:
    """Return an estimate with the given interval, and the effective size at which the Jeffreys interval is as wide.

    most: upper limit of the effective size (items).
    """
    width, count = high - low, min(most, 1e-3)
    widest, narrowest = (end - start for start, end in (jeffreys(value * of, of) for of in (count, most)))
    if widest > width >= narrowest:
        while most > count * (1 + PRECISION):
            middle = sqrt(count * most)
            start, end = jeffreys(value * middle, middle)
            count, most = (middle, most) if end - start > width else (count, middle)
    elif widest > width:
        count = most
    if count < LEAST_EFFECTIVE * ENOUGH:
        return Estimate(value, 0.0, 1.0, value * count, count)
    return Estimate(value, low, high, value * count, count)


def reweighted_precision(counts: tuple[float, float], others: Iterable[tuple[float, float, float]]) -> Estimate:
    """Estimate the precision for a language from a balanced set, reweighted to the natural shares of the languages.

    Recall and each false-trigger rate have Jeffreys intervals, which MOVER combines (Zou and Donner 2008, Statistics in
    Medicine 27(10)). The article "A note on classifier comparison and distribution skew" treats recall as known. With
    10 to 49 items per language, its interval covers the true precision in 73% to 94% of cases, and this interval in 90%
    to 94%. Both give 34.0% to 95.7% for (1200, 1500) against [(1, 1500, 500)]. The article reports 95.8%, because it
    rounds 53.9 false triggers to 52.

    counts: number of hits and number of items in the language.
    others: for each other language, the number of false triggers, the number of items, and the frequency of the
        language relative to the language in `counts`.

    Return UNKNOWN if there are no hits. If another language has no items, the value is None, and the interval allows
    for any rate in that language. `hits` is the number of hits in `counts`, and `count` the corresponding number of
    triggers at natural shares.
    """
    rates = [(ratio, false / of if of else None, *jeffreys(false, of)) for false, of, ratio in others]
    recall = counts[0] / counts[1] if counts[1] else 0.0
    if not recall:
        return UNKNOWN
    expected = [None if rate is None else ratio * rate for ratio, rate, _, _ in rates]
    false_positives = fsum(triggers or 0.0 for triggers in expected)
    fewest = max(0.0, false_positives - hypot(*(ratio * ((rate or 0.0) - low) for ratio, rate, low, _ in rates)))
    most = false_positives + hypot(*(ratio * (high - (rate or 0.0)) for ratio, rate, _, high in rates))
    value = None if None in expected else recall / (recall + false_positives)
    low, high = recall / (recall + most), recall / (recall + fewest)
    if value is not None:
        by_recall = [end / (end + false_positives) for end in jeffreys(*counts)]
        low, high = mover(value, [(low, high), (by_recall[0], by_recall[1])])
    return Estimate(value, low, high, float(counts[0]), counts[0] / value if value else 0.0)
