"""The actions `evaluate`, which measures predictions on gold sets, and `baseline`, which trains simple baselines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from annotate.actions.action import FORMAT, MAP, ActionError, Outcome, Progress, Values, action, column
from annotate.core.draws.splits import DEV, SPLITS, TEST
from annotate.core.measures.generated_texts import MissingExtra
from annotate.core.option import Option, flag, number, points, share, whole_number, words
from annotate.evaluation.baselines import SUMMARY, add_baselines, notes, tables
from annotate.evaluation.joined_sets import audit_refusal
from annotate.evaluation.measurement import evaluate, validate_options, write_report
from annotate.evaluation.posts import MEASURES
from annotate.evaluation.ranked_documents import FIRST
from annotate.evaluation.subjects import EvaluationError
from annotate.evaluation.text_classifiers import check_installed
from annotate.evaluation.training_runs import evaluate_runs, evaluate_settings, find_settings
from annotate.goldsets.exporter import ExportError, export
from annotate.goldsets.set_folder import GoldSetError
from annotate.models import Task
from annotate.reports import report_renderer
from annotate.reports.evaluation_report import LISTED
from annotate.reports.table_formats import as_lines
from corpora.core.records import RecordError
from corpora.predictions.prediction_rows import FIELDS

PRINTED = {"text": report_renderer.as_text, "markdown": report_renderer.as_markdown, "latex": report_renderer.as_latex}
# Options that `evaluate_action` handles itself. It passes all others on to `evaluate` unchanged.
OF_COMMAND = ("predictions", "runs", "gold", "against", "out", "format")
PREDICTOR, OTHER, JUDGE, SETS, REPORT, MEASURED, RANKED = (
    "The measured predictor",
    "The predictor to compare with",
    "A machine judge",
    "The gold sets",
    "The report",
    "Measures",
    "Measures of ranked labels",
)
# Options that apply only to posts.
OF_POSTS = (
    Option("corpus", default="", help="the corpus of the predictor, if the gold sets were imported", group=PREDICTOR),
    MAP,
    column(FIELDS, "label=lang"),
    replace(FORMAT, name="file_format"),
    Option("vanished", Path, shown="FILE", help="ids of deleted posts, one per line", group=SETS),
    Option(
        "placed",
        Path,
        shown="FILE",
        help="ids of posts with a location, or with any other field, one per line: a third sample to check recall on",
        group=SETS,
    ),
    Option("allow_erased", flag, False, help="accept sets from which rows were erased", group=SETS),
    Option(
        "measure",
        choices=MEASURES,
        default=(),
        several=True,
        help="compute only this measure; by default all measures that the gold sets allow",
        group=MEASURED,
    ),
    Option(
        "balanced_precision",
        flag,
        False,
        help="also measure precision on recall-oriented sets as if all languages were equally frequent",
        group=MEASURED,
    ),
    Option(
        "missing_rate",
        default="",
        shown="LOW:HIGH",
        help="widen the intervals so that they remain valid if detectors are wrong LOW to HIGH times as often in "
        "unresolved audits as in resolved ones, such as 1:3; by default equally often",
        group=MEASURED,
    ),
)
OF_ALL = (
    Option(
        "predictions",
        default="",
        argument=True,
        help="a predictor of the corpus, such as langid or mine@2, or a file (TSV, CSV, JSONL, Parquet) with the "
        "columns id and label (an empty label means a refusal), or id and a column of scores per label. Also "
        "accepted: published files, such as XGLUE's QADSM/en.prediction or de-en.prediction for balanced sets; a TREC "
        "run, scores or labels for documents with several labels; LANGUAGE_model_responses.txt for message-reply "
        "pairs. A folder may contain several such folders, named after training settings such as zero-shot",
        group=PREDICTOR,
    ),
    Option(
        "runs",
        argument=True,
        several=True,
        default=(),
        help="predictions of further training runs of the same system. The report shows means over the runs, and "
        f"otherwise the run that is best on the split {DEV}. The files have predictions for {DEV} and {TEST}; a folder "
        f"has those for {DEV} in its subfolder {DEV}",
        group=PREDICTOR,
    ),
    Option(
        "judge",
        default="",
        shown="PREDICTIONS",
        help="instead of predictions: a file or predictor with the judge's labels for every item of the corpus. The "
        "report shows whether the judge can replace annotators",
        group=JUDGE,
    ),
    Option(
        "half_width",
        points,
        shown="POINTS",
        help="the desired half-width of the interval of a label's share; by default 2.5 points",
        group=JUDGE,
        least=0.1,
        most=50,
    ),
    Option(
        "epsilon",
        share,
        help="how much worse than an annotator the judge may be in the alternative annotator test, by default 0.15. "
        "The article uses 0.2 for experts and 0.1 for crowd workers",
        group=JUDGE,
        most=0.5,
    ),
    Option(
        "against",
        default="",
        shown="PREDICTIONS",
        help="also measure these predictions, and compare the two item by item",
        group=OTHER,
    ),
    Option(
        "gold",
        Path,
        required=True,
        several=True,
        shown="FOLDER",
        help="the exported gold sets to measure on",
        group=SETS,
    ),
    Option("unfinished", flag, False, help="accept an unfinished set", group=SETS),
    Option(
        "group",
        several=True,
        default=(),
        shown="NAME=LANGUAGES",
        help="for files such as de-en.prediction: also a mean over these test languages, such as 'romance=es it'",
        group=MEASURED,
    ),
    Option(
        "sequential",
        flag,
        False,
        help="use intervals that remain valid if you check them repeatedly and stop as soon as they are narrow enough. "
        "They are 1.6 to 1.9 times as wide",
        group=MEASURED,
    ),
    Option(
        "out",
        Path,
        shown="FOLDER",
        help="write report.json, report.md, report.html and report.tex to this folder",
        group=REPORT,
    ),
    Option(
        "format",
        choices=tuple(PRINTED),
        default="text",
        help="the format of the printed report; latex prints the main tables",
        group=REPORT,
    ),
)
OF_RANKED = (
    Option(
        "split",
        choices=SPLITS,
        help=f"measure only this split; for ranked labels and published files by default {TEST}",
        group=SETS,
    ),
    Option(
        "first",
        whole_number,
        help=f"for precision, recall and F1, predict the first N labels of each document; by default {FIRST}, unless "
        "--threshold is set",
        group=RANKED,
        least=1,
    ),
    Option(
        "threshold",
        number,
        shown="SCORE",
        help="predict the labels with at least this score",
        group=RANKED,
        least=float("-inf"),
    ),
    Option(
        "frequent_over",
        whole_number,
        help="count a label as frequent if more than N train documents have it; by default as in the exported set",
        group=RANKED,
        least=1,
    ),
)


def _arguments(values: Values) -> dict[str, Any]:
    """Return the keyword arguments for `evaluate`."""
    options = {name: value for name, value in values.items() if name not in OF_COMMAND}
    return {
        # If there are several training settings, check the options on the first of them.
        "predictions": next(iter(find_settings(values["predictions"]).values()), values["predictions"]),
        "gold": values["gold"],
        "against": values["against"] or "",
        **options,
    }


def check(values: Values) -> None:
    if not (values["predictions"] or values["judge"]):
        raise ActionError(
            "There is nothing to measure. Select a predictor, a file of predictions, or a machine judge with --judge.",
            option="predictions",
        )
    validate_options(**_arguments(values))
    systems = [("predictions", run) for run in (values["predictions"], *values["runs"])]
    for option, system in (*systems, ("against", values["against"])):
        for folder in values["gold"]:
            if system and (refusal := audit_refusal(system, folder)):
                raise ActionError(refusal, option=option)


@action(
    "evaluate",
    "Measure predictions on gold sets, with 95% intervals, or compare two systems on the same items. For posts: "
    "accuracy, recall and precision by language, corrected for posts that nobody has read. For records: accuracy, F1, "
    "kappa and MCC by label, language, field and annotator agreement; for grades also their distance; for published "
    "formats the measures from the articles that introduced them.",
    *OF_ALL,
    *OF_POSTS,
    *OF_RANKED,
    refuses=(EvaluationError, GoldSetError, RecordError),
    on_files=True,
    checks=check,
)
def evaluate_action(values: Values, progress: Progress) -> Outcome:
    arguments = _arguments(values)
    runs = [arguments.pop("predictions"), *values["runs"]]
    settings = {} if values["runs"] else find_settings(values["predictions"])
    if settings:
        report = evaluate_settings(settings, **arguments)
    else:
        report = evaluate(runs[0], **arguments) if len(runs) == 1 else evaluate_runs(runs, **arguments)
    out = values["out"]
    if out:
        write_report(report, out)
    # A job stores the report in the database, so keep only the errors that the report lists.
    if "errors" in report:
        report["errors"] = report["errors"][:LISTED]
    return Outcome([PRINTED[values["format"]](report)], [f"Report written to {out}."] if out else [], report)


# --- Baselines


def check_baseline(values: Values) -> None:
    check_installed()
    is_folder = Path(values["gold"]).is_dir()
    if not is_folder and not Task.objects.filter(name=values["gold"]).exists():
        raise ActionError(f"There is no folder and no task named {values['gold']}.", option="gold")
    if not (is_folder or values["out"]):
        raise ActionError("Set --out to the folder to which the set of the task is exported.", option="out")


@action(
    "baseline",
    "Train simple baselines on a gold set and measure them: the most frequent label, labels drawn by their frequency, "
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
    checks=check_baseline,
)
def baseline_action(values: Values, progress: Progress) -> Outcome:
    folder = Path(values["gold"])
    out = values["out"] or folder
    if not folder.is_dir():
        export(Task.objects.get(name=values["gold"]), out)
        folder = out
    options = {name: values[name] for name in ("seed", "unfinished")}
    result = add_baselines(folder, out, fields=values["fields"] or (), say=progress.say, **options)
    lines = [*result["told"], *map(as_lines, tables(result)), *notes(result)]
    written = f"The predictions, the results and a table on the dataset card were added to the set in {out}."
    # A job stores the result in the database, so keep only the main figures.
    systems = [{name: system[name] for name in SUMMARY} for system in result["systems"]]
    return Outcome([*lines, written], data={**result, "systems": systems})
