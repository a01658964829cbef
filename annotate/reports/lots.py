"""What came of drawing the lots of a set again, as goldsets/verifying.py tells it: a table, and a sentence."""

from collections.abc import Iterable
from typing import Any

from annotate.core.lots import PURPOSES
from annotate.reports.tables import NOTE, Column, Table, many, numbers, table


def lots_table(rows: Iterable[dict[str, Any]]) -> Table:
    heads = (
        Column("lot", "lot"),
        Column("decides", "decides", says=lambda row: PURPOSES[row["lot"]][0]),
        *numbers({"checked": "checked", "differ": "differ"}),
        Column("first", "", NOTE, lambda row: f"The first that differs: {row['first']}." if row["first"] else ""),
    )
    return table("Lots", heads, rows)


def digests(found: dict[str, Any]) -> list[str]:
    """What is to be compared with what was published before."""
    told = found["digests"]
    said = [f"Compare with what was published before: SHA-256 of the secret {told['secret']}."]
    if fixed := told["outcomes"]:
        said.append(f"Outcomes, fixed at {fixed['at']}: {fixed['digest']}.")
    return said


def verdict(found: dict[str, Any]) -> str:
    checked = sum(row["checked"] for row in found["lots"])
    if found["unknown"]:
        return f"No: the set does not have the published digest {found['unknown'][0]}, so it was changed since."
    if not found["secret_fits"]:
        return "No: the secret is not that whose SHA-256 the manifest has, so nothing can be drawn by it."
    if not checked:
        return f"No lot decided anything in {found['task']}."
    if found["differ"]:
        return f"No: {found['differ']:,} of {many(checked, 'decision')} are not what the secret's lots say."
    return f"Yes: all of {many(checked, 'decision')} are what the secret's lots say."
