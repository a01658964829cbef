"""Simulated tasks of two systems: whether the intervals hold the truth, and what becomes of who takes the left. And of
three and five: whether the intervals of differences of strength hold the truth.

In every task a message has its own shares of people who prefer the one system, the other, or neither, drawn for it.
No data are needed; the core that tasks use makes the figures.
"""

from pathlib import Path

import numpy as np

from annotate.core.measures.paired_comparisons import TIE, compared, order, sides
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
# Systems that are liked alike, and such that are not, with one of three judges who always takes what stands first.
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
    """How often the interval of each share holds the truth; and how often the sign test finds a difference at 5%."""
    held, found_apart = dict.fromkeys(population.truth(), 0), 0
    for _ in range(tasks):
        [found] = compared(judgments(population, size, chance))
        found_apart += found.p < 0.05
        for answer, true in population.truth().items():
            held[answer] += found.shares[answer].low <= true <= found.shares[answer].high
    return [*(share(held[answer], tasks) for answer in (*SYSTEMS, TIE)), share(found_apart, tasks)]


def left(population: Population, size: int, tasks: int, chance) -> list[str]:
    """How often he is out of line in the table of people, and anybody else; the share of his judgments for the first
    system; and its win share, ties as half, without and with him."""
    seen, others, his, without, whole = 0, 0, [], [], []
    for _ in range(tasks):
        said = judgments(population, size, chance)
        out = [each.person for each in sides(said)[1] if each.is_out_of_line]
        seen, others = seen + ("judge 0" in out), others + len(set(out) - {"judge 0"})
        own = [each for each in said if each.person == "judge 0"]
        his.append(sum(each.answer == SYSTEMS[0] for each in own) / len(own))
        for values, some in ((without, [each for each in said if each.person != "judge 0"]), (whole, said)):
            values.append(compared(some)[0].win.value)
    return [share(seen, tasks), share(others, 2 * tasks), *(f"{np.mean(each):.2%}" for each in (his, without, whole))]


def ordered(field: Field, size: int, tasks: int, chance) -> list[str]:
    """How often the intervals of differences of strength hold the truth, and in how many tasks none are given, with
    ties left out and as half a win for both."""
    told = []
    for ties in (False, True):
        truth = field.truth(ties=ties)
        held, given, none = 0, 0, 0
        for number in range(tasks):
            found = order(compared_judgments(field, size, chance), ties=ties, seed=str(number)).differences
            known = {pair: each for pair, each in found.items() if each.low is not None}
            none += not known
            given += len(known)
            held += sum(each.low <= truth[a] - truth[b] <= each.high for (a, b), each in known.items())
        told += [share(held, given), share(none, tasks)]
    return told
