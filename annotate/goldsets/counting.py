"""What is counted of the rows of a set while they are written, for the manifest and the card."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from annotate.core import stages
from annotate.goldsets import concepts
from annotate.goldsets.arrays import each, or_none
from annotate.goldsets.rows import Rows
from annotate.kinds import Kind
from corpora.core.masking import MASK


def _by_split(rows: Rows) -> pa.Array:
    return each("{}.{}".format, pa.string(), rows.of_set("language"), rows.of_set("split"))


def _agreed_by(rows: Rows) -> pa.Array:
    """Who gave the labels of the stratum agreed: people, where the same text was audited."""
    return rows.of_set("decided_by").filter(pc.equal(rows.of_set("stratum"), "agreed"))


# What the rows in a set can be counted by, besides their labels: under what they count, None for nowhere.
TALLIES: Mapping[str, Callable[[Rows], pa.Array]] = {
    "reused": lambda rows: rows.of_set("reused_from"),
    "by_stratum": lambda rows: rows.of_set("stratum"),
    "agreed_by": _agreed_by,
    "by_language": lambda rows: rows.of_set("language"),
    "by_split": _by_split,
    "by_source": lambda rows: concepts.sources(rows.source).filter(rows.source.in_set),
    "by_votes": lambda rows: pa.array(concepts.votes(rows.source), pa.string()),
}


def counted(values: pa.Array) -> Counter[Any]:
    """Each value but None -> how often it is there."""
    return Counter({each["values"]: each["counts"] for each in values.drop_null().value_counts().to_pylist()})


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

    def taken(self, rows: Rows) -> Rows:
        """The same rows, which are counted now."""
        left_out = rows.source.left_out
        self.by_stage += counted(rows.columns["stage"])
        self.copies += len(rows.columns["judged_as"].drop_null())
        self.left_out += counted(or_none(left_out))
        self.labelled += rows.source.in_set.true_count
        self.masked += self.masks and pc.match_substring(rows.of_set("text"), MASK).true_count
        for label, number in counted(rows.of_set("label")).items():
            self.by_label.update(dict.fromkeys(self.kind.form.facets(label), number))
        for name, counts in self.tallied.items():
            counts.update(counted(TALLIES[name](rows)))
        return rows

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
