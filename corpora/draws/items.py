"""From a draw to the database: the draw's own row, and its posts or records as items.

samples.py decides what is drawn; nothing here knows what is asked about the items.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django.db import transaction

from corpora.core import CorpusError
from corpora.database.bulk_rows import insert, listed, plain
from corpora.database.statements import Json
from corpora.draws.language_draws import rows_of
from corpora.draws.samples import Sample
from corpora.engines import asking, full_disk_explained
from corpora.models import Corpus, Draw, Item, votes_of
from corpora.storage.layout import check_records, manifest_of

_BATCH_ROWS = 1_000


class _Plain(plain(Item)):  # type: ignore[misc]
    unanimous: str | None


@transaction.atomic
def items_of(corpus: Corpus, ids: Iterable[str]) -> list[Item]:
    """The items of these records, in the order of the ids, whether drawn or not. CorpusError if some are unknown."""
    _lock(corpus)
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
    return _draw(sample), [item for some in _batches(sample) for item in _items(sample.corpus, some)]


def record_on_the_way(sample: Sample) -> tuple[Draw, Iterator[Any]]:
    """The same where items are many: they are made as they are asked for, as plain rows. The caller has opened a
    transaction, and asks for all of them.
    """
    draw = _draw(sample)
    return draw, (item for some in _batches(sample) for item in _items(sample.corpus, some, _Plain))


def _draw(sample: Sample) -> Draw:
    _lock(sample.corpus)
    if sample.extends and Draw.objects.filter(extends=sample.extends).exists():
        raise CorpusError("This draw has been extended before; extend the larger one.")
    return Draw.objects.create(
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


def _batches(sample: Sample) -> Iterator[list[dict[str, Any]]]:
    rows = iter(sample.rows)
    while some := list(islice(rows, _BATCH_ROWS)):
        yield some


def _lock(corpus: Corpus) -> None:
    """Two draws at the same time would make the same items, so the second waits here."""
    if Corpus.objects.select_for_update().filter(pk=corpus.pk).first() is None:
        raise CorpusError(f"Corpus {corpus} was deleted meanwhile; nothing was drawn.")


def _items(corpus: Corpus, rows: list[dict[str, Any]], of: type[Any] = Item) -> list[Any]:
    """The items of these rows in their order: those that an earlier draw made, and new ones."""
    drawn = [_item(corpus, row, of) for row in rows]
    # By the ids: in the order of their rows, SQLite would go through all items of the corpus.
    before = Item.objects.filter(corpus=corpus, key__in=listed(item.key for item in drawn)).order_by()
    known = {item.key: item for item in before}
    if changed := [item.key for item in drawn if item.key in known and known[item.key].votes != votes_of(item)]:
        raise CorpusError(
            f"Post {changed[0]} was drawn before, with other votes than corpus {corpus} has now, and decisions based "
            "on those votes stand; import the files as another corpus, and draw from that."
        )
    if changed := [item.key for item in drawn if item.key in known and _content(known[item.key]) != _content(item)]:
        raise CorpusError(
            f"Record {changed[0]} was drawn before, with other fields or another language than corpus {corpus} has "
            "now, and decisions based on those stand; import the files as another corpus, and draw from that."
        )
    new = insert(item for item in drawn if item.key not in known)
    known |= {item.key: item for item in new}
    return [known[item.key] for item in drawn]


def _content(item: Item) -> tuple[str, dict[str, str], list[str]]:
    return item.language, item.fields, item.declared


def _item(corpus: Corpus, row: dict[str, Any], of: type[Any]) -> Any:
    """The item of a post with its votes, or of a record, which has none."""
    votes = row.get("votes", "{}")
    item = of(
        corpus=corpus,
        key=row["id"],
        text=row["text"],
        author=row["author"],
        posted_at=row["posted_at"],
        url=row["url"],
        language=row.get("language", ""),
        fields=row.get("fields", {}),
        declared=list(row.get("declared") or ()),
        votes=json.loads(votes) if of is Item else Json(votes),
        letters=row.get("letters", 0),
    )
    if of is _Plain:
        item.unanimous = row.get("unanimous")
    return item
