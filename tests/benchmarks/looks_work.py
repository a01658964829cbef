"""The rounds of tasks in one population; prints JSON, a line for each figure.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections.abc import Iterator

import django
import numpy as np

django.setup()

from annotate.core.confidence_sequence import at_every_look  # noqa: E402
from annotate.core.figure_rows import Row, row  # noqa: E402
from annotate.evaluation import metrics  # noqa: E402
from annotate.evaluation.cells import Cell  # noqa: E402
from annotate.evaluation.uniform import Uniform  # noqa: E402
from tests.benchmarks.looks import WORLDS  # noqa: E402

LABELS = 12
SHARES = np.array([1 / place for place in range(1, LABELS + 1)]) / sum(1 / place for place in range(1, LABELS + 1))
ROUNDS = range(500, 4_001, 500)
AUDITED, LEAST = 0.15, 5
RECALLS = ("0", "3", "8")


def posts(wrong: float, right: float, number: int, chance: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Of each post the truth, whether it is disputed, the detectors' label, the predictor's, and its lot."""
    truth, other, guess = (chance.choice(LABELS, number, p=SHARES) for _ in range(3))
    agreed = np.where(chance.random(number) < wrong, other, truth)
    astray = np.where(chance.random(number) < 0.5, agreed, guess)
    said = np.where(chance.random(number) < right, truth, astray)
    return truth, chance.random(number) < 0.25, agreed, said, chance.random(number)


def task(truth, disputed, agreed, said, lots) -> Uniform:
    """All disputed posts and a part of the others, by lot, have been read."""
    read = disputed.copy()
    for label in range(LABELS):
        alike = np.flatnonzero(~disputed & (agreed == label))
        read[alike[np.argsort(lots[alike])[: max(LEAST, round(AUDITED * len(alike)))]]] = True
    cells = zip(truth.tolist(), disputed.tolist(), agreed.tolist(), said.tolist(), read.tolist(), strict=True)
    return Uniform(
        {
            str(number): Cell("", "", True, str(true), str(label))
            if apart
            else Cell(str(given), str(given), is_read, str(true if is_read else given), str(label))
            for number, (true, apart, given, label, is_read) in enumerate(cells)
        }
    )


def figures(uniform: Uniform) -> Iterator[tuple[str, Row]]:
    found = metrics.accuracy(uniform, with_und=True)
    yield "accuracy", row("accuracy", {}, found.estimate, found.posts)
    for label in RECALLS:
        found = metrics.recall_on(uniform, label)
        yield f"recall of label {label}", row("recall", {}, found.estimate, found.posts)


def main(name: str, draws: int, seed: str) -> None:
    wrong, right = WORLDS[name]
    truth, _, _, said, _ = posts(wrong, right, 2_000_000, np.random.default_rng([int(seed), 0]))
    truths = {"accuracy": (truth == said).mean()}
    truths |= {f"recall of label {label}": (said == truth)[truth == int(label)].mean() for label in RECALLS}
    single: dict[str, list[bool]] = {figure: [] for figure in truths}
    wide: dict[str, list[float]] = {figure: [] for figure in truths}
    held = {figure: np.ones((draws, 2), dtype=bool) for figure in truths}
    for number in range(draws):
        columns = posts(wrong, right, ROUNDS[-1], np.random.default_rng([int(seed), 1 + number]))
        for size in ROUNDS:
            for figure, at_one in figures(task(*(column[:size] for column in columns))):
                if at_one["low"] is None:
                    continue
                at_all = at_every_look(at_one)
                inside = [each["low"] <= truths[figure] <= each["high"] for each in (at_one, at_all)]
                held[figure][number] &= inside
                single[figure].append(inside[0])
                wide[figure].append((at_all["high"] - at_all["low"]) / (at_one["high"] - at_one["low"]))
    for figure in truths:
        print(json.dumps([figure, np.mean(single[figure]), *held[figure].mean(axis=0), np.mean(wide[figure])]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
