"""What is counted of the rows of a set while they are written, for the manifest and the card."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from annotate.core import stages
from annotate.goldsets import concepts
from annotate.kinds import Kind
from corpora.core.masking import MASK

# What the rows in a set can be counted by, besides their labels: under what each row counts, None for nowhere.
TALLIES: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str | None]]] = {
    "reused": lambda row: [row["reused_from"]],
    "by_stratum": lambda row: [row["stratum"]],
    "by_language": lambda row: [row["language"]],
    "by_split": lambda row: [f"{row['language']}.{row['split']}"],
    "by_source": lambda row: [concepts.source(row)],
    "by_votes": concepts.votes,
}


class Counts:
    """Counts of the rows that pass through. A label is counted by its facets: if it names several things,
    each counts. with_text: whether the rows have the text of a post, so that masks in it can be counted.
    """

    def __init__(self, kind: Kind, *, with_text: bool):
        self.kind = kind
        # Records, which have fields, are not masked.
        self.masks = with_text and not kind.fields
        self.copies = self.labelled = self.masked = 0
        self.by_stage: Counter[str] = Counter()
        self.by_label: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.tallied: dict[str, Counter[str]] = {name: Counter() for name in kind.tallies}

    def take(self, row: Mapping[str, Any], left_out: str) -> None:
        """left_out: why the row is not in the set; empty if it is."""
        self.by_stage[row["stage"]] += 1
        self.copies += row["judged_as"] is not None
        if left_out:
            self.left_out[left_out] += 1
            return
        self.labelled += 1
        self.masked += self.masks and MASK in row["text"]
        self.by_label.update(self.kind.form.facets(row["label"]))
        for name, counts in self.tallied.items():
            counts.update(counted for counted in TALLIES[name](row) if counted)

    @property
    def total(self) -> int:
        return self.by_stage.total()

    def as_dict(self) -> dict[str, Any]:
        counted = {"left_out": self.left_out, **self.tallied, "by_stage": self.by_stage, "by_label": self.by_label}
        return {
            f"{self.kind.noun}s": self.total,
            "labelled": self.labelled,
            "unfinished": sum(count for stage, count in self.by_stage.items() if stage not in stages.FINISHED),
            "copies": self.copies,
            **({"masked": self.masked} if self.masks else {}),
            **{name: dict(sorted(counts.items())) for name, counts in counted.items()},
        }
