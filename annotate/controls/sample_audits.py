"""Audits of two things: the labels that came with documents, and the pairs that a filter kept or dropped.

Annotators label random samples without seeing the label or the filter's decision. The estimates are computed in
core/estimation/filter_quality.py.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from annotate.controls.audit_report import audits_of
from annotate.controls.audited_units import Audit as SampledAudit
from annotate.core import stages
from annotate.core.estimation.filter_quality import Part
from annotate.core.estimation.filter_quality import audit as filter_estimates
from annotate.core.estimation.filter_quality import share as share_of_parts
from annotate.core.estimation.label_errors import Audit
from annotate.kinds.control import Panel, QualityControl, register
from annotate.models import Task
from annotate.reports.numbers import count, estimate
from annotate.reports.tables import LANGUAGE, NUMBER, Cell, Column, Table, many, numbered, share, table
from corpora.draws.part_draws import DRAWN, DROPPED, FILTER, FRAME, IDS, KEPT, SIDES
from corpora.storage.layout import manifest_of
from corpora.threads.scorers import filter_digest

# --- Audit of declared labels
#
# The audit estimates how many of the labels that came with documents are wrong. Documents are drawn at random from each
# language and class (audited_units.choose_audits). Several annotators label each document, so that one annotator's
# mistake doesn't count as a wrong label.


def declared_report(task: Task) -> dict[str, Any] | None:
    """Return the results of the audit, as JSON data; None if no document was drawn.

    documents: number of documents with a declared label.
    chosen: number of drawn documents.
    audited: number of drawn documents that have a final label.
    unresolved: number of drawn documents that were discarded or are not finished.
    wrong: number of audited documents whose declared label is wrong.
    error: estimated share of wrong labels, with its 95% interval (filter_quality.share). Each language and class is
        weighted by its number of documents.
    classes, languages, cells: the same figures by class (`classes`), language (`languages`) and both (`cells`).
    found: number of audited documents by declared class and final label.
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
            *(Part(*map(int, (audit.posts, audit.resolved, audit.wrong, audit.unresolved))) for audit in audits)
        ).as_dict(),
    }


NONE_CHOSEN = "No documents were drawn to check the declared labels, so their error rate is not known."


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
            "because people could not decide or have not finished. The intervals are valid whether or not their "
            "declared labels are right."
        )
    return sentences


_AUDIT_COLUMNS = (
    numbered("documents", "documents"),
    Column("audited", "audited", NUMBER, lambda row: f"{count(row['audited'])} of {count(row['chosen'])}"),
    numbered("wrong", "wrong"),
    Column("error", "wrong in total, 95% interval", NUMBER, lambda row: share(row["error"])),
)


def class_table(audit: Mapping[str, Any]) -> Table:
    rows = audit["classes"]
    return table(f"{len(rows)} classes", (Column("class", "declared"), *_AUDIT_COLUMNS), rows)


def language_table(audit: Mapping[str, Any]) -> Table:
    rows = audit["languages"]
    return table(many(len(rows), "language"), (*LANGUAGE, *_AUDIT_COLUMNS), rows)


def found_table(audit: Mapping[str, Any]) -> Table:
    """Return a cross table with a row for each declared class and a column for each final label."""
    numbers = {(row["declared"], row["found"]): row["documents"] for row in audit["found"]}
    declared = [row["class"] for row in audit["classes"]]
    other_labels = [row["found"] for row in audit["found"] if row["found"] not in declared]
    labels = [*declared, *dict.fromkeys(other_labels)]

    def column(label: str) -> Column:
        return numbered(f"found {label}", label, lambda row: numbers.get((row, label), 0))

    columns = (Column("declared", "declared", says=lambda row: row), *(column(label) for label in labels))
    return table("Audited documents by declared class (rows) and final label (columns)", columns, declared)


class AuditOfDeclaredLabels(SampledAudit):
    """Audit declared labels: annotators label a random share of the documents again."""

    name = "audit of declared labels"
    manifest_key = "declared_audit"
    switches = ("audit_share", "audit_least")
    section = staticmethod(declared_report)

    def panel(self, task: Task, results: dict[str, Any] | None) -> Panel:
        heading = "Audit of declared labels"
        if results is None:
            return Panel(heading, data={"declared": None}, empty=NONE_CHOSEN)
        tables = [make_table(results) for make_table in (class_table, language_table, found_table)]
        return Panel(heading, declared_words(results), tables, results, "declared", page="how-to/balanced-sets")


