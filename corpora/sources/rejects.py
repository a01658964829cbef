"""Rejected rows: how many a file may have, and the errors about them.

A file that loses many rows is refused, because the loss could go unnoticed and the rest is not a sample.
"""

import codecs
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO, TextIO

from corpora.core import CorpusError, listed
from corpora.sources.compression import Progress, damage_explained, looks_like_utf16, opened
from corpora.sources.text import MAX_LINE, NOT_UTF8, NUL, Fault, lines_of
from corpora.storage.layout import name_of

REJECTED = 3  # exit status when rows were rejected
MOST = 0.05  # default maximum share of a file's rows
HOPELESS = 100_000  # rejected rows after which reading may stop early
_LOOKED_AT = 1000  # lines that are not UTF-8, examined to guess the encoding
_LONGEST = 1 << 16  # bytes of a line


class TooManyRejected(CorpusError):
    """Too many rows of a file were rejected, so nothing of it was imported."""

    status = REJECTED


def too_many(count: int, rows: int, most: float) -> bool:
    """Return whether the rejected rows exceed the share `most` of all rows."""
    return count > most * rows


@dataclass
class Rejected:
    """The rejected rows of a file.

    listed: the file that lists them
    count: number of rejected rows
    rows: number of all rows
    first: line and reason of the first rejected row
    """

    path: Path
    format: str
    listed: Path
    count: int = 0
    rows: int = 0
    first: tuple[int, str] = (0, "")

    def check_hopeless(self, most: float) -> None:
        """Stop reading when many of the first rows, and most of them, were rejected.

        One unclosed quote thus does not cost an hour of reading or a list of millions of rows.

        TooManyRejected: the limits are exceeded
        """
        if self.count < HOPELESS or not too_many(self.count, self.rows, max(most, 0.5)):
            return
        line, reason = self.first
        raise TooManyRejected(
            f"Nothing of {self.path} was taken: {self.count:,} of its first {self.rows:,} rows were rejected, and the "
            f"others were not read; the first is line {line:,}: {reason} Mend the file, or take the other rows alone "
            "with --max-rejects 100%."
        )

    def check(self, most: float) -> None:
        """Check the number of rejected rows at the end of a file.

        TooManyRejected: it exceeds the share `most`
        """
        if not too_many(self.count, self.rows, most):
            return
        line, reason = self.first
        were = "was" if self.count == 1 else "were"
        raise TooManyRejected(
            f"Nothing of {self.path} was taken: {self.count:,} of its {self.rows:,} rows {were} rejected, more than "
            f"--max-rejects {most:.4g} allows; the first is line {line:,}: {reason} "
            f"{encoding_hint(self.path, self.format)}What was rejected is listed in {self.listed}. Mend the file and "
            "run the command again, or take the other rows alone with a higher --max-rejects."
        )

    def nothing_accepted(self) -> CorpusError:
        """Return the error for a file without accepted rows."""
        if not self.count:
            return no_rows(self.path)
        line, reason = self.first
        many = f"all of its {self.count:,} rows were rejected, the first" if self.count > 1 else _ONLY
        hint = "Name the columns with --column. " if reason.endswith("is missing.") else ""
        return TooManyRejected(
            f"Nothing was accepted of {self.path}: {many} at line {line:,}: {reason} {hint}"
            f"{encoding_hint(self.path, self.format)}What was rejected is listed in {self.listed}."
        )


_ONLY = "its only row was rejected,"


@dataclass
class RejectLog(Rejected):
    """The rejected rows of a file that is being read. Each is written to the list as a line of JSON."""

    file: TextIO = field(kw_only=True)

    def add(self, line: int, reason: str) -> None:
        self.count += 1
        if self.count == 1:
            self.first = (line, reason)
        entry = {"file": name_of(self.path), "line": line, "reason": reason}
        self.file.write(json.dumps(entry, ensure_ascii=False) + "\n")


# --- Files that are imported completely or not at all.


def no_rows(path: Path) -> CorpusError:
    return CorpusError(f"{path} holds no rows.")


def faulty(path: Path, format: str, line: int, reason: str, count: int = 1) -> CorpusError:
    """Return the error for a file with faulty rows.

    count: number of faulty rows; `line` is the first
    """
    more = f"It is the first of {count:,} rows with faults. " if count > 1 else ""
    hint = encoding_hint(path, format)
    return CorpusError(f"{path}, line {line:,}: {reason} {more}{hint}Nothing of the file was taken.")


def text_lines(path: Path, format: str, progress: Progress | None = None) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers.

    CorpusError: a line is too long, is not UTF-8 or contains a NUL character
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
    """Return the error for a file with repeated ids.

    repeats: the first of them, each with its line and the line of its first occurrence
    total: number of repeats
    """
    named = [f"{key} (line {line:,}, first in line {first:,})" for key, line, first in repeats]
    return CorpusError(
        f"{path} repeats {listed(named, total, 'id')}. Keep one row for each id. Nothing of the file was taken."
    )


def encoding_hint(path: Path, format: str) -> str:
    """Return advice if a text file is not UTF-8, with a guess at its encoding and a final space, else ""."""
    if format == "parquet" or not path.is_file() or zipfile.is_zipfile(path):
        return ""
    with opened(path) as file:
        start = file.read(_LONGEST)
    if looks_like_utf16(start):
        return _saved("UTF-16")
    with opened(path) as file:
        strange = list(islice(_not_utf8(file), _LOOKED_AT))
    if not strange:
        return ""
    name = _guessed(b"".join(strange))
    if not name:
        return "The file is not UTF-8, and seems to be in an encoding of another script: save it as UTF-8. "
    return _saved(name)


def _saved(name: str) -> str:
    return f"The file seems to be {name}: save it as UTF-8, for example with iconv -f {name} -t UTF-8. "


def _not_utf8(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that are not UTF-8; long lines are read in pieces, which may split a character."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    while line := file.readline(_LONGEST):
        try:
            decoder.decode(line, final=len(line) < _LONGEST or line.endswith(b"\n"))
        except UnicodeDecodeError:
            decoder.reset()
            yield line


def _guessed(text: bytes) -> str:
    """Guess a file's encoding from its bytes above 0x7F.

    In Latin scripts, accented letters are usually isolated; letters of other scripts are consecutive.
    """
    pairs = sum(one > 0x7F and other > 0x7F for one, other in pairwise(text))
    high = sum(byte > 0x7F for byte in text)
    if pairs * 2 > high:
        return ""
    # Where Windows-1252 has quotation marks, dashes and the euro sign, Latin-1 has only control characters.
    return "WINDOWS-1252" if any(0x80 <= byte < 0xA0 for byte in text) else "ISO-8859-1"
