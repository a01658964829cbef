"""The queries, one in each file, in the SQL that all engines share."""

from collections.abc import Iterable
from pathlib import Path

from corpora.core import CorpusError


def sql_of(name: str) -> str:
    return (Path(__file__).parent / f"{name}.sql").read_text(encoding="utf-8")


def check_there(files: Iterable[Path]) -> None:
    """CorpusError if a file of the corpus is gone."""
    if missing := next((file for file in files if not file.exists()), None):
        raise CorpusError(f"The corpus has lost its file {missing}; restore it from a backup.")
