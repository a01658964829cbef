"""Agreement in populations with rare labels: whether the intervals of the coefficients cover the true values.

No data are needed. In a population, a share of the units has a rare label, and people make errors. Each coefficient of
coefficients.py is computed on draws of units and compared with its value in an infinite population. For comparison,
the table shows alpha's percentile bootstrap over units, which alpha used before (with none below 20 units).
"""

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import NamedTuple

from benchmarks.tables import share, show


class World(NamedTuple):
    """labels: one frequent label, and others that are together the truth of the share `rare`; answers, errors: a key of
    ANSWERS, of ERRORS."""

    labels: int
    rare: float
    answers: str
    errors: str


# How many answers a unit has -> what share of units has so many.
ANSWERS = {"2": {2: 1.0}, "3": {3: 1.0}, "uneven": {2: 0.6, 3: 0.3, 5: 0.1}}
# How often the frequent label is not given where it is true, and a rare one where that is; None: answers by chance.
ERRORS = {
    "miss 20%, by mistake 0.2%": (0.002, 0.2),
    "miss 20%, by mistake 1%": (0.01, 0.2),
    "5% either way": (0.05, 0.05),
    "20% either way": (0.2, 0.2),
    "by chance": None,
}
UNITS = (20, 50, 100, 200, 1000)
SET_UNITS = (10, 30, 100, 300)  # of answers that are sets of labels
RARE = (0.005, 0.01, 0.05, 0.1, 0.3, 0.5)
WORLDS = [World(*each) for each in product((2, 3, 5), RARE, ANSWERS, ERRORS)]
LEAST_DRAWS = 100  # with an interval, of a world that is to count for the lowest coverage


class Row(NamedTuple):
    """Of the draws of so many units from one world: in how many there is an interval, how many cover, their widths."""

    measure: str
    world: World
    units: int
    given: int
    covers: int
    widths: float


def add_options(parser) -> None:
    parser.add_argument("--agreeing-draws", type=int, default=400, help="of each population (default %(default)s)")


def run(folder, options) -> None:
    from benchmarks.agreeing_work import rows, set_row

    with ProcessPoolExecutor(os.cpu_count() or 1) as pool:
        work = partial(rows, sizes=UNITS, draws=options.agreeing_draws, seed=options.seed)
        report([row for part in pool.map(work, WORLDS) for row in part], options.agreeing_draws)
        sizes = list(product((2, 3), SET_UNITS))
        of_sets = pool.map(partial(set_row, draws=options.agreeing_draws, seed=options.seed), *zip(*sizes, strict=True))
        table = [
            [people, units, share(held, options.agreeing_draws), f"{width:.3f}"]
            for (people, units), (held, width) in zip(sizes, of_sets, strict=True)
        ]
        show("alpha with MASI, one to seven of 400 labels", ["answers", "units", "cover", "width"], table)


def report(rows: list[Row], draws: int) -> None:
    for measure in dict.fromkeys(row.measure for row in rows):
        own = [row for row in rows if row.measure == measure]
        _by_size_and_rarity(measure, own, draws)
        lowest = sorted((row.covers / row.given, row) for row in own if row.given >= LEAST_DRAWS)[:5]
        table = [(" ".join(map(str, row.world)), row.units, row.given, f"{covered:.1%}") for covered, row in lowest]
        show(f"{measure}: the lowest", ["labels, rare, answers, errors", "units", "given", "cover"], table)


def _by_size_and_rarity(measure: str, rows: list[Row], draws: int) -> None:
    table = []
    for units, rare in product(UNITS, RARE):
        own = [row for row in rows if row.units == units and row.world.rare == rare]
        given = sum(row.given for row in own)
        each = [row.covers / row.given for row in own if row.given >= LEAST_DRAWS]
        table.append(
            [
                f"{units:,} units, {rare:.1%} rare",
                share(given, draws * len(own)),
                share(sum(row.covers for row in own), given),
                f"{min(each):.2%}" if each else "-",
                f"{sum(each_ < 0.93 for each_ in each)} of {len(each)}",
                f"{sum(row.widths for row in own) / given:.3f}" if given else "-",
            ]
        )
    show(measure, ["", "interval given", "cover", "lowest", "below 93%", "width"], table)
