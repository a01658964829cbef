"""The dashboard's list of what needs a manager's attention, and its length for the link to the dashboard."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache

from annotate.figures import annotator_statistics, task_statistics
from annotate.figures.figure_cache import PATIENCE, BeingCountedError, figures
from annotate.figures.queue_states import queue_states_of
from annotate.models import Flag, Job, Task
from annotate.work.accounts import waiting_requests
from annotate.work.adjudication import adjudicator_counts

FEW = 5  # maximum number of stalled queues of each task, and of failed jobs
COUNT = "attention"  # key of the cached length
KEPT = 30  # time for which the length is cached, in seconds


def all_tasks(open_tasks: Iterable[Task], patience: float = PATIENCE) -> tuple[Any, datetime | None]:
    """Return ((rows, states, activity), counted_at): a row for each task, the state of each open task, the activity of
    annotators, and the time at which these figures were computed if they come from the cache.

    patience: as for figures.
    """
    return figures(
        "tasks",
        None,
        lambda: (task_statistics.overview(), _states(open_tasks), annotator_statistics.activity()),
        patience=patience,
    )


def _states(open_tasks: Iterable[Task]) -> dict[int, dict[str, Any]]:
    """Return the state of each task by primary key. It is small, because every request for the dashboard reads it.

    stuck: number of stalled queues.
    stalled: name and description of the first FEW of them.
    is_unread: whether items wait, but nobody reads any of the task's queues.
    """
    states = {}
    for task, state in queue_states_of(open_tasks).items():
        stalled = [{"name": row["name"], "said": row["said"]} for row in state["queues"] if row["stuck"]]
        waits, read = (any(row[key] for row in state["queues"]) for key in ("waiting", "readers"))
        states[task] = {"stuck": len(stalled), "stalled": stalled[:FEW], "is_unread": waits and not read}
    return states


@dataclass(frozen=True)
class Attention:
    """The entries of the list.

    flags, requests: number of open flags and of open language requests
    failed: failed jobs
    paused, unadjudicated: rows of tasks with newly paused annotators, and of tasks without an adjudicator
    stalled: (task, first FEW stalled queues, number of further stalled queues); the number may be negative
    """

    flags: int
    requests: int
    failed: list[Job]
    paused: list[Mapping[str, Any]]
    unadjudicated: list[Mapping[str, Any]]
    stalled: list[tuple[Task, list[Any], int]]

    def __len__(self) -> int:
        queues = sum(len(rows) + (more > 0) for _, rows, more in self.stalled)
        one_each = (*self.failed, *self.paused, *self.unadjudicated)
        return bool(self.flags) + bool(self.requests) + len(one_each) + queues


def attention(rows: Iterable[Mapping[str, Any]], states: Mapping[int, Any], open_tasks: Iterable[Task]) -> Attention:
    """Return what needs attention now. The arguments are the figures of `all_tasks`, and the open tasks."""
    tasks = [task for task in open_tasks if task.pk in states]
    to_decide = {row["name"]: row for row in rows if row["adjudication"]}
    deciding = [task for task in tasks if task.name in to_decide]
    able = adjudicator_counts(deciding) if deciding else {}
    found = Attention(
        flags=Flag.objects.open().count(),
        requests=waiting_requests().count(),
        failed=list(Job.objects.failed()[:FEW]),
        paused=[row for row in rows if row["newly_paused"]],
        unadjudicated=[to_decide[task.name] for task in deciding if not able[task.pk]],
        stalled=[
            (task, state["stalled"], state["stuck"] - FEW) for task in tasks if (state := states[task.pk])["stuck"]
        ],
    )
    cache.set(COUNT, len(found), KEPT)
    return found


def attention_count() -> int:
    """Return the length of the list. It is 0 until a page has triggered the computation for large tasks."""
    number: int | None = cache.get(COUNT)
    if number is None:
        open_tasks = list(Task.objects.filter(is_open=True).prefetch_related("draws"))
        try:
            (rows, states, _), _ = all_tasks(open_tasks, patience=0)
        except BeingCountedError:
            return 0
        number = len(attention(rows, states, open_tasks))
    return number
