"""export_gold: a task's gold set, into a folder."""

from pathlib import Path

from annotate.actions.action import Action, Outcome, task_named
from annotate.actions.options import TASK
from annotate.core.option import Option
from annotate.goldsets.writing import SPLITS, ExportError, export
from annotate.reports import sentences
from annotate.work import progress as progressing

OPTIONS = (
    TASK,
    Option("out", Path, required=True, help="folder to write; an earlier export is replaced"),
    Option(
        "splits",
        default="",
        shown="SHARES",
        help=f"of records, {SPLITS} by default; train is in English only, and elsewhere dev and test share all",
    ),
    Option("seed", default="", help="of the splits; by default that of the draw"),
)


def run(values, progress) -> Outcome:
    task, out = task_named(values["task"]), values["out"]
    manifest = export(task, out, splits=values["splits"], seed=values["seed"])
    counts, noun = manifest["counts"], f"{task.kind.noun}s"
    warned = [sentences.undecidable(progressing.undecidable(task))]
    if not manifest["finished"]:
        waiting = f"Unfinished: {counts['unfinished']:,} {noun} still wait for people. The files are named accordingly."
        warned.insert(0, waiting)
    if not manifest["corpus"]["text_may_leave"]:
        warned.append("The licence keeps the text here: the files hold ids and labels only.")
    warned += [f"Note: {sentence}" for sentence in manifest.get("splits", {}).get("off", {}).values()]
    warned.append((manifest.get("published") or {}).get("refused", ""))
    labels = len(counts["by_label"])
    written = f"{counts['labelled']:,} of {counts[noun]:,} {noun} written to {out}, in {labels} labels."
    return Outcome([written], [sentence for sentence in warned if sentence], manifest)


ACTION = Action(
    "export_gold",
    "Write a task's gold set: TSV or XGLUE's files, JSONL, Parquet, manifest and dataset card.",
    OPTIONS,
    run,
    (ExportError,),
)
