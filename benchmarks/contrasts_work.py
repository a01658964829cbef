"""Draws from one corpus. Prints a line of JSON for each figure: its coverage, its mean width, and the number of answers
with which uniform draws have the same width.

Arguments: NAME DRAWS SEED
"""

import json
import sys
from collections.abc import Iterator
from zlib import crc32

import django
import numpy as np

django.setup()

from annotate.core.measures.classification import Paired  # noqa: E402
from annotate.core.measures.figure_rows import compare_accuracy  # noqa: E402
from annotate.evaluation import metrics  # noqa: E402
from annotate.evaluation.comparison import differences  # noqa: E402
from annotate.evaluation.measures import WITH_UND  # noqa: E402
from benchmarks.contrasts import ANSWERS, UNIFORM, WORLDS  # noqa: E402
from benchmarks.made_posts import Population, World, draw, populate  # noqa: E402
from corpora.draws.part_draws import AGREE, DIFFER, part_sizes  # noqa: E402

DIFFERENCE, ACCURACY = "difference of accuracy", "accuracy of the first"
# The ends of a figure's interval, and the number of answers that it took.
Interval = tuple[float, float, float]


def figures(both: list[np.ndarray], weights: np.ndarray, labels: int) -> dict[str, Interval]:
    """both: the truth, and each system's labels."""
    truth, *systems = both
    first, second = (Paired(truth, predicted, labels, weights) for predicted in systems)
    apart, accuracy = compare_accuracy({}, first, second), first.share(first.right, np.ones(len(truth), dtype=bool))
    return {DIFFERENCE: (apart["low"], apart["high"], len(truth)), ACCURACY: (accuracy.low, accuracy.high, len(truth))}


def contrasted(corpus: Population, labels: int, chance: np.random.Generator) -> dict[str, Interval]:
    parts = {
        DIFFER: np.flatnonzero(corpus.first != corpus.second),
        AGREE: np.flatnonzero(corpus.first == corpus.second),
    }
    sizes = part_sizes(ANSWERS, {part: len(posts) for part, posts in parts.items()})
    drawn = [chance.choice(posts, sizes[part], replace=False) for part, posts in parts.items()]
    weights = [len(posts) / sizes[part] for part, posts in parts.items()]
    places = np.concatenate(drawn)
    columns = [column[places] for column in (corpus.truth, corpus.first, corpus.second)]
    return figures(columns, np.repeat(weights, [len(part) for part in drawn]), labels)


def all_read(corpus: Population, labels: int, chance: np.random.Generator) -> dict[str, Interval]:
    places = chance.choice(len(corpus.truth), UNIFORM, replace=False)
    columns = [column[places] for column in (corpus.truth, corpus.first, corpus.second)]
    return figures(columns, np.ones(UNIFORM), labels)


def audited(corpus: Population, world: World, chance: np.random.Generator) -> dict[str, Interval]:
    both = draw(corpus, world, chance).both
    answers = sum(posts for cell, posts in both.cells.items() if cell.annotated)
    apart, accuracy = differences(both)["accuracy", WITH_UND], metrics.accuracy(both, with_und=True).estimate
    return {DIFFERENCE: (apart["low"], apart["high"], answers), ACCURACY: (accuracy.low, accuracy.high, answers)}


def rows(world: World, draws: int, seed: int) -> Iterator[list]:
    chance = np.random.default_rng(seed)
    corpus = populate(world, chance)
    right = [(corpus.truth == labels).mean() for labels in (corpus.first, corpus.second)]
    truths = {DIFFERENCE: right[0] - right[1], ACCURACY: right[0]}
    drawn = [contrasted(corpus, world.labels, chance) for _ in range(draws)]
    # A few draws are enough for the width.
    uniform = [[way(corpus, of, chance) for _ in range(20)] for way, of in ((all_read, world.labels), (audited, world))]
    for figure, true in truths.items():
        ends = np.array([intervals[figure] for intervals in drawn])
        covers, width = ((ends[:, 0] <= true) & (true <= ends[:, 1])).mean(), (ends[:, 1] - ends[:, 0]).mean()
        answers = []
        for others in uniform:
            low, high, read = np.array([intervals[figure] for intervals in others]).mean(axis=0)
            answers.append(read * ((high - low) / width) ** 2)
        yield [figure, covers, width, *answers]


def main(name: str, draws: str, seed: str) -> None:
    for row in rows(WORLDS[name], int(draws), crc32(f"{seed} {name}".encode())):
        print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
