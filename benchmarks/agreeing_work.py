"""The populations of agreeing.py, draws from one of them, and the coefficients of all its units."""

from functools import cache
from itertools import combinations_with_replacement, product
from math import factorial, prod
from typing import NamedTuple
from zlib import crc32

import numpy as np

from annotate.core.aggregation.answer_table import Answers
from annotate.core.agreement import coefficients
from annotate.core.agreement.coefficients import Measure
from annotate.core.estimation.resampling import LEAST_UNITS, percentiles


class World(NamedTuple):
    """labels: their number. The first is frequent, and the others share the fraction `rare` of units; answers, errors:
    keys of ANSWERS and ERRORS."""

    labels: int
    rare: float
    answers: str
    errors: str


# Answers of a unit -> share of units with this number.
ANSWERS = {"2": {2: 1.0}, "3": {3: 1.0}, "uneven": {2: 0.6, 3: 0.3, 5: 0.1}}
# The error rates where the frequent label is true, and where a rare one is. None: random answers.
ERRORS = {
    "miss 20%, by mistake 0.2%": (0.002, 0.2),
    "miss 20%, by mistake 1%": (0.01, 0.2),
    "5% either way": (0.05, 0.05),
    "20% either way": (0.2, 0.2),
    "by chance": None,
}
RARE = (0.005, 0.01, 0.05, 0.1, 0.3, 0.5)
WORLDS = [World(*values) for values in product((2, 3, 5), RARE, ANSWERS, ERRORS)]


class Row(NamedTuple):
    """Draws of `units` units from one world: how many have intervals, how many of these cover, their total width."""

    measure: str
    world: World
    units: int
    intervals: int
    covers: int
    widths: float


REPLICATES = 500
ALPHA = ("alpha", "alpha, percentile bootstrap")
# The worlds in which all the other coefficients are measured too, which takes longer.
OTHERS = [
    world
    for world in WORLDS
    if (world.labels, world.answers) == (3, "uneven") and world.errors in ("miss 20%, by mistake 1%", "20% either way")
]
Ends = tuple[float, float] | None  # of an interval


def rows(world: World, sizes: tuple[int, ...], draws: int, seed: str) -> list[Row]:
    kinds, shares = populate(world)
    measured = measures if world in OTHERS else alphas
    true = truths(kinds, shares)
    chance = np.random.default_rng(crc32(f"{seed} {world}".encode()))
    table = []
    for units in sizes:
        drawn = [measured(kinds, number, chance) for number in chance.multinomial(units, shares, size=draws)]
        for measure in drawn[0]:
            value = true[measure]
            ends = np.array([row[measure] for row in drawn if row[measure] is not None]).reshape(-1, 2)
            covers = (ends[:, 0] - 1e-9 <= value) & (value <= ends[:, 1] + 1e-9)
            widths = float((ends[:, 1] - ends[:, 0]).sum())
            table.append(Row(measure, world, units, len(ends), int(covers.sum()), widths))
    return table


# --- answers that are sets of labels


def set_row(people: int, units: int, draws: int, seed: str) -> tuple[int, float]:
    """Return how many intervals of alpha with MASI cover the true value, and their mean width."""
    chance = np.random.default_rng(crc32(f"{seed} {people} {units}".encode()))
    true, held, width = set_truth(), 0, 0.0
    for draw in range(draws):
        answers = chosen(units, people, chance)
        kinds = list(dict.fromkeys(answer for unit in answers for answer in unit))
        place = {answer: number for number, answer in enumerate(kinds)}
        counts = np.array([np.bincount([place[answer] for answer in unit], minlength=len(kinds)) for unit in answers])
        alpha = coefficients.alpha(counts, coefficients.masi(kinds), seed=draw, replicates=REPLICATES)
        held, width = held + (alpha.low <= true <= alpha.high), width + alpha.high - alpha.low
    return held, width / draws


@cache
def set_truth() -> float:
    """Return alpha of 10,000 units in blocks of 1,000. All sets of a block are compared in pairs."""
    same, apart, lots = 0.0, 0.0, np.random.default_rng(1)
    for _ in range(10):
        first, second = zip(*chosen(1_000, 2, lots), strict=True)
        distances = coefficients.masi([*first, *second])[:1_000, 1_000:]
        same += float(distances.trace()) / 1_000
        apart += float(distances.sum() - distances.trace()) / (1_000 * 999)
    return 1 - same / apart


def chosen(units: int, people: int, chance: np.random.Generator) -> list[list[frozenset[str]]]:
    """Return each unit's answers. A unit has one to seven of 400 labels, and common labels more often. Each person
    misses a quarter of them, and adds half a wrong label on average."""
    frequent = 1 / np.arange(1, 401)
    frequent /= frequent.sum()
    answers = []
    for size in chance.integers(1, 8, units):
        true = chance.choice(400, size, replace=False, p=frequent)
        answers.append([])
        for _ in range(people):
            labels = {*true[chance.random(size) > 0.25], *chance.choice(400, chance.poisson(0.5), p=frequent)}
            answers[-1].append(frozenset(map(str, labels or {true[0]})))
    return answers


