"""Comparisons of two predictors in populations with known truth: whether the intervals cover the true difference.

No data are needed, because the posts are generated (made_posts.py). Two predictors are compared on each draw, and each
difference is compared with that of the population.
"""

from typing import NamedTuple

from benchmarks.made_posts import LOST_APART, SMALL, World
from benchmarks.place import in_places
from benchmarks.tables import share, show

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
    **LOST_APART,
} | SMALL


class Row(NamedTuple):
    """A difference: measure, whether it has an interval, whether that covers the truth, its width, whether one is named
    better, and whether wrongly."""

    measure: str
    has_interval: bool
    covers: bool
    width: float
    named: bool
    wrongly: bool


def add_options(parser) -> None:
    parser.add_argument("--comparing-draws", type=int, default=300, help="of each population (default %(default)s)")


def run(folder, options) -> None:
    program = "benchmarks.comparing_work"
    for name, rows in in_places(program, WORLDS, options.comparing_draws, options.seed):
        report(name, [Row(*row) for row in rows])


def report(name: str, rows: list[Row]) -> None:
    table = []
    for measure in dict.fromkeys(row.measure for row in rows):
        group = [row for row in rows if row.measure == measure]
        intervals = [row for row in group if row.has_interval]
        counts = [sum(getattr(row, name) for row in intervals) for name in ("covers", "named", "wrongly")]
        width = f"{100 * sum(row.width for row in intervals) / len(intervals):.1f}" if intervals else "-"
        none = share(len(group) - len(intervals), len(group))
        table.append([measure, len(group), none, width, *(share(number, len(intervals)) for number in counts)])
    head = ["measure", "differences", "no interval", "width in points", "cover", "one named better", "and wrongly"]
    show(name, head, table)
