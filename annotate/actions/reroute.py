"""reroute: units of queues that have too few readers left, sent on."""

from annotate.actions.action import Action, Outcome, task_named
from annotate.actions.options import TASK
from annotate.reports import sentences
from annotate.work import progress as progressing
from annotate.work import routing


def run(values, progress) -> Outcome:
    task = task_named(values["task"])
    counts = routing.reroute(task)
    stuck = sentences.undecidable(progressing.undecidable(task))
    return Outcome([sentences.rerouted(counts)], [stuck] if stuck else [], counts)


ACTION = Action("reroute", "Send on the units of queues that have too few readers left.", (TASK,), run)
