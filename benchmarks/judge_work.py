"""Corpora of known truth that a judge labelled, draws from them that people read, and the estimates of each way.

Nothing of Django is imported, so that this runs in an environment with ppi-python or glide-py too.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple
from zlib import crc32

import numpy as np

from annotate.core.estimation.share_estimators import AuditedDraw, ReadSample, corpus_shares, shares_of_draw

try:
    from ppi_py import ppi_mean_ci
except ImportError:
    ppi_mean_ci = None
try:
    from glide.estimators import ASIMeanEstimator, PPIMeanEstimator
except ImportError:
    PPIMeanEstimator = ASIMeanEstimator = None

ITEMS = 10_000  # of a corpus
HALF_WIDTH = 0.03  # wished


class World(NamedTuple):
    """shares: how often each label is true; recalls: how often the judge finds each; slips: how often people give a
    wrong label; shared: whether the judge makes the same errors as people; uneven: whether items that the judge does
    not label with the first label are five times as likely to be read; refusals: how often the judge gives no label, by
    the true label; agreement: how often detectors agree, and how often they are right then, in a uniform draw whose
    disputed items are read and whose agreed ones are audited."""

    shares: tuple[float, ...]
    recalls: tuple[float, ...]
    slips: float = 0.0
    shared: bool = False
    uneven: bool = False
    refusals: tuple[float, ...] = ()
    agreement: tuple[float, float] = ()


class Population(NamedTuple):
    """The index of each item's label, (items,). chance: its relative probability of being read. agreed: the label on
    which detectors agree, or -1 if they do not; None if there are no detectors."""

    truth: np.ndarray
    people: np.ndarray
    judge: np.ndarray
    chance: np.ndarray
    agreed: np.ndarray | None = None


class Row(NamedTuple):
    """An interval. covers: the truth; of_people: the share that people would give if they read everything; note: a
    reason, such as why there is no interval (width is then None)."""

    label: str
    way: str
    covers: bool
    of_people: bool
    off: float
    width: float | None
    note: str
    more: int | None = None


def populate(world: World, chance: np.random.Generator) -> Population:
    """The shares of the labels are exact; all else is drawn."""
    size = len(world.shares)
    ends = np.round(np.cumsum(world.shares) * ITEMS).astype(int)
    truth = np.searchsorted(ends, np.arange(ITEMS), side="right")
    slipped = chance.random(ITEMS) < world.slips
    people = np.where(slipped, _other(truth, size, chance), truth)
    recognised = chance.random(ITEMS) < np.array(world.recalls)[truth]
    judge = np.where(recognised, truth, _other(truth, size, chance))
    if world.shared:
        judge = np.where(slipped, people, judge)
    if world.refusals:
        judge = np.where(chance.random(ITEMS) < np.array(world.refusals)[truth], size, judge)
    weights = np.where(judge > 0, 5.0, 1.0) if world.uneven else np.ones(ITEMS)
    agreed = None
    if world.agreement:
        right = np.where(chance.random(ITEMS) < world.agreement[1], truth, _other(truth, size, chance))
        agreed = np.where(chance.random(ITEMS) < world.agreement[0], right, -1)
    return Population(truth, people, judge, weights, agreed)


def _other(labels: np.ndarray, size: int, chance: np.random.Generator) -> np.ndarray:
    return (labels + chance.integers(1, size, len(labels))) % size


def read(population: Population, number: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw items systematically in random order. Return the indices of those to read, and all items' probabilities."""
    chances = np.minimum(1.0, population.chance * number / population.chance.sum())
    if np.ptp(chances) == 0:
        return chance.choice(ITEMS, number, replace=False), chances
    order = chance.permutation(ITEMS)
    return order[np.searchsorted(np.cumsum(chances[order]), np.arange(number) + chance.random())], chances


