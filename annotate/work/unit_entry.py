"""Creates a task's units: each item becomes a unit that is labelled, queued for annotators, or a copy of another."""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
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
from annotate.work.moves import first_queue, insert_units
from annotate.work.routes import Routes
from corpora.database.bulk_rows import batched, insert, listed, new_keys
from corpora.models import Item, as_read

# Redundancy of a unit that every annotator should answer: the largest number that the column can store.
MAX_REDUNDANCY = 32767
CHUNK = 2000  # units per transaction


Orders = Mapping[str, Mapping[str, list[str]]]  # language -> class -> item ids in draw order


# --- a compact index of a task's texts, which uses 24 bytes per text, a tenth of a dictionary's memory


_Run = tuple[NDArray[np.bytes_], NDArray[np.int64]]  # 16-byte digests in sorted order, and their keys
_TIMES = 4  # each run is at least this many times as large as the next one, so there are only a few runs


@dataclass
class TextIndex:
    """A mapping from 16-byte digests of texts to units' primary keys."""

    runs: list[_Run] = field(default_factory=list)

    def find(self, digests: Iterable[bytes]) -> dict[bytes, int]:
        """Return the key of each digest. Unknown digests are left out."""
        unique = list(dict.fromkeys(digests))
        unique_array = np.array(unique, "S16")
        keys_found: dict[bytes, int] = {}
        for sorted_digests, keys in self.runs:
            index = np.searchsorted(sorted_digests, unique_array).clip(max=len(sorted_digests) - 1)
            for position in np.flatnonzero(sorted_digests[index] == unique_array):
                keys_found[unique[position]] = int(keys[index[position]])
        return keys_found

    def add(self, keys: Mapping[bytes, int]) -> None:
        """Add digests and their keys. All digests must be new."""
        if not keys:
            return
        run = np.array([*keys], "S16"), np.array([*keys.values()], np.int64)
        while self.runs and len(self.runs[-1][0]) < _TIMES * len(run[0]):
            earlier_digests, earlier_keys = self.runs.pop()
            run = np.concatenate([earlier_digests, run[0]]), np.concatenate([earlier_keys, run[1]])
        order = np.argsort(run[0], kind="stable")
        self.runs.append((run[0][order], run[1][order]))


def add_units(task: Task, items: Iterable[Any], **settings: Any) -> Counter[str]:
    """Create and route a unit for each item, in order. Returns the number of units by stage.

    Each CHUNK of units has its own transaction, unless the caller has opened one.

    settings: fields of `UnitCreator`.
    """
    entrance, first = UnitCreator(task, **settings), task.units.count() + 1
    if first > 1:
        entrance.texts = _index_texts(task, entrance.asked)
    counts = Counter[str]()
    # `batched` reads the next items before the transaction begins.
    for questions in batched(entrance.questions(items), CHUNK):
        counts += entrance.add(questions, first + counts.total())
    to_annotators = sum(control.units_added(task, first) for control in task.hooks["units_added"])
    return counts + Counter({stages.QUEUED: to_annotators}) - Counter({stages.AGREED: to_annotators})


# An item, the number of the pair of systems to compare, and their replies; 0 and None if no systems are compared.
_Question = tuple[Any, int, Compared | None]


class _Start(NamedTuple):
    """Field values of a new unit that depend on its first stage."""

    stage: str
    label: str = ""
    agreed_label: str = ""
    copy_of_id: int | None = None
    reused_from_id: int | None = None
    candidates: Sequence[str] = ()
    visited: Sequence[str] = ()
    round: int = 0
    language: str = ""


