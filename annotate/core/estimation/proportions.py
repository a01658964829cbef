"""Proportions that are estimated: of plain counts, by stratum, pooled, reweighted.

What an interval of plain counts is, is in intervals.py; whose posts are counted, with the callers.

Why not the plain counts: where the detectors agreed, only the audited posts were read by people, so one of them
stands for many ("Truth of the numbers" in the plan of the house). What nobody has read is guessed, by the detectors'
label, and what people found in the audited posts says how much of the guess may be otherwise, and how.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from math import fsum, hypot, sqrt
from typing import NamedTuple

import scipy  # which loads its part `special` when it is first used: a quarter of the start of a command

# --- Intervals of one proportion from its counts.


LEVEL = 0.95


def jeffreys(hits: float, of: float, level: float = LEVEL) -> tuple[float, float]:
    """The ends of the Jeffreys interval of a proportion, as fractions; (0, 1) where nothing was counted.

    The (1 - level)/2 quantiles from below and above of Beta(hits + 1/2, of - hits + 1/2), but 0 below where
    nothing was hit and 1 above where all was (Brown, Cai and DasGupta 2001, Interval Estimation for a Binomial
    Proportion, Statistical Science 16(2), section 4.1.2). Counts may be real, since effective counts are: then an
    end may pass hits/of where hits is far below 1, and is held there. ValueError where hits are not within 0 and
    `of`, or the level not between 0 and 1.
    """
    if not 0 <= hits <= of:
        raise ValueError(f"{hits} hits of {of} make no proportion; give hits between 0 and the count.")
    if not 0 < level < 1:
        raise ValueError(f"The level of an interval is between 0 and 1, not {level}.")
    if of == 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    value = hits / of
    low = 0.0 if hits == 0 else min(value, float(scipy.special.betaincinv(hits + 0.5, of - hits + 0.5, tail)))
    high = 1.0 if hits == of else max(value, float(scipy.special.betaincinv(hits + 0.5, of - hits + 0.5, 1 - tail)))
    return low, high


# Fewer items than these tell too little for most approximations.
LEAST_COUNT = 5
# An estimate that is partly guessed has no interval if it knows less than this many plain posts. A greater number would
# select the labels that look surest, whose intervals then cover too rarely. Plain counts always have an interval.
LEAST_KNOWN = 1
# Effective counts are found by bisection, so one that should be 1 may be 0.9999997.
PRECISION = 1e-6  # relative
ENOUGH = 1 - 10 * PRECISION  # of the posts that an estimate must know, what its effective count has at least
SLACK = 1e-9  # two floats that differ by less are the same: sums in another order do
Z = 1.959964  # the 97.5% quantile of the normal distribution
# What an interval's width comes from.
DRAW, UNREAD, SECONDS, UNRESOLVED = "draw", "unread posts", "second opinions", "unresolved audits"
CHECKS, RECHECKS = "checks of disputed posts", "checks of confirmed audits"


class Part(NamedTuple):
    """How far one source moves the ends of an interval from the value: down and up."""

    source: str
    down: float
    up: float


@dataclass(frozen=True)
class Estimate:
    """A proportion with its 95% interval, as fractions. value: None if nothing was counted.

    hits, count: the effective counts, those of a plain sample that knows as much; real numbers. Where a part is guessed
    and count is below LEAST_KNOWN there is no interval: low is 0, and high 1. parts: what the width comes from, where
    that is known; their distances, squared and added up, are those of the ends, which stop at 0 and 1.
    """

    value: float | None
    low: float
    high: float
    hits: float
    count: float
    parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)

    @property
    def has_interval(self) -> bool:
        return (self.low, self.high) != (0.0, 1.0)

    @property
    def sources(self) -> dict[str, float]:
        """Source -> its share of the squared distances of both ends, which add up to 1; empty without an interval."""
        squares = {part.source: part.down**2 + part.up**2 for part in self.parts if self.has_interval}
        total = fsum(squares.values())
        return {source: square / total for source, square in squares.items() if square}

    def as_dict(self) -> dict[str, float | None]:
        """Where there is a value without an interval, its ends are None."""
        known = {name: value for name, value in asdict(self).items() if name != "parts"}
        return known if self.has_interval or self.value is None else known | {"low": None, "high": None}


UNKNOWN = Estimate(None, 0.0, 1.0, 0.0, 0.0)


def proportion(hits: float, of: float) -> Estimate:
    low, high = jeffreys(hits, of)
    return Estimate(hits / of if of else None, low, high, float(hits), float(of))


def pooled(*estimates: Estimate) -> Estimate:
    """Of the union of disjoint samples of the same posts: their effective counts added up."""
    count = fsum(estimate.count for estimate in estimates)
    return proportion(min(count, fsum(estimate.hits for estimate in estimates)), count)


class Turn(NamedTuple):
    """Posts of a stratum that may be otherwise than guessed, in one way: each that is so adds `domain` to the domain
    and `hits` to the hits (-1, 0 or 1). Of `posts` such posts `read` were read, and `off` of these were so.

    usual: how often such posts are otherwise where more of them were read; None where nothing says that.
    """

    domain: int
    hits: int
    posts: float
    read: float
    off: float
    usual: float | None = None


class Guess(NamedTuple):
    """What all of a stratum's posts, read or not, come to with the detectors' label taken for the truth: `domain`
    posts, `hits` of them right. turns: the ways in which the truth may differ from that; empty where no post that was
    read differs and the domain is known of all, so that hits may be misses, and misses hits."""

    domain: float
    hits: float
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True)
class Stratum:
    """A part of a draw, in posts: people have read `read` of `drawn`, taken by chance; of these, `domain` are in the
    domain of the estimate (truly X, for the recall of X), and of the domain `hits` are right.

    All are whole numbers of a draw that was made, and real ones of what is expected of a draw (planning.py).
    """

    drawn: float
    read: float
    domain: float
    hits: float
    guess: Guess | None = None


@dataclass
class Unread:
    """The posts of all strata that nobody has read and that may turn in one way, and what those that were read tell of
    them. Each of these stands for `weight` posts, itself among them.

    usual: as in Turn. posts: the unread ones; blind: those in strata of which nothing was read. seen, off: sums over
    all posts that were read, and over those that turned, of the posts that each stands for besides itself. spread,
    spread_off: the same sums, each term times its weight.
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
        """How many of them turn. normal: with the ends of the normal distribution."""
        low, high = self._normal_ends() if normal else self._ends()
        rate = min(high, max(low, self._rate()))
        return (self.posts + self.blind) * rate, self.posts * low, self.posts * high + self.blind

    def rate(self) -> Estimate:
        """How often a post turns; UNKNOWN where none was read."""
        if not self.seen:
            return UNKNOWN
        value, (low, high), count = self._rate(), self._ends(), self.seen**2 / self.spread
        return Estimate(value, low, high, value * count, count)

    def _rate(self) -> float:
        """Besides the posts that were read, one more is counted that turns as usual."""
        if self.usual is None:
            return self.off / self.seen if self.seen else 0.0
        more = self.spread / self.seen if self.seen else 1.0
        return (self.off + more * self.usual) / (self.seen + more)

    def _ends(self) -> tuple[float, float]:
        """Jeffreys' interval of Kish's effective count, or of less where what turned, or what did not, weighs more than
        the mean."""
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
        """Of a weighted share, with half a post of the mean weight that turned, so that none that was read is not taken
        for none at all."""
        if not self.seen:
            return 0.0, 1.0
        rate, mean = self.off / self.seen, self.spread / self.seen
        squares = self.spread_off * (1 - rate) ** 2 + (self.spread - self.spread_off) * rate**2
        deviation = Z * sqrt(max(0.0, squares) + mean**2 / 2) / self.seen
        return max(0.0, rate - deviation), min(1.0, rate + deviation)


