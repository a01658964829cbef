"""Limits on the number of rejected rows in a file, and errors about such rows.

A file that loses many rows is refused, because users could overlook the loss, and the remaining rows would not be a
representative sample.
"""

import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from corpora.core import CorpusError, listed
from corpora.sources.compression import Progress, damage_explained
from corpora.sources.text import MAX_LINE, NOT_UTF8, NUL, Fault, lines_of
from corpora.sources.text_format import UTF_8, encoding_of
from corpora.storage.layout import name_of

REJECTED = 3  # the exit status if rows were rejected
MOST = 0.05  # the share of a file's rows that may be rejected by default
HOPELESS = 100_000  # After this many rejected rows, reading may stop early.


class TooManyRejected(CorpusError):
    """The error for a file from which nothing was imported, because too many of its rows were rejected."""

    status = REJECTED


def too_many(count: int, rows: int, max_share: float) -> bool:
    """Return whether the share of rejected rows exceeds `max_share`.

    count: the number of rejected rows
    rows: the number of all rows
    """
    return count > max_share * rows


@dataclass
class Rejected:
    """The rejected rows of a file.

    listed: the file that lists the rejected rows
    count: the number of rejected rows
    rows: the number of all rows
    first: the line of the first rejected row, and the reason
    """

    path: Path
    format: str
    listed: Path
    count: int = 0
    rows: int = 0
    first: tuple[int, str] = (0, "")

    def check_hopeless(self, max_share: float) -> None:
        """Stop reading if many of the rows that were read, and most of them, were rejected.

        Without this check, a single unclosed quote could cost an hour of reading and a list of millions of rejected
        rows.

        Raise TooManyRejected if the limits are exceeded.
        """
        if self.count < HOPELESS or not too_many(self.count, self.rows, max(max_share, 0.5)):
            return
        line, reason = self.first
        raise TooManyRejected(
            f"Nothing was imported from {self.path}, because {self.count:,} of the first {self.rows:,} rows were "
            f"rejected. The other rows were not read. First rejected row: line {line:,}: {reason} Fix the file, or "
            "import only the valid rows with --max-rejects 100%."
        )

    def check(self, max_share: float) -> None:
        """Check the number of rejected rows at the end of a file.

        Raise TooManyRejected if their share exceeds `max_share`.
        """
        if not too_many(self.count, self.rows, max_share):
            return
        line, reason = self.first
        verb = "was" if self.count == 1 else "were"
        raise TooManyRejected(
            f"Nothing was imported from {self.path}, because {self.count:,} of its {self.rows:,} rows {verb} rejected, "
            f"which exceeds --max-rejects {max_share:.4g}. First rejected row: line {line:,}: {reason} "
            f"{encoding_hint(self.path, self.format)}All rejected rows are listed in {self.listed}. Fix the file and "
            "run the command again, or import only the valid rows with a higher --max-rejects."
        )

    def nothing_accepted(self) -> CorpusError:
        """Return the error for a file none of whose rows were accepted."""
        if not self.count:
            return no_rows(self.path)
        line, reason = self.first
        rejected = f"all of its {self.count:,} rows were" if self.count > 1 else "its only row was"
        hint = "Map the columns with --column. " if reason.endswith("is missing.") else ""
        return TooManyRejected(
            f"Nothing was imported from {self.path}, because {rejected} rejected. First rejected row: line {line:,}: "
            f"{reason} {hint}{encoding_hint(self.path, self.format)}All rejected rows are listed in {self.listed}."
        )


@dataclass
class RejectLog(Rejected):
    """The rejected rows of a file that is being read. Each is written to `file` as a line of JSON."""

    file: TextIO = field(kw_only=True)

    def add(self, line: int, reason: str) -> None:
        self.count += 1
        if self.count == 1:
            self.first = (line, reason)
        entry = {"file": name_of(self.path), "line": line, "reason": reason}
        self.file.write(json.dumps(entry, ensure_ascii=False) + "\n")


# --- Files that are imported completely or not at all.


def no_rows(path: Path) -> CorpusError:
    return CorpusError(f"{path} contains no rows.")


def faulty(path: Path, format: str, line: int, reason: str, count: int = 1) -> CorpusError:
    """Return the error for a file that has faulty rows.

    line, reason: the line of the first faulty row, and what is wrong with it
    count: the number of faulty rows
    """
    total = f"This is the first of {count:,} invalid rows. " if count > 1 else ""
    hint = encoding_hint(path, format)
    return CorpusError(f"{path}, line {line:,}: {reason} {total}{hint}Nothing was imported from the file.")


def text_lines(path: Path, format: str, progress: Progress | None = None) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is not blank.

    Raise CorpusError if a line is too long, is not UTF-8 or contains a NUL character.
    """
    with damage_explained(path, format):
        for number, line in lines_of(path, MAX_LINE, progress):
            if isinstance(line, Fault):
                raise faulty(path, format, number, line.reason)
            if b"\0" in line:
                raise faulty(path, format, number, NUL)
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise faulty(path, format, number, NOT_UTF8) from None
            if text.strip():
                yield number, text.rstrip("\r\n")


def repeated(path: Path, repeats: Iterable[tuple[str, int, int]], total: int) -> CorpusError:
    """Return the error for a file in which ids are repeated.

    repeats: the first repeats, as (id, line, line of the first occurrence) tuples
    total: the number of repeats
    """
    repeated_ids = [f"{key} (line {line:,}, first in line {first_line:,})" for key, line, first_line in repeats]
    return CorpusError(
        f"{path} repeats {listed(repeated_ids, total, 'id')}. Keep one row for each id. Nothing was imported."
    )


def encoding_hint(path: Path, format: str) -> str:
    """Return advice that ends with a space if a text file is not UTF-8. Otherwise return "".

    The advice names the encoding that the file probably has.
    """
    if format == "parquet" or not path.is_file() or zipfile.is_zipfile(path):
        return ""
    encoding = encoding_of(path)
    if encoding == UTF_8:
        return ""
    if not encoding:
        return (
            "The file is not UTF-8 and seems to use an encoding for a non-Latin script. Save it as UTF-8; "
            "import_corpus can also read it with --encoding. "
        )
    name = encoding.upper()
    return f"The file seems to be {name}. Save it as UTF-8, for example with iconv -f {name} -t UTF-8. "
