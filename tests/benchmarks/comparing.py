"""Two predictors compared in populations of known truth: whether the intervals of their difference cover it.

No data are needed. A population has posts of labels that are less and less common; three detectors agree on most, and
in some of that they are wrong. Draws from it are audited as tasks are, two predictors are compared on each, and every
difference is held against that of the population.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from annotate.evaluation.comparison import differences
from annotate.evaluation.metrics import Cell, Uniform
from tests.benchmarks.tables import share, show

LEAST_POSTS = 30  # that a difference rests on, to be counted
AUDIT_SHARE, LEAST_AUDITS = 0.02, 30


@dataclass(frozen=True)
class World:
    """disputed: share of posts on which detectors do not agree; wrong: of the others, where they are wrong. first,
    second: how often a predictor is right on (agreed, disputed) posts; None where it says what was agreed on.
    uneven: a sixth of the labels has most of the wrong agreement. all_read: people read every post.
    """

    labels: int = 30
    drawn: int = 10_000
    disputed: float = 0.15
    wrong: float = 0.01
    first: tuple[float | None, float] = (None, 0.68)
    second: tuple[float | None, float] = (0.965, 0.75)
    uneven: bool = False
    all_read: bool = False
    posts: int = 1_000_000


WORLDS = {
    "a voter, better, and one that did not vote": World(),
    "the same, agreement wrong in 5%": World(wrong=0.05),
    "the same, in 2%, unevenly": World(wrong=0.02, uneven=True),
    "the same, 60 labels": World(labels=60),
    "nearly as good as each other": World(second=(0.975, 0.74)),
    "two voters": World(second=(None, 0.64)),
    "a voter, and nearly one": World(second=(0.999, 0.66)),
    "two that did not vote": World(first=(0.97, 0.70), second=(0.965, 0.72)),
    "2,000 posts of 10 labels": World(drawn=2_000, labels=10),
    "2,000 posts, all read": World(drawn=2_000, all_read=True),
}


class Population(NamedTuple):
    """Labels by number; agreed: -1 where detectors do not agree."""

    truth: np.ndarray
    agreed: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Row(NamedTuple):
    """A difference: measure, whether its interval covers the truth, its width, which is named better, and rightly."""

    measure: str
    covers: bool
    width: float
    named: bool
    wrongly: bool


def add_options(parser) -> None:
    parser.add_argument("--comparing-draws", type=int, default=300, help="of each population (default %(default)s)")


def run(folder, options) -> None:
    for name, world in WORLDS.items():
        report(name, list(compare(world, options.comparing_draws, int(options.seed))))


def report(name: str, rows: list[Row]) -> None:
    table = []
    for measure in dict.fromkeys(row.measure for row in rows):
        own = [row for row in rows if row.measure == measure]
        told = (sum(row.covers for row in own), sum(row.named for row in own), sum(row.wrongly for row in own))
        width = 100 * sum(row.width for row in own) / len(own)
        table.append([measure, len(own), f"{width:.1f}", *(share(number, len(own)) for number in told)])
    show(name, ["measure", "differences", "width in points", "cover", "one named better", "and wrongly"], table)


def compare(world: World, draws: int, seed: int) -> Iterator[Row]:
    chance = np.random.default_rng(seed)
    population = populate(world, chance)
    true = truths(population)
    for _ in range(draws):
        for (measure, label), found in differences(draw(population, world, chance)).items():
            if found is None or found["posts"] < LEAST_POSTS:
                continue
            value = true[measure, label]
            named = found["better"] is not None
            yield Row(
                measure,
                found["low"] - 1e-9 <= value <= found["high"] + 1e-9,
                found["high"] - found["low"],
                named,
                named and (found["better"] == "first") != (value > 0),
            )


def populate(world: World, chance: np.random.Generator) -> Population:
    common = 1 / np.arange(1, world.labels + 1) ** 1.2
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

    def said(agreed: float | None, disputed: float) -> np.ndarray:
        elsewhere = np.where(chance.random(size) < disputed, truth, mistaken())
        if agreed is None:
            return np.where(is_agreed, guess, elsewhere)
        own = np.where(chance.random(size) < agreed, truth, mistaken())
        # Where the detectors are wrong, another predictor often is too.
        own = np.where((guess != truth) & (chance.random(size) < 0.5), guess, own)
        return np.where(is_agreed, own, elsewhere)

    return Population(truth, np.where(is_agreed, guess, -1), said(*world.first), said(*world.second))


def truths(population: Population) -> dict[tuple[str, str], float]:
    truth, _, *both = population
    right = [said == truth for said in both]
    found = {("accuracy", ""): right[0].mean() - right[1].mean()}
    for label in np.unique(truth):
        own = truth == label
        found["recall", str(label)] = right[0][own].mean() - right[1][own].mean()
        precise = [hits[said == label].mean() for hits, said in zip(right, both, strict=True)]
        found["precision", str(label)] = precise[0] - precise[1]
    return found


def draw(population: Population, world: World, chance: np.random.Generator) -> Uniform:
    """A uniform set: what was disputed is read, and an audit of what was agreed on."""
    places = chance.choice(len(population.truth), world.drawn, replace=False)
    truth, agreed, first, second = (part[places] for part in population)
    read = np.full(world.drawn, world.all_read) | (agreed < 0)
    for label in np.unique(agreed[agreed >= 0]):
        own = np.flatnonzero(agreed == label)
        audited = min(len(own), max(LEAST_AUDITS, round(AUDIT_SHARE * len(own))))
        read[chance.choice(own, audited, replace=False)] = True
    cells = {}
    for number in range(world.drawn):
        stratum = "" if agreed[number] < 0 else str(agreed[number])
        known = str(truth[number]) if read[number] else stratum
        cells[str(number)] = Cell(stratum, stratum, bool(read[number]), known, str(first[number]), str(second[number]))
    return Uniform(cells, None)
