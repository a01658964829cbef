"""Hidden units, and all pairs of actions around them: each number, size and order in a response is compared.

Each task runs twice. A finding of the first run is a candidate, and it counts if the second run, with other units and
another secret, confirms it. An area of 0.5 under the curve means that nothing was learned. No data are needed.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

from benchmarks.oracle import WAYS, at_work
from benchmarks.place import BenchmarkFailed
from benchmarks.tables import show
from tests.annotate import roc

POPULATIONS = ("gold, one reader", "gold, three readers", "posts", "decoys")
# Features of fewer units than this, hidden or not, are ignored.
FEWEST = 10
# The range of areas that reveal nothing, and the largest standard error of an area that is shown.
LOW, HIGH, CLOSE = 0.45, 0.55, 0.02
# Confidence required of each candidate in the first run, and of all candidates together in the second.
SCREENED, CONFIRMED = 0.99, 0.95
# Kind of hidden unit -> feature -> its values for hidden units and for others.
Features = dict[str, dict[str, tuple[list[float], list[float]]]]


def add_options(parser) -> None:
    parser.add_argument(
        "--pairs-units",
        type=int,
        default=400,
        help="units of each of the two runs of a task and way (default %(default)s)",
    )
    parser.add_argument("--pairs-of", nargs="*", choices=POPULATIONS, help="which tasks (default: all)")
    parser.add_argument("--pairs-by", nargs="*", choices=WAYS, default=WAYS, help="which way (default: both)")
    parser.add_argument(
        "--pairs-views", type=int, default=3, help="pages to inspect around a unit (default %(default)s)"
    )


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    runs: list[Features] = []
    for number in (1, 2):
        kinds: Features = defaultdict(lambda: defaultdict(lambda: ([], [])))
        for population, way in product(options.pairs_of or POPULATIONS, options.pairs_by):
            for line in _tried(population, way, options.pairs_units, options.pairs_views, number):
                for name, value in line["features"]:
                    kinds[line["kind"]][name][not line["hidden"]].append(value)
        runs.append(kinds)
    leaks = list(_leaks(*runs))
    _show(runs, leaks)
    if leaks:
        raise BenchmarkFailed(
            f"Hidden units can be recognised: {'; '.join(f'{leak.kind}, {leak.name}' for leak in leaks)}."
        )


def _tried(population: str, way: str, units: int, views: int, number: int) -> Iterator[dict]:
    yield from at_work("oracle_pairs_work", population, way, str(units), str(views), str(number))


class Area(NamedTuple):
    kind: str
    name: str
    hidden: int
    others: int
    area: float
    error: float

    def is_sure(self, level: float) -> bool:
        """Return whether the area reveals something, and its interval excludes 0.5."""
        return not LOW <= self.area <= HIGH and abs(self.area - 0.5) > roc.sure(level) * self.error


def _areas(kind: str, features: Mapping[str, tuple[list[float], list[float]]]) -> Iterator[Area]:
    for name, (hidden, others) in features.items():
        if min(len(hidden), len(others)) >= FEWEST:
            area, error = roc.auc(hidden, others), roc.standard_error(hidden, others)
            yield Area(kind, name, len(hidden), len(others), area, error)


def _leaks(first: Features, second: Features) -> Iterator[Area]:
    """Yield the areas of the second run that confirm candidates of the first. Seconds are shown but not judged, because
    other work on the machine disturbs them.
    """
    candidates = [area for kind in first for area in _areas(kind, first[kind]) if area.is_sure(SCREENED)]
    names = {(area.kind, area.name) for area in candidates if "seconds" not in area.name}
    level = 1 - (1 - CONFIRMED) / max(1, len(names))
    for kind in second:
        for area in _areas(kind, second[kind]):
            if (kind, area.name) in names and area.is_sure(level):
                yield area
    print(f"{len(names)} candidates after the first run\n", flush=True)


def _show(runs: list[Features], leaks: list[Area]) -> None:
    rows, furthest = [], []
    for kind in runs[0]:
        both = {
            name: tuple(first + second for first, second in zip(runs[0][kind][name], runs[1][kind][name], strict=True))
            for name in runs[0][kind]
        }
        areas = list(_areas(kind, both))
        close = sorted((area for area in areas if area.error <= CLOSE), key=lambda area: -abs(area.area - 0.5))
        judged = [area for area in close if "seconds" not in area.name]
        of_kind = [area for area in leaks if area.kind == kind]
        rows.append([kind, len(areas), len(close), f"{judged[0].area:.3f}" if judged else "-", len(of_kind)])
        furthest += judged[:3] + [
            area for area in areas if "seconds" in area.name and area.name.startswith(("take", "release"))
        ]
    show("Features of both runs", ["hidden", "features", f"SE up to {CLOSE}", "furthest of these", "confirmed"], rows)
    heads = ["feature", "hidden", "units", "others", "area", "SE"]
    for title, listed in (("The furthest, and seconds", furthest), ("Confirmed", leaks)):
        show(
            title,
            heads,
            [
                [area.name, area.kind, area.hidden, area.others, f"{area.area:.3f}", f"{area.error:.3f}"]
                for area in listed
            ],
        )
