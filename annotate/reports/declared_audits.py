"""What the audit of declared labels found, in words and tables: for the admin's page, the command and the dataset card.

The report comes from quality/declared_audits.py, or from a manifest. Nothing is counted here.
"""

from collections.abc import Mapping
from typing import Any

from annotate.reports.numbers import count, estimate
from annotate.reports.tables import LANGUAGE, NUMBER, Column, Table, many, numbered, share, table

NONE_CHOSEN = "Nobody has read these documents to check their labels, so how often they are wrong is not known."


EMPTY = table("", (), ())


def words(audit: Mapping[str, Any]) -> list[str]:
    """Sentences on the audit in all."""
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


_FIGURES = (
    numbered("documents", "documents"),
    Column("audited", "audited", NUMBER, lambda row: f"{count(row['audited'])} of {count(row['chosen'])}"),
    numbered("wrong", "wrong"),
    Column("error", "wrong of all, 95% interval", NUMBER, lambda row: share(row["error"])),
)


def class_table(audit: Mapping[str, Any]) -> Table:
    rows = audit["classes"]
    return table(f"{len(rows)} classes", (Column("class", "declared"), *_FIGURES), rows)


def language_table(audit: Mapping[str, Any]) -> Table:
    rows = audit["languages"]
    return table(many(len(rows), "language"), (*LANGUAGE, *_FIGURES), rows)


def found_table(audit: Mapping[str, Any]) -> Table:
    """Declared against found: a row for each declared class, a column for each answer that somebody found."""
    numbers = {(row["declared"], row["found"]): row["documents"] for row in audit["found"]}
    declared = [row["class"] for row in audit["classes"]]
    others = [row["found"] for row in audit["found"] if row["found"] not in declared]
    labels = [*declared, *dict.fromkeys(others)]

    def column(label: str) -> Column:
        return numbered(f"found {label}", label, lambda row: numbers.get((row, label), 0))

    columns = (Column("declared", "declared", says=lambda row: row), *(column(label) for label in labels))
    return table("Audited documents, by what was declared (rows) and found (columns)", columns, declared)
