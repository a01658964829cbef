"""Two predictors compared in populations of known truth: whether the intervals of their difference cover it.

No data are needed: the posts are made (made_posts.py). Two predictors are compared on each draw, and every difference
is held against that of the population.
"""

from typing import NamedTuple

from tests.benchmarks.made_posts import World
from tests.benchmarks.place import in_places
from tests.benchmarks.tables import share, show

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
    program = "tests.benchmarks.comparing_work"
    for name, found in in_places(program, WORLDS, options.comparing_draws, options.seed):
        report(name, [Row(*row) for row in found])


def report(name: str, rows: list[Row]) -> None:
    table = []
    for measure in dict.fromkeys(row.measure for row in rows):
        own = [row for row in rows if row.measure == measure]
        told = (sum(row.covers for row in own), sum(row.named for row in own), sum(row.wrongly for row in own))
        width = 100 * sum(row.width for row in own) / len(own)
        table.append([measure, len(own), f"{width:.1f}", *(share(number, len(own)) for number in told)])
    show(name, ["measure", "differences", "width in points", "cover", "one named better", "and wrongly"], table)
