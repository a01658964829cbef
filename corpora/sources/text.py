"""Lines of text files, plain or compressed, and the JSON objects in them, one per line or in an array."""

import codecs
import csv
import io
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from corpora.core import CorpusError
from corpora.core.records import kind_of
from corpora.sources.compression import Progress, first_line, looks_like_utf16, opened

MAX_LINE = 1 << 20  # bytes
_LOOKED_AT = 1 << 16  # bytes examined to detect the layout of a file
_CHUNK = 1 << 18
NOT_UTF8, NUL = "The row is not UTF-8.", "The row holds a NUL character, which databases refuse."


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a row cannot be read, as one sentence."""

    reason: str


Line = tuple[int, bytes | Fault]  # line number from 1, and content


def _lines(file: BinaryIO, limit: int) -> Iterator[Line]:
    """Yield the lines of a file, with a Fault for each line longer than `limit` bytes."""
    number = 0
    while line := file.readline(limit + 1):
        number += 1
        if len(line) > limit:
            while line and not line.endswith(b"\n"):
                line = file.readline(limit)
            yield number, Fault(f"The line is longer than {limit:,} bytes.")
        else:
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def lines_of(path: Path, limit: int, progress: Progress | None = None) -> Iterator[Line]:
    """Yield the lines of a text file, with a Fault for each line longer than `limit` bytes.

    CorpusError: the file is UTF-16
    """
    with text_of(path, progress) as (file, start):
        check_encoding(path, start[:4096])
        yield from _lines(file, limit)


def values_of(path: Path, limit: int, progress: Progress | None = None) -> Iterator[Line]:
    """Yield the JSON values in a file with their first lines, and a Fault for each value longer than `limit` bytes.

    The values may be one per line, the elements of an array, or consecutive objects over several lines.
    """
    with text_of(path, progress) as (file, start):
        check_encoding(path, start[:4096])
        yield from (_lines if _is_one_a_line(start) else _values)(file, limit)


@contextmanager
def text_of(path: Path, progress: Progress | None = None) -> Iterator[tuple[BinaryIO, bytes]]:
    """Open a text file and return it with its first bytes. Line ends that are CR alone become LF."""
    with opened(path, progress) as file:
        start = file.peek(_LOOKED_AT)[:_LOOKED_AT]  # type: ignore[attr-defined]
        if b"\r" in start and b"\n" not in start:
            yield io.BufferedReader(_OfCr(file), 1 << 18), start.replace(b"\r", b"\n")
        else:
            yield file, start


class _OfCr(io.RawIOBase):
    """A file with CR line ends, as on classic Mac OS, converted to LF."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self.file.read(len(buffer)).replace(b"\r", b"\n")
        buffer[: len(read)] = read
        return len(read)


def _is_one_a_line(start: bytes) -> bool:
    """Return whether a file has one value per line, judging by its first bytes."""
    text = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith(b"["):
        return False
    first, newline, _ = text.partition(b"\n")
    if not newline or not text.startswith(b"{"):
        return True
    try:
        _, end = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
    except RecursionError:
        return True
    except ValueError:
        # The first object may be longer than the bytes examined. A broken first line must not hide the others.
        return len(start) < _LOOKED_AT or first.strip() != b"{"
    return end <= len(first.decode(errors="replace"))


# Significant characters outside and inside of a string.
_MARK = re.compile(rb'["{}\[\]\n]')
_IN_STRING = re.compile(rb'["\\\n]')


