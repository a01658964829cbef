"""Draws: a seeded sample of a corpus, made items in the database.

The order of a draw is that of a hash of seed and id, so the same seed draws the same posts on any engine and a larger
draw contains the smaller. What is asked about the items is no matter of this room.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from corpora.core.voting import DETECTOR_NAMES
from corpora.errors import CorpusError
from corpora.models import Corpus, Draw, Item
from corpora.store import Manifest, asking, full_disk_explained, manifest_of

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
    if size < 1:
        raise CorpusError("Draw at least one post.")
    if not 0 < len(seed) <= 64:
        raise CorpusError(f"The seed has {len(seed)} characters; give it 1 to 64.")
    if extends and extends.corpus_id != corpus.pk:
        raise CorpusError(f"The draw to extend is from corpus {extends.corpus}, not {corpus}.")
    manifest = manifest_of(corpus.name)
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
        # A corpus grows, and the detectors with it: every set of versions that voted in the frame.
        detectors=[dict(pairs) for pairs in dict.fromkeys(tuple(v.versions.items()) for v in manifest.votes[:parts])],
        rows=rows,
        extends=extends,
    )


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


def frame_digest(manifest: Manifest, parts: int) -> str:
    """SHA-256 over the digests of the first `parts` parts and of the votes on them, as lines of hex."""
    lines = [part.sha256 for part in manifest.parts[:parts]] + [votes.sha256 for votes in manifest.votes[:parts]]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


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
    new = Item.objects.bulk_create([item for item in drawn if item.key not in known])
    known |= {item.key: item for item in new}
    return [known[item.key] for item in drawn]


def _item(corpus: Corpus, row: dict[str, Any]) -> Item:
    votes = {detector: [[vote["language"], vote["score"]] for vote in row[detector]] for detector in DETECTOR_NAMES}
    return Item(
        corpus=corpus,
        key=row["id"],
        text=row["text"],
        author=row["author"],
        posted_at=row["posted_at"],
        url=row["url"],
        votes=votes,
        letters=row["letters"],
    )
