"""Measures of scores in populations with known truth: how often intervals cover it, and thresholds reach the target.

No data are needed, because the populations are generated (tests/annotate/simulated_scores.py).
"""

from pathlib import Path
from typing import NamedTuple

from benchmarks.place import in_places
from benchmarks.tables import share, show
from tests.annotate.simulated_scores import POPULATIONS


class Row(NamedTuple):
    """A figure. reached: whether the interval covers the truth, or the threshold has the target precision; None if
    there is none. above: whether the interval lies above the truth. size: the width of the interval, or the number of
    units that the threshold selects divided by that of the best threshold."""

    name: str
    reached: bool | None
    above: bool
    size: float


def add_options(parser) -> None:
    parser.add_argument("--score-draws", type=int, default=1000, help="of each population (default %(default)s)")


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    for name, rows in in_places("benchmarks.scores_work", POPULATIONS, options.score_draws, options.seed):
        report(name, [Row(*row) for row in rows])


def report(name: str, rows: list[Row]) -> None:
    figures, thresholds = [], []
    for measure in dict.fromkeys(row.name for row in rows):
        group = [row for row in rows if row.name == measure]
        there = [row for row in group if row.reached is not None]
        none, reached = share(len(group) - len(there), len(group)), share(sum(row.reached for row in there), len(there))
        size = f"{sum(row.size for row in there) / len(there):.4f}" if there else "-"
        if measure.startswith("precision"):
            missed = share(sum(row.reached is False for row in group), len(group))
            thresholds.append([measure, none, missed, size])
        else:
            figures.append([measure, none, reached, share(sum(row.above for row in there), len(there)), size])
    show(name, ["measure", "no interval", "cover", "too high", "width"], figures)
    show(f"{name}: thresholds", ["wish", "none", "missed", "selected"], thresholds)
