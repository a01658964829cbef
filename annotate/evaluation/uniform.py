"""A uniform set joined with what a predictor says, and shares of its posts that are estimated by stratum.

Labels that count as one class have been taken together (subjects.py). What shares are taken of is said in metrics.py;
how they are estimated, in core/estimation/proportions.py.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import InitVar, dataclass, field, replace
from functools import cache, cached_property
from typing import NamedTuple, TypeVar

from annotate.core.estimation.annotator_error import Errors, of_adjudicators, part_of, with_slips
from annotate.core.estimation.comparisons import Difference
from annotate.core.estimation.detector_error import without_slips
from annotate.core.estimation.proportions import (
    UNRESOLVED,
    Estimate,
    Guess,
    Stratum,
    Turn,
    Unread,
    Way,
    pooled,
    proportion,
    stratified,
    united,
)
from annotate.evaluation.cells import ADJUDICATED, ANOTHER, NOT_TOLD, OF_READERS, Cell, Of, turns


@dataclass(frozen=True)
class Uniform:
    """posts: id -> its cell. missing: likewise of posts that were chosen for the audit and have no label, since nobody
    could tell; they are not among the posts, and where the set does not name them, their ids are made up. slips: how
    often adjudicators slip, where two decided the same. rates: how many times as often the detectors are
    wrong in missing posts as in those of their stratum that were read; at least and at most. Where a rate would make
    more of them wrong than there are, it stands for all of them being wrong. counts: posts by cell, if they are counted
    already, as there may be very many posts.

    cells: posts by cell. drawn: posts by stratum. read: those of them that people have read. weights: how many posts of
    the draw each of a cell stands for, 0 where it was not read.
    """

    posts: Mapping[str, Cell]
    missing: Mapping[str, Cell] = field(default_factory=dict)
    slips: Estimate | None = None
    rates: tuple[float, float] = (1.0, 1.0)
    cells: Counter[Cell] = field(init=False, compare=False)
    drawn: Counter[str] = field(init=False, compare=False)
    read: Counter[str] = field(init=False, compare=False)
    weights: dict[Cell, float] = field(init=False, compare=False)
    _errors: dict[Estimate | None, dict[str, Errors]] = field(init=False, compare=False)
    counts: InitVar[Mapping[Cell, float] | None] = None

    def __post_init__(self, counts: Mapping[Cell, float] | None) -> None:
        cells = Counter(self.posts.values()) if counts is None else Counter(counts)
        drawn, read = Counter[str](), Counter[str]()
        for cell, posts in cells.items():
            drawn[cell.stratum] += posts
            read[cell.stratum] += posts if cell.read else 0
        weights = {cell: drawn[cell.stratum] / read[cell.stratum] if cell.read else 0.0 for cell in cells}
        vars(self).update(cells=cells, drawn=drawn, read=read, weights=weights, _errors={})

    @cached_property
    def lone_right(self) -> float | None:
        """Where the predictor says otherwise than the detectors, which agree: the share of such posts, of those that
        were read, in which it is right; None if there is none. Each counts as many as it stands for besides itself.
        """
        lone = {
            cell: posts * (self.weights[cell] - 1)
            for cell, posts in self.cells.items()
            if cell.read and cell.stratum and cell.said != cell.agreed
        }
        total = sum(lone.values())
        return sum(posts for cell, posts in lone.items() if cell.said == cell.truth) / total if total else None

    def errors(self, slips: Estimate | None) -> dict[str, Errors]:
        """Pool -> how often its labels are wrong, by the checks; without pools of which nothing was checked.

        slips: how often adjudicators slip. What they find in checks by mistake is no error of readers. Such a mistake
        counts as `gained` or `gone` only where the predictor says otherwise than the reader.
        """
        if slips in self._errors:
            return self._errors[slips]
        rates = self._errors[slips] = dict[str, Errors]()
        groups = {pool: (Unread(), Unread(), Unread()) for pool in OF_READERS}
        for cell, posts in self.cells.items():
            if not cell.first:
                continue
            # Each stands for as many as its chance says, itself among them: one more than Unread counts.
            represented = 1 + 1 / cell.chance
            agrees, wrong = cell.said == cell.first, cell.truth != cell.first
            lost, gained, gone = groups[cell.word]
            lost.add(represented, 0, posts * agrees, posts * (agrees and wrong))
            gained.add(represented, 0, posts, posts * (not agrees and cell.truth == cell.said))
            gone.add(represented, 0, posts, posts * (not agrees and wrong))
        for pool, (lost, gained, gone) in groups.items():
            if gained.seen:
                otherwise = slips and part_of(slips, 1 - lost.seen / gained.seen)
                rates[pool] = Errors(
                    without_slips(lost.rate(), slips),
                    *(without_slips(group.rate(), otherwise) for group in (gained, gone)),
                )
        if slips is not None:
            decided = {cell: n * self.weights[cell] for cell, n in self.cells.items() if cell.pool == ADJUDICATED}
            hits = sum(posts for cell, posts in decided.items() if cell.said == cell.truth)
            rates[ADJUDICATED] = of_adjudicators(slips, hits / sum(decided.values()) if hits else 0.0)
        return rates

    @cached_property
    def of_other(self) -> "Uniform":
        """The same set as it tells of the other of two predictors, without the ids: two are compared on all posts."""
        cells = Counter({cell.of_other: posts for cell, posts in self.cells.items()})
        missing = {key: cell.of_other for key, cell in self.missing.items()}
        return replace(self, posts={}, missing=missing, counts=cells)

    def with_each(self, change: Callable[[str, Cell], Cell]) -> "Uniform":
        """The same set with other cells. change: what it makes of a cell, by the post's id."""
        posts, missing = (
            {key: change(key, cell) for key, cell in cells.items()} for cells in (self.posts, self.missing)
        )
        return replace(self, posts=posts, missing=missing)

    @cached_property
    def by_rate(self) -> tuple["Uniform", ...]:
        """The same set by the likeliest rate for missing posts, that nearest to 1, and by the least and the most."""
        least, most = self.rates
        likeliest = min(most, max(least, 1.0))
        return tuple(map(self._tilted, dict.fromkeys((likeliest, least, most)) if self.missing else (1.0,)))

    def _tilted(self, rate: float) -> "Uniform":
        """The posts that were read stand for the missing ones of their stratum too. Where these are wrong more often,
        right posts count as unread, so that no more is known of the wrong ones than was read."""
        if rate == 1:
            return self
        missing, wrong = Counter(cell.stratum for cell in self.missing.values()), Counter[str]()
        for cell, posts in self.cells.items():
            wrong[cell.stratum] += posts if cell.read and cell.truth != cell.agreed else 0
        tilted: defaultdict[Cell, float] = defaultdict(float)
        for cell, posts in self.cells.items():
            lost, read, off = missing[cell.stratum], self.read[cell.stratum], wrong[cell.stratum]
            if not (cell.read and lost):
                tilted[cell] += posts
                continue
            # If all missing posts are wrong, they are so read / off times as often. Where no wrong post was read, half
            # a post counts, as in Jeffreys' prior.
            most = read / (off or 0.5)
            # The share of wrong posts among read and missing ones, as a multiple of that among the read.
            times = (read + lost * min(rate, most)) / (read + lost)
            kept = min(1.0, times)
            if cell.truth == cell.agreed:
                kept = max(0.0, read / max(1.0, times) - off * kept) / (read - off)
                tilted[cell._replace(read=False, word="", first="")] += posts * max(0.0, 1 - kept)
            tilted[cell] += posts * kept
        return replace(self, counts=tilted)

    @cached_property
    def known(self) -> "Uniform":
        """The same set without the missing posts."""
        return replace(self, missing={}, counts=self.cells)

    def extremes(self, worth: Callable[[Cell], int], truths: Collection[str]) -> tuple["Uniform", "Uniform"]:
        """The same set as if people had found of each missing post what is worth least of all that it may be, and what
        is worth most. truths: as in `share`.
        """
        return self._settled(lambda cell: -worth(cell), truths), self._settled(worth, truths)

    def _settled(self, worth: Callable[[Cell], int], truths: Collection[str]) -> "Uniform":
        def most(cell: Cell) -> tuple[int, int]:
            """What it is worth, and of what is worth the same, how much more than if the detectors are right."""
            return worth(cell), -worth(cell._replace(truth=cell.agreed))

        found = self.cells.copy()
        for cell, posts in Counter(self.missing.values()).items():
            is_told = NOT_TOLD not in (cell.said, cell.other)
            may_be = (
                cell._replace(read=True, said=said, other=other, truth=truth)
                for said, other in ([(cell.said, cell.other)] if is_told else self._said_in[cell.stratum])
                for truth in (cell.agreed, said, other, *truths, ANOTHER)
            )
            found[max(may_be, key=most)] += posts
        return replace(self, missing={}, counts=found)

    @cached_property
    def _said_in(self) -> dict[str, list[tuple[str, str]]]:
        """Stratum -> what the predictors say of its posts, of most of them first."""
        found: dict[str, Counter[tuple[str, str]]] = {}
        for cell, posts in self.cells.items():
            found.setdefault(cell.stratum, Counter())[cell.said, cell.other] += posts
        return {stratum: [said for said, _ in counted.most_common()] for stratum, counted in found.items()}

    def as_labelled(self) -> "Uniform":
        """The same set as if all of its labels came from people."""
        return Uniform({key: cell._replace(stratum="", agreed="", read=True) for key, cell in self.posts.items()})


