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
# Features of fewer units than this, hidden or not, are not looked at.
FEWEST = 10
# The areas between which a feature tells nothing, and how closely the furthest of them has to be known.
LOW, HIGH, CLOSE = 0.45, 0.55, 0.02
# How sure a candidate has to be by the first run, and all candidates together by the second.
SCREENED, CONFIRMED = 0.99, 0.95
# Kind of hidden unit -> feature -> its values of hidden units, and of others.
Found = dict[str, dict[str, tuple[list[float], list[float]]]]


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
    found: list[Found] = []
    for number in (1, 2):
        kinds: Found = defaultdict(lambda: defaultdict(lambda: ([], [])))
        for population, way in product(options.pairs_of or POPULATIONS, options.pairs_by):
            for line in _tried(population, way, options.pairs_units, options.pairs_views, number):
                for name, value in line["features"]:
                    kinds[line["kind"]][name][not line["hidden"]].append(value)
        found.append(kinds)
    told = list(_leaks(*found))
    _show(found, told)
    if told:
        raise BenchmarkFailed(
            f"Hidden units can be recognised: {'; '.join(f'{each.kind}, {each.name}' for each in told)}."
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
        """Whether the area lies outside what tells nothing, and its interval leaves 0.5 out."""
        return not LOW <= self.area <= HIGH and abs(self.area - 0.5) > roc.sure(level) * self.error


def _areas(kind: str, features: Mapping[str, tuple[list[float], list[float]]]) -> Iterator[Area]:
    for name, (hidden, others) in features.items():
        if min(len(hidden), len(others)) >= FEWEST:
            area, error = roc.auc(hidden, others), roc.standard_error(hidden, others)
            yield Area(kind, name, len(hidden), len(others), area, error)


def _leaks(first: Found, second: Found) -> Iterator[Area]:
    """What the first run finds and the second confirms, as the second found it. Seconds are told and not judged, since
    other work on the machine blurs them.
    """
    candidates = [each for kind in first for each in _areas(kind, first[kind]) if each.is_sure(SCREENED)]
    names = {(each.kind, each.name) for each in candidates if "seconds" not in each.name}
    level = 1 - (1 - CONFIRMED) / max(1, len(names))
    for kind in second:
        for each in _areas(kind, second[kind]):
            if (kind, each.name) in names and each.is_sure(level):
                yield each
    print(f"{len(names)} candidates after the first run\n", flush=True)


def _show(found: list[Found], told: list[Area]) -> None:
    rows, furthest = [], []
    for kind in found[0]:
        both = {
            name: tuple(
                first + second for first, second in zip(found[0][kind][name], found[1][kind][name], strict=True)
            )
            for name in found[0][kind]
        }
        areas = list(_areas(kind, both))
        close = sorted((each for each in areas if each.error <= CLOSE), key=lambda each: -abs(each.area - 0.5))
        judged = [each for each in close if "seconds" not in each.name]
        of_kind = [each for each in told if each.kind == kind]
        rows.append([kind, len(areas), len(close), f"{judged[0].area:.3f}" if judged else "-", len(of_kind)])
        furthest += judged[:3] + [
            each for each in areas if "seconds" in each.name and each.name.startswith(("take", "release"))
        ]
    show("Features of both runs", ["hidden", "features", f"SE up to {CLOSE}", "furthest of these", "confirmed"], rows)
    heads = ["feature", "hidden", "units", "others", "area", "SE"]
    for title, listed in (("The furthest, and seconds", furthest), ("Confirmed", told)):
        show(
            title,
            heads,
            [
                [each.name, each.kind, each.hidden, each.others, f"{each.area:.3f}", f"{each.error:.3f}"]
                for each in listed
            ],
        )
