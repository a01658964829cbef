"""What a task's page shows of the checks on its numbers: its audit or its decoys, and those of people."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from annotate.models import Task
from annotate.quality import audits, checks, declared_audits, decoys, filter_audits
from annotate.reports import declared_audits as of_declared
from annotate.reports import filter_audits as of_filter
from annotate.reports.audits_and_decoys import (
    NONE,
    audit_plot,
    audit_table,
    audit_words,
    decoy_plot,
    decoy_table,
    decoy_words,
    over_limit,
)
from annotate.reports.checks import NO_SECOND, adjudicator_words, check_table, reader_words
from annotate.reports.tables import Table

FEW = 30  # languages up to which the picture is shown at once


@dataclass(frozen=True)
class Checks:
    """What a task's page shows of its audit, of its decoys, or of its checks. empty: what it says if there is none;
    explained: the page of the documentation that says what is measured, if there is one.
    """

    title: str
    words: list[str]
    table: Table
    plot: SafeString
    over_limit: list[str]
    empty: str
    explained: str = ""

    @property
    def unfold(self) -> bool:
        return len(self.table.rows) <= FEW


def _audit(task: Task) -> Checks:
    found = audits.report(task)
    empty = "Nobody checks what the detectors agree on: no post was chosen for an audit when the task was opened."
    title, words, table, plot = "The audit of agreement", audit_words(found), audit_table(found), audit_plot(found)
    return Checks(title, words, table, plot, over_limit(found), empty, "explanation/audit")


def _decoys(task: Task) -> Checks:
    found = decoys.report(task)
    empty = "No decoys are hidden among its posts: when the task was opened, no labelled post could be one."
    return Checks("Decoys", decoy_words(found), decoy_table(found), decoy_plot(found), [], empty)


def _checks(task: Task) -> Checks:
    found = checks.report(task)
    alone = [NO_SECOND] if checks.unseconded(task, checks.adjudicators().count()) else []
    words = [*reader_words(found), *adjudicator_words(found), *alone]
    return Checks("Checks of people who decide alone", words, check_table(found), NONE, [], "", "explanation/checks")


def _declared(task: Task) -> Checks:
    found = declared_audits.report(task)
    title = "The audit of declared labels"
    if not found:
        return Checks(title, [], of_declared.EMPTY, NONE, [], of_declared.NONE_CHOSEN)
    return Checks(title, of_declared.words(found), of_declared.class_table(found), NONE, [], "", "how-to/balanced-sets")


def _filter(task: Task) -> Checks:
    found = filter_audits.report(task)
    title = "The audit of the filter"
    if not found:
        return Checks(title, [], of_filter.EMPTY, NONE, [], of_filter.NOT_DRAWN)
    return Checks(title, of_filter.words(found), of_filter.figures_table(found), NONE, [], "", "how-to/audit-a-filter")


# The protections of a kind that a task's page shows; the others have their own pages for managers.
SHOWN = {
    "audit": _audit,
    "audit of declared labels": _declared,
    "audit of a filter": _filter,
    "decoys": _decoys,
    "checks": _checks,
}


def checks_of(task: Task) -> list[Checks]:
    return [show(task) for name, show in SHOWN.items() if name in task.kind.protections]
