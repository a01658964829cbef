"""The action `plan`: before a task is opened, compute how large its draw must be and how much people must read."""

from dataclasses import replace
from typing import Any

from annotate.actions.action import CORPUS, Action, ActionError, Outcome, Progress, Values
from annotate.core.estimation.annotator_error import OTHERS
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
from corpora.storage.layout import manifest_of

BOTH = ("precision", "recall")
WISHED, EXPECTED, PEOPLE = "What to plan for", "What to assume", "People"


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
        help="what to measure; by default precision and recall",
        group=WISHED,
    ),
    Option("languages", codes, default=(), help="the languages to plan for; by default all", group=WISHED),
    Option(
        "size",
        whole_number,
        None,
        least=1,
        help="show the widths for a draw of N posts, by the share of audits, and which share gives the desired "
        "width; without it, plan shows the draw that gives that width",
        group=WISHED,
    ),
    replace(OPTIONS_OF_TASKS["audit_share"], help="the share of audits of that draw", group=WISHED),
    Option("accuracy", share, 0.95, least=0.01, most=1, help="how often the predictor will be right", group=EXPECTED),
    Option("wrong", share, 0.01, most=1, help="the share of the detectors' agreement that is wrong", group=EXPECTED),
    Option(
        "others",
        share,
        OTHERS,
        most=0.95,
        help="the share of a recall-oriented draw that is in another language",
        group=EXPECTED,
    ),
    Option("false_yes", share, 0.0, most=0.5, help="the share of decoys to which readers say Yes", group=EXPECTED),
    Option("voted", flag, False, help="the predictor is one of the detectors", group=EXPECTED),
    Option(
        "seconds",
        whole_number,
        Kind.seconds,
        help="seconds per post",
        group=PEOPLE,
        least=1,
        most=3600,
    ),
    Option("weekly", whole_number, HOURS_A_WEEK, least=1, most=168, help="a reader's hours in a week", group=PEOPLE),
)


def run(values: Values, progress: Progress) -> Outcome:
    name, wished = values["corpus"], values["width"] / 100
    if manifest_of(name).fields:
        raise ActionError(
            f"Corpus {name} holds records, which detectors do not label, so there is no agreement of theirs to plan "
            f"for; `assay open_task TASK --corpus {name} … --dry-run` says what people would have to read."
        )
    task = draw_plan.usual_task(audit_share=values["audit_share"])
    stream = draw_plan.stream_of(name, task)
    there = draw_plan.languages_of(stream)
    if strange := [code for code in values["languages"] if code not in there]:
        raise ActionError(
            f"The detectors take no post of corpus {name} for {', '.join(strange)}; leave it out. There is: "
            f"{' '.join(there) or 'no language'}."
        )
    expected = Expected(values["accuracy"], values["wrong"], values["voted"], values["others"], values["false_yes"])
    if values["size"]:
        return _of_draw(name, task, stream, values["size"], wished, expected, values["seconds"])
    measures = list(dict.fromkeys(values["measure"] or BOTH))
    languages = [code for code in there if code in values["languages"]] or there
    progress.begin(sum(1 if measure == "accuracy" else len(languages) for measure in measures), "figure")
    progress.advance()
    found = draw_plan.plan(
        stream,
        task,
        measures=measures,
        languages=languages,
        wished=wished,
        expected=expected,
        pace=draw_plan.Pace(values["seconds"], values["weekly"]),
        done=progress.advance,
    )
    lines = [*_sentences(found, measures, wished), *plan_report.draw_words(found, name, wished)]
    return Outcome(lines, data={"corpus": name, "width": values["width"], **found})


def _sentences(found: dict[str, Any], measures: list[str], wished: float) -> list[str]:
    lines = []
    for measure in measures:
        if (table := plan_report.measure_table(found, measure)).rows:
            lines += [f"{plan_report.called(measure)}, {in_points(wished)}:", as_lines(table)]
        lines += [*plan_report.missing(found, measure), ""]
    lines += [wrapped(plan_report.columns_words()), ""]
    lines += [line for sentence in plan_report.without_decoys(found) for line in (wrapped(sentence), "")]
    if found["recall"]:
        lines += ["Recall in the draw below, where it is wider:", as_lines(plan_report.recall_table(found)), ""]
    return lines


def _of_draw(
    name: str, task: Task, stream: Stream, asked: int, wished: float, expected: Expected, seconds: int
) -> Outcome:
    size = min(asked, stream.posts)
    found = draw_plan.widths(task, stream, size, expected, seconds)
    needed = draw_plan.needed(task, stream, size, wished, expected, seconds)
    if found["accuracy"] is None:
        raise ActionError(f"A draw of {many(size, 'post')} is too small for any interval of accuracy. Raise --size.")
    said = [as_lines(plan_report.language_table(found)), "", wrapped(plan_report.width_words(found)), ""]
    said += [as_lines(plan_report.curve_table(found)), "", plan_report.next_words(found)]
    said += [as_lines(plan_report.next_table(found)), "", f"For {in_points(wished)}:"]
    said += [as_lines(plan_report.needed_table(needed)), "", wrapped(plan_report.NEEDED_WORDS)]
    few = [f"The corpus holds only {many(size, 'post')}, so the plan is for all of them."] if size < asked else []
    return Outcome(said, few, {"corpus": name, "width": 100 * wished, "size": size, **found, "needed": needed})


ACTION = Action(
    "plan",
    "Show, by language, how many posts to draw from a prelabelled corpus, and how many of them people must read, "
    "for intervals of a given width.",
    OPTIONS,
    run,
)