register(AuditOfDeclaredLabels())


# --- Audit of a filter, which estimates its precision and recall
#
# Annotators label a random sample of the pairs that the filter kept, and another of the pairs that it dropped. The two
# samples are mixed, so that annotators don't know which pairs were kept (corpora/draws/part_draws.py).


def filter_report(task: Task) -> dict[str, Any] | None:
    """Return the results of the audit, as JSON data; None if the task does not audit a filter.

    meant: label of the pairs that the filter should drop.
    is_current: whether the corpus still has the scores and thresholds that it had when the pairs were drawn.
    kept, dropped: figures for the pairs that the filter kept or dropped.
    recall: estimated share of the `meant` pairs that the filter dropped, with its interval.
    languages: the same figures by language; empty if there is only one language.

    The figures for kept and for dropped pairs are:

    pairs: number of pairs.
    drawn: number of drawn pairs.
    read: number of drawn pairs that have a label.
    found: number of drawn pairs whose label is `meant`.
    unresolved: number of drawn pairs that have no label.
    share: estimated share of all pairs that are `meant`, with its interval.
    """
    drawn = {draw.language: draw.parameters for draw in task.draws.order_by("language") if FILTER in draw.parameters}
    if not drawn:
        return None
    frame, first_draw = next(iter(drawn.values()))[FRAME], task.draw
    counts = _count_labelled(task, {key for parameters in drawn.values() for key in parameters[IDS][DROPPED]})

    def figures(codes: Collection[str]) -> dict[str, Any]:
        rows = {
            part: {
                "pairs": sum(frame[code][part] for code in codes),
                "drawn": sum(drawn[code][DRAWN][part] for code in codes if code in drawn),
                "read": sum(counts[code, part, is_meant] for code in codes for is_meant in (True, False)),
                "found": sum(counts[code, part, True] for code in codes),
            }
            for part in SIDES
        }
        # If a drawn pair's answer was already known, the pair has no unit. Count it as a pair without a label.
        parts = {
            part: Part(row["pairs"], row["read"], row["found"], row["drawn"] - row["read"])
            for part, row in rows.items()
        }
        results = filter_estimates(parts[KEPT], parts[DROPPED])
        shares = {KEPT: results.retained.as_dict(), DROPPED: results.dropped.as_dict()}
        estimates = {part: {"unresolved": parts[part].unresolved, "share": share} for part, share in shares.items()}
        return {**{part: rows[part] | estimates[part] for part in shares}, "recall": results.recall.as_dict()}

    return {
        "meant": task.kind.filtered,
        "is_current": first_draw.parameters[FILTER] == filter_digest(manifest_of(first_draw.corpus.name)),
        **figures(frame),
        "languages": [{"language": code, **figures([code])} for code in drawn] if len(frame) > 1 else [],
    }


def _count_labelled(task: Task, dropped: set[str]) -> Counter[tuple[str, str, bool]]:
    """Count the labelled pairs by language, part (kept or dropped), and whether the filter should drop them.

    A copy counts with its original's label.

    dropped: ids of the drawn pairs that the filter dropped.
    """
    counts: Counter[tuple[str, str, bool]] = Counter()
    for unit in task.units.exported().select_related("item", "copy_of"):
        judged = unit.copy_of or unit
        if judged.stage in stages.WITH_LABEL:
            part = DROPPED if unit.item.key in dropped else KEPT
            counts[unit.item.language, part, judged.label == task.kind.filtered] += 1
    return counts


NOT_DRAWN = (
    "The task was not drawn from the pairs that a filter kept and dropped, so there are no results for a filter."
)
OLD_FILTER = (
    "Scores were imported after the draw. These results describe the filter at the time of the draw. Now it keeps and "
    "drops different pairs."
)


