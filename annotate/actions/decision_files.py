"""An adjudicator's files: the list of what waits, to be filled in, and the decisions in it, row by row.

What becomes of a decision is the matter of adjudicate.py, and of work/adjudication.py.
"""

import csv
import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from annotate.actions.action import ActionError
from annotate.work.judgment_import import Rejects
from corpora.core.records import FORMULA, RecordError, read_id, read_text
from corpora.core.values import is_missing
from corpora.sources.compression import check_file, format_of
from corpora.sources.headers import Columns
from corpora.sources.readers import read_rows
from corpora.sources.text import Fault
from corpora.storage.layout import write_whole

# asked: the language that the question is about, where an item is asked about in several.
# sure: that labels are meant of which the task asks whether they are.
COLUMNS = ("id", "asked", "label", "reason", "comment", "sure")
AS_TEXT = "'"  # before what a spreadsheet would else run as a formula
_YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": False}
NEEDED = ("id", "label", "reason")


@dataclass(frozen=True, slots=True)
class Decision:
    """A row of a file; without a label, one that is not decided yet."""

    line: int
    key: str
    asked: str
    label: str
    reason: str
    comment: str
    is_sure: bool


def read_decisions(
    path: Path, columns: Mapping[str, str], format: str | None, rejects: Rejects, known: Collection[str]
) -> Iterator[Decision]:
    """The rows of a file; those that cannot be read are put with the rejects. known: the task's labels. CorpusError
    where the file cannot be read."""
    check_file(path, format)
    wanted = Columns({column: column for column in COLUMNS} | dict(columns), NEEDED)
    for line, raw in read_rows(path, format or format_of(path) or "", wanted):
        if isinstance(raw, Fault):
            rejects[line] = raw.reason
            continue
        try:
            said = {column: read_text(column, raw.get(column), known) for column in ("asked", "label")}
            said |= {column: _words(raw, column) for column in ("reason", "comment")}
            yield Decision(line, _unmarked(read_id(raw.get("id"))), **said, is_sure=_yes(raw, "sure"))
        except RecordError as error:
            rejects[line] = str(error)


def _unmarked(key: str) -> str:
    return key[1:] if key.startswith(tuple(f"{AS_TEXT}{mark}" for mark in FORMULA)) else key


def _words(raw: Mapping[str, object], column: str) -> str:
    value = raw.get(column)
    if is_missing(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError(f"The {column} is neither a string nor a whole number.")
    return str(value).strip()


def _yes(raw: Mapping[str, object], column: str) -> bool:
    value = raw.get(column)
    if is_missing(value):
        return False
    word = str(value).strip().casefold()
    if word not in _YES_OR_NO:
        raise RecordError(f"The column {column} is {word[:20]!r}; write yes or no.")
    return _YES_OR_NO[word]


Rows = Sequence[Mapping[str, str]]


def write_waiting(rows: Rows, heads: Sequence[str], path: Path) -> None:
    """What waits, as a file whose label and reason are to be filled in. ActionError where it cannot be written, or is
    there already: somebody may have filled it in.
    """
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        raise ActionError(f"{path} cannot be written; give it a name that ends in {', '.join(WRITERS)}.")
    try:
        if path.exists():
            raise ActionError(f"{path} is there already, and there may be decisions in it; name another file.")
        write_whole(path, write(rows, heads))
    except OSError as error:
        raise ActionError(f"{path} cannot be written: {error.strerror}.") from error


def _jsonl(rows: Rows, heads: Sequence[str]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _csv(rows: Rows, heads: Sequence[str]) -> str:
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(heads)
    table.writerows(map(_in_lines, rows))
    return written.getvalue()


def _tsv(rows: Rows, heads: Sequence[str]) -> str:
    return "".join("\t".join(cells) + "\n" for cells in (heads, *map(_in_lines, rows)))


def _in_lines(row: Mapping[str, str]) -> list[str]:
    """The cells of a row, each in one line and without a tab, and none that a spreadsheet would run as a formula."""
    cells = (" ".join(cell.split()) for cell in row.values())
    return [f"{AS_TEXT}{cell}" if cell.startswith(FORMULA) else cell for cell in cells]


WRITERS: Mapping[str, Callable[[Rows, Sequence[str]], str]] = {".csv": _csv, ".tsv": _tsv, ".jsonl": _jsonl}
