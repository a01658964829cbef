"""Entry of units into a task: each item becomes a unit that gets a label, goes to people, or becomes a copy."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from annotate.core import stages
from annotate.core.aggregation.answer_table import at_first
from annotate.core.draws import hash_order
from annotate.core.draws.committed_draws import OVERLAP
from annotate.kinds import preference_kind
from annotate.kinds.preference_kind import Compared
from annotate.models import Comparison, Reserve, Task, Unit
from annotate.quality import commitments
from annotate.work.moves import begin, begun, first_queue
from annotate.work.routes import Routes
from corpora.database.bulk_rows import batched, insert, listed, plain
from corpora.models import Item, as_read

# Redundancy of a unit that everybody should answer: the largest number that the column can store.
EVERYBODY = 32767
CHUNK = 2000  # units written at once
_Plain = plain(Unit)


Orders = Mapping[str, Mapping[str, list[str]]]  # by language and class, the ids of items in the order of the draw


# --- a compact index of the texts in a task, which uses 24 bytes per text, a tenth of the memory of a dictionary


_Run = tuple[NDArray[np.bytes_], NDArray[np.int64]]  # 16-byte digests in sorted order, and their keys
_TIMES = 4  # each run is at least this many times as large as the next one, so there are only a few runs


@dataclass
class Seen:
    """A mapping from 16-byte digests to keys."""

    runs: list[_Run] = field(default_factory=list)

    def find(self, digests: Iterable[bytes]) -> dict[bytes, int]:
        """Return the key of each digest. Digests that were never added are omitted."""
        wanted = list(dict.fromkeys(digests))
        wanted_array = np.array(wanted, "S16")
        keys_found: dict[bytes, int] = {}
        for sorted_digests, keys in self.runs:
            index = np.searchsorted(sorted_digests, wanted_array).clip(max=len(sorted_digests) - 1)
            for place in np.flatnonzero(sorted_digests[index] == wanted_array):
                keys_found[wanted[place]] = int(keys[index[place]])
        return keys_found

    def add(self, keys: Mapping[bytes, int]) -> None:
        """Add digests and their keys. None of the digests may have been added before."""
        if not keys:
            return
        run = np.array([*keys], "S16"), np.array([*keys.values()], np.int64)
        while self.runs and len(self.runs[-1][0]) < _TIMES * len(run[0]):
            earlier_digests, earlier_keys = self.runs.pop()
            run = np.concatenate([earlier_digests, run[0]]), np.concatenate([earlier_keys, run[1]])
        order = np.argsort(run[0], kind="stable")
        self.runs.append((run[0][order], run[1][order]))


class _Original(NamedTuple):
    """The values of a unit that are needed when other units become copies of it."""

    pk: int
    agreed_label: str


def add_units(
    task: Task,
    items: Iterable[Item],
    *,
    asked: str = "",
    known_answers: Mapping[int, str] = MappingProxyType({}),
    honeypots: bool = False,
    reuse: Mapping[int, tuple[Unit, str]] = MappingProxyType({}),
    predicted: Mapping[str, str] = MappingProxyType({}),
    suggested: Mapping[str, Mapping[str, list[str]]] = MappingProxyType({}),
    asks_all: bool = False,
) -> Counter[str]:
    """Create a unit for each item, in order, and route it. Returns the number of units per stage.

    Each CHUNK of units is a transaction. Callers that need a single transaction must open it.

    task: the task.
    items: the items.
    asked: language that the question about all items names, "" if any language is a possible answer.
    known_answers: the known answer of each item that is hidden among the work, by the item's primary key.
    honeypots: whether the units are hidden gold answers.
    reuse: the unit of a different task from which a label is reused, and the label in the form that this task uses, by
        the item's primary key.
    predicted: the predicted class of each item that a predictor selected, by item id. People label all of these items.
    suggested: if people compare systems, the replies that each system suggests, by item id. A unit is then created for
        each pair of systems.
    asks_all: whether people label all items, even those on which the detectors agree.
    """
    first = task.units.count() + 1
    texts = _texts_of(task, asked) if first > 1 else Seen()
    # A second person reads a share of the units that a single person reads.
    overlap_share = task.overlap_share if task.redundancy == 1 and not honeypots else 0
    fixed = {"task": task, "asked": asked, "redundancy": at_first(task.redundancy, stop_early=task.stop_early)}
    if honeypots:
        fixed |= {"honeypot": True, "redundancy": EVERYBODY}
    counts = Counter[str]()
    # There is one question per item, unless people compare systems.
    item_questions = _questions(task, items, suggested) if suggested else ((item, 0, None) for item in items)
    questions = enumerate(item_questions, first)

    @transaction.atomic
    def add_chunk() -> Counter[str]:
        # The items may be created while they are read. SQLite writes each page once if they are in this transaction.
        some = list(islice(questions, CHUNK))
        keys = (item.key for _, (item, *_) in some)
        overlap = commitments.draw_independently(task, OVERLAP, keys, overlap_share) if overlap_share else set()
        units = []
        for position, (item, pair, _) in some:
            more: dict[str, Any] = {
                "known_answer": known_answers.get(item.pk, ""),
                "predicted": predicted.get(item.key, ""),
            }
            more |= {"redundancy": 2} if item.key in overlap else {}
            units.append(_Plain(item=item, pair=pair, position=position, **fixed | more))
        if units:
            _route(units, [sets for _, (_, _, sets) in some], texts, reuse, asks_all)
            begun(task, units[0].position)
        return Counter(unit.stage for unit in units)

    while added := add_chunk():
        counts += added
    read = sum(control.units_added(task, first) for control in task.hooks["units_added"])
    return counts + Counter({stages.QUEUED: read}) - Counter({stages.AGREED: read})


def _route(
    units: list[Any],
    compared: list[Compared | None],
    texts: Seen,
    reuse: Mapping[int, tuple[Unit, str]],
    asks_all: bool,
) -> None:
    """Set the first stage of new units and store them.

    If the task already has a unit with the same text, the new unit becomes a copy of it, because people judge each text
    only once. If the detectors disagree about a unit, it enters the queue of its most likely language, even if nobody
    reads this language. The manager gets a warning about such units and can reroute them.

    units: the new units, a few thousand at most, so that memory is not exhausted.
    compared: the two sets of replies that each unit compares, None for a unit that does not compare systems.
    texts: index of the texts of all earlier units, which is extended.
    reuse, asks_all: see `add_units`.
    """
    task = units[0].task
    routes, agreed = Routes.load(task), task.kind.routing.agreed
    digests = [None if unit.known_answer else _digest(unit, sets) for unit, sets in zip(units, compared, strict=True)]
    originals, new = _originals(texts, digests) if texts.runs else {}, {}
    for unit, sets, digest in zip(units, compared, digests, strict=True):
        if digest and (original := originals.get(digest)):
            unit.copy_of, unit.agreed_label = original, original.agreed_label
            begin(unit, stages.COPIED)
            continue
        if digest:
            originals[digest] = new[digest] = unit
        label: str | None = ""
        if unit.item.pk in reuse:
            unit.reused_from, label = reuse[unit.item.pk]
            begin(unit, stages.LABELLED, label)
            continue
        if not (asks_all or unit.predicted or unit.known_answer):
            label = preference_kind.agreed(sets) if sets else agreed(unit.item, task)
        if label:
            unit.agreed_label = label
            begin(unit, stages.AGREED, label)
        else:
            begin(unit, stages.QUEUED, **first_queue(unit, routes))
    insert(units)
    insert(Comparison(unit_id=unit.pk, **sets._asdict()) for unit, sets in zip(units, compared, strict=True) if sets)
    texts.add({digest: unit.pk for digest, unit in new.items()})


def _texts_of(task: Task, asked: str) -> Seen:
    """Return an index of the texts of the task's units, except for units with a known answer."""
    texts = Seen()
    units = task.units.exported().filter(copy_of=None, asked=asked).select_related("item").iterator(CHUNK)
    for some in batched(units, CHUNK):
        texts.add({_digest(unit, None): unit.pk for unit in some})
    return texts


