"""close: a task hands out no more work."""

from annotate.actions.action import Action, Outcome, task_named
from annotate.actions.options import TASK
from annotate.core.option import Option, flag
from annotate.figures import overview_report
from annotate.figures.queue_states import queue_states
from annotate.work import closure

LEAVE_OUT = Option(
    "leave_out", flag, False, help="leave out what has no label yet, counted, so that the set is finished"
)


def run(values, progress) -> Outcome:
    task = task_named(values["task"])
    why = [row["said"] for row in queue_states(task)["queues"] if row["stuck"]] if task.is_open else []
    done = closure.close(task, leave_out=values["leave_out"])
    left = [*why, overview_report.leave_out(task.name)] if done["unfinished"] and task.kind.answered_here else []
    return Outcome([overview_report.closed(done)], left, done)


ACTION = Action(
    "close",
    "Close a task: nobody is given its units any more. What was answered stays, it can be exported, and `reopen` has "
    "people go on. Units that are decided by the answers that they have get their label.",
    (TASK, LEAVE_OUT),
    run,
)
