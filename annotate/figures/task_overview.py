"""An overview of all tasks: their progress, next steps, waiting work and draws.

The number of queries does not depend on the number of tasks. For single tasks, see `task_statistics.py` and
`queue_states.py`. This module only reads data.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef

from annotate.controls import checks
from annotate.controls.audit_report import contested_waiting
from annotate.core import stages
from annotate.figures import overview_report, task_statistics
from annotate.figures.queue_states import DONE, UNREAD, queue_states_of
from annotate.figures.task_statistics import picked
from annotate.kinds.interface_language import label_name
from annotate.models import Job, Judgment, Task, Unit
from annotate.reports.tables import are, many
from annotate.work import adjudication
from annotate.work.closure import how_to_go_on
from corpora.models import Draw

NAMED = 5  # maximum number of queues that a sentence names


@dataclass(frozen=True)
class Standing:
    """The overview. Open tasks come first, and newer tasks come before older tasks.

    tasks: a row for each task; see below.
    waits: a row for each unfinished queue, and a row for each task with units that wait for an adjudicator.

    A row for a task has the keys of task_statistics.overview, and:

    corpora: names of the task's corpora.
    missing: number of missing answers; None if the task is closed.
    stuck: number of stalled queues.
    contested: for each language that failed its audit, number of units that still need a label.
    contesting: primary key of the job that sends units to people after a failed audit, or None.
    read: whether any unit was labelled in this task.
    unseconded: whether the task needs second opinions, but there is no second adjudicator.
    next: next step, as a sentence.

    A row in `waits` has task, queue (empty for adjudication), name, waiting (number of units), missing (number of
    answers), able (number of people who may work), stuck and said.
    """

    tasks: list[dict[str, Any]]
    waits: list[dict[str, Any]]


def standing() -> Standing:
    tasks = {task.name: task for task in Task.objects.all()}
    # Skip closed tasks, because their units are not assigned.
    states = queue_states_of(task for task in tasks.values() if task.is_open)
    corpora: dict[str, list[str]] = defaultdict(list)
    drawn = Task.objects.order_by("draws__corpus__name").values_list("name", "draws__corpus__name").distinct()
    for name, corpus in drawn:
        corpora[name] += [corpus] if corpus else []
    able = adjudication.adjudicators().count()
    contested, contesting = contested_waiting(), dict(Job.objects.contesting().values_list("given__task", "pk"))
    labelled = Unit.objects.filter(task=OuterRef("pk"), stage=stages.LABELLED, reused_from=None)
    read = set(Task.objects.filter(Exists(labelled)).values_list("name", flat=True))
    rows, waits = [], []
    # Skip tasks that were opened after the first query.
    for row in (each for each in task_statistics.overview() if each["name"] in tasks):
        task = tasks[row["name"]]
        queues = states[task.pk]["queues"] if task.is_open else []
        whole = {
            **row,
            "corpora": corpora[task.name],
            "missing": sum(queue["missing"] for queue in queues) if task.is_open else None,
            "stuck": sum(queue["stuck"] for queue in queues),
            "contested": contested.get(task.pk, {}),
            "contesting": contesting.get(task.name),
            "read": task.name in read,
            "unseconded": row["done"] < row["units"] and checks.unseconded(task, able),
        }
        rows.append(whole | {"next": _next(task, whole, queues, able)})
        waits += _waits(task, whole, queues, able)
    return Standing(rows, waits)


def _waits(task: Task, row: dict[str, Any], queues: list[dict[str, Any]], adjudicators: int) -> list[dict[str, Any]]:
    kept = ("queue", "name", "waiting", "missing", "able", "stuck", "said")
    found = [{key: queue[key] for key in kept} for queue in queues if queue["state"] != DONE]
    if row["adjudication"]:
        said = "Adjudicators have them." if adjudicators else "There is no adjudicator: make somebody one."
        waiting = {"waiting": row["adjudication"], "missing": row["adjudication"], "able": adjudicators}
        found.append({"queue": "", "name": "", **waiting, "stuck": not adjudicators, "said": said})
    return [{"task": task.name, **each} for each in found]


# --- Next step


def _next(task: Task, row: dict[str, Any], queues: list[dict[str, Any]], adjudicators: int) -> str:
    """Return a sentence about the most urgent problem. If there is no problem, it describes the next step."""
    left = row["units"] - row["done"]
    if row["contesting"]:
        return (
            f"An audit has failed, and job {row['contesting']} sends what the detectors agreed on there to people. "
            "`assay serve` and `assay work` do it."
        )
    if not left and row["units"] == row["discarded"]:
        return _nothing_to_publish(task, row["units"])
    if not left:
        return _publish(task, is_read=row["read"])
    if row["newly_paused"]:
        paused = are(row["newly_paused"], "person was", "people were")
        return f"{paused} paused, and no manager has looked at it: see the task's page People."
    if not task.is_open:
        return _closed(task, left)
    if row["stuck"]:
        return _stuck(task, [queue for queue in queues if queue["stuck"]])
    if row["adjudication"] and not adjudicators:
        return f"{_wait(row['adjudication'])} for an adjudicator, and there is none: make somebody one."
    if row["queued"]:
        missing = f"People may go on: {are(row['missing'], 'answer is', 'answers are')} missing."
        return f"{missing} {overview_report.contested(row['contested'])}".rstrip()
    return f"{_wait(row['adjudication'])} for an adjudicator."


def _nothing_to_publish(task: Task, units: int) -> str:
    if not units:
        return (
            f"Nothing was drawn, so nobody has anything to read. Delete it with `assay delete {task.name}`, and open a "
            "task that draws from a larger corpus or for other languages."
        )
    again = f" {how_to_go_on(task)}" if not task.is_open and task.kind.answered_here else ""
    return f"None of its {many(units, 'unit')} has a label, so a gold set would be empty.{again}"


def _publish(task: Task, *, is_read: bool) -> str:
    publish = f"`assay export_gold {task.name} --out FOLDER`"
    # The command that reports the quality of the task's labels.
    look = next((control.look_at for control in task.controls if control.look_at), "")
    if not look and (task.redundancy > 1 or task.overlap_share or not task.kind.answered_here):
        look = "agreement"
    if not (is_read and look):
        return f"All is done. Publish it: {publish}."
    return f"All is done. Look at `assay {look} {task.name}`, then publish it: {publish}."


def _closed(task: Task, left: int) -> str:
    if not task.kind.answered_here:
        return (
            f"Judgments of {many(left, 'unit')} are missing, and made elsewhere: import more, or publish what there is."
        )
    return (
        f"{many(left, 'unit')} without a label, and the task is closed. {how_to_go_on(task)} "
        f"{overview_report.leave_out(task.name)}"
    )


def _stuck(task: Task, stuck: list[dict[str, Any]]) -> str:
    names = ", ".join(label_name(queue["queue"]) for queue in stuck[:NAMED])
    more = f" and {len(stuck) - NAMED:,} more" if len(stuck) > NAMED else ""
    units = sum(queue["waiting"] for queue in stuck)
    told = f"{_wait(units)} in queues that stand still ({names}{more})"
    if task.kind.routing.waits or any(queue["state"] != UNREAD for queue in stuck):
        why = " ".join(queue["said"] for queue in stuck[:NAMED])
        return f"{told}. {why} {overview_report.leave_out(task.name)}"
    invite = "invite readers with `assay add_annotators FILE`"
    return f"{told}, since nobody reads them: {invite}, or send them on with `assay reroute {task.name}`."


def _wait(number: int) -> str:
    return are(number, "unit waits", "units wait")


# --- Draws


def draws_there(*, corpus: str = "", task: str = "") -> list[dict[str, Any]]:
    """Return draws, newest first.

    corpus, task: name of the corpus or task whose draws to return; by default, all draws are returned.

    A row has draw, corpus, design, language, predictor, seed, asked, drawn, frame, chance, tasks, extended (whether a
    larger draw replaced this draw) and created_at.
    """
    found = Draw.objects.select_related("corpus").prefetch_related("tasks").order_by("-pk")
    if corpus:
        found = found.filter(corpus__name=corpus)
    if task:
        found = found.filter(tasks__name=task)
    larger = set(Draw.objects.exclude(extends=None).values_list("extends", flat=True))
    return [
        picked(
            draw, "draw=pk corpus=corpus.name design language predictor seed asked drawn=size frame=frame_size chance"
        )
        | {"tasks": sorted(each.name for each in draw.tasks.all()), "extended": draw.pk in larger}
        | {"created_at": draw.created_at}
        for draw in found
    ]


# --- One task


def undecidable(task: Task) -> int:
    """Return the number of units that wait for an adjudicator, but that every active adjudicator has judged already."""
    active = adjudication.adjudicators()
    judged = Judgment.objects.binding().filter(annotator__in=active).order_by().values("unit", "annotator")
    by_unit = Counter(row["unit"] for row in judged.filter(unit__task=task, unit__stage=stages.ADJUDICATION).distinct())
    number = active.count()
    if not number:
        return task.units.filter(stage=stages.ADJUDICATION).count()
    return sum(by >= number for by in by_unit.values())
