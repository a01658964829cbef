"""The actions to close, reopen, reroute and delete tasks, and to delete corpora and predictors."""

from collections.abc import Callable
from typing import Any

from annotate.actions.action import TASK, ActionError, Outcome, Progress, Values, action, task_named
from annotate.actions.opening_summary import lacking
from annotate.core.option import Option, flag
from annotate.figures import overview_report, task_overview
from annotate.figures.queue_states import queue_states
from annotate.reports.tables import many
from annotate.work import closure, routing
from annotate.work.closure import delete_task, task_to_delete
from corpora.storage import inventory

# --- Close and reopen

LEAVE_OUT = Option(
    "leave_out", flag, False, help="leave out units without a label, counted, so that the set is finished"
)


@action(
    "close",
    "Close a task: nobody receives its units any more. Answers stay and can be exported, units whose answers "
    "already decide get their label, and `reopen` continues the work.",
    TASK,
    LEAVE_OUT,
)
def close_action(values: Values, progress: Progress) -> Outcome:
    task = task_named(values["task"])
    why = [row["said"] for row in queue_states(task)["queues"] if row["stuck"]] if task.is_open else []
    done = closure.close(task, leave_out=values["leave_out"])
    left = [*why, overview_report.leave_out(task.name)] if done["unfinished"] and task.kind.answered_here else []
    return Outcome([overview_report.closed(done)], left, done)


@action("reopen", "Reopen a closed task, so that people receive its units again.", TASK)
def reopen_action(values: Values, progress: Progress) -> Outcome:
    task = task_named(values["task"])
    done = closure.reopen(task)
    return Outcome([overview_report.reopened(done)], lacking(task), done)


# --- Reroute


@action("reroute", "Send units of queues with too few readers on to the next language.", TASK)
def reroute_action(values: Values, progress: Progress) -> Outcome:
    task = task_named(values["task"])
    counts = routing.reroute(task)
    undecidable = task_overview.undecidable(task)
    stuck = overview_report.undecidable(undecidable)
    data = {"task": task.name, **counts, "undecidable": undecidable}
    return Outcome([overview_report.rerouted(counts)], [stuck] if stuck else [], data)


# --- Delete


def _asks(values: Values) -> list[str]:
    foretell, _ = _chosen(values)
    unsaid = " Nobody has said anything of it yet." if values["task"] else ""
    return [f"This deletes {_of(foretell())}.{unsaid} It cannot be taken back."]


@action(
    "delete",
    "Delete a task without answers, a corpus from which nothing was drawn, or a predictor that no draw used. It "
    "shows what would be deleted and asks first.",
    Option("task", default="", argument=True, help="the task to delete; omit it with --corpus"),
    Option("corpus", default="", shown="NAME", help="delete this corpus with its posts and everything imported for it"),
    Option(
        "predictor",
        default="",
        shown="NAME@VERSION",
        help="with --corpus: delete only the predictions of this predictor",
    ),
    asks=_asks,
)
def delete_action(values: Values, progress: Progress) -> Outcome:
    _, delete = _chosen(values)
    gone = delete()
    return Outcome([f"Deleted: {_of(gone)}."], data=gone)


def _chosen(values: Values) -> tuple[Callable[[], dict[str, Any]], Callable[[], dict[str, Any]]]:
    """Return two functions for the chosen task, corpus or predictor: one counts what would be deleted, the other
    deletes it.

    Both raise an error if the task, corpus or predictor is in use, so that it must not be deleted.
    """
    task, corpus, predictor = values["task"], values["corpus"], values["predictor"]
    if bool(task) == bool(corpus):
        raise ActionError("Name one task to delete, or one corpus with --corpus NAME.")
    if predictor and task:
        raise ActionError("A predictor is one of a corpus: name that with --corpus, and no task.")
    if task:
        found = task_named(task)
        return lambda: task_to_delete(found), lambda: delete_task(found)
    if predictor:
        return (
            lambda: inventory.predictions_to_delete(corpus, predictor),
            lambda: inventory.delete_predictions(corpus, predictor),
        )
    return lambda: inventory.corpus_to_delete(corpus), lambda: inventory.delete_corpus(corpus)


def _of(gone: dict[str, Any]) -> str:
    """Describe what is deleted.

    gone: result of one of the functions that `_chosen` returns
    """
    if "task" in gone:
        golds = f", {many(gone['gold_answers'], 'gold answer')}" if gone["gold_answers"] else ""
        return f"task {gone['task']} with {many(gone['units'], 'unit')}{golds} and {many(gone['draws'], 'draw')}"
    if "predictor" in gone:
        return f"what {gone['predictor']} says of {many(gone['posts'], 'post')} of corpus {gone['corpus']}"
    rest = f", its votes and the predictions of {', '.join(gone['predictors'])}" if gone["predictors"] else ""
    return f"corpus {gone['corpus']} with {many(gone['rows'], 'row')} from {many(gone['files'], 'file')}{rest}"