def populate(world: World) -> tuple[np.ndarray, np.ndarray]:
    """Return all possible answer counts of a unit by label, (kinds, K), and the share of units with each."""
    true = np.full(world.labels, world.rare / (world.labels - 1))
    true[0] = 1 - world.rare
    if (errors := ERRORS[world.errors]) is None:
        confusion = np.tile(true, (world.labels, 1))
    else:
        # A missed rare label becomes the frequent one, or any other one if all are missed equally often.
        by_mistake, missed = errors
        confusion = np.full((world.labels, world.labels), missed / (world.labels - 1))
        if by_mistake < missed:
            confusion[1:] = [missed, *[0.0] * (world.labels - 1)]
        confusion[0] = by_mistake / (world.labels - 1)
        np.fill_diagonal(confusion, [1 - by_mistake, *[1 - missed] * (world.labels - 1)])
    kinds, shares = [], []
    for answers, share in ANSWERS[world.answers].items():
        for labels in combinations_with_replacement(range(world.labels), answers):
            counts = np.bincount(labels, minlength=world.labels)
            orders = factorial(answers) / prod(factorial(number) for number in counts.tolist())
            kinds.append(counts)
            shares.append(share * orders * float(true @ np.prod(confusion**counts, axis=1)))
    return np.array(kinds), np.array(shares) / sum(shares)


def coincidences(kinds: np.ndarray) -> np.ndarray:
    """Return the number of pairs (c, k) of a unit's answers, divided by its answers minus 1: (kinds, K, K)."""
    pairs = np.array([np.outer(row, row) - np.diag(row) for row in kinds])
    return pairs / (kinds.sum(axis=1) - 1)[:, None, None]


def corrected(table: np.ndarray, apart: np.ndarray) -> float:
    """Return 1 - observed disagreement / expected disagreement."""
    margins = table.sum(axis=1) / table.sum()
    return float(1 - (table * apart).sum() / table.sum() / (margins @ apart @ margins))


def ordinal(table: np.ndarray) -> np.ndarray:
    middle = np.cumsum(table.sum(axis=1)) - table.sum(axis=1) / 2
    return (middle[:, None] - middle[None, :]) ** 2


def truths(kinds: np.ndarray, shares: np.ndarray) -> dict[str, float]:
    size = kinds.shape[1]
    nominal = 1 - np.eye(size)
    pairs = coincidences(kinds)
    table = np.tensordot(shares, pairs, 1)
    # All units have the same weight.
    even = np.tensordot(shares / kinds.sum(axis=1), pairs, 1)
    margins = even.sum(axis=1)
    by_chance = (margins * (1 - margins)).sum() / (size - 1)
    last = np.eye(2)[[*[0] * (size - 1), 1]]
    return {
        "alpha": corrected(table, nominal),
        "alpha, percentile bootstrap": corrected(table, nominal),
        "ordinal alpha": corrected(table, ordinal(table)),
        "alpha of one rare label": corrected(last.T @ table @ last, 1 - np.eye(2)),
        "observed agreement": float(np.trace(table) / table.sum()),
        "AC1": float((np.trace(even) - by_chance) / (1 - by_chance)),
        "agreement with the rest": float(np.trace(even)),
        "kappa with the rest": corrected(even, nominal),
    }


def alphas(kinds: np.ndarray, number: np.ndarray, chance: np.random.Generator) -> dict[str, Ends]:
    made = coefficients.alpha(np.repeat(kinds, number, axis=0), seed=int(chance.integers(2**32)), replicates=REPLICATES)
    return dict(zip(ALPHA, (ends(made), bootstrap(kinds[number > 0], number[number > 0], chance)), strict=True))


def measures(kinds: np.ndarray, number: np.ndarray, chance: np.random.Generator) -> dict[str, Ends]:
    counts = np.repeat(kinds, number, axis=0)
    drawn = {"seed": int(chance.integers(2**32)), "replicates": REPLICATES}
    of_labels = {one.label: one.alpha for one in coefficients.by_label(counts, **drawn)}
    first, _ = coefficients.against_rest(table_of(counts, chance), **drawn)
    return alphas(kinds, number, chance) | {
        "ordinal alpha": ends(coefficients.alpha(counts, coefficients.ordinal, **drawn)),
        "alpha of one rare label": ends(of_labels.get(kinds.shape[1] - 1)),
        "observed agreement": ends(coefficients.observed_agreement(counts, **drawn)),
        "AC1": ends(coefficients.ac1(counts, **drawn)),
        "agreement with the rest": ends(first.agreement),
        "kappa with the rest": ends(first.kappa),
    }


def ends(made: Measure | None) -> Ends:
    return None if made is None or made.low is None else (made.low, made.high)


def table_of(counts: np.ndarray, chance: np.random.Generator) -> Answers:
    """Return each unit's answers in random order: one by the first annotator, and all others by a second."""
    units, labels = counts.shape
    unit = np.repeat(np.arange(units), counts.sum(axis=1))
    label = np.repeat(np.tile(np.arange(labels), units), counts.ravel())
    label = label[np.lexsort([chance.random(len(unit)), unit])]
    who = np.minimum(np.arange(len(unit)) - np.searchsorted(unit, unit), 1)
    return Answers(tuple(range(units)), (0, 1), tuple(map(str, range(labels))), unit, who, label)


def bootstrap(kinds: np.ndarray, number: np.ndarray, chance: np.random.Generator) -> Ends:
    """Return the percentiles of alpha on units that are resampled with replacement."""
    units = number.sum()
    if units < LEAST_UNITS or len(kinds) < 2:
        return None
    size = kinds.shape[1]
    times = chance.multinomial(units, number / units, size=REPLICATES)
    tables = (times @ coincidences(kinds).reshape(len(kinds), -1)).reshape(-1, size, size)
    margins = tables.sum(axis=2)
    answers = margins.sum(axis=1)
    expected = answers**2 - (margins**2).sum(axis=1)
    differ = answers - np.trace(tables, axis1=1, axis2=2)
    defined = expected > 0
    drawn = 1 - differ[defined] * (answers[defined] - 1) / expected[defined]
    return percentiles(drawn) if len(drawn) and drawn.min() < drawn.max() else None
