"""delete: a task without answers, a corpus that nothing was drawn from, a predictor that no draw went by."""

from collections.abc import Callable
from typing import Any

from annotate.actions.action import Action, ActionError, Outcome, task_named
from annotate.core.option import Option
from annotate.reports.tables import many
from annotate.work.closure import delete_task, task_to_delete
from corpora.storage import inventory

OPTIONS = (
    Option("task", default="", argument=True, help="the name of the task to delete; left out with --corpus"),
    Option("corpus", default="", shown="NAME", help="delete this corpus, its posts and all that was imported for it"),
    Option(
        "predictor",
        default="",
        shown="NAME@VERSION",
        help="with --corpus, delete only what this predictor says of the posts in the corpus",
    ),
)


def asks(values) -> list[str]:
    foretell, _ = _chosen(values)
    unsaid = " Nobody has said anything of it yet." if values["task"] else ""
    return [f"This deletes {_of(foretell())}.{unsaid} It cannot be taken back."]


def run(values, progress) -> Outcome:
    _, delete = _chosen(values)
    gone = delete()
    return Outcome([f"Deleted: {_of(gone)}."], data=gone)


def _chosen(values) -> tuple[Callable[[], dict[str, Any]], Callable[[], dict[str, Any]]]:
    """What says how much there is to delete, and what deletes it; both refuse it where it stays."""
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
    """What it is that is deleted."""
    if "task" in gone:
        golds = f", {many(gone['gold_answers'], 'gold answer')}" if gone["gold_answers"] else ""
        return f"task {gone['task']} with {many(gone['units'], 'unit')}{golds} and {many(gone['draws'], 'draw')}"
    if "predictor" in gone:
        return f"what {gone['predictor']} says of {many(gone['posts'], 'post')} of corpus {gone['corpus']}"
    return f"corpus {gone['corpus']} with {many(gone['rows'], 'row')} from {many(gone['files'], 'file')}{_and(gone)}"


def _and(gone: dict[str, Any]) -> str:
    return f", its votes and the predictions of {', '.join(gone['predictors'])}" if gone["predictors"] else ""


ACTION = Action(
    "delete",
    "Delete what nothing rests on: a task of which nobody has said anything, a corpus that nothing was drawn from, or "
    "a predictor that no draw went by. Says what would go and asks first; all of it goes or nothing.",
    OPTIONS,
    run,
    asks=asks,
)
