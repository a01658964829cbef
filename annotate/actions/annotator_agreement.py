"""The actions `agreement`, for the agreement of a task's annotators, and `preferences`, for comparisons of systems."""

from pathlib import Path
from typing import Any

from annotate.actions.action import TASK, Outcome, Progress, Values, action, column
from annotate.actions.judgment_files import GOLD_COLUMNS, JudgmentFileError, read_truth
from annotate.core.option import Option, flag
from annotate.models import Annotator, Task
from annotate.quality import agreement_report, agreement_statistics, preference_report, preference_statistics
from annotate.quality.agreement_statistics import UnorderedLabels
from annotate.quality.answer_models import UnknownLabel
from annotate.quality.preference_statistics import NoPreferences
from annotate.reports.table_formats import as_lines, wrapped
from annotate.reports.tables import Table, many
from corpora.sources.readers import named_columns

SHOWN = 20
TRUTH, COUNTING = "True labels", "Agreement"
OPTIONS = (
    TASK,
    Option(
        "gold",
        Path,
        shown="FILE",
        help="a file of true labels with the columns task and label; several labels as a list, or separated by spaces",
        group=TRUTH,
    ),
    column(GOLD_COLUMNS, group=TRUTH),
    Option(
        "repeats",
        flag,
        False,
        help="also count repeated answers that import_judgments --keep-repeats has imported",
        group=COUNTING,
    ),
    Option("ordinal", flag, False, help="treat the labels as ordered grades", group=COUNTING),
)


@action(
    "agreement",
    "Show how much the annotators of a task agree, overall and by language, with 95% intervals: Krippendorff's "
    "alpha, overall and by label, Gwet's AC1, observed agreement, and each annotator against the others. With true "
    "labels, also show how often the majority, Dawid and Skene's model, the one-coin model, MACE and GLAD are right. "
    "For answers with several labels, show alpha with MASI and Jaccard's distance, and the mean F1 of each annotator "
    "and, with true labels, of the majority.",
    *OPTIONS,
    refuses=(JudgmentFileError, UnknownLabel, UnorderedLabels),
)
def agreement_action(values: Values, progress: Progress) -> Outcome:
    task = values["task"]
    gold = values["gold"]
    truth = read_truth(gold, named_columns(values["column"], GOLD_COLUMNS), task.labels) if gold else None
    report = agreement_statistics.report(task, gold=truth, repeats=values["repeats"], ordinal=values["ordinal"])
    if not report["all"]["judgments"]:
        return Outcome([f"Task {task.name}: {_no_agreement_reason(task)}"], data=report)
    if truth and not report["all"]["gold"]["units"]:
        raise JudgmentFileError(
            f"None of the {many(len(truth), 'item')} in {gold} has an answer in task {task.name}, so there is nothing "
            "to compare. The column task must contain the ids of the task's items, such as "
            f"{task.units.earliest('pk').item.key!r}; to use another column, add --column task=NAME."
        )
    return Outcome(_report_lines(report), data=report)


def _no_agreement_reason(task: Task) -> str:
    if task.redundancy == 1 and not task.overlap_share:
        return (
            "only one person reads each item, so there is no agreement to measure. Open a task with --redundancy 1.1 "
            "so that a second person reads some of the items, or with --redundancy 2 so that a second person reads "
            "all of them."
        )
    return "no valid answers yet. An item counts only if two people have read it."


def _report_lines(report: dict[str, Any]) -> list[str]:
    overall = report["all"]
    against_rest, model = overall["against_rest"], overall["dawid_skene"]
    differences = model["differs"] if model else []
    names = {annotator.pk: str(annotator) for annotator in Annotator.objects.select_related("user")}
    tables = [
        agreement_report.agreement_table(report, agreement_report.COMMAND),
        *([labels] if (labels := agreement_report.label_table(report, shown=SHOWN)) else []),
        *([agreement_report.accuracy_table(report)] if overall["gold"] else []),
        agreement_report.rest_table(against_rest[:SHOWN], names),
        *([agreement_report.difference_table(differences[:SHOWN])] if differences else []),
    ]
    longest = max(len(against_rest), len(differences), len(overall["by_label"]))
    return _lines(tables, longest, [*agreement_report.doubts(report), *agreement_report.words(report)])


def _lines(tables: list[Table], longest: int, sentences: list[str]) -> list[str]:
    """Return the tables as text, followed by the sentences.

    longest: number of rows in the longest table before any rows were cut off
    """
    note = [f"Each table shows only the first {SHOWN} rows; --json prints all of them.", ""] if longest > SHOWN else []
    return [*(line for table in tables for line in (as_lines(table), "")), *note, *sentences]


# --- Preferences between systems


@action(
    "preferences",
    "Show which of two systems people prefer: shares of judgments and majorities with ties counted separately, the "
    "sign test, agreement, and how often each person chose the side shown first, overall and by language. For three "
    "or more systems, show each pair, and the ranking by Bradley and Terry's model. All intervals are 95% intervals "
    "over messages.",
    TASK,
    refuses=(NoPreferences,),
)
def preferences_action(values: Values, progress: Progress) -> Outcome:
    task = values["task"]
    report = preference_statistics.report(task)
    if not report["all"]["judgments"]:
        return Outcome([f"Task {task.name}: no valid answers yet."], data=report)
    return Outcome(_preference_lines(report), data=report)


def _preference_lines(report: dict[str, Any]) -> list[str]:
    people = report["all"]["sides"]["people"]
    names = {annotator.pk: str(annotator) for annotator in Annotator.objects.select_related("user")}
    tables = [
        *preference_report.tables(report, shown=SHOWN),
        *([preference_report.side_table(people[:SHOWN], names)] if people else []),
    ]
    longest = max(len(people), len(report["all"]["pairs"]))
    sentences = [*preference_report.words(report), *preference_report.agreement_words(report)]
    return _lines(tables, longest, list(map(wrapped, sentences)))
