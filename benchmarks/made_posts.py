"""Generated populations with known truth, and uniform draws from them that are read and audited as in tasks.

A population has posts with labels of decreasing frequency. Three detectors agree on most posts and are sometimes wrong.
Two predictors label each post. People read the disputed posts and an audit of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from annotate.core.estimation.label_errors import Audit, additional_units, slips_of
from annotate.evaluation.uniform import Cell, Uniform

# As tasks have them by default.
AUDIT_SHARE, LEAST_AUDITS, RECHECK, SECOND = 0.15, 5, 0.3, 0.1
CHECK_SHARE, LEAST_CHECKS = 0.1, 2
MISTAKEN_FOR_LARGEST = 0.45  # of the posts in the two rarest labels, if these hide


@dataclass(frozen=True)
class World:
    """disputed: share of posts on which detectors do not agree; wrong: share of the others on which they are wrong
    first, second: a predictor's accuracy on (agreed, disputed) posts; None if it predicts the agreed label
    zipf: exponent of the labels' frequencies; uneven: a sixth of the labels has most of the wrong agreement
    hiding: all detectors take nearly half of the posts in the two rarest labels for the most common one
    copies: share of posts that are copies of others, in tens; all_read: people read every post
    slips: how often a reader gives a wrong label; confirmed: how often one confirms a wrong agreement; adjudicators:
        how often an adjudicator slips
    checked: the set contains checks and second opinions although nobody slips
    lost: share of the audited posts that nobody can label, where the detectors are (right, wrong); lost_apart: the
        same where the second predictor differs from the detectors
    recheck: share of confirmed audits that an adjudicator checks
    by_power: audits and checks use power allocation; otherwise, the share is taken of each label
    counted: the least number of posts behind a label's figure that is compared with the truth
    """

    labels: int = 30
    zipf: float = 1.2
    drawn: int = 10_000
    disputed: float = 0.15
    wrong: float = 0.01
    first: tuple[float | None, float] = (None, 0.68)
    second: tuple[float | None, float] = (0.965, 0.75)
    uneven: bool = False
    hiding: bool = False
    copies: float = 0.0
    all_read: bool = False
    slips: float = 0.0
    confirmed: float = 0.0
    adjudicators: float = 0.0
    lost: tuple[float, float] = (0.0, 0.0)
    lost_apart: float = 0.0
    audit_share: float = AUDIT_SHARE
    least_audits: int = LEAST_AUDITS
    check_share: float = CHECK_SHARE
    least_checks: int = LEAST_CHECKS
    recheck: float = RECHECK
    by_power: bool = True
    checked: bool = False
    posts: int = 1_000_000
    counted: int = 30

    def to_read(self, sizes: Mapping[str, int], share: float, least: int) -> Mapping[str, int]:
        """Return a mapping from label to the number of its posts that are audited or checked."""
        if self.by_power:
            return additional_units({label: (size, 0) for label, size in sizes.items()}, share, least)
        return {label: min(size, max(least, round(share * size))) for label, size in sizes.items()}

    @property
    def tells_checks(self) -> bool:
        return bool(self.checked or self.slips or self.confirmed)


LOST_APART = {
    "half of the audits lost where the predictors differ": World(wrong=0.03, lost_apart=0.5),
    "nearly all of these": World(wrong=0.03, lost_apart=0.95),
    "nearly all lost on which the detectors are wrong": World(wrong=0.03, lost=(0.0, 0.95)),
}
# Sets as small as a first trial. With the default audit, nearly all posts are read.
_TRIAL = World(labels=7, drawn=151, disputed=0.3, counted=5)
_FEW = {"audit_share": 0.02, "least_audits": 5}
_SLIPS = {"slips": 0.015, "confirmed": 0.015, "adjudicators": 0.01}
SMALL = {
    "151 posts of 7 labels": _TRIAL,
    "151 posts, readers slip in 1.5%": replace(_TRIAL, **_SLIPS),
    "151 posts, agreement wrong in 5%": replace(_TRIAL, wrong=0.05),
    "151 posts, audits of 5": replace(_TRIAL, **_FEW),
    "151 posts, audits of 5, readers slip": replace(_TRIAL, **_FEW, **_SLIPS),
    "151 posts, audits of 5, agreement wrong in 5%, unevenly": replace(_TRIAL, **_FEW, wrong=0.05, uneven=True),
    "151 posts, one audit a label": replace(_TRIAL, audit_share=0.0, least_audits=1),
    "151 posts, no audit": replace(_TRIAL, audit_share=0.0, least_audits=0),
    "49 posts of 3 labels": replace(_TRIAL, labels=3, drawn=49),
    "600 posts of 20 labels, audits of 5": replace(_TRIAL, **_FEW, labels=20, drawn=600),
}


class Population(NamedTuple):
    """Labels by number; agreed: -1 where detectors do not agree."""

    truth: np.ndarray
    agreed: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Drawn(NamedTuple):
    """A uniform set; its audits by label; and the number of independent second decisions of adjudicators, with how many
    of them differ."""

    both: Uniform
    audits: dict[int, Audit]
    seconds: tuple[int, int]


def populate(world: World, chance: np.random.Generator) -> Population:
    common = 1 / np.arange(1, world.labels + 1) ** world.zipf
    common /= common.sum()
    size = world.posts
    truth = chance.choice(world.labels, size, p=common)

    def mistaken() -> np.ndarray:
        return np.where(
            chance.random(size) < 0.5, chance.choice(world.labels, size, p=common), (truth + 1) % world.labels
        )

    wrong = np.full(world.labels, world.wrong)
    if world.uneven:
        wrong = np.where(np.arange(world.labels) % 6 == 0, 3 * world.wrong, world.wrong / 4)
    guess = np.where(chance.random(size) < wrong[truth], mistaken(), truth)
    is_agreed = chance.random(size) >= world.disputed
    if world.hiding:
        hides = (truth >= world.labels - 2) & (chance.random(size) < MISTAKEN_FOR_LARGEST)
        guess, is_agreed = np.where(hides, 0, guess), is_agreed | hides

    def predict(agreed: float | None, disputed: float) -> np.ndarray:
        elsewhere = np.where(chance.random(size) < disputed, truth, mistaken())
        if agreed is None:
            return np.where(is_agreed, guess, elsewhere)
        labels = np.where(chance.random(size) < agreed, truth, mistaken())
        # Where the detectors are wrong, another predictor often is too.
        labels = np.where((guess != truth) & (chance.random(size) < 0.5), guess, labels)
        return np.where(is_agreed, labels, elsewhere)

    generated = Population(truth, np.where(is_agreed, guess, -1), predict(*world.first), predict(*world.second))
    if not world.copies:
        return generated
    place = np.arange(size)
    place = np.where(chance.random(size) < world.copies, place - place % 10, place)
    return Population(*(part[place] for part in generated))


def draw(population: Population, world: World, chance: np.random.Generator) -> Drawn:
    places = chance.choice(len(population.truth), world.drawn, replace=False)
    truth, agreed, first, second = (part[places] for part in population)
    is_read, is_lost = np.full(world.drawn, world.all_read) | (agreed < 0), np.zeros(world.drawn, bool)
    label = np.where(chance.random(world.drawn) < world.slips, (truth + 2) % world.labels, truth)
    chances = np.ones(world.drawn)
    sources, first_labels = np.where(is_read, "unaudited", "").astype(object), np.full(world.drawn, "", dtype=object)
    audits: dict[int, Audit] = {}
    decisions = [0, 0]
    checks = world.to_read(_sizes(label[is_read]), world.check_share, world.least_checks)
    for reader in np.unique(label[is_read]):
        numbers = np.flatnonzero(is_read & (label == reader))
        number = checks[str(reader)]
        checked = chance.choice(numbers, number, replace=False)
        first_labels[checked], chances[checked] = str(reader), number / len(numbers)
        once = _decided(world, chance, truth[checked], (truth[checked] + 1) % world.labels)
        again = _decided(world, chance, truth[checked], (truth[checked] + 1) % world.labels)
        _second(chance, np.full(number, True), once, again, decisions)
        label[checked] = once
    to_audit = world.to_read(_sizes(agreed[agreed >= 0]), world.audit_share, world.least_audits)
    for stratum in np.unique(agreed[agreed >= 0]):
        numbers = np.flatnonzero(agreed == stratum)
        chosen = chance.choice(numbers, to_audit[str(stratum)], replace=False)
        losing = np.where(truth[chosen] == stratum, *world.lost)
        losing = np.where(second[chosen] == stratum, losing, np.maximum(losing, world.lost_apart))
        lost = chance.random(len(chosen)) < losing
        is_lost[chosen[lost]] = True
        chosen = chosen[~lost]
        is_read[chosen] = True
        audits[int(stratum)], label[chosen], doubted, checked = _audited(
            world, chance, truth[chosen], stratum, len(numbers), lost, decisions
        )
        sources[chosen] = np.where(doubted, "adjudicated", "audited")
        first_labels[chosen[checked]], chances[chosen[checked]] = str(stratum), world.recheck
    cells, missing = {}, {}
    for number in np.flatnonzero(is_lost):
        name = str(agreed[number])
        missing[str(number)] = Cell(name, name, False, name, str(first[number]), str(second[number]))
    for number in np.flatnonzero(~is_lost):
        name = "" if agreed[number] < 0 else str(agreed[number])
        outcome = str(label[number]) if is_read[number] else name
        predictions = str(first[number]), str(second[number])
        reading = (str(sources[number]), first_labels[number], float(chances[number])) if world.tells_checks else ()
        cells[str(number)] = Cell(name, name, bool(is_read[number]), outcome, *predictions, *reading)
    slips = slips_of(*decisions) if world.adjudicators or world.checked else None
    return Drawn(Uniform(cells, missing, slips), audits, (decisions[0], decisions[1]))


def _sizes(labels: np.ndarray) -> dict[str, int]:
    return {str(label): int(posts) for label, posts in zip(*np.unique(labels, return_counts=True), strict=True)}


def _decided(world: World, chance: np.random.Generator, truth: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return an adjudicator's decisions: the truth, or by a slip the other label."""
    return np.where(chance.random(len(truth)) < world.adjudicators, other, truth)