def filter_words(audit: Mapping[str, Any]) -> list[str]:
    """Return sentences that summarize the audit of all languages."""
    kept, dropped, name = audit["kept"], audit["dropped"], audit["meant"]
    sentences = [] if audit["is_current"] else [OLD_FILTER]
    sentences += [
        f"The filter kept {many(kept['pairs'], 'pair')} and dropped {count(dropped['pairs'])}. Of these, "
        f"{_drawn_phrase(kept)} kept and {_drawn_phrase(dropped)} dropped pairs were drawn at random and mixed, so "
        f"that readers could not tell which are which. {count(kept['read'])} and {count(dropped['read'])} of them "
        "have a label.",
        *_filter_shares(kept, dropped, name),
        _filter_recall(audit),
    ]
    if unresolved := kept["unresolved"] + dropped["unresolved"]:
        sentences.append(
            f"{many(unresolved, 'pair')} of the audit {'has' if unresolved == 1 else 'have'} no label, because people "
            f"could not decide or have not finished. The intervals are valid whether or not these are {name}."
        )
    return [
        *sentences,
        f"A pair counts as {name} if most of its readers chose this label. If most are wrong, so are these figures.",
    ]


def _drawn_phrase(part: Mapping[str, Any]) -> str:
    return f"all {count(part['drawn'])}" if part["drawn"] == part["pairs"] else count(part["drawn"])


def _filter_shares(kept: Mapping[str, Any], dropped: Mapping[str, Any], name: str) -> Iterator[str]:
    share = kept["share"]
    if share["value"] is not None and not kept["found"] and share["high"]:
        yield (
            f"None of the {count(kept['read'])} kept pairs with a label is {name}, so at most {share['high']:.2%} of "
            "all kept pairs are."
        )
    elif share["value"] is not None:
        yield f"{estimate(share)} of the kept pairs are {name}{_certainty(share)}."
    share = dropped["share"]
    if share["value"] is not None:
        yield f"{estimate(share)} of the dropped pairs are {name}{_certainty(share)}. This is the filter’s precision."


def _filter_recall(audit: Mapping[str, Any]) -> str:
    recall, name = audit["recall"], audit["meant"]
    if recall["value"] is None:
        nothing = all(audit[part]["share"]["value"] is not None for part in ("kept", "dropped"))
        statement = f"is not known, because {f'no {name} pairs were found' if nothing else 'too few pairs were read'}"
    elif recall["low"] is None:
        statement = f"can have any value, because too few {name} pairs were found"
    elif recall["value"] == 1 and recall["low"] < 1:
        statement = f"is at least {recall['low']:.1%}, because no {name} pairs were found among the kept pairs"
    else:
        statement = f"is {estimate(recall)}{_certainty(recall)}"
    return f"The filter’s recall, the share of all {name} pairs that it dropped, {statement}."


def _certainty(share: Mapping[str, Any]) -> str:
    return ", which is certain, because all of them were read" if share["low"] == share["high"] else ""


def figures_table(audit: Mapping[str, Any]) -> Table:
    """Return a table with a row for all pairs, followed by a row for each language with drawn pairs."""

    def columns_of(part: str, heading: str) -> tuple[Column, Column]:
        def labelled(row: Mapping[str, Any]) -> str:
            return f"{count(row[part]['read'])} of {count(row[part]['pairs'])}"

        share_column = Column(f"{part}_share", heading, NUMBER, lambda row: share(row[part]["share"]))
        return Column(f"{part}_read", f"{part}: read", NUMBER, labelled), share_column

    rows, name = [{"language": "", **audit}, *audit["languages"]], audit["meant"]
    columns = (
        Column("language", "language", says=lambda row: Cell(row["language"] or "all")),
        *columns_of("kept", f"{name} among kept, 95% interval"),
        *columns_of("dropped", f"{name} among dropped (precision)"),
        Column("recall", "recall, 95% interval", NUMBER, lambda row: share(row["recall"])),
    )
    return table("Precision and recall of the filter", columns, rows)


class AuditOfFilter(QualityControl):
    """Audit a filter: annotators label random samples of the pairs that it kept and of the pairs that it dropped."""

    name = "audit of a filter"
    manifest_key = "filter_audit"
    look_at = "audit"
    section = staticmethod(filter_report)

    def panel(self, task: Task, results: dict[str, Any] | None) -> Panel:
        if results is None:
            return Panel("Audit of the filter", data={"filter": None}, empty=NOT_DRAWN)
        sentences, tables = filter_words(results), [figures_table(results)]
        return Panel("Audit of the filter", sentences, tables, results, "filter", page="how-to/pairs")


register(AuditOfFilter())
