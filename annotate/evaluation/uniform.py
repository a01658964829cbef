"""A uniform set of posts joined with a predictor's labels, and the error rates of its single-annotator labels.

A random share of the labels that one reader gave is checked by an adjudicator, and a share of the adjudicators'
decisions is checked by a second adjudicator (controls/checks.py). If a label is wrong, a predictor that agrees with it
is wrong, while a predictor that disagrees may be right.

Error rates are pooled over all languages, because each language has few checks. They therefore do not show whether the
readers of one language err more often than others. Adjudicators' mistakes (slips) are assumed to be independent of the
predictor's labels.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import InitVar, dataclass, field, replace
from functools import cache, cached_property
from typing import NamedTuple

from annotate.core.estimation.label_errors import Errors, of_adjudicators, scale, turned, without_slips
from annotate.core.estimation.proportions import CHECKS, RECHECKS, Estimate, Turned, Unread, Way

# Placeholder for a true label that is not among the labels considered. No predictor gives this label.
ANOTHER = "?"
# Placeholder for an unknown predicted label.
NOT_TOLD = "-"


class Cell(NamedTuple):
    """The properties shared by all posts in one cell of a uniform set.

    stratum: label on which the detectors agreed, "" if they disagreed.
    agreed: class of that label.
    read: whether people labelled the posts; otherwise the truth is the detectors' label.
    truth: the label that counts as true.
    said: the predictor's label.
    other: label of a second predictor, for a comparison.
    word: who gave the label, if one person did: `adjudicated` for an adjudicator, `audited` for a reader of an audited
        post, `read` for a reader of any other post. "" if several people gave it, except that confirmations of audited
        posts are `audited` if some of them were checked. A checked label keeps its reader's value.
    first: the reader's label if an adjudicator checked it in a random check, otherwise "".
    chance: probability with which the reader's label was chosen for a check.
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
        """Return the pool of the current label, which is the adjudicators' pool if the reader's label was checked."""
        return ADJUDICATED if self.first else self.word

    @property
    def of_other(self) -> "Cell":
        """The same cell with the two predictors exchanged."""
        return self._replace(said=self.other, other=self.said)


Cells = Mapping[Cell, int]
Of = Callable[[Cell], bool]
# Single-reader labels of audited posts form a pool of their own. They have separate checks and are hardly ever wrong,
# because the detectors agree on these posts.
OF_READERS = AUDITED, READ = ("audited", "read")
ADJUDICATED = "adjudicated"
ASSUMED = 0.01  # if no label was checked, a report states the effect of this error rate