def _second(chance: np.random.Generator, decided: np.ndarray, once: np.ndarray, again: np.ndarray, decisions) -> None:
    seconded = decided & (chance.random(len(decided)) < SECOND)
    decisions[0] += int(seconded.sum())
    decisions[1] += int((seconded & (once != again)).sum())


def _audited(world, chance, truth, stratum, posts, lost, decisions):
    """Let readers and adjudicators audit posts of a stratum. Return the audit and the labels, and which posts
    were doubted, and which were confirmed and checked."""
    number = len(truth)
    is_wrong = truth != stratum
    doubted = np.where(is_wrong, chance.random(number) >= world.confirmed, chance.random(number) < world.slips)
    checked = ~doubted & (chance.random(number) < world.recheck)
    decided = doubted | checked
    other = np.where(is_wrong, stratum, (truth + 1) % world.labels)
    once, again = (_decided(world, chance, truth, other) for _ in range(2))
    _second(chance, decided, once, again, decisions)
    wrong = decided & (once != stratum)
    audit = Audit(
        posts=posts,
        doubted=int(doubted.sum()),
        doubted_wrong=int((doubted & wrong).sum()),
        confirmed=int((~doubted).sum()),
        checked=int(checked.sum()),
        checked_wrong=int((checked & wrong).sum()),
        unresolved=int(lost.sum()),
    )
    return audit, np.where(decided, once, stratum), doubted, checked
