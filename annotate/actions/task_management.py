"""The actions that close, reopen, reroute and delete tasks, choose members, and delete corpora and predictors."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django.db import transaction

from annotate.actions.action import TASK, ActionError, Outcome, Progress, Values, action, task_named
from annotate.actions.opening_summary import reader_warnings
from annotate.core.option import Option, flag
from annotate.figures import annotator_statistics, overview_report, people_report, task_overview
from annotate.figures.figure_cache import forget
from annotate.figures.queue_states import queue_states
from annotate.models import Annotator, Membership, Task
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import many
from annotate.work import closure, membership, routing
from annotate.work.membership import MEMBERS, OPEN_TO
from annotate.work.routes import is_language, to_language_code, unknown_code
from corpora.storage import inventory

# --- Close and reopen

LEAVE_OUT = Option(
    "leave_out",
    flag,
    False,
    help="exclude items without a label, and report their number, so that the gold set is finished",
)


@action(
    "close",
    "Close a task, so that annotators no longer receive its items. Answers are kept and can be exported, and items "
    "with enough answers get their label. To continue the work, use `reopen`.",
    TASK,
    LEAVE_OUT,
)
def close_action(values: Values, progress: Progress) -> Outcome:
    task = values["task"]
    reasons = [row["said"] for row in queue_states(task)["queues"] if row["stuck"]] if task.is_open else []
    result = closure.close(task, leave_out=values["leave_out"])
    warnings = (
        [*reasons, overview_report.leave_out(task.name)] if result["unfinished"] and task.kind.answered_here else []
    )
    return Outcome([overview_report.closed(result)], warnings, result)


@action("reopen", "Reopen a closed task, so that annotators receive its items again.", TASK)
def reopen_action(values: Values, progress: Progress) -> Outcome:
    task = values["task"]
    result = closure.reopen(task)
    return Outcome([overview_report.reopened(result)], reader_warnings(task), result)


# --- Reroute


@action("reroute", "Move items from queues with too few readers to the queue of the next language.", TASK)
def reroute_action(values: Values, progress: Progress) -> Outcome:
    task = values["task"]
    counts = routing.reroute(task)
    undecidable = task_overview.undecidable(task)
    warning = overview_report.undecidable(undecidable)
    data = {"task": task.name, **counts, "undecidable": undecidable}
    return Outcome([overview_report.rerouted(counts)], [warning] if warning else [], data)


# --- Members


@action(
    "members",
    "Show or change who works on a task. By default, everybody who reads one of its languages does. To choose the "
    "annotators yourself, open the task to members only. Without options, the command lists the members.",
    TASK,
    Option("open_to", choices=OPEN_TO, help="who works on the task: everybody who reads its languages, or its members"),
    Option("add", default=(), several=True, in_a_row=True, shown="NAME", help="user names of people to add or change"),
    Option("add_group", default="", shown="GROUP", help="add everybody in this group"),
    Option("add_readers", default="", shown="LANGUAGE", help="add everybody who reads this language well enough"),
    Option(
        "role",
        choices=Membership.ROLES,
        help="the role of the added people in this task, regardless of their role elsewhere; by default, members keep "
        "their role, and others become annotators",
    ),
    Option(
        "quota",
        help="the maximum number of answers per added person: a number, a share of the task's answers such as 25%, or "
        "none",
    ),
    Option("remove", default=(), several=True, in_a_row=True, shown="NAME", help="user names of members to remove"),
    checks=lambda values: _read_people(values),
)
def members_action(values: Values, progress: Progress) -> Outcome:
    task, added, removed, quota = (values[name] for name in ("task", "added", "removed", "most"))
    with transaction.atomic():
        sentences = []
        if values["open_to"]:
            membership.set_members_only(task, members_only=values["open_to"] == MEMBERS)
        if added:
            keep = values["quota"] is None
            new, changed = membership.add(task, added, role=values["role"], quota=quota, keep_quota=keep)
            sentences.append(f"{many(new, 'member')} added, {changed:,} changed.")
        if removed:
            sentences.append(f"{many(membership.remove(task, removed), 'member')} removed. Their answers are kept.")
    if values["open_to"] or added or removed:
        forget(task)
    whom = "its members only" if task.members_only else "everybody who reads one of its languages"
    rows = annotator_statistics.members(task)
    lines = as_lines(people_report.members_table(rows)) if rows and not sentences else ""
    data = {"task": task.name, "open_to": OPEN_TO[task.members_only], "members": rows}
    return Outcome(list(filter(None, [*sentences, f"Task {task.name} is open to {whom}.", lines])), data=data)


def _read_people(values: Values) -> dict[str, Any]:
    """Return the annotators to add (`added`), their quota (`most`), and the annotators to remove (`removed`).

    Raise ActionError if an annotator does not exist, or if the options contradict each other.
    """
    task: Task = values["task"]
    added = _find_annotators(values["add"], "add")
    if name := values["add_group"]:
        if not membership.groups().filter(name=name).exists():
            available = ", ".join(membership.groups().values_list("name", flat=True)) or "none"
            raise ActionError(f"There is no group {name!r}; available: {available}.", option="add_group")
        added += membership.candidates(task, group=name)
    if written := values["add_readers"]:
        if not is_language(code := to_language_code(written)):
            raise ActionError(unknown_code(written), option="add_readers")
        added += membership.candidates(task, language=code)
    adds = values["add"] or values["add_group"] or values["add_readers"]
    if (values["role"] or values["quota"] is not None) and not adds:
        raise ActionError("--role and --quota require people. Specify them with --add.", option="add")
    quota = membership.parse_quota(task, values["quota"] or "")
    return {"added": list(dict.fromkeys(added)), "removed": _find_annotators(values["remove"], "remove"), "most": quota}


def _find_annotators(names: Iterable[str], option: str) -> list[Annotator]:
    unique_names = list(dict.fromkeys(names))
    annotators = Annotator.objects.filter(user__username__in=unique_names).select_related("user")
    by_name = {annotator.user.username: annotator for annotator in annotators}
    if missing := [name for name in unique_names if name not in by_name]:
        raise ActionError(f"There is no annotator {', '.join(map(repr, missing))}. Nothing was changed.", option=option)
    return [by_name[name] for name in unique_names]


# --- Delete


def _confirmation(values: Values) -> list[str]:
    unanswered = " The task has no answers." if values["task"] else ""
    return [f"This deletes {_description(values['count']())}.{unanswered} This cannot be undone."]


@action(
    "delete",
    "Delete a task without answers, a corpus without draws, or a predictor that no draw used. The command shows what "
    "would be deleted and asks for confirmation.",
    Option("task", task_named, default="", argument=True, help="the task to delete; omit it with --corpus"),
    Option("corpus", default="", shown="NAME", help="delete this corpus with its posts and everything imported for it"),
    Option(
        "predictor",
        default="",
        shown="NAME@VERSION",
        help="with --corpus: delete only the predictions of this predictor",
    ),
    asks=_confirmation,
    checks=lambda values: _operations(values),
)
def delete_action(values: Values, progress: Progress) -> Outcome:
    deleted = values["delete"]()
    return Outcome([f"Deleted: {_description(deleted)}."], data=deleted)


def _operations(values: Values) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return two functions: `delete` deletes the task, corpus or predictor, and `count` counts what it would delete.

    Both raise an error if the task, corpus or predictor is in use.
    """
    task, corpus, predictor = values["task"], values["corpus"], values["predictor"]
    if bool(task) == bool(corpus):
        raise ActionError("Specify either one task to delete, or one corpus with --corpus NAME.")
    if predictor and task:
        raise ActionError("--predictor requires --corpus and cannot be used with a task.")
    if task:
        chosen: tuple[Any, ...] = (task,)
        operations: tuple[Callable[..., Any], ...] = (closure.task_to_delete, closure.delete_task)
    elif predictor:
        chosen = (corpus, predictor)
        operations = (inventory.predictions_to_delete, inventory.delete_predictions)
    else:
        chosen, operations = (corpus,), (inventory.corpus_to_delete, inventory.delete_corpus)
    return dict(zip(("count", "delete"), (partial(operation, *chosen) for operation in operations), strict=True))


def _description(deleted: dict[str, Any]) -> str:
    """Describe what is or would be deleted.

    deleted: result of `count` or `delete`, see `_operations`
    """
    if "task" in deleted:
        golds = f", {many(deleted['gold_answers'], 'gold answer')}" if deleted["gold_answers"] else ""
        return (
            f"task {deleted['task']} with {many(deleted['units'], 'item')}{golds} and {many(deleted['draws'], 'draw')}"
        )
    if "predictor" in deleted:
        posts = many(deleted["posts"], "post")
        return f"the predictions of {deleted['predictor']} for {posts} of corpus {deleted['corpus']}"
    rest = f", its votes and the predictions of {', '.join(deleted['predictors'])}" if deleted["predictors"] else ""
    return f"corpus {deleted['corpus']} with {many(deleted['rows'], 'row')} from {many(deleted['files'], 'file')}{rest}"