def _originals(texts: Seen, digests: Iterable[bytes | None]) -> dict[bytes, Any]:
    """Return the task's unit for each digest. Digests without a unit are omitted."""
    keys = texts.find(digest for digest in digests if digest)
    if not keys:
        return {}
    units = Unit.objects.filter(pk__in=listed(keys.values())).order_by()
    labels = dict(units.values_list("pk", "agreed_label"))
    return {digest: _Original(key, labels[key]) for digest, key in keys.items()}


def _questions(
    task: Task, items: Iterable[Item], suggested: Mapping[str, Mapping[str, list[str]]]
) -> Iterable[tuple[Item, int, Compared | None]]:
    """Return the questions of a task that compares systems. Each question becomes a unit.

    There is a question for each item and pair of systems, in a random order that does not reveal the systems.
    """
    pairs = [
        (item, number, sets)
        for item in items
        for number, sets in enumerate(preference_kind.compared(suggested[item.key]), 1)
    ]
    return sorted(pairs, key=lambda pair: hash_order.lot(task.seed, "place", f"{pair[0].key} {pair[1]}"))


def _digest(unit: Any, sets: Compared | None) -> bytes:
    """Return a digest of the content that a reader sees. Units that look the same have the same digest."""
    item = unit.item
    content: tuple[Any, ...] = as_read(item.language, item.text, item.fields)
    if sets is not None:
        content = item.language, *(item.fields[name] for name in unit.task.kind.fields), *map(str, sets)
    return hashlib.blake2b(repr(content).encode(), digest_size=16).digest()


def store_orders(task: Task, orders: Orders, taken: Collection[str]) -> dict[str, str]:
    """Store the items that may be drawn later. Returns the class of each item in `orders`, by id.

    orders: ids of the items in each language and class, in the order of the draw.
    taken: ids of items that are drawn now and therefore not stored.
    """
    reserve = (
        Reserve(task=task, language=language, predicted=label, place=place, key=key)
        for language, of_class in orders.items()
        for label, order in of_class.items()
        for place, key in enumerate(order)
        if key not in taken
    )
    for batch in batched(reserve, CHUNK):
        insert(batch)
    return {key: label for of_class in orders.values() for label, order in of_class.items() for key in order}


def shuffled(items: Iterable[Item], seed: str) -> list[Item]:
    """Return the items in a random order, so that items that were drawn together are not next to each other.

    Otherwise, a page for a different query among the pages for one query could be recognized as a hidden gold answer,
    and neighbouring items could reveal an item's class.
    """
    return sorted(items, key=lambda item: hash_order.lot(seed, "place", item.key))
