"""reopen: a closed task hands out work again."""

from annotate.actions.action import Action, Outcome, task_named
from annotate.actions.opened import lacking
from annotate.actions.options import TASK
from annotate.figures import overview_report
from annotate.work import closure


def run(values, progress) -> Outcome:
    task = task_named(values["task"])
    done = closure.reopen(task)
    return Outcome([overview_report.reopened(done)], lacking(task), done)


ACTION = Action("reopen", "Open a closed task again, so that people are given its units.", (TASK,), run)
