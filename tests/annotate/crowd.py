"""Readers for the crowd-labelled sets in fixtures/crowd."""

import csv
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "crowd"


def rows(name):
    """Return all (task, worker, label) rows, including repeats."""
    with open(FOLDER / f"{name}.labels.tsv", encoding="utf-8", newline="") as file:
        return [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(file, delimiter="\t")]


def gold(name):
    with open(FOLDER / f"{name}.gold.tsv", encoding="utf-8", newline="") as file:
        return {row["task"]: row["label"] for row in csv.DictReader(file, delimiter="\t")}


def first_kept(answers):
    """Return the first answer of each worker for each task."""
    labels = {}
    for task, worker, label in answers:
        labels.setdefault((task, worker), label)
    return [(*pair, label) for pair, label in labels.items()]
