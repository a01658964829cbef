"""Twenty adjudications one after another, and what they cost where few cases wait and where many do.

No data are needed. One process asks for the list, begins with its first case, decides it, and is shown the next, by
Django's test client. What is measured is the server's time; presses are counted by test_bench.py, in a browser.
"""

import json
from pathlib import Path

from benchmarks.place import new_place
from benchmarks.tables import show

MOST = 200  # milliseconds


def add_options(parser) -> None:
    parser.add_argument(
        "--waiting-cases",
        type=int,
        nargs="+",
        default=[100, 10_000],
        help="that wait for an adjudicator (default %(default)s)",
    )


def run(folder: Path, options) -> None:
    """The folder is not read."""
    found: dict[int, dict[str, float]] = {}
    for cases in options.waiting_cases:
        with new_place() as place:
            place.manage("django", "migrate", "--verbosity=0")
            place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
            found[cases] = json.loads(place.run("-m", "benchmarks.adjudications_work", str(cases)))
            database = place.database
    names = list(next(iter(found.values())))
    show(
        f"Twenty adjudications on {database}, milliseconds, medians",
        ["cases that wait", *names],
        [[cases, *times.values()] for cases, times in found.items()],
    )
    slow = sorted({name for times in found.values() for name, time in times.items() if time > MOST})
    print(f"Above {MOST} ms: {', '.join(slow) or 'nothing'}.\n")
