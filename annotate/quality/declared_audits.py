"""How often the labels that came with documents are wrong, by what people found in those chosen for the audit.

Documents are chosen by lot in each language and class when a task is opened (audits.choose_audits), and people label
them as if they had none. Several people are asked of each, so that one who slips does not decide.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from annotate.core import stages
from annotate.core.estimation.detector_error import Audit
from annotate.core.estimation.filter_quality import Part, share
from annotate.models import Task
from annotate.quality.audits import audits_of


def report(task: Task) -> dict[str, Any] | None:
    """What the audit found, in JSON's terms; None if no document was chosen for it.

    documents: how many labels are declared; chosen: of these, for people; audited: labelled to the end; unresolved:
    discarded, or not done yet; error: the share of wrong labels among the documents, those of each language and class
    by their number, with its 95% interval (core/filter_audit.share). The same of each row of classes, languages, and
    cells, which are of a class in a language. found: how many of the audited of a declared class people found to be of
    another, or of the same.
    """
    by_cell = audits_of(task, task.units.exclude(agreed_label=""))
    if not any(audit.resolved + audit.unresolved for audit in by_cell.values()):
        return None
    languages = sorted({language for language, _ in by_cell})
    classes = [label for label in task.labels if any(label == declared for _, declared in by_cell)]
    return {
        **_told(by_cell.values()),
        "classes": [
            {"class": label, **_told(audit for (_, declared), audit in by_cell.items() if declared == label)}
            for label in classes
        ],
        "languages": [
            {"language": code, **_told(audit for (language, _), audit in by_cell.items() if language == code)}
            for code in languages
        ],
        "cells": [
            {"language": code, "class": label, **_told([by_cell[code, label]])}
            for code in languages
            for label in classes
            if (code, label) in by_cell
        ],
        "found": [
            {"declared": declared, "found": label, "documents": number}
            for (declared, label), number in sorted(_found(task).items(), key=lambda row: _place(task, row[0]))
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
        "error": share(*(Part(each.posts, each.resolved, each.wrong, each.unresolved) for each in audits)).as_dict(),
    }


def _found(task: Task) -> Counter[tuple[str, str]]:
    chosen = task.units.filter(audited=True).select_related("copy_of")
    judged = ((unit, unit.copy_of or unit) for unit in chosen)
    return Counter((unit.agreed_label, by.label) for unit, by in judged if by.stage == stages.LABELLED)


def _place(task: Task, pair: tuple[str, str]) -> tuple[int, int]:
    declared, found = pair
    return task.labels.index(declared), task.labels.index(found)
