"""The actions that plan a task before it is opened.

`plan` computes how many posts to draw, and how many of them annotators must label. `panel` shows how often panels of
voters agree, what is left to annotators, and the expected errors.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from annotate.actions.action import CORPUS, ActionError, Outcome, Progress, Values, action
from annotate.actions.open_task import kind_named
from annotate.core.estimation.label_errors import OTHERS
from annotate.core.option import Option, codes, flag, points, share, whole_number, words
from annotate.figures import draw_plan, panel_report, plan_report
from annotate.figures.finish_forecast import HOURS_A_WEEK
from annotate.figures.interval_width import MEASURES, Expected, Stream
from annotate.figures.panel_forecast import Work, forecast_of
from annotate.goldsets.export import DETECTORS
from annotate.goldsets.gold_set import GoldSetError, objects_in
from annotate.kinds import Kind
from annotate.kinds.files import KindError
from annotate.kinds.options import OPTIONS as OPTIONS_OF_TASKS
from annotate.kinds.panel_kind import invalid_notes, takes_panel, with_panel
from annotate.models import Task
from annotate.reports.numbers import in_points
from annotate.reports.table_formats import as_lines, wrap
from annotate.reports.tables import many
from annotate.work.task_creation import TaskError, choose_panel, provisional_task
from corpora.core import CorpusError
from corpora.core.languages import meant
from corpora.core.voters import DEFAULT, MOST, Panel
from corpora.predictions.panels import panel_named
from corpora.predictions.prediction_rows import EVERY_LABEL, read_predictions
from corpora.storage.layout import check_posts, manifest_of

BOTH = ("precision", "recall")
TARGET, ASSUMPTIONS, PEOPLE = "Target", "Assumptions", "People"


OPTIONS = (
    CORPUS,
    Option(
        "width",
        points,
        5,
        least=0.1,
        most=100,
        help="the full width of the 95% interval, in percentage points",
        group=TARGET,
    ),
    Option(
        "measure",
        choices=MEASURES,
        default=(),
        several=True,
        help="the measures to plan for; by default precision and recall",
        group=TARGET,
    ),
    Option("languages", codes, default=(), help="the languages to plan for; by default all", group=TARGET),
    Option(
        "size",
        whole_number,
        None,
        least=1,
        help="show the interval widths of a draw of N posts by the share of audits, and the share that gives the "
        "desired width. Without --size, plan shows the draw that gives this width",
        group=TARGET,
    ),
    replace(OPTIONS_OF_TASKS["audit_share"], help="the share of audits in this draw", group=TARGET),
    Option(
        "accuracy", share, 0.95, least=0.01, most=1, help="the expected accuracy of the predictor", group=ASSUMPTIONS
    ),
    Option(
        "wrong",
        share,
        0.01,
        most=1,
        help="the share of wrong labels among the labels on which the detectors agree",
        group=ASSUMPTIONS,
    ),
    Option(
        "others",
        share,
        OTHERS,
        most=0.95,
        help="the share of posts in other languages in a recall-oriented draw",
        group=ASSUMPTIONS,
    ),
    Option(
        "false_yes", share, 0.0, most=0.5, help="the share of decoys that readers answer with Yes", group=ASSUMPTIONS
    ),
    Option("voted", flag, False, help="the predictor is one of the detectors", group=ASSUMPTIONS),
    Option("seconds", whole_number, Kind.seconds, help="seconds per post", group=PEOPLE, least=1, most=3600),
    Option("weekly", whole_number, HOURS_A_WEEK, least=1, most=168, help="a reader's hours per week", group=PEOPLE),
)


@action(
    "plan",
    "Show, by language, how many posts to draw from a prelabelled corpus, and how many of them annotators must label, "
    "to get intervals of a given width.",
    *OPTIONS,
)
def plan_action(values: Values, progress: Progress) -> Outcome:
    name, width = values["corpus"], values["width"] / 100
    check_posts(
        name,
        manifest_of(name),
        "To see how many of these records annotators would have to label, run "
        f"`assay open_task TASK --corpus {name} … --dry-run`.",
    )
    task = draw_plan.usual_task(audit_share=values["audit_share"])
    stream = draw_plan.stream_of(name, task)
    available = draw_plan.languages_of(stream)
    wanted = meant(values["languages"], available.__contains__)
    if missing_languages := [code for code in wanted if code not in available]:
        raise ActionError(
            f"The detectors label no post of corpus {name} as {', '.join(missing_languages)}. Available "
            f"languages: {' '.join(available) or 'none'}."
        )
    expected = Expected(values["accuracy"], values["wrong"], values["voted"], values["others"], values["false_yes"])
    if values["size"]:
        return _of_draw(name, task, stream, values["size"], width, expected, values["seconds"])
    measures = list(dict.fromkeys(values["measure"] or BOTH))
    languages = [code for code in available if code in wanted] or available
    progress.begin(sum(1 if measure == "accuracy" else len(languages) for measure in measures), "figure")
    progress.advance()
    figures = draw_plan.plan(
        stream,
        task,
        measures=measures,
        languages=languages,
        wished=width,
        expected=expected,
        pace=draw_plan.Pace(values["seconds"], values["weekly"]),
        done=progress.advance,
    )
    lines = [*_sentences(figures, measures, width), *plan_report.draw_words(figures, name, width)]
    return Outcome(lines, data={"corpus": name, "width": values["width"], **figures})


def _sentences(figures: dict[str, Any], measures: list[str], width: float) -> list[str]:
    lines, has_rows = [], False
    for measure in measures:
        lines.append(f"{plan_report.measure_name(measure)}, {in_points(width)}:")
        if (table := plan_report.measure_table(figures, measure)).rows:
            lines.append(as_lines(table))
            has_rows = True
        lines += [*map(wrap, plan_report.missing(figures, measure)), ""]
    lines += [wrap(plan_report.columns_words()), ""] if has_rows else []
    lines += [line for sentence in plan_report.without_decoys(figures) for line in (wrap(sentence), "")]
    if figures["recall"]:
        lines += ["Recall in the draw below, where it is wider:", as_lines(plan_report.recall_table(figures)), ""]
    return lines


def _of_draw(
    name: str, task: Task, stream: Stream, requested_size: int, width: float, expected: Expected, seconds: int
) -> Outcome:
    size = min(requested_size, stream.posts)
    figures = draw_plan.widths(task, stream, size, expected, seconds)
    needed = draw_plan.required_shares(task, stream, size, width, expected, seconds)
    if figures["accuracy"] is None:
        raise ActionError(
            f"A draw of {many(size, 'post')} is too small to estimate accuracy. Set --size to a larger number."
        )
    lines = [as_lines(plan_report.language_table(figures)), "", wrap(plan_report.width_words(figures)), ""]
    lines += [as_lines(plan_report.curve_table(figures)), "", plan_report.next_words(figures)]
    lines += [as_lines(plan_report.next_table(figures)), "", f"For {in_points(width)}:"]
    lines += [as_lines(plan_report.needed_table(needed)), "", wrap(plan_report.NEEDED_WORDS)]
    warnings = (
        [f"The corpus contains only {many(size, 'post')}, so the plan is for all of them."]
        if size < requested_size
        else []
    )
    return Outcome(lines, warnings, {"corpus": name, "width": 100 * width, "size": size, **figures, "needed": needed})


# --- Panels of voters


DECLARED = "declared"


@action(
    "panel",
    "Show, before a task is opened, on how much of a corpus panels of voters agree, what is left to annotators, how "
    "often two voters agree and err together, and how often the agreed label is wrong.",
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
    corpus = values["corpus"]
    of_posts = not manifest_of(corpus).fields
    names = values["voters"] or ([DEFAULT.voters] if of_posts else [])
    if not names:
        raise ActionError(
            f"Corpus {corpus} contains records, which have no default panel. Set --voters.", option="voters"
        )
    panels = [panel_named(corpus, voters, values["agree"]) for voters in names]
    truth = {} if values["truth"] is None else _truth(values["truth"], of_posts=of_posts)
    kind = _panel_kind(values["kind"], of_posts=of_posts)
    progress.begin(len(panels), "panel")
    progress.advance()
    forecasts = []
    for panel in panels:
        task = _panel_task(corpus, kind, panel) if kind else None
        seconds = values["seconds"] * (task.redundancy if task else 1)
        work = Work(values["size"], values["audit_share"], values["audit_least"], seconds)
        forecasts.append(forecast_of(corpus, panel, task, truth, work))
        progress.advance(1)
    notes = _panel_notes(forecasts, kind, values["size"])
    return Outcome(_panel_lines(forecasts), notes, {"corpus": corpus, "panels": forecasts})


def _panel_notes(forecasts: list[dict[str, Any]], kind: Kind | None, size: int | None) -> list[str]:
    notes = list(dict.fromkeys(note for forecast in forecasts for note in invalid_notes(forecast["invalid"])))
    if kind is None:
        notes.append("Note: the hours are for one annotator per item, because --kind is not set.")
    if size and size > (items := forecasts[0]["items"]):
        notes.append(f"Note: the corpus contains only {many(items, 'item')}, so all of them are drawn.")
    return notes


def _panel_kind(name: str | None, *, of_posts: bool) -> Kind | None:
    """Return the kind of question; None for records that can have any label."""
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


def _panel_task(corpus: str, kind: Kind, panel: Panel) -> Task:
    task = provisional_task(kind, (), {})
    choose_panel(task, corpus, panel)
    return task


def _panel_lines(forecasts: list[dict[str, Any]]) -> list[str]:
    lines = [as_lines(panel_report.panels_table(forecasts))]
    for forecast in forecasts:
        lines += ["", f"{panel_report.name_of(forecast)}:"]
        lines += [wrap(" ".join(panel_report.sentences(forecast)))]
        for table in (
            panel_report.voters_table(forecast),
            panel_report.pairs_table(forecast),
            panel_report.labels_table(forecast, panel_report.ROWS),
            panel_report.queues_table(forecast, panel_report.ROWS),
        ):
            lines += ["", as_lines(table)]
    if not any(forecast["known"] or forecast["earlier"] for forecast in forecasts):
        lines += ["", "To measure errors, set --truth."]
    if any(max(len(forecast["labels"]), len(forecast["queues"])) > panel_report.ROWS for forecast in forecasts):
        lines += ["", f"Each table shows {panel_report.ROWS} rows. With --json, all labels and queues are shown."]
    return lines


def _truth(source: str, *, of_posts: bool) -> dict[str, str] | None:
    """Return a mapping from item id to true label; None for the labels declared in the corpus."""
    if source == DECLARED:
        return None
    path = Path(source)
    if not path.is_dir():
        labels, _ = read_predictions(path, {}, also=() if of_posts else EVERY_LABEL)
        return labels
    gold = path / "gold.jsonl"
    if not gold.exists():
        raise CorpusError(
            f"{path} is not a gold set: it has no file {gold.name}. Write a set with export_gold.", "truth"
        )
    rows = [raw for _, raw in objects_in(gold)]
    # A label that comes only from voters can't show whether they were right.
    return {row["id"]: _label(row["label"]) for row in rows if row.get("decided_by") != DETECTORS}


def _label(label: Any) -> str:
    """Return the canonical form of a label. A set of labels is a list in the file."""
    return " ".join(sorted(label)) if isinstance(label, list) else str(label)
