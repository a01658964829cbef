"""Audits of declared labels, some of which were changed: whether the interval covers the error.

The data are the sentences of sib200/en.jsonl, each with one of seven topics. Each trial changes other labels, draws
balanced sets by the changed labels, and selects a share of each class for the audit, as a task does. All of this
depends on the seed of the trial.
"""

import json
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from annotate.core.aggregation.answer_table import majority
from annotate.core.draws import hash_order
from annotate.core.draws.balanced_sets import Document, Sizes, distinct_documents, draw_balanced_sets
from annotate.core.estimation.filter_quality import Part
from annotate.core.estimation.filter_quality import share as share_of
from annotate.core.estimation.label_errors import additional_units
from benchmarks.material import MissingData
from benchmarks.tables import share, show


class World(NamedTuple):
    """changed: share of declared labels that are wrong, overall or by class; share, least: options of the audit; slips:
    how often each of three people gives another class."""

    changed: float | Mapping[str, float] = 0.1
    sizes: Sizes = Sizes(140, 70, (70, 140))
    share: float = 0.2
    least: int = 0
    slips: float = 0.0


WORLDS = {
    "one in ten, a fifth read": World(),
    "a twentieth read": World(share=0.05),
    "half read": World(share=0.5),
    "nine in ten read": World(share=0.9),
    "one in a hundred": World(changed=0.01),
    "one in three": World(changed=1 / 3),
    "one class half wrong, others 1 in 50": World(changed={"travel": 0.5, "": 0.02}),
    "sets of 70 alone": World(sizes=Sizes(70, 0, ())),
    "each of three slips in 5%": World(slips=0.05),
    "each of three slips in 15%": World(slips=0.15),
}


class Trial(NamedTuple):
    """covers, width, value: of the overall error; by_class: how many classes' intervals cover the truth, and how many
    classes have an interval."""

    covers: bool
    width: float
    value: float
    by_class: tuple[int, int]


def add_options(parser) -> None:
    parser.add_argument("--declared-trials", type=int, default=500, help="of each world (default %(default)s)")


def run(folder: Path, options) -> None:
    path = folder / "sib200" / "en.jsonl"
    if not path.is_file():
        raise MissingData(f"There is no {path}.")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    documents = [Document(row["id"], "en", row["topic"], row["text"]) for row in rows]
    table = []
    for name, world in WORLDS.items():
        trials = [trial(documents, world, f"{options.seed}.{number}") for number in range(options.declared_trials)]
        covered, classes = (sum(of) for of in zip(*(trial.by_class for trial in trials), strict=True))
        table.append(
            [
                name,
                len(trials),
                share(sum(trial.covers for trial in trials), len(trials)),
                f"{100 * sum(trial.width for trial in trials) / len(trials):.1f}",
                f"{100 * sum(trial.value for trial in trials) / len(trials):.1f}",
                share(covered, classes),
            ]
        )
    show("Labels of SIB-200 in English", ["world", "audits", "cover", "width", "error found", "of a class"], table)


def trial(documents: list[Document], world: World, seed: str) -> Trial:
    lots = random.Random(seed)
    truth = {document.id: document.label for document in documents}
    classes = sorted(set(truth.values()))

    def other(label: str) -> str:
        return lots.choice([topic for topic in classes if topic != label])

    def chance(label: str) -> float:
        return world.changed.get(label, world.changed[""]) if isinstance(world.changed, Mapping) else world.changed

    changed = [
        document._replace(label=other(document.label)) if lots.random() < chance(document.label) else document
        for document in documents
    ]
    merged = distinct_documents(changed, seed=seed).documents
    declared = {document.id: document.label for document in merged}
    sets = draw_balanced_sets(merged, classes, world.sizes, seed=seed).sets["en"]
    drawn = sorted({key for ids in sets.values() for key in ids})
    parts, wrong = {}, Counter(declared[key] for key in drawn if declared[key] != truth[key])
    of_class = {label: [key for key in drawn if declared[key] == label] for label in classes}
    counts = additional_units({label: (len(keys), 0) for label, keys in of_class.items()}, world.share, world.least)
    for label, keys in of_class.items():
        read = hash_order.draw_sample(keys, counts[label], lots=hash_order.by_seed(seed), purpose="audit")
        majorities = [_majority(truth[key], world.slips, other, lots) for key in read]
        labels = [answer for answer in majorities if answer is not None]
        off = sum(answer != label for answer in labels)
        parts[label] = Part(len(keys), len(labels), off, len(majorities) - len(labels))
    error = share_of(*parts.values())
    errors = {label: share_of(part) for label, part in parts.items()}
    intervals = {label: one for label, one in errors.items() if one.has_interval}
    return Trial(
        _holds(error, wrong.total() / len(drawn)),
        error.high - error.low,
        error.value or 0.0,
        (sum(_holds(one, wrong[label] / parts[label].size) for label, one in intervals.items()), len(intervals)),
    )


def _majority(truth: str, slips: float, other, lots: random.Random) -> str | None:
    return majority([other(truth) if lots.random() < slips else truth for _ in range(3)])


def _holds(error, truth: float) -> bool:
    return bool(error.low - 1e-12 <= truth <= error.high + 1e-12)
