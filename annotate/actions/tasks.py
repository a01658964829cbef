"""tasks: which there are, how far each is, and what to do next."""

from annotate.actions.action import Action, Outcome
from annotate.figures import overview_report
from annotate.figures.task_overview import standing
from annotate.reports.terminal import as_lines

NONE = "There is no task yet. Open one on a corpus: `assay open_task NAME --corpus CORPUS --size 1000 --seed 1`."


def run(values, progress) -> Outcome:
    rows = standing().tasks
    return Outcome([as_lines(overview_report.tasks_table(rows)) if rows else NONE], data={"tasks": rows})


ACTION = Action("tasks", "List the tasks: how far each is, and what is to be done next.", (), run)
