"""The action `plan`: before opening a task, compute how many posts to draw and how many of them people must read."""

from dataclasses import replace
from typing import Any

from annotate.actions.action import CORPUS, ActionError, Outcome, Progress, Values, action
from annotate.core.estimation.label_errors import OTHERS
from annotate.core.option import Option, codes, flag, points, share, whole_number
from annotate.figures import draw_plan, plan_report
from annotate.figures.finish_forecast import HOURS_A_WEEK
from annotate.figures.interval_width import MEASURES, Expected, Stream
from annotate.kinds import Kind
from annotate.kinds.options import OPTIONS as OPTIONS_OF_TASKS
from annotate.models import Task
from annotate.reports.numbers import in_points
from annotate.reports.table_formats import as_lines, wrapped
from annotate.reports.tables import many
from corpora.core.languages import meant
from corpora.storage.layout import check_posts, manifest_of

BOTH = ("precision", "recall")
WISHED, EXPECTED, PEOPLE = "Target", "Assumptions", "People"


OPTIONS = (
    CORPUS,
    Option(
        "width",
        points,
        5,
        least=0.1,
        most=100,
        help="the full width of the 95% interval, in percentage points",
        group=WISHED,
    ),
    Option(
        "measure",
        choices=MEASURES,
        default=(),
        several=True,
        help="the measures to plan for; by default precision and recall",
        group=WISHED,
    ),
    Option("languages", codes, default=(), help="the languages to plan for; by default all", group=WISHED),
    Option(
        "size",
        whole_number,
        None,
        least=1,
        help="show the interval widths of a draw of N posts by the share of audits, and the share that gives the "
        "desired width. Without --size, plan shows the draw that gives this width",
        group=WISHED,
    ),
    replace(OPTIONS_OF_TASKS["audit_share"], help="the share of audits in this draw", group=WISHED),
    Option("accuracy", share, 0.95, least=0.01, most=1, help="the expected accuracy of the predictor", group=EXPECTED),
    Option(
        "wrong",
        share,
        0.01,
        most=1,
        help="the share of wrong labels among those on which the detectors agree",
        group=EXPECTED,
    ),
    Option(
        "others",
        share,
        OTHERS,
        most=0.95,
        help="the share of posts in other languages in a recall-oriented draw",
        group=EXPECTED,
    ),
    Option("false_yes", share, 0.0, most=0.5, help="the share of decoys that readers answer with Yes", group=EXPECTED),
    Option("voted", flag, False, help="the predictor is one of the detectors", group=EXPECTED),
    Option("seconds", whole_number, Kind.seconds, help="seconds per post", group=PEOPLE, least=1, most=3600),
    Option("weekly", whole_number, HOURS_A_WEEK, least=1, most=168, help="a reader's hours per week", group=PEOPLE),
)


@action(
    "plan",
    "Show, by language, how many posts to draw from a prelabelled corpus, and how many of them people must read, to "
    "get intervals of a given width.",
    *OPTIONS,
)
def plan_action(values: Values, progress: Progress) -> Outcome:
    name, width = values["corpus"], values["width"] / 100
    check_posts(
        name,
        manifest_of(name),
        "To see how much people would have to read of these records, run "
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
        lines.append(f"{plan_report.called(measure)}, {in_points(width)}:")
        if (table := plan_report.measure_table(figures, measure)).rows:
            lines.append(as_lines(table))
            has_rows = True
        lines += [*map(wrapped, plan_report.missing(figures, measure)), ""]
    lines += [wrapped(plan_report.columns_words()), ""] if has_rows else []
    lines += [line for sentence in plan_report.without_decoys(figures) for line in (wrapped(sentence), "")]
    if figures["recall"]:
        lines += ["Recall in the draw below, where it is wider:", as_lines(plan_report.recall_table(figures)), ""]
    return lines


def _of_draw(
    name: str, task: Task, stream: Stream, requested_size: int, width: float, expected: Expected, seconds: int
) -> Outcome:
    size = min(requested_size, stream.posts)
    figures = draw_plan.widths(task, stream, size, expected, seconds)
    needed = draw_plan.needed(task, stream, size, width, expected, seconds)
    if figures["accuracy"] is None:
        raise ActionError(
            f"A draw of {many(size, 'post')} is too small to estimate accuracy. Set --size to a larger number."
        )
    lines = [as_lines(plan_report.language_table(figures)), "", wrapped(plan_report.width_words(figures)), ""]
    lines += [as_lines(plan_report.curve_table(figures)), "", plan_report.next_words(figures)]
    lines += [as_lines(plan_report.next_table(figures)), "", f"For {in_points(width)}:"]
    lines += [as_lines(plan_report.needed_table(needed)), "", wrapped(plan_report.NEEDED_WORDS)]
    warnings = (
        [f"The corpus contains only {many(size, 'post')}, so the plan is for all of them."]
        if size < requested_size
        else []
    )
    return Outcome(lines, warnings, {"corpus": name, "width": 100 * width, "size": size, **figures, "needed": needed})
