"""What is counted of the rows of a set while they are written, for the manifest and the card."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, compress
from typing import Any

from annotate.core import stages
from annotate.goldsets import concepts
from annotate.goldsets.rows import Rows
from annotate.kinds import Kind
from corpora.core.masking import MASK

# What the rows in a set can be counted by, besides their labels: under what they count, None for nowhere.
TALLIES: Mapping[str, Callable[[Rows], Iterable[str | None]]] = {
    "reused": lambda rows: rows.of_set("reused_from"),
    "by_stratum": lambda rows: rows.of_set("stratum"),
    "by_language": lambda rows: rows.of_set("language"),
    "by_split": lambda rows: map("{}.{}".format, rows.of_set("language"), rows.of_set("split")),
    "by_source": lambda rows: map(concepts.source, compress(rows.sources, rows.in_set)),
    "by_votes": lambda rows: chain.from_iterable(map(concepts.votes, compress(rows.sources, rows.in_set))),
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

    def take(self, rows: Rows) -> None:
        self.by_stage.update(rows.columns["stage"])
        self.copies += sum(key is not None for key in rows.columns["judged_as"])
        self.left_out.update(source.left_out for source in rows.sources if source.left_out)
        self.labelled += sum(rows.in_set)
        self.masked += self.masks and sum(MASK in text for text in rows.of_set("text"))
        for label, number in Counter(rows.of_set("label")).items():
            self.by_label.update(dict.fromkeys(self.kind.form.facets(label), number))
        for name, counts in self.tallied.items():
            counts.update(filter(None, TALLIES[name](rows)))

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
