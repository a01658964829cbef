"""A uniform set of posts joined with a predictor's labels, and the error rates of its single-annotator labels.

An adjudicator checks a random sample of the single-annotator labels, and a second adjudicator checks a sample of the
adjudicators' decisions (controls/checks.py). If a label is wrong, a predictor that agrees with it is wrong, and a
predictor that disagrees may be right.

Each language has few checks, so error rates are pooled over all languages. They can't show that the annotators of one
language err more often than those of another. Adjudicators' mistakes (slips) are assumed to be independent of the
predictor's labels.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import InitVar, dataclass, field, replace
from functools import cache, cached_property
from typing import NamedTuple

from annotate.core.estimation.label_errors import Errors, of_adjudicators, scale, turned, without_slips
from annotate.core.estimation.proportions import CHECKS, RECHECKS, Estimate, Turned, Unread, Way

# Placeholder for all true labels that no predictor gives.
ANOTHER = "?"
UNKNOWN_PREDICTION = "-"


class Cell(NamedTuple):
    """The properties shared by all posts in one cell of a uniform set.

    stratum: label that the detectors agreed on; "" if they disagreed.
    agreed: class of that label.
    annotated: whether annotators labelled the posts; otherwise the truth is the detectors' label.
    truth: the accepted label.
    predicted: the predictor's label.
    other: a second predictor's label, for a comparison.
    source: who gave a single-annotator label: `adjudicated` for an adjudicator, `audited` for the annotator of an
        audited post, `unaudited` for the annotator of any other post. "" if several annotators gave the label, except
        that confirmations of audited posts are `audited` if some were checked. A check does not change `source`.
    first_label: the annotator's label if an adjudicator checked it in a random check, otherwise "".
    chance: probability that the annotator's label was selected for a check.
    """

    stratum: str
    agreed: str
    annotated: bool
    truth: str
    predicted: str
    other: str = ""
    source: str = ""
    first_label: str = ""
    chance: float = 1.0

    @property
    def pool(self) -> str:
        """The pool of the accepted label, which an adjudicator decided if the annotator's label was checked."""
        return ADJUDICATED if self.first_label else self.source

    @property
    def swapped(self) -> "Cell":
        """The same cell with the two predictors exchanged."""
        return self._replace(predicted=self.other, other=self.predicted)


Cells = Mapping[Cell, int]
CellTest = Callable[[Cell], bool]
# Single-annotator labels of audited posts form a separate pool. They have separate checks and are rarely wrong, because
# the detectors agree on these posts.
SINGLE_ANNOTATOR = AUDITED, UNAUDITED = ("audited", "unaudited")
ADJUDICATED = "adjudicated"
ASSUMED = 0.01  # if no label was checked, a report states the effect of this error rate


