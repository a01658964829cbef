"""What people chose with and without suggestions, as a table: for the card. quality/with_suggestions.py counts it."""

from typing import Any

from annotate.reports.numbers import NOT_MEASURED, percent
from annotate.reports.tables import NUMBER, Cell, Column, Table, numbered, table

ALL = "all"


def suggestion_table(found: dict[str, Any]) -> Table:
    """Two rows for each person and for all: where suggestions were shown, and where none were."""
    rows = [
        {"annotator": of.get("annotator", ALL), "arm": arm, **of[arm]}
        for of in (found, *found["people"])
        for arm in ("shown", "blind")
        if of[arm]["answers"]
    ]
    first = found["first"]
    columns = (
        Column("annotator", "annotator"),
        Column("arm", "suggestions", says=lambda row: {"shown": "shown", "blind": "not shown"}[row["arm"]]),
        numbered("answers", "answers"),
        _decimal("concepts", "labels an answer", 1),
        _share("taken", f"of the first {first}, chosen"),
        _share("among", f"of the chosen, among the first {first}"),
        Column("exactly", f"just the first {first}", NUMBER, _exactly),
        _decimal("f1", "F1 with others", 2),
    )
    return table("Suggestions", columns, rows)


def _exactly(row: dict[str, Any]) -> Cell:
    return Cell(f"{row['exactly']:,} of {row['answers']:,}", row["exactly"])


def _share(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: Cell(percent(row[key]), row[key]))


def _decimal(key: str, heading: str, places: int) -> Column:
    def says(row: dict[str, Any]) -> Cell:
        value = row[key]
        return Cell(NOT_MEASURED if value is None else f"{value:.{places}f}", value)

    return Column(key, heading, NUMBER, says)
