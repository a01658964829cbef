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
    Option(
        "published",
        several=True,
        in_a_row=True,
        shown="DIGEST",
        help="digests that were published before: of the secret, or of the outcomes when the task was closed",
    ),
)


def run(values, progress) -> Outcome:
    found = verify(values["folder"], values["published"] or ())
    tables = [as_lines(told.lots_table(found["lots"]))] if found["lots"] else []
    digests = [] if values["published"] else told.digests(found)
    return Outcome(
        [*tables, *digests, told.verdict(found)], data=found, status=1 if found["differ"] or found["unknown"] else 0
    )


ACTION = Action(
    "verify_lots",
    "Draw again by the told secret what lots decided about people or trust in an exported set: gold answers and their "
    "places, audits, checks, decoys, tests, sides. Ends with status 1 where something is not as the lots have it.",
    OPTIONS,
    run,
    (GoldSetError,),
    on_files=True,
)
