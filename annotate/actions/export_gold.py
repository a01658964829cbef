"""export_gold: a task's gold set, into a folder."""

from pathlib import Path

from annotate.actions.action import TASK, Action, Outcome, task_named
from annotate.actions.opening_summary import lacking
from annotate.controls.audit_report import contested_waiting
from annotate.core.draws.label_shares import FREQUENT_OVER
from annotate.core.option import Option, flag, whole_number
from annotate.figures import overview_report, task_overview
from annotate.goldsets.exporter import SPLITS, ExportError, export
from annotate.reports.tables import many
from annotate.work import closure

OF_RECORDS = "The splits of records"
OPTIONS = (
    TASK,
    Option(
        "out",
        Path,
        required=True,
        shown="FOLDER",
        help="the folder to write; it replaces an earlier export, but never a finished set by an unfinished one",
    ),
    Option(
        "splits",
        default="",
        shown="SHARES",
        help=f"for records: the shares of their splits; by default those of the kind's split field, or {SPLITS}; train "
        "is in English only, and other languages have dev and test",
        group=OF_RECORDS,
    ),
    Option("seed", default="", help="the seed of the splits; by default the draw's", group=OF_RECORDS),
    Option(
        "frequent_over",
        whole_number,
        least=1,
        help="for documents with several labels: a label in more train documents is frequent, by default "
        f"{FREQUENT_OVER}",
        group=OF_RECORDS,
    ),
    Option(
        "tell_secret",
        flag,
        False,
        help="disclose the secret of a closed task's random draws in the set, so that verify_lots can repeat them; "
        "the task can never be reopened",
    ),
)


def run(values, progress) -> Outcome:
    task, out = task_named(values["task"]), values["out"]
    given = {name: values[name] for name in ("splits", "seed", "frequent_over", "tell_secret")}
    if values["tell_secret"]:
        closure.tell_secret(task)
    closure.fix_outcomes(task)
    manifest = export(task, out, **given)
    counts, noun = manifest["counts"], f"{task.kind.noun}s"
    warned = [overview_report.undecidable(task_overview.undecidable(task))]
    if not manifest["finished"]:
        left = counts["unfinished"]
        waits = f"{many(left, task.kind.noun)} still {'waits' if left == 1 else 'wait'}"
        waiting = f"Unfinished: {waits} for people. The files are named accordingly."
        contested = overview_report.contested(contested_waiting().get(task.pk, {}))
        warned = [waiting, contested, *lacking(task), *warned]
    if not manifest["corpus"]["text_may_leave"]:
        warned.append("The licence keeps the text here: the files hold ids and labels only.")
    if values["splits"] or manifest.get("published"):  # elsewhere the card has them, as nobody asked for splits
        warned += [f"Note: {sentence}" for sentence in manifest.get("splits", {}).get("off", {}).values()]
    warned.append((manifest.get("published") or {}).get("refused", ""))
    labels = many(len(counts["by_label"]), "label")
    written = f"{counts['labelled']:,} of {counts[noun]:,} {noun} written to {out}, in {labels}."
    return Outcome([written], [sentence for sentence in warned if sentence], manifest)


ACTION = Action(
    "export_gold",
    "Write a task's gold set: files of a published format, JSONL, Parquet, manifest and dataset card.",
    OPTIONS,
    run,
    (ExportError,),
)
