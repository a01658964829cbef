"""verify_lots: the lots of an exported set, drawn again."""

from pathlib import Path

from annotate.actions.action import Action, Outcome
from annotate.core.option import Option
from annotate.goldsets.manifest import GoldSetError
from annotate.goldsets.verifying import verify
from annotate.reports import lots as told
from annotate.reports.terminal import as_lines

OPTIONS = (
    Option(
        "folder",
        Path,
        required=True,
        argument=True,
        help="a set that export_gold has written with --tell-secret",
    ),
)


def run(values, progress) -> Outcome:
    found = verify(values["folder"])
    tables = [as_lines(told.lots_table(found["lots"]))] if found["lots"] else []
    return Outcome([*tables, told.verdict(found)], data=found, status=1 if found["differ"] else 0)


ACTION = Action(
    "verify_lots",
    "Draw again by the told secret what lots decided about people or trust in an exported set: gold answers and their "
    "places, audits, checks, decoys, tests, sides. Ends with status 1 where something is not as the lots have it.",
    OPTIONS,
    run,
    (GoldSetError,),
    on_files=True,
)
