"""A uniform set of posts joined with what a predictor says: what detectors, people and predictors say of each post, and
how often what one person alone decided is wrong.

A share of what one reader decided was decided again, and a share of what an adjudicator did by another one
(controls/checks.py). Where a label is wrong, a predictor that says the same is not right, and one that says otherwise
may be. How often each happens is counted over all languages together, since the checks of one language are few; so
readers of one language who err more than others do are not seen here. Adjudicators are taken to slip without regard to
what a predictor says.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from annotate.core.estimation.annotator_error import Errors, of_adjudicators, part_of, turned
from annotate.core.estimation.detector_error import without_slips
from annotate.core.estimation.proportions import CHECKS, RECHECKS, Estimate, Turned, Unread, Way

# A label that no post is given by anybody: what a post truly is where it is none of those that count.
ANOTHER = "?"
# In the place of what a predictor says, where that is not known.
NOT_TOLD = "-"


class Cell(NamedTuple):
    """What posts of one cell of a uniform set have in common. stratum: the label on which the detectors agreed, "" if
    they did not; agreed: the class of that label; read: whether people labelled it, so that truth is not the
    detectors' own label; said: the predictor's label; other: that of a predictor with which it is compared.

    word: whose word the truth is, if one person's: `adjudicated`, or a reader's, at least at first: `audited` of posts
    of the audit, `read` of others. first: what the reader had said, where an adjudicator checked it by lot; else "".
    chance: with which that was checked.
    """

    stratum: str
    agreed: str
    read: bool
    truth: str
    said: str
    other: str = ""
    word: str = ""
    first: str = ""
    chance: float = 1.0

    @property
    def pool(self) -> str:
        """Whose word the label is now: an adjudicator's, where a reader's was checked."""
        return ADJUDICATED if self.first else self.word

    @property
    def of_other(self) -> "Cell":
        """The same as it tells of the other of two predictors."""
        return self._replace(said=self.other, other=self.said)


Cells = Mapping[Cell, int]
Of = Callable[[Cell], bool]
# What one reader says of posts on which the detectors agree has its own checks, and is hardly ever wrong.
OF_READERS = AUDITED, READ = ("audited", "read")
ADJUDICATED = "adjudicated"
ASSUMED = 0.01  # what a report says would follow if so many of the labels were wrong, where nothing was checked


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


def turns(
    cells: Cells, weights: Mapping[Cell, float], found: Mapping[str, Errors], domain: Of, right: Of
) -> dict[str, list[tuple[Way, Turned]]]:
    """By source, what the errors of one person make of a share: how many posts of its domain turn since their label is
    wrong, and in which way each does. weights: how many posts each of a cell stands for."""

    def way(cell: Cell, truth: str) -> Way:
        in_truth = cell._replace(truth=truth)
        inside = domain(in_truth)
        return inside - 1, (inside and right(in_truth)) - right(cell)

    found_turned: dict[str, list[tuple[Way, Turned]]] = {}
    for pool, rates in found.items():
        own = {cell: posts * weights[cell] for cell, posts in cells.items() if cell.pool == pool}
        missed = sum(posts for cell, posts in own.items() if cell.said != cell.truth)
        per_miss = sum(own.values()) / missed if missed else 0.0
        turning: defaultdict[tuple[Way, Estimate, float], float] = defaultdict(float)
        for cell, posts in own.items():
            if not domain(cell):
                continue
            as_said, otherwise = way(cell, cell.said), way(cell, ANOTHER)
            if cell.said == cell.truth:
                turning[otherwise, rates.lost, 1.0] += posts
            else:
                turning[as_said, rates.gone if otherwise == as_said else rates.gained, per_miss] += posts
        found_turned.setdefault(RECHECKS if pool == AUDITED else CHECKS, []).extend(
            turned(of, posts, rate, per) for (of, rate, per), posts in turning.items() if any(of)
        )
    return found_turned
