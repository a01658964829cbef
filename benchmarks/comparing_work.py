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
        for (measure, label), difference in differences(draw(population, world, chance).both).items():
            least = 1 if measure == "accuracy" else world.counted
            if label == WITHOUT_UND or difference["value"] is None or difference["units"] < least:
                continue
            value = true[measure, label]
            named = difference["better"] is not None
            low, high = (-1.0, 1.0) if difference["low"] is None else (difference["low"], difference["high"])
            yield Row(
                measure,
                difference["low"] is not None,
                low - 1e-9 <= value <= high + 1e-9,
                high - low,
                named,
                named and (difference["better"] == "first") != (value > 0),
            )


def truths(population: Population) -> dict[tuple[str, str], float]:
    truth, _, *both = population
    right = [labels == truth for labels in both]
    values = {("accuracy", WITH_UND): float(right[0].mean() - right[1].mean())}
    for label in np.unique(truth):
        of_label = truth == label
        values["recall", str(label)] = float(right[0][of_label].mean() - right[1][of_label].mean())
        precise = [hits[labels == label].mean() for hits, labels in zip(right, both, strict=True)]
        values["precision", str(label)] = float(precise[0] - precise[1])
    return values


def main(name: str, draws: str, seed: str) -> None:
    for row in compare(WORLDS[name], int(draws), crc32(f"{seed} {name}".encode())):
        print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
