"""Generated populations with known truth, and uniform draws from them that are read and audited as in tasks.

A population has posts with labels of decreasing frequency. Three detectors agree on most posts and are sometimes wrong.
Two predictors label each post. People read the disputed posts and an audit of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from annotate.core.estimation.label_errors import Audit, further, slips_of
from annotate.evaluation.uniform import Cell, Uniform

# As tasks have them by default.
AUDIT_SHARE, LEAST_AUDITS, RECHECK, SECOND = 0.15, 5, 0.3, 0.1
CHECK_SHARE, LEAST_CHECKS = 0.1, 2
MISTAKEN_FOR_LARGEST = 0.45  # of the posts in the two rarest labels, where they hide


@dataclass(frozen=True)
class World:
    """disputed: share of posts on which detectors do not agree; wrong: of the others, where they are wrong. first,
    second: how often a predictor is right on (agreed, disputed) posts; None where it says what was agreed on.
    uneven: a sixth of the labels has most of the wrong agreement. hiding: nearly half of the posts in the two rarest
    labels are taken for the most common one by all detectors. copies: share of posts that are copies of others, in
    tens. all_read: people read every post.

    slips: how often a reader gives another label than the true one; confirmed: how often one confirms a wrong
    agreement; adjudicators: how often one of these slips. checked: whether the set tells of checks and
    second opinions although nobody slips. lost: of the audited posts on which the detectors are (right,
    wrong), the share of which nobody can tell; lost_apart: of those on which the second predictor says otherwise than
    the detectors. counted: on how many posts a label's figure rests at least, to be held
    against the truth. zipf: the exponent by which labels are less and less common. recheck: the share of confirmed
    audits that an adjudicator checks. by_power: audits and checks are
    spread by power allocation; if not, the share is taken of each label.
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
        """Label -> how many of its posts are audited, or checked."""
        if self.by_power:
            return further({label: (size, 0) for label, size in sizes.items()}, share, least)
        return {label: min(size, max(least, round(share * size))) for label, size in sizes.items()}

    @property
    def tells_checks(self) -> bool:
        return bool(self.checked or self.slips or self.confirmed)


LOST_APART = {
    "half of the audits lost where the predictors differ": World(wrong=0.03, lost_apart=0.5),
    "nearly all of these": World(wrong=0.03, lost_apart=0.95),
    "nearly all lost on which the detectors are wrong": World(wrong=0.03, lost=(0.0, 0.95)),
}
# Sets as small as a first trial: with the audit by default hardly a post is unread.
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
    """A uniform set; what its audit found, by label; and the decisions that two adjudicators made apart: how many, and
    how many that differ."""

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

    def said(agreed: float | None, disputed: float) -> np.ndarray:
        elsewhere = np.where(chance.random(size) < disputed, truth, mistaken())
        if agreed is None:
            return np.where(is_agreed, guess, elsewhere)
        own = np.where(chance.random(size) < agreed, truth, mistaken())
        # Where the detectors are wrong, another predictor often is too.
        own = np.where((guess != truth) & (chance.random(size) < 0.5), guess, own)
        return np.where(is_agreed, own, elsewhere)

    found = Population(truth, np.where(is_agreed, guess, -1), said(*world.first), said(*world.second))
    if not world.copies:
        return found
    place = np.arange(size)
    place = np.where(chance.random(size) < world.copies, place - place % 10, place)
    return Population(*(part[place] for part in found))


def draw(population: Population, world: World, chance: np.random.Generator) -> Drawn:
    places = chance.choice(len(population.truth), world.drawn, replace=False)
    truth, agreed, first, second = (part[places] for part in population)
    is_read, is_lost = np.full(world.drawn, world.all_read) | (agreed < 0), np.zeros(world.drawn, bool)
    label = np.where(chance.random(world.drawn) < world.slips, (truth + 2) % world.labels, truth)
    chances = np.ones(world.drawn)
    word, said_first = np.where(is_read, "read", "").astype(object), np.full(world.drawn, "", dtype=object)
    audits: dict[int, Audit] = {}
    decisions = [0, 0]
    checks = world.to_read(_sizes(label[is_read]), world.check_share, world.least_checks)
    for reader in np.unique(label[is_read]):
        own = np.flatnonzero(is_read & (label == reader))
        number = checks[str(reader)]
        checked = chance.choice(own, number, replace=False)
        said_first[checked], chances[checked] = str(reader), number / len(own)
        once = _decided(world, chance, truth[checked], (truth[checked] + 1) % world.labels)
        again = _decided(world, chance, truth[checked], (truth[checked] + 1) % world.labels)
        _second(chance, np.full(number, True), once, again, decisions)
        label[checked] = once
    to_audit = world.to_read(_sizes(agreed[agreed >= 0]), world.audit_share, world.least_audits)
    for stratum in np.unique(agreed[agreed >= 0]):
        own = np.flatnonzero(agreed == stratum)
        chosen = chance.choice(own, to_audit[str(stratum)], replace=False)
        losing = np.where(truth[chosen] == stratum, *world.lost)
        losing = np.where(second[chosen] == stratum, losing, np.maximum(losing, world.lost_apart))
        lost = chance.random(len(chosen)) < losing
        is_lost[chosen[lost]] = True
        chosen = chosen[~lost]
        is_read[chosen] = True
        found = _audited(world, chance, truth[chosen], stratum, len(own), lost, decisions)
        audits[int(stratum)], label[chosen], doubted, checked = found
        word[chosen] = np.where(doubted, "adjudicated", "audited")
        said_first[chosen[checked]], chances[chosen[checked]] = str(stratum), world.recheck
    cells, missing = {}, {}
    for number in np.flatnonzero(is_lost):
        name = str(agreed[number])
        missing[str(number)] = Cell(name, name, False, name, str(first[number]), str(second[number]))
    for number in np.flatnonzero(~is_lost):
        name = "" if agreed[number] < 0 else str(agreed[number])
        known = str(label[number]) if is_read[number] else name
        said = str(first[number]), str(second[number])
        own_word = (str(word[number]), said_first[number], float(chances[number])) if world.tells_checks else ()
        cells[str(number)] = Cell(name, name, bool(is_read[number]), known, *said, *own_word)
    slips = slips_of(*decisions) if world.adjudicators or world.checked else None
    return Drawn(Uniform(cells, missing, slips), audits, (decisions[0], decisions[1]))


def _sizes(labels: np.ndarray) -> dict[str, int]:
    return {str(label): int(posts) for label, posts in zip(*np.unique(labels, return_counts=True), strict=True)}


def _decided(world: World, chance: np.random.Generator, truth: np.ndarray, other: np.ndarray) -> np.ndarray:
    """What an adjudicator says, who slips to the other label."""
    return np.where(chance.random(len(truth)) < world.adjudicators, other, truth)


def _second(chance: np.random.Generator, decided: np.ndarray, once: np.ndarray, again: np.ndarray, decisions) -> None:
    seconded = decided & (chance.random(len(decided)) < SECOND)
    decisions[0] += int(seconded.sum())
    decisions[1] += int((seconded & (once != again)).sum())


def _audited(world, chance, truth, stratum, posts, lost, decisions):
    """What readers and adjudicators make of posts that are agreed to be of a stratum: the audit, the labels, and which
    were doubted, and which confirmed and checked."""
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
