"""Columns, statistics and tables for three kinds of sets: documents with concepts, system comparisons, and spans."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from annotate.controls.chosen_concepts import buckets
from annotate.core import stages
from annotate.core.draws import splits
from annotate.core.draws.splits import FEW, FREQUENT, ZERO
from annotate.goldsets.export import Export, Source
from annotate.goldsets.unit_rows import live
from annotate.kinds.concept_kind import version_of
from annotate.kinds.forms.spans import spans_in
from annotate.kinds.kind import DOCUMENT
from annotate.models import Judgment
from annotate.reports.numbers import NOT_MEASURED, percent
from annotate.reports.tables import NUMBER, Column, Table, many, numbered, numbers, table
from corpora.core.arrow import pc
from corpora.core.values import word_count
from corpora.database.bulk_rows import map_rows
from corpora.models import Vocabulary
from corpora.sources.eurlex import MOST_CONCEPTS
from corpora.threads.messages import comparison_key

SUPPORT = pa.struct([("concept", pa.string()), ("votes", pa.int32()), ("asked", pa.int32())])
# The possible sources of a document's concepts.
DECLARED, PEOPLE, ADJUDICATOR = "declared", "people", "adjudicator"


# --- Rows


def concepts(rows: Source) -> pa.Array:
    """Return each row's concepts. Concepts that no annotator reviewed keep their declared order."""
    facets, judged = rows.export.kind.form.facets, rows.judged

    def in_order(label: str, stage: str, declared: str) -> Sequence[str]:
        as_declared = json.loads(declared)
        is_unreviewed = stage == stages.AGREED and set(as_declared) == set(facets(label))
        return as_declared if is_unreviewed else facets(label)

    columns = (judged["label"], judged["stage"], rows.unit["item__declared"])
    return map_rows(in_order, pa.list_(pa.string()), *columns)


def support(rows: Source) -> pa.Array:
    """Return the concepts that annotators chose for each row, with their votes and the number of valid answers."""
    return pa.array(_support(rows), pa.list_(SUPPORT))


def _support(rows: Source) -> list[list[tuple[str, int, int]]]:
    facets, support = rows.export.kind.form.facets, []
    for answers in rows.judgments.filter(live(rows.judgments, Judgment.ANSWER)).tuples("label"):
        votes = Counter(key for (label,) in answers for key in facets(label))
        most_chosen = sorted(votes.items(), key=lambda pair: (-pair[1], pair[0]))
        support.append([(key, number, len(answers)) for key, number in most_chosen])
    return support


def suggested(rows: Source) -> pa.Array:
    suggested = rows.export.suggested
    return pa.array([suggested.get(unit, []) for unit in rows.judged["pk"].to_pylist()], pa.list_(pa.string()))


def sources(rows: Source) -> pa.Array:
    """Return the source of each row's concepts."""
    settled = pa.array(rows.judgments.count(live(rows.judgments, Judgment.SETTLE)) > 0)
    by_people = pc.if_else(settled, ADJUDICATOR, PEOPLE)
    return pc.if_else(pc.equal(rows.judged["stage"], stages.AGREED), DECLARED, by_people)


def votes(rows: Source) -> list[str]:
    """Return the votes for each concept as strings such as "2 of 3".

    Only rows in the set are included, and only if annotators chose their concepts.
    """
    votes = []
    columns = rows.in_set.to_pylist(), sources(rows).to_pylist(), concepts(rows).to_pylist(), _support(rows)
    for in_set, source, keys, support in zip(*columns, strict=True):
        if in_set and source == PEOPLE:
            by_key = {key: f"{number} of {people}" for key, number, people in support}
            votes += [by_key[key] for key in keys]
    return votes


# --- A set