@dataclass(frozen=True)
class Uniform:
    """A uniform set of posts.

    posts: mapping from id to cell.
    missing: mapping from id to cell for the posts that were chosen for the audit but that nobody could label. They are
        not among `posts`. If the set does not state their ids, ids are made up.
    slips: adjudicators' error rate, estimated from posts that two adjudicators decided; None if there are no such
        posts.
    rates: smallest and largest ratio between the detectors' error rate in missing posts and in the posts of the same
        stratum that were read. A ratio has no effect beyond the point at which all missing posts are wrong.
    counts: number of posts per cell, if the caller has counted them already; otherwise `posts` are counted.
    cells: number of posts per cell.
    drawn: number of posts per stratum.
    read: number of posts per stratum that people read.
    weights: number of posts in the draw that each post of a cell represents, 0 if the cell was not read.
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
        """The share of right labels among the posts on which the predictor differs from the detectors' agreed label.

        Only posts that people read count, each weighted by the number of unread posts that it represents. The share is
        None if there are no such posts.
        """
        lone = {
            cell: posts * (self.weights[cell] - 1)
            for cell, posts in self.cells.items()
            if cell.read and cell.stratum and cell.said != cell.agreed
        }
        total = sum(lone.values())
        return sum(posts for cell, posts in lone.items() if cell.said == cell.truth) / total if total else None

    def errors(self, slips: Estimate | None) -> dict[str, Errors]:
        """Return the error rates of the labels in each pool, estimated from the checks.

        Pools without checks are left out. The rates are corrected for slips, because a check that an adjudicator gets
        wrong is not a reader's error. A slip can affect `gained` and `gone` only if the predictor disagrees with the
        reader.

        slips: adjudicators' error rate.
        """
        if slips in self._errors:
            return self._errors[slips]
        rates = self._errors[slips] = dict[str, Errors]()
        groups = {pool: (Unread(), Unread(), Unread()) for pool in OF_READERS}
        for cell, posts in self.cells.items():
            if not cell.first:
                continue
            # A check represents 1 / chance labels, including itself. Add 1, because Unread.add subtracts 1.
            represented = 1 + 1 / cell.chance
            agrees, wrong = cell.said == cell.first, cell.truth != cell.first
            lost, gained, gone = groups[cell.word]
            lost.add(represented, 0, posts * agrees, posts * (agrees and wrong))
            gained.add(represented, 0, posts, posts * (not agrees and cell.truth == cell.said))
            gone.add(represented, 0, posts, posts * (not agrees and wrong))
        for pool, (lost, gained, gone) in groups.items():
            if gained.seen:
                otherwise = slips and scale(slips, 1 - lost.seen / gained.seen)
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
        """The same set with the two predictors exchanged. It only has counts, because no ids are needed for it."""
        cells = Counter({cell.of_other: posts for cell, posts in self.cells.items()})
        missing = {key: cell.of_other for key, cell in self.missing.items()}
        return replace(self, posts={}, missing=missing, counts=cells)

    def with_each(self, change: Callable[[str, Cell], Cell]) -> "Uniform":
        """Return a copy of the set in which each post has a new cell.

        change: function that returns the new cell of a post, called with the post's id and cell.
        """
        posts, missing = (
            {key: change(key, cell) for key, cell in cells.items()} for cells in (self.posts, self.missing)
        )
        return replace(self, posts=posts, missing=missing)

    @cached_property
    def by_rate(self) -> tuple["Uniform", ...]:
        """The set reweighted for the likeliest ratio in `rates`, the one nearest to 1, and for the two end points."""
        lowest, highest = self.rates
        likeliest = min(highest, max(lowest, 1.0))
        return tuple(map(self._tilted, dict.fromkeys((likeliest, lowest, highest)) if self.missing else (1.0,)))

    def _tilted(self, rate: float) -> "Uniform":
        """Return the set reweighted so that the posts that were read also represent the missing posts of their stratum.

        If missing posts are wrong more often, some of the right posts count as unread. The number of wrong posts is not
        increased instead, because the estimate would then appear more precise than it is.

        rate: ratio of error rates, see `rates`.
        """
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
            # If all missing posts are wrong, their error rate is read / off times that of the read posts. If no read
            # post is wrong, count half a post as wrong, as Jeffreys' prior does.
            limit = read / (off or 0.5)
            # The error rate of the read and missing posts together, as a multiple of the error rate of the read posts.
            times = (read + lost * min(rate, limit)) / (read + lost)
            kept_share = min(1.0, times)
            if cell.truth == cell.agreed:
                kept_share = max(0.0, read / max(1.0, times) - off * kept_share) / (read - off)
                tilted[cell._replace(read=False, word="", first="")] += posts * max(0.0, 1 - kept_share)
            tilted[cell] += posts * kept_share
        return replace(self, counts=tilted)

    @cached_property
    def known(self) -> "Uniform":
        """The set without the missing posts."""
        return replace(self, missing={}, counts=self.cells)

    def extremes(self, worth: Callable[[Cell], int], truths: Collection[str]) -> tuple["Uniform", "Uniform"]:
        """Return two sets in which all missing posts have labels that make the share as low and as high as possible.

        worth: returns the effect of a cell's posts on the share, see `metrics.worth`.
        truths: see `metrics.share`.
        """
        return self._settled(lambda cell: -worth(cell), truths), self._settled(worth, truths)

    def _settled(self, worth: Callable[[Cell], int], truths: Collection[str]) -> "Uniform":
        @cache  # the same labels occur in several strata
        def effect(truth: str, predicted: str, other: str) -> int:
            return worth(Cell("", "", True, truth, predicted, other))

        cells = self.cells.copy()
        for cell, posts in Counter(self.missing.values()).items():

            def sort_key(labels: tuple[str, str, str], agreed: str = cell.agreed) -> tuple[int, int]:
                """Return a sort key: the labels' effect, then how low it would be if the detectors were right."""
                return effect(*labels), -effect(agreed, *labels[1:])

            is_told = NOT_TOLD not in (cell.said, cell.other)
            may_be = (
                (truth, predicted, other)
                for predicted, other in ([(cell.said, cell.other)] if is_told else self._said_in[cell.stratum])
                for truth in (cell.agreed, predicted, other, *truths, ANOTHER)
            )
            truth, predicted, other = max(may_be, key=sort_key)
            cells[cell._replace(read=True, said=predicted, other=other, truth=truth)] += posts
        return replace(self, missing={}, counts=cells)

    @cached_property
    def _said_in(self) -> dict[str, list[tuple[str, str]]]:
        """For each stratum, the pairs of labels that the two predictors give to its posts, most frequent first."""
        counts: dict[str, Counter[tuple[str, str]]] = {}
        for cell, posts in self.cells.items():
            counts.setdefault(cell.stratum, Counter())[cell.said, cell.other] += posts
        return {stratum: [labels for labels, _ in counted.most_common()] for stratum, counted in counts.items()}

    def as_labelled(self) -> "Uniform":
        """Return the set as if people had given all its labels."""
        return Uniform({key: cell._replace(stratum="", agreed="", read=True) for key, cell in self.posts.items()})


