"""Draws with several seeds from one stream with known truth, and their counts. Prints JSON.

The first line is the truth about the stream, and the others are one per seed. The frames are computed here from the
truth and the labels, independently of the queries that draw. Arguments: TRUTH PREDICTOR, sizes of the uniform, recall
and precision draws, SEEDS...
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cache
from pathlib import Path

import django
import numpy as np

django.setup()

from benchmarks.place import BenchmarkFailed  # noqa: E402
from benchmarks.population_stream import HISTORY, WINDOW  # noqa: E402
from corpora.core.languages import LANGUAGES, UND  # noqa: E402
from corpora.core.voters import DEFAULT  # noqa: E402
from corpora.draws.language_draws import sample_precision, sample_recall  # noqa: E402
from corpora.draws.samples import Sample, sample_uniform  # noqa: E402
from corpora.engines import open_store  # noqa: E402
from corpora.models import Corpus  # noqa: E402
from corpora.predictions.predictor_labels import MAJORITY, find_predictor, predicted_labels  # noqa: E402

NAME = "population"
# Least number of posts of a cell.
CELL_POSTS = 30
# Share of an author's history from which on the author writes in a language.
SHARE = Fraction(1, 10)

# Predictor, figure, language (blank for all).
Key = tuple[str, str, str]
# Design and its language.
Draw = tuple[str, str]


@cache
def stands_for(code: str) -> tuple[str, ...]:
    """Return the labels for which a predictor's code is right."""
    return (LANGUAGES[code].labels or (code,)) if code in LANGUAGES else (code,)


@dataclass(frozen=True)
class Population:
    """All posts of a corpus, one element of each array per post. right: predictor -> whether its label is right."""

    corpus: str
    place: dict[str, int]
    author: np.ndarray
    posted_at: np.ndarray
    truth: np.ndarray
    predicted: dict[str, np.ndarray]
    right: dict[str, np.ndarray]

    def within(self, window: tuple[datetime, datetime]) -> np.ndarray:
        start, end = (np.datetime64(moment.replace(tzinfo=None), "us") for moment in window)
        return (self.posted_at >= start) & (self.posted_at < end)


def load(corpus: str, truth: dict[str, str]) -> Population:
    with open_store(corpus) as store:
        posts = store.connection.table("posts").project("id, author, posted_at").to_arrow_table()
    ids = posts["id"].to_pylist()
    labels = [truth[key] for key in ids]
    predicted, right = {}, {}
    for name in (*DEFAULT.voters, MAJORITY):
        codes = predicted_labels(corpus, find_predictor(corpus, name), ids)
        predicted[name] = np.array([codes[key] for key in ids])
        right[name] = np.array([label in stands_for(codes[key]) for key, label in zip(ids, labels, strict=True)])
    return Population(
        corpus=corpus,
        place={key: number for number, key in enumerate(ids)},
        author=np.unique(posts["author"].to_numpy(), return_inverse=True)[1],
        posted_at=posts["posted_at"].to_numpy().astype("datetime64[us]"),
        truth=np.array(labels),
        predicted=predicted,
        right=right,
    )


def chosen_authors(population: Population, predictor: str, language: str) -> np.ndarray:
    """Whether each author has a tenth or more of their history labelled with the language."""
    history = population.within(HISTORY)
    authors = int(population.author.max()) + 1
    wrote = np.bincount(population.author[history], minlength=authors)
    labelled = history & (population.predicted[predictor] == language)
    matches = np.bincount(population.author[labelled], minlength=authors)
    return (wrote > 0) & (matches * SHARE.denominator >= wrote * SHARE.numerator)


def frames(population: Population, predictor: str) -> dict[Draw, np.ndarray]:
    """Return each draw's frame: the posts that it can take. Languages need enough posts, or triggers, for a cell."""
    by_draw: dict[Draw, np.ndarray] = {("uniform", ""): np.arange(len(population.truth))}
    triggers = Counter(population.predicted[predictor].tolist())
    truths = Counter(population.truth.tolist())
    window = population.within(WINDOW)
    for code in sorted(triggers):
        if code == UND:
            continue
        if triggers[code] >= CELL_POSTS:
            by_draw["precision", code] = np.flatnonzero(population.predicted[predictor] == code)
        if sum(truths[label] for label in stands_for(code)) >= CELL_POSTS:
            by_draw["recall", code] = np.flatnonzero(
                window & chosen_authors(population, predictor, code)[population.author]
            )
    return by_draw


def counted(population: Population, draw: Draw, predictor: str, rows: np.ndarray) -> dict[Key, tuple[int, int]]:
    """Return the hits and posts of each figure of a draw, among these posts. predictor: that of the design."""
    design, language = draw
    right = {name: hits[rows] for name, hits in population.right.items()}
    truth = population.truth[rows]
    if design == "precision":
        return {(predictor, "precision", language): (int(right[predictor].sum()), len(rows))}
    if design == "recall":
        domain = np.isin(truth, stands_for(language))
        return {
            (name, "recall", language): (int((hits & domain).sum()), int(domain.sum())) for name, hits in right.items()
        }
    by_figure: dict[Key, tuple[int, int]] = {}
    defined = truth != UND
    for name, hits in right.items():
        by_figure[name, "accuracy", ""] = int(hits.sum()), len(rows)
        by_figure[name, "accuracy without und", ""] = int((hits & defined).sum()), int(defined.sum())
        for figure, labels in (("recall", truth), ("precision", population.predicted[name][rows])):
            codes, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
            of_code = np.bincount(places, weights=hits, minlength=len(codes))
            for code, some, count in zip(codes.tolist(), of_code, counts, strict=True):
                by_figure[name, figure, code] = int(some), int(count)
    return by_figure