def describe_vocabulary(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return a vocabulary's name, version, number of concepts and SHA-256 digest.

    The digest depends on the vocabulary's content, not on its file format.
    """
    values = {name: getattr(vocabulary, name) for name in ("name", "version", "sha256")}
    return values | {"concepts": vocabulary.concepts.count()}


def summary(export: Export) -> dict[str, Any]:
    """Return the statistics of a set's labels and documents.

    buckets: number of labels in each bucket.
    splits, all: document and label counts for each split and for the whole set; empty splits are omitted.
    words: mean, median and maximum number of words in each zone of a document, and in all zones.
    apart: for each pair of splits, the total variation distance between their label distributions, and the 95% range of
        this distance for random splits.
    """
    sets = {split: documents for split, documents in export.label_sets.items() if documents}
    all_documents = [labels for documents in sets.values() for labels in documents]
    return {
        "vocabulary": describe_vocabulary(version_of(export.task)),
        "frequent_over": export.frequent_over,
        "buckets": {bucket: len(labels) for bucket, labels in buckets(export).items()},
        "splits": {split: _count_labels(documents) for split, documents in sets.items()},
        "all": _count_labels(all_documents),
        "words": _words(export),
        "apart": [
            {
                "splits": list(pair),
                **splits.compare_splits(*(sets[split] for split in pair), seed=export.seed)._asdict(),
            }
            for pair in combinations(sets, 2)
        ],
    }


def _count_labels(documents: list[frozenset[str]]) -> dict[str, Any]:
    """Count the documents and labels.

    labels: number of distinct labels.
    mean: mean number of labels per document; None if there are no documents.
    at_most: share of documents with at most MOST_CONCEPTS labels; None if there are no documents.
    """
    labels = splits.counts(documents)
    total = len(documents)
    return {
        "documents": total,
        "labels": len(labels),
        "mean": labels.total() / total if total else None,
        "at_most": sum(len(concepts) <= MOST_CONCEPTS for concepts in documents) / total if total else None,
    }


def _words(export: Export) -> dict[str, dict[str, float]]:
    """Return word count statistics by zone. A zone is a field that is shown as part of the document."""
    zones = [field for block in export.kind.layout if block.style == DOCUMENT for field in block.fields]
    if not zones:
        return {}
    fields = (json.loads(text) for units in export.in_set() for text in units.unit["item__fields"].to_pylist())
    words = np.array([[word_count(values[zone]) for zone in zones] for values in fields], int).reshape(-1, len(zones))
    if not words.size:
        return {}
    by_zone = {**dict(zip(zones, words.T, strict=True)), ALL: words.sum(axis=1)}
    return {
        zone: {"mean": float(n.mean()), "median": float(np.median(n)), "most": float(n.max())}
        for zone, n in by_zone.items()
    }


# --- Tables for the dataset card


MOST_FREQUENT = 20  # labels shown on a card
ALL = "all"

_DOCUMENTS = numbered("documents", "documents")


def split_table(section: Mapping[str, Any]) -> Table:
    """Return the table of labels by split.

    section: section `concepts` of the manifest, as in the functions below.
    """
    rows = [{"split": split, **counts} for split, counts in [*section["splits"].items(), (ALL, section[ALL])]]
    columns = (
        Column("split", "split"),
        _DOCUMENTS,
        numbered("labels", "different labels"),
        Column("mean", "labels a document", NUMBER, lambda row: _places(row["mean"], 2)),
        Column("at_most", f"with at most {MOST_CONCEPTS}", NUMBER, lambda row: percent(row["at_most"])),
    )
    return table("Labels by split", columns, rows)


def word_table(section: Mapping[str, Any]) -> Table:
    rows = [{"zone": zone, **words} for zone, words in section["words"].items()]
    headings = {"mean": "words a document", "median": "median", "most": "longest"}
    return table("Words by zone", (Column("zone", "zone"), *numbers(headings)), rows)


def bucket_table(section: Mapping[str, Any]) -> Table:
    over = section["frequent_over"]
    meaning = {
        FREQUENT: f"in more than {many(over, 'document')} of train",
        FEW: f"in 1 to {over:,} of them" if over > 1 else "in 1 of them",
        ZERO: "in none of them, and in dev or test",
    }
    rows = [{"bucket": bucket, "labels": number} for bucket, number in section["buckets"].items()]
    columns = (
        Column("bucket", "bucket"),
        Column("is", "is", says=lambda row: meaning[row["bucket"]]),
        numbered("labels", "labels"),
    )
    return table("Labels by bucket", columns, rows)


def apart_table(section: Mapping[str, Any]) -> Table:
    def chance(row: Mapping[str, Any]) -> str:
        return NOT_MEASURED if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}"

    columns = (
        Column("splits", "splits", says=lambda row: " and ".join(row["splits"])),
        Column("value", "differ by", NUMBER, lambda row: _places(row["value"], 3)),
        Column("chance", "by chance", NUMBER, chance),
    )
    return table("Differences between the label distributions", columns, section["apart"])


def vote_table(by_votes: Mapping[str, int]) -> Table:
    """Return the table of votes.

    by_votes: number of labels by their votes, such as "2 of 3".
    """
    rows = [{"votes": votes, "labels": number} for votes, number in sorted(by_votes.items(), reverse=True)]
    return table("Votes", (Column("votes", "chosen by"), numbered("labels", "labels given")), rows)


def label_table(by_label: Mapping[str, int], name_of: Callable[[str], str]) -> Table:
    """Return the table of the MOST_FREQUENT labels.

    by_label: number of documents by label.
    name_of: function that returns a label's name.
    """
    first = sorted(by_label.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_FREQUENT]
    rows = [{"id": label, "label": name_of(label), "documents": number} for label, number in first]
    return table("The most frequent labels", (Column("id", "id"), Column("label", "label"), _DOCUMENTS), rows)


def _places(value: float | None, places: int) -> str:
    return NOT_MEASURED if value is None else f"{value:.{places}f}"


# --- Comparisons of two systems: columns of the rows, and a section of the manifest


REPLIES = pa.struct([("system", pa.string()), ("replies", pa.list_(pa.string()))])
PREFERRED = pa.struct([("label", pa.string()), ("votes", pa.int32())])


def systems(rows: Source) -> pa.Array:
    columns = (rows.unit[f"comparison__system_{side}"] for side in "ab")
    return map_rows(lambda *pair: pair, pa.list_(pa.string()), *columns)


def replies(rows: Source) -> pa.Array:
    columns = (rows.unit[f"comparison__{name}_{side}"].to_pylist() for side in "ab" for name in ("system", "replies"))
    pairs = [
        [(system_a, json.loads(replies_a)), (system_b, json.loads(replies_b))]
        for system_a, replies_a, system_b, replies_b in zip(*columns, strict=True)
    ]
    return pa.array(pairs, pa.list_(REPLIES))


def preferred(rows: Source) -> pa.Array:
    """Return each row's number of valid answers for each system and for a tie. Ties come last."""
    answers = rows.judgments.filter(live(rows.judgments, Judgment.ANSWER))
    counts = (Counter(label for (label,) in row_answers) for row_answers in answers.tuples("label"))
    votes = [[(label, row[label]) for label in rows.export.task.labels if row[label]] for row in counts]
    return pa.array(votes, pa.list_(PREFERRED))


def section(export: Export) -> dict[str, Any]:
    """Return the manifest's section on the compared systems.

    messages: number of distinct messages.
    copies: number of rows that are copies of a comparison.
    equal: number of comparisons that were not annotated, because both systems suggest the same replies.
    """
    units, parameters = export.task.units.exported(), export.draw.parameters
    message, comparisons = export.kind.fields[0], units.filter(copy_of=None)
    items = units.order_by().values_list("item", "item__language", "item__fields").distinct().iterator()
    return {
        "systems": parameters["systems"],
        "records": parameters["records"],
        "messages": len({(language, comparison_key(fields[message])) for _, language, fields in items}),
        "comparisons": comparisons.count(),
        "copies": units.exclude(copy_of=None).count(),
        "equal": comparisons.filter(stage=stages.AGREED).count(),
    }


# --- Spans


SPAN = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("label", pa.string()), ("text", pa.string())])


def spans(rows: Source) -> pa.Array:
    """Return the spans in each row's label, or null without a label. Include the text if it may be published."""
    field = rows.export.kind.publication.marked
    values = [
        [(*span, fields[field][span.start : span.end] if rows.export.with_text else None) for span in spans_in(label)]
        if label
        else None
        for label, fields in zip(rows.judged["label"].to_pylist(), rows.fields, strict=True)
    ]
    return pa.array(values, pa.list_(SPAN))
