"""Draw random samples of a corpus with a seed, and save them to the database.

Posts are drawn in order of a hash of seed and id. The same seed therefore gives the same draw on any engine, and a
larger draw contains the smaller one. Drawing a sample only reads files; `record` saves it to the database. Draws for
one language are in language_draws.py, and draws of parts and of records are in part_draws.py.
"""

import hashlib
import json
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, reduce
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.conf import settings
from django.db import connection, transaction

from corpora.core import CorpusError
from corpora.core import listed as listing
from corpora.core.arrow import pc
from corpora.core.voters import DEFAULT, Panel
from corpora.database.bulk_rows import batched, insert, listed, plain, update
from corpora.database.statements import Json
from corpora.engines import Store, explain_full_disk, open_store, texts
from corpora.models import Corpus, Draw, Item, votes_of
from corpora.predictions.panels import check_panel
from corpora.storage.layout import Manifest, Predictions, check_posts, check_records, manifest_of

_BATCH_ROWS = 1_000
_content = attrgetter("language", "fields", "declared")  # the content of an item that is a record


# --- Drawn rows that are not yet saved. They are held in Arrow columns, because Python objects would take twenty times
# as much memory. Uniform draws, whose size is not limited, are held on disk.


@dataclass(frozen=True, eq=False)
class Rows:
    """A sequence of rows that are converted from Arrow to dicts during iteration.

    batches: function that returns all rows as Arrow batches; called once per iteration
    size: number of rows
    panel: voters whose votes are in the rows, if any
    """

    batches: Callable[[], Iterable[pa.RecordBatch]]
    size: int
    panel: Panel = DEFAULT

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from rows_in(batch, self.panel)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def keys(self) -> list[str]:
        return [key for batch in self.batches() for key in batch.column("id").to_pylist()]


def in_memory(table: pa.Table, panel: Panel = DEFAULT) -> Rows:
    return Rows(lambda: table.to_batches(max_chunksize=_BATCH_ROWS), table.num_rows, panel)