Way = tuple[int, int]  # what a post that turns adds to the domain, and to the hits
HIT_TO_MISS: Way = (0, -1)
MISS_TO_HIT: Way = (0, 1)
Turned = tuple[float, float, float]  # how many posts: the value, and the ends of its interval
NOTHING: Mapping[str, Sequence[tuple[Way, Turned]]] = {}


def stratified(
    strata: Iterable[Stratum], *, further: Mapping[str, Sequence[tuple[Way, Turned]]] = NOTHING, normal: bool = False
) -> Estimate:
    """The share of hits in the domain, from a uniform draw of which some strata were read in part.

    strata: of the whole draw, in any order; those known to lie outside the domain may stay away. further: source ->
    posts that turn besides, although they were read. UNKNOWN if nothing of the domain was read, or where a stratum
    without a guess was not read at all and no other such in part. ValueError for a stratum that cannot be.

    The share is that in the stream from which the posts come, however few more of them the corpus has: of how a
    predictor does on posts like these, twenty tell no more for being all there are (Deming 1953, On the Distinction
    between Enumerative and Analytic Surveys, Journal of the American Statistical Association 48(262); where domains are
    compared, Cochran 1977, Sampling Techniques, section 2.14, omits the correction for a finite frame likewise).

    Where all was read, this is the plain interval. Else the posts that nobody has read are guessed, and those read say
    how many of the others turn out otherwise, in each way: a hit that is a miss, a post that belongs to the domain
    after all, and so on; of all strata together, each post by its weight (Sarndal, Swensson and Wretman 1992, Model
    Assisted Survey Sampling, section 9.6: what is known of all posts guesses, what was read corrects). Each such number
    has Jeffreys' interval of its effective count (Kish 1965, Survey Sampling, section 11.7; Franco, Little, Louis and
    Slud 2019, Comparative Study of Confidence Intervals for Proportions in Complex Sample Surveys, Journal of Survey
    Statistics and Methodology 7(3)), so it holds what may be there although nobody has seen it: nothing in 30 posts
    read of 900 leaves room for 70. Nobody having read posts that may turn, they turn all or none; where they are like
    others that were read, the value takes these for a guide. The share of hits has the plain interval of the draw, and
    these intervals move its ends by their distances, squared and added up (MOVER: Zou and Donner 2008, Statistics in
    Medicine 27(10)). With `normal` this is close to what prediction-powered inference gives (Angelopoulos, Bates,
    Fannjiang, Jordan and Zrnic 2023, Science 382).

    Where it covers, and how widely, is in docs/explanation/measuring.md, from tests/benchmarks/measuring.py.
    """
    given = []
    for stratum in strata:
        if not 0 <= stratum.hits <= stratum.domain <= stratum.read <= stratum.drawn:
            raise ValueError(f"{stratum} cannot be: hits are of the domain, this of the read, these of the drawn.")
        given += [stratum] if stratum.drawn else []
    partly = [stratum for stratum in given if stratum.read < stratum.drawn]
    plain = [stratum for stratum in partly if stratum.guess is None]
    if not any(stratum.domain for stratum in given) or (plain and not any(stratum.read for stratum in plain)):
        return UNKNOWN
    guesses = [(stratum, _guess(stratum, plain)) for stratum in partly]
    whole = [stratum for stratum in given if stratum.read == stratum.drawn]
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
    return combined(domain, hits, {UNREAD: turned, **further})


