"""Audit of declared labels, which are labels that came with documents.

It estimates how many of these labels are wrong. For this, documents are drawn at random from each language and class
(agreement_audit.choose_audits), and people label them without seeing the declared label. Several people label each
document, so that a single person's mistake does not decide the result.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from annotate.controls.agreement_audit import Audit as SampledAudit
from annotate.controls.audit_report import audits_of
from annotate.core import stages
from annotate.core.estimation.detector_error import Audit
from annotate.core.estimation.filter_quality import Part
from annotate.core.estimation.filter_quality import share as share_of_parts
from annotate.kinds.control import Panel, register
from annotate.models import Task
from annotate.reports.numbers import count, estimate
from annotate.reports.tables import LANGUAGE, NUMBER, Column, Table, many, numbered, share, table


def report(task: Task) -> dict[str, Any] | None:
    """Return the results of the audit, as JSON data; None if no document was drawn.

    documents: number of documents with a declared label.
    chosen: number of drawn documents.
    audited: number of drawn documents that have a final label.
    unresolved: number of drawn documents that were discarded or are not finished.
    wrong: number of audited documents whose declared label is wrong.
    error: estimated share of wrong labels, with its 95% interval (filter_quality.share). Each language and class is
        weighted by its number of documents.
    classes, languages, cells: the same figures for each class, each language, and each class in each language.
    found: number of audited documents with each combination of declared class and final label.
    """
    by_cell = audits_of(task, task.units.exclude(agreed_label=""))
    if not any(audit.resolved + audit.unresolved for audit in by_cell.values()):
        return None
    by_language = {
        code: [audit for (language, _), audit in by_cell.items() if language == code]
        for code in sorted({language for language, _ in by_cell})
    }
    by_class = {
        label: [audit for (_, declared), audit in by_cell.items() if declared == label] for label in task.labels
    }
    chosen = task.units.filter(audited=True).select_related("copy_of")
    judged = ((unit.agreed_label, unit.copy_of or unit) for unit in chosen)
    found = Counter((declared, unit.label) for declared, unit in judged if unit.stage == stages.LABELLED)
    place = task.labels.index
    return {
        **_told(by_cell.values()),
        "classes": [{"class": label, **_told(of)} for label, of in by_class.items() if of],
        "languages": [{"language": code, **_told(of)} for code, of in by_language.items()],
        "cells": [
            {"language": code, "class": label, **_told([by_cell[code, label]])}
            for code in by_language
            for label in task.labels
            if (code, label) in by_cell
        ],
        "found": [
            {"declared": declared, "found": label, "documents": found[declared, label]}
            for declared, label in sorted(found, key=lambda pair: (place(pair[0]), place(pair[1])))
        ],
    }


def _told(given: Iterable[Audit]) -> dict[str, Any]:
    audits = list(given)
    resolved, unresolved = sum(audit.resolved for audit in audits), sum(audit.unresolved for audit in audits)
    return {
        "documents": sum(audit.posts for audit in audits),
        "chosen": resolved + unresolved,
        "audited": resolved,
        "unresolved": unresolved,
        "wrong": sum(audit.wrong for audit in audits),
        "error": share_of_parts(
            *(Part(*map(int, (each.posts, each.resolved, each.wrong, each.unresolved))) for each in audits)
        ).as_dict(),
    }


NONE_CHOSEN = "Nobody has read these documents to check their labels, so how often they are wrong is not known."


def declared_words(audit: Mapping[str, Any]) -> list[str]:
    """Return sentences that summarize the audit of all documents."""
    said = [
        f"{many(audit['documents'], 'document')} came with a label. {count(audit['chosen'])} of them were chosen by "
        f"lot, in each language and class, for people who were not told their labels; {count(audit['audited'])} have "
        "been labelled to the end."
    ]
    if audit["error"]["value"] is not None:
        said.append(
            f"Of all these labels {estimate(audit['error'])} are wrong, each language and class weighted by its "
            "documents."
        )
    if unresolved := audit["unresolved"]:
        said.append(
            f"{many(unresolved, 'document')} of the audit {'is' if unresolved == 1 else 'are'} not done yet, or left "
            "out since people could not tell; the intervals hold whether their labels are right or wrong."
        )
    return said


_DECLARED = (
    numbered("documents", "documents"),
    Column("audited", "audited", NUMBER, lambda row: f"{count(row['audited'])} of {count(row['chosen'])}"),
    numbered("wrong", "wrong"),
    Column("error", "wrong of all, 95% interval", NUMBER, lambda row: share(row["error"])),
)


def class_table(audit: Mapping[str, Any]) -> Table:
    rows = audit["classes"]
    return table(f"{len(rows)} classes", (Column("class", "declared"), *_DECLARED), rows)


def language_table(audit: Mapping[str, Any]) -> Table:
    rows = audit["languages"]
    return table(many(len(rows), "language"), (*LANGUAGE, *_DECLARED), rows)


def found_table(audit: Mapping[str, Any]) -> Table:
    """Return a cross table in which rows are declared classes and columns are final labels."""
    numbers = {(row["declared"], row["found"]): row["documents"] for row in audit["found"]}
    declared = [row["class"] for row in audit["classes"]]
    others = [row["found"] for row in audit["found"] if row["found"] not in declared]
    labels = [*declared, *dict.fromkeys(others)]

    def column(label: str) -> Column:
        return numbered(f"found {label}", label, lambda row: numbers.get((row, label), 0))

    columns = (Column("declared", "declared", says=lambda row: row), *(column(label) for label in labels))
    return table("Audited documents, by what was declared (rows) and found (columns)", columns, declared)


class AuditOfDeclaredLabels(SampledAudit):
    """Audit of declared labels, in which people label a random share of the documents."""

    name = "audit of declared labels"
    manifest_key = "declared_audit"
    switches = ("audit_share", "audit_least")

    def section(self, task: Task) -> Any:
        return report(task)

    def panel(self, task: Task, found: dict[str, Any] | None) -> Panel:
        heading = "The audit of declared labels"
        if found is None:
            return Panel(heading, data={"declared": None}, empty=NONE_CHOSEN)
        tables = [made(found) for made in (class_table, language_table, found_table)]
        return Panel(heading, declared_words(found), tables, found, "declared", page="how-to/balanced-sets")


register(AuditOfDeclaredLabels())