@dataclass(frozen=True)
class Measured:
    """An estimate and how many posts, read by people, it rests on.

    extremes: where posts are missing, the estimates if they are like those that were read, if they are what lowers the
    share most, and if they are what raises it most (Manski 2003, Partial Identification of Probability Distributions,
    section 1.2).
    """

    estimate: Estimate
    posts: int
    extremes: tuple[Estimate, ...] = ()

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between which the interval is, whatever the missing posts are; None where none is missing."""
        return bounds_of(self.extremes) if self.extremes else None


def together(*parts: Measured) -> Measured:
    """Join estimates from disjoint posts of the same language."""
    known = [part for part in parts if part.posts]
    if len(known) == 1:
        return known[0]
    return Measured(pooled(*(part.estimate for part in known)), sum(part.posts for part in known))


def counted(hits: int, of: int) -> Measured:
    return Measured(proportion(hits, of), of)


# The one turn of a guess that cannot turn, since without any turns every guess may.
NEVER = Turn(0, 0, 0, 0, 0)
Interval = TypeVar("Interval", Estimate, Difference)
FAR = 0.01  # bounds that are further apart are reported
MISSED: Way = (0, 1)  # the way in which a miss turns out to be a hit


def share(
    uniform: Uniform,
    domain: Of,
    right: Of,
    apart: Collection[str] = (),
    truths: Collection[str] = (),
    *,
    normal: bool = False,
) -> Measured:
    """The share of right labels in a domain of a uniform set, by stratum; see `strata_of`. normal: see `stratified`.
    What one reader alone decided is wrong as often as the checks say (cells.py). Missing posts are taken to be like
    those of their stratum that were read, or wrong as often as `rates` says; the bounds take them for anything.
    """

    def measured(each: Uniform) -> Measured:
        """Without regard to missing posts."""
        cells = each.cells - Counter(each.posts[key] for key in apart if key in each.posts) if apart else each.cells
        strata = strata_of(each, cells, domain, right, truths)
        estimate = with_slips(
            lambda slips: stratified(
                strata,
                further=turns(cells, each.weights, rates, domain, right) if (rates := each.errors(slips)) else {},
                normal=normal,
            ),
            each.slips,
        )
        return Measured(estimate, round(sum(stratum.domain for stratum in strata)))

    if not uniform.missing:
        return measured(uniform)
    found, *others = map(measured, uniform.by_rate)
    if found.estimate.value is None:
        return found
    at_random = found if uniform.by_rate[0] is uniform else measured(uniform)
    settled = map(measured, uniform.extremes(worth(domain, right), truths))
    extremes = tuple(each.estimate for each in (at_random, *settled) if each.estimate.value is not None)
    by_rate = [within(bounds_of(extremes), each.estimate) for each in (found, *others)]
    return replace(found, estimate=united(by_rate[0], by_rate[1:], UNRESOLVED), extremes=extremes)


def bounds_of(extremes: Collection[Interval]) -> tuple[float, float]:
    """The ends between which all of these intervals lie."""
    return min(each.low for each in extremes), max(each.high for each in extremes)


def within(bounds: tuple[float, float], found: Interval) -> Interval:
    """The same with an interval that lies within the bounds, which hold whatever the missing posts are."""
    low, high = bounds
    return replace(found, low=min(high, max(low, found.low)), high=max(low, min(high, found.high)))


def worth(domain: Of, right: Of) -> Callable[[Cell], int]:
    """What a post does to a share: 1 raises it, -1 lowers it."""
    return lambda cell: (1 if right(cell) else -1) if domain(cell) else 0


def strata_of(
    uniform: Uniform, cells: Mapping[Cell, float], domain: Of, right: Of, truths: Collection[str] = ()
) -> list[Stratum]:
    """The strata of a uniform set, with the posts of each in a domain and the right ones. cells: those that count here.

    For posts that people have not read, the label that the detectors agreed on is a guess at the truth. truths: the
    labels that such a post may have in truth, as far as they make a difference, besides what was said of it.
    """
    tallies = {name: _Tally() for name in uniform.drawn}

    @cache  # asked many times of each, since cells differ in their strata too
    def counted_as(truth: str, said: str, other: str) -> tuple[int, int]:
        cell = Cell("", "", True, truth, said, other)
        inside = domain(cell)
        return int(inside), int(inside and right(cell))

    for cell, posts in cells.items():
        tally, told = tallies[cell.stratum], (cell.said, cell.other)
        true = counted_as(cell.truth, *told)
        if cell.read:
            tally.read = tally.read[0] + posts * true[0], tally.read[1] + posts * true[1]
        if not cell.stratum:
            continue
        guess, as_said = counted_as(cell.agreed, *told), counted_as(cell.said, *told)
        tally.guessed = tally.guessed[0] + posts * guess[0], tally.guessed[1] + posts * guess[1]
        for could in {as_said, *(counted_as(truth, *told) for truth in (cell.other, *truths, ANOTHER))} - {guess}:
            counts = tally.turns.setdefault((could[0] - guess[0], could[1] - guess[1]), _Counts())
            counts.posts += posts
            if cell.read:
                counts.read += posts
                counts.off += posts * (true == could)
            # Of the few posts where the predictor says otherwise than the detectors hardly any may have been read.
            if could == as_said and could[1]:
                counts.usual = uniform.lone_right
    return [
        Stratum(drawn, uniform.read[name], *tally.read, tally.guess if name else None)
        for (name, drawn), tally in zip(uniform.drawn.items(), tallies.values(), strict=True)
    ]


class Lone(NamedTuple):
    """Posts that nobody has read and that the predictor alone labels so, not the detectors, which agree there. bounds:
    the share if all of them are wrong, and if all are right."""

    posts: int
    bounds: tuple[float, float]


def lone_triggers(uniform: Uniform, label: str) -> Lone | None:
    """Posts that nobody has read, and that the predictor labels so while the detectors agree on something else; None
    if there is none, if nothing is known of the label, or if the bounds are no further apart than FAR."""
    is_said, is_right = (lambda cell: cell.said == label), (lambda cell: cell.truth == label)
    if_wrong: list[Stratum] = []
    if_right: list[Stratum] = []
    unread = 0.0
    for stratum in strata_of(uniform, uniform.cells, is_said, is_right):
        guess = stratum.guess
        misses = [turn for turn in guess.turns if turn[:2] == MISSED] if guess else []
        unread += sum(turn.posts - turn.read for turn in misses)
        for strata, right in ((if_wrong, False), (if_right, True)):
            if guess and misses:
                hits = guess.hits + int(sum(turn.off + right * (turn.posts - turn.read) for turn in misses))
                others = tuple(turn for turn in guess.turns if turn not in misses)
                strata.append(replace(stratum, guess=Guess(guess.domain, hits, others or (NEVER,))))
            else:
                strata.append(stratum)
    rates = uniform.errors(uniform.slips)
    further = turns(uniform.cells, uniform.weights, rates, is_said, is_right) if rates else {}
    low, high = (stratified(strata, further=further).value for strata in (if_wrong, if_right))
    return (
        Lone(int(unread), (low, high)) if unread and low is not None and high is not None and high - low > FAR else None
    )


@dataclass
class _Counts:
    """A Turn while it is counted."""

    posts: float = 0
    read: float = 0
    off: float = 0
    usual: float | None = None


@dataclass
class _Tally:
    """The posts of one stratum, in the domain and right: those read, and all as guessed; and how these may turn."""

    read: tuple[float, float] = (0, 0)
    guessed: tuple[float, float] = (0, 0)
    turns: dict[Way, _Counts] = field(default_factory=dict)

    @property
    def guess(self) -> Guess:
        domain, hits = self.guessed
        turns = [Turn(*way, each.posts, each.read, each.off, each.usual) for way, each in self.turns.items()]
        return Guess(domain, hits, tuple(turns) or (NEVER,))
