"""predictors: by whose labels posts can be drawn, and which can be evaluated."""

from annotate.actions.action import Action, Outcome
from annotate.core.option import Option
from annotate.figures import overview_report
from annotate.reports.terminal import as_lines
from corpora.storage.inventory import predictors_there

OPTIONS = (Option("corpus", default="", argument=True, help="the corpus's name; without it, all corpora"),)
NONE = (
    "There is no predictor: no posts have votes, and no predictions were imported. See `assay prelabel CORPUS` and "
    "`assay import_predictions CORPUS FILE --name NAME --version VERSION`."
)


def run(values, progress) -> Outcome:
    rows = predictors_there(values["corpus"])
    return Outcome([as_lines(overview_report.predictors_table(rows)) if rows else NONE], data={"predictors": rows})


ACTION = Action(
    "predictors",
    "List the predictors of a corpus: the three detectors, their majority, and what was imported.",
    OPTIONS,
    run,
)
