"""What is known of the posts of a uniform set: what detectors, people and predictors say of each, and how often what
one person alone decided is wrong.

A share of what one reader decided was decided again, and a share of what an adjudicator did by another one
(controls/checks.py). Where a label is wrong, a predictor that says the same is not right, and one that says otherwise
may be. How often each happens is counted over all languages together, since the checks of one language are few; so
readers of one language who err more than others do are not seen here. Adjudicators are taken to slip without regard to
what a predictor says.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from annotate.core.estimation.annotator_error import Errors, turned
from annotate.core.estimation.proportions import CHECKS, RECHECKS, Estimate, Turned, Way

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


# --- the word of one person

Cells = Mapping[Cell, int]
Of = Callable[[Cell], bool]
# What one reader says of posts on which the detectors agree has its own checks, and is hardly ever wrong.
OF_READERS = AUDITED, READ = ("audited", "read")
ADJUDICATED = "adjudicated"
ASSUMED = 0.01  # what a report says would follow if so many of the labels were wrong, where nothing was checked


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
