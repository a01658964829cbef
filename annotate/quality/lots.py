"""Draws by lot among units of a task, written down as they are made, so that they can be checked at the end.

How lots are drawn, and which of them there are, stands in committed_draws.py. Callers have opened a transaction.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from annotate.core.draws import hash_order
from annotate.models import Lot, Task, Unit

_READ = 2_000


def drawn_each(task: Task, purpose: str, keys: Iterable[str], share: float) -> set[str]:
    """Those of the ids that a lot chooses, each for itself; nothing is written down where the share is 0."""
    listed = list(dict.fromkeys(keys))
    if not share or not listed:
        return set()
    by = task.lots
    found = [key for key in listed if hash_order.hit(share, lots=by, purpose=purpose, key=key)]
    keep(task, purpose, (), {"share": share}, listed, found)
    return set(found)


def drawn(task: Task, purpose: str, of: Sequence[str], keys: Iterable[str], count: int) -> list[str]:
    """lottery.drawn of ids."""
    listed = list(keys)
    found = hash_order.drawn(listed, count, lots=task.lots, purpose=purpose)
    keep(task, purpose, of, {"count": count}, listed, found)
    return found


def drawn_units(
    task: Task, purpose: str, units: QuerySet[Unit], paths: Sequence[str], counts: Mapping[tuple[str, ...], int]
) -> list[int]:
    """The same in each stratum of units that may be many; returns the keys of those whose items are drawn.

    paths: what a stratum has in common; counts: by stratum. The ids of one stratum are in memory at a time.
    """
    found: list[int] = []
    rows = units.order_by(*paths, "pk").values_list(*paths, "item__key", "pk").iterator(_READ)
    for of, group in groupby(rows, key=lambda row: row[:-2]):
        ids, keys = [], array("q")
        for *_, id, key in group:
            ids.append(id)
            keys.append(key)
        chosen = set(drawn(task, purpose, of, ids, counts.get(of, 0)))
        found += [key for id, key in zip(ids, keys, strict=True) if id in chosen]
    return found


def keep(
    task: Task, purpose: str, of: Sequence[str], how: dict[str, Any], frame: Sequence[Any], drawn: Sequence[Any]
) -> None:
    Lot.objects.create(task=task, purpose=purpose, of=list(of), how=how, frame=list(frame), drawn=list(drawn))
