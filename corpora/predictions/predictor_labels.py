"""Predictors, which label the posts of a corpus, and their labels.

A predictor is a detector that voted, the majority of detectors, or a set of imported predictions
(prediction_import.py). A coarse class stands for several labels (zh for zh-CN and zh-TW). Ranked predictors can be
looked up here by name; rankings.py reads their labels.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NamedTuple

import pyarrow as pa

from corpora.core import CorpusError, listed
from corpora.core.languages import LANGUAGES, UND, finer
from corpora.core.voters import VOTERS, Votes
from corpora.engines import Store, asking, full_disk_explained
from corpora.storage.layout import (
    Manifest,
    Predictions,
    check_posts,
    check_spelling,
    check_votes,
    corpus_dir,
    manifest_of,
)
from corpora.storage.schemas import PREDICTIONS_SCHEMA

MAJORITY = "majority"  # the language that more than half of the detectors rank first, or und


@dataclass(frozen=True)
class Predictor:
    """A source of one label per post or record.

    version: empty for a built-in predictor
    mapping: labels by the coarse class that stands for them
    """

    name: str
    version: str = ""
    mapping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name

    @property
    def voted(self) -> bool:
        """Whether its labels come from the detectors' votes."""
        return self.name in (*VOTERS, MAJORITY)


def find_predictor(corpus_name: str, spelled: str) -> Predictor:
    """Return a predictor by name: `cld2`, `majority`, `mine@2`, or `mine` if it has one version.

    CorpusError: there is none, or it ranks labels
    """
    if Predictor(spelled).voted:
        coarse = {code: labels for code in LANGUAGES if (labels := finer(code))}
        known = {code: labels for code, labels in coarse.items() if knows(Predictor(spelled), code)}
        return Predictor(spelled, mapping=known)
    found = find_imported(corpus_name, spelled)
    if found.ranked:
        raise CorpusError(
            f"The predictor {found} ranks labels for the records of corpus {corpus_name}, and this needs one that "
            "gives each a single label; name another."
        )
    return Predictor(found.name, found.version, found.mapping)


