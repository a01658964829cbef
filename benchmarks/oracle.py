"""Attackers who try to distinguish hidden units: by returning units, undoing answers, or their timing.

Five people work through the pages and the API, and one of them uses a script. The truth is read from the database
afterwards. An area of 0.5 under the curve means that the attacker learned nothing. No data are needed.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from benchmarks.place import BenchmarkFailed, new_place
from benchmarks.tables import show

WAYS = ("page", "api")
HIDDEN = ("gold, one reader", "gold, three readers", "posts", "decoys")
# Scores of fewer units than this are not shown.
FEWEST = 10
# Units are recognised if the interval at this level excludes 0.5. The level is high because some of the hundreds of
# areas differ from 0.5 by chance. Seconds are shown but not judged, because other work on the machine disturbs them.
SURE = 0.9998


def add_options(parser) -> None:
    parser.add_argument("--attacked", type=int, default=1000, help="units per attack (default %(default)s)")
    parser.add_argument("--hidden", nargs="*", choices=HIDDEN, help="what is hidden (default: all)")
    parser.add_argument(
        "--tricks", nargs="*", default=[], help="the attack to run, such as 'given back' (default: all)"
    )
    parser.add_argument("--attack-by", nargs="*", choices=WAYS, default=WAYS, help="which way (default: both)")


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    rows, leaks = [], []
    for hidden, way in product(options.hidden or HIDDEN, options.attack_by):
        for line in _scores(hidden, way, options.attacked, options.tricks):
            area, low, high = (f"{line[key]:.3f}" for key in ("area", "low", "high"))
            rows.append(
                [hidden, line["kind"], way, line["score"], line["hidden"], line["others"], area, f"{low} to {high}"]
            )
            if line["recognised"] and "seconds" not in line["score"]:
                leaks.append(f"{line['kind']} by {way}, {line['score']}")
    heads = ["task", "hidden", "by", "score", "hidden units", "others", "area", "95%"]
    show(f"{options.attacked} units each", heads, rows)
    if leaks:
        raise BenchmarkFailed(f"Hidden units can be recognised: {'; '.join(leaks)}.")


def _scores(hidden: str, way: str, units: int, tricks: Sequence[str]) -> Iterator[dict]:
    """Yield the scores of one attacker."""
    yield from at_work("oracle_work", hidden, way, str(units), *tricks)


def at_work(module: str, *words: str) -> Iterator[dict]:
    """Run a module in a new installation, and yield the lines that it prints."""
    with new_place() as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        place.manage("django", "migrate", "-v0")
        yield from map(json.loads, place.run("-m", f"benchmarks.{module}", *words).splitlines())
