"""Documents with several concepts of a vocabulary: what their rows say, and the figures and the labels of a set."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from annotate.core import label_shares, stages
from annotate.core.splits import SPLITS, TRAIN
from annotate.goldsets.export import Export, Source
from annotate.goldsets.records import ChosenRow, JudgmentRow
from annotate.models import Judgment
from annotate.quality.suggestions import is_blind
from corpora.core.acts import MOST_CONCEPTS
from corpora.models import Vocabulary
from corpora.vocabularies import names_in

# Who a set of concepts is from.
DECLARED, PEOPLE, ADJUDICATOR = "declared", "people", "adjudicator"


# --- rows


def concepts(row: Source) -> list[str]:
    """Where the declared ones stand, in their order: an act is published with them as it came."""
    found = row.export.kind.form.facets(row.judged.label)
    stand = row.judged.stage == stages.AGREED and set(row.item.declared) == set(found)
    return list(row.item.declared if stand else found)


def support(row: Source) -> list[tuple[str, int, int]]:
    """Concepts with their votes, and how many were asked."""
    answers = [each for each in row.judgments if each.kind == Judgment.ANSWER and each.voided_at is None]
    votes = Counter(key for each in answers for key in row.export.kind.form.facets(each.label))
    found = sorted(votes.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(key, number, len(answers)) for key, number in found]


def suggested(row: Source) -> list[str]:
    return row.export.suggested.get(row.judged.pk, [])


def chosen(judgment: JudgmentRow, row: Source) -> tuple[Sequence[ChosenRow], bool | None]:
    """The concepts of a judgment, with what led to each, and whether suggestions were shown to its author; None where
    there were none, and of skips and adjudicators.
    """
    asked = judgment.kind == Judgment.ANSWER and suggested(row)
    shown = not is_blind(judgment.annotator, row.export.task, row.judged.item) if asked else None
    return judgment.chosen, shown


def source(row: Source) -> str:
    """Who the concepts of an exported row are from."""
    if row.judged.stage == stages.AGREED:
        return DECLARED
    settled = any(each.kind == Judgment.SETTLE and not each.voided_at for each in row.judgments)
    return ADJUDICATOR if settled else PEOPLE


def votes(row: Source) -> Iterator[str]:
    """For each concept of an exported row that people gave: how many chose it, such as 2 of 3."""
    if source(row) == PEOPLE:
        told = {key: f"{number} of {asked}" for key, number, asked in support(row)}
        yield from (told[key] for key in concepts(row))


# --- a set


def described(vocabulary: Vocabulary) -> dict[str, Any]:
    """sha256: of all that it says, whatever the format of its files."""
    told = {name: getattr(vocabulary, name) for name in ("name", "version", "sha256")}
    return told | {"concepts": vocabulary.concepts.count()}


def buckets(export: Export) -> dict[str, list[str]]:
    """Bucket -> its labels, sorted."""
    found = label_shares.buckets(export.label_sets, TRAIN, frequent_over=export.frequent_over)
    return {bucket: sorted(labels) for bucket, labels in found.items()}


def summary(export: Export) -> dict[str, Any]:
    """Labels by bucket; documents and labels by split and in all; and how far each two splits that have documents
    differ in the shares of their labels, by total variation, with what 95% of such splits by lot have.
    """
    sets = {split: found for split, found in export.label_sets.items() if found}
    everything = [labels for found in sets.values() for labels in found]
    return {
        "vocabulary": described(export.task.vocabulary),
        "frequent_over": export.frequent_over,
        "buckets": {bucket: len(labels) for bucket, labels in buckets(export).items()},
        "splits": {split: _counted(found) for split, found in sets.items()},
        "all": _counted(everything),
        "apart": [
            {"splits": list(pair), **label_shares.apart(*(sets[split] for split in pair), seed=export.seed)._asdict()}
            for pair in combinations(sets, 2)
        ],
    }


def _counted(documents: list[frozenset[str]]) -> dict[str, Any]:
    """labels: how many different ones; mean: labels a document; at_most: the share of documents that have at most
    MOST_CONCEPTS; both None without documents."""
    labels = label_shares.counts(documents)
    total = len(documents)
    return {
        "documents": total,
        "labels": len(labels),
        "mean": labels.total() / total if total else None,
        "at_most": sum(len(each) <= MOST_CONCEPTS for each in documents) / total if total else None,
    }


def write_labels(path: Path, export: Export) -> None:
    """Each label that any document has, the most frequent first: id, label, documents in train, dev and test, bucket.
    Tabs part them, and the first line names them; labels of a vocabulary have none.
    """
    counted = {split: label_shares.counts(found) for split, found in export.label_sets.items()}
    bucket_of = {label: bucket for bucket, labels in buckets(export).items() for label in labels}
    total = sum(counted.values(), Counter[str]())
    names = names_in(export.task.vocabulary, "en")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(["id", "label", *SPLITS, "bucket"]) + "\n")
        for key in sorted(total, key=lambda key: (-total[key], key)):
            numbers = [str(counted[split][key]) for split in SPLITS]
            file.write("\t".join([key, names[key].text, *numbers, bucket_of[key]]) + "\n")