def on_disk(rows: pa.RecordBatchReader, panel: Panel = DEFAULT) -> Rows:
    """Write rows to a temporary file. The file is deleted when the returned object is deleted."""
    file = tempfile.TemporaryFile(dir=Path(settings.DATA_DIR) / "tmp")  # noqa: SIM115 - closed with the rows
    size = 0
    with pa.ipc.new_stream(file, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
            size += batch.num_rows

    def batches() -> Iterator[pa.RecordBatch]:
        file.seek(0)
        yield from pa.ipc.open_stream(file)

    drawn = Rows(batches, size, panel)
    weakref.finalize(drawn, file.close)
    return drawn


def by_language(table: pa.Table, languages: Iterable[str]) -> dict[str, pa.Table]:
    """Split a table into one table for each language, with the rows in their original order."""
    return {language: table.filter(pc.field("language") == language) for language in languages}


def rows_in(batch: pa.RecordBatch, panel: Panel = DEFAULT) -> Iterator[dict[str, Any]]:
    """Yield each row of a batch as a dict.

    If the rows have votes, the dict contains `votes`, which is JSON text as stored in the database, and `agreed`, which
    is the label that enough voters of the panel rank first; None if there is none.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if columns.keys() >= {*panel.voters}:
        votes = {}
        for voter in panel.voters:
            # Make the offsets start at 0, because the lists can be a slice of a longer array.
            lists = columns.pop(voter)
            starts = pc.subtract(lists.offsets, lists.offsets[0])
            votes[voter] = pa.ListArray.from_arrays(starts, lists.flatten())
        columns |= {"votes": _as_json(votes), "agreed": _agreed_labels(list(votes.values()), panel.agree)}
    for values in zip(*map(_values, columns.values()), strict=True):
        yield dict(zip(columns, values, strict=True))


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        # Return times as text in the format of str(), because the database accepts it and datetime objects take longer.
        texts = pc.cast(pc.cast(column, pa.timestamp("us")), pa.string())
        column = pc.binary_join_element_wise(pc.replace_substring_regex(texts, r"\.000000$", ""), "+00:00", "")
    values: list[Any] = column.to_pylist()
    return values


def _as_json(votes: Mapping[str, pa.ListArray]) -> pa.StringArray:
    """Serialize votes in the same format as json.dumps, but fifteen times as fast."""
    parts: list[Any] = []
    for separator, (detector, lists) in zip("{" + "," * (len(votes) - 1), votes.items(), strict=True):
        entries = lists.values
        languages = entries.field("language").dictionary_encode()
        quoted = pa.array(map(json.dumps, languages.dictionary.to_pylist()), pa.string()).take(languages.indices)
        scores = pc.cast(entries.field("score"), pa.string())
        # Scores must have a decimal point, because JSON parsers convert numbers without one to integers.
        decimal = pc.binary_join_element_wise(scores, ".0", "")
        scores = pc.fill_null(pc.if_else(pc.match_substring_regex(scores, "[.e]"), scores, decimal), "null")
        pairs = pc.binary_join_element_wise("[", quoted, ", ", scores, "]", "")
        parts += [
            f'{separator}"{detector}": [',
            pc.binary_join(pa.ListArray.from_arrays(lists.offsets, pairs), ", "),
            "]",
        ]
    return pc.binary_join_element_wise(*parts, "}", "")


def _agreed_labels(votes: Sequence[pa.ListArray], agree: int) -> pa.StringArray:
    """Return the label that at least `agree` voters rank first, or null (rows,).

    There is at most one such label per row, because `agree` is more than half of the voters.
    """
    firsts = []
    for lists in votes:
        first = pc.if_else(pc.greater(pc.list_value_length(lists), 0), lists.offsets[:-1], None)
        firsts.append(lists.values.field("language").take(first))
    agreed = pa.nulls(len(firsts[0]), pa.string())
    # At most len(votes) - agree voters can differ, so at least one of these first voters ranks the agreed label first.
    for first in firsts[: len(firsts) - agree + 1]:
        number = reduce(pc.add, (pc.cast(pc.fill_null(pc.equal(first, other), False), pa.int8()) for other in firsts))
        agreed = pc.if_else(pc.greater_equal(number, agree), first, agreed)
    return agreed


# --- Samples.


@dataclass(frozen=True)
class Sample:
    """A draw that is not yet saved to the database.

    asked: number of posts requested
    size: number of posts in the draw, including the posts of the draw that it extends
    parts: number of parts of the corpus in the frame, starting with the first part
    digest, detectors: see `frame_of`
    rows: rows returned by the query, in draw order
    language, predictor, parameters: empty for a uniform draw
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


def sample_uniform(
    corpus: Corpus, *, size: int, seed: str, extends: Draw | None = None, panel: Panel = DEFAULT
) -> Sample:
    """Draw `size` posts of the corpus with equal probability. If there are fewer posts, draw all of them.

    extends: smaller draw to extend. Its frame is used even if the corpus has grown since then, and only the additional
        posts are returned
    panel: voters whose votes are loaded with the posts

    Raise CorpusError if there are posts without votes, or if the draw cannot be extended, for example because its frame
    has changed.
    """
    check_size_and_seed(size, seed)
    if extends and extends.corpus_id != corpus.pk:
        raise CorpusError(f"The draw to extend is from corpus {extends.corpus}, not {corpus}.")
    manifest = manifest_of(corpus.name)
    check_posts(corpus.name, manifest)
    parts = extends.parts if extends else len(manifest.parts)
    frame_size = sum(part.rows for part in manifest.parts[:parts])
    check_panel(corpus.name, manifest, panel, parts if extends else None)
    frame = frame_of(manifest, parts, panel=panel)
    requested, size = size, min(size, frame_size)
    if extends:
        _check_extension(extends, size=size, seed=seed, digest=frame["digest"])
    previous_size = extends.size if extends else 0
    with explain_full_disk("nothing was drawn"), open_store(corpus.name, parts, manifest, panel=panel) as store:
        rows = on_disk(store.query("draw_uniform", seed, size - previous_size, previous_size), panel)
    return Sample(
        corpus=corpus,
        design="uniform",
        seed=seed,
        asked=requested,
        size=size,
        parts=parts,
        frame_size=frame_size,
        rows=rows,
        extends=extends,
        **frame,
    )


def _check_extension(extends: Draw, *, size: int, seed: str, digest: str) -> None:
    if extends.seed != seed:
        raise CorpusError(f"The larger draw must have the same seed as the draw that it extends: {extends.seed!r}.")
    if extends.frame_digest != digest:
        raise CorpusError(
            f"The posts or votes of corpus {extends.corpus} have changed since the draw was made. Make a new draw."
        )
    if extends.size == extends.frame_size:
        raise CorpusError(
            f"The draw already contains all {extends.frame_size:,} posts that corpus {extends.corpus} had when the "
            "draw was made. To draw posts that were imported later, open another task."
        )
    if size <= extends.size:
        raise CorpusError(
            f"The draw already contains {extends.size:,} of {extends.frame_size:,} posts. Request more than that."
        )


def sample_of(
    corpus: Corpus,
    design: str,
    manifest: Manifest,
    language: str,
    rows: Rows | list[dict[str, Any]],
    *,
    seed: str,
    requested: int | None,
    frame_size: int,
    predictor: str = "",
    predictions: Predictions | None = None,
    parameters: dict[str, Any],
    panel: Panel = DEFAULT,
) -> Sample:
    """Return a sample whose frame spans all parts of the corpus.

    rows: posts with votes, or records, in draw order
    requested: number of rows requested, or of groups if records are drawn in groups; None for all
    frame_size: number of rows in the frame
    predictions: imported predictions that the frame depends on
    parameters: parameters to store with the draw
    panel: voters whose votes are in the rows
    """
    parts = len(manifest.parts)
    return Sample(
        corpus=corpus,
        design=design,
        seed=seed,
        asked=parameters.get("frame_groups", frame_size) if requested is None else requested,
        size=len(rows),
        parts=parts,
        frame_size=frame_size,
        rows=rows,
        **frame_of(manifest, parts, predictions, panel),
        language=language,
        predictor=predictor,
        parameters=parameters,
    )


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
    """Return a sample of chosen records for each language. For posts, return a single sample with language "".

    chosen: for each language, the chosen ids in order
    frames: for each language, the number of rows that the ids were chosen from
    parameters: for each language, the parameters to store with the draw
    predictor: predictor whose labels were used; "" if there is none
    """
    manifest = manifest_of(corpus.name)
    with explain_full_disk("nothing was drawn"), open_store(corpus.name, manifest=manifest) as store:
        keys = (key for ids in chosen.values() for key in ids)
        rows = rows_of(store, corpus.name, keys, voted=not manifest.fields)
    return [
        sample_of(
            corpus,
            design,
            manifest,
            language,
            [rows[key] for key in ids],
            seed=seed,
            requested=len(ids),
            frame_size=frames[language],
            predictor=predictor,
            parameters=parameters[language],
        )
        for language, ids in sorted(chosen.items())
    ]


def frame_of(
    manifest: Manifest, parts: int, predictions: Predictions | None = None, panel: Panel = DEFAULT
) -> dict[str, Any]:
    """Return two fields of a sample that describe its frame.

    digest: a SHA-256 that identifies the frame. It is computed from the digests of the frame's parts (without the
        authors), votes and predictions, so installations that imported the same files get the same digest
    detectors: versions of the panel's voters, with several entries if parts of the corpus have votes from different
        versions. An imported predictor's version is the SHA-256 of its labels
    """
    lines = [part.content_sha256 for part in manifest.parts[:parts]] + [
        votes.sha256 for votes in manifest.votes[:parts]
    ]
    imported = {str(entry): entry.sha256 for entry in manifest.predictions if str(entry) in panel.imported}
    lines += ([predictions.sha256] if predictions else []) + [imported[name] for name in panel.imported]
    voted = [{name: votes.versions.get(name, "") for name in panel.registered} for votes in manifest.votes[:parts]]
    versions = dict.fromkeys(tuple((part | imported).items()) for part in voted or ([{}] if imported else []))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return {"digest": digest, "detectors": [dict(pairs) for pairs in versions]}


def check_size_and_seed(size: int | None, seed: str, noun: str = "post") -> None:
    """Raise CorpusError if a draw's size is below 1, or if its seed is empty or too long.

    noun: noun for a drawn row, such as `post`
    """
    if size is not None and size < 1:
        raise CorpusError(f"The size of the draw must be at least one {noun}.")
    if not 0 < len(seed) <= 64:
        raise CorpusError(f"The seed has {len(seed)} characters. It must have 1 to 64.")


def rows_of(store: Store, corpus_name: str, ids: Iterable[str], *, voted: bool = False) -> dict[str, dict[str, Any]]:
    """Load rows by id. Return a dict of records, or of posts with their votes, keyed by id.

    voted: whether to load posts with their votes

    Raise CorpusError if one of the ids is not in the corpus.
    """
    sorted_ids = sorted(set(ids))
    store.rows("wanted", texts(id=sorted_ids))
    batches = store.query("posts_of" if voted else "records_of")
    rows = {row["id"]: row for batch in batches for row in rows_in(batch, store.panel)}
    if unknown := [key for key in sorted_ids if key not in rows]:
        raise CorpusError(f"Corpus {corpus_name} does not contain {listing(unknown, len(unknown), 'id')}.")
    return rows


def with_votes(store: Store, rows: pa.Table) -> pa.Table:
    """Add a column of votes to drawn records for each voter in the store's panel."""
    store.rows("drawn", rows.select(["id"]))
    votes = store.query("votes_of").read_all().combine_chunks()
    places = pc.index_in(rows["id"], votes["id"])
    for voter in store.panel.voters:
        rows = rows.append_column(voter, votes[voter].take(places))
    return rows


# --- Saving samples to the database. A sample becomes a Draw, and its posts or records become Items.


class _Plain(plain(Item)):  # type: ignore[misc]
    agreed: str | None


@transaction.atomic
def items_of(corpus: Corpus, ids: Iterable[str]) -> list[Item]:
    """Return the items of records in the order of the ids. Missing items are created.

    Raise CorpusError if one of the ids is not in the corpus.
    """
    _lock(corpus)
    keys = list(ids)
    manifest = manifest_of(corpus.name)
    check_records(corpus.name, manifest)
    with explain_full_disk("no items were created"), open_store(corpus.name, manifest=manifest) as store:
        rows = rows_of(store, corpus.name, keys)
    items = {item.key: item for item in get_or_create_items(corpus, rows.values())}
    return [items[key] for key in keys]


@transaction.atomic
def record(sample: Sample) -> tuple[Draw, list[Item]]:
    """Save a sample. Return the draw, and its items in draw order."""
    return record_draw(sample), get_or_create_items(sample.corpus, sample.rows)


def get_or_create_items(corpus: Corpus, rows: Iterable[dict[str, Any]]) -> list[Item]:
    """Return the items of drawn rows, in order. Missing items are created."""
    items = (_item(corpus, row, Item) for row in rows)
    return list(chain.from_iterable(map(item_store(corpus), batched(items, _BATCH_ROWS))))


def unsaved_items(sample: Sample) -> Iterator[Any]:
    """Yield a sample's items as plain rows, to be saved by an `item_store`."""
    return (_item(sample.corpus, row, _Plain) for row in sample.rows)


def record_draw(sample: Sample) -> Draw:
    """Save the sample's row. Its items are saved separately."""
    copied = ("corpus", "design", "language", "predictor", "parameters", "seed", "asked", "size", "parts", "frame_size")
    values = {name: getattr(sample, name) for name in (*copied, "detectors", "extends")}
    with transaction.atomic():
        _lock(sample.corpus)
        if sample.extends and Draw.objects.filter(extends=sample.extends).exists():
            raise CorpusError("This draw has already been extended. Extend the larger draw instead.")
        return Draw.objects.create(frame_digest=sample.digest, **values)


def _lock(corpus: Corpus) -> None:
    """Lock the corpus, so that concurrent draws cannot create the same items."""
    if Corpus.objects.select_for_update().filter(pk=corpus.pk).first() is None:
        raise CorpusError(f"Corpus {corpus} has been deleted in the meantime, so nothing was drawn.")


def item_store(corpus: Corpus) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function that takes a batch of unsaved items, creates the missing ones, and returns all saved items."""
    # On PostgreSQL, the corpus is locked until the last item is created. If the corpus has no items yet, none needs to
    # be looked up. The lookups would be slow, because their plan was made for an empty table.
    if connection.vendor == "postgresql" and not Item.objects.filter(corpus=corpus).exists():
        return insert
    return partial(_get_or_insert, corpus)


@transaction.atomic
def _get_or_insert(corpus: Corpus, new_items: Sequence[Any]) -> list[Any]:
    # Remove the ordering, so that SQLite looks up the items by id. Ordered by primary key, it would scan all items of
    # the corpus.
    existing = Item.objects.filter(corpus=corpus, key__in=listed(item.key for item in new_items)).order_by()
    by_key = {item.key: item for item in existing}
    redrawn = [(item, by_key[item.key]) for item in new_items if item.key in by_key]
    differing, added = _compare_votes(redrawn)
    contents = [item.key for item, stored in redrawn if _content(stored) != _content(item)]
    if differing or contents:
        noun = f"Post {differing[0]}" if differing else f"Record {contents[0]}"
        raise CorpusError(
            f"{noun} was drawn earlier, and its {'votes' if differing else 'fields or language'} in corpus "
            f"{corpus} have changed since. Earlier decisions depend on the old values, so import the files into "
            "another corpus and draw from that."
        )
    update(added, ["votes"])
    by_key |= {item.key: item for item in insert(item for item in new_items if item.key not in by_key)}
    return [by_key[item.key] for item in new_items]


def _compare_votes(redrawn: Iterable[tuple[Any, Item]]) -> tuple[list[str], list[Item]]:
    """Compare the current votes on items that were drawn before with their stored votes.

    redrawn: pairs of an unsaved item, with the current votes, and the stored item

    Return the ids of items with a changed vote, and the stored items that gained votes from other voters. These items
    are changed in memory only.
    """
    differing, added = [], []
    for item, stored in redrawn:
        votes = votes_of(item)
        if any(stored.votes.get(voter, ranking) != ranking for voter, ranking in votes.items()):
            differing.append(item.key)
        elif votes.keys() - stored.votes.keys():
            stored.votes = {**stored.votes, **votes}
            added.append(stored)
    return differing, added


def _item(corpus: Corpus, row: dict[str, Any], of: type[Any]) -> Any:
    """Return an unsaved item for a row, which is a post with its votes, or a record without votes."""
    votes, posted_at = row.get("votes", "{}"), row["posted_at"]
    item = of(
        corpus=corpus,
        key=row["id"],
        text=row["text"],
        author=row["author"],
        posted_at=datetime.fromisoformat(posted_at) if posted_at and of is Item else posted_at,
        url=row["url"],
        language=row.get("language", ""),
        fields=row.get("fields", {}),
        declared=list(row.get("declared") or ()),
        votes=json.loads(votes) if of is Item else Json(votes),
        letters=row.get("letters", 0),
    )
    if of is _Plain:
        item.agreed = row.get("agreed")
    return item
