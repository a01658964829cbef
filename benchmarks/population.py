"""The three designs on a generated stream with known truth: how often the intervals cover it.

A stream of posts by authors, with times, is generated from real sentences (population_stream.py), imported and
prelabelled. Then, for each seed, uniform, recall-oriented and precision-oriented draws are made with one predictor. The
truth replaces readers, and each draw's figures for the detectors and their majority are compared with its frame. Recall
is also compared with the whole stream, which a recall-oriented draw should represent. There is one process per core,
all on the same stream.

With a stream of 400,000 posts, a recall- or precision-oriented draw of 200 is under a tenth of its frame for the dozen
commonest languages. The uniform draw is a fortieth of the stream, and has 30 posts of about as many languages.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.place import Place, new_place
from benchmarks.population_report import cells_of, check, report
from benchmarks.population_stream import (
    LEAST_POSTS,
    PERIODS,
    Fit,
    StreamPost,
    fit,
    make_stream,
    read_history,
    texts_and_shares,
    write_jsonl,
)
from benchmarks.population_texts import MADE_KINDS
from benchmarks.tables import show
from corpora.core.languages import UND

NAME = "population"
LICENCE = "CC-BY-4.0"
# Seeds from which on the coverage is checked.
SEEDS = 200


def add_options(parser) -> None:
    parser.add_argument(
        "--population-posts", type=int, default=400_000, help="posts in the stream (default %(default)s)"
    )
    parser.add_argument("--population-seeds", type=int, default=SEEDS, help="draws per design (default %(default)s)")
    parser.add_argument("--population-predictor", default="fasttext", help="whose labels the draws go by")
    parser.add_argument(
        "--population-habit",
        type=float,
        default=0.5,
        help="how alike in length an author's texts are, as a correlation (default %(default)s)",
    )
    parser.add_argument(
        "--population-sizes",
        type=int,
        nargs=3,
        default=(10_000, 200, 200),
        metavar=("UNIFORM", "RECALL", "PRECISION"),
        help="posts of a draw; the last two for each language (default 10,000, 200, 200)",
    )
    parser.add_argument("--population-detail", action="store_true", help="show all languages of each design")


def run(folder: Path, options) -> None:
    users = read_history(folder)
    fitted = fit(users)
    pools, shares, covered = texts_and_shares(folder)
    stream = make_stream(
        pools,
        shares,
        fitted.model,
        posts=options.population_posts,
        habit=options.population_habit,
        seed=options.seed,
    )
    print_stream(stream, covered, fitted, users, options.population_habit)
    with new_place(sqlite=True) as place:
        set_up(place, stream)
        truths, counted = draw_and_count(place, options)
    cells = list(cells_of(truths, counted))
    uniform, recall, precision = options.population_sizes
    print(
        f"{len(counted)} seeds, by {options.population_predictor}: {uniform:,} posts drawn uniformly, {recall:,} for "
        f"recall and {precision:,} for precision a language, or the whole frame; {len(cells):,} cells.\n"
    )
    report(truths, cells, options.population_predictor, options.population_detail)
    print("\n".join(f"{step}: {seconds:,.0f} s" for step, seconds in place.took.items()) + "\n")
    if len(counted) >= SEEDS:
        check(cells)


def set_up(place: Place, stream: Sequence[StreamPost]) -> None:
    write_jsonl(stream, place.folder / "posts.jsonl")
    (place.folder / "truth.json").write_text(json.dumps({post.id: post.label for post in stream}))
    place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
    place.manage("django", "migrate", "--verbosity=0")
    with place.timed("import_corpus"):
        place.manage("import_corpus", NAME, place.folder / "posts.jsonl", "--licence", LICENCE)
    with place.timed("prelabel"):
        place.manage("prelabel", NAME)


def draw_and_count(place: Place, options) -> tuple[dict, list[list]]:
    """Return the truth about the stream, and the counts of each seed's draws."""
    seeds = [f"{options.seed}-{number}" for number in range(options.population_seeds)]
    workers = max(1, min(os.cpu_count() or 1, len(seeds)))
    sizes = map(str, options.population_sizes)
    fixed = [place.folder / "truth.json", options.population_predictor, *sizes]

    def work(batch: list[str]) -> list:
        output = place.run("-m", "benchmarks.population_work", *fixed, *batch)
        return [json.loads(line) for line in output.splitlines()]

    with place.timed("draws and counts"), ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(work, [seeds[number::workers] for number in range(workers)]))
    return parts[0][0], [counts for _, *by_seed in parts for counts in by_seed]


def print_stream(
    stream: Sequence[StreamPost], covered: float, fitted: Fit, users: list[list[str]], habit: float
) -> None:
    kinds = Counter(post.kind for post in stream)
    undefined = {kind: kinds.pop(kind, 0) for kind in (*MADE_KINDS, "mixed")}
    authors: dict[str, list[str]] = {}
    for post in stream:
        authors.setdefault(post.author, []).append(UND if post.kind in undefined else post.kind)
    periods = ", ".join(f"{part:.0%} from {start:%-d %B} to {end:%-d %B}" for start, end, part in PERIODS)
    print(
        f"{len(stream):,} posts of {len({post.text for post in stream}):,} distinct texts by {len(authors):,} authors, "
        f"in {len(kinds)} languages, {sum(undefined.values()):,} made undefined posts\n"
        f"({', '.join(f'{count:,} {kind}' for kind, count in undefined.items())}).\n"
        f"{covered:.2%} of the uniform sample of 2014 is in languages that there are texts in, or undefined. "
        f"{sum(post.label == UND for post in stream):,} posts are `und`,\n"
        f"with those in languages off the list. Written: {periods};\n"
        f"an author's texts are alike in length by {habit}.\n"
        f"Authors are fitted to {fitted.users} users with {fitted.posts:,} posts:\n"
        f"{', '.join(f'{name} {_rounded(value)}' for name, value in asdict(fitted.model).items())}.\n"
    )
    show(
        "Authors: the users that they are fitted to, and as made",
        ["", "users", "made"],
        [
            [title, figure(users), figure(list(authors.values()))]
            for title, figure in (
                *((f"posts, {at:.0%} quantile", _quantile(at)) for at in (0.25, 0.5, 0.75, 0.9, 0.99)),
                ("undefined posts (%)", _undefined),
                ("in one language only (%)", lambda of: _dominant(of, 1.0)),
                ("main language 90% or more (%)", lambda of: _dominant(of, 0.9)),
                ("main language 70% or more (%)", lambda of: _dominant(of, 0.7)),
            )
        ],
    )
    show("Languages", ["", "posts"], kinds.most_common(20))


def _rounded(value: float | tuple[float, float]) -> str:
    return f"{value:.3g}" if isinstance(value, float) else f"({', '.join(f'{part:.3g}' for part in value)})"


def _quantile(at: float) -> Callable[[list[list[str]]], float]:
    return lambda authors: float(np.quantile([len(labels) for labels in authors if len(labels) >= LEAST_POSTS], at))


def _plain(labels: Iterable[str]) -> Counter[str]:
    return Counter(label for label in labels if label != UND and "/" not in label and "+" not in label)


def _undefined(authors: list[list[str]]) -> float:
    return 100 - 100 * sum(_plain(labels).total() for labels in authors) / sum(map(len, authors))


def _dominant(authors: list[list[str]], least: float) -> float:
    counts = [count for labels in authors if (count := _plain(labels))]
    return 100 * _mean(max(count.values()) >= least * count.total() for count in counts)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
