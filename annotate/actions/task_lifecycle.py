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
    "leave_out",
    flag,
    False,
    help="exclude units without a label, and report their number, so that the gold set is finished",
)


@action(
    "close",
    "Close a task, so that annotators no longer receive its units. Answers are kept and can be exported, and units "
    "with enough answers get their label. To continue the work, use `reopen`.",
    TASK,
    LEAVE_OUT,
)
def close_action(values: Values, progress: Progress) -> Outcome:
    task = task_named(values["task"])
    reasons = [row["said"] for row in queue_states(task)["queues"] if row["stuck"]] if task.is_open else []
    result = closure.close(task, leave_out=values["leave_out"])
    warnings = (
        [*reasons, overview_report.leave_out(task.name)] if result["unfinished"] and task.kind.answered_here else []
    )
    return Outcome([overview_report.closed(result)], warnings, result)


@action("reopen", "Reopen a closed task, so that annotators receive its units again.", TASK)
def reopen_action(values: Values, progress: Progress) -> Outcome:
    task = task_named(values["task"])
    result = closure.reopen(task)
    return Outcome([overview_report.reopened(result)], lacking(task), result)


# --- Reroute


@action("reroute", "Move units from queues with too few readers to the queue of the next language.", TASK)
def reroute_action(values: Values, progress: Progress) -> Outcome:
    task = task_named(values["task"])
    counts = routing.reroute(task)
    undecidable = task_overview.undecidable(task)
    warning = overview_report.undecidable(undecidable)
    data = {"task": task.name, **counts, "undecidable": undecidable}
    return Outcome([overview_report.rerouted(counts)], [warning] if warning else [], data)


# --- Delete


def _confirmation(values: Values) -> list[str]:
    count, _ = _operations(values)
    unanswered = " The task has no answers." if values["task"] else ""
    return [f"This deletes {_description(count())}.{unanswered} This cannot be undone."]


@action(
    "delete",
    "Delete a task without answers, a corpus without draws, or a predictor that no draw used. The command shows what "
    "would be deleted and asks for confirmation.",
    Option("task", default="", argument=True, help="the task to delete; omit it with --corpus"),
    Option("corpus", default="", shown="NAME", help="delete this corpus with its posts and everything imported for it"),
    Option(
        "predictor",
        default="",
        shown="NAME@VERSION",
        help="with --corpus: delete only the predictions of this predictor",
    ),
    asks=_confirmation,
)
def delete_action(values: Values, progress: Progress) -> Outcome:
    _, delete = _operations(values)
    deleted = delete()
    return Outcome([f"Deleted: {_description(deleted)}."], data=deleted)


def _operations(values: Values) -> tuple[Callable[[], dict[str, Any]], Callable[[], dict[str, Any]]]:
    """Return two functions for the chosen task, corpus or predictor: one counts what would be deleted, the other
    deletes it.

    Both raise an error if the task, corpus or predictor is in use, so that it must not be deleted.
    """
    task, corpus, predictor = values["task"], values["corpus"], values["predictor"]
    if bool(task) == bool(corpus):
        raise ActionError("Specify either one task to delete, or one corpus with --corpus NAME.")
    if predictor and task:
        raise ActionError("--predictor requires --corpus and cannot be used with a task.")
    if task:
        task_to_remove = task_named(task)
        return lambda: task_to_delete(task_to_remove), lambda: delete_task(task_to_remove)
    if predictor:
        return (
            lambda: inventory.predictions_to_delete(corpus, predictor),
            lambda: inventory.delete_predictions(corpus, predictor),
        )
    return lambda: inventory.corpus_to_delete(corpus), lambda: inventory.delete_corpus(corpus)


def _description(deleted: dict[str, Any]) -> str:
    """Describe what is deleted.

    deleted: result of one of the functions that `_chosen` returns
    """
    if "task" in deleted:
        golds = f", {many(deleted['gold_answers'], 'gold answer')}" if deleted["gold_answers"] else ""
        return (
            f"task {deleted['task']} with {many(deleted['units'], 'unit')}{golds} and {many(deleted['draws'], 'draw')}"
        )
    if "predictor" in deleted:
        posts = many(deleted["posts"], "post")
        return f"the predictions of {deleted['predictor']} for {posts} of corpus {deleted['corpus']}"
    rest = f", its votes and the predictions of {', '.join(deleted['predictors'])}" if deleted["predictors"] else ""
    return f"corpus {deleted['corpus']} with {many(deleted['rows'], 'row')} from {many(deleted['files'], 'file')}{rest}"
