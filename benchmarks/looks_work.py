"""The rounds of tasks in one population. Prints a line of JSON for each figure.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator

import django
import numpy as np

django.setup()

from annotate.core.estimation.proportions import LEAST_COUNT  # noqa: E402
from annotate.core.measures import classification  # noqa: E402
from annotate.core.measures.figure_rows import (  # noqa: E402
    Row,
    at_every_look,
    difference_row,
    row,
)
from annotate.evaluation import metrics  # noqa: E402
from annotate.evaluation.uniform import Cell, Uniform  # noqa: E402
from benchmarks.looks import RECORDS, WORLDS  # noqa: E402

LABELS = 12
SHARES = np.array([1 / place for place in range(1, LABELS + 1)]) / sum(1 / place for place in range(1, LABELS + 1))
ROUNDS = range(500, 4_001, 500)
AUDITED, LEAST = 0.15, 5
RECALLS = ("0", "3", "8")
# By language: the records drawn, the power of time with which their reading progresses, and the accuracy of two
# systems.
DRAWN = np.array([600, 300, 100])
SPEED = np.array([0.5, 1.0, 2.0])
RIGHT = np.array([[0.95, 0.85, 0.60], [0.92, 0.86, 0.70]])


# Number of a draw -> the figures of its task at each look.
Looks = Callable[[int], Iterable[tuple[str, Row]]]


def posts(wrong: float, right: float, number: int, chance: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return for each post the truth, whether it is disputed, the detectors' and the predictor's label, and a lot."""
    truth, other, guess = (chance.choice(LABELS, number, p=SHARES) for _ in range(3))
    agreed = np.where(chance.random(number) < wrong, other, truth)
    astray = np.where(chance.random(number) < 0.5, agreed, guess)
    predicted = np.where(chance.random(number) < right, truth, astray)
    return truth, chance.random(number) < 0.25, agreed, predicted, chance.random(number)


def task(truth, disputed, agreed, predicted, lots) -> Uniform:
    """Read all disputed posts, and some of the others by lot."""
    read = disputed.copy()
    for label in range(LABELS):
        alike = np.flatnonzero(~disputed & (agreed == label))
        read[alike[np.argsort(lots[alike])[: max(LEAST, round(AUDITED * len(alike)))]]] = True
    cells = zip(truth.tolist(), disputed.tolist(), agreed.tolist(), predicted.tolist(), read.tolist(), strict=True)
    return Uniform(
        {
            str(number): Cell("", "", True, str(true), str(label))
            if apart
            else Cell(str(consensus), str(consensus), is_read, str(true if is_read else consensus), str(label))
            for number, (true, apart, consensus, label, is_read) in enumerate(cells)
        }
    )


def figures(uniform: Uniform) -> Iterator[tuple[str, Row]]:
    figure = metrics.accuracy(uniform, with_und=True)
    yield "accuracy", row("accuracy", {}, figure.estimate, figure.posts)
    for label in RECALLS:
        figure = metrics.recall(label, uniform, {})
        yield f"recall of label {label}", row("recall", {}, figure.estimate, figure.posts)


def of_posts(name: str, seed: int) -> tuple[dict[str, float], Looks]:
    """Return the true figures, and a function from the number of a draw to its task's rows at each look."""
    wrong, right = WORLDS[name]
    truth, _, _, predicted, _ = posts(wrong, right, 2_000_000, np.random.default_rng([seed, 0]))
    truths = {"accuracy": (truth == predicted).mean()}
    truths |= {f"recall of label {label}": (predicted == truth)[truth == int(label)].mean() for label in RECALLS}

    def looks(number: int) -> Iterator[tuple[str, Row]]:
        columns = posts(wrong, right, ROUNDS[-1], np.random.default_rng([seed, 1 + number]))
        for size in ROUNDS:
            yield from figures(task(*(column[:size] for column in columns)))

    return truths, looks


def of_records(_: str, seed: int) -> tuple[dict[str, float], Looks]:
    """Return the same for records, which people read at different speeds in each language. Weights are those of
    evaluation/record_sets.py."""
    shares = (RIGHT * DRAWN).sum(axis=1) / DRAWN.sum()

    def looks(number: int) -> Iterator[tuple[str, Row]]:
        chance = np.random.default_rng([seed, 1 + number])
        language = np.repeat(np.arange(len(DRAWN)), DRAWN)
        predictions = np.where(chance.random((2, len(language))) < RIGHT[:, language], 0, 1)
        place = np.concatenate([np.arange(drawn) for drawn in DRAWN])
        for time in np.arange(1, 9) / 8:
            if min(DRAWN * time**SPEED) <= LEAST_COUNT - 1:  # refused
                continue
            read = place < np.ceil(DRAWN * time**SPEED)[language]
            weights = (DRAWN / np.bincount(language[read]))[language[read]]
            gold = np.zeros(read.sum(), dtype=np.int64)
            pairs = [classification.Paired(gold, predicted[read], 2, weights) for predicted in predictions]
            yield "accuracy", row("accuracy", {}, pairs[0].share(pairs[0].right, gold == 0), len(gold))
            [(difference, p)] = classification.compare(*pairs, classification.accuracy)
            yield "difference", difference_row("accuracy", {}, difference, len(gold), "", p)

    return {"accuracy": shares[0], "difference": shares[0] - shares[1]}, looks


def main(name: str, draws: int, seed: str) -> None:
    truths, looks = (of_records if name == RECORDS else of_posts)(name, int(seed))
    single: dict[str, list[bool]] = {figure: [] for figure in truths}
    wide: dict[str, list[float]] = {figure: [] for figure in truths}
    held = {figure: np.ones((draws, 2), dtype=bool) for figure in truths}
    for number in range(draws):
        for figure, at_one in looks(number):
            if at_one["low"] is None:
                continue
            at_all = at_every_look(at_one)
            inside = [interval["low"] <= truths[figure] <= interval["high"] for interval in (at_one, at_all)]
            held[figure][number] &= inside
            single[figure].append(inside[0])
            wide[figure].append((at_all["high"] - at_all["low"]) / (at_one["high"] - at_one["low"]))
    for figure in truths:
        print(json.dumps([figure, np.mean(single[figure]), *held[figure].mean(axis=0), np.mean(wide[figure])]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
