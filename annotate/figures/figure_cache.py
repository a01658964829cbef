"""A cache for statistics on large tasks and installations, which take seconds to compute.

A page shows the cached statistics with their time, and starts an update in the background. If nothing is cached yet, it
shows a message and reloads. Statistics on small tasks are computed for each request. The cache consists of files in the
data folder, which are shared by all processes of the server.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from threading import Lock, Thread
from typing import Any

from django.core.cache import caches
from django.db import connections
from django.db.models import Func, Max, Subquery, Sum
from django.utils import timezone

from annotate.figures.finish_forecast import forecast_of
from annotate.models import Annotator, Task
from corpora.models import Draw

LARGE = 5_000  # minimum number of drawn items for caching
EACH = 10  # number of items that an annotator counts as, because forecasts simulate annotators
FRESH = 10.0  # minimum age of statistics before they are updated, in seconds
SHARE = 0.05  # maximum share of the server's time spent on updates for a page
# Pages and parts of pages with statistics on a single task.
PAGES = ("progress", "items", "people", "labels", "agreement", "preferences", "queues", "stands")
OF_ALL = ("tasks", "dates", "everybody")  # pages with statistics on all tasks
HOUR, DAY = 3600, 24 * 3600  # seconds
PATIENCE = 0.15  # how long a page waits for statistics that are not cached, in seconds
CHANGED = "changed"  # cache key for the last invalidation time

logger = logging.getLogger(__name__)
_running: dict[str, Thread] = {}
_failed: dict[str, Exception] = {}
_lock = Lock()


class StatisticsPending(Exception):
    """Raised if statistics are still being computed."""


def figures(
    page: str, task: Task | None, count: Callable[[], Any], *, patience: float | None = PATIENCE
) -> tuple[Any, datetime | None]:
    """Return the statistics for a page, and the time of their computation; None if they are not cached.

    task: the page's task; None if the page is about all tasks.
    count: function that computes the statistics.
    patience: maximum time to wait if nothing is cached (seconds); None for no limit, and 0 to start no computation.

    Raise StatisticsPending if the statistics are not available within that time.
    """
    draws = Draw.objects.filter(tasks=task) if task else Draw.objects.all()
    people = Annotator.objects.order_by().annotate(number=Func("pk", function="COUNT")).values("number")
    if (draws.aggregate(size=Sum("size") + EACH * Max(Subquery(people)))["size"] or 0) < LARGE:
        return count(), None
    key = _key(page, task)
    cached = caches["figures"].get(key)
    if cached is None:
        # If the computation has failed since the last request, raise its error. Otherwise, the page would reload
        # forever.
        if patience == 0:
            raise StatisticsPending
        if key not in _failed:
            _start_count(key, count).join(patience)
        if error := _failed.pop(key, None):
            raise error
        cached = caches["figures"].get(key)
        if cached is None:
            raise StatisticsPending
        return cached[0], None
    statistics, computed_at, took = cached
    if patience != 0 and not 0 <= (timezone.now() - computed_at).total_seconds() < max(FRESH, took / SHARE):
        _start_count(key, count)
    return statistics, computed_at


def cached_forecast(task: Task, states: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the forecast for a task, or None if no unit is waiting or the task is closed.

    The forecast is cached for an hour, or until the task's queues change.

    states: result of queue_states.
    """
    left = [(row["queue"], row["missing"], row["able"]) for row in states["queues"] if row["waiting"]]
    if not left or not task.is_open:
        return None
    key = sha256(f"{task.pk} {task.created_at:%s%f} {timezone.localdate()} {left}".encode()).hexdigest()
    return caches["default"].get_or_set(f"forecast-{key}", lambda: forecast_of(task, states), HOUR)


def forget(task: Task) -> None:
    """Invalidate all cached statistics of a task. Call this when a manager has changed the task."""
    caches["figures"].set(CHANGED, timezone.now(), DAY)
    caches["figures"].delete_many([*(_key(page, None) for page in OF_ALL), *(_key(page, task) for page in PAGES)])


def _key(page: str, task: Task | None) -> str:
    return f"{page}-{task.pk}-{task.created_at:%s%f}" if task else page


def _start_count(key: str, count: Callable[[], Any]) -> Thread:
    """Return the process's thread that computes the statistics under a key, and start it if necessary."""
    with _lock:
        if key not in _running:
            _running[key] = Thread(target=_count, args=[key, count], name=f"counting {key}", daemon=True)
            _running[key].start()
        return _running[key]


def _count(key: str, count: Callable[[], Any]) -> None:
    try:
        started_at, statistics = timezone.now(), count()
        # Compute the statistics again if a manager changed something in the meantime, in any process.
        while (changed := caches["figures"].get(CHANGED)) and started_at <= changed:
            started_at, statistics = timezone.now(), count()
        caches["figures"].set(key, (statistics, started_at, (timezone.now() - started_at).total_seconds()), DAY)
        _failed.pop(key, None)
    except Exception as error:
        logger.exception("The figures %s could not be computed.", key)
        _failed[key] = error  # raised by the next request
    finally:
        connections.close_all()
        with _lock:
            del _running[key]
