"""The queries, one in each file, in the SQL that all engines share.

Where a query has the columns of all voters, it names `every_voter`.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from corpora.core import CorpusError
from corpora.core.voters import VOTERS


def sql_of(name: str) -> str:
    text = (Path(__file__).parent / f"{name}.sql").read_text(encoding="utf-8")
    text = text.replace("majority_of_voters", _majority())
    return re.sub(r"(\w+\.)?every_voter", lambda found: ", ".join(f"{found[1] or ''}{name}" for name in VOTERS), text)


def _majority() -> str:
    """The language that more than half of the voters name first, else und."""
    votes = {name: " + ".join(f"CAST({name} = {other} AS INT)" for other in VOTERS) for name in VOTERS}
    cases = " ".join(f"WHEN 2 * ({each}) > {len(VOTERS)} THEN {name}" for name, each in votes.items())
    return f"CASE {cases} ELSE 'und' END"


def check_there(files: Iterable[Path]) -> None:
    """CorpusError if a file of the corpus is gone."""
    if missing := next((file for file in files if not file.exists()), None):
        raise CorpusError(f"The corpus has lost its file {missing}; restore it from a backup.")
