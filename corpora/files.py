"""What a file is before its rows are read: its format by its name, its packing, and how damage is told."""

import codecs
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from corpora import packings
from corpora.core.errors import CorpusError
from corpora.packings import members_of, packing_of, uncompressed

SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
# What a packed file unpacks to, and a Parquet file has in all its cells, is bounded: a few kilobytes may else fill
# memory and disk. Text is packed to a third or a twentieth, and the most that gzip can do is a thousandth.
MOST_TIMES = 200  # its own size
AT_LEAST = 64 << 20  # bytes that any file may have
Progress = Callable[[int], object]  # is told of bytes read


def format_of(path: Path) -> str | None:
    """The format that a file's name tells, apart from its packing; None if it tells none. Of a ZIP file of one file,
    that one's name tells it too."""
    known = SUFFIXES.get(unpacked(path).suffix.lower())
    if not known and path.suffix.lower() == ".zip" and len(inside := members_of(path)) == 1:
        known = SUFFIXES.get(Path(inside[0]).suffix.lower())
    return known


def unpacked(path: Path) -> Path:
    """The path without the ending of its packing, if its name has one."""
    return path.with_suffix("") if path.suffix.lower() in packings.SUFFIXES else path


def check_file(path: Path, format: str | None, *, folder: bool = False) -> None:
    """CorpusError if it is clear before reading that a path cannot be imported. folder: whether it may be one."""
    try:
        if path.is_dir():
            if folder:
                return
            raise CorpusError(f"{path} is a directory; name the files in it.")
        if not path.is_file():
            raise CorpusError(f"{path} does not exist, or is not an ordinary file.")
        with path.open("rb") as file:
            if not file.read(1):
                raise CorpusError(f"{path} is empty.")
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error
    if path.suffix.lower() in SPREADSHEETS:
        raise CorpusError(f"{path} is a spreadsheet; save it as CSV (“CSV UTF-8”), and name that file.")
    if not (format or format_of(path)):
        raise CorpusError(f"The name of {path} does not tell its format; give --format {'|'.join(FORMATS)}.")


@contextmanager
def opened(path: Path, progress: Progress | None = None) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked. progress: called with the bytes of the file itself that each read took."""
    with path.open("rb") as raw:
        packing = packing_of(path, raw.peek(packings.START)[: packings.START])
        counted: Any = _Counted(raw, progress) if progress else raw
        source: Any = _Bounded(path, uncompressed(path, packing, counted)) if packing else counted
        with io.BufferedReader(source, 1 << 18) as file:
            yield file


class _Counted(io.RawIOBase):
    """A file that tells how far it has been read."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self.file, self.progress = file, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.file.readinto(buffer)  # type: ignore[attr-defined]
        self.progress(count)
        return int(count)

    def seekable(self) -> bool:
        return self.file.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()


class Bound:
    """Counts the bytes that a file comes to when it is read. CorpusError where they are more than may be."""

    def __init__(self, path: Path) -> None:
        self.path, self.size, self.taken = path, path.stat().st_size, 0
        self.most = max(AT_LEAST, MOST_TIMES * self.size)

    def take(self, count: int) -> None:
        self.taken += count
        self.check(self.taken)

    def check(self, count: int) -> None:
        if count > self.most:
            raise CorpusError(
                f"{self.path} has {self.size:,} bytes and holds more than {self.most:,}; what is packed may hold "
                f"{MOST_TIMES} times its size, or {AT_LEAST >> 20} MB. If these are texts all the same, unpack it, or "
                "write it as JSONL, and name that."
            )


class _Bounded(io.RawIOBase):
    """What a packed file unpacks to."""

    def __init__(self, path: Path, unpacked: Any) -> None:
        self.bound, self.unpacked = Bound(path), unpacked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self.unpacked.readinto(buffer))
        self.bound.take(count)
        return count


@contextmanager
def damage_explained(path: Path, format: str) -> Iterator[None]:
    """What stops the reading of a file becomes a CorpusError that says so."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorpusError(f"{path} cannot be read as {format}: {first_line(error)}.") from error
    except MemoryError as error:
        raise CorpusError(
            f"{path} needs more memory than there is for one page of it; write it with smaller pages, or as JSONL."
        ) from error
    except OSError as error:
        if error.errno is not None:  # the system's own, e.g. no right to read
            raise CorpusError(f"{error.filename or path} cannot be read: {error.strerror}.") from error
        raise CorpusError(
            f"{path} is cut off or damaged ({first_line(error)}); nothing of it was imported. Fetch it again."
        ) from error


def looks_like_utf16(start: bytes) -> bool:
    """Whether text begins with the mark of UTF-16, or every other byte of it is NUL, and not all."""
    fewer, more = sorted((start[::2].count(0), start[1::2].count(0)))
    return start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (more * 3 > len(start) and more > 2 * fewer)


def first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")