@dataclass(frozen=True)
class Uniform:
    """A uniform set of posts.

    posts: mapping from id to cell.
    missing: mapping from id to cell for posts that were selected for the audit but could not be labelled. They are not
        among `posts`. If the set does not state their ids, ids are generated.
    slips: adjudicators' error rate, estimated from the posts that two adjudicators decided; None without such posts.
    rates: smallest and largest ratio between the detectors' error rate in missing posts and in the annotated posts of
        the same stratum. Once all missing posts are wrong, a larger ratio has no effect.
    counts: number of posts per cell if the caller has counted them; otherwise `posts` are counted.
    cells: number of posts per cell.
    drawn: number of posts per stratum.
    annotated: number of annotated posts per stratum.
    weights: number of drawn posts that each post of a cell represents, 0 if the cell is not annotated.
    """

    posts: Mapping[str, Cell]
    missing: Mapping[str, Cell] = field(default_factory=dict)
    slips: Estimate | None = None
    rates: tuple[float, float] = (1.0, 1.0)
    cells: Counter[Cell] = field(init=False, compare=False)
    drawn: Counter[str] = field(init=False, compare=False)
    annotated: Counter[str] = field(init=False, compare=False)
    weights: dict[Cell, float] = field(init=False, compare=False)
    _error_rates: dict[Estimate | None, dict[str, Errors]] = field(init=False, compare=False)
    counts: InitVar[Mapping[Cell, float] | None] = None

    def __post_init__(self, counts: Mapping[Cell, float] | None) -> None:
        cells = Counter(self.posts.values()) if counts is None else Counter(counts)
        drawn, annotated = Counter[str](), Counter[str]()
        for cell, posts in cells.items():
            drawn[cell.stratum] += posts
            annotated[cell.stratum] += posts if cell.annotated else 0
        weights = {cell: drawn[cell.stratum] / annotated[cell.stratum] if cell.annotated else 0.0 for cell in cells}
        vars(self).update(cells=cells, drawn=drawn, annotated=annotated, weights=weights, _error_rates={})

    @cached_property
    def lone_right(self) -> float | None:
        """The share of correct labels among posts where the predictor disagrees with the detectors' agreed label.

        Estimated from annotated posts, each weighted by the number of unannotated posts it represents. None if there
        are no such posts.
        """
        lone = {
            cell: posts * (self.weights[cell] - 1)
            for cell, posts in self.cells.items()
            if cell.annotated and cell.stratum and cell.predicted != cell.agreed
        }
        total = sum(lone.values())
        return sum(posts for cell, posts in lone.items() if cell.predicted == cell.truth) / total if total else None

    def error_rates(self, slips: Estimate | None) -> dict[str, Errors]:
        """Estimate the error rates of the labels in each pool from the checks.

        Pools without checks are left out. The rates are corrected for slips, because a wrong check does not mean that
        the annotator erred. A slip can affect `gained` and `gone` only if the predictor disagrees with the annotator.

        slips: adjudicators' error rate.
        """
        if slips in self._error_rates:
            return self._error_rates[slips]
        rates = self._error_rates[slips] = dict[str, Errors]()
        groups = {pool: (Unread(), Unread(), Unread()) for pool in SINGLE_ANNOTATOR}
        for cell, posts in self.cells.items():
            if not cell.first_label:
                continue
            # A check represents 1 / chance labels, including its own. Add 1, because Unread.add subtracts 1.
            represented = 1 + 1 / cell.chance
            agrees, wrong = cell.predicted == cell.first_label, cell.truth != cell.first_label
            lost, gained, gone = groups[cell.source]
            lost.add(represented, 0, posts * agrees, posts * (agrees and wrong))
            gained.add(represented, 0, posts, posts * (not agrees and cell.truth == cell.predicted))
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
            hits = sum(posts for cell, posts in decided.items() if cell.predicted == cell.truth)
            rates[ADJUDICATED] = of_adjudicators(slips, hits / sum(decided.values()) if hits else 0.0)
        return rates

    @cached_property
    def swapped(self) -> "Uniform":
        """The same set with the two predictors exchanged. It has counts but no `posts`: callers do not need the ids."""
        cells = Counter({cell.swapped: posts for cell, posts in self.cells.items()})
        missing = {key: cell.swapped for key, cell in self.missing.items()}
        return replace(self, posts={}, missing=missing, counts=cells)

    def map_cells(self, change: Callable[[str, Cell], Cell]) -> "Uniform":
        """Return a copy of the set with a new cell for each post.

        change: called with a post's id and cell, returns the new cell.
        """
        posts, missing = (
            {key: change(key, cell) for key, cell in cells.items()} for cells in (self.posts, self.missing)
        )
        return replace(self, posts=posts, missing=missing)

    @cached_property
    def reweighted(self) -> tuple["Uniform", ...]:
        """The set reweighted for three ratios in `rates`: the most likely (the ratio nearest to 1), and both ends."""
        lowest, highest = self.rates
        likeliest = min(highest, max(lowest, 1.0))
        return tuple(map(self._reweight, dict.fromkeys((likeliest, lowest, highest)) if self.missing else (1.0,)))

    def _reweight(self, rate: float) -> "Uniform":
        """Return the set reweighted so that annotated posts also represent the missing posts of their stratum.

        If missing posts are wrong more often than annotated ones, some correct posts count as unannotated. Counting
        more posts as wrong instead would make the estimate look more precise than it is.

        rate: ratio of error rates, see `rates`.
        """
        if rate == 1:
            return self
        missing, wrong = Counter(cell.stratum for cell in self.missing.values()), Counter[str]()
        for cell, posts in self.cells.items():
            wrong[cell.stratum] += posts if cell.annotated and cell.truth != cell.agreed else 0
        reweighted: defaultdict[Cell, float] = defaultdict(float)
        for cell, posts in self.cells.items():
            lost, annotated, off = missing[cell.stratum], self.annotated[cell.stratum], wrong[cell.stratum]
            if not (cell.annotated and lost):
                reweighted[cell] += posts
                continue
            # If all missing posts are wrong, their error rate is annotated / wrong times that of the annotated posts.
            # If no annotated post is wrong, count half a post as wrong, as Jeffreys' prior does.
            limit = annotated / (off or 0.5)
            # The error rate of annotated and missing posts together, as a multiple of that of the annotated posts.
            times = (annotated + lost * min(rate, limit)) / (annotated + lost)
            kept_share = min(1.0, times)
            if cell.truth == cell.agreed:
                kept_share = max(0.0, annotated / max(1.0, times) - off * kept_share) / (annotated - off)
                reweighted[cell._replace(annotated=False, source="", first_label="")] += posts * max(
                    0.0, 1 - kept_share
                )
            reweighted[cell] += posts * kept_share
        return replace(self, counts=reweighted)

    @cached_property
    def without_missing(self) -> "Uniform":
        """The set without the missing posts."""
        return replace(self, missing={}, counts=self.cells)

    def extremes(self, effect_sign: Callable[[Cell], int], truths: Collection[str]) -> tuple["Uniform", "Uniform"]:
        """Return two sets, with missing posts labelled to make the share as low and as high as possible.

        effect_sign: returns the direction in which a cell's posts move the share, see `metrics.effect_sign`.
        truths: see `metrics.share`.
        """
        return self._fill_missing(lambda cell: -effect_sign(cell), truths), self._fill_missing(effect_sign, truths)

    def _fill_missing(self, effect_sign: Callable[[Cell], int], truths: Collection[str]) -> "Uniform":
        @cache  # the same labels occur in several strata
        def effect(truth: str, predicted: str, other: str) -> int:
            return effect_sign(Cell("", "", True, truth, predicted, other))

        cells = self.cells.copy()
        for cell, posts in Counter(self.missing.values()).items():

            def sort_key(labels: tuple[str, str, str], agreed: str = cell.agreed) -> tuple[int, int]:
                """Sort by the labels' effect, then by the drop in this effect if the detectors were right."""
                return effect(*labels), -effect(agreed, *labels[1:])

            is_known = UNKNOWN_PREDICTION not in (cell.predicted, cell.other)
            candidates = (
                (truth, predicted, other)
                for predicted, other in (
                    [(cell.predicted, cell.other)] if is_known else self._prediction_pairs[cell.stratum]
                )
                for truth in (cell.agreed, predicted, other, *truths, ANOTHER)
            )
            truth, predicted, other = max(candidates, key=sort_key)
            cells[cell._replace(annotated=True, predicted=predicted, other=other, truth=truth)] += posts
        return replace(self, missing={}, counts=cells)

    @cached_property
    def _prediction_pairs(self) -> dict[str, list[tuple[str, str]]]:
        """For each stratum, the pairs of labels that the two predictors give its posts, most frequent first."""
        counts: dict[str, Counter[tuple[str, str]]] = {}
        for cell, posts in self.cells.items():
            counts.setdefault(cell.stratum, Counter())[cell.predicted, cell.other] += posts
        return {stratum: [labels for labels, _ in counted.most_common()] for stratum, counted in counts.items()}

    def as_annotated(self) -> "Uniform":
        """Return the set as if annotators had given all its labels."""
        return Uniform({key: cell._replace(stratum="", agreed="", annotated=True) for key, cell in self.posts.items()})


