"""The speed of prelabel on all cores compared with one process, and the speed of import_corpus.

The two alternate on the same posts. The commands are run as users run them, so each includes its start, which is also
measured separately in a run without work. The seconds apply to this machine; the ratio is the result. To measure
memory, run it with different numbers of posts.
"""

import os
import resource
import time
from pathlib import Path
from statistics import median

from benchmarks.material import some_posts, write_jsonl
from benchmarks.place import Place, new_place
from benchmarks.tables import show
from benchmarks.whole_run import LICENCE
from tests.running import DATA


def add_options(parser) -> None:
    parser.add_argument("--speed-posts", type=int, default=20_000, help="posts to prelabel (default %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="runs per kind (default %(default)s)")


def run(folder: Path, options) -> None:
    posts = some_posts(folder, options.speed_posts, options.seed)
    cores = os.cpu_count() or 1
    one, many = "prelabel, 1 process", f"prelabel, {cores} processes"
    took: dict[str, list[float]] = {name: [] for name in ("import_corpus", one, many, "start of import", "start")}

    def timed(name: str, *command: str | Path) -> None:
        start = time.monotonic()
        place.manage(*command)
        took[name].append(time.monotonic() - start)

    with new_place() as place:
        path = place.folder / "posts.jsonl"
        write_jsonl(posts, path)
        place.manage("django", "migrate", "--verbosity=0")
        for repetition in range(options.repetitions):
            pair = [(one, 1), (many, cores)]
            # The first one finds the disk's cache cold.
            for name, processes in pair if repetition % 2 == 0 else reversed(pair):
                corpus = f"r{repetition}-{processes}"
                importing = ("import_corpus", corpus, path, "--licence", LICENCE)
                timed("import_corpus", *importing)
                timed("start of import", *importing)
                timed(name, "prelabel", corpus, f"--processes={processes}")
                timed("start", "prelabel", corpus, f"--processes={processes}")
        check_same_votes(place)
    report(took, len(posts), one, many)


def check_same_votes(place: Place) -> None:
    """Check that the votes do not depend on the number of processes."""
    digests = {path.read_bytes() for path in (place.folder / DATA).glob("corpora/*/votes/000001.parquet")}
    assert len(digests) == 1, "the votes depend on the number of processes"


def report(took: dict[str, list[float]], posts: int, one: str, many: str) -> None:
    starts = {one: "start", many: "start", "import_corpus": "start of import"}
    net = {name: median(took[name]) - median(took[start]) for name, start in starts.items()}
    show(
        f"{posts:,} posts, {len(took[one])} runs alternating (seconds with the start; posts a second without it)",
        ["", "runs", "median s", "least", "most", "posts/s"],
        [
            [name, len(s), median(s), min(s), max(s), f"{posts / net[name]:,.0f}" if name in net else ""]
            for name, s in took.items()
        ],
    )
    print(
        f"One process takes {median(took[one]) / median(took[many]):.2f} times as long as all by the medians, "
        f"{net[one] / net[many]:.2f} times without the start;\n{min(took[one]) / min(took[many]):.2f} times by the "
        "quickest runs, which other work on the machine disturbs least."
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"The largest of all these processes took {peak:,.0f} MB of memory.\n")
