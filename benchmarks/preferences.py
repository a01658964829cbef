"""Simulated preferences: whether the intervals cover the truth, and whether a judge who always takes the left is found.

Tasks have two systems, or three and five, whose differences of strength are estimated. In each task, every message has
random shares of people who prefer one system, the other, or neither. No data are needed.
"""

from pathlib import Path

import numpy as np

from annotate.core.measures.paired_comparisons import TIE, compare_pairs, order, sides
from benchmarks.tables import share, show
from tests.annotate.simulated_preferences import (
    FIELDS,
    POPULATIONS,
    SYSTEMS,
    Field,
    Population,
    compared_judgments,
    judgments,
)

SIZES = (50, 100, 500)
ORDERED_SIZES = (10, 20, 50, 200)
# Equal and unequal systems, with one of three judges always taking the first.
LEFT = {
    "liked alike": Population((0.4, 0.4, 0.2), alike=1, left=1),
    "one is better": Population((0.45, 0.35, 0.2), alike=1, left=1),
}


def add_options(parser) -> None:
    parser.add_argument("--preference-tasks", type=int, default=1000, help="of each kind (default %(default)s)")


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    chance = np.random.default_rng(int(options.seed))
    tasks = options.preference_tasks
    rows = [
        [f"{name}, {size} messages", *covered(population, size, tasks, chance)]
        for name, population in POPULATIONS.items()
        for size in SIZES
    ]
    show(f"{tasks:,} tasks each: 95% intervals of shares that hold the truth", ["tasks", *SYSTEMS, "tie", "p"], rows)
    rows = [[name, *left(population, 60, tasks, chance)] for name, population in LEFT.items()]
    head = ["systems", "he is seen", "others are", "his for one", "one without him", "one with him"]
    show(f"{tasks:,} tasks of 60 messages: a judge who always takes the left", head, rows)
    rows = [
        [f"{name}, {size} messages", *ordered(field, size, tasks, chance)]
        for name, field in FIELDS.items()
        for size in ORDERED_SIZES
    ]
    head = ["systems", "ties left out", "none given", "as half", "none given"]
    show(f"{tasks:,} tasks each: 95% intervals of differences of strength that hold the truth", head, rows)


def covered(population: Population, size: int, tasks: int, chance) -> list[str]:
    """Return how often each share's interval covers the truth, and how often the sign test finds a difference at 5%."""
    held, found_apart = dict.fromkeys(population.truth(), 0), 0
    for _ in range(tasks):
        [comparison] = compare_pairs(judgments(population, size, chance))
        found_apart += comparison.p < 0.05
        for answer, true in population.truth().items():
            held[answer] += comparison.shares[answer].low <= true <= comparison.shares[answer].high
    return [*(share(held[answer], tasks) for answer in (*SYSTEMS, TIE)), share(found_apart, tasks)]


def left(population: Population, size: int, tasks: int, chance) -> list[str]:
    """Return how often that judge, and any other one, is out of line in the table of people; the share of his judgments
    for the first system; and its win share (ties as half) without and with him."""
    seen, others, his, without, whole = 0, 0, [], [], []
    for _ in range(tasks):
        sample = judgments(population, size, chance)
        out = [row.person for row in sides(sample)[1] if row.is_flagged]
        seen, others = seen + ("judge 0" in out), others + len(set(out) - {"judge 0"})
        first_judge = [judgment for judgment in sample if judgment.person == "judge 0"]
        his.append(sum(judgment.answer == SYSTEMS[0] for judgment in first_judge) / len(first_judge))
        rest = [judgment for judgment in sample if judgment.person != "judge 0"]
        for values, some in ((without, rest), (whole, sample)):
            values.append(compare_pairs(some)[0].win.value)
    means = (f"{np.mean(shares):.2%}" for shares in (his, without, whole))
    return [share(seen, tasks), share(others, 2 * tasks), *means]


def ordered(field: Field, size: int, tasks: int, chance) -> list[str]:
    """Return how often the intervals of differences of strength cover the truth, and the share of tasks without any,
    for ties left out and for ties as half a win for both."""
    cells = []
    for ties in (False, True):
        truth = field.truth(ties=ties)
        held, count, none = 0, 0, 0
        for number in range(tasks):
            differences = order(compared_judgments(field, size, chance), ties=ties, seed=str(number)).differences
            intervals = {pair: interval for pair, interval in differences.items() if interval.low is not None}
            none += not intervals
            count += len(intervals)
            held += sum(interval.low <= truth[a] - truth[b] <= interval.high for (a, b), interval in intervals.items())
        cells += [share(held, count), share(none, tasks)]
    return cells
