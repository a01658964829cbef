"""Entry of units into a task: each item becomes a unit that gets a label, goes to people, or becomes a copy."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
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
from annotate.work.moves import begin, begin_with_people, begun
from annotate.work.routes import Routes
from corpora.database.bulk_rows import insert, listed, plain
from corpora.models import Item, same

# Redundancy of a unit that everybody answers: the largest number that the column holds.
EVERYBODY = 32767
CHUNK = 2000  # units written at once
_Plain = plain(Unit)


Orders = Mapping[str, Mapping[str, list[str]]]  # language -> class -> ids


# --- a compact index of the texts so far, with 24 bytes per text, a tenth of what a dictionary needs


# Both halves of 16-byte digests and their keys, sorted by the first half.
_Run = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]
_TIMES = 4  # each run is at least this many times as large as the next, so there are few


class Seen:
    """A mapping from 16-byte digests to keys."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def find(self, digests: Iterable[bytes]) -> dict[bytes, int]:
        """Return the keys of those digests that were added before."""
        asked = list(dict.fromkeys(digests))
        first, second = _halves(asked)
        found: dict[bytes, int] = {}
        for firsts, seconds, keys in self._runs:
            at, places = np.searchsorted(firsts, first), np.arange(len(asked))
            # Several digests may share their first half.
            while len(places := places[at[places] < len(firsts)]):
                places = places[firsts[at[places]] == first[places]]
                there = places[seconds[at[places]] == second[places]]
                found |= {
                    asked[place]: key for place, key in zip(there.tolist(), keys[at[there]].tolist(), strict=True)
                }
                at[places] += 1
        return found

    def add(self, keys: Mapping[bytes, int]) -> None:
        """Add digests and their keys. None of the digests may have been added before."""
        if not keys:
            return
        self._runs.append(_in_order((*_halves([*keys]), np.fromiter(keys.values(), np.int64, len(keys)))))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < _TIMES * len(self._runs[-1][0]):
            last, before = self._runs.pop(), self._runs.pop()
            first, second, of = (np.concatenate(pair) for pair in zip(before, last, strict=True))
            self._runs.append(_in_order((first, second, of)))


