"""Lists of corpora, vocabularies, predictors, draws and tasks."""

from typing import Any

from annotate.actions.action import ActionError, Outcome, action
from annotate.core.option import Option
from annotate.figures import overview_report
from annotate.figures.task_overview import draws_there, standing
from annotate.models import Task
from annotate.reports.terminal import as_lines
from corpora.models import Corpus
from corpora.storage.inventory import POSTS, corpora_there, predictors_there
from corpora.vocabulary.concept_index import vocabularies_there

# --- Corpora

NO_CORPORA = "There is no corpus yet. Make one of a file of posts: `assay import_corpus NAME FILE --licence LICENCE`."


@action("corpora", "List the corpora: what each holds, its votes, licence and draws.")
def corpora_action(values, progress) -> Outcome:
    rows = corpora_there()
    data = {"corpora": rows}
    if not rows:
        return Outcome([NO_CORPORA], data=data)
    return Outcome([as_lines(overview_report.corpora_table(rows)), *_blank_before(todo(rows))], data=data)


def _blank_before(sentences: list[str]) -> list[str]:
    return ["", *sentences] if sentences else []


def todo(rows: list[dict[str, Any]]) -> list[str]:
    """What is to be done next with corpora that nothing was drawn from."""
    said = []
    for row in rows:
        name = row["corpus"]
        if row["holds"] == POSTS and row["voted"] < row["rows"]:
            said.append(f"Corpus {name} has posts without votes: `assay prelabel {name}`.")
        elif not (row["draws"] or row["fault"]):
            said.append(f"Nothing was drawn from corpus {name} yet: `assay open_task TASK --corpus {name} --seed 1 …`.")
    return said


# --- Vocabularies

NO_VOCABULARIES = "There is no vocabulary yet. Take one in: `assay import_vocabulary NAME FILE`."


@action("vocabularies", "List the vocabularies, each with its versions.")
def vocabularies_action(values, progress) -> Outcome:
    rows = vocabularies_there()
    return Outcome(
        [as_lines(overview_report.vocabularies_table(rows)) if rows else NO_VOCABULARIES], data={"vocabularies": rows}
    )


# --- Predictors

NO_PREDICTORS = (
    "There is no predictor: no posts have votes, and no predictions were imported. See `assay prelabel CORPUS` and "
    "`assay import_predictions CORPUS FILE --name NAME --version VERSION`."
)


@action(
    "predictors",
    "List the predictors of a corpus: detectors, their majority, and imported ones.",
    Option("corpus", default="", argument=True, help="the corpus's name; without it, all corpora"),
)
def predictors_action(values, progress) -> Outcome:
    rows = predictors_there(values["corpus"])
    return Outcome(
        [as_lines(overview_report.predictors_table(rows)) if rows else NO_PREDICTORS], data={"predictors": rows}
    )


# --- Draws

NO_DRAWS = (
    "Nothing was drawn yet. A draw is made when a task is opened: `assay open_task NAME --corpus CORPUS --seed 1 …`."
)


@action(
    "draws",
    "List the draws: design, seed, size and chance, and the task that asks about each.",
    Option("of", default="", argument=True, shown="NAME", help="a task or a corpus; without it, all draws"),
)
def draws_action(values, progress) -> Outcome:
    rows = _rows(values["of"])
    return Outcome([as_lines(overview_report.draws_table(rows)) if rows else NO_DRAWS], data={"draws": rows})


def _rows(name: str) -> list[dict]:
    """A corpus's draws are all that a task of the same name has, and more."""
    if not name or Corpus.objects.filter(name=name).exists():
        return draws_there(corpus=name)
    if Task.objects.filter(name=name).exists():
        return draws_there(task=name)
    raise ActionError(f"There is no task and no corpus {name!r}; `assay tasks` and `assay corpora` list what there is.")


# --- Tasks

NO_TASKS = "There is no task yet. Open one on a corpus: `assay open_task NAME --corpus CORPUS --size 1000 --seed 1`."


@action("tasks", "List the tasks, with their progress and next step.")
def tasks_action(values, progress) -> Outcome:
    rows = standing().tasks
    return Outcome([as_lines(overview_report.tasks_table(rows)) if rows else NO_TASKS], data={"tasks": rows})