def find_imported(corpus_name: str, spelled: str) -> Predictions:
    """Return imported predictions by name, ranked or not: `mine@2`, or `mine` if there is one version.

    CorpusError: there are none
    """
    manifest = manifest_of(corpus_name)
    name, _, version = spelled.partition("@")
    found = [each for each in manifest.predictions if each.name == name and version in ("", each.version)]
    if len(found) > 1:
        versions = ", ".join(map(str, found))
        raise CorpusError(f"The predictor {name} has several versions for corpus {corpus_name}; say which: {versions}.")
    if not found:
        there = [*VOTERS, MAJORITY, *map(str, manifest.predictions)]
        near = get_close_matches(spelled, there, n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise CorpusError(
            f"There is no predictor {spelled!r} for corpus {corpus_name}; there is: {', '.join(there)}. {meant}"
            f"Import others with import_predictions {corpus_name} FILE --name NAME --version VERSION."
        )
    return found[0]


def check_name(name: str, version: str, manifest: Manifest, *, ranked: bool = False) -> None:
    """Check that new predictions can have this name and version.

    ranked: whether the new predictions are ranked
    CorpusError: the name or version is invalid, or belongs to predictions of the other type
    """
    check_spelling("predictor", "name", name)
    check_spelling("predictor", "version", version)
    if Predictor(name).voted:
        raise CorpusError(f"{name} is a predictor that every corpus has; choose another name.")
    known = manifest.predictions_of(name, version)
    if known and known.ranked != ranked:
        does = "ranks labels" if known.ranked else "gives each post or record one label"
        raise CorpusError(f"{known} is a predictor that {does}; choose another name or version.")


def knows(predictor: Predictor, code: str) -> bool:
    """Return whether a built-in predictor can return a code. The majority needs more than half of the detectors."""
    by = VOTERS if predictor.name == MAJORITY else (predictor.name,)
    return 2 * sum(code in VOTERS[detector].languages for detector in by) > len(by)


def check_complete(corpus_name: str, predictor: Predictor, manifest: Manifest) -> Predictions | None:
    """Return a predictor's entry in the manifest, or None for a built-in predictor.

    CorpusError: it does not cover all posts
    """
    if predictor.voted:
        check_votes(corpus_name, manifest)
    known = _entry(corpus_name, predictor, manifest)
    if known and known.posts_sha256 != manifest.posts_sha256:
        raise CorpusError(
            f"The predictions of {predictor} cover {known.rows:,} of {manifest.rows:,} posts of corpus {corpus_name}; "
            "import them again with import_predictions, for all posts."
        )
    return known


def _entry(corpus_name: str, predictor: Predictor, manifest: Manifest) -> Predictions | None:
    known = None if predictor.voted else manifest.predictions_of(predictor.name, predictor.version)
    if known is None and not predictor.voted:
        raise CorpusError(f"There are no predictions of {predictor} for corpus {corpus_name}; see import_predictions.")
    return known


@contextmanager
def predicting(
    corpus_name: str,
    predictor: Predictor,
    manifest: Manifest | None = None,
    *,
    complete: bool = True,
    other: Predictor | None = None,
) -> Iterator[Store]:
    """Open a store with the view `predicted` (id, label, score), which has one row for every post.

    The label is und if the predictor returns no language.

    complete: whether predictions must cover all posts; otherwise posts without one have no row
    other: a second predictor, for the view `other_predicted`
    CorpusError: predictions that must be complete are not
    """
    manifest = manifest or manifest_of(corpus_name)
    views = {"predicted": predictor} | ({"other_predicted": other} if other else {})
    entries = {name: (check_complete if complete else _entry)(corpus_name, by, manifest) for name, by in views.items()}
    with asking(corpus_name, manifest=manifest) as store:
        for name, by in views.items():
            _view(store, name, corpus_name, by, entries[name])
        yield store


def _view(store: Store, name: str, corpus_name: str, predictor: Predictor, known: Predictions | None) -> None:
    if known:
        store.view(name, [corpus_dir(corpus_name) / "predictions" / known.file], PREDICTIONS_SCHEMA)
        return
    store.first_votes()
    if predictor.name in VOTERS:
        columns = {"id": "id", "label": predictor.name, "score": f"{predictor.name}_score"}
        store.select(name, "first_votes", columns)
    else:
        store.define(name, "predicted_majority")


def predicted_labels(
    corpus_name: str, predictor: Predictor, ids: Iterable[str], also: Iterable[str] = ()
) -> dict[str, str]:
    """Return a predictor's labels by id. Existing labels stay valid when the corpus grows.

    also: further ids, which are skipped if the corpus lacks them
    CorpusError: an id is not in the corpus or has no prediction
    """
    needed, manifest = list(dict.fromkeys(ids)), manifest_of(corpus_name)
    wanted = list(dict.fromkeys([*needed, *also]))
    with (
        full_disk_explained("the predictions were not read"),
        predicting(corpus_name, predictor, manifest, complete=False) as store,
    ):
        store.rows("asked", pa.table({"id": pa.array(wanted, pa.string())}))
        found: dict[str, str | None] = {}
        for batch in store.query("predicted_of"):
            found.update(zip(batch.column("id").to_pylist(), batch.column("label").to_pylist(), strict=True))
    if missing := [key for key in needed if found[key] is None]:
        check_complete(corpus_name, predictor, manifest)
        raise CorpusError(
            f"Corpus {corpus_name} has no posts with {listed(missing, len(missing), 'id')}. Import them, or list those "
            "that have vanished from their source with --vanished."
        )
    return {key: label for key in wanted if (label := found[key]) is not None}


def triggers(corpus_name: str, predictor: Predictor) -> dict[str, int]:
    """Return the number of posts in the corpus by predicted label, including und."""
    with full_disk_explained("the predictions were not counted"), predicting(corpus_name, predictor) as store:
        return counts(store, "label_counts")


def labels_where(corpus_name: str, predictor: Predictor, other: Predictor) -> dict[str, int]:
    """Return the number of posts by predicted label, counting only posts to which `other` gives a different label."""
    with (
        full_disk_explained("the predictions were not counted"),
        predicting(corpus_name, predictor, other=other) as store,
    ):
        return counts(store, "labels_where_other_differs")


def counts(store: Store, query: str) -> dict[str, int]:
    """Return the rows of a query with the columns label and posts."""
    return {row["label"]: row["posts"] for row in store.found(query)}


# --- The detectors' first languages, counted to forecast their agreement before a draw.


class Voted(NamedTuple):
    """Posts that have the same first language from each detector.

    votes: the first languages only, without scores
    letters: the minimum that was asked for if the texts reach it, else 0
    posts: number of posts
    """

    votes: Votes
    letters: int
    posts: int


def first_votes(corpus_name: str, least_letters: int) -> Iterator[Voted]:
    """Yield counts of all posts in a corpus by first votes.

    least_letters: minimum length that splits the counts (letters)
    CorpusError: the corpus has no posts, posts without votes, or records
    """
    manifest = manifest_of(corpus_name)
    check_posts(corpus_name, manifest)
    if not manifest.rows:
        raise CorpusError(f"Corpus {corpus_name} holds no posts; add some with import_corpus.")
    check_votes(corpus_name, manifest)
    with full_disk_explained("the votes were not counted"), asking(corpus_name, manifest=manifest) as store:
        store.first_votes()
        for row in store.found("first_votes_counted", least_letters):
            votes = {name: [(row[name], 1.0)] if row[name] != UND else [] for name in VOTERS}
            yield Voted(votes, least_letters if row["is_long"] else 0, row["posts"])
