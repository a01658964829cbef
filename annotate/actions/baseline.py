"""The action `baseline`: measure plain baselines on a gold set and add them to its card."""

from pathlib import Path

from annotate.actions.action import ActionError, Outcome, Progress, Values, action
from annotate.core.measures.generated_texts import MissingExtra
from annotate.core.option import Option, flag, words
from annotate.evaluation.baselines import SUMMARY, add_baselines, notes, tables
from annotate.evaluation.subjects import EvaluationError
from annotate.evaluation.text_classifiers import check_installed
from annotate.goldsets.exporter import ExportError, export
from annotate.goldsets.set_folder import GoldSetError
from annotate.models import Task
from annotate.reports.table_formats import as_lines


def check(values: Values) -> None:
    check_installed()
    is_folder = Path(values["gold"]).is_dir()
    if not is_folder and not Task.objects.filter(name=values["gold"]).exists():
        raise ActionError(f"There is no folder and no task named {values['gold']}.", option="gold")
    if not (is_folder or values["out"]):
        raise ActionError("Set --out to the folder to which the set of the task is exported.", option="out")


@action(
    "baseline",
    "Train plain baselines on a gold set and measure them: the most frequent label, labels drawn by their frequency, "
    "logistic regression on TF-IDF weights, the nearest text for sets of replies and questions, and the detectors for "
    "languages. The predictions and a table on the dataset card are added to the set.",
    Option(
        "gold",
        required=True,
        argument=True,
        shown="TASK_OR_SET",
        help="the folder of an exported gold set, or a task, whose set is exported first",
    ),
    Option("out", Path, shown="FOLDER", help="the folder for the set with its baselines; by default the set's folder"),
    Option(
        "fields",
        words,
        default=None,
        shown="WORDS",
        help="the fields of a record that the baselines read; by default all fields",
    ),
    Option("seed", default="1", help="the seed of labels that are drawn, and of parts if the set has no train split"),
    Option("unfinished", flag, False, help="accept an unfinished set"),
    refuses=(EvaluationError, ExportError, GoldSetError, MissingExtra),
    checks=check,
)
def baseline_action(values: Values, progress: Progress) -> Outcome:
    folder = Path(values["gold"])
    out = values["out"] or folder
    if not folder.is_dir():
        export(Task.objects.get(name=values["gold"]), out)
        folder = out
    options = {name: values[name] for name in ("seed", "unfinished")}
    result = add_baselines(folder, out, fields=values["fields"] or (), say=progress.say, **options)
    said = [*result["told"], *map(as_lines, tables(result)), *notes(result)]
    written = f"The set in {out} has the predictions, the figures and a table on its card."
    # If the action runs as a job, the result is stored in the database, so keep only the main figures.
    systems = [{name: system[name] for name in SUMMARY} for system in result["systems"]]
    return Outcome([*said, written], data={**result, "systems": systems})