def _halves(digests: list[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    numbers = np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)
    return numbers[:, 0].copy(), numbers[:, 1].copy()


def _in_order(run: _Run) -> _Run:
    order = np.argsort(run[0], kind="stable")  # fast for two sorted runs
    return run[0][order], run[1][order], run[2][order]


class _Original(NamedTuple):
    """The values kept of a unit that another may be a copy of."""

    pk: int
    agreed_label: str


@transaction.atomic
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

    task: the task.
    items: the items.
    asked: language that all items ask about, "" if any may be answered.
    known_answers: item -> known answer, for items hidden among the work.
    honeypots: whether the units are hidden gold answers.
    reuse: item -> unit of another task that people labelled, and its label as it applies here.
    predicted: id -> class with which a predictor selected the item; people label all of these.
    suggested: id -> system -> replies, if people compare two systems. Each pair of systems then gets a unit.
    asks_all: whether people label everything, even where machines agree.
    """
    texts, first = _texts_of(task, asked), task.units.count() + 1
    fixed = {"task": task, "asked": asked, "redundancy": at_first(task.redundancy, stop_early=task.stop_early)}
    if honeypots:
        fixed |= {"honeypot": True, "redundancy": EVERYBODY}
    before = [control.before_units(task) for control in task.controls]
    counts = Counter[str]()
    questions = enumerate(_questions(task, items, suggested), first)
    while some := list(islice(questions, CHUNK)):
        overlap = set() if honeypots else choose_overlap(task, (item.key for _, (item, *_) in some))
        units = []
        for position, (item, pair, _) in some:
            more = {"known_answer": known_answers.get(item.pk, ""), "predicted": predicted.get(item.key, "")}
            more |= {"redundancy": 2} if item.key in overlap else {}
            units.append(_Plain(item=item, pair=pair, position=position, **fixed | more))
        _route(units, [sets for _, (_, _, sets) in some], texts, reuse, asks_all)
        counts.update(unit.stage for unit in units)
    begun(task, first)
    read = sum(control.units_added(task, first, known) for control, known in zip(task.controls, before, strict=True))
    return counts + Counter({stages.QUEUED: read}) - Counter({stages.AGREED: read})


def _route(
    units: list[Any],
    compared: list[Compared | None],
    texts: Seen,
    reuse: Mapping[int, tuple[Unit, str]],
    asks_all: bool,
) -> None:
    """Set the first stage of new units and store them. Memory holds a few thousand units, and 24 bytes per text.

    Items whose text the task already has become copies, since people judge a text once. A disputed unit enters the
    queue of its most likely language even if nobody reads it; the manager is warned and can reroute it.

    compared: the two sets of replies of each unit, None unless it compares systems.
    texts: texts of all units so far.
    """
    task = units[0].task
    routes, agreed = Routes.load(task), task.kind.routing.agreed
    digests = [None if unit.known_answer else _digest(unit, sets) for unit, sets in zip(units, compared, strict=True)]
    originals, new = _originals(texts, digests), {}
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
        if not (asks_all or unit.predicted or (sets and unit.known_answer)):
            label = preference_kind.agreed(sets) if sets else agreed(unit.item, task)
        if label:
            unit.agreed_label = label
            begin(unit, stages.AGREED, label)
        else:
            begin_with_people(unit, routes)
    insert(units)
    insert(Comparison(unit_id=unit.pk, **sets._asdict()) for unit, sets in zip(units, compared, strict=True) if sets)
    texts.add({digest: unit.pk for digest, unit in new.items()})


def _texts_of(task: Task, asked: str) -> Seen:
    """Return the texts shown to people in the task's units, without those of known answers."""
    texts = Seen()
    units = task.units.exported().filter(copy_of=None, asked=asked).select_related("item").iterator(CHUNK)
    while some := list(islice(units, CHUNK)):
        texts.add({_digest(unit, None): unit.pk for unit in some})
    return texts


def _originals(texts: Seen, digests: Iterable[bytes | None]) -> dict[bytes, Any]:
    """Return digest -> unit, for texts that a unit of the task has."""
    known = texts.find(digest for digest in digests if digest)
    if not known:
        return {}
    units = Unit.objects.filter(pk__in=listed(known.values())).order_by()
    labels = dict(units.values_list("pk", "agreed_label"))
    return {digest: _Original(key, labels[key]) for digest, key in known.items()}


def _questions(
    task: Task, items: Iterable[Item], suggested: Mapping[str, Mapping[str, list[str]]]
) -> Iterable[tuple[Item, int, Compared | None]]:
    """Return the questions: one per item, or one per pair of systems in an order that does not reveal them."""
    if not suggested:
        return ((item, 0, None) for item in items)
    pairs = [
        (item, number, sets)
        for item in items
        for number, sets in enumerate(preference_kind.compared(suggested[item.key]), 1)
    ]
    return sorted(pairs, key=lambda pair: hash_order.lot(task.seed, "place", f"{pair[0].key} {pair[1]}"))


def _digest(unit: Any, sets: Compared | None) -> bytes:
    """Return a digest of what a reader sees, equal for units that look the same."""
    item = unit.item
    shown: tuple[Any, ...] = same(item)
    if sets is not None:
        shown = item.language, *(item.fields[name] for name in unit.task.kind.fields), *map(str, sets)
    return hashlib.blake2b(repr(shown).encode(), digest_size=16).digest()


def store_orders(task: Task, orders: Orders, taken: Collection[str]) -> dict[str, str]:
    """Store items that may be drawn later, except those taken now. Returns id -> class for all items."""
    insert(
        Reserve(task=task, language=language, predicted=label, place=place, key=key)
        for language, of_class in orders.items()
        for label, order in of_class.items()
        for place, key in enumerate(order)
        if key not in taken
    )
    return {key: label for of_class in orders.values() for label, order in of_class.items() for key in order}


def shuffled(items: Iterable[Item], seed: str) -> list[Item]:
    """Return the items in random order, which separates items that were drawn together.

    Among the pages of one query, a page of another would be recognizable as a hidden gold answer, and neighbours would
    reveal a class.
    """
    return sorted(items, key=lambda item: hash_order.lot(seed, "place", item.key))


def choose_overlap(task: Task, keys: Iterable[str]) -> set[str]:
    """Return the ids of new units that the random draw assigns to two people, where other units get one."""
    return commitments.drawn_each(task, OVERLAP, keys, task.overlap_share) if task.redundancy == 1 else set()
