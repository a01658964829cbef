"""Predictors, and the labels that they assign to the posts of a corpus.

A predictor is a detector that voted, the majority of the default panel, or a set of imported predictions
(prediction_import.py). It can assign coarse classes, each of which stands for several labels: `zh` stands for `zh-CN`
and `zh-TW`. Ranked predictors can be looked up here by name, but their labels are read by rankings.py.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches

from corpora.core import CorpusError, listed
from corpora.core.languages import LANGUAGES, finer
from corpora.core.voters import DEFAULT, VOTERS
from corpora.engines import Store, explain_full_disk, open_store, texts
from corpora.storage import layout
from corpora.storage.layout import Manifest, Predictions
from corpora.storage.schemas import PREDICTIONS_SCHEMA

MAJORITY = "majority"  # predicts the language that more than half of the default panel rank first, or `und`


@dataclass(frozen=True)
class Predictor:
    """A source of a single label for each post or record.

    version: version of imported predictions; "" for a built-in predictor
    mapping: the labels in each coarse class
    """

    name: str
    version: str = ""
    mapping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name

    @property
    def voted(self) -> bool:
        """Whether the predictor is built in, so that its labels come from the detectors' votes."""
        return self.name in (*VOTERS, MAJORITY)

    @property
    def detectors(self) -> tuple[str, ...]:
        """The detectors whose votes a built-in predictor needs."""
        return DEFAULT.voters if self.name == MAJORITY else (self.name,)


def find_predictor(corpus_name: str, spelled: str) -> Predictor:
    """Return a predictor by name: `cld2`, `majority`, `mine@2`, or `mine` if it has only one version.

    Raise CorpusError if there is no such predictor, or if it is ranked.
    """
    if Predictor(spelled).voted:
        coarse = {code: labels for code in LANGUAGES if (labels := finer(code))}
        mapping = {code: labels for code, labels in coarse.items() if can_assign(Predictor(spelled), code)}
        return Predictor(spelled, mapping=mapping)
    manifest = layout.manifest_of(corpus_name)
    predictions = find_imported(corpus_name, spelled, () if manifest.fields else (*manifest.voters, MAJORITY))
    if predictions.ranked:
        raise CorpusError(
            f"The predictor {predictions} of corpus {corpus_name} ranks labels, but a predictor that assigns one label "
            "per record is required. Choose another."
        )
    return Predictor(predictions.name, predictions.version, predictions.mapping)


def find_imported(corpus_name: str, spelled: str, others: Iterable[str] = ()) -> Predictions:
    """Return imported predictions by name: `mine@2`, or `mine` if there is only one version. They can be ranked.

    others: other predictors that the caller accepts, to list in the error message

    Raise CorpusError if there are no such predictions, or if the name is ambiguous.
    """
    manifest = layout.manifest_of(corpus_name)
    name, _, version = spelled.partition("@")
    matches = [
        predictions
        for predictions in manifest.predictions
        if predictions.name == name and version in ("", predictions.version)
    ]
    if len(matches) > 1:
        versions = ", ".join(map(str, matches))
        raise CorpusError(f"The predictor {name} of corpus {corpus_name} has several versions. Use one of {versions}.")
    if not matches:
        names = [*others, *map(str, manifest.predictions)] or ["none"]
        similar = get_close_matches(spelled, names, n=1)
        hint = f"Did you mean {similar[0]}? " if similar else ""
        raise CorpusError(
            f"Corpus {corpus_name} has no predictor {spelled!r}. Available predictors: {', '.join(names)}. {hint}"
            f"Import others with import_predictions {corpus_name} FILE --name NAME --version VERSION."
        )
    return matches[0]


def check_name(name: str, version: str, manifest: Manifest, *, ranked: bool = False) -> None:
    """Raise CorpusError if new predictions cannot have this name and version.

    The name or version may be invalid, or belong to existing predictions of the other type (ranked or not).

    ranked: whether the new predictions are ranked
    """
    layout.check_spelling("predictor", "name", name)
    layout.check_spelling("predictor", "version", version)
    if Predictor(name).voted:
        raise CorpusError(f"{name} is the name of a built-in predictor. Choose another name.")
    existing = manifest.predictions_of(name, version)
    if existing and existing.ranked != ranked:
        behaviour = "ranks labels" if existing.ranked else "assigns one label to each post or record"
        raise CorpusError(f"The predictor {existing} already exists and {behaviour}. Choose another name or version.")


def can_assign(predictor: Predictor, code: str) -> bool:
    """Return whether a built-in predictor can assign a code. The majority needs more than half of its detectors."""
    detectors = predictor.detectors
    return 2 * sum(code in VOTERS[detector].languages for detector in detectors) > len(detectors)