class _Scan:
    """A scanner that splits a stream of JSON into values by their brackets, keeping one value at a time."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.line = 1
        self.depth = self.base = 0  # depth of brackets; base: 1 within an array of values
        self.in_string = self.is_escaped = False
        self.first = 0  # line of the current value, 0 between values
        self.held = bytearray()
        self.is_stray = False

    def take(self, chunk: bytes) -> Iterator[Line]:
        """Yield the values that end in the next chunk of a file."""
        at = begin = 0
        if self.is_escaped:
            at, self.is_escaped = 1, False
        while found := (_IN_STRING if self.in_string else _MARK).search(chunk, at):
            mark, place = found[0], found.start()
            if not self.first and not self.in_string and self._is_strange(chunk[at:place]):
                yield self._stray()
            at = place + 1
            if mark == b"\n":
                self.line += 1
            elif mark == b"\\":
                at += 1
                self.is_escaped = at > len(chunk)
            elif mark == b'"':
                if not self.first and not self.is_stray:
                    yield self._stray()
                self.in_string = not self.in_string
            elif mark in b"{[":
                if self.depth == self.base == 0 and mark == b"[":
                    self.base = self.depth = 1
                    continue
                if self.depth == self.base:
                    self.first, begin, self.is_stray = self.line, place, False
                self.depth += 1
            elif self.depth <= self.base:
                self.base = self.depth = 0
                self.is_stray = False
            else:
                self.depth -= 1
                if self.depth == self.base:
                    self._hold(chunk[begin:at])
                    yield self.first, self._value()
        if self.first:
            self._hold(chunk[begin:])
        elif not self.in_string and self._is_strange(chunk[at:]):
            yield self._stray()

    def end(self) -> Iterator[Line]:
        if self.first or self.base:
            yield (
                self.first or self.line,
                Fault("This is not JSON: it is not closed where the file ends, which seems to be cut off."),
            )

    def _is_strange(self, between: bytes) -> bool:
        return not self.is_stray and bool(between.strip(b" \t\r\n,"))

    def _stray(self) -> Line:
        self.is_stray = True
        return self.line, Fault("Something that is not a JSON object stands here; each row must be one.")

    def _hold(self, piece: bytes) -> None:
        if len(self.held) <= self.limit:
            self.held += piece

    def _value(self) -> bytes | Fault:
        value, self.first = bytes(self.held), 0
        self.held.clear()
        return Fault(f"The object is longer than {self.limit:,} bytes.") if len(value) > self.limit else value


def _values(file: BinaryIO, limit: int) -> Iterator[Line]:
    scan = _Scan(limit)
    chunk = file.read(_CHUNK).removeprefix(codecs.BOM_UTF8)
    while chunk:
        yield from scan.take(chunk)
        chunk = file.read(_CHUNK)
    yield from scan.end()


def check_encoding(path: Path, start: bytes) -> None:
    """Check that a file does not start like UTF-16.

    CorpusError: it does
    """
    if looks_like_utf16(start):
        raise CorpusError(
            f"{path} is not UTF-8; it looks like UTF-16. Save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8."
        )


class _Doubled(Exception):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Doubled(next(key for key in found if keys.count(key) > 1))
    return found


def object_of(content: bytes, keys: Iterable[str], what: str = "line") -> dict[str, Any] | Fault:
    """Parse a JSON object.

    keys: keys of the example in the error if it is not an object
    what: the unit that holds the object, for errors
    """
    try:
        value = json.loads(content.decode(), object_pairs_hook=_object)
    except _Doubled as error:
        return Fault(f"The {what} has the key {error.args[0]!r} twice.")
    except UnicodeDecodeError as error:
        return Fault(f"The {what} is not UTF-8 (byte {error.start + 1}).")
    except (ValueError, RecursionError) as error:
        if "set_int_max_str_digits" in str(error):
            return Fault(
                f"The {what} is not JSON that can be read: it has a number of thousands of digits. Save it as text."
            )
        if _is_object(content.rstrip().removesuffix(b",")):
            return Fault(f"The {what} ends with a comma, as in an array; take the comma at the end of each {what} off.")
        return Fault(f"The {what} is not JSON: {first_line(error)}.")
    if not isinstance(value, dict):
        example = json.dumps(dict.fromkeys(keys, "..."))
        row = "row" if what == "line" else what
        return Fault(
            f"The {what} is not a JSON object, but {kind_of(value)}; each {row} must be one, such as {example}."
        )
    return value


def _is_object(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except (ValueError, RecursionError):
        return False


def at(value: dict[str, Any], column: str) -> Any:
    """Return the value of a key or of a dotted path such as data.text; ABSENT if there is none."""
    if column in value:
        return value[column]
    found: Any = value
    for key in column.split("."):
        if not isinstance(found, dict) or key not in found:
            return ABSENT
        found = found[key]
    return found


def names_in(value: dict[str, Any]) -> Iterator[str]:
    """Yield the names by which `at` finds the values of an object, as dotted paths for nested objects."""
    for key, held in value.items():
        if isinstance(held, dict) and held and "." not in key:
            yield from (f"{key}.{name}" for name in names_in(held))
        else:
            yield key


ABSENT = object()


# Decoding of table lines. Bytes that are not UTF-8 become lone surrogates, which readers._table detects, so only their
# row is lost.
ESCAPED = ("utf-8", "surrogateescape")


# --- CSV, with damage by an unclosed quote limited to one row.


Cells = tuple[int, list[str] | Fault]
_ATTEMPTS = 8
_ANEW = "the lines after this one are read anew."


class _Feed:
    """Lines for csv.reader, kept until their record is known to be valid.

    The feed ends when a record exceeds `limit` bytes, or at a line that was part of _ATTEMPTS failed records. Without
    the second rule, a file in which every line closes one quote and opens another would be reread from each of its
    lines.
    """

    def __init__(self, lines: Iterator[Line], limit: int) -> None:
        self.lines, self.limit = lines, limit
        self.taken: list[tuple[int, bytes | Fault, int]] = []  # with the count of failed records
        self.again: deque[tuple[int, bytes | Fault, int]] = deque()
        self.size = 0
        self.ended = False

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        self.ended = True
        given = self.again.popleft() if self.again else (*next(self.lines), 0)
        line = given[1]
        if self.taken and (isinstance(line, Fault) or given[2] == _ATTEMPTS or self.size + len(line) > self.limit):
            self.again.appendleft(given)
            raise StopIteration
        self.taken.append(given)
        if isinstance(line, Fault):
            raise StopIteration
        self.ended = False
        self.size += len(line)
        return line.decode(*ESCAPED)

    def begin(self) -> None:
        """Discard the lines taken so far."""
        self.taken.clear()
        self.size = 0

    def is_doubtful(self) -> bool:
        """Return whether the record may be the end of a failed one: it has an unpaired quote and was read before."""
        if not self.taken[0][2]:
            return False
        return sum(line.count(b'"') for _, line, _ in self.taken if isinstance(line, bytes)) % 2 == 1

    def return_all_but_first(self) -> None:
        self.again.extendleft((number, line, failed + 1) for number, line, failed in reversed(self.taken[1:]))


def records(lines: Iterator[Line], limit: int) -> Iterator[Cells]:
    """Yield the records of a CSV file, starting with the header. If a record fails, only its first line is lost.

    Otherwise an unclosed quote would consume all rows up to the next quote or the limit.

    limit: maximum size of a record (bytes)
    """
    csv.field_size_limit(limit)
    feed = _Feed(lines, limit)
    reader = csv.reader(feed, strict=True)
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
        number, last = feed.taken[0][0], feed.taken[-1][0]
        if width is None:
            width = len(row)
        elif not fault and last > number and len(row) != width:
            found = f"which makes {fields_said(row)} where the header has {width:,}"
            fault = Fault(f"A quote is opened in this row and closed in line {last:,}, {found}; {_ANEW}")
        elif not fault and feed.is_doubtful():
            fault = Fault(
                "The row holds a quote that may be the end of one opened in a row before, which was rejected."
            )
        if fault:
            feed.return_all_but_first()
        yield number, fault or row


def _fault(feed: _Feed, error: csv.Error) -> Fault:
    if feed.ended:
        return Fault(f"A quote is opened in this row and not closed; {_ANEW}")
    if len(feed.taken) > 1:
        return Fault(f"A quote is opened in this row and not rightly closed by line {feed.taken[-1][0]:,}; {_ANEW}")
    return Fault(f"The row is not CSV: {error}.")


def fields_said(row: list[str]) -> str:
    return "1 field" if len(row) == 1 else f"{len(row):,} fields"
