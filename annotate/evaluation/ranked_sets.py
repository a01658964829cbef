"""Exported sets of documents with several labels each, read so that ranked labels can be measured on them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.core.label_shares import BUCKETS, buckets
from annotate.core.splits import TRAIN
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import PublishedSet
from annotate.goldsets.manifest import RESTORE, GoldSetError, get

# Concept -> its label and its parents: all concepts of the vocabulary, as the published reader has them.
DESCRIPTORS = "EURLEX57K/EURLEX57K.json"


@dataclass(frozen=True)
class LabelledDocuments:
    """splits: split -> document -> its labels. parents: each label of the vocabulary -> the labels right above it.
    buckets: bucket -> its labels, frequent ones being those of more than `frequent_over` documents of train."""

    splits: Mapping[str, Mapping[str, frozenset[str]]]
    parents: Mapping[str, list[str]]
    buckets: Mapping[str, frozenset[str]]
    frequent_over: int


def read_documents(gold: PublishedSet, frequent_over: int | None = None) -> LabelledDocuments:
    """The documents of a set. frequent_over: where the buckets are to be counted anew; None for those of the set.

    EvaluationError if they cannot be counted, GoldSetError if the set is not as it should be.
    """
    place, published = gold.folder / "manifest.json", gold.manifest["published"]
    parents = _parents(gold)
    splits = _splits(gold.folder / f"gold{gold.mark}.jsonl", parents)
    if frequent_over is None:
        told = get(place, published, "buckets", dict)
        found = {name: frozenset(get(place, told, name, list)) for name in BUCKETS}
        return LabelledDocuments(splits, parents, found, get(place, published, "frequent_over", int))
    try:
        counted = buckets({name: rows.values() for name, rows in splits.items()}, TRAIN, frequent_over=frequent_over)
    except ValueError as error:
        raise EvaluationError(
            f"--frequent-over cannot be had on the set {gold.name} in {gold.folder}: {error}"
        ) from None
    return LabelledDocuments(splits, parents, counted, frequent_over)


def _parents(gold: PublishedSet) -> dict[str, list[str]]:
    if DESCRIPTORS not in gold.files:
        raise GoldSetError(f"{gold.folder / 'manifest.json'} names no {DESCRIPTORS} among its files. {RESTORE}")
    path = gold.folder / DESCRIPTORS
    concepts: dict[str, Any] = json.loads(path.read_bytes())
    return {concept: get(f"{path}, concept {concept}", told, "parents", list) for concept, told in concepts.items()}


def _splits(path: Path, known: Mapping[str, Any]) -> dict[str, dict[str, frozenset[str]]]:
    found: dict[str, dict[str, frozenset[str]]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            row, place = json.loads(line), f"{path}, line {number:,}"
            labels = get(place, row, "concepts", list)
            if strange := [label for label in labels if label not in known]:
                raise GoldSetError(f"{place} has the concept {strange[0]!r}, which {DESCRIPTORS} lacks. {RESTORE}")
            found.setdefault(get(place, row, "split", str), {})[get(place, row, "id", str)] = frozenset(labels)
    return found
