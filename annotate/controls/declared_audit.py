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
from annotate.core.estimation.filter_quality import Part
from annotate.core.estimation.filter_quality import share as share_of_parts
from annotate.core.estimation.label_errors import Audit
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
    pair_counts = Counter((declared, unit.label) for declared, unit in judged if unit.stage == stages.LABELLED)
    position = task.labels.index
    return {
        **_figures(by_cell.values()),
        "classes": [
            {"class": label, **_figures(label_audits)} for label, label_audits in by_class.items() if label_audits
        ],
        "languages": [{"language": code, **_figures(label_audits)} for code, label_audits in by_language.items()],
        "cells": [
            {"language": code, "class": label, **_figures([by_cell[code, label]])}
            for code in by_language
            for label in task.labels
            if (code, label) in by_cell
        ],
        "found": [
            {"declared": declared, "found": label, "documents": pair_counts[declared, label]}
            for declared, label in sorted(pair_counts, key=lambda pair: (position(pair[0]), position(pair[1])))
        ],
    }


def _figures(label_audits: Iterable[Audit]) -> dict[str, Any]:
    audits = list(label_audits)
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


NONE_CHOSEN = "Nobody has read these documents to check their labels, so their error rate is not known."


def declared_words(audit: Mapping[str, Any]) -> list[str]:
    """Return sentences that summarize the audit of all documents."""
    sentences = [
        f"{many(audit['documents'], 'document')} came with a label. People labelled a random sample of "
        f"{count(audit['chosen'])} in each language and class without seeing this label. {count(audit['audited'])} "
        "have a final label."
    ]
    if audit["error"]["value"] is not None:
        sentences.append(
            f"{estimate(audit['error'])} of all these labels are wrong, with each language and class weighted by its "
            "documents."
        )
    if unresolved := audit["unresolved"]:
        sentences.append(
            f"{many(unresolved, 'document')} of the audit {'has' if unresolved == 1 else 'have'} no final label, "
            "because people could not decide or have not finished. The intervals are valid whether the declared "
            "labels of these are right or wrong."
        )
    return sentences


_DECLARED = (
    numbered("documents", "documents"),
    Column("audited", "audited", NUMBER, lambda row: f"{count(row['audited'])} of {count(row['chosen'])}"),
    numbered("wrong", "wrong"),
    Column("error", "wrong in total, 95% interval", NUMBER, lambda row: share(row["error"])),
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
    other_labels = [row["found"] for row in audit["found"] if row["found"] not in declared]
    labels = [*declared, *dict.fromkeys(other_labels)]

    def column(label: str) -> Column:
        return numbered(f"found {label}", label, lambda row: numbers.get((row, label), 0))

    columns = (Column("declared", "declared", says=lambda row: row), *(column(label) for label in labels))
    return table("Audited documents by declared class (rows) and final label (columns)", columns, declared)


class AuditOfDeclaredLabels(SampledAudit):
    """Audit of declared labels, in which people label a random share of the documents."""

    name = "audit of declared labels"
    manifest_key = "declared_audit"
    switches = ("audit_share", "audit_least")

    def section(self, task: Task) -> Any:
        return report(task)

    def panel(self, task: Task, results: dict[str, Any] | None) -> Panel:
        heading = "Audit of declared labels"
        if results is None:
            return Panel(heading, data={"declared": None}, empty=NONE_CHOSEN)
        tables = [make_table(results) for make_table in (class_table, language_table, found_table)]
        return Panel(heading, declared_words(results), tables, results, "declared", page="how-to/balanced-sets")


register(AuditOfDeclaredLabels())
