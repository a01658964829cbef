"""Sets of documents with several labels, as exported in the format EURLEX57K, and runs of ranked labels."""

import json

from annotate.core.draws.splits import buckets
from annotate.goldsets.set_folder import write_manifest
from corpora.storage.layout import digest_of

DESCRIPTORS = "EURLEX57K/EURLEX57K.json"


def labelled_set(folder, splits, parents, *, finished=True, frequent_over=1):
    """Write a set. splits: labels by split and document. parents: the broader labels of each label."""
    (folder / "EURLEX57K").mkdir(parents=True)
    rows = [
        {"id": key, "split": split, "concepts": labels}
        for split, documents in splits.items()
        for key, labels in documents.items()
    ]
    gold = "gold.jsonl" if finished else "gold.unfinished.jsonl"
    (folder / gold).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    concepts = {label: {"label": f"the label {label}", "parents": above} for label, above in parents.items()}
    (folder / DESCRIPTORS).write_text(json.dumps(concepts))
    groups = buckets({"train": [], **of_rows(splits)}, "train", frequent_over=frequent_over)
    published = {
        "format": "EURLEX57K",
        "files": {DESCRIPTORS: len(concepts)},
        "splits": {split: len(documents) for split, documents in splits.items()},
        "frequent_over": frequent_over,
        "buckets": {name: sorted(labels) for name, labels in groups.items()},
        "vocabulary": {"name": "animals", "version": 1, "sha256": "0" * 64, "concepts": len(concepts)},
    }
    manifest = {
        "format": 2,
        "design": "records",
        "finished": finished,
        "task": {"name": folder.name, "type": "acts", "form": "labels", "labels": []},
        "concepts": {"frequent_over": frequent_over, "vocabulary": published["vocabulary"]},
        "published": published,
        "counts": {"labelled": len(rows)},
        "files": {name: digest_of(folder / name) for name in (gold, DESCRIPTORS)},
    }
    write_manifest(folder, manifest)
    return folder


def of_rows(splits):
    return {split: [set(labels) for labels in documents.values()] for split, documents in splits.items()}


def run_of(path, scores, system="mine"):
    """Write a run. scores: scores by document and label."""
    lines = [
        f"{document} Q0 {label} {rank} {score} {system}\n"
        for document, labels in scores.items()
        for rank, (label, score) in enumerate(labels.items(), 1)
    ]
    path.write_text("".join(lines))
    return path
