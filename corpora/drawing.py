"""Draws: a seeded sample of a corpus, made items in the database.

The order of a draw is that of a hash of seed and id, so the same seed draws the same posts on any engine and a larger
draw contains the smaller. In a draw for one language the hash is of seed, language and id: no two languages' draws hang
together, and a language's is the same whichever others are drawn for at the time. What is asked about the items is no
matter of this room.
"""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from django.db import transaction

from corpora.core.voting import DETECTOR_NAMES
from corpora.designs import (
    HISTORY,
    LEAST_POSTS,
    SHARE,
    WINDOW,
    Design,
    Window,
    precision_design,
    recall_design,
    take,
)
from corpora.errors import CorpusError
from corpora.models import Corpus, Draw, Item
from corpora.predictors import Predictor, check_complete, predicting
from corpora.record_design import check_posts, check_records, rows_of, take_records
from corpora.store import Manifest, Predictions, asking, full_disk_explained, manifest_of

_BATCH_ROWS = 1_000


@dataclass(frozen=True)
class Sample:
    """What a draw took from the files, before anything of it is in the database.

    rows: those of the query, in the order of the draw. size: how many posts the draw has, with those of the draw that
    it extends; asked: how many it was to have. language, predictor and parameters are empty in a uniform draw.
    """

    corpus: Corpus
    design: str
    seed: str
    asked: int
    size: int
    parts: int
    frame_size: int
    digest: str
    detectors: list[dict[str, str]]
    rows: list[dict[str, Any]]
    extends: Draw | None = None
    language: str = ""
    predictor: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


def sample_uniform(corpus: Corpus, *, size: int, seed: str, extends: Draw | None = None) -> Sample:
    """Take `size` posts of the corpus, each with the same chance; all where there are fewer. Reads files only.

    With `extends` the frame is that draw's own, even where the corpus has grown since, and only the posts that are
    added to it are taken. CorpusError where posts have no votes yet, or the frame is no longer the one drawn from.
    """
    _check_asked(size, seed)
    if extends and extends.corpus_id != corpus.pk:
        raise CorpusError(f"The draw to extend is from corpus {extends.corpus}, not {corpus}.")
    manifest = manifest_of(corpus.name)
    check_posts(corpus.name, manifest)
    parts = extends.parts if extends else len(manifest.parts)
    frame_size = sum(part.rows for part in manifest.parts[:parts])
    if len(manifest.votes) < parts:
        raise CorpusError(f"Corpus {corpus.name} has posts without votes; run: prelabel {corpus.name}")
    if not frame_size:
        raise CorpusError(f"Corpus {corpus.name} holds no posts; add some with import_corpus.")
    digest = frame_digest(manifest, parts)
    asked, size = size, min(size, frame_size)
    if extends:
        _check_extension(extends, size=size, seed=seed, digest=digest)
    before = extends.size if extends else 0
    with full_disk_explained("the draw was not made"), asking(corpus.name, parts, manifest) as store:
        rows = [row for batch in store.query("draw_uniform", seed, size - before, before) for row in batch.to_pylist()]
    return Sample(
        corpus=corpus,
        design="uniform",
        seed=seed,
        asked=asked,
        size=size,
        parts=parts,
        frame_size=frame_size,
        digest=digest,
        detectors=_versions(manifest, parts),
        rows=rows,
        extends=extends,
    )


def sample_recall(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int,
    seed: str,
    predictor: Predictor,
    share: Fraction = SHARE,
    least_posts: int = LEAST_POSTS,
    history: Window = HISTORY,
    window: Window = WINDOW,
) -> list[Sample]:
    """For each language take `size` posts of the window by authors who wrote in it before. Reads files only.

    Its authors have `least_posts` posts or more in the history, of which the predictor labels the share or more with
    the language; its frame is all that they wrote in the window, in whatever language. languages: None for all that
    the predictor finds in the corpus. One sample each, in order of the codes; all of the frame where that is smaller.
    CorpusError where the windows overlap or are empty, or the corpus lacks authors, times, votes or predictions.
    """
    return _samples(corpus, recall_design(share, least_posts, history, window), languages, size, seed, predictor)


