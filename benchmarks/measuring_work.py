"""Draws from one population. Prints a line of JSON for each estimate.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections.abc import Iterator
from zlib import crc32

import django
import numpy as np

django.setup()

from annotate.core.estimation.label_errors import (  # noqa: E402
    additional_units,
    error,
    false_among,
    overall_error,
    slips_of,
)
from annotate.core.estimation.proportions import ENOUGH, LEAST_EFFECTIVE, Estimate  # noqa: E402
from annotate.evaluation import metrics  # noqa: E402
from annotate.evaluation.metrics import Measured  # noqa: E402
from annotate.evaluation.uniform import Cell, Uniform  # noqa: E402
from benchmarks.made_posts import AUDIT_SHARE, LEAST_AUDITS, Population, World, draw, populate  # noqa: E402
from benchmarks.measuring import FRAMES, WORLDS, Frames, Row  # noqa: E402


def measure(world: World, draws: int, seed: int) -> Iterator[Row]:
    chance = np.random.default_rng(seed)
    population = populate(world, chance)
    named = {"voted": population.first, "other": population.second}
    true = {name: truths(population, predicted) for name, predicted in named.items()}
    is_agreed = population.agreed >= 0
    wrong = is_agreed & (population.agreed != population.truth)
    for _ in range(draws):
        both, audits, seconds = draw(population, world, chance)
        for name, uniform in zip(named, (both, of_second(both)), strict=True):
            for (figure, label), measured in estimates(uniform).items():
                if measured.estimate.value is not None and measured.posts >= (world.counted if label else 1):
                    yield _row(f"{figure}, {name}", measured.estimate, true[name][figure, label])
        slips = slips_of(*seconds) if world.adjudicators else None
        overall = overall_error(audits.values(), slips)
        if overall.value is not None:
            yield _row("error of agreement", overall, wrong.sum() / is_agreed.sum())
        for label, audit in audits.items():
            if audit.resolved >= world.counted // 2:
                agreed = population.agreed == label
                yield _row("the same, by label", error(audit, slips), wrong[agreed].mean())


def together(of: Frames, draws: int, seed: int) -> Iterator[Row]:
    """Measure a language X, whose authors are in reach or not. Detectors agree on most posts, and are never wrong."""
    chance = np.random.default_rng(seed)
    true = of.part * of.inside + (1 - of.part) * of.outside
    for _ in range(draws):
        in_x, agreed = chance.random(10_000) < of.common, chance.random(10_000) < 0.85
        reached = chance.random(10_000) < of.part
        right = chance.random(10_000) < np.where(reached, of.inside, of.outside)
        sizes = {label: int((agreed & (in_x == is_x)).sum()) for label, is_x in (("x", True), ("y", False))}
        audits = additional_units({label: (size, 0) for label, size in sizes.items()}, AUDIT_SHARE, LEAST_AUDITS)
        shares = {label: audits[label] / max(size, 1) for label, size in sizes.items()}
        audited = chance.random(10_000) < np.where(in_x, shares["x"], shares["y"])
        cells = {}
        for number in range(10_000):
            truth = "x" if in_x[number] else "y"
            stratum, predicted = truth if agreed[number] else "", "x" if in_x[number] and right[number] else "y"
            is_read = bool(audited[number]) or not stratum
            cells[str(number)] = Cell(stratum, stratum, is_read, truth if is_read else stratum, predicted)
        reach = {str(number) for number in np.flatnonzero(reached)}
        recalled = chance.random(1_000) < of.inside * (1 - of.yes)
        sets = {"x": {f"set {number}": "x" if is_found else "y" for number, is_found in enumerate(recalled)}}
        # Posts in other languages, enough for this share of false Yes. One in twenty units is a decoy.
        others = round(1_000 * of.yes * (1 - of.false_yes) / of.false_yes)
        decoys = round((1_000 + others) / 20)
        false = false_among(decoys, int(chance.binomial(decoys, of.false_yes)), 1_000, others)
        measured = metrics.recall("x", Uniform(cells), sets, {"x": reach}, false)
        if measured.estimate.value is not None:
            yield _row("recall of both sets", measured.estimate, true)
        yield _row("recall within reach", metrics.recall_on_recall_set(sets["x"], "x", false).estimate, of.inside)


def _row(figure: str, estimate: Estimate, true: float) -> Row:
    assert estimate.value is not None
    covers = bool(estimate.low - 1e-9 <= true <= estimate.high + 1e-9)
    has_interval = estimate.count >= LEAST_EFFECTIVE * ENOUGH
    return Row(figure, has_interval, covers, estimate.high - estimate.low, estimate.value - float(true))


def of_second(both: Uniform) -> Uniform:
    return both.map_cells(lambda key, cell: cell._replace(predicted=cell.other, other=""))


def estimates(uniform: Uniform) -> dict[tuple[str, str], Measured]:
    uniform = uniform.map_cells(lambda key, cell: cell._replace(other=""))
    by_figure = {("accuracy", ""): metrics.accuracy(uniform, with_und=True)}
    for label in _tried({cell.truth for cell in uniform.cells if cell.annotated}, uniform):
        by_figure["recall", label] = metrics.recall(label, uniform, {})
    for label in _tried({cell.predicted for cell in uniform.cells if cell.annotated}, uniform):
        by_figure["precision", label] = metrics.precision(label, uniform, {}, with_und=True)
    return by_figure


def _tried(labels: set[str], uniform: Uniform) -> list[str]:
    """Return every third label, including the rarest, because all would take long."""
    rarest = max(int(stratum) for stratum in uniform.drawn if stratum)
    return [label for label in sorted(labels, key=int) if (rarest - int(label)) % 3 == 0]


def truths(population: Population, predicted: np.ndarray) -> dict[tuple[str, str], float]:
    right = predicted == population.truth
    by_figure = {("accuracy", ""): float(right.mean())}
    for label in np.unique(population.truth):
        by_figure["recall", str(label)] = float(right[population.truth == label].mean())
        by_figure["precision", str(label)] = float(right[predicted == label].mean())
    return by_figure


def main(name: str, draws: str, seed: str) -> None:
    number = crc32(f"{seed} {name}".encode())
    rows = measure(WORLDS[name], int(draws), number) if name in WORLDS else together(FRAMES[name], int(draws), number)
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
