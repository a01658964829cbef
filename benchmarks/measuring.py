"""Predictors and audits in populations with known truth: how often the intervals cover it.

No data are needed, because the posts are generated (made_posts.py). On each draw, two predictors are measured, one of
which voted or differs from the detectors. Each estimate is compared with the population. Estimates without an interval
are counted separately.
"""

from collections import defaultdict
from typing import NamedTuple

from benchmarks.made_posts import LOST_APART, SMALL, World
from benchmarks.place import in_places
from benchmarks.tables import share, show

_TWENTY = {"labels": 20, "drawn": 5_000}
WORLDS = {
    "agreement wrong in .1%": World(wrong=0.001),
    "agreement wrong in 1%": World(),
    "agreement wrong in 5%": World(wrong=0.05),
    "agreement wrong in 30%": World(wrong=0.3),
    "2%, unevenly": World(wrong=0.02, uneven=True),
    "two rare labels hide in the largest": World(hiding=True),
    "nearly a voter": World(second=(0.999, 0.66)),
    "5,000 posts of 20 labels, .5%": World(wrong=0.005, **_TWENTY),
    "60 labels": World(labels=60),
    "a third are copies": World(copies=0.33),
    "readers slip in 1.5%": World(slips=0.015, confirmed=0.015),
    "readers slip in 3%, adjudicators in 1%": World(slips=0.03, confirmed=0.03, adjudicators=0.01),
    "readers slip in 5%, adjudicators in 1%, .1%": World(wrong=0.001, slips=0.05, confirmed=0.05, adjudicators=0.01),
    "a good predictor, readers slip in 1.5%": World(slips=0.015, confirmed=0.015, second=(0.995, 0.98)),
    "readers confirm 30% of what is wrong": World(wrong=0.05, confirmed=0.3),
    "half of the wrong audits lost, 5% of the right": World(wrong=0.05, lost=(0.05, 0.5)),
    "a tenth of all audits lost": World(wrong=0.05, lost=(0.1, 0.1)),
    **LOST_APART,
} | SMALL


class Frames(NamedTuple):
    """Recall from a recall-oriented set of 1,000 posts and a uniform set of 10,000 together.

    common: the language's share of all posts; part: the share of its posts whose authors the draw for recall reaches
    inside, outside: recall of these posts, and of the others
    yes: share of the recall-oriented set that is in another language and missed, because of a false Yes
    false_yes: share of the posts in other languages to which readers say Yes
    """

    common: float
    part: float
    inside: float
    outside: float
    yes: float = 0.0
    false_yes: float = 0.05


FRAMES = {
    "reach 90%, recall .95 inside and outside": Frames(0.03, 0.9, 0.95, 0.95),
    "reach 60%, recall .95 and .80": Frames(0.03, 0.6, 0.95, 0.8),
    "the same, a rare language": Frames(0.003, 0.6, 0.95, 0.8),
    "the same, the most common one": Frames(0.3, 0.6, 0.95, 0.8),
    "reach 90%, 5% of false Yes": Frames(0.03, 0.9, 0.95, 0.95, yes=0.05),
}


class Row(NamedTuple):
    """An estimate. covers: whether the interval covers the truth; off: estimate minus truth."""

    figure: str
    has_interval: bool
    covers: bool
    width: float
    off: float


def add_options(parser) -> None:
    parser.add_argument("--measuring-draws", type=int, default=300, help="of each population (default %(default)s)")


def run(folder, options) -> None:
    program = "benchmarks.measuring_work"
    for name, rows in in_places(program, [*WORLDS, *FRAMES], options.measuring_draws, options.seed):
        report(name, [Row(*row) for row in rows])


def report(name: str, rows: list[Row]) -> None:
    by_figure: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_figure[row.figure].append(row)
    table = []
    for figure, group in by_figure.items():
        intervals = [row for row in group if row.has_interval]
        table.append(
            [
                figure,
                len(group),
                share(len(group) - len(intervals), len(group)),
                share(sum(row.covers for row in intervals), len(intervals)),
                f"{100 * sum(row.width for row in intervals) / len(intervals):.1f}" if intervals else "-",
                f"{100 * sum(row.off for row in group) / len(group):+.1f}",
            ]
        )
    show(name, ["figure", "estimates", "no interval", "cover", "width in points", "off by"], table)
