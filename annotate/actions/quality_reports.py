"""The actions that report on a task's answers: `audit`, `agreement` and `preferences`.

`audit` shows the results of agreement audits, of decoys, and of checks of items that a single annotator decided. It can
also add audits or checks, and send the agreed items of languages that failed the audit to annotators.
"""

from pathlib import Path
from typing import Any

from django.db import transaction

from annotate.actions.action import TASK, ActionError, Outcome, Progress, Values, action, column
from annotate.actions.judgment_files import GOLD_COLUMNS, JudgmentFileError, read_truth
from annotate.actions.opening_summary import NOT_KEPT, reader_warnings
from annotate.controls import audit_report
from annotate.controls.agreement_audit import contest_all
from annotate.controls.audited_units import add_audits
from annotate.controls.checks import Checks, add_checks
from annotate.core.option import Option, codes, flag, points, whole_number
from annotate.figures import plan_report
from annotate.figures.further_work import further_work, measures_accuracy
from annotate.kinds.control import panels
from annotate.models import Annotator, Task
from annotate.quality import agreement_report, agreement_statistics, preference_report, preference_statistics
from annotate.quality.agreement_statistics import UnorderedLabels
from annotate.quality.answer_models import UnknownLabel
from annotate.quality.preference_statistics import NoPreferences
from annotate.reports.table_formats import as_lines, wrap
from annotate.reports.tables import Table, many
from corpora.core.languages import meant
from corpora.sources.readers import named_columns

NOTHING = "its kind of question has no audits, decoys or checks, so there is nothing to show."
CONTEST = Option(
    "contest", flag, False, help="send the agreed items of languages with errors above the task's limit to annotators"
)
ADD = Option("add", whole_number, least=1, shown="N", help="send N more agreed items to annotators")
CHECKS = Option(
    "checks",
    flag,
    False,
    help="with --add: instead have adjudicators check N more items that a single annotator decided",
)
LANGUAGES = Option(
    "languages",
    codes,
    default=(),
    help="with --add: the languages of these items; by default those that narrow the interval of the overall error "
    "most",
)
WIDTH = Option(
    "width",
    points,
    None,
    least=0.1,
    most=100,
    help="list the work that would narrow the 95% interval of accuracy to this width, in percentage points; by "
    "default half the expected width",
)
DRY_RUN = Option("dry_run", flag, False, help="with --add: only show how many items would be added, by language")


@action(
    "audit",
    "Show the results of a task's audits, checks and decoys, and which further work would narrow the interval of "
    "accuracy most. --contest and --add send more agreed items to annotators; --add with --checks has adjudicators "
    "check more items that a single annotator decided.",
    TASK,
    WIDTH,
    CONTEST,
    ADD,
    CHECKS,
    LANGUAGES,
    DRY_RUN,
    checks=lambda values: check(values),
)
def audit_action(values: Values, progress: Progress) -> Outcome:
    task = values["task"]
    if values["add"]:
        return _add(task, values)
    if values["contest"]:
        contested = contest_all(task)
        return Outcome(
            [audit_report.contested_sentence(contested, task.kind.noun)],
            data={"task": task.name, "contested": contested},
        )
    outcome = _results(task)
    if outcome is None:
        return Outcome([f"Task {task.name}: {NOTHING}"], data={"task": task.name})
    return _with_further_work(task, outcome, values["width"] and values["width"] / 100)


def check(values: Values) -> None:
    task: Task = values["task"]
    add, contest, checks, audited = values["add"], values["contest"], values["checks"], task.kind.audits_agreement
    if add and contest:
        raise ActionError(
            "--add and --contest cannot be used together. Add the items, wait until annotators have labelled them, and "
            "then run --contest."
        )
    if values["width"] and (add or contest):
        raise ActionError("--width applies only to the report, which --add and --contest do not show. Remove it.")
    without_add = [option.spelled for option in (CHECKS, LANGUAGES, DRY_RUN) if values[option.name]]
    if without_add and not add:
        raise ActionError(f"{', '.join(without_add)} requires --add. Specify with --add how many items to add.")
    if add and checks and not any(isinstance(control, Checks) for control in task.kind.quality_controls):
        raise ActionError(
            f"Cannot add checks to task {task.name}: only questions about the language of posts have them."
        )
    if add and not (audited or checks):
        raise ActionError(f"Cannot add audits to task {task.name}: none of its labels come from voters.")
    if contest and not audited:
        raise ActionError(f"Cannot contest labels of task {task.name}: none of them come from voters.")
    if values["width"] and not measures_accuracy(task):
        raise ActionError(
            f"Cannot use --width in task {task.name}: only tasks of the design uniform measure accuracy on a stream of "
            "posts. Remove it."
        )


def _add(task: Task, values: Values) -> Outcome:
    add, control = (add_checks, "checks") if values["checks"] else (add_audits, "audit")
    with transaction.atomic():
        added = add(task, values["add"], meant(values["languages"], task.labels.__contains__))
        warnings = reader_warnings(task)
        if values["dry_run"]:
            # A dry run adds the items too, so that it shows exactly what would be added.
            transaction.set_rollback(True)
    sentences = [
        audit_report.added_sentence(added, values["add"], control, task.kind.noun),
        *([NOT_KEPT] if values["dry_run"] else []),
    ]
    return Outcome(sentences, warnings, {"task": task.name, "dry_run": values["dry_run"], "added": added})


def _results(task: Task) -> Outcome | None:
    """Return the results of a task's quality controls, or None if no control has results."""
    lines: list[str] = []
    data: dict[str, Any] = {"task": task.name}
    for panel in panels(task):
        tables = [line for table in panel.tables if table.rows for line in (as_lines(table), "")]
        sentences = [*panel.words, *panel.warnings, *panel.advice]
        panel_lines = [*tables, *sentences] if panel.words else [f"Task {task.name}: {panel.empty}"]
        lines += ["", *panel_lines] if lines else panel_lines
        data |= {panel.key: panel.data} if panel.key else panel.data or {}
    return Outcome(lines, data=data) if lines else None


def _with_further_work(task: Task, outcome: Outcome, width: float | None) -> Outcome:
    """Add to the report a list of the work that would narrow the accuracy's interval most.

    width: desired width of the interval; None for the default
    """
    further = further_work(task, width)
    if further is None:
        return outcome
    lines = [*outcome.said, "", wrap(plan_report.further_words(further))]
    if further["rows"]:
        lines += ["", as_lines(plan_report.further_table(further, lambda row: plan_report.command(row, task.name)))]
    return Outcome(lines, outcome.warned, {**outcome.data, "further_work": further})


# --- Agreement between annotators


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
            "each item has only one annotator, so there is no agreement to measure. Open a task with --redundancy 1.1 "
            "so that some of the items have a second annotator, or with --redundancy 2 so that all of them have one."
        )
    return "no valid answers yet. An item counts only if two annotators have labelled it."


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

    longest: number of rows in the longest table before it was cut off
    """
    note = [f"Each table shows only the first {SHOWN} rows; --json prints all of them.", ""] if longest > SHOWN else []
    return [*(line for table in tables for line in (as_lines(table), "")), *note, *sentences]


# --- Preferences between systems


@action(
    "preferences",
    "Show which of two systems annotators prefer: shares of judgments and majorities with ties counted separately, the "
    "sign test, agreement, and how often each annotator chose the side shown first, overall and by language. For three "
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
    return _lines(tables, longest, list(map(wrap, sentences)))
