"""The encoding of text files and the delimiter of CSV files: the choices, and how they are recognized.

Recognition is careful, because a wrong guess would silently change texts. A file is read as Windows-1252 only if it
cannot be UTF-8: it has lines that are not UTF-8, and none that are UTF-8 beyond ASCII.
"""

import codecs
import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO

from corpora.sources.compression import damage_explained, looks_like_utf16, opened
from corpora.sources.text import ESCAPED, MAX_LINE, Fault, lines_of

UTF_8, UTF_16, WESTERN = "utf-8", "utf-16", "windows-1252"
# Encoding, as Python names it -> name for people.
ENCODINGS: Mapping[str, str] = {
    UTF_8: "UTF-8",
    UTF_16: "UTF-16",
    WESTERN: "Windows-1252 (Western European)",
    "windows-1250": "Windows-1250 (Central European)",
    "windows-1251": "Windows-1251 (Cyrillic)",
    "windows-1253": "Windows-1253 (Greek)",
    "windows-1254": "Windows-1254 (Turkish)",
    "windows-1255": "Windows-1255 (Hebrew)",
    "windows-1256": "Windows-1256 (Arabic)",
    "windows-1257": "Windows-1257 (Baltic)",
    "koi8-r": "KOI8-R (Russian)",
    "gb18030": "GB 18030 (Simplified Chinese)",
    "big5": "Big5 (Traditional Chinese)",
    "shift_jis": "Shift JIS (Japanese)",
    "euc-kr": "EUC-KR (Korean)",
}
# Name of a delimiter -> (the character, its name in the plural). If two fit equally well, the first is taken.
DELIMITERS: Mapping[str, tuple[str, str]] = {
    "comma": (",", "commas"),
    "semicolon": (";", "semicolons"),
    "tab": ("\t", "tabs"),
}
# The search for letters beyond ASCII stops after this many bytes. Lines in another encoding are rejected there.
SEARCHED = 1 << 30
_FIRST_RECORDS = 20  # number of records from which the delimiter is recognized
_LOOKED_AT = 1000  # The script is guessed from up to this many lines that are not UTF-8.
_LONGEST = 1 << 16  # Lines are inspected in pieces of this many bytes.


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written.

    encoding: one of ENCODINGS; "" if the file is not a text file
    delimiter: one of DELIMITERS; "" if the file is not CSV
    """

    encoding: str = ""
    delimiter: str = ""

    def __str__(self) -> str:
        """Return, for example, "Windows-1252, with columns separated by semicolons"."""
        name = ENCODINGS.get(self.encoding, "").partition(" (")[0]
        separated = f", with columns separated by {DELIMITERS[self.delimiter][1]}" if self.delimiter else ""
        return f"{name}{separated}"


STANDARD = (TextFormat(), TextFormat(UTF_8), TextFormat(UTF_8, "comma"))  # formats that need not be reported


def text_format_of(
    path: Path, format: str, encoding: str = "", delimiter: str = "", most: int = SEARCHED
) -> TextFormat:
    """Return how a file is written. It is recognized, except for what the user has chosen.

    encoding, delimiter: the user's choice, or ""
    most: the number of bytes after which the search for letters beyond ASCII stops

    Raise CorpusError if the file cannot be read.
    """
    if format == "parquet":
        return TextFormat()
    with damage_explained(path, format):
        encoding = encoding or encoding_of(path, most) or UTF_8
        if format == "csv":
            return TextFormat(encoding, delimiter or _delimiter_of(path, encoding))
        return TextFormat(encoding)


def encoding_of(path: Path, most: int = SEARCHED) -> str:
    """Return the encoding of a text file, or "" if the file is not UTF-8 and its encoding is unknown.

    A file that mixes lines in UTF-8 with others counts as UTF-8.
    """
    with opened(path) as file:
        if looks_like_utf16(file.peek(_LONGEST)[:4096]):  # type: ignore[attr-defined]
            return UTF_16
        others: list[bytes] = []
        for line, is_utf8 in _lines_beyond_ascii(file, most):
            if is_utf8:
                return UTF_8
            if len(others) < _LOOKED_AT:
                others.append(line)
    if not others:
        return UTF_8
    return WESTERN if _is_western(b"".join(others)) else ""


def _lines_beyond_ascii(file: BinaryIO, most: int) -> Iterator[tuple[bytes, bool]]:
    """Yield each line that is not ASCII, and whether it is UTF-8.

    Long lines are read in pieces. A piece may end in the middle of a character.
    """
    decoder = codecs.getincrementaldecoder(UTF_8)()
    taken = 0
    while taken < most and (line := file.readline(_LONGEST)):
        taken += len(line)
        if line.isascii() and not decoder.getstate()[0]:
            continue
        try:
            decoder.decode(line, final=len(line) < _LONGEST or line.endswith(b"\n"))
        except UnicodeDecodeError:
            decoder.reset()
            yield line, False
        else:
            yield line, True


def _is_western(text: bytes) -> bool:
    """Return whether a text is probably Windows-1252, which includes ISO-8859-1.

    In Latin scripts, letters with accents are usually isolated, whereas letters of other scripts are consecutive.
    """
    try:
        text.decode(WESTERN)
    except UnicodeDecodeError:
        return False
    consecutive = sum(byte > 0x7F and next_byte > 0x7F for byte, next_byte in pairwise(text))
    return consecutive * 2 <= sum(byte > 0x7F for byte in text)


def _delimiter_of(path: Path, encoding: str) -> str:
    """Return the delimiter with which most of the first records have as many cells as the header.

    If several do, it is the one with most columns.
    """
    csv.field_size_limit(MAX_LINE)
    start = [
        line.decode(*ESCAPED)
        for _, line in islice(lines_of(path, MAX_LINE, encoding=encoding), _FIRST_RECORDS)
        if not isinstance(line, Fault)
    ]

    def fit(name: str) -> tuple[float, int]:
        try:
            records = [record for record in csv.reader(start, delimiter=DELIMITERS[name][0]) if record]
        except csv.Error:
            return 0, 0
        width = len(records[0]) if records else 0
        return (sum(len(record) == width for record in records) / len(records), width) if width > 1 else (0, 0)

    return max(DELIMITERS, key=fit)
