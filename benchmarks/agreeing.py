"""Agreement in populations with rare labels: whether the intervals of the coefficients cover the true values.

No data are needed. In a population, a share of the units has a rare label, and people make errors. Each coefficient of
coefficients.py is computed on draws of units and compared with its value in an infinite population. For comparison,
the table shows alpha's percentile bootstrap over units, which alpha used before (with none below 20 units).
"""

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

from benchmarks.tables import share, show

UNITS = (20, 50, 100, 200, 1000)
SET_UNITS = (10, 30, 100, 300)  # of answers that are sets of labels
LEAST_DRAWS = 100  # with an interval; worlds with fewer do not count for the lowest coverage


def add_options(parser) -> None:
    parser.add_argument("--agreeing-draws", type=int, default=400, help="of each population (default %(default)s)")


def run(folder, options) -> None:
    from benchmarks.agreeing_work import WORLDS, rows, set_row

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


def report(rows, draws: int) -> None:
    for measure in dict.fromkeys(row.measure for row in rows):
        group = [row for row in rows if row.measure == measure]
        _by_size_and_rarity(measure, group, draws)
        lowest = sorted((row.covers / row.intervals, row) for row in group if row.intervals >= LEAST_DRAWS)[:5]
        table = [(" ".join(map(str, row.world)), row.units, row.intervals, f"{covered:.1%}") for covered, row in lowest]
        show(f"{measure}: the lowest", ["labels, rare, answers, errors", "units", "given", "cover"], table)


def _by_size_and_rarity(measure: str, rows, draws: int) -> None:
    table = []
    for units, rare in product(UNITS, sorted({row.world.rare for row in rows})):
        group = [row for row in rows if row.units == units and row.world.rare == rare]
        intervals = sum(row.intervals for row in group)
        coverages = [row.covers / row.intervals for row in group if row.intervals >= LEAST_DRAWS]
        table.append(
            [
                f"{units:,} units, {rare:.1%} rare",
                share(intervals, draws * len(group)),
                share(sum(row.covers for row in group), intervals),
                f"{min(coverages):.2%}" if coverages else "-",
                f"{sum(coverage < 0.93 for coverage in coverages)} of {len(coverages)}",
                f"{sum(row.widths for row in group) / intervals:.3f}" if intervals else "-",
            ]
        )
    show(measure, ["", "interval given", "cover", "lowest", "below 93%", "width"], table)
