"""The draws of one audit; prints JSON, a line for each figure of a draw.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections.abc import Iterator
from zlib import crc32

import django
import numpy as np

django.setup()

from annotate.core.estimation.label_errors import overall_error, slips_of  # noqa: E402
from annotate.core.estimation.proportions import Estimate  # noqa: E402
from annotate.evaluation import metrics  # noqa: E402
from benchmarks.audit_defaults import RANKS, WORLDS, Row  # noqa: E402
from benchmarks.made_posts import Population, World, draw, populate  # noqa: E402
from benchmarks.measuring_work import of_second  # noqa: E402


def figures(world: World, draws: int, seed: int) -> Iterator[Row]:
    chance = np.random.default_rng(seed)
    population = populate(world, chance)
    is_agreed = population.agreed >= 0
    wrong = float((population.agreed != population.truth)[is_agreed].mean())
    for _ in range(draws):
        drawn = draw(population, world, chance)
        both = drawn.both.map_cells(lambda key, cell: cell._replace(other=""))
        yield from _of_predictor("voted", both, population.first, population)
        yield from _of_predictor("did not vote", of_second(drawn.both), population.second, population)
        yield _row("error of agreement", overall_error(drawn.audits.values(), slips_of(*drawn.seconds)), wrong)


def _of_predictor(name: str, uniform: metrics.Uniform, predicted: np.ndarray, population: Population) -> Iterator[Row]:
    right = predicted == population.truth
    yield _row(f"accuracy, {name}", metrics.accuracy(uniform, with_und=True).estimate, float(right.mean()))
    for rank in RANKS:
        label, code = rank - 1, str(rank - 1)
        truth = float(right[population.truth == label].mean())
        yield _row(f"recall of label {rank}, {name}", metrics.recall(code, uniform, {}).estimate, truth)
        truth = float(right[predicted == label].mean())
        precision = metrics.precision(code, uniform, {}, with_und=True).estimate
        yield _row(f"precision of label {rank}, {name}", precision, truth)


def _row(figure: str, estimate: Estimate, truth: float) -> Row:
    width = estimate.high - estimate.low
    stated = estimate.value is not None and width < 1
    return Row(figure, width if stated else None, estimate.low - 1e-9 <= truth <= estimate.high + 1e-9)


def main(name: str, draws: str, seed: str) -> None:
    for row in figures(WORLDS[name], int(draws), crc32(f"{seed} {name}".encode())):
        print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
