"""Panels of voters that label the items of a corpus by agreement: detectors, and imported predictors.

`panel_named` reads a panel as a user writes it, and `check_panel` checks that its voters have voted. A store that
engines.asking opens with a panel has its votes in the view `votes`. The rest of the program needs only the names.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.core.records import DECLARED
from corpora.core.voters import DEFAULT, VOTERS, Panel, Votes, panel_of
from corpora.engines import asking, full_disk_explained
from corpora.predictions.predictor_labels import Predictor, check_complete, find_imported, triggers
from corpora.storage.layout import Manifest, check_votes, manifest_of


def panel_named(corpus_name: str, names: Sequence[str], agree: int | None = None) -> Panel:
    """Return a panel of a corpus.

    names: the names of registered voters, such as cld2, and of imported predictors, such as mine@1, or mine if it has
        only one version
    agree: how many voters must agree; None for all

    Raise CorpusError if a voter does not exist or cannot vote on the corpus, or if they cannot be a panel.
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
    """Check that the voters of a panel have voted on the items of a corpus.

    parts: check only this many parts, starting with the first; None for all

    Raise CorpusError if a voter has not. Return the digests of the imported predictions.
    """
    if not manifest.fields:  # The numbers of letters come with the votes, so posts need votes in any case.
        check_votes(corpus_name, manifest, parts, panel.registered)
    digests = []
    for name in panel.imported:
        predictions = find_imported(corpus_name, name)
        if parts is None and not predictions.ranked:
            check_complete(corpus_name, Predictor(predictions.name, predictions.version), manifest)
        digests.append(predictions.sha256)
    return digests


def supported_labels(corpus_name: str, panel: Panel) -> set[str] | None:
    """Return the labels that all imported voters of a panel know, or None if it has none.

    A predictor knows the labels that it assigned to an item of the corpus. A ranked predictor may know any label.
    """
    label_sets: list[set[str]] = []
    for name in panel.imported:
        predictions = find_imported(corpus_name, name)
        if not predictions.ranked:
            label_sets.append({*triggers(corpus_name, Predictor(predictions.name, predictions.version))} - {UND})
    return set.intersection(*label_sets) if label_sets else None


# --- Counts of the labels that the voters rank first. They are used to forecast the agreement before a draw.


class Voted(NamedTuple):
    """A count of items on which each voter ranks the same label first.

    votes: for each voter, only the label that it ranks first; its score is always 1
    letters: the requested minimum if the texts have at least this many letters, otherwise 0
    posts: the number of items
    """

    votes: Votes
    letters: int
    posts: int


def first_votes(corpus_name: str, least_letters: int, panel: Panel = DEFAULT) -> Iterator[Voted]:
    """Yield counts of the items in a corpus, grouped by the labels that the voters of a panel rank first.

    least_letters: long and short texts are counted separately, and a text is long if it has at least this many letters

    Raise CorpusError if one of the voters has not voted on all items.
    """
    manifest = manifest_of(corpus_name)
    check_panel(corpus_name, manifest, panel)
    with (
        full_disk_explained("the votes were not counted"),
        asking(corpus_name, manifest=manifest, panel=panel) as store,
    ):
        store.first_votes()
        for row in store.fetch("first_votes_counted", least_letters):
            votes = {name: [(row[name], 1.0)] if row[name] != UND else [] for name in panel.voters}
            yield Voted(votes, least_letters if row["is_long"] else 0, row["posts"])


class Compared(NamedTuple):
    """A count of items like Voted, in one language and with one truth.

    language: the language of records; empty for posts
    truth: the true labels; None if they are unknown
    """

    voted: Voted
    language: str
    truth: tuple[str, ...] | None


def compared_votes(
    corpus_name: str, least_letters: int, panel: Panel, truth: Mapping[str, str] | None
) -> Iterator[Compared]:
    """Yield counts like first_votes, also grouped by the language of records and by the true labels.

    truth: the true label of some items, by id; None for the labels that came with records

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
    reading = full_disk_explained("the votes were not counted")
    with reading, asking(corpus_name, manifest=manifest, panel=panel) as store:
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
            voted = Voted(votes, least_letters if row["is_long"] else 0, row["items"])
            yield Compared(voted, row["language"] or "", tuple(row["labels"]) if row["labels"] else None)
