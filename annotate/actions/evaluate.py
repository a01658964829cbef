"""evaluate: measure any system on gold sets."""

from dataclasses import replace
from pathlib import Path

from annotate.actions.action import FORMAT, MAP, Action, Outcome, column
from annotate.core.draws.splits import SPLITS, TEST
from annotate.core.option import Option, flag, number, points, share, whole_number
from annotate.evaluation.evaluate import evaluate, write_report
from annotate.evaluation.posts import MEASURES
from annotate.evaluation.ranked_documents import FIRST
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.set_folder import GoldSetError
from annotate.reports import writing
from annotate.reports.evaluation_report import LISTED
from corpora.core.records import RecordError
from corpora.predictions.prediction_rows import FIELDS

PRINTED = {"text": writing.as_text, "markdown": writing.as_markdown, "latex": writing.as_latex}
# Options that the evaluator is given by other names, or not at all.
OF_COMMAND = ("predictions", "gold", "against", "out", "format")
PREDICTOR, OTHER, JUDGE, SETS, MEASURED, RANKED = (
    "Whose labels are measured",
    "Another predictor to compare it with",
    "A machine judge",
    "The gold sets",
    "What is measured",
    "How ranked labels are measured",
)
# What says how posts are measured.
OF_POSTS = (
    Option("corpus", default="", help="the corpus of the predictor, if the gold sets were imported", group=PREDICTOR),
    MAP,
    column(FIELDS, "label=lang"),
    replace(FORMAT, name="file_format"),
    Option("vanished", Path, shown="FILE", help="ids of posts that are gone, one a line", group=SETS),
    Option("allow_erased", flag, False, help="go on even if rows were erased from a set", group=SETS),
    Option(
        "measure",
        choices=MEASURES,
        default=(),
        several=True,
        help="measure only this; may be repeated; by default all that the sets allow",
        group=MEASURED,
    ),
    Option(
        "balanced_precision",
        flag,
        False,
        help="also measure precision on the recall-oriented sets, as if all languages were equally common",
        group=MEASURED,
    ),
    Option(
        "missing_rate",
        default="",
        shown="LOW:HIGH",
        help="intervals that hold if the detectors are wrong in unresolved audits LOW to HIGH times as often as in "
        "resolved ones, such as 1:3; without it, equally often",
        group=MEASURED,
    ),
)
OF_ALL = (
    Option(
        "predictions",
        default="",
        argument=True,
        help="a file with a row for each unit: id and label, empty for a refusal, or id and a column of scores for "
        "each label (TSV, CSV, JSONL, Parquet); the name of a predictor of the corpus, such as langid or mine@2; a "
        "folder of published files, such as QADSM/en.prediction of XGLUE or de-en.prediction of balanced sets of "
        "documents; a TREC run, scores or labels for documents with several labels; LANGUAGE_model_responses.txt for "
        "message-reply pairs",
        group=PREDICTOR,
    ),
    Option(
        "judge",
        default="",
        shown="PREDICTIONS",
        help="in place of predictions: the labels that a machine judge, such as an LLM, gave to every item of the "
        "corpus, a file or a predictor; the report certifies how far it can stand in for people",
        group=JUDGE,
    ),
    Option(
        "half_width",
        points,
        shown="POINTS",
        help="half the width of the interval that the share of a label should have; 2.5 points unless it is given",
        group=JUDGE,
        least=0.1,
        most=50,
    ),
    Option(
        "epsilon",
        share,
        help="how much worse than a person a judge may be in the alternative annotator test: 0.15 unless it is given; "
        "the article has 0.2 for experts and 0.1 for crowd workers",
        group=JUDGE,
        most=0.5,
    ),
    Option("against", default="", shown="PREDICTIONS", help="compare with these, unit by unit", group=OTHER),
    Option("gold", Path, required=True, several=True, shown="FOLDER", help="a gold set; may be repeated"),
    Option("unfinished", flag, False, help="measure on a set that is not finished", group=SETS),
    Option(
        "sequential",
        flag,
        False,
        help="intervals that hold at every look, for those who look while people read and stop when the width is "
        "reached; they are 1.5 to 2 times as wide",
        group=MEASURED,
    ),
    Option("out", Path, shown="FOLDER", help="write report.json, .md, .html and .tex there"),
    Option(
        "format",
        choices=tuple(PRINTED),
        default="text",
        help="how the report is printed, unless --json is given; latex: its main tables",
    ),
)
OF_RANKED = (
    Option(
        "split",
        choices=SPLITS,
        help=f"measure on the units of this split; ranked labels are measured on {TEST} unless another is named",
        group=SETS,
    ),
    Option(
        "first",
        whole_number,
        help="take so many first labels of each document for its answer, of which precision, recall and F1 are told; "
        f"{FIRST} unless another number or --threshold is given",
        group=RANKED,
        least=1,
    ),
    Option(
        "threshold",
        number,
        shown="SCORE",
        help="take the labels with this score or more for the answer",
        group=RANKED,
        least=float("-inf"),
    ),
    Option(
        "frequent_over",
        whole_number,
        help="call the labels frequent that more than so many train documents have, and count anew which they are; as "
        "the set was exported unless this is given",
        group=RANKED,
        least=1,
    ),
)


def run(values, progress) -> Outcome:
    options = {name: value for name, value in values.items() if name not in OF_COMMAND}
    report = evaluate(values["predictions"], values["gold"], against=values["against"] or "", **options)
    out = values["out"]
    if out:
        write_report(report, out)
    if "errors" in report:  # a job keeps the report in the database
        report["errors"] = report["errors"][:LISTED]
    return Outcome([PRINTED[values["format"]](report)], [f"Report written to {out}."] if out else [], report)


ACTION = Action(
    "evaluate",
    "Measure predictions on exported or imported gold sets, each figure with its 95% interval, or compare two systems "
    "on the same units. The set decides what is measured: of posts accuracy, recall and precision by language, "
    "corrected for what nobody read; of records accuracy, F1, kappa and MCC, by label, language, field and agreement "
    "among people; of grades their distance too; of published formats what their articles report.",
    (*OF_ALL, *OF_POSTS, *OF_RANKED),
    run,
    (EvaluationError, GoldSetError, RecordError),
    on_files=True,
)
