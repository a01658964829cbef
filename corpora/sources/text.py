"""Read text files, which can be compressed: their encoding and delimiter, lines, JSON values, and CSV records."""

import codecs
import csv
import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

from corpora.core import CorpusError
from corpora.core.records import kind_of
from corpora.sources.compression import (
    BINARY,
    Progress,
    explain_damage,
    first_line,
    looks_like_utf16,
    open_decompressed,
)

MAX_LINE = 1 << 20  # maximum length of a line (bytes)
_INSPECTED = 1 << 16  # number of bytes at the start of a file that are used to detect its layout
_CHUNK = 1 << 18  # number of bytes read at a time while splitting JSON values
NOT_UTF8, NUL = "The row is not UTF-8.", "The row contains a NUL character, which databases cannot store."


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a row cannot be read, as a sentence."""

    reason: str


Line = tuple[int, bytes | Fault]  # the line number, starting from 1, and the content


def _lines(file: BinaryIO, limit: int) -> Iterator[Line]:
    """Yield the lines of a file. If a line is longer than `limit` bytes, yield a Fault instead."""
    for number, line in enumerate(iter(lambda: file.readline(limit + 1), b""), 1):
        if len(line) > limit:
            while line and not line.endswith(b"\n"):
                line = file.readline(limit)
            yield number, Fault(f"The line is longer than {limit:,} bytes.")
        else:
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def lines_of(path: Path, limit: int, progress: Progress | None = None, encoding: str = "utf-8") -> Iterator[Line]:
    """Yield the lines of a text file, in UTF-8. If a line is longer than `limit` bytes, yield a Fault instead.

    encoding: encoding of the file

    Raise CorpusError if the file is in UTF-16 but `encoding` is UTF-8.
    """
    with text_of(path, progress, encoding) as (file, start):
        check_encoding(path, start[:4096])
        yield from _lines(file, limit)


def values_of(path: Path, limit: int, progress: Progress | None = None, encoding: str = "utf-8") -> Iterator[Line]:
    """Yield each JSON value in a file with a distinct number, in UTF-8.

    The number is the value's first line, or the next number if another value starts on the same line. A file can have
    one value per line, an array of values, or a sequence of objects that each span several lines. If a value is longer
    than `limit` bytes, yield a Fault instead.

    encoding: encoding of the file

    Raise CorpusError if the file is in UTF-16 but `encoding` is UTF-8.
    """
    with text_of(path, progress, encoding) as (file, start):
        check_encoding(path, start[:4096])
        yield from (_lines if _has_one_value_per_line(start) else _values)(file, limit)


@contextmanager
def text_of(path: Path, progress: Progress | None = None, encoding: str = "utf-8") -> Iterator[tuple[BinaryIO, bytes]]:
    """Open a text file and yield it with its first bytes.

    Other encodings are converted to UTF-8, and line endings of CR alone to LF.
    """
    with open_decompressed(path, progress) as packed:
        file: Any = packed
        if encoding != "utf-8":
            convert = _to_utf8(file.peek(_INSPECTED), encoding)
            file = io.BufferedReader(_Converter(file, convert), 1 << 18)
        start = file.peek(_INSPECTED)[:_INSPECTED]
        if b"\r" in start and b"\n" not in start:  # as on classic Mac OS
            file, start = io.BufferedReader(_Converter(file, _cr_to_lf), 1 << 18), start.replace(b"\r", b"\n")
        yield file, start


class _Converter(io.RawIOBase):
    """A file whose content is converted as it is read.

    convert: function that takes a piece of the content and whether it is the last, and returns the converted piece
    """

    def __init__(self, file: Any, convert: Callable[[bytes, bool], bytes]) -> None:
        self.file, self.convert, self.content = file, convert, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.content and (piece := self.file.read(_CHUNK)):
            self.content = self.convert(piece, False)
        self.content = self.content or self.convert(b"", True)
        count = min(len(buffer), len(self.content))
        buffer[:count], self.content = self.content[:count], self.content[count:]
        return count


def _to_utf8(start: bytes, encoding: str) -> Callable[[bytes, bool], bytes]:
    """Return a function that converts a file to UTF-8.

    Bytes that are invalid in the encoding are kept. They are also invalid in UTF-8, so only rows that contain them are
    rejected.

    start: first bytes of the file
    """
    if encoding == "utf-16" and not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16-be" if start[::2].count(0) > start[1::2].count(0) else "utf-16-le"
    errors = "surrogatepass" if encoding.startswith("utf-16") else "surrogateescape"
    decoder = codecs.getincrementaldecoder(encoding)(errors)

    def convert(content: bytes, final: bool) -> bytes:
        try:
            return decoder.decode(content, final).encode("utf-8", errors)
        except UnicodeDecodeError as error:  # UTF-16 that ends in the middle of a character
            raise OSError(str(error)) from error

    return convert


def _cr_to_lf(content: bytes, _final: bool) -> bytes:
    return content.replace(b"\r", b"\n")


def _has_one_value_per_line(start: bytes) -> bool:
    """Return whether a file seems to have one value per line.

    start: first bytes of the file
    """
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"["):
        return False
    first_line_bytes, newline, _ = text.partition(b"\n")
    if not newline or not text.startswith(b"{"):
        return True
    try:
        _, end = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
    except RecursionError:
        return True
    except ValueError:
        # Either the first object continues beyond `start`, or the first line is malformed. In a file with one value per
        # line, the other lines must still be read.
        return len(start) < _INSPECTED or first_line_bytes.strip() != b"{"
    return end <= len(first_line_bytes.decode(errors="replace"))


# The significant characters outside and inside of strings.
_MARK = re.compile(rb'["{}\[\]\n]')
_IN_STRING = re.compile(rb'["\\\n]')
# An object with no nested objects or lists. The quantifiers are possessive, so matching takes linear time.
_FLAT = re.compile(rb'\{[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+\}', re.DOTALL)


class _Scan:
    """A scanner that splits a stream of JSON into values by counting brackets. It holds a single value in memory."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.line = 1
        # `depth` is the number of open brackets. `base` is the depth at which values start: 1 inside an array of
        # values, otherwise 0.
        self.depth = self.base = 0
        self.in_string = self.is_escaped = False
        self.first = 0  # the line on which the current value starts, or 0 between values
        self.held = bytearray()
        self.is_stray = False

    def take(self, chunk: bytes) -> Iterator[Line]:
        """Process the next chunk of the file, and yield the values that end in it."""
        position = begin = 0
        if self.is_escaped:
            position, self.is_escaped = 1, False
        while match := (_IN_STRING if self.in_string else _MARK).search(chunk, position):
            mark, start = match[0], match.start()
            if not self.first and not self.in_string:
                yield from self._strays(chunk[position:start])
            position = start + 1
            if mark == b"\n":
                self.line += 1
            elif mark == b"\\":
                position += 1
                self.is_escaped = position > len(chunk)
            elif mark == b'"':
                if not (self.first or self.in_string) and (self.base or not self.is_stray):
                    yield self._stray()
                self.in_string = not self.in_string
            elif mark in b"{[":
                if self.depth == self.base == 0 and mark == b"[":
                    self.base = self.depth = 1
                    continue
                if self.depth == self.base:
                    self.first, begin, self.is_stray = self.line, start, False
                    if flat := _FLAT.match(chunk, start):
                        self.line += chunk.count(b"\n", start, flat.end())
                        position = flat.end()
                        self._hold(flat[0])
                        yield self.first, self._value()
                        continue
                self.depth += 1
            elif self.depth <= self.base:
                self.base = self.depth = 0
                self.is_stray = False
            else:
                self.depth -= 1
                if self.depth == self.base:
                    self._hold(chunk[begin:position])
                    yield self.first, self._value()
        if self.first:
            self._hold(chunk[begin:])
        elif not self.in_string:
            yield from self._strays(chunk[position:])

    def end(self) -> Iterator[Line]:
        if self.first or self.base:
            yield (
                self.first or self.line,
                Fault("The JSON is not closed at the end of the file. The file is probably truncated."),
            )

    def _strays(self, between: bytes) -> Iterator[Line]:
        """Yield a Fault for each array element that is not an object or list, or for any text outside of an array."""
        for piece in between.split(b",") if between.strip(b" \t\r\n,") else ():
            if piece.strip() and (self.base or not self.is_stray):
                yield self._stray()

    def _stray(self) -> Line:
        self.is_stray = True
        return self.line, Fault("There is text outside of a JSON object. Each row must be a JSON object.")

    def _hold(self, piece: bytes) -> None:
        if len(self.held) <= self.limit:
            self.held += piece

    def _value(self) -> bytes | Fault:
        value, self.first = bytes(self.held), 0
        self.held.clear()
        return Fault(f"The object is longer than {self.limit:,} bytes.") if len(value) > self.limit else value


