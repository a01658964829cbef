"""Draws: a seeded sample of a corpus.

The order of a draw is that of a hash of seed and id, so the same seed draws the same posts on any engine and a larger
draw contains the smaller. In a draw for one language the hash is of seed, language and id: the draws for two languages
are independent, and a language's draw is the same whichever others are drawn with it. A draw only reads files; items.py
puts it into the database.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.languages import finer
from corpora.draws.design import (
    HISTORY,
    LEAST_POSTS,
    SHARE,
    WINDOW,
    Design,
    Rows,
    Taken,
    Window,
    check_asked,
    on_disk,
    precision_design,
    recall_design,
    triggers_design,
)
from corpora.draws.language_draws import reached, rows_of, take_by_language, take_records
from corpora.engines import asking, full_disk_explained
from corpora.models import Corpus, Draw
from corpora.predictions.predictor_labels import Predictor, check_complete, find_predictor, predicting
from corpora.storage.layout import Manifest, Predictions, check_posts, check_records, check_votes, manifest_of


@dataclass(frozen=True)
class Sample:
    """What a draw took from the files, before anything of it is in the database.

    rows: those of the query, in the order of the draw. size: how many posts the draw has, including those of the draw
    that it extends; asked: how many were asked for. language, predictor and parameters are empty in a uniform draw.
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
    rows: Rows | list[dict[str, Any]]
    extends: Draw | None = None
    language: str = ""
    predictor: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        return self.rows.keys() if isinstance(self.rows, Rows) else [row["id"] for row in self.rows]


