"""The plans and draws of one population. Prints a line of JSON for each plan.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from zlib import crc32

import django
import numpy as np

django.setup()

from annotate.evaluation import metrics  # noqa: E402
from annotate.figures.draw_plan import cheapest  # noqa: E402
from annotate.figures.interval_width import Checks, Draw, Expected, Stream, planned, reading, width  # noqa: E402
from benchmarks.made_posts import CHECK_SHARE, LEAST_CHECKS, RECHECK, SECOND, Population, World, draw, populate  # noqa: E402
from benchmarks.measuring_work import of_second  # noqa: E402
from benchmarks.planning import PLANNED, WORLDS, Row  # noqa: E402

LABELS = (0, 3, 8)  # the commonest, and two less common
CHECKS = Checks(CHECK_SHARE, LEAST_CHECKS, RECHECK, SECOND)


def plans(world: World, draws: int, seed: int) -> Iterator[Row]:
    chance = np.random.default_rng(seed)
    population = populate(world, chance)
    stream = stream_of(population)
    for voted, predicted in ((True, population.first), (False, population.second)):
        right = float((predicted == population.truth).mean())
        expected = Expected(right, world.wrong, voted)
        figures = [
            ("accuracy", ""),
            *((measure, str(label)) for measure in ("recall", "precision") for label in LABELS),
        ]
        for measure, label in figures:

            def is_enough(candidate: Draw, measure=measure, label=label, expected=expected) -> bool:
                return width(planned(measure, label, stream, candidate, expected)) <= PLANNED

            plan = cheapest(stream, is_enough, CHECKS)
            if plan is None:
                continue
            drawn = replace(world, drawn=plan.size, audit_share=plan.share, least_audits=plan.least)
            widths, read = [], []
            for _ in range(draws):
                uniform = draw(population, drawn, chance).both
                uniform = uniform if voted else of_second(uniform)
                figure = measured(measure, label, uniform)
                read.append(sum(uniform.annotated.values()))
                if figure.estimate.value is not None:
                    widths.append(width(figure.estimate))
            intervals = [value for value in widths if value < 1]
            yield Row(
                f"{measure} {label}, {'voted' if voted else 'did not vote'}",
                plan.size,
                f"{plan.share:.0%}, {plan.least}",
                reading(stream, plan).all,
                float(np.mean(read)),
                width(planned(measure, label, stream, plan, expected)),
                float(np.mean(widths)),
                float(np.mean([value <= PLANNED for value in widths])),
                len(intervals) / draws,
            )


def stream_of(population: Population) -> Stream:
    """Return the numbers that a corpus has. The truth replaces the likeliest language of disputed posts."""
    agreed, truth = population.agreed, population.truth
    return Stream(
        {str(label): number for label, number in Counter(agreed[agreed >= 0].tolist()).items()},
        {str(label): number for label, number in Counter(truth[agreed < 0].tolist()).items()},
    )


def measured(measure: str, label: str, uniform: metrics.Uniform) -> metrics.Measured:
    uniform = uniform.map_cells(lambda key, cell: cell._replace(other=""))
    if measure == "accuracy":
        return metrics.accuracy(uniform, with_und=True)
    if measure == "recall":
        return metrics.recall(label, uniform, {})
    return metrics.precision(label, uniform, {}, with_und=True)


def main(name: str, draws: str, seed: str) -> None:
    for row in plans(WORLDS[name], int(draws), crc32(f"{seed} {name}".encode())):
        print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
