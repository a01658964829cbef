"""Sets of records with one label each and splits, as export_gold writes them."""

import json
from collections import Counter

from annotate.goldsets.set_folder import write_with_card

CARD = "# Texts\n\n## Files\n\nOne.\n\n## Origin\n\nA test.\n"


def classified_set(folder, rows, labels=("a", "b"), form="choice", **sections):
    """Write a set. rows: (id, language, split, label, text) of each record."""
    folder.mkdir(parents=True)
    names = ("id", "language", "split", "label", "body")
    lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in rows]
    (folder / "gold.jsonl").write_text("".join(lines), encoding="utf-8")
    counts = {name: dict(Counter(row[place] for row in rows)) for place, name in ((1, "by_language"), (3, "by_label"))}
    manifest = {
        "format": 2,
        "design": "records",
        "finished": True,
        "task": {"name": folder.name, "title": "", "form": form, "together": "", "labels": [*labels], "languages": []},
        "draws": [],
        "corpus": None,
        "published": None,
        "counts": {"records": len(rows), "labelled": len(rows), **counts},
        "files": {},
        **sections,
    }
    write_with_card(folder, manifest, lambda: {"README.md": CARD})
    return folder