def _audited(population: Population, labels: tuple[str, ...], number: int, chance: np.random.Generator) -> AuditedDraw:
    """Draw three times the number uniformly. People read all disputed items, and an audit of each agreed label."""
    drawn = chance.choice(ITEMS, 3 * number, replace=False)
    agreed, people = population.agreed[drawn], np.full(len(drawn), -1)
    for label in np.unique(agreed):
        stratum = np.flatnonzero(agreed == label)
        is_read = stratum if label < 0 else stratum[: max(5, number // 10)]
        people[is_read] = population.people[drawn[is_read]]
    corpus = np.bincount(population.judge, minlength=len(labels))
    _, strata = np.unique(agreed, return_inverse=True)
    return AuditedDraw(labels, corpus, population.judge[drawn], people, strata)


def estimate(name: str, world: World, number: int, draws: int, seed: str) -> Iterator[Row]:
    chance = np.random.default_rng(crc32(f"{seed} {name} {number}".encode()))
    population = populate(world, chance)
    size = len(world.shares)
    labels = tuple(str(place) for place in range(size))
    corpus = np.bincount(population.judge, minlength=size + 1)
    targets = [np.bincount(column, minlength=size) / ITEMS for column in (population.truth, population.people)]
    for draw in range(draws):
        wished = HALF_WIDTH if draw < draws / 10 else None
        if population.agreed is not None:
            shares = shares_of_draw(_audited(population, labels, number, chance), wished)
        else:
            places, chances = read(population, number, chance)
            sample = ReadSample(labels, corpus, population.judge[places], population.people[places], chances[places])
            shares = corpus_shares(sample, wished)
        for place in range(size == 2, size):
            estimates, goals = shares[place], tuple(float(target[place]) for target in targets)
            for way in ("people", "rogan_gladen", "prediction_powered"):
                one = getattr(estimates, way)
                note = one.reasons[0].name.lower() if one.reasons else ""
                yield _row(labels[place], way, goals, (one.value, one.low, one.high), note, one.more)
            for way, theirs in OTHERS.items() if population.agreed is None else ():
                try:
                    ends = theirs(population, places, chances, place)
                except ValueError:
                    ends = (np.nan, np.nan)
                if np.isnan(ends).any():
                    yield Row(labels[place], way, False, False, 0.0, None, "no interval")
                else:
                    low, high = max(0.0, ends[0]), min(1.0, ends[1])
                    yield _row(labels[place], way, goals, (sum(ends) / 2, low, high), "")


def _row(
    label: str,
    way: str,
    goals: tuple[float, ...],
    interval: tuple[float, float, float],
    note: str,
    more: int | None = None,
) -> Row:
    value, low, high = interval
    covers, of_people = (low - 1e-9 <= goal <= high + 1e-9 for goal in goals)
    return Row(label, way, covers, of_people, value - goals[1], high - low, note, more)


def _of_ppi(population: Population, places: np.ndarray, chances: np.ndarray, label: int) -> tuple[float, float]:
    judged = (population.judge == label).astype(float)
    # With unequal probabilities, the unread items are not a uniform sample of the corpus, so use all items.
    unread = judged if np.ptp(chances) else np.delete(judged, places)
    people = (population.people[places] == label).astype(float)
    weights = 1 / chances[places]
    if not np.ptp(judged[places]) or not np.ptp(people):
        raise ValueError("nothing to tune by")
    low, high = ppi_mean_ci(people, judged[places], unread, alpha=0.05, w=weights / weights.mean())
    return low.item(), high.item()


def _of_glide(population: Population, places: np.ndarray, chances: np.ndarray, label: int) -> tuple[float, float]:
    judged, people = (population.judge == label).astype(float), np.full(ITEMS, np.nan)
    people[places] = population.people[places] == label
    if np.ptp(chances):
        estimate = ASIMeanEstimator().estimate(people, judged, chances)
    else:
        estimate = PPIMeanEstimator().estimate(people, judged)
    interval = estimate.confidence_interval
    return float(interval.lower_bound), float(interval.upper_bound)


OTHERS: dict[str, Callable[..., tuple[float, float]]] = {
    **({"ppi-python": _of_ppi} if ppi_mean_ci else {}),
    **({"glide-py": _of_glide} if PPIMeanEstimator else {}),
}
