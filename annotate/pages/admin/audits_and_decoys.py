"""What a task's page shows of the checks on its numbers: of its audit, or of its decoys."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from annotate.models import Task
from annotate.quality import audits, decoys
from annotate.reports.audits_and_decoys import (
    audit_plot,
    audit_table,
    audit_words,
    decoy_plot,
    decoy_table,
    decoy_words,
    over_limit,
)
from annotate.reports.tables import Table

FEW = 30  # languages whose picture is shown unasked


@dataclass(frozen=True)
class Checks:
    """What a task's page shows of its audit, or of its decoys. empty: what to say where there is neither."""

    title: str
    words: list[str]
    table: Table
    plot: SafeString
    over_limit: list[str]
    empty: str

    @property
    def unfold(self) -> bool:
        return len(self.table.rows) <= FEW


def _audit(task: Task) -> Checks:
    found = audits.report(task)
    empty = "Nobody checks what the detectors agree on: no post was chosen for it when the task was opened."
    title, words, table, plot = "The audit of agreement", audit_words(found), audit_table(found), audit_plot(found)
    return Checks(title, words, table, plot, over_limit(found), empty)


def _decoys(task: Task) -> Checks:
    found = decoys.report(task)
    empty = "None are hidden among its posts: when it was opened, people had labelled none that could be one."
    return Checks("Decoys", decoy_words(found), decoy_table(found), decoy_plot(found), [], empty)


# Of a kind's protections, those that a task's page shows; the others have pages of the manager's own.
SHOWN = {"audit": _audit, "decoys": _decoys}


def checks_of(task: Task) -> Checks | None:
    return next((show(task) for name, show in SHOWN.items() if name in task.kind.protections), None)
