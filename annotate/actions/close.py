"""close: a task hands out no more work."""

from annotate.actions.action import Action, Outcome, task_named
from annotate.actions.options import TASK
from annotate.reports import sentences
from annotate.work import closing


def run(values, progress) -> Outcome:
    task = task_named(values["task"])
    done = closing.close(task)
    return Outcome([sentences.closed(done)], data=done)


ACTION = Action(
    "close",
    "Close a task: nobody is given its units any more. What was answered stays, it can be exported, and `reopen` has "
    "people go on.",
    (TASK,),
    run,
)