def sample_uniform(corpus: Corpus, *, size: int, seed: str, extends: Draw | None = None) -> Sample:
    """Take `size` posts of the corpus, each with the same chance; all if there are fewer. It only reads files.

    With `extends` the frame is that draw's, even if the corpus has grown since, and only the posts that are added to
    it are taken. CorpusError if posts have no votes yet, or the frame is no longer the one drawn from.
    """
    check_asked(size, seed)
    if extends and extends.corpus_id != corpus.pk:
        raise CorpusError(f"The draw to extend is from corpus {extends.corpus}, not {corpus}.")
    manifest = manifest_of(corpus.name)
    check_posts(corpus.name, manifest)
    parts = extends.parts if extends else len(manifest.parts)
    frame_size = sum(part.rows for part in manifest.parts[:parts])
    check_votes(corpus.name, manifest, parts)
    if not frame_size:
        raise CorpusError(f"Corpus {corpus.name} holds no posts; add some with import_corpus.")
    digest = frame_digest(manifest, parts)
    asked, size = size, min(size, frame_size)
    if extends:
        _check_extension(extends, size=size, seed=seed, digest=digest)
    before = extends.size if extends else 0
    with full_disk_explained("the draw was not made"), asking(corpus.name, parts, manifest) as store:
        rows = on_disk(store.query("draw_uniform", seed, size - before, before))
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
    """For each language take `size` posts of the window by authors who wrote in it before. It only reads files.

    Its authors have `least_posts` posts or more in the history, of which the predictor labels the share or more with
    the language; its frame is all that they wrote in the window, in whatever language. languages: None for all that
    the predictor finds in the corpus. One sample each, in order of the codes; all of the frame if that is smaller.
    CorpusError if the windows overlap or are empty, or the corpus lacks authors, times, votes or predictions.
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
    """For each language take `size` of the posts that the predictor labels with it. It only reads files.

    window: if given, only posts from it are in the frame. Everything else is as in sample_recall.
    """
    return _samples(corpus, precision_design(window), languages, size, seed, predictor)


def sample_triggers(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int | None,
    seed: str,
    predictor: Predictor,
    of: str,
    unread: Mapping[str, str],
) -> list[Sample]:
    """For each language take `size` of the posts of a uniform task that the predictor labels with it although the
    detectors, which agree there, give them another label; None is all. It only reads files.

    of: the task's name; unread: id -> the detectors' label, of its posts that nobody has read. Everything else is as in
    sample_precision. CorpusError for a predictor that voted.
    """
    if predictor.voted:
        raise CorpusError(
            f"{predictor} voted in the task {of}: where the detectors agree it says what they say, so it has no "
            "triggers there that nobody has read. Name a predictor that did not vote."
        )
    return _samples(corpus, triggers_design(of), languages, size, seed, predictor, unread)


def _alike(predictor: Predictor, given: Iterable[str]) -> list[tuple[str, str]]:
    """(what the predictor says, the label given), wherever the one is the other or part of it."""
    classes = [(coarse, fine) for coarse, labels in predictor.mapping.items() for fine in labels]
    return [*classes, *((label, code) for code in set(given) for label in {code, *finer(code)})]


def _samples(
    corpus: Corpus,
    design: Design,
    languages: Iterable[str] | None,
    size: int | None,
    seed: str,
    predictor: Predictor,
    unread: Mapping[str, str] | None = None,
) -> list[Sample]:
    check_asked(size, seed)
    manifest = manifest_of(corpus.name)
    check_posts(corpus.name, manifest)
    if not manifest.rows:
        raise CorpusError(f"Corpus {corpus.name} holds no posts; add some with import_corpus.")
    # Items are made of posts and votes, so a draw by imported predictions needs votes too.
    check_votes(corpus.name, manifest)
    predictions = check_complete(corpus.name, predictor, manifest)
    with full_disk_explained("no draw was made"), predicting(corpus.name, predictor, manifest) as store:
        if unread is not None:
            said, given = zip(*_alike(predictor, unread.values()), strict=True) if unread else ((), ())
            store.rows("unread", _text(id=unread.keys(), label=unread.values()))
            store.rows("alike", _text(said=said, given=given))
        found = take_by_language(store, corpus.name, design, languages, size or manifest.rows, seed, predictor)
    return [_sample(corpus, design.name, manifest, taken, seed, size, str(predictor), predictions) for taken in found]


def _sample(
    corpus: Corpus,
    design: str,
    manifest: Manifest,
    taken: Taken,
    seed: str,
    asked: int | None,
    predictor: str = "",
    predictions: Predictions | None = None,
) -> Sample:
    """A sample of the whole corpus. asked: None for all of the frame, of records that are kept together all groups."""
    parts = len(manifest.parts)
    return Sample(
        corpus=corpus,
        design=design,
        seed=seed,
        asked=taken.parameters.get("frame_groups", taken.frame_size) if asked is None else asked,
        size=len(taken.rows),
        parts=parts,
        frame_size=taken.frame_size,
        digest=frame_digest(manifest, parts, predictions),
        detectors=_versions(manifest, parts),
        rows=taken.rows,
        language=taken.language,
        predictor=predictor,
        parameters=taken.parameters,
    )


def within_reach(
    corpus_name: str,
    spelled: str,
    parameters: Mapping[str, Any],
    digest: str,
    languages: Iterable[str],
    ids: Iterable[str],
) -> dict[str, set[str]]:
    """Language -> which posts are in the frame of a recall-oriented draw: in its window, by its authors.

    spelled, parameters, digest: the draw's predictor, parameters and frame digest. CorpusError if it cannot be found
    out any more, since the corpus or the predictions are others now.
    """
    manifest, predictor = manifest_of(corpus_name), find_predictor(corpus_name, spelled)
    history, window = (tuple(map(datetime.fromisoformat, parameters[name])) for name in ("history", "window"))
    design = recall_design(Fraction(parameters["share"]), parameters["least_posts"], history, window)
    predictions = check_complete(corpus_name, predictor, manifest)
    if frame_digest(manifest, len(manifest.parts), predictions) != digest:
        raise CorpusError(f"Corpus {corpus_name} is no longer the one from which the draw was made.")
    with full_disk_explained("the authors were not looked up"), predicting(corpus_name, predictor, manifest) as store:
        return reached(store, design, languages, ids)


def _text(**columns: Iterable[str]) -> pa.Table:
    return pa.table({name: pa.array(list(values), pa.string()) for name, values in columns.items()})


def sample_records(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int | None,
    seed: str,
    together: str = "",
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """For each language take `size` of the records declared to be in it; None is all. It only reads files.

    together: a field whose equal values keep records together; then `size` counts whole groups. leave_out: ids
    of records that are in no frame, such as those whose answer is known. languages: None for all of the corpus. One
    sample each, in order of the codes; all of the frame where that is smaller. CorpusError if the corpus holds posts,
    or has no records in a language.
    """
    check_asked(size, seed, "group" if together else "record")
    manifest = manifest_of(corpus.name)
    check_records(corpus.name, manifest)
    with full_disk_explained("no draw was made"), asking(corpus.name, manifest=manifest) as store:
        found = take_records(
            store, corpus.name, manifest, languages, size=size, seed=seed, together=together, leave_out=leave_out
        )
    return [_sample(corpus, "records", manifest, taken, seed, size) for taken in found]


def sample_chosen(
    corpus: Corpus,
    design: str,
    chosen: Mapping[str, Sequence[str]],
    *,
    seed: str,
    frames: Mapping[str, int],
    parameters: Mapping[str, dict[str, Any]],
    predictor: str = "",
) -> list[Sample]:
    """For each language the records that were chosen elsewhere, in that order; or the posts, with "" for the language.
    It only reads files.

    chosen: language -> ids; frames: of how many records they were chosen; parameters: how, for the draw's record;
    predictor: by whose labels, if by any.
    """
    manifest = manifest_of(corpus.name)
    with full_disk_explained("no draw was made"), asking(corpus.name, manifest=manifest) as store:
        keys = (key for ids in chosen.values() for key in ids)
        rows = rows_of(store, corpus.name, keys, voted=not manifest.fields)
    drawn = (
        Taken(language, frames[language], parameters[language], [rows[key] for key in ids])
        for language, ids in sorted(chosen.items())
    )
    return [_sample(corpus, design, manifest, taken, seed, len(taken.rows), predictor) for taken in drawn]


def frame_digest(manifest: Manifest, parts: int, predictions: Predictions | None = None) -> str:
    """SHA-256 over the digests of the first `parts` parts without authors, of the votes on them and of predictions, as
    lines of hex. It is the same on all installations that imported the same files."""
    lines = [part.content_sha256 for part in manifest.parts[:parts]] + [
        votes.sha256 for votes in manifest.votes[:parts]
    ]
    if predictions:
        lines.append(predictions.sha256)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _versions(manifest: Manifest, parts: int) -> list[dict[str, str]]:
    """Every set of detector versions that voted in the frame: as a corpus grows, the detectors may change."""
    return [dict(pairs) for pairs in dict.fromkeys(tuple(votes.versions.items()) for votes in manifest.votes[:parts])]


def _check_extension(extends: Draw, *, size: int, seed: str, digest: str) -> None:
    if extends.seed != seed:
        raise CorpusError(f"The draw to extend has the seed {extends.seed!r}; a larger one must have it too.")
    if extends.frame_digest != digest:
        raise CorpusError(
            f"The posts or votes of corpus {extends.corpus} that were drawn from have changed since; make a new draw."
        )
    if extends.size == extends.frame_size:
        raise CorpusError(
            f"The draw has {extends.size:,} of {extends.frame_size:,} posts already. It is made from the posts that "
            f"corpus {extends.corpus} held when it was drawn; those that came later are not among them. Open another "
            "task, which draws from all that there are now."
        )
    if size <= extends.size:
        raise CorpusError(
            f"The draw has {extends.size:,} of {extends.frame_size:,} posts already; ask for more than that."
        )
