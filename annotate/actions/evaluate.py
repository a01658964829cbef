"""evaluate: what a predictor's labels are worth on gold sets."""

from pathlib import Path
from typing import Any

from annotate.actions.action import Action, Outcome
from annotate.actions.options import FORMAT, MAP, column
from annotate.core.option import Option, flag, number, whole_number
from annotate.core.splits import SPLITS, TEST
from annotate.evaluation.evaluate import MEASURES, evaluate, write_report
from annotate.evaluation.given import EvaluationError, check_for_files, corpus_of, of_corpus, of_file, read_sets
from annotate.evaluation.grading import check_of_posts, check_of_records, grade
from annotate.evaluation.ranked_grading import FIRST
from annotate.goldsets.manifest import GoldSetError
from annotate.goldsets.reading import read_ids
from annotate.reports import writing
from corpora.columns import named_columns
from corpora.core.predictions import FIELDS, read_map
from corpora.core.records import RecordError

PREDICTOR, OTHER, SETS, MEASURED, RANKED = (
    "Whose labels are measured",
    "Another predictor to compare it with",
    "The gold sets",
    "What is measured",
    "How ranked labels are measured",
)
AGAINST = Option(
    "against",
    shown="PREDICTOR",
    help="compare with this one, post by post; with --predictions another folder, run or file, document by document",
    group=OTHER,
)
# What says how posts are measured.
OF_POSTS = (
    Option(
        "predictor",
        argument=True,
        help="langid, cld2, fasttext, majority, or an imported one such as mine@2",
        group=PREDICTOR,
    ),
    Option("corpus", default="", help="the corpus of the predictor, if the gold sets were imported", group=PREDICTOR),
    Option(
        "file",
        Path,
        shown="FILE",
        help="measure this file of predictions (id, label), joined by id",
        group=PREDICTOR,
    ),
    AGAINST,
    Option("against_file", Path, shown="FILE", help="compare with this file of predictions", group=OTHER),
    MAP,
    column(FIELDS, "label=lang"),
    FORMAT,
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
)
OF_ALL = (
    Option("gold", Path, required=True, several=True, shown="FOLDER", help="a gold set; may be repeated"),
    Option("unfinished", flag, False, help="measure on a set that is not finished", group=SETS),
    Option("out", Path, shown="FOLDER", help="write report.json, .md and .html there"),
)
PREDICTIONS = Option(
    "predictions",
    Path,
    shown="PATH",
    help="for sets of records a folder: files with a line for each test row, TASK/LANGUAGE.prediction of XGLUE's "
    "tasks, such as QADSM/en.prediction, and TRAIN-TEST.prediction of balanced sets of documents, such as "
    "de-en.prediction; for documents with several labels a file: a TREC run, with a line for each label of each "
    "document; for message-reply pairs LANGUAGE_model_responses.txt, or a folder of such files: message, reference "
    "reply, and up to three suggested replies",
    group=PREDICTOR,
)
OF_RANKED = (
    Option(
        "split",
        choices=SPLITS,
        help=f"measure on the documents of this split; {TEST} unless another is named",
        group=RANKED,
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
    report = _of_records(values) if values["predictions"] else _of_posts(values)
    out = values["out"]
    if out:
        write_report(report, out)
    return Outcome([writing.as_text(report)], [f"Report written to {out}."] if out else [], report)


def _of_posts(values) -> dict[str, Any]:
    check_of_posts([option.spelled for option in OF_RANKED if values[option.name] is not None])
    read_so = [f"--{option}" for option in ("map", "column", "format") if values[option]]
    check_for_files(read_so, files=bool(values["file"] or values["against_file"]))
    sets = read_sets(values["gold"], allow_erased=values["allow_erased"], unfinished=values["unfinished"])
    return evaluate(
        _subject(sets, values, values["predictor"], values["file"]),
        sets,
        against=_against(sets, values),
        vanished=read_ids(values["vanished"]) if values["vanished"] else frozenset(),
        measures=values["measure"],
        balanced=values["balanced_precision"],
    )


def _of_records(values) -> dict[str, Any]:
    check_of_records([option.spelled for option in OF_POSTS if values[option.name] and option is not AGAINST])
    against = Path(values["against"]) if values["against"] else None
    chosen = {option.name: value for option in OF_RANKED if (value := values[option.name]) is not None}
    return grade(values["predictions"], values["gold"], against=against, unfinished=values["unfinished"], chosen=chosen)


def _against(sets, values):
    if not (values["against"] or values["against_file"]):
        return None
    return _subject(sets, values, values["against"], values["against_file"])


def _subject(sets, values, spelled, file):
    if bool(spelled) == bool(file):
        raise EvaluationError(
            "Name one predictor, or give its labels with --file (or --against and --against-file); not both, and not "
            "neither."
        )
    if spelled:
        return of_corpus(corpus_of(sets, values["corpus"]), spelled)
    columns = named_columns(values["column"], FIELDS)
    return of_file(file, read_map(values["map"]), columns, values["format"], sets)


ACTION = Action(
    "evaluate",
    "Measure a predictor on exported or imported gold sets: accuracy on a uniform set, recall by language on "
    "recall-oriented sets, precision by language on precision-oriented ones, the uniform set joined in where it is "
    "given, each with its 95% interval. What the sets cannot tell is refused, or said in the report. Of records: what "
    "a folder of prediction files is worth, XGLUE's by language, those for balanced sets of documents by the languages "
    "of training and of the test; and what ranked labels of documents are worth, for all labels and for frequent, "
    "few-shot and zero-shot ones. Of message-reply pairs: what suggested replies are worth, by ROUGE, Dist, precision "
    "at one and mean reciprocal rank.",
    (*OF_POSTS, PREDICTIONS, *OF_ALL, *OF_RANKED),
    run,
    (EvaluationError, GoldSetError, RecordError),
    on_files=True,
)
