"""Figures of large tasks, which take seconds to count: a page shows those that were counted last, says when that was,
and has them counted again beside it. Where none were counted yet, it says so and asks again. Figures of other tasks are
counted for the page.

They are kept in files of the data folder, which all processes of the server share.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from threading import Lock, Thread
from typing import Any

from django.core.cache import caches
from django.db import connections
from django.db.models import Sum
from django.utils import timezone

from annotate.figures.finish_forecast import forecast_of
from annotate.models import Task
from corpora.models import Draw

LARGE = 5_000  # items drawn for a task, or for all that a page is about
FRESH = 10.0  # seconds for which figures are not counted again
SHARE = 0.05  # of the time at the most in which a page has its figures counted
# Pages, and parts of pages, that have figures of one task.
PAGES = ("progress", "people", "labels", "agreement", "preferences", "queues", "stands")
OF_ALL = ("tasks", "dates", "everybody")  # those that have figures of all tasks
HOUR, DAY = 3600, 24 * 3600  # seconds
PATIENCE = 0.15  # seconds that a page waits for figures that were never counted
CHANGED = "changed"  # the key of when figures were last forgotten

logger = logging.getLogger(__name__)
_under_way: dict[str, Thread] = {}
_failed: dict[str, Exception] = {}
_lock = Lock()


class BeingCountedError(Exception):
    """There are no figures yet; they are being counted."""


def figures(
    page: str, task: Task | None, count: Callable[[], Any], *, patience: float | None = PATIENCE
) -> tuple[Any, datetime | None]:
    """What `count` finds for a page of a task, or of all tasks; and when, if it was kept.

    BeingCountedError if nothing is kept and counting takes longer than `patience`, in seconds; None: as long as it
    takes.
    """
    draws = Draw.objects.filter(tasks=task) if task else Draw.objects.all()
    if (draws.aggregate(size=Sum("size"))["size"] or 0) < LARGE:
        return count(), None
    key = _key(page, task)
    found = caches["figures"].get(key)
    if found is None:
        # It may have failed since the page was asked for last; else whoever asks would be told to wait forever.
        if key not in _failed:
            _begin(key, count).join(patience)
        if error := _failed.pop(key, None):
            raise error
        found = caches["figures"].get(key)
        if found is None:
            raise BeingCountedError
        return found[0], None
    known, at, took = found
    if not 0 <= (timezone.now() - at).total_seconds() < max(FRESH, took / SHARE):
        _begin(key, count)
    return known, at


def foretold(task: Task, states: Mapping[str, Any]) -> dict[str, Any] | None:
    """When the task will be done, kept for an hour while its queues stand as they do; None where nothing waits or the
    task is closed. states: of queue_states.
    """
    left = [(row["queue"], row["missing"], row["able"]) for row in states["queues"] if row["waiting"]]
    if not left or not task.is_open:
        return None
    key = sha256(f"{task.pk} {task.created_at:%s%f} {timezone.localdate()} {left}".encode()).hexdigest()
    return caches["default"].get_or_set(f"forecast-{key}", lambda: forecast_of(task, states), HOUR)


def forget(task: Task) -> None:
    """Have all figures of a task counted for whoever looks next, since a manager has changed something."""
    caches["figures"].set(CHANGED, timezone.now(), DAY)
    caches["figures"].delete_many([*(_key(page, None) for page in OF_ALL), *(_key(page, task) for page in PAGES)])


def _key(page: str, task: Task | None) -> str:
    return f"{page}-{task.pk}-{task.created_at:%s%f}" if task else page


def _begin(key: str, count: Callable[[], Any]) -> Thread:
    """The thread that counts, of which there is one for each key in each process."""
    with _lock:
        if key not in _under_way:
            _under_way[key] = Thread(target=_count, args=[key, count], name=f"counting {key}", daemon=True)
            _under_way[key].start()
        return _under_way[key]


def _count(key: str, count: Callable[[], Any]) -> None:
    try:
        at, found = timezone.now(), count()
        # What a manager changed meanwhile, by whichever process, may not be in it.
        while (changed := caches["figures"].get(CHANGED)) and at <= changed:
            at, found = timezone.now(), count()
        caches["figures"].set(key, (found, at, (timezone.now() - at).total_seconds()), DAY)
        _failed.pop(key, None)
    except Exception as error:
        logger.exception("The figures %s could not be counted.", key)
        _failed[key] = error  # for whoever asks next
    finally:
        connections.close_all()
        with _lock:
            del _under_way[key]
