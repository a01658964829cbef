"""The queue of writers on SQLite, compared with Django's backend and its timeout.

Each annotator is a thread that repeatedly takes and answers a unit through the operations that the pages and the API
call. The backends take turns, each in a separate process with a new database. All other settings are the same
(IMMEDIATE transactions, WAL, synchronous=FULL).
"""

import json
from pathlib import Path
from statistics import median

from benchmarks.place import new_place
from benchmarks.tables import show

# Django's default is 5 s.
BACKENDS = {"queue of writers": "", "Django's, timeout 5 s": "5", "Django's, timeout 20 s": "20"}


def add_options(parser) -> None:
    parser.add_argument("--annotators", type=int, default=32, help="threads (default %(default)s)")
    parser.add_argument(
        "--window", type=float, default=30.0, help="duration of each run in seconds (default %(default)s)"
    )
    parser.add_argument("--turns", type=int, default=2, help="runs per backend (default %(default)s)")


def run(folder: Path, options) -> None:
    by_backend: dict[str, list[dict]] = {name: [] for name in BACKENDS}
    for _ in range(options.turns):
        for name, timeout in BACKENDS.items():
            with new_place(sqlite=True) as place:
                place.env |= {
                    "DJANGO_SETTINGS_MODULE": "benchmarks.plain_sqlite",
                    "BENCH_SQLITE_TIMEOUT": timeout,
                }
                command = ("-m", "benchmarks.database_work", str(options.annotators), str(options.window))
                by_backend[name].append(json.loads(place.run(*command)))
    show(
        f"{options.annotators} annotators at once, {options.window:g} s a run, {options.turns} runs; medians, sums of "
        "errors;\nwaits are those of one take or one answer",
        ["backend", "answers/s", "median ms", "99% ms", "longest s", "over 5 s", '"database is locked"', "calls"],
        [_row(name, runs) for name, runs in by_backend.items()],
    )
    queue, plain = (median(run["answers_a_second"] for run in by_backend[name]) for name in list(by_backend)[:2])
    print(f"With the queue {queue / plain:.2f} times as many answers a second as with Django's backend and 5 s.\n")


def _row(name: str, runs: list[dict]) -> list[object]:
    return [
        name,
        median(run["answers_a_second"] for run in runs),
        median(run["median_ms"] for run in runs),
        median(run["p99_ms"] for run in runs),
        max(run["longest_s"] for run in runs),
        sum(run["over_5_s"] for run in runs),
        sum(run["locked"] for run in runs),
        sum(run["calls"] for run in runs),
    ]
