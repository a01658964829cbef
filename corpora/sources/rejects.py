"""How many rows of a file may be rejected before nothing of it is taken, and what is said of it then.

A file of which half is lost is worse than one that was refused: nobody would look, and what is left is no sample.
"""

import codecs
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO

from corpora.core import CorpusError
from corpora.sources.compression import looks_like_utf16, opened

REJECTED = 3  # the exit status where rows of a file were rejected
MOST = 0.05  # of a file's rows, as long as nobody says otherwise
HOPELESS = 100_000  # rejected rows
_LOOKED_AT = 1000  # lines that are not UTF-8, to tell in which encoding they may be
_LONGEST = 1 << 16  # bytes of a line


@dataclass(frozen=True)
class Rejected:
    """What was rejected of a file. first: line and reason; listed: where they all stand."""

    path: Path
    format: str
    count: int
    rows: int
    first: tuple[int, str]
    listed: Path


class TooManyRejected(CorpusError):
    """More rows of a file were rejected than may be; nothing of it was taken."""

    status = REJECTED


def too_many(count: int, rows: int, most: float) -> bool:
    """Whether more than the share `most` of a file's rows were rejected."""
    return count > most * rows


def check_hopeless(path: Path, count: int, rows: int, first: tuple[int, str], most: float) -> None:
    """TooManyRejected as soon as a file can hardly be meant: where of its first rows most were rejected, and many. So
    one quote that is not closed costs no hour, and no list of millions."""
    if count < HOPELESS or not too_many(count, rows, max(most, 0.5)):
        return
    line, reason = first
    raise TooManyRejected(
        f"Nothing of {path} was taken: {count:,} of its first {rows:,} rows were rejected, and the others were not "
        f"read; the first is line {line:,}: {reason} Mend the file, or take the other rows alone with --max-rejects "
        "100%."
    )


def check_rejects(rejected: Rejected, most: float) -> None:
    """TooManyRejected where there are too many."""
    if not too_many(rejected.count, rejected.rows, most):
        return
    line, reason = rejected.first
    were = "was" if rejected.count == 1 else "were"
    raise TooManyRejected(
        f"Nothing of {rejected.path} was taken: {rejected.count:,} of its {rejected.rows:,} rows {were} rejected, "
        f"more than --max-rejects {most:.4g} allows; the first is line {line:,}: {reason} "
        f"{encoding_hint(rejected.path, rejected.format)}What was rejected is listed in {rejected.listed}. "
        "Mend the file and run the command again, or take the other rows alone with a higher --max-rejects."
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
