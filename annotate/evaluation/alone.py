"""What one person has decided: how often such labels are wrong, by the checks, and what that makes of a figure.

A share of what one reader alone decided was decided again, and a share of what an adjudicator did by another one
(quality/checks.py). Where a label is wrong, a predictor that says the same is not right, and one that says otherwise
may be. How often each happens is counted over all languages together, since the checks of one language are few; so
readers of one language who err more than others do are not seen here. Adjudicators are taken to slip without regard to
what a predictor says.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from annotate.core.audits import without_slips
from annotate.core.estimation import Estimate, Turned, Unread, Way
from annotate.evaluation.cells import Cell

Cells = Mapping[Cell, int]
Of = Callable[[Cell], bool]
# What one reader says of posts on which the detectors agree has its own checks, and is hardly ever wrong.
OF_READERS = AUDITED, READ = ("audited", "read")
ADJUDICATED = "adjudicated"
ASSUMED = 0.01  # what a report says would follow if so many of the labels were wrong, where nothing was checked


class Errors(NamedTuple):
    """Of labels that one person gave. lost: of those that the predictor says too, the share that are wrong. gained: of
    all, the share that are wrong and where the predictor is right. gone: of all, the share that are wrong and where the
    predictor says otherwise."""

    lost: Estimate
    gained: Estimate
    gone: Estimate


def errors(cells: Cells, slips: Estimate | None) -> dict[str, Errors]:
    """Pool -> how often its labels are wrong; without pools of which nothing was checked. slips: how often adjudicators
    slip; what they found in checks by mistake is no error of readers."""
    groups = {pool: (Unread(), Unread(), Unread()) for pool in OF_READERS}
    for cell, posts in cells.items():
        if not cell.first:
            continue
        # Each stands for as many as its chance says, itself among them: one more than Unread counts.
        weight = 1 + 1 / cell.chance
        agrees, wrong = cell.said == cell.first, cell.truth != cell.first
        lost, gained, gone = groups[cell.word]
        lost.add(weight, 0, posts * agrees, posts * (agrees and wrong))
        gained.add(weight, 0, posts, posts * (not agrees and cell.truth == cell.said))
        gone.add(weight, 0, posts, posts * (not agrees and wrong))
    known = {
        pool: Errors(*(without_slips(group.rate(), slips) for group in found))
        for pool, found in groups.items()
        if found[1].seen
    }
    if slips is None:
        return known
    # Nobody knows which of their labels are wrong, so the value stays, and the interval allows for it.
    perhaps = replace(slips, value=0.0, low=0.0)
    return known | {ADJUDICATED: Errors(_NEVER, perhaps, perhaps)}


_NEVER = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)


def _pool(cell: Cell) -> str:
    """Whose word the label is now: an adjudicator's, where a reader's was checked."""
    return ADJUDICATED if cell.first else cell.word


def turns(
    cells: Cells, weight: Callable[[Cell], float], found: Mapping[str, Errors], domain: Of, right: Of, *, leaves: bool
) -> list[tuple[Way, Turned]]:
    """What the errors of one person make of a share: how many hits turn to misses, and misses to hits; or, with
    `leaves`, leave the domain, as for recall. weight: how many posts one of a cell stands for."""
    turned: list[tuple[Way, Turned]] = []
    for pool, rates in found.items():
        own = [cell for cell in cells if _pool(cell) == pool and domain(cell)]
        inside = sum(cells[cell] * weight(cell) for cell in own)
        hits = sum(cells[cell] * weight(cell) for cell in own if right(cell))
        ways = (
            ((-1, -1) if leaves else (0, -1), rates.lost, hits, hits),
            ((-1, 0) if leaves else (0, 1), rates.gone if leaves else rates.gained, inside, inside - hits),
        )
        for way, rate, of, most in ways:
            low, value, high = (min(most, of * share) for share in (rate.low, rate.value or 0.0, rate.high))
            turned.append((way, (value, low, high)))
    return turned


def unchecked(cells: Cells) -> int:
    """How many labels one reader gave of which no check tells anything."""
    told = {cell.word for cell in cells if cell.first}
    return sum(posts for cell, posts in cells.items() if cell.word in OF_READERS and cell.word not in told)
