"""Draws of the planned size in populations with known truth: their intervals' widths, compared with the plan.

No data are needed, because the posts are generated (made_posts.py). For a common, a less common and a rare label, the
draw with the least reading is planned and then made. The planned interval of each draw is measured.
"""

from typing import NamedTuple

from benchmarks.made_posts import World
from benchmarks.place import in_places
from benchmarks.tables import share, show

# The second predictor is as accurate on agreed posts as on disputed ones, as the plan assumes.
_EVEN = {"second": (0.95, 0.95), "checked": True}
WORLDS = {
    "agreement wrong in 1%": World(**_EVEN),
    "agreement wrong in .1%": World(wrong=0.001, **_EVEN),
    "agreement wrong in 5%": World(wrong=0.05, **_EVEN),
    "2%, unevenly": World(wrong=0.02, uneven=True, **_EVEN),
    "the second less often right where disputed": World(checked=True),
    "60 labels": World(labels=60, **_EVEN),
}
PLANNED = 0.05  # the wished width


class Row(NamedTuple):
    """A plan and its draws. audit: share and least; reading, width: means of the draws; narrow: share of draws whose
    width is at most PLANNED; intervals: share of draws that have an interval."""

    figure: str
    size: int
    audit: str
    planned_reading: float
    reading: float
    planned_width: float
    width: float
    narrow: float
    intervals: float


def add_options(parser) -> None:
    parser.add_argument("--planning-draws", type=int, default=20, help="of each plan (default %(default)s)")


def run(folder, options) -> None:
    program = "benchmarks.planning_work"
    for name, rows in in_places(program, WORLDS, options.planning_draws, options.seed):
        report(name, [Row(*row) for row in rows])


def report(name: str, rows: list[Row]) -> None:
    table = [
        [
            row.figure,
            row.size,
            row.audit,
            round(row.planned_reading),
            round(row.reading),
            f"{100 * row.planned_width:.1f}",
            f"{100 * row.width:.1f}",
            share(round(100 * row.narrow), 100),
            share(round(100 * row.intervals), 100),
        ]
        for row in rows
    ]
    heads = ["figure", "posts", "audit", "to read", "read", "planned width", "mean width", "so narrow", "an interval"]
    show(name, heads, table)