def check_complete(
    corpus_name: str, predictor: Predictor, manifest: Manifest, *, complete: bool = True
) -> Predictions | None:
    """Return a predictor's entry in the manifest, or None if the predictor is built in.

    complete: whether the predictor must cover all posts

    Raise CorpusError if the predictor must cover all posts but doesn't, or if the corpus has no such predictions.
    """
    if predictor.voted:
        if complete:
            layout.check_votes(corpus_name, manifest, voters=predictor.detectors)
        return None
    entry = manifest.predictions_of(predictor.name, predictor.version)
    if entry is None:
        raise CorpusError(f"Corpus {corpus_name} has no predictions by {predictor}. Use import_predictions.")
    if complete and entry.posts_sha256 != manifest.posts_sha256:
        raise CorpusError(
            f"The predictions of {predictor} cover only {entry.rows:,} of {manifest.rows:,} posts in corpus "
            f"{corpus_name}. Import predictions for all posts with import_predictions."
        )
    return entry


@contextmanager
def open_predictions(
    corpus_name: str,
    predictor: Predictor,
    manifest: Manifest | None = None,
    *,
    complete: bool = True,
    other: Predictor | None = None,
) -> Iterator[Store]:
    """Open a store with the `predicted` view (id, label, score), which has a row for each post.

    The label is `und` if the predictor assigns no language.

    complete: whether the predictions must cover all posts; otherwise, posts without a prediction have no row
    other: second predictor, whose labels are in the `other_predicted` view

    Raise CorpusError if the predictions must cover all posts but don't.
    """
    manifest = manifest or layout.manifest_of(corpus_name)
    views = {"predicted": predictor} | ({"other_predicted": other} if other else {})
    entries = {name: check_complete(corpus_name, source, manifest, complete=complete) for name, source in views.items()}
    detectors = dict.fromkeys(name for source in views.values() if source.voted for name in source.detectors)
    with open_store(corpus_name, manifest=manifest) as store:
        if detectors:
            store.first_votes(detectors)
        for name, source in views.items():
            _view(store, name, corpus_name, source, entries[name])
        yield store


def _view(store: Store, name: str, corpus_name: str, predictor: Predictor, entry: Predictions | None) -> None:
    if entry:
        store.view(name, [layout.corpus_dir(corpus_name) / "predictions" / entry.file], PREDICTIONS_SCHEMA)
        return
    if predictor.name in VOTERS:
        columns = {"id": "id", "label": predictor.name, "score": f"{predictor.name}_score"}
        store.select(name, "first_votes", columns)
    else:
        store.define(name, "predicted_majority")


def predicted_labels(
    corpus_name: str, predictor: Predictor, ids: Iterable[str], also: Iterable[str] = ()
) -> dict[str, str]:
    """Return the predictor's labels by id. The predictor need not cover posts that were added to the corpus later.

    ids: ids of posts that must have a prediction
    also: additional ids, which are omitted if they are not in the corpus

    Raise CorpusError if one of `ids` is not in the corpus or has no prediction.
    """
    needed, manifest = list(dict.fromkeys(ids)), layout.manifest_of(corpus_name)
    all_ids = list(dict.fromkeys([*needed, *also]))
    with (
        explain_full_disk("the predictions were not read"),
        open_predictions(corpus_name, predictor, manifest, complete=False) as store,
    ):
        store.rows("asked", texts(id=all_ids))
        labels: dict[str, str | None] = {}
        for batch in store.query("predicted_of"):
            labels.update(zip(batch.column("id").to_pylist(), batch.column("label").to_pylist(), strict=True))
    if missing := [key for key in needed if labels[key] is None]:
        check_complete(corpus_name, predictor, manifest)
        raise CorpusError(
            f"Corpus {corpus_name} has no posts with {listed(missing, len(missing), 'id')}. Import them, or list posts "
            "that no longer exist in their source with --vanished."
        )
    return {key: label for key in all_ids if (label := labels[key]) is not None}


def triggers(corpus_name: str, predictor: Predictor) -> dict[str, int]:
    """Count the posts to which the predictor assigns each label, including `und`."""
    with explain_full_disk("the predictions were not counted"), open_predictions(corpus_name, predictor) as store:
        return counts(store, "label_counts")


def count_differing(corpus_name: str, predictor: Predictor, other: Predictor) -> dict[str, int]:
    """Count the posts that the two predictors label differently, by the first predictor's label."""
    with (
        explain_full_disk("the predictions were not counted"),
        open_predictions(corpus_name, predictor, other=other) as store,
    ):
        return counts(store, "labels_where_other_differs")


def counts(store: Store, query: str) -> dict[str, int]:
    """Run a query with the columns `label` and `posts`, and return the number of posts by label."""
    return {row["label"]: row["posts"] for row in store.fetch(query)}
