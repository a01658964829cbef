"""The crowd sets of fixtures/crowd, read for tests."""

import csv
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "crowd"


def rows(name):
    """(task, worker, label), repeats among them."""
    with open(FOLDER / f"{name}.labels.tsv", encoding="utf-8", newline="") as file:
        return [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(file, delimiter="\t")]


def gold(name):
    with open(FOLDER / f"{name}.gold.tsv", encoding="utf-8", newline="") as file:
        return {row["task"]: row["label"] for row in csv.DictReader(file, delimiter="\t")}


def first_kept(answers):
    """The first answer of each worker on each task."""
    kept = {}
    for task, worker, label in answers:
        kept.setdefault((task, worker), label)
    return [(*pair, label) for pair, label in kept.items()]
