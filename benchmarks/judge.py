"""Shares of labels in corpora that a judge labelled and people read in part: whether three types of intervals cover.

No data are needed, because the corpora are generated (judge_work.py). Django is not needed either. If ppi-python or
glide-py is installed, their intervals for the same draws are also printed:

    pip install numpy scipy ppi-python glide-py
    python -m benchmarks.judge [DRAWS [SEED [NAMES...]]]
"""

import sys
from collections import Counter

from benchmarks.judge_work import Row, World, estimate
from benchmarks.tables import share, show

NUMBERS = (30, 100, 1000)  # items read
WORLDS = {
    "half and half, judge .98": World((0.5, 0.5), (0.98, 0.98)),
    "half and half, judge .8": World((0.5, 0.5), (0.8, 0.8)),
    "half and half, judge .6": World((0.5, 0.5), (0.6, 0.6)),
    "1 in 100, judge .98": World((0.99, 0.01), (0.98, 0.98)),
    "1 in 100, judge .9": World((0.99, 0.01), (0.9, 0.9)),
    "1 in 100, judge finds 6 of 10": World((0.99, 0.01), (0.995, 0.6)),
    "3 in 10, judge .9, people slip in 2%": World((0.7, 0.3), (0.9, 0.9), slips=0.02),
    "3 in 10, judge .9, errs with people in 5%": World((0.7, 0.3), (0.9, 0.9), slips=0.05, shared=True),
    "three labels, judge .85": World((0.6, 0.3, 0.1), (0.9, 0.8, 0.7)),
    "three labels, read unevenly": World((0.7, 0.25, 0.05), (0.85, 0.8, 0.7), uneven=True),
    "four languages, disputed ones read and agreed ones audited": World(
        (0.6, 0.25, 0.1, 0.05), (0.9, 0.9, 0.8, 0.8), agreement=(0.8, 0.98)
    ),
    "three labels, judge refuses 5%": World((0.6, 0.3, 0.1), (0.9, 0.8, 0.7), refusals=(0.02, 0.06, 0.2)),
}


def add_options(parser) -> None:
    parser.add_argument("--judge-draws", type=int, default=2000, help="of each corpus and size (default %(default)s)")


def run(folder, options) -> None:
    for name in WORLDS:
        report(name, options.judge_draws, options.seed)


def report(name: str, draws: int, seed: str) -> None:
    table = []
    for number in NUMBERS:
        rows = list(estimate(name, WORLDS[name], number, draws, seed))
        for label, way in dict.fromkeys((row.label, row.way) for row in rows):
            table.append(_line(number, label, way, [row for row in rows if (row.label, row.way) == (label, way)]))
    head = ["way", "read", "label", "cover", "of people", "off, points", "width, points", "more for 3", "notes"]
    show(name, head, table)


def _line(number: int, label: str, way: str, rows: list[Row]) -> list[object]:
    intervals = [row for row in rows if row.width is not None]
    wished = sorted(row.more for row in rows if row.more is not None)
    notes = Counter(row.note for row in rows if row.note)
    return [
        way,
        number,
        label,
        share(sum(row.covers for row in intervals), len(intervals)),
        share(sum(row.of_people for row in intervals), len(intervals)),
        f"{100 * sum(row.off for row in intervals) / len(intervals):+.2f}" if intervals else "-",
        f"{100 * sum(row.width or 0.0 for row in intervals) / len(intervals):.2f}" if intervals else "-",
        wished[len(wished) // 2] if wished else "-",
        ", ".join(f"{note} {share(times, len(rows))}" for note, times in notes.most_common()),
    ]


def main(draws: str = "2000", seed: str = "2015", *names: str) -> None:
    for name in names or WORLDS:
        report(name, int(draws), seed)


if __name__ == "__main__":
    main(*sys.argv[1:])
