"""Panels of voters that label the items of a corpus by agreement. Voters are detectors or imported predictors.

`panel_named` parses a panel from the user's options, and `check_panel` checks that its voters have voted. A store that
was opened with a panel (engines.open_store) has the panel's votes in the `votes` view.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.core.records import DECLARED
from corpora.core.voters import DEFAULT, VOTERS, Panel, Votes, panel_of
from corpora.engines import explain_full_disk, open_store
from corpora.predictions.predictor_labels import Predictor, check_complete, find_imported, triggers
from corpora.storage.layout import Manifest, check_votes, manifest_of


def panel_named(corpus_name: str, names: Sequence[str], agree: int | None = None) -> Panel:
    """Return a panel for a corpus.

    names: names of registered voters, such as cld2, and of imported predictors, such as mine@1, or mine if it has only
        one version
    agree: number of voters that must agree; None for all

    Raise CorpusError if a voter does not exist or cannot vote on the corpus, or if the panel is not valid.
    """
    manifest, voters = manifest_of(corpus_name), []
    of_posts = not manifest.fields
    for name in names:
        if name in VOTERS:
            if not of_posts:
                raise CorpusError(
                    f"{name} votes on the languages of posts, but corpus {corpus_name} contains records. Use imported "
                    "predictors.",
                    "voters",
                )
            voters.append(name)
        else:
            voters.append(str(find_imported(corpus_name, name, manifest.voters if of_posts else ())))
    try:
        return panel_of(voters, agree)
    except ValueError as error:
        raise CorpusError(str(error), "voters") from error


def check_panel(corpus_name: str, manifest: Manifest, panel: Panel, parts: int | None = None) -> list[str]:
    """Check that the voters of a panel have voted on the items of a corpus. Return the imported predictions' digests.

    parts: number of parts to check, starting with the first; None for all

    Raise CorpusError if a voter has not voted.
    """
    if not manifest.fields:  # posts always need votes, because the letter counts are stored with them
        check_votes(corpus_name, manifest, parts, panel.registered)
    digests = []
    for name in panel.imported:
        predictions = find_imported(corpus_name, name)
        if parts is None and not predictions.ranked:
            check_complete(corpus_name, Predictor(predictions.name, predictions.version), manifest)
        digests.append(predictions.sha256)
    return digests


def supported_labels(corpus_name: str, panel: Panel) -> set[str] | None:
    """Return the labels that all of a panel's imported voters support, or None if it has none.

    A predictor supports the labels that it assigned in the corpus. A ranked predictor is taken to support all labels.
    """
    label_sets: list[set[str]] = []
    for name in panel.imported:
        predictions = find_imported(corpus_name, name)
        if not predictions.ranked:
            label_sets.append({*triggers(corpus_name, Predictor(predictions.name, predictions.version))} - {UND})
    return set.intersection(*label_sets) if label_sets else None


# --- Counts of the voters' first labels, for forecasts of the agreement before a draw.


class VoteCount(NamedTuple):
    """The number of items with the same first votes.

    votes: each voter's first label, always with a score of 1
    letters: the requested minimum (`least_letters`) for long texts, 0 for short texts
    posts: number of items
    """

    votes: Votes
    letters: int
    posts: int


def first_votes(corpus_name: str, least_letters: int, panel: Panel = DEFAULT) -> Iterator[VoteCount]:
    """Count the items in a corpus, grouped by the first labels of a panel's voters and by length.

    least_letters: minimum number of letters in a long text

    Raise CorpusError if one of the voters has not voted on all items.
    """
    manifest = manifest_of(corpus_name)
    check_panel(corpus_name, manifest, panel)
    with (
        explain_full_disk("the votes were not counted"),
        open_store(corpus_name, manifest=manifest, panel=panel) as store,
    ):
        store.first_votes()
        for row in store.fetch("first_votes_counted", least_letters):
            votes = {name: [(row[name], 1.0)] if row[name] != UND else [] for name in panel.voters}
            yield VoteCount(votes, least_letters if row["is_long"] else 0, row["posts"])


class ComparedCount(NamedTuple):
    """The number of items with the same first votes, language and true labels.

    language: language of the records; empty for posts
    truth: true labels; None if unknown
    """

    voted: VoteCount
    language: str
    truth: tuple[str, ...] | None


def compared_votes(
    corpus_name: str, least_letters: int, panel: Panel, truth: Mapping[str, str] | None
) -> Iterator[ComparedCount]:
    """Count items as first_votes does, but also grouped by the records' language and by the true labels.

    truth: true labels of some items, by id; None to use the records' declared labels

    Raise CorpusError if one of the voters has not voted on all items, or if the records have no labels.
    """
    manifest = manifest_of(corpus_name)
    check_panel(corpus_name, manifest, panel)
    if truth is None and not manifest.declared:
        raise CorpusError(
            f"Corpus {corpus_name} has no declared labels. Set --truth to a gold set, or to a file with the columns id "
            "and label.",
            "truth",
        )
    reading = explain_full_disk("the votes were not counted")
    with reading, open_store(corpus_name, manifest=manifest, panel=panel) as store:
        store.first_votes()
        if manifest.fields:
            store.select("places", "posts", {"id": "id", "language": "language"})
        else:
            store.rows("places", pa.table([pa.array([], pa.string())] * 2, ["id", "language"]))
        if truth is None:
            store.select("truths", "posts", {"id": "id", "labels": DECLARED})
        else:
            labels = pa.array([[label] for label in truth.values()], pa.list_(pa.string()))
            store.rows("truths", pa.table([pa.array(truth.keys(), pa.string()), labels], ["id", "labels"]))
        for row in store.fetch("first_votes_compared", least_letters):
            votes = {name: [(row[name], 1.0)] if row[name] != UND else [] for name in panel.voters}
            voted = VoteCount(votes, least_letters if row["is_long"] else 0, row["items"])
            yield ComparedCount(voted, row["language"] or "", tuple(row["labels"]) if row["labels"] else None)