def turns(
    cells: Cells, weights: Mapping[Cell, float], error_rates: Mapping[str, Errors], domain: Of, right: Of
) -> dict[str, list[tuple[Way, Turned]]]:
    """Return, for each source of error, how wrong single-annotator labels change a share.

    The changes are (way, turned) tuples. `way` is what a post adds to the domain and to the right labels if it has its
    true label, and `turned` estimates how many posts of the domain change in this way.

    cells: number of posts per cell.
    weights: number of posts that each post of a cell represents.
    error_rates: error rates of the labels in each pool.
    domain, right: see `metrics.share`.
    """

    def way(cell: Cell, truth: str) -> Way:
        in_truth = cell._replace(truth=truth)
        inside = domain(in_truth)
        return inside - 1, (inside and right(in_truth)) - right(cell)

    found_turned: dict[str, list[tuple[Way, Turned]]] = {}
    for pool, rates in error_rates.items():
        pool_cells = {cell: posts * weights[cell] for cell, posts in cells.items() if cell.pool == pool}
        missed = sum(posts for cell, posts in pool_cells.items() if cell.said != cell.truth)
        per_miss = sum(pool_cells.values()) / missed if missed else 0.0
        turning: defaultdict[tuple[Way, Estimate, float], float] = defaultdict(float)
        for cell, posts in pool_cells.items():
            if not domain(cell):
                continue
            as_said, otherwise = way(cell, cell.said), way(cell, ANOTHER)
            if cell.said == cell.truth:
                turning[otherwise, rates.lost, 1.0] += posts
            else:
                turning[as_said, rates.gone if otherwise == as_said else rates.gained, per_miss] += posts
        found_turned.setdefault(RECHECKS if pool == AUDITED else CHECKS, []).extend(
            turned(change, posts, rate, per) for (change, rate, per), posts in turning.items() if any(change)
        )
    return found_turned
