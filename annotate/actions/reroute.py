"""reroute: send on the units of queues that have too few readers left."""

from annotate.actions.action import Action, Outcome, task_named
from annotate.actions.options import TASK
from annotate.figures import overview_report, task_overview
from annotate.work import routing


def run(values, progress) -> Outcome:
    task = task_named(values["task"])
    counts = routing.reroute(task)
    undecidable = task_overview.undecidable(task)
    stuck = overview_report.undecidable(undecidable)
    data = {"task": task.name, **counts, "undecidable": undecidable}
    return Outcome([overview_report.rerouted(counts)], [stuck] if stuck else [], data)


ACTION = Action("reroute", "Send on the units of queues that have too few readers left.", (TASK,), run)
