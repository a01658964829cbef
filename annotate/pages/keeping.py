"""Figures of large tasks, which take seconds to count: a page shows those that were counted last, says when that was,
and has them counted again beside it. Figures of other tasks are counted for the page.

They are kept in files of the data folder, which all processes of the server share.
"""

import time
from collections.abc import Callable
from datetime import datetime
from threading import Lock, Thread
from typing import Any

from django.core.cache import caches
from django.db import connections
from django.db.models import Sum
from django.utils import timezone

from annotate.models import Task
from corpora.models import Draw

LARGE = 20_000  # items drawn for a task, or for all that a page is about
FRESH = 10.0  # seconds for which figures are not counted again
SHARE = 0.05  # of the time at the most in which a page has its figures counted
PAGES = ("progress", "people", "agreement", "preferences")  # that have figures of one task
DAY = 24 * 3600  # seconds

_under_way: set[str] = set()
_lock = Lock()


def figures(page: str, task: Task | None, count: Callable[[], Any]) -> tuple[Any, datetime | None]:
    """What `count` finds for a page of a task, or of all open tasks; and when, if it was kept."""
    draws = Draw.objects.filter(tasks=task) if task else Draw.objects.filter(tasks__is_open=True)
    if (draws.aggregate(size=Sum("size"))["size"] or 0) < LARGE:
        return count(), None
    key = _key(page, task)
    found = caches["figures"].get(key)
    if found is None:
        return _counted(key, count), None
    known, at, took = found
    if not 0 <= (timezone.now() - at).total_seconds() < max(FRESH, took / SHARE):
        _begin(key, count)
    return known, at


def forget(task: Task) -> None:
    """Have all figures of a task counted for whoever looks next, since a manager has changed something."""
    caches["figures"].delete_many([_key("tasks", None), *(_key(page, task) for page in PAGES)])


def _key(page: str, task: Task | None) -> str:
    return f"{page}-{task.pk}-{task.created_at:%s%f}" if task else page


def _counted(key: str, count: Callable[[], Any]) -> Any:
    began, at = time.monotonic(), timezone.now()
    found = count()
    caches["figures"].set(key, (found, at, time.monotonic() - began), DAY)
    return found


def _begin(key: str, count: Callable[[], Any]) -> None:
    with _lock:
        if key in _under_way:
            return
        _under_way.add(key)
    Thread(target=_again, args=[key, count], name=f"counting {key}", daemon=True).start()


def _again(key: str, count: Callable[[], Any]) -> None:
    try:
        _counted(key, count)
    finally:
        with _lock:
            _under_way.discard(key)
        connections.close_all()
