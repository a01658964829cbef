"""A task with many judgments: the time of each page, and the agreement that a command computes from them.

No data are needed. Three people read each unit, and one in ten units is waiting. Pages are requested in one process
with Django's test client. The first request lasts until the figures are cached; for later requests the median is shown.
Tasks of two sizes are measured.
"""

import json
from pathlib import Path

from benchmarks.place import new_place
from benchmarks.tables import show

MOST = 200  # milliseconds
EACH = 3  # judgments per unit


def add_options(parser) -> None:
    parser.add_argument(
        "--page-judgments",
        type=int,
        nargs="+",
        default=[10_000, 100_000],
        help="of each task; in full 10000 1000000",
    )


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    by_size: dict[int, dict] = {}
    for judgments in options.page_judgments:
        with new_place() as place:
            place.manage("django", "migrate", "--verbosity=0")
            place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
            work = ("-m", "benchmarks.pages_work")
            place.run(*work, "fill", str(judgments // EACH))
            steps = {step: json.loads(place.run(*work, step)) for step in ("pages", "agreement")}
            by_size[judgments] = steps["pages"] | {"": steps["agreement"]}
            database = place.database
    heads = [f"{judgments:,}: {what}" for judgments in by_size for what in ("first", "then")]
    names = [name for name in next(iter(by_size.values())) if name]
    show(
        f"Pages of tasks of so many judgments on {database}, milliseconds",
        ["", *heads],
        [[name, *(time for pages in by_size.values() for time in pages[name])] for name in names],
    )
    show(
        "The command agreement",
        ["judgments", "s", "MB at the start", "MB at most", "right: votes", "right: Dawid and Skene"],
        [[judgments, *pages[""]] for judgments, pages in by_size.items()],
    )
    slow = sorted({name for pages in by_size.values() for name in names if pages[name][1] > MOST})
    print(f"Above {MOST} ms once figures are kept: {', '.join(slow) or 'no page'}.\n")
