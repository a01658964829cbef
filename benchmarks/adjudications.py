"""The time of twenty adjudications in a row, with few and with many waiting cases.

No data are needed. One process requests the list, opens its first case, decides it and receives the next, with Django's
test client. Only the server's time is measured. test_case_page.py decides by keys in a browser.
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
        help="waiting for an adjudicator (default %(default)s)",
    )


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    medians: dict[int, dict[str, float]] = {}
    for cases in options.waiting_cases:
        with new_place() as place:
            place.manage("django", "migrate", "--verbosity=0")
            place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
            medians[cases] = json.loads(place.run("-m", "benchmarks.adjudications_work", str(cases)))
            database = place.database
    names = list(next(iter(medians.values())))
    show(
        f"Twenty adjudications with {database}, milliseconds, medians",
        ["cases that wait", *names],
        [[cases, *times.values()] for cases, times in medians.items()],
    )
    slow = sorted({name for times in medians.values() for name, time in times.items() if time > MOST})
    print(f"Above {MOST} ms: {', '.join(slow) or 'nothing'}.\n")
