"""verify_lots: the lots of an exported set, drawn again."""

from pathlib import Path
from typing import Any

from annotate.actions.action import Action, Outcome
from annotate.core.draws.committed_draws import PURPOSES
from annotate.core.option import Option
from annotate.goldsets.set_folder import GoldSetError
from annotate.goldsets.verification import verify
from annotate.reports.tables import NOTE, Column, many, numbers, table
from annotate.reports.terminal import as_lines

COLUMNS = (
    Column("lot", "lot"),
    Column("decides", "decides", says=lambda row: PURPOSES[row["lot"]][0]),
    *numbers({"checked": "checked", "differ": "differ"}),
    Column("first", "", NOTE, lambda row: f"The first that differs: {row['first']}." if row["first"] else ""),
)


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


OPTIONS = (
    Option(
        "folder",
        Path,
        required=True,
        argument=True,
        help="a set that export_gold has written with --tell-secret",
    ),
    Option(
        "published",
        several=True,
        in_a_row=True,
        shown="DIGEST",
        help="digests published earlier, of the secret or of the outcomes at the close",
    ),
)


def run(values, progress) -> Outcome:
    found = verify(values["folder"], values["published"] or ())
    said = [as_lines(table("Lots", COLUMNS, found["lots"]))] if found["lots"] else []
    if not values["published"]:
        digests = found["digests"]
        said.append(f"Compare with what was published before: SHA-256 of the secret {digests['secret']}.")
        if fixed := digests["outcomes"]:
            said.append(f"Outcomes, fixed at {fixed['at']}: {fixed['digest']}.")
    return Outcome([*said, verdict(found)], data=found, status=1 if found["differ"] or found["unknown"] else 0)


ACTION = Action(
    "verify_lots",
    "Repeat the random draws of a set whose secret was disclosed: gold answers and their places, audits, checks, "
    "decoys, tests and sides. Exits with status 1 if anything differs.",
    OPTIONS,
    run,
    (GoldSetError,),
    on_files=True,
)