def samples(
    corpus: Corpus, drawn: dict[Draw, np.ndarray], predictor: str, sizes: dict[str, int], seed: str
) -> Iterator[Sample]:
    """Yield all draws of a seed."""
    by = find_predictor(corpus.name, predictor)
    yield sample_uniform(corpus, size=sizes["uniform"], seed=seed)
    languages = {design: [code for kind, code in drawn if kind == design] for design in ("recall", "precision")}
    yield from sample_recall(
        corpus,
        languages["recall"],
        size=sizes["recall"],
        seed=seed,
        predictor=by,
        share=SHARE,
        history=HISTORY,
        window=WINDOW,
    )
    yield from sample_precision(corpus, languages["precision"], size=sizes["precision"], seed=seed, predictor=by)


def places_of(population: Population, sample: Sample, frame: np.ndarray) -> np.ndarray:
    """Return the indices of the posts of a draw. Raise BenchmarkFailed if they or their frame are wrong."""
    rows = np.array([population.place[row["id"]] for row in sample.rows], int)
    size = min(sample.asked, len(frame))
    draw = f"The {sample.design} draw {sample.language} of seed {sample.seed}"
    if sample.frame_size != len(frame):
        raise BenchmarkFailed(f"{draw} has a frame of {sample.frame_size:,} posts instead of {len(frame):,}.")
    if len(rows) != size or len(set(rows.tolist())) != size:
        raise BenchmarkFailed(f"{draw} has {len(set(rows.tolist())):,} posts instead of {size:,}.")
    if not np.isin(rows, frame).all():
        raise BenchmarkFailed(f"{draw} has posts that are not in its frame.")
    return rows


def reached(population: Population, predictor: str, language: str, frame: np.ndarray) -> dict:
    """Return how many of a language's posts in the later window the recall design can draw, and why it misses others.

    missed: their authors wrote nothing in the history, nothing in the language, less than a tenth in it, or a tenth or
    more that the predictor labelled otherwise.
    """
    ours = np.isin(population.truth, stands_for(language))
    history = population.within(HISTORY)
    domain = population.within(WINDOW) & ours
    inside = np.zeros(len(ours), bool)
    inside[frame] = True
    authors = int(population.author.max()) + 1
    wrote = np.bincount(population.author[history], minlength=authors)[population.author]
    before = np.bincount(population.author[history & ours], minlength=authors)[population.author]
    missed = domain & ~inside
    why = {
        "silent": missed & (wrote == 0),
        "none": missed & (wrote > 0) & (before == 0),
        "under": missed & (before > 0) & (before * SHARE.denominator < wrote * SHARE.numerator),
        "mislabelled": missed & (wrote > 0) & (before * SHARE.denominator >= wrote * SHARE.numerator),
    }
    parts = {"stream": domain, "inside": domain & inside, "missed": missed}
    return {
        "language": language,
        "frame": len(frame),
        "missed": {reason: int(posts.sum()) for reason, posts in why.items()},
        "recall": {
            name: {part: (int(hits[posts].sum()), int(posts.sum())) for part, posts in parts.items()}
            for name, hits in population.right.items()
        },
    }


def truths(population: Population, drawn: dict[Draw, np.ndarray], predictor: str) -> dict:
    """Return the truth about each frame as counts, and what the recall design reaches."""
    return {
        "frames": [
            [
                *draw,
                len(frame),
                [[*key, *counts] for key, counts in counted(population, draw, predictor, frame).items()],
            ]
            for draw, frame in drawn.items()
        ],
        "reached": [reached(population, predictor, draw[1], drawn[draw]) for draw in drawn if draw[0] == "recall"],
    }


def cells(population: Population, corpus: Corpus, drawn: dict[Draw, np.ndarray], predictor: str, sizes, seed) -> list:
    """Return the counts of a seed's draws: design and language, posts drawn, figure, hits, posts."""
    table = []
    for sample in samples(corpus, drawn, predictor, sizes, seed):
        draw = sample.design, sample.language
        rows = places_of(population, sample, drawn[draw])
        for key, (hits, count) in counted(population, draw, predictor, rows).items():
            if count >= CELL_POSTS:
                table.append([*draw, len(rows), *key, hits, count])
    return table


def main(arguments: list[str]) -> None:
    path, predictor, *numbers = arguments[:5]
    sizes = dict(zip(("uniform", "recall", "precision"), map(int, numbers), strict=True))
    population = load(NAME, json.loads(Path(path).read_text()))
    drawn = frames(population, predictor)
    print(json.dumps(truths(population, drawn, predictor)), flush=True)
    corpus = Corpus(name=NAME)
    for seed in arguments[5:]:
        print(json.dumps(cells(population, corpus, drawn, predictor, sizes, seed)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