def _guess(stratum: Stratum, plain: Sequence[Stratum]) -> Guess:
    """The guess of a stratum, with the ways in which it may turn. Where it has none, that all its posts are what most
    are of those read of the `plain` strata, which have none either. Of these the domain is known of the unread where in
    each all of the read are in it, or none; a stratum of which nothing was read is in it where all others are.
    """
    drawn, read, domain, hits = stratum.drawn, stratum.read, stratum.domain, stratum.hits
    if guess := stratum.guess:
        wrong = Turn(0, -1, guess.hits, hits, 0), Turn(0, 1, guess.domain - guess.hits, domain - hits, 0)
        return guess if guess.turns else guess._replace(turns=wrong)
    some_read = [each for each in plain if each.read]
    all_in = all(each.domain == each.read for each in some_read)
    if all_in or (len(some_read) == len(plain) and all(each.domain in (0, each.read) for each in plain)):
        inside = drawn if domain or not read else 0
        return Guess(inside, 0, (Turn(0, 1, inside, domain, hits),))
    inside, right = most = _most(plain)
    found = {(0, 0): read - domain, (1, 0): domain - hits, (1, 1): hits}
    turns = (Turn(way[0] - inside, way[1] - right, drawn, read, off) for way, off in found.items() if way != most)
    return Guess(drawn * inside, drawn * right, tuple(turns))


def _most(strata: Iterable[Stratum]) -> Way:
    """What most posts are, by those that were read: outside the domain, in it, or hits."""
    sums = {(0, 0): 0.0, (1, 0): 0.0, (1, 1): 0.0}
    for each in strata:
        weight = each.drawn / each.read if each.read else 0.0
        for way, number in zip(sums, (each.read - each.domain, each.domain - each.hits, each.hits), strict=True):
            sums[way] += weight * number
    return max(sums, key=lambda way: sums[way])


def _add(group: Unread, stratum: Stratum, turn: Turn) -> None:
    if not stratum.read:
        group.blind += turn.posts
        return
    group.add(stratum.drawn / stratum.read, turn.posts - turn.read, turn.read, turn.off)


def combined(domain: float, hits: float, by_source: Mapping[str, Sequence[tuple[Way, Turned]]]) -> Estimate:
    """The share of hits in a domain, in the stream from which the posts were drawn. by_source: how many posts turn, in
    each of several ways.
    """
    turned = [each for found in by_source.values() for each in found]

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
    for source, found in by_source.items():
        parts.append(part_by(source, value, list(islice(rest, len(found)))))
    return of_parts(value, parts, posts)