def label_error_effects(
    cells: Cells, weights: Mapping[Cell, float], error_rates: Mapping[str, Errors], domain: CellTest, right: CellTest
) -> dict[str, list[tuple[Way, Turned]]]:
    """Return how errors in single-annotator labels change a share, by source of error.

    Each effect is a (way, turned) tuple. `way` is the change in the number of posts in the domain and in the number of
    right ones when a post gets its true label. `turned` estimates how many posts of the domain change that way.

    cells: number of posts per cell.
    weights: number of posts that each post of a cell represents.
    error_rates: error rates of the labels in each pool.
    domain, right: see `metrics.share`.
    """

    def way(cell: Cell, truth: str) -> Way:
        in_truth = cell._replace(truth=truth)
        inside = domain(in_truth)
        return inside - 1, (inside and right(in_truth)) - right(cell)

    effects: dict[str, list[tuple[Way, Turned]]] = {}
    for pool, rates in error_rates.items():
        pool_cells = {cell: posts * weights[cell] for cell, posts in cells.items() if cell.pool == pool}
        missed = sum(posts for cell, posts in pool_cells.items() if cell.predicted != cell.truth)
        per_miss = sum(pool_cells.values()) / missed if missed else 0.0
        turning: defaultdict[tuple[Way, Estimate, float], float] = defaultdict(float)
        for cell, posts in pool_cells.items():
            if not domain(cell):
                continue
            as_predicted, otherwise = way(cell, cell.predicted), way(cell, ANOTHER)
            if cell.predicted == cell.truth:
                turning[otherwise, rates.lost, 1.0] += posts
            else:
                turning[as_predicted, rates.gone if otherwise == as_predicted else rates.gained, per_miss] += posts
        effects.setdefault(RECHECKS if pool == AUDITED else CHECKS, []).extend(
            turned(change, posts, rate, per) for (change, rate, per), posts in turning.items() if any(change)
        )
    return effects
