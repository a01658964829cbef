"""The action `panel`: before opening a task, show what panels agree on, what people would read, and expected errors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from annotate.actions.action import CORPUS, ActionError, Outcome, Progress, Values, action
from annotate.actions.open_task import kind_named
from annotate.core.option import Option, whole_number, words
from annotate.figures import panel_report
from annotate.figures.panel_forecast import Work, forecast_of
from annotate.goldsets.export import DETECTORS
from annotate.goldsets.gold_set import GoldSetError, objects_in
from annotate.kinds import Kind
from annotate.kinds.files import KindError
from annotate.kinds.options import OPTIONS as OPTIONS_OF_TASKS
from annotate.kinds.panel_kind import invalid_notes, takes_panel, with_panel
from annotate.models import Task
from annotate.reports.table_formats import as_lines, wrapped
from annotate.reports.tables import many
from annotate.work.task_creation import TaskError, choose_panel, imagined_task
from corpora.core import CorpusError
from corpora.core.voters import DEFAULT, MOST, Panel
from corpora.predictions.panels import panel_named
from corpora.predictions.prediction_rows import EVERY_LABEL, read_predictions
from corpora.storage.layout import manifest_of

DECLARED = "declared"


@action(
    "panel",
    "Show, before a task is opened, on how much of a corpus panels of voters agree, what is left to people, how often "
    "two voters agree and err together, and how often agreement is wrong.",
    CORPUS,
    Option(
        "voters",
        words,
        default=(),
        several=True,
        shown='"NAME NAME"',
        help="two to seven voters: detectors that have voted, or imported predictions such as mine@1. Repeat it to "
        f"compare panels; by default {' '.join(DEFAULT.voters)} for posts",
    ),
    Option("agree", whole_number, least=1, most=MOST, help="how many voters must agree; by default all"),
    Option(
        "truth",
        shown="SOURCE",
        help="where true labels are known: the folder of a gold set, a file with the columns id and label, or "
        f"{DECLARED} for the labels that came with records",
    ),
    Option("kind", help="the kind of question about records, or its file; by default records can have any label"),
    Option("size", whole_number, least=1, help="the number of items to draw; by default all"),
    *(replace(OPTIONS_OF_TASKS[name], group="") for name in ("audit_share", "audit_least")),
    Option("seconds", whole_number, Kind.seconds, help="seconds per answer", least=1, most=3600),
    refuses=(GoldSetError, KindError, TaskError),
)
def panel_action(values: Values, progress: Progress) -> Outcome:
    """The voters of each panel are read in one query."""
    corpus = values["corpus"]
    of_posts = not manifest_of(corpus).fields
    names = values["voters"] or ([DEFAULT.voters] if of_posts else [])
    if not names:
        raise ActionError(
            f"Corpus {corpus} contains records, which have no default panel. Set --voters.", option="voters"
        )
    panels = [panel_named(corpus, each, values["agree"]) for each in names]
    truth = {} if values["truth"] is None else _truth(values["truth"], of_posts=of_posts)
    kind = _kind(values["kind"], of_posts=of_posts)
    progress.begin(len(panels), "panel")
    progress.advance()
    forecasts = []
    for panel in panels:
        task = _task(corpus, kind, panel) if kind else None
        seconds = values["seconds"] * (task.redundancy if task else 1)
        work = Work(values["size"], values["audit_share"], values["audit_least"], seconds)
        forecasts.append(forecast_of(corpus, panel, task, truth, work))
        progress.advance(1)
    notes = _notes(forecasts, kind, values["size"])
    return Outcome(_lines(forecasts), notes, {"corpus": corpus, "panels": forecasts})


def _notes(forecasts: list[dict[str, Any]], kind: Kind | None, size: int | None) -> list[str]:
    notes = list(dict.fromkeys(note for forecast in forecasts for note in invalid_notes(forecast["invalid"])))
    if kind is None:
        notes.append("Note: the hours are for one reader per item, because --kind is not set.")
    if size and size > (items := forecasts[0]["items"]):
        notes.append(f"Note: the corpus contains only {many(items, 'item')}, so all of them are drawn.")
    return notes


def _kind(name: str | None, *, of_posts: bool) -> Kind | None:
    """Return the kind of question, or None for records that can have any label."""
    if name is None and not of_posts:
        return None
    kind = kind_named(name, "uniform" if of_posts else None)
    if of_posts is bool(kind.fields):
        nouns = ("records", "posts") if of_posts else ("posts", "records")
        raise ActionError(
            f"The kind {kind.slug} asks about {nouns[0]}, but the corpus contains {nouns[1]}. Choose another --kind.",
            option="kind",
        )
    if not takes_panel(kind):
        raise ActionError(
            f"Tasks of the kind {kind.slug} cannot have voters: only answers that are one label or a set of labels "
            "can be voted on. Choose another --kind.",
            option="kind",
        )
    return with_panel(kind)


def _task(corpus: str, kind: Kind, panel: Panel) -> Task:
    task = imagined_task(kind, (), {})
    choose_panel(task, corpus, panel)
    return task


def _lines(forecasts: list[dict[str, Any]]) -> list[str]:
    lines = [as_lines(panel_report.panels_table(forecasts))]
    for forecast in forecasts:
        lines += ["", f"{panel_report.name_of(forecast)}:"]
        lines += [wrapped(" ".join(panel_report.sentences(forecast)))]
        for made in (
            panel_report.voters_table(forecast),
            panel_report.pairs_table(forecast),
            panel_report.labels_table(forecast, panel_report.ROWS),
            panel_report.queues_table(forecast, panel_report.ROWS),
        ):
            lines += ["", as_lines(made)]
    if not any(forecast["known"] or forecast["earlier"] for forecast in forecasts):
        lines += ["", "To measure errors, set --truth."]
    if any(max(len(forecast["labels"]), len(forecast["queues"])) > panel_report.ROWS for forecast in forecasts):
        lines += ["", f"Each table shows {panel_report.ROWS} rows. With --json, all labels and queues are shown."]
    return lines


def _truth(source: str, *, of_posts: bool) -> dict[str, str] | None:
    """Return the true label of items by id, or None for the labels that came with records."""
    if source == DECLARED:
        return None
    path = Path(source)
    if not path.is_dir():
        labels, _ = read_predictions(path, {}, also=() if of_posts else EVERY_LABEL)
        return labels
    gold = path / "gold.jsonl"
    if not gold.exists():
        raise CorpusError(f"{path} is no gold set: there is no file {gold.name}. Write one with export_gold.", "truth")
    rows = [raw for _, raw in objects_in(gold)]
    # If only the voters gave a label, it does not show whether they were right.
    return {row["id"]: _label(row["label"]) for row in rows if row.get("decided_by") != DETECTORS}


def _label(label: Any) -> str:
    """Return a label in its canonical form. Sets of labels are lists."""
    return " ".join(sorted(label)) if isinstance(label, list) else str(label)
