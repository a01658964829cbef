"""The dashboard's list of entries that need a manager's attention, and its length for the link to the dashboard."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache

from annotate.figures import annotator_statistics, task_statistics
from annotate.figures.figure_cache import PATIENCE, StatisticsPending, figures
from annotate.figures.queue_states import queue_states_of
from annotate.models import Flag, Job, Task
from annotate.work.accounts import pending_requests
from annotate.work.adjudication import adjudicator_counts

FEW = 5  # maximum number of failed jobs, and of stalled queues for each task
COUNT = "attention"  # cache key of the list's length
KEPT = 30  # how long the length is cached, in seconds


def all_tasks(patience: float = PATIENCE) -> tuple[Any, datetime | None]:
    """Return ((rows, states, activity), counted_at): task rows, states of open tasks, and the annotators' activity.

    counted_at: time when the statistics were computed; None if they do not come from the cache.
    patience: as in `figures`.
    """
    return figures(
        "tasks",
        None,
        lambda: (task_statistics.overview(), _task_states(), annotator_statistics.activity()),
        patience=patience,
    )


def _task_states() -> dict[str, dict[str, Any]]:
    """Return the state of each open task by name. It is kept small, because every request for the dashboard reads it.

    stuck: number of stalled queues.
    stalled: name and description of the first FEW stalled queues.
    is_unread: whether items are waiting, but no annotator reads any of the task's queues.
    """
    tasks = {task.pk: task for task in Task.objects.filter(is_open=True)}
    states = {}
    for task, state in queue_states_of(tasks.values()).items():
        stalled = [{"name": row["name"], "said": row["said"]} for row in state["queues"] if row["stuck"]]
        waits, read = (any(row[key] for row in state["queues"]) for key in ("waiting", "readers"))
        states[tasks[task].name] = {"stuck": len(stalled), "stalled": stalled[:FEW], "is_unread": waits and not read}
    return states


@dataclass(frozen=True)
class Entry:
    """An entry of the list about a task.

    row: the task's row.
    about: "paused" (new pauses), "queue" (a stalled queue), "more" (other stalled queues) or "adjudicator" (items are
        waiting for an adjudicator, but there is none).
    detail: the stalled queue, or the number of other stalled queues.
    """

    row: Mapping[str, Any]
    about: str
    detail: Any = None


@dataclass(frozen=True)
class Attention:
    """The list of everything that needs attention.

    flags, requests: number of open flags, and number of open language requests
    failed: failed jobs
    entries: entries about tasks
    """

    flags: int
    requests: int
    failed: list[Job]
    entries: list[Entry]

    def __len__(self) -> int:
        return bool(self.flags) + bool(self.requests) + len(self.failed) + len(self.entries)

    @property
    def unadjudicated(self) -> set[str]:
        """The names of tasks that have items waiting for an adjudicator, but no adjudicator."""
        return {entry.row["name"] for entry in self.entries if entry.about == "adjudicator"}


def attention(rows: Iterable[Mapping[str, Any]], states: Mapping[str, Any]) -> Attention:
    """Return the current list. The arguments are statistics from `all_tasks`, possibly cached."""
    # Statistics from the cache don't include tasks opened since then, and may include tasks closed since then.
    tasks = {task.name: task for task in Task.objects.filter(is_open=True).only("name", "members_only")}
    open_rows = [row for row in rows if row["name"] in states and row["name"] in tasks]
    deciding = [row for row in open_rows if row["adjudication"]]
    able = adjudicator_counts(tasks.values()) if deciding else {}
    result = Attention(
        flags=Flag.objects.open().count(),
        requests=pending_requests().count(),
        failed=list(Job.objects.failed()[:FEW]),
        entries=[
            *(Entry(row, "paused") for row in rows if row["newly_paused"]),
            *(entry for row in open_rows for entry in _stalled_entries(row, states[row["name"]])),
            *(Entry(row, "adjudicator") for row in deciding if not able[tasks[row["name"]].pk]),
        ],
    )
    cache.set(COUNT, len(result), KEPT)
    return result


def _stalled_entries(row: Mapping[str, Any], state: Mapping[str, Any]) -> Iterator[Entry]:
    yield from (Entry(row, "queue", queue) for queue in state["stalled"])
    if (more := state["stuck"] - FEW) > 0:
        yield Entry(row, "more", more)


def attention_count() -> int:
    """Return the length of the list, or 0 if large tasks' statistics have not been computed for a page yet."""
    number: int | None = cache.get(COUNT)
    if number is None:
        try:
            (rows, states, _), _ = all_tasks(patience=0)
        except StatisticsPending:
            return 0
        number = len(attention(rows, states))
    return number
