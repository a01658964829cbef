"""An overview of all tasks: their progress, next steps, waiting work and draws.

The number of queries does not depend on the number of tasks. For a single task, see `task_statistics.py` and
`queue_states.py`. This module only reads data.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef

from annotate.controls import check_report
from annotate.controls.audit_report import contested_waiting
from annotate.core import stages
from annotate.figures import overview_report, task_statistics
from annotate.figures.queue_states import DONE, UNREAD, queue_states_of
from annotate.figures.task_statistics import pick
from annotate.kinds.interface_language import label_name
from annotate.models import Job, Judgment, Task, Unit
from annotate.reports.tables import are
from annotate.work import adjudication
from annotate.work.closure import reopening_advice
from corpora.models import Draw

NAMED = 5  # maximum number of queues in a sentence


@dataclass(frozen=True)
class Overview:
    """The overview. Open tasks come first, then newer tasks.

    tasks: a row for each task; see below.
    waits: a row for each unfinished queue, and a row for each task with units waiting for an adjudicator.

    A row for a task has the keys of task_statistics.overview, and:

    corpora: names of the task's corpora.
    missing: number of missing answers; None if the task is closed.
    stuck: number of stalled queues.
    contested: number of units that still need a label, by language that failed its audit.
    contesting: primary key of the job that queues agreed units for annotators after a failed audit, or None.
    read: whether any unit was labelled in this task.
    unseconded: whether the task needs second opinions, but there is no second adjudicator.
    next: next step, as a sentence.

    A row in `waits` has `task`, `queue` (empty for adjudication), `name`, `waiting` (number of units), `missing`
    (number of answers), `able` (number of annotators who may work), `stuck` and `said` (the state, as a sentence).
    """

    tasks: list[dict[str, Any]]
    waits: list[dict[str, Any]]


def load_overview() -> Overview:
    tasks = {task.name: task for task in Task.objects.all()}
    # Skip closed tasks, because their units are not assigned.
    states = queue_states_of(task for task in tasks.values() if task.is_open)
    corpora: dict[str, list[str]] = defaultdict(list)
    drawn = Task.objects.order_by("draws__corpus__name").values_list("name", "draws__corpus__name").distinct()
    for name, corpus in drawn:
        corpora[name] += [corpus] if corpus else []
    adjudicators = adjudication.adjudicator_counts(tasks.values())
    contested, contesting = contested_waiting(), dict(Job.objects.contesting().values_list("given__task", "pk"))
    labelled = Unit.objects.filter(task=OuterRef("pk"), stage=stages.LABELLED, reused_from=None)
    read = set(Task.objects.filter(Exists(labelled)).values_list("name", flat=True))
    rows, waits = [], []
    # Skip tasks opened since the first query.
    for row in (overview_row for overview_row in task_statistics.overview() if overview_row["name"] in tasks):
        task = tasks[row["name"]]
        able = adjudicators[task.pk]
        queues = states[task.pk]["queues"] if task.is_open else []
        full_row = {
            **row,
            "corpora": corpora[task.name],
            "missing": sum(queue["missing"] for queue in queues) if task.is_open else None,
            "stuck": sum(queue["stuck"] for queue in queues),
            "contested": contested.get(task.pk, {}),
            "contesting": contesting.get(task.name),
            "read": task.name in read,
            "unseconded": row["done"] < row["units"] and check_report.lacks_second_adjudicator(task, able),
        }
        rows.append(full_row | {"next": _next_step(task, full_row, queues, able)})
        waits += _waiting_rows(task, full_row, queues, able)
    return Overview(rows, waits)


def _waiting_rows(
    task: Task, row: dict[str, Any], queues: list[dict[str, Any]], adjudicators: int
) -> list[dict[str, Any]]:
    keys = ("queue", "name", "waiting", "missing", "able", "stuck", "said")
    rows = [{key: queue[key] for key in keys} for queue in queues if queue["state"] != DONE]
    if row["adjudication"]:
        sentence = "Waiting for adjudicators." if adjudicators else "There is no adjudicator. Add an adjudicator."
        waiting = {"waiting": row["adjudication"], "missing": row["adjudication"], "able": adjudicators}
        rows.append({"queue": "", "name": "", **waiting, "stuck": not adjudicators, "said": sentence})
    return [{"task": task.name, **queue_row} for queue_row in rows]


# --- Next step


def _next_step(task: Task, row: dict[str, Any], queues: list[dict[str, Any]], adjudicators: int) -> str:
    """Return a sentence about the most urgent problem or, if there is none, about the next step."""
    left = row["units"] - row["done"]
    if row["contesting"]:
        return (
            f"An audit has failed, and job {row['contesting']} will send the agreed posts to people. `assay serve` or "
            "`assay work` runs the job."
        )
    if not left and row["units"] == row["discarded"]:
        return _nothing_to_publish(task, row["units"])
    if not left:
        return _publish(task, is_read=row["read"])
    if row["newly_paused"]:
        paused = are(row["newly_paused"], "person was", "people were")
        return f"{paused} paused, and no manager has reviewed this. See the task's page People."
    if not task.is_open:
        return _closed(task, left)
    if row["stuck"]:
        return _stalled(task, [queue for queue in queues if queue["stuck"]])
    if row["adjudication"] and not adjudicators:
        return f"{_wait(row['adjudication'])} for an adjudicator, but there is none. Add an adjudicator."
    if row["queued"]:
        needed = f"In progress: {are(row['missing'], 'more answer is', 'more answers are')} needed."
        return f"{needed} {overview_report.contested(row['contested'])}".rstrip()
    return f"{_wait(row['adjudication'])} for an adjudicator."


def _nothing_to_publish(task: Task, units: int) -> str:
    if not units:
        return (
            f"The draw is empty, so there is nothing to read. Delete the task with `assay delete {task.name}`, and "
            "open one that draws from a larger corpus or for other languages."
        )
    advice = f" {reopening_advice(task)}" if not task.is_open and task.kind.answered_here else ""
    return f"None of the items has a label, so a gold set would be empty.{advice}"


def _publish(task: Task, *, is_read: bool) -> str:
    publish = f"`assay export_gold {task.name} --out FOLDER`"
    # The command that reports the quality of the task's labels
    look = next((control.look_at for control in task.hooks["panel"] if control.look_at), "")
    if not look and (task.redundancy > 1 or task.overlap_share or not task.kind.answered_here):
        look = "agreement"
    if not (is_read and look):
        return f"All items are finished. Publish the gold set: {publish}."
    return f"All items are finished. Check `assay {look} {task.name}`, then publish the gold set: {publish}."


def _closed(task: Task, left: int) -> str:
    if not task.kind.answered_here:
        return f"{are(left, 'item needs', 'items need')} more judgments. Import them, or publish the finished items."
    return (
        f"The task is closed, and {are(left, 'item has', 'items have')} no label. {reopening_advice(task)} "
        f"{overview_report.leave_out(task.name)}"
    )


def _stalled(task: Task, stuck: list[dict[str, Any]]) -> str:
    names = ", ".join(label_name(queue["queue"]) for queue in stuck[:NAMED])
    more = f" and {len(stuck) - NAMED:,} more" if len(stuck) > NAMED else ""
    units = sum(queue["waiting"] for queue in stuck)
    summary = f"{_wait(units)} in stalled queues ({names}{more})"
    if task.kind.routing.waits or any(queue["state"] != UNREAD for queue in stuck):
        reasons = " ".join(queue["said"] for queue in stuck[:NAMED])
        return f"{summary}. {reasons} {overview_report.leave_out(task.name)}"
    invite = "Invite readers with `assay add_annotators FILE`"
    return f"{summary}, because nobody reads them. {invite}, or move the items with `assay reroute {task.name}`."


def _wait(number: int) -> str:
    return are(number, "item is waiting", "items are waiting")


# --- Draws


def draw_rows(*, corpus: str = "", task: str = "") -> list[dict[str, Any]]:
    """Return draws, newest first.

    corpus, task: name of the corpus or task whose draws to return; "" for all.

    A row has `draw`, `corpus`, `design`, `language`, `predictor`, `seed`, `asked`, `drawn`, `frame`, `chance`, `tasks`,
    `extended` (whether a larger draw replaced this draw) and `created_at`.
    """
    draws = Draw.objects.select_related("corpus").prefetch_related("tasks").order_by("-pk")
    if corpus:
        draws = draws.filter(corpus__name=corpus)
    if task:
        draws = draws.filter(tasks__name=task)
    larger = set(Draw.objects.exclude(extends=None).values_list("extends", flat=True))
    return [
        pick(draw, "draw=pk corpus=corpus.name design language predictor seed asked drawn=size frame=frame_size chance")
        | {"tasks": sorted(task_.name for task_ in draw.tasks.all()), "extended": draw.pk in larger}
        | {"created_at": draw.created_at}
        for draw in draws
    ]


# --- A single task


def undecidable(task: Task) -> int:
    """Count the units that wait for an adjudicator although every active adjudicator has already judged them."""
    active = adjudication.adjudicators(task)
    judged = Judgment.objects.binding().filter(annotator__in=active).order_by().values("unit", "annotator")
    by_unit = Counter(row["unit"] for row in judged.filter(unit__task=task, unit__stage=stages.ADJUDICATION).distinct())
    number = active.count()
    if not number:
        return task.units.filter(stage=stages.ADJUDICATION).count()
    return sum(by >= number for by in by_unit.values())