def of_parts(value: float, parts: Sequence[Part], most: float) -> Estimate:
    """An estimate with the interval that these parts give it. most: as in `with_interval`."""
    low, high = moved(value, [(value - part.down, value + part.up) for part in parts])
    return replace(with_interval(value, low, high, most), parts=tuple(parts))


def moved(value: float, ends: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The ends of the interval of a value that several things move independently, each from its low to its high end: by
    their distances, squared and added up (MOVER)."""
    _, down, up = part_by("", value, ends)
    return max(0.0, value - down), min(1.0, value + up)


def part_by(source: str, value: float, ends: Iterable[tuple[float, float]]) -> Part:
    """What a source that moves a value in several ways, each from its low to its high end, adds to its interval."""
    ends = list(ends)
    down = hypot(*(max(0.0, value - low) for low, _ in ends))
    return Part(source, down, hypot(*(max(0.0, high - value) for _, high in ends)))


def united(found: Estimate, others: Iterable[Estimate], source: str) -> Estimate:
    """The estimate with an interval that holds those of others, too. source: of what is added to the width."""
    known = [each for each in others if each.value is not None]
    if found.value is None or not known:
        return found
    low, high = min(found.low, *(each.low for each in known)), max(found.high, *(each.high for each in known))
    down = sqrt(max(0.0, (found.value - low) ** 2 - (found.value - found.low) ** 2))
    up = sqrt(max(0.0, (high - found.value) ** 2 - (found.high - found.value) ** 2))
    wider = with_interval(found.value, low, high, found.count)
    return replace(wider, parts=(*found.parts, Part(source, down, up)))


def with_interval(value: float, low: float, high: float, most: float) -> Estimate:
    """An estimate that knows as much as a plain sample whose interval is as wide, of `most` posts at the most."""
    width, count = high - low, min(most, 1e-3)
    widest, narrowest = (end - start for start, end in (jeffreys(value * of, of) for of in (count, most)))
    if widest > width >= narrowest:
        while most > count * (1 + PRECISION):
            middle = sqrt(count * most)
            start, end = jeffreys(value * middle, middle)
            count, most = (middle, most) if end - start > width else (count, middle)
    elif widest > width:
        count = most
    if count < LEAST_KNOWN * ENOUGH:
        return Estimate(value, 0.0, 1.0, value * count, count)
    return Estimate(value, low, high, value * count, count)


def reweighted_precision(own: tuple[float, float], others: Iterable[tuple[float, float, float]]) -> Estimate:
    """Precision on a balanced set, reweighted to natural shares, with the interval that results.

    own: hits of how many posts of the language itself. others: for each other language, false triggers of how many
    posts, and how many times commoner the language is. Own recall and each rate of false triggers have their Jeffreys
    intervals, which add up by their distances from the estimate, squared (MOVER: Zou and Donner 2008, Statistics in
    Medicine 27(10)). The article ("A note on classifier comparison and distribution skew") takes own recall as known;
    so did this, and covered 73% to 94% with 10 to 49 posts of a language where it is 90% to 94% now.
    (1200, 1500) against [(1, 1500, 500)] gives 34.0% to 95.7% either way; the article, which rounds 53.9 false triggers
    to 52, 95.8%. hits and count are in posts of `own`: triggers at natural shares. UNKNOWN without own hits; where
    there are no posts of another language, value is None, and the interval that of any rate there.
    """
    rates = [(ratio, false / of if of else None, *jeffreys(false, of)) for false, of, ratio in others]
    recall = own[0] / own[1] if own[1] else 0.0
    if not recall:
        return UNKNOWN
    expected = [None if rate is None else ratio * rate for ratio, rate, _, _ in rates]
    known = fsum(triggers or 0.0 for triggers in expected)
    fewest = max(0.0, known - hypot(*(ratio * ((rate or 0.0) - low) for ratio, rate, low, _ in rates)))
    most = known + hypot(*(ratio * (high - (rate or 0.0)) for ratio, rate, _, high in rates))
    value = None if None in expected else recall / (recall + known)
    low, high = recall / (recall + most), recall / (recall + fewest)
    if value is not None:
        by_recall = [end / (end + known) for end in jeffreys(*own)]
        low, high = moved(value, [(low, high), (by_recall[0], by_recall[1])])
    return Estimate(value, low, high, float(own[0]), own[0] / value if value else 0.0)
