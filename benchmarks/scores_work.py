"""Draws from one population. Prints a line of JSON for each figure.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections.abc import Iterator
from zlib import crc32

import numpy as np

from annotate.core.measures.scores import precision_threshold
from benchmarks.scores import Row
from tests.annotate.simulated_scores import POPULATIONS, Population, figures, sample, true_figures, true_selection

UNITS = 500_000  # from which the truth is computed
WISHES = (0.7, 0.8, 0.9, 0.95)


def measure(population: Population, draws: int, seed: int) -> Iterator[Row]:
    chance, truth = np.random.default_rng(seed), true_figures(population, UNITS)
    selections = {label: true_selection(population, label, UNITS) for label in (None, 0, len(population.shares) - 1)}
    for number in range(draws):
        drawn = sample(population, chance)
        for name, figure in figures(drawn, str(number)):
            if figure.low is None:
                yield Row(name, None, False, 0.0)
                continue
            value = truth[name]
            yield Row(name, figure.low <= value <= figure.high, figure.low > value, figure.high - figure.low)
        for wish in WISHES:
            for label, selection in selections.items():
                threshold = precision_threshold(drawn.units, wish, label)
                name = f"precision {wish:g}, {'answer' if label is None else f'label {label}'}"
                if threshold.value is None:
                    yield Row(name, None, False, 0.0)
                    continue
                best = selection.coverage(wish)
                reached = selection.precision(threshold.value) >= wish
                yield Row(name, reached, False, threshold.coverage / best if best else 0.0)


def main(name: str, draws: str, seed: str) -> None:
    for row in measure(POPULATIONS[name], int(draws), crc32(f"{seed} {name}".encode())):
        print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
