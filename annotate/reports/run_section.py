"""The section of an evaluation report on several training runs of one system."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from annotate.reports.numbers import NOT_MEASURED, coefficient, percent
from annotate.reports.slice_tables import MEASURES, Section, figure
from annotate.reports.tables import NUMBER, Cell, Column, many, table


def run_section(runs: Mapping[str, Any]) -> Section:
    """Return a table of the runs with their headline figures, and one of the means over the runs.

    runs: the entry `runs` of a report.
    """
    heads = [row for row in runs["rows"] if row["is_head"]]
    rows = [
        {
            "name": f"{run['name']} (best on dev)" if run["name"] == runs["chosen"] else run["name"],
            "dev": run["dev"],
            **{row["name"]: row["values"][index] for row in heads},
        }
        for index, run in enumerate(runs["runs"])
    ]
    first, on_dev = (heads[0]["measure"], f"{heads[0]['name']} on dev") if heads else ("", "dev")
    columns = [
        Column("name", "run"),
        *([Column("dev", on_dev, NUMBER, partial(_plain, first, "dev"))] if runs["chosen"] else []),
        *(Column(row["name"], row["name"], NUMBER, partial(_plain, row["measure"], row["name"])) for row in heads),
    ]
    means = [
        Column("name", "measure"),
        Column("value", "mean", NUMBER, figure),
        Column("deviation", "standard deviation", NUMBER, lambda row: _plain(row["measure"], "deviation", row)),
    ]
    words = f"The interval of a mean is Student’s, over {many(len(rows), 'run')}: it covers the choice of the run, not "
    words += "that of the items. The other sections are on "
    words += f"{runs['chosen']}, which is best on dev." if runs["chosen"] else "the first run."
    return Section("runs", "Runs", (words,), (table("Runs", columns, rows), table("Means", means, heads)))


def _plain(measure: str, key: str, row: Mapping[str, Any]) -> Cell:
    """Return the cell of a number without an interval."""
    value = row[key]
    if value is None:
        return Cell(NOT_MEASURED, None)
    return Cell(percent(value) if MEASURES[measure].is_share else coefficient({"value": value, "low": None}), value)
