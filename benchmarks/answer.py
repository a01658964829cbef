"""The time of one answer and the next unit, the database's share of it, and the plans of its statements.

It runs in one process, with Django's test client, for an annotator who reads twenty languages. The floor is the time in
the database's driver. Tasks of two sizes are measured in turns, because the time must not grow with the queue.
"""

import json
from contextlib import ExitStack
from pathlib import Path

from benchmarks.place import new_place
from benchmarks.tables import show

ROUNDS = 3
MOST_TIMES = 1.2
PARTS = {
    "permit": "read the rights of the person, who is locked",
    "close": "store the answer and its effects",
    "hand_out": "the next unit",
    "commit": "commit (including the wait for the disk)",
    "show": "the response",
}


def add_options(parser) -> None:
    parser.add_argument(
        "--answer-units", type=int, nargs=2, default=[10_000, 100_000], help="that wait; in full 10000 1000000"
    )
    parser.add_argument("--answers", type=int, default=200, help="of each round (default %(default)s)")


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    rounds: dict[int, list[dict]] = {units: [] for units in options.answer_units}
    with ExitStack() as stack:
        places = {}
        for units in rounds:
            places[units] = place = stack.enter_context(new_place())
            place.manage("django", "migrate", "--verbosity=0")
            place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
            place.run("-m", "benchmarks.load_work", "open", str(units), "1")
        for _ in range(ROUNDS):
            for units, place in places.items():
                output = place.run("-m", "benchmarks.answer_work", str(options.answers))
                rounds[units].append(json.loads(output))
        database = place.database
    best = {units: min(runs, key=lambda figures: figures["median"]) for units, runs in rounds.items()}
    show(
        f"An answer and the next unit on {database}, milliseconds",
        ["units that wait", "median", "processor", "in the driver", "with the commit", "statements", "bytes"],
        [
            [units, *(figures[name] for name in ("median", "processor", "driver", "floor", "statements", "bytes"))]
            for units, figures in best.items()
        ],
    )
    few, many = best.values()
    show(
        "Where the time goes, milliseconds",
        ["", *(f"{units:,} units" for units in best)],
        [
            *([words, few["parts"][part], many["parts"][part]] for part, words in PARTS.items()),
            ["authentication and the rest of Django", few["rest"], many["rest"]],
        ],
    )
    for statement in many["plans"]:
        print(f"{statement['milliseconds']:.3f} ms  {statement['sql']}")
        print("".join(f"              {line}\n" for line in statement["plan"]), end="")
    times = many["median"] / few["median"]
    more = options.answer_units[1] / options.answer_units[0]
    print(f"\nWith {more:.0f} times as many units it takes {times:.2f} times as long (limit: {MOST_TIMES}).\n")
