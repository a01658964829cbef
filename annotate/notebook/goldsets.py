"""A gold set in a notebook: its rows, labels, manifest and card."""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from annotate.goldsets.manifest import manifest_of
from annotate.notebook.asking import told
from annotate.notebook.evaluations import Given, Report, evaluate, report
from annotate.notebook.rows import Rows, of_dicts, of_files

if TYPE_CHECKING:
    import pandas as pd


def gold(folder: str | os.PathLike[str]) -> "Gold":
    """The gold set in a folder that export_gold or import_gold has written. AssayError where it is none, or where its
    manifest is not as it was written.
    """
    path = Path(folder).expanduser()
    with told():
        return Gold(path, manifest_of(path))


class Gold:
    """A gold set. manifest: what it says of itself: seed, digests, versions, counts, draws."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest

    @property
    def name(self) -> str:
        """That of its task, or that under which it was imported."""
        return str((self.manifest.get("imported") or self.manifest["task"])["name"])

    @property
    def card(self) -> str:
        """The dataset card, in Markdown. AssayError where it cannot be read."""
        with told(str(self.folder / "README.md")):
            return (self.folder / "README.md").read_text(encoding="utf-8")

    @property
    def labels(self) -> dict[str, int]:
        """Label -> posts that have it, the commonest first."""
        counted: dict[str, int] = self.manifest["counts"]["by_label"]
        return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))

    def rows(self) -> Rows:
        """The rows with all that was exported: id, label, and of an exported set votes, judgments, transitions and the
        rest, as the card explains. A set of records has its splits one after the other, and a column `split`.
        """
        names = [name for name in self.manifest["files"] if name.startswith("gold")]
        if files := [self.folder / name for name in names if name.endswith(".parquet")]:
            return of_files(files, None, f"gold set {self.name}")
        # An imported set has no Parquet.
        with told(f"gold set {self.name}"):
            (lines,) = (self.folder / name for name in names if name.endswith(".jsonl"))
            listed = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        return of_dicts(listed, list(listed[0]) if listed else ["id", "label"], f"gold set {self.name}")

    def to_arrow(self, columns: Collection[str] | None = None) -> pa.Table:
        """rows() as an Arrow table."""
        return self.rows().to_arrow(columns)

    def to_pandas(self, columns: Collection[str] | None = None) -> "pd.DataFrame":
        """rows() as a DataFrame. AssayError where pandas is not installed."""
        return self.rows().to_pandas(columns)

    def evaluate(self, predictions: Given | None = None, **how: Any) -> "pd.DataFrame":
        """What predictions are worth on this set; see assay.evaluate, which takes several sets at a time."""
        return evaluate(predictions, [self.folder], **how)

    def report(self, predictions: Given | None = None, **how: Any) -> Report:
        """The whole report on predictions for this set; see assay.report."""
        return report(predictions, [self.folder], **how)

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        posts, labels = sum(self.labels.values()), len(self.labels)
        unfinished = "" if self.manifest["finished"] else ", unfinished"
        return f"Gold set {self.name}: {posts:,} labelled, {labels:,} labels, {self.manifest['design']}{unfinished}"