@dataclass
class UnitCreator:
    """Creates a task's units in batches, to limit memory use.

    asked: the language that the question names ("Is this …?"); "" if any language is a possible answer.
    known_answers: known answers of items that are hidden among the work, by the item's primary key.
    honeypots: whether the units are hidden gold answers.
    reuse: labels to reuse, by the item's primary key. Each is a unit of another task and the unit's label in the form
        that this task uses.
    predicted: predicted class of each item that a predictor selected, by item id. Annotators label all of these items.
    suggested: if annotators compare systems, each system's replies, by item id and system. A unit is then created for
        each pair of systems.
    asks_all: whether annotators label all items, even those on which the detectors agree.
    store: saves new items in the transaction that creates their units, and returns the saved items.
    texts: index of the texts of all earlier units.
    """

    task: Task
    asked: str = ""
    known_answers: Mapping[int, str] = field(default_factory=dict)
    honeypots: bool = False
    reuse: Mapping[int, tuple[Unit, str]] = field(default_factory=dict)
    predicted: Mapping[str, str] = field(default_factory=dict)
    suggested: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)
    asks_all: bool = False
    store: Callable[[Sequence[Any]], Sequence[Any]] = list
    texts: TextIndex = field(default_factory=TextIndex)

    def __post_init__(self) -> None:
        self.routes, self.routing = Routes.load(self.task), self.task.kind.routing
        # Many units have the same values, so build these only once.
        self.agreed = cache(lambda label: _Start(stages.AGREED, label, label))
        self.queued = cache(lambda *candidates: _Start(stages.QUEUED, **first_queue(candidates, self.routes)))

    def questions(self, items: Iterable[Any]) -> Iterable[_Question]:
        """Return the questions about the items. Each question becomes a unit.

        If annotators compare systems, there is one question for each item and pair of systems, in a random order that
        doesn't reveal the systems.
        """
        if not self.suggested:
            return ((item, 0, None) for item in items)
        pairs: list[_Question] = [
            (item, number, sets)
            for item in items
            for number, sets in enumerate(preference_kind.compared(self.suggested[item.key]), 1)
        ]
        seed = self.task.seed
        return sorted(pairs, key=lambda pair: hash_order.lot(seed, "place", f"{pair[0].key} {pair[1]}"))

    @transaction.atomic(savepoint=False)
    def add(self, questions: Sequence[_Question], first: int) -> Counter[str]:
        """Create a unit for each question. Returns the number of units by stage.

        first: position of the first new unit.
        """
        task, (drawn, pairs, compared) = self.task, zip(*questions, strict=True)
        items, keys = self.store(drawn), new_keys(Unit, len(drawn))
        overlap, redundancy = set[str](), MAX_REDUNDANCY
        if not self.honeypots:
            redundancy = at_first(task.redundancy, stop_early=task.stop_early)
            # If units need one answer, a random share of them gets a second one.
            share = task.overlap_share if task.redundancy == 1 else 0
            overlap = commitments.draw_independently(task, OVERLAP, (item.key for item in items), share)
        starts = zip(*self.starts(keys, items, compared), strict=True)
        units: dict[str, Sequence[Any]] = {
            "id": keys,
            "item_id": [item.pk for item in items],
            "pair": pairs,
            "position": range(first, first + len(items)),
            "redundancy": [2 if item.key in overlap else redundancy for item in items],
            "known_answer": [self.known_answers.get(item.pk, "") for item in items],
            "predicted": [self.predicted.get(item.key, "") for item in items],
            **dict(zip(_Start._fields, starts, strict=True)),
        }
        insert_units(task, units, asked=self.asked, honeypot=self.honeypots)
        insert(Comparison(unit_id=key, **sets._asdict()) for key, sets in zip(keys, compared, strict=True) if sets)
        return Counter(units["stage"])

    def starts(
        self, keys: Sequence[int], items: Sequence[Any], compared: Sequence[Compared | None]
    ) -> Iterator[_Start]:
        """Yield the first-stage values of each unit, and add the texts to the index.

        If the task already has a unit with the same text, the new unit becomes a copy of it, so that each text is
        labelled only once.

        keys: primary keys of the units.
        """
        digests = list(map(self._digest, items, compared))
        originals, new = _find_originals(self.texts, filter(None, digests)), {}
        for key, item, sets, digest in zip(keys, items, compared, digests, strict=True):
            if digest in originals:
                original, agreed_label = originals[digest]
                yield _Start(stages.COPIED, copy_of_id=original, agreed_label=agreed_label)
                continue
            start = self._start(item, sets)
            if digest:
                originals[digest], new[digest] = (key, start.agreed_label), key
            yield start
        self.texts.add(new)

    def _start(self, item: Any, sets: Compared | None) -> _Start:
        """Return the first-stage values of a unit with a new text.

        If the detectors disagree, the unit enters the queue of its most likely language, even without readers. Managers
        are warned about such units and can reroute them.
        """
        if item.pk in self.reuse:
            unit, label = self.reuse[item.pk]
            return _Start(stages.LABELLED, label, reused_from_id=unit.pk)
        if not (self.asks_all or item.key in self.predicted or item.pk in self.known_answers):
            agreed = preference_kind.agreed(sets) if sets else self.routing.agreed(item, self.task)
            if agreed:
                return self.agreed(agreed)
        return self.queued(*self.routing.candidates(item, self.asked, self.routes))

    def _digest(self, item: Any, sets: Compared | None) -> bytes | None:
        if item.pk in self.known_answers:
            return None
        if sets is None:
            return _digest(*as_read(item.language, item.text, item.fields))
        return _digest(item.language, *(item.fields[name] for name in self.task.kind.fields), *map(str, sets))


def _digest(*content: Any) -> bytes:
    """Return a digest of the content shown to annotators. Units that look the same have the same digest."""
    return hashlib.blake2b(repr(content).encode(), digest_size=16).digest()


def _index_texts(task: Task, language: str) -> TextIndex:
    """Index the texts of a task's units that ask about a language, except for units with a known answer."""
    texts, units = TextIndex(), task.units.exported().filter(copy_of=None, asked=language)
    rows = units.values_list("pk", "item__language", "item__text", "item__fields").iterator(CHUNK)
    for batch in batched(rows, CHUNK):
        texts.add({_digest(*as_read(*content)): key for key, *content in batch})
    return texts


def _find_originals(texts: TextIndex, digests: Iterable[bytes]) -> dict[bytes | None, tuple[int, str]]:
    """Return the primary key and agreed label of the earlier unit with each digest. New digests are left out."""
    keys = texts.find(digests) if texts.runs else {}
    units = Unit.objects.filter(pk__in=listed(keys.values())).order_by()
    labels = dict(units.values_list("pk", "agreed_label")) if keys else {}
    return {digest: (key, labels[key]) for digest, key in keys.items()}


def store_orders(task: Task, orders: Orders, taken: Collection[str]) -> dict[str, str]:
    """Save the items that may be drawn later. Returns the class of each item in `orders`, by id.

    taken: ids of items that are drawn now and need not be saved.
    """
    reserve = (
        Reserve(task=task, language=language, predicted=label, place=place, key=key)
        for language, by_class in orders.items()
        for label, order in by_class.items()
        for place, key in enumerate(order)
        if key not in taken
    )
    for batch in batched(reserve, CHUNK):
        insert(batch)
    return {key: label for by_class in orders.values() for label, order in by_class.items() for key in order}


def shuffle(items: Iterable[Item], seed: str) -> list[Item]:
    """Return the items in a random order, so that items drawn together aren't next to each other.

    Otherwise, neighbouring items could reveal an item's class, and a page for one query among pages for another query
    could be recognized as a hidden gold answer.
    """
    return sorted(items, key=lambda item: hash_order.lot(seed, "place", item.key))