def _values(file: BinaryIO, limit: int) -> Iterator[Line]:
    scan = _Scan(limit)

    def values() -> Iterator[Line]:
        yield from scan.take(file.read(_CHUNK).removeprefix(codecs.BOM_UTF8))
        while chunk := file.read(_CHUNK):
            yield from scan.take(chunk)
        yield from scan.end()

    last = 0
    for line, value in values():
        # Numbers must be distinct, because importers identify rows by them.
        last = max(line, last + 1)
        yield last, value


def check_encoding(path: Path, start: bytes) -> None:
    """Raise CorpusError if a file seems to be in UTF-16.

    start: first bytes of the file
    """
    if looks_like_utf16(start):
        raise CorpusError(
            f"{path} is not UTF-8 but probably UTF-16. Save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8."
        )


class RepeatedKey(Exception):
    """Raised for a JSON object with a duplicate key."""


def object_from_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object (object_pairs_hook). Raise RepeatedKey if a key occurs twice."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKey(next(key for key in mapping if keys.count(key) > 1))
    return mapping


_DECODE = json.JSONDecoder(object_pairs_hook=object_from_pairs).decode  # json.loads creates a decoder on every call
_EXCERPT = 20  # number of characters of a faulty line in error messages


def object_of(content: bytes, keys: Iterable[str], unit: str = "line") -> dict[str, Any] | Fault:
    """Parse a JSON object. Return a Fault if the content is not a JSON object.

    keys: keys of the example object in the Fault
    unit: the noun for `content` in the Fault, such as `line`
    """
    try:
        value = _DECODE(content.decode())
    except RepeatedKey as error:
        return Fault(f"The {unit} has the key {error.args[0]!r} twice.")
    except UnicodeDecodeError as error:
        return Fault(f"The {unit} is not UTF-8 (byte {error.start + 1}).")
    except (ValueError, RecursionError) as error:
        if "set_int_max_str_digits" in str(error):
            return Fault(
                f"The {unit} contains a number with thousands of digits, which cannot be read. Save it as text."
            )
        if _is_object(content.rstrip().removesuffix(b",")):
            return Fault(f"The {unit} ends with a comma. Remove the comma at the end of each {unit}.")
        if content.strip() and not content.lstrip().startswith((b"{", b"[")):
            start = content.decode().strip()[:_EXCERPT]
            return Fault(f"The {unit} is not a JSON object; it begins with {start!r}.")
        return Fault(f"The {unit} is not valid JSON: {first_line(error)}.")
    if not isinstance(value, dict):
        example = json.dumps(dict.fromkeys(keys, "..."))
        row = "row" if unit == "line" else unit
        return Fault(f"The {unit} is {kind_of(value)}. Each {row} must be a JSON object, such as {example}.")
    return value