def sample_precision(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int,
    seed: str,
    predictor: Predictor,
    window: Window | None = None,
) -> list[Sample]:
    """For each language take `size` of the posts that the predictor labels with it. Reads files only.

    window: where given, only posts from it are in the frame. Otherwise as sample_recall.
    """
    return _samples(corpus, precision_design(window), languages, size, seed, predictor)


def _samples(
    corpus: Corpus, design: Design, languages: Iterable[str] | None, size: int, seed: str, predictor: Predictor
) -> list[Sample]:
    _check_asked(size, seed)
    manifest = manifest_of(corpus.name)
    check_posts(corpus.name, manifest)
    if not manifest.rows:
        raise CorpusError(f"Corpus {corpus.name} holds no posts; add some with import_corpus.")
    # Items are made of posts and votes, so a draw by predictions from outside needs votes too.
    check_complete(corpus.name, Predictor(DETECTOR_NAMES[0]), manifest)
    predictions = check_complete(corpus.name, predictor, manifest)
    with full_disk_explained("no draw was made"), predicting(corpus.name, predictor, manifest) as store:
        samples = [
            Sample(
                corpus=corpus,
                design=design.name,
                seed=seed,
                asked=size,
                size=len(taken.rows),
                parts=len(manifest.parts),
                frame_size=taken.frame_size,
                digest=frame_digest(manifest, len(manifest.parts), predictions),
                detectors=_versions(manifest, len(manifest.parts)),
                rows=taken.rows,
                language=taken.language,
                predictor=str(predictor),
                parameters=taken.parameters,
            )
            for taken in take(store, corpus.name, design, languages, size, seed, predictor)
        ]
    return samples


