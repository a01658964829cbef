"""Intervals that are valid at every look, and ordinary ones: how often all eight looks cover the truth.

No data are needed. A uniform task is extended from 500 to 4,000 posts, with a look after each round. A task of records
in three languages, which people read at different speeds, is looked at eight times while they read.
"""

from benchmarks.place import in_places
from benchmarks.tables import show

# Share of the detectors' agreement that is wrong, and of the predictor's labels that are right.
WORLDS = {"agreement wrong in 3%": (0.03, 0.93), "agreement wrong in 1%": (0.01, 0.97), "and in 8%": (0.08, 0.85)}
RECORDS = "records in three languages"
HEAD = ["figure", "one interval, at one look", "at all looks", "--sequential, at all looks", "times as wide"]


def add_options(parser) -> None:
    parser.add_argument("--looks-draws", type=int, default=500, help="tasks per population (default %(default)s)")


def run(folder, options) -> None:
    for name, rows in in_places("benchmarks.looks_work", [*WORLDS, RECORDS], options.looks_draws, options.seed):
        show(
            name, HEAD, [[figure, *(f"{100 * share:.1f}" for share in shares), wide] for figure, *shares, wide in rows]
        )
