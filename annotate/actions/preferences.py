"""preferences: which of two systems, or of several, the people of a task prefer."""

from typing import Any

from annotate.actions.action import TASK, Action, Outcome, task_named
from annotate.models import Annotator
from annotate.quality import preference_report, preferences
from annotate.quality.preferences import NoPreferences
from annotate.reports.terminal import as_lines, wrapped

SHOWN = 20


def run(values, progress) -> Outcome:
    task = task_named(values["task"])
    report = preferences.report(task)
    if not report["all"]["judgments"]:
        return Outcome([f"Task {task.name}: no answer counts yet."], data=report)
    return Outcome(_written(report), data=report)


def _written(report: dict[str, Any]) -> list[str]:
    people = report["all"]["sides"]["people"]
    names = {one.pk: str(one) for one in Annotator.objects.select_related("user")}
    tables = [
        *preference_report.tables(report, shown=SHOWN),
        *([preference_report.side_table(people[:SHOWN], names)] if people else []),
    ]
    written = [line for table in tables for line in (as_lines(table), "")]
    longest = max(len(people), len(report["all"]["pairs"]))
    cut = [f"The first {SHOWN} of each; --json has all.", ""] if longest > SHOWN else []
    return [
        *written,
        *cut,
        *(wrapped(words) for words in [*preference_report.words(report), *preference_report.agreement_words(report)]),
    ]


ACTION = Action(
    "preferences",
    "Show which of two systems the people of a task prefer: shares of judgments and of majorities, ties apart, by "
    "language and in all, the sign test, how far people agree, and how often each chose what stood first; of three "
    "systems or more each pair, and their order by Bradley and Terry's model. With 95% intervals over messages.",
    (TASK,),
    run,
    (NoPreferences,),
)