def _is_object(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except (ValueError, RecursionError):
        return False


def get_value(value: dict[str, Any], column: str, default: Any = None) -> Any:
    """Return the value at a key or at a dotted path such as data.text, or the default if there is none."""
    if column in value:
        return value[column]
    current: Any = value
    for key in column.split("."):
        if not isinstance(current, dict) or key not in current:
            return default
        current = current[key]
    return current


def names_in(value: dict[str, Any]) -> Iterator[str]:
    """Yield an object's columns, as accepted by `get_value`. Keys of nested objects become dotted paths."""
    for key, content in value.items():
        if isinstance(content, dict) and content and "." not in key:
            yield from (f"{key}.{name}" for name in names_in(content))
        else:
            yield key


ABSENT = object()


# Arguments for decoding lines of tables. Bytes that are not UTF-8 become lone surrogates, which readers._table detects,
# so that only the rows that contain them are rejected.
ESCAPED = ("utf-8", "surrogateescape")


# --- CSV. An unclosed quote costs a single row.


Cells = tuple[int, list[str] | Fault]
_ATTEMPTS = 8
_RESUMED = "The following lines are read separately."


class _Feed:
    """The input of csv.reader. It keeps the lines of the current record until the record is known to be valid.

    The feed ends if a record exceeds `limit` bytes, or at a line that was part of _ATTEMPTS failed records. The second
    rule is needed for files in which every line closes one quote and opens the next. Otherwise, such a file would be
    read again from each of its lines.
    """

    def __init__(self, lines: Iterator[Line], limit: int) -> None:
        self.lines, self.limit = lines, limit
        # Each tuple contains a line's number, its content, and the number of failed records that it was part of.
        self.taken: list[tuple[int, bytes | Fault, int]] = []
        self.again: deque[tuple[int, bytes | Fault, int]] = deque()
        self.size = 0
        self.ended = False

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        self.ended = True
        entry = self.again.popleft() if self.again else (*next(self.lines), 0)
        line = entry[1]
        if self.taken and (isinstance(line, Fault) or entry[2] == _ATTEMPTS or self.size + len(line) > self.limit):
            self.again.appendleft(entry)
            raise StopIteration
        self.taken.append(entry)
        if isinstance(line, Fault):
            raise StopIteration
        self.ended = False
        self.size += len(line)
        return line.decode(*ESCAPED)

    def begin(self) -> None:
        """Start a new record and discard the lines of the previous one."""
        self.taken.clear()
        self.size = 0

    def is_doubtful(self) -> bool:
        """Return whether the record may be the end of a failed record.

        Its first line must have been part of a failed record, and it must contain an odd number of quotes.
        """
        if not self.taken[0][2]:
            return False
        return sum(line.count(b'"') for _, line, _ in self.taken if isinstance(line, bytes)) % 2 == 1

    def return_all_but_first(self) -> None:
        self.again.extendleft((number, line, failed + 1) for number, line, failed in reversed(self.taken[1:]))


def records(lines: Iterator[Line], limit: int, delimiter: str = ",") -> Iterator[Cells]:
    """Yield the records of a CSV file, starting with the header.

    If a record fails, only its first line is rejected, and reading resumes with the next line. Otherwise, an unclosed
    quote would consume all rows up to the next quote or up to the limit.

    limit: maximum size of a record (bytes)
    """
    csv.field_size_limit(limit)
    feed = _Feed(lines, limit)
    reader = csv.reader(feed, strict=True, delimiter=delimiter)
    width = None
    while True:
        feed.begin()
        fault: Fault | None = None
        row: list[str] = []
        try:
            row = next(reader)
        except StopIteration:
            if not feed.taken:
                return
            fault = cast(Fault, feed.taken[0][1])
        except csv.Error as error:
            fault = _fault(feed, error)
        number, last_line = feed.taken[0][0], feed.taken[-1][0]
        if width is None:
            width = len(row)
        elif not fault and last_line > number and len(row) != width:
            fields = f"{field_count(row)}, but the header has {width:,}"
            fault = Fault(
                f"A quote is opened in this row and closed in line {last_line:,}. This makes {fields}. {_RESUMED}"
            )
        elif not fault and feed.is_doubtful():
            fault = Fault("The row contains a quote that may close a quote from an earlier row, which was rejected.")
        if fault:
            feed.return_all_but_first()
        yield number, fault or row


def _fault(feed: _Feed, error: csv.Error) -> Fault:
    if feed.ended:
        return Fault(f"A quote is opened in this row and not closed. {_RESUMED}")
    if len(feed.taken) > 1:
        line = feed.taken[-1][0]
        return Fault(f"A quote is opened in this row and not closed correctly by line {line:,}. {_RESUMED}")
    return Fault(f"The row is not valid CSV: {error}.")


# The first line of a CSV file for Excel can specify the delimiter.
_HINT = re.compile(rb"sep=(.)\r?\n?", re.IGNORECASE)


def skip_delimiter_hint(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the lines of a CSV file, skipping a first line such as `sep=;`."""
    for number, line in lines:
        if number > 1 or isinstance(line, Fault) or not _HINT.fullmatch(line):
            yield number, line


def field_count(row: list[str]) -> str:
    return "1 field" if len(row) == 1 else f"{len(row):,} fields"


# --- The encoding of text files and the delimiter of CSV files: the supported values, and their detection.
#
# Detection is conservative, because a wrong guess would silently corrupt texts. A file is read as Windows-1252 only if
# some of its lines are not UTF-8, and if all lines that are UTF-8 are plain ASCII.


UTF_8, UTF_16, WESTERN = "utf-8", "utf-16", "windows-1252"
# The names that we show for encodings, by their names in Python.
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
# Characters and plural names of delimiters, by name. If two fit equally well, the first is used.
DELIMITERS: Mapping[str, tuple[str, str]] = {
    "comma": (",", "commas"),
    "semicolon": (";", "semicolons"),
    "tab": ("\t", "tabs"),
}
# Number of bytes that are searched for non-ASCII characters. Beyond them, lines in another encoding are rejected.
SEARCHED = 1 << 30
_FIRST_RECORDS = 20  # number of records that are used to detect the delimiter
_LOOKED_AT = 1000  # maximum number of lines that are used to guess the script of a file that is not UTF-8
_LONGEST = 1 << 16  # size of the pieces in which lines are inspected (bytes)


@dataclass(frozen=True)
class TextFormat:
    """A text file's encoding and delimiter.

    encoding: one of ENCODINGS; "" if the file is not a text file
    delimiter: one of DELIMITERS; "" if the file is not CSV
    """

    encoding: str = ""
    delimiter: str = ""

    def __str__(self) -> str:
        """Return a description such as "Windows-1252, with columns separated by semicolons"."""
        name = ENCODINGS.get(self.encoding, "").partition(" (")[0]
        separated = f", with columns separated by {DELIMITERS[self.delimiter][1]}" if self.delimiter else ""
        return f"{name}{separated}"


STANDARD = (TextFormat(), TextFormat(UTF_8), TextFormat(UTF_8, "comma"))  # formats that need not be reported


def text_format_of(
    path: Path, format: str, encoding: str = "", delimiter: str = "", most: int = SEARCHED
) -> TextFormat:
    """Return a file's encoding and delimiter, which are detected unless the user has chosen them.

    encoding, delimiter: the user's choice; "" to detect it
    most: number of bytes that are searched for non-ASCII characters

    Raise CorpusError if the file cannot be read.
    """
    if format in BINARY:
        return TextFormat()
    with explain_damage(path, format):
        encoding = encoding or encoding_of(path, most) or UTF_8
        if format == "csv":
            return TextFormat(encoding, delimiter or _delimiter_of(path, encoding))
        return TextFormat(encoding)


def encoding_of(path: Path, most: int = SEARCHED) -> str:
    """Detect the encoding of a text file. Return "" if it is not UTF-8 and its encoding is unknown.

    A file with lines in UTF-8 and lines in other encodings counts as UTF-8.
    """
    with open_decompressed(path) as file:
        if looks_like_utf16(file.peek(_LONGEST)[:4096]):  # type: ignore[attr-defined]
            return UTF_16
        others: list[bytes] = []
        for line, is_utf8 in _lines_beyond_ascii(file, most):
            if is_utf8:
                return UTF_8
            if len(others) < _LOOKED_AT:
                others.append(line)
    return (WESTERN if _is_western(b"".join(others)) else "") if others else UTF_8


def detect_utf16(path: Path) -> str:
    """Return UTF_16 if the first bytes of a text file look like it, otherwise UTF_8."""
    return UTF_16 if encoding_of(path, most=1) == UTF_16 else UTF_8


def _lines_beyond_ascii(file: BinaryIO, most: int) -> Iterator[tuple[bytes, bool]]:
    """Yield each non-ASCII line, and whether it is UTF-8.

    Long lines are read in pieces, which can end in the middle of a character.
    """
    decoder, taken = codecs.getincrementaldecoder(UTF_8)(), 0
    while taken < most and (block := file.peek()) and block.isascii():  # type: ignore[attr-defined]
        taken += len(file.read(len(block)))
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
    """Return whether the text is probably Windows-1252, a superset of ISO-8859-1.

    Accented letters in Latin script are usually isolated, whereas non-ASCII letters in other scripts are consecutive.
    """
    try:
        text.decode(WESTERN)
    except UnicodeDecodeError:
        return False
    consecutive = sum(byte > 0x7F and next_byte > 0x7F for byte, next_byte in pairwise(text))
    return consecutive * 2 <= sum(byte > 0x7F for byte in text)


def _delimiter_of(path: Path, encoding: str) -> str:
    """Detect the delimiter with which the largest share of the first records has the same width as the header.

    If several delimiters fit equally well, return the delimiter that gives the most columns.
    """
    csv.field_size_limit(MAX_LINE)
    start = [
        line.decode(*ESCAPED)
        for _, line in islice(lines_of(path, MAX_LINE, encoding=encoding), _FIRST_RECORDS)
        if not isinstance(line, Fault)
    ]

    if start and (hint := _HINT.fullmatch(start[0].encode(*ESCAPED))):
        return next((name for name, (mark, _) in DELIMITERS.items() if mark.encode() == hint[1]), "comma")

    def fit(name: str) -> tuple[float, int]:
        try:
            records = [record for record in csv.reader(start, delimiter=DELIMITERS[name][0]) if record]
        except csv.Error:
            return 0, 0
        width = len(records[0]) if records else 0
        return (sum(len(record) == width for record in records) / len(records), width) if width > 1 else (0, 0)

    return max(DELIMITERS, key=fit)
