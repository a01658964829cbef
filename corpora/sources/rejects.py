"""Faults in files: how many rows may be rejected before nothing of a file is taken, and the sentences about them.

A file of which half is lost is worse than one that was refused: nobody would look, and what is left is no sample.
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

REJECTED = 3  # the exit status where rows of a file were rejected
MOST = 0.05  # of a file's rows, as long as nobody says otherwise
HOPELESS = 100_000  # rejected rows
_LOOKED_AT = 1000  # lines that are not UTF-8, to tell in which encoding they may be
_LONGEST = 1 << 16  # bytes of a line


class TooManyRejected(CorpusError):
    """More rows of a file were rejected than may be; nothing of it was taken."""

    status = REJECTED


def too_many(count: int, rows: int, most: float) -> bool:
    """Whether more than the share `most` of a file's rows were rejected."""
    return count > most * rows


@dataclass
class Rejected:
    """What was rejected of a file. listed: the file that lists it; count, rows: rejected rows, and all rows; first:
    line and reason of the first rejected row."""

    path: Path
    format: str
    listed: Path
    count: int = 0
    rows: int = 0
    first: tuple[int, str] = (0, "")

    def check_hopeless(self, most: float) -> None:
        """TooManyRejected as soon as a file can hardly be meant: many of its first rows were rejected, and most of
        them. So one quote that is not closed costs no hour, and no list of millions."""
        if self.count < HOPELESS or not too_many(self.count, self.rows, max(most, 0.5)):
            return
        line, reason = self.first
        raise TooManyRejected(
            f"Nothing of {self.path} was taken: {self.count:,} of its first {self.rows:,} rows were rejected, and the "
            f"others were not read; the first is line {line:,}: {reason} Mend the file, or take the other rows alone "
            "with --max-rejects 100%."
        )

    def check(self, most: float) -> None:
        """TooManyRejected where there are too many."""
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
        """The sentence for a file of which every row was rejected, or that holds none."""
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
    """The same while a file is read: each reject is written to the list as a line of JSON."""

    file: TextIO = field(kw_only=True)

    def add(self, line: int, reason: str) -> None:
        self.count += 1
        if self.count == 1:
            self.first = (line, reason)
        entry = {"file": name_of(self.path), "line": line, "reason": reason}
        self.file.write(json.dumps(entry, ensure_ascii=False) + "\n")


# --- Files that are taken as a whole or not at all.


def no_rows(path: Path) -> CorpusError:
    return CorpusError(f"{path} holds no rows.")


def faulty(path: Path, format: str, line: int, reason: str, count: int = 1) -> CorpusError:
    """count: rows with faults, of which this is the first."""
    more = f"It is the first of {count:,} rows with faults. " if count > 1 else ""
    hint = encoding_hint(path, format)
    return CorpusError(f"{path}, line {line:,}: {reason} {more}{hint}Nothing of the file was taken.")


def text_lines(path: Path, format: str, progress: Progress | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not blank, each with its number. CorpusError for one that is too long, is not UTF-8
    or holds a NUL character."""
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
    """repeats: the first ids that came before, each with its line and the line where it came first."""
    named = [f"{key} (line {line:,}, first in line {first:,})" for key, line, first in repeats]
    return CorpusError(
        f"{path} repeats {listed(named, total, 'id')}. Keep one row for each id. Nothing of the file was taken."
    )


def encoding_hint(path: Path, format: str) -> str:
    """In which encoding a file of text seems to be, where it is not UTF-8, and what to do; a space ends it."""
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
    """The lines that are not; of a long one, those pieces. A character that is cut between two of them is one still."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    while line := file.readline(_LONGEST):
        try:
            decoder.decode(line, final=len(line) < _LONGEST or line.endswith(b"\n"))
        except UnicodeDecodeError:
            decoder.reset()
            yield line


def _guessed(text: bytes) -> str:
    """Latin letters with accents stand alone among others; those of another script stand in rows."""
    pairs = sum(one > 0x7F and other > 0x7F for one, other in pairwise(text))
    high = sum(byte > 0x7F for byte in text)
    if pairs * 2 > high:
        return ""
    # Latin-1 has nothing but controls where Windows has quotation marks, dashes and the euro.
    return "WINDOWS-1252" if any(0x80 <= byte < 0xA0 for byte in text) else "ISO-8859-1"
