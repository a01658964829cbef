"""Draws by lot among units of a task, written down as they are made, so that they can be checked at the end.

How lots are drawn, and which of them there are, stands in core/lots.py. Callers have opened a transaction.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from annotate.core import lottery
from annotate.models import Lot, Task


def drawn_each(task: Task, purpose: str, keys: Iterable[str], share: float) -> set[str]:
    """Those of the ids that a lot chooses, each for itself; nothing is written down where the share is 0."""
    listed = list(dict.fromkeys(keys))
    if not share or not listed:
        return set()
    found = [key for key in listed if lottery.hit(share, lots=task.lots, purpose=purpose, key=key)]
    keep(task, purpose, (), {"share": share}, listed, found)
    return set(found)


def topped_up(
    task: Task,
    purpose: str,
    of: Sequence[str],
    keys: Iterable[str],
    *,
    before: tuple[int, int],
    share: float,
    least: int,
) -> list[str]:
    """lottery.topped_up of ids; nothing is written down where share and least are 0."""
    listed = list(keys)
    if not (share or least):
        return []
    found = lottery.topped_up(listed, before=before, share=share, least=least, lots=task.lots, purpose=purpose)
    keep(task, purpose, of, {"share": share, "least": least, "before": list(before)}, listed, found)
    return found


def drawn(task: Task, purpose: str, of: Sequence[str], keys: Iterable[str], count: int) -> list[str]:
    """lottery.drawn of ids."""
    listed = list(keys)
    found = lottery.drawn(listed, count, lots=task.lots, purpose=purpose)
    keep(task, purpose, of, {"count": count}, listed, found)
    return found


def keep(
    task: Task, purpose: str, of: Sequence[str], how: dict[str, Any], frame: Sequence[Any], drawn: Sequence[Any]
) -> None:
    Lot.objects.create(task=task, purpose=purpose, of=list(of), how=how, frame=list(frame), drawn=list(drawn))
