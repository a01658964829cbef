"""draws: what was drawn, from which corpus, for which task."""

from annotate.actions.action import Action, ActionError, Outcome
from annotate.core.option import Option
from annotate.figures import overview_report
from annotate.figures.task_overview import draws_there
from annotate.models import Task
from annotate.reports.terminal import as_lines
from corpora.models import Corpus

OPTIONS = (Option("of", default="", argument=True, shown="NAME", help="a task or a corpus; without it, all draws"),)
NONE = "Nothing was drawn yet. A draw is made when a task is opened: `assay open_task NAME --corpus CORPUS --seed 1 …`."


def run(values, progress) -> Outcome:
    rows = _rows(values["of"])
    return Outcome([as_lines(overview_report.draws_table(rows)) if rows else NONE], data={"draws": rows})


def _rows(name: str) -> list[dict]:
    """A corpus's draws are all that a task of the same name has, and more."""
    if not name or Corpus.objects.filter(name=name).exists():
        return draws_there(corpus=name)
    if Task.objects.filter(name=name).exists():
        return draws_there(task=name)
    raise ActionError(f"There is no task and no corpus {name!r}; `assay tasks` and `assay corpora` list what there is.")


ACTION = Action(
    "draws", "List the draws: design, seed, size and chance, and the task that asks about each.", OPTIONS, run
)
