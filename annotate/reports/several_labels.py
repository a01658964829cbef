"""Documents with several labels in tables, for the dataset card: splits, buckets, what supports the labels."""

from collections.abc import Callable, Mapping
from typing import Any

from annotate.core.label_shares import FEW, FREQUENT, ZERO
from annotate.reports.numbers import NOT_MEASURED, percent
from annotate.reports.tables import NUMBER, Column, Table, many, numbered, table
from corpora.sources.eurlex import MOST_CONCEPTS

MOST_FREQUENT = 20  # labels that a card names
ALL = "all"

_DOCUMENTS = numbered("documents", "documents")


def split_table(found: Mapping[str, Any]) -> Table:
    """found: the section `concepts` of a manifest, here as below."""
    rows = [{"split": split, **told} for split, told in [*found["splits"].items(), (ALL, found[ALL])]]
    columns = (
        Column("split", "split"),
        _DOCUMENTS,
        numbered("labels", "different labels"),
        Column("mean", "labels a document", NUMBER, lambda row: _two_places(row["mean"])),
        Column("at_most", f"with at most {MOST_CONCEPTS}", NUMBER, lambda row: percent(row["at_most"])),
    )
    return table("Labels by split", columns, rows)


def bucket_table(found: Mapping[str, Any]) -> Table:
    over = found["frequent_over"]
    meaning = {
        FREQUENT: f"in more than {many(over, 'document')} of train",
        FEW: f"in 1 to {over:,} of them" if over > 1 else "in 1 of them",
        ZERO: "in none of them, and in dev or test",
    }
    rows = [{"bucket": bucket, "labels": number} for bucket, number in found["buckets"].items()]
    columns = (
        Column("bucket", "bucket"),
        Column("is", "is", says=lambda row: meaning[row["bucket"]]),
        numbered("labels", "labels"),
    )
    return table("Labels by bucket", columns, rows)


def apart_table(found: Mapping[str, Any]) -> Table:
    columns = (
        Column("splits", "splits", says=lambda row: " and ".join(row["splits"])),
        Column("value", "differ by", NUMBER, lambda row: _three_places(row["value"])),
        Column("chance", "by chance", NUMBER, _by_chance),
    )
    return table("How far the shares of the labels differ", columns, found["apart"])


def vote_table(by_votes: Mapping[str, int]) -> Table:
    """by_votes: how many chose a concept, such as 2 of 3 -> labels given."""
    rows = [{"votes": votes, "labels": number} for votes, number in sorted(by_votes.items(), reverse=True)]
    return table("Votes", (Column("votes", "chosen by"), numbered("labels", "labels given")), rows)


def label_table(by_label: Mapping[str, int], called: Callable[[str], str]) -> Table:
    """The MOST_FREQUENT. by_label: label -> documents; called: its name."""
    first = sorted(by_label.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_FREQUENT]
    rows = [{"id": label, "label": called(label), "documents": number} for label, number in first]
    return table("The most frequent labels", (Column("id", "id"), Column("label", "label"), _DOCUMENTS), rows)


def _by_chance(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return NOT_MEASURED
    return f"{_three_places(row['low'])} to {_three_places(row['high'])}"


def _three_places(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.3f}"


def _two_places(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.2f}"
