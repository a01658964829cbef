"""Draws from one population. Prints a line of JSON for each difference.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections.abc import Iterator
from zlib import crc32

import django
import numpy as np

django.setup()

from annotate.evaluation.comparison import differences  # noqa: E402
from annotate.evaluation.measures import WITH_UND, WITHOUT_UND  # noqa: E402
from benchmarks.comparing import WORLDS, Row  # noqa: E402
from benchmarks.made_posts import Population, World, draw, populate  # noqa: E402


def compare(world: World, draws: int, seed: int) -> Iterator[Row]:
    chance = np.random.default_rng(seed)
    population = populate(world, chance)
    true = truths(population)
    for _ in range(draws):
        for (measure, label), found in differences(draw(population, world, chance).both).items():
            least = 1 if measure == "accuracy" else world.counted
            if label == WITHOUT_UND or found["value"] is None or found["units"] < least:
                continue
            value = true[measure, label]
            named = found["better"] is not None
            low, high = (-1.0, 1.0) if found["low"] is None else (found["low"], found["high"])
            yield Row(
                measure,
                found["low"] is not None,
                low - 1e-9 <= value <= high + 1e-9,
                high - low,
                named,
                named and (found["better"] == "first") != (value > 0),
            )


def truths(population: Population) -> dict[tuple[str, str], float]:
    truth, _, *both = population
    right = [said == truth for said in both]
    found = {("accuracy", WITH_UND): float(right[0].mean() - right[1].mean())}
    for label in np.unique(truth):
        own = truth == label
        found["recall", str(label)] = float(right[0][own].mean() - right[1][own].mean())
        precise = [hits[said == label].mean() for hits, said in zip(right, both, strict=True)]
        found["precision", str(label)] = float(precise[0] - precise[1])
    return found


def main(name: str, draws: str, seed: str) -> None:
    for row in compare(WORLDS[name], int(draws), crc32(f"{seed} {name}".encode())):
        print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
