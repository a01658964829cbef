"""Audits of a filter: how often the intervals cover the toxic shares of kept and dropped pairs, and the recall.

The data are the English validation part of oasst1 (oasst1/messages.jsonl), filtered by Detoxify above 0.5. Each audit
uses the draw of a task, and its readers give the published judgments: toxic if at least half of the people called the
message or reply toxic. Generated populations that are difficult on purpose are added.
"""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from annotate.core.estimation.filter_quality import Part, audit
from benchmarks.material import MissingData
from benchmarks.place import BenchmarkFailed, new_place
from benchmarks.tables import share, show

FIGURES = ("kept", "dropped", "recall")
# The share of audits of oasst1 in which each figure's interval must hold the truth. It always does if all of a part is
# read.
LEAST, MOST = 0.93, 0.97
# Numbers of dropped pairs that are read, out of 30.
READ = (30, 20)


class Population(NamedTuple):
    """Kept pairs, how many of them are toxic, and how many are read; the same for dropped pairs."""

    kept: tuple[int, int, int]
    dropped: tuple[int, int, int]


MADE = {
    f"{100 * kept / 20_000:g}% of the kept, {100 * dropped / 1_000:g}% of the dropped": Population(
        (20_000, kept, 300), (1_000, dropped, 100)
    )
    for kept in (20, 200, 4_000)
    for dropped in (50, 950)
}


def add_options(parser) -> None:
    parser.add_argument("--filter-trials", type=int, default=500, help="of each population (default %(default)s)")


def run(folder: Path, options) -> None:
    messages = folder / "oasst1" / "messages.jsonl"
    if not messages.is_file():
        raise MissingData(f"There is no {messages}.")
    with new_place() as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        place.manage("django", "migrate", "-v0")
        command = ("-m", "benchmarks.filters_work", messages, str(options.filter_trials), options.seed)
        worlds = json.loads(place.run(*command, *map(str, READ)))
    rows = [row_of(f"oasst1, {world['read']} of 30 dropped", world["truth"], world["audits"]) for world in worlds]
    for name, population in MADE.items():
        lots = random.Random(f"{options.seed} {name}")
        trials = range(options.filter_trials)
        counts = [(count_toxic(population.kept, lots), count_toxic(population.dropped, lots)) for _ in trials]
        rows.append(row_of(name, truth_of(population), audits_of(population, counts)))
    head = ("population", "audits", *(f"{name} {what}" for name in FIGURES for what in ("true", "cover", "width")))
    show("Audits of a filter", head, rows)
    check(worlds)


def count_toxic(part: tuple[int, int, int], lots: random.Random) -> int:
    """Draw the pairs to read without replacement, and return how many are toxic."""
    size, toxic, read = part
    return sum(place < toxic for place in lots.sample(range(size), read))


def truth_of(population: Population) -> list[float]:
    kept, dropped = population
    return [kept[1] / kept[0], dropped[1] / dropped[0], dropped[1] / (kept[1] + dropped[1])]


def audits_of(population: Population, counts: Iterable[tuple[int, int]]) -> list[list[list[float]]]:
    """Return for each audit the ends of the intervals of FIGURES."""
    kept, dropped = population
    made = (audit(Part(kept[0], kept[2], one), Part(dropped[0], dropped[2], other)) for one, other in counts)
    return [[[estimate.low, estimate.high] for estimate in (of.retained, of.dropped, of.recall)] for of in made]


def covered(truth: list[float], audits: list[list[list[float]]]) -> list[int]:
    """Return for each figure in how many audits its interval holds the truth, except for the last bits of a float."""
    return [
        sum(ends[place][0] - 1e-9 <= true <= ends[place][1] + 1e-9 for ends in audits)
        for place, true in enumerate(truth)
    ]


def row_of(name: str, truth: list[float], audits: list[list[list[float]]]) -> list[Any]:
    row: list[Any] = [name, len(audits)]
    for place, (true, holds) in enumerate(zip(truth, covered(truth, audits), strict=True)):
        width = sum(ends[place][1] - ends[place][0] for ends in audits) / len(audits)
        row += [f"{true:.2%}", share(holds, len(audits)), f"{100 * width:.1f}"]
    return row


def check(worlds: list[dict[str, Any]]) -> None:
    for world in worlds:
        holds = covered(world["truth"], world["audits"])
        for name, true, count in zip(FIGURES, world["truth"], holds, strict=True):
            part = count / len(world["audits"])
            is_census = name == "dropped" and world["read"] == max(READ)
            if not (part == 1 if is_census else LEAST <= part <= MOST):
                raise BenchmarkFailed(
                    f"With {world['read']} dropped pairs read, {part:.1%} of the intervals held {true:.2%} ({name})."
                )
