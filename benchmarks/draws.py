"""Recall-oriented draws from 2 and 20 million posts: time and memory, and the same posts by DuckDB and by Spark.

The posts are made by repetition, 40 by each author, with votes that nobody cast, and written straight into parts. Each
draw is a process of its own. Its processor time and peak memory are told of DuckDB; Spark's are those of its JVM.
"""

import json
from pathlib import Path
from time import monotonic

from benchmarks.place import BenchmarkFailed, Place, new_place
from benchmarks.tables import show

POSTS_BY_AUTHOR = 40
SIZE = 2_000
MOST_TIMES, MOST_MEGABYTES = 12, 1_000


def add_options(parser) -> None:
    parser.add_argument("--draw-posts", type=int, default=20_000_000, help="posts of the corpus (default %(default)s)")
    parser.add_argument("--draw-fewer", type=int, default=2_000_000, help="of the smaller one (default %(default)s)")
    parser.add_argument(
        "--draw-on-spark", type=int, default=2_000_000, help="as many posts at most by Spark too (default %(default)s)"
    )


def run(folder: Path, options) -> None:
    """The folder is not read."""
    sizes = sorted({options.draw_fewer, options.draw_posts})
    rows, by_duckdb = [], {}
    with new_place(sqlite=True) as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        for posts in sizes:
            began = monotonic()
            made = json.loads(_work(place, "make", f"c{posts}", posts, max(1, posts // POSTS_BY_AUTHOR)))
            print(f"{posts:,} posts, {made['bytes'] / 1e9:.2f} GB, made in {monotonic() - began:,.0f} s.", flush=True)
            drawn = by_duckdb[posts] = _draw(place, posts, "duckdb", options.seed)
            rows.append(_row(posts, "DuckDB", drawn))
            if posts <= options.draw_on_spark:
                rows.append(_row(posts, "Spark", _draw(place, posts, "spark", options.seed)))
                if len({path.read_bytes() for path in place.folder.glob(f"{posts}-*.ids")}) > 1:
                    raise BenchmarkFailed(f"DuckDB and Spark draw other posts of {posts:,}.")
    show(
        f"{SIZE:,} posts for each of {drawn['languages']} languages",
        ["posts", "engine", "s", "CPU s", "peak MB", "authors", "frame", "drawn"],
        rows,
    )
    few, many = (by_duckdb[posts] for posts in (sizes[0], sizes[-1]))
    # Other work on the machine disturbs the processors' time less than the clock's.
    times, most = many["cpu"] / few["cpu"], max(each["megabytes"] for each in by_duckdb.values())
    print(
        f"With {sizes[-1] / sizes[0]:.0f} times as many posts DuckDB takes {times:.1f} times the processors' time "
        f"(asked: at most {MOST_TIMES}),\n{many['seconds'] / few['seconds']:.1f} times that of the clock, and at most "
        f"{most:,.0f} MB (asked: {MOST_MEGABYTES:,}). Spark drew the same posts, where it was asked.\n"
    )
    if times > MOST_TIMES / 10 * sizes[-1] / sizes[0] or most > MOST_MEGABYTES:
        raise BenchmarkFailed("That is more than was asked.")


def _work(place: Place, *words: object) -> str:
    return place.run("-m", "benchmarks.draws_work", *map(str, words))


def _draw(place: Place, posts: int, engine: str, seed: str) -> dict[str, float]:
    place.env["ASSAY_ENGINE"] = engine
    return json.loads(_work(place, "draw", f"c{posts}", SIZE, seed, place.folder / f"{posts}-{engine}.ids"))


def _row(posts: int, engine: str, drawn: dict[str, float]) -> list[object]:
    own = [drawn["cpu"], drawn["megabytes"]] if engine == "DuckDB" else ["", ""]
    return [f"{posts:,}", engine, drawn["seconds"], *own, drawn["authors"], drawn["frame"], drawn["drawn"]]
