"""What a task's page Progress shows of its audit: of the labels that were declared, or of a filter."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from annotate.models import Task
from annotate.quality import declared_audits, filter_audits
from annotate.reports import declared_audits as of_declared
from annotate.reports import filter_audits as of_filter
from annotate.reports.tables import Table


class Audit(NamedTuple):
    """heading: of its section; report: what was found, in figures, from which the table and the words are made."""

    heading: str
    report: Callable[[Task], dict[str, Any] | None]
    table: Callable[[Mapping[str, Any]], Table]
    words: Callable[[Mapping[str, Any]], list[str]]


# By what protects the numbers of a kind; that of the detectors' agreement is told in the admin.
AUDITS = {
    "audit of declared labels": Audit(
        "The audit of declared labels", declared_audits.report, of_declared.class_table, of_declared.words
    ),
    "audit of a filter": Audit(
        "The audit of the filter", filter_audits.report, of_filter.figures_table, of_filter.words
    ),
}


def audit_of(task: Task) -> dict[str, Any]:
    """Heading, table and words; empty where nothing was chosen for an audit."""
    audit = next((each for name, each in AUDITS.items() if name in task.kind.protections), None)
    found = audit.report(task) if audit else None
    return (
        {"heading": audit.heading, "table": audit.table(found), "words": audit.words(found)} if audit and found else {}
    )