def sample_records(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int | None,
    seed: str,
    together: str = "",
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """For each language take `size` of the records declared to be in it; None is all. Reads files only.

    together: a field whose equal values keep records together; then `size` counts whole groups of them. leave_out: ids
    of records that are in no frame, such as those whose answer is known. languages: None for all of the corpus. One
    sample each, in order of the codes; all of the frame where that is smaller. CorpusError where the corpus is one of
    posts, or has no records of a language.
    """
    _check_asked(size, seed, "group" if together else "record")
    manifest = manifest_of(corpus.name)
    check_records(corpus.name, manifest)
    parts = len(manifest.parts)
    with full_disk_explained("no draw was made"), asking(corpus.name, parts, manifest) as store:
        found = take_records(
            store, corpus.name, manifest, languages, size=size, seed=seed, together=together, leave_out=leave_out
        )
    return [
        Sample(
            corpus=corpus,
            design="records",
            seed=seed,
            asked=taken.parameters.get("frame_groups", taken.frame_size) if size is None else size,
            size=len(taken.rows),
            parts=parts,
            frame_size=taken.frame_size,
            digest=frame_digest(manifest, parts),
            detectors=[],
            rows=taken.rows,
            language=taken.language,
            parameters=taken.parameters,
        )
        for taken in found
    ]


@transaction.atomic
def items_of(corpus: Corpus, ids: Iterable[str]) -> list[Item]:
    """The items of these records, in the order of the ids, whether drawn or not. CorpusError where some are unknown."""
    Corpus.objects.select_for_update().get(pk=corpus.pk)  # as in record
    keys = list(ids)
    manifest = manifest_of(corpus.name)
    check_records(corpus.name, manifest)
    with full_disk_explained("no items were made"), asking(corpus.name, manifest=manifest) as store:
        rows = rows_of(store, corpus.name, keys)
    found = list(rows.values())
    items: dict[str, Item] = {}
    for start in range(0, len(found), _BATCH_ROWS):
        items |= {item.key: item for item in _items(corpus, found[start : start + _BATCH_ROWS])}
    return [items[key] for key in keys]


@transaction.atomic
def record(sample: Sample) -> tuple[Draw, list[Item]]:
    """Put a sample into the database: the draw, and its items in the order of the draw."""
    # Two draws at a time would make the same items; the second waits here.
    Corpus.objects.select_for_update().get(pk=sample.corpus.pk)
    if sample.extends and Draw.objects.filter(extends=sample.extends).exists():
        raise CorpusError("This draw has been extended before; extend the larger one.")
    draw = Draw.objects.create(
        corpus=sample.corpus,
        design=sample.design,
        language=sample.language,
        predictor=sample.predictor,
        parameters=sample.parameters,
        seed=sample.seed,
        asked=sample.asked,
        size=sample.size,
        parts=sample.parts,
        frame_size=sample.frame_size,
        frame_digest=sample.digest,
        detectors=sample.detectors,
        extends=sample.extends,
    )
    items: list[Item] = []
    for start in range(0, len(sample.rows), _BATCH_ROWS):
        items += _items(sample.corpus, sample.rows[start : start + _BATCH_ROWS])
    return draw, items


def frame_digest(manifest: Manifest, parts: int, predictions: Predictions | None = None) -> str:
    """SHA-256 over the digests of the first `parts` parts, of the votes on them and of predictions, as lines of hex."""
    lines = [part.sha256 for part in manifest.parts[:parts]] + [votes.sha256 for votes in manifest.votes[:parts]]
    if predictions:
        lines.append(predictions.sha256)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _check_asked(size: int | None, seed: str, noun: str = "post") -> None:
    if size is not None and size < 1:
        raise CorpusError(f"Draw at least one {noun}.")
    if not 0 < len(seed) <= 64:
        raise CorpusError(f"The seed has {len(seed)} characters; give it 1 to 64.")


def _versions(manifest: Manifest, parts: int) -> list[dict[str, str]]:
    """A corpus grows, and the detectors with it: every set of versions that voted in the frame."""
    return [dict(pairs) for pairs in dict.fromkeys(tuple(votes.versions.items()) for votes in manifest.votes[:parts])]


def _check_extension(extends: Draw, *, size: int, seed: str, digest: str) -> None:
    if extends.seed != seed:
        raise CorpusError(f"The draw to extend has the seed {extends.seed!r}; a larger one must have it too.")
    if extends.frame_digest != digest:
        raise CorpusError(
            f"The posts or votes of corpus {extends.corpus} that were drawn from have changed since; make a new draw."
        )
    if size <= extends.size:
        raise CorpusError(
            f"The draw has {extends.size:,} of {extends.frame_size:,} posts already; ask for more than that, "
            "or make a new draw where the frame has no more."
        )


def _items(corpus: Corpus, rows: list[dict[str, Any]]) -> list[Item]:
    """The items of these rows in their order: those that an earlier draw made, and new ones."""
    drawn = [_item(corpus, row) for row in rows]
    known = {item.key: item for item in Item.objects.filter(corpus=corpus, key__in=[item.key for item in drawn])}
    if changed := [item.key for item in drawn if item.key in known and known[item.key].votes != item.votes]:
        raise CorpusError(
            f"Post {changed[0]} was drawn before, with other votes than corpus {corpus} has now, and what was decided "
            "on those stands; import the files as another corpus, and draw from that."
        )
    if changed := [item.key for item in drawn if item.key in known and _content(known[item.key]) != _content(item)]:
        raise CorpusError(
            f"Record {changed[0]} was drawn before, with other fields or another language than corpus {corpus} has "
            "now, and what was decided on those stands; import the files as another corpus, and draw from that."
        )
    new = Item.objects.bulk_create([item for item in drawn if item.key not in known])
    known |= {item.key: item for item in new}
    return [known[item.key] for item in drawn]


def _content(item: Item) -> tuple[str, dict[str, str]]:
    return item.language, item.fields


def _item(corpus: Corpus, row: dict[str, Any]) -> Item:
    """The item of a post with its votes, or of a record, which has none."""
    voted = [] if "fields" in row else DETECTOR_NAMES
    votes = {detector: [[vote["language"], vote["score"]] for vote in row[detector]] for detector in voted}
    return Item(
        corpus=corpus,
        key=row["id"],
        text=row["text"],
        author=row["author"],
        posted_at=row["posted_at"],
        url=row["url"],
        language=row.get("language", ""),
        fields=row.get("fields", {}),
        votes=votes,
        letters=row.get("letters", 0),
    )
