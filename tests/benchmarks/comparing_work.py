"""The draws from one population; prints JSON, a line for each difference.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import django
import numpy as np

django.setup()

from annotate.evaluation.comparison import differences  # noqa: E402
from annotate.evaluation.metrics import Cell, Uniform  # noqa: E402
from tests.benchmarks.comparing import WORLDS, Row, World  # noqa: E402

LEAST_POSTS = 30  # that a difference rests on, to be counted
AUDIT_SHARE, LEAST_AUDITS = 0.02, 30


class Population(NamedTuple):
    """Labels by number; agreed: -1 where detectors do not agree."""

    truth: np.ndarray
    agreed: np.ndarray
    first: np.ndarray
    second: np.ndarray


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
    found = {("accuracy", ""): float(right[0].mean() - right[1].mean())}
    for label in np.unique(truth):
        own = truth == label
        found["recall", str(label)] = float(right[0][own].mean() - right[1][own].mean())
        precise = [hits[said == label].mean() for hits, said in zip(right, both, strict=True)]
        found["precision", str(label)] = float(precise[0] - precise[1])
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


def main(name: str, draws: str, seed: str) -> None:
    for row in compare(WORLDS[name], int(draws), crc32(f"{seed} {name}".encode())):
        print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
