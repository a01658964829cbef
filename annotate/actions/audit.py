"""The action `audit`: show the results of a task's agreement audits, decoys and checks of single annotators.

The action can also add audits or checks, and contest the detectors' agreement in languages where it failed the audit.
"""

from typing import Any

from django.db import transaction

from annotate.actions.action import TASK, Action, ActionError, Outcome, Progress, Values, task_named
from annotate.actions.opening_summary import NOT_KEPT, lacking
from annotate.controls import audit_report
from annotate.controls.agreement_audit import add_audits, contest_all
from annotate.controls.checks import Checks, add_checks
from annotate.core.option import Option, codes, flag, points, whole_number
from annotate.figures import plan_report
from annotate.figures.further_work import further_work, measures_accuracy
from annotate.kinds.control import panels
from annotate.models import Task
from annotate.reports.table_formats import as_lines, wrapped

NOTHING = "its kind of question has no audit, no decoys and no checks, so there is nothing to tell of them."
CONTEST = Option("contest", flag, False, help="have people label the languages over the task's limit")
ADD = Option("add", whole_number, least=1, shown="N", help="have people read N more agreed posts")
CHECKS = Option(
    "checks", flag, False, help="with --add: instead have adjudicators check N more posts that one reader decides"
)
LANGUAGES = Option(
    "languages",
    codes,
    default=(),
    help="with --add: the languages of these posts; by default those that narrow the overall error most",
)
WIDTH = Option(
    "width",
    points,
    None,
    least=0.1,
    most=100,
    help="list the work that narrows the 95% interval of accuracy to this width, in percentage points; by default "
    "to half its expected width",
)
DRY_RUN = Option("dry_run", flag, False, help="with --add: only show how many posts it would add by language")


def run(values: Values, progress: Progress) -> Outcome:
    task = task_named(values["task"])
    _check(task, values)
    if values["add"]:
        return _add(task, values)
    if values["contest"]:
        sent = contest_all(task)
        return Outcome([audit_report.contested(sent)], data={"task": task.name, "contested": sent})
    shown = _shown(task)
    if shown is None:
        return Outcome([f"Task {task.name}: {NOTHING}"], data={"task": task.name})
    return _with_further_work(task, shown, values["width"] and values["width"] / 100)


def _check(task: Task, values: Values) -> None:
    add, contest, checks, audited = values["add"], values["contest"], values["checks"], task.kind.audits_agreement
    if add and contest:
        raise ActionError("--add and --contest are two steps: what is added is to be read before it can contest.")
    if values["width"] and (add or contest):
        raise ActionError("--width is an option of the report, which --add and --contest do not show. Leave it out.")
    without_add = [option.spelled for option in (CHECKS, LANGUAGES, DRY_RUN) if values[option.name]]
    if without_add and not add:
        raise ActionError(
            f"{', '.join(without_add)}: an option of --add, which is not given. Say with it how many to add."
        )
    if add and checks and not any(isinstance(control, Checks) for control in task.kind.quality_controls):
        raise ActionError(f"{task.name} has no checks to add to: its kind of question asks several people.")
    if add and not (audited or checks):
        raise ActionError(f"{task.name} has no audit to add to: none of its labels is the detectors'.")
    if contest and not audited:
        raise ActionError(f"{task.name} has no agreement to contest: none of its labels is the detectors'.")
    if values["width"] and not measures_accuracy(task):
        raise ActionError(f"Task {task.name} measures no accuracy of a stream of posts. Leave out --width.")


def _add(task: Task, values: Values) -> Outcome:
    add, to = (add_checks, "checks") if values["checks"] else (add_audits, "audit")
    with transaction.atomic():
        added = add(task, values["add"], values["languages"])
        warned = lacking(task)
        if values["dry_run"]:
            # Roll back only after adding everything, so that a dry run shows exactly what would be added.
            transaction.set_rollback(True)
    said = [audit_report.added(added, values["add"], to), *([NOT_KEPT] if values["dry_run"] else [])]
    return Outcome(said, warned, {"task": task.name, "dry_run": values["dry_run"], "added": added})


def _shown(task: Task) -> Outcome | None:
    """Return the results of a task's quality controls, or None if no control has results."""
    said: list[str] = []
    data: dict[str, Any] = {"task": task.name}
    for panel in panels(task):
        tables = [line for table in panel.tables if table.rows for line in (as_lines(table), "")]
        words = [*panel.words, *panel.warnings, *panel.advice]
        found = [*tables, *words] if panel.words else [f"Task {task.name}: {panel.empty}"]
        said += ["", *found] if said else found
        data |= {panel.key: panel.data} if panel.key else panel.data or {}
    return Outcome(said, data=data) if said else None


def _with_further_work(task: Task, outcome: Outcome, wished: float | None) -> Outcome:
    """Return the report together with a list of the work that would narrow the accuracy intervals most.

    wished: the desired width of the interval; None for the default
    """
    found = further_work(task, wished)
    if found is None:
        return outcome
    said = [*outcome.said, "", wrapped(plan_report.further_words(found))]
    if found["rows"]:
        said += ["", as_lines(plan_report.further_table(found, lambda row: plan_report.command(row, task.name)))]
    return Outcome(said, outcome.warned, {**outcome.data, "further_work": found})


ACTION = Action(
    "audit",
    "Show the results of a task's audits, checks and decoys, and which further work narrows accuracy most. With "
    "--contest or --add, have people read more agreed posts; with --add and --checks, have adjudicators check more "
    "posts that one reader decides.",
    (TASK, WIDTH, CONTEST, ADD, CHECKS, LANGUAGES, DRY_RUN),
    run,
)
