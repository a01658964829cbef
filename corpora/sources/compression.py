"""What a file is before its rows are read: plain or compressed, its format by its name, and how damage is reported.

Those of gzip, zstd (with windows of up to 2 GB, as of Pushshift's dumps), xz and bzip2 are read, and a ZIP file of one
file, or of one document a file. The name of a file does not decide how it is compressed; its first bytes do.
"""

import bz2
import codecs
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import pyarrow as pa
import zstandard

from corpora.core import CorpusError

PACKED = {
    ".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".xz": "xz", ".bz2": "bzip2", ".zip": "zip",
}  # fmt: skip
_SKIPPED = b"\x2a\x4d\x18"  # the end of the mark of a frame that zstd skips, after a byte from 0x50 to 0x5f
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}
# What is known and not read: the name of the format, and what to do.
_OTHERS = {
    b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x"),
    b"Rar!\x1a\x07": ("RAR", "unrar x"),
    b"\x04\x22\x4d\x18": ("LZ4", "lz4 -d"),
    b"\x1f\x9d": ("compress (.Z)", "uncompress"),
    b"LZIP": ("lzip", "lzip -d"),
    b"\x5d\x00\x00": ("LZMA", "xz --decompress --format=lzma"),
}
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
START = 8  # bytes by which a format is known
_LONGEST_WINDOW = 1 << 31  # bytes, as `zstd --long=31` writes
_PIECE = 1 << 11  # compressed bytes that are uncompressed at once; of zstd they may come to 64 MB
_DAMAGE = (lzma.LZMAError, zstandard.ZstdError, zipfile.BadZipFile, zlib.error, EOFError, ValueError)


def packing_of(path: Path, start: bytes) -> str | None:
    """The compression format that the first bytes tell, None for a plain file. CorpusError for one that is not read,
    or not the one that the name tells."""
    for magic, packing in _MAGIC.items():
        if start.startswith(magic):
            return packing
    if len(start) > 3 and 0x50 <= start[0] <= 0x5F and start[1:4] == _SKIPPED:
        return "zstd"
    for magic, (name, command) in _OTHERS.items():
        if start.startswith(magic):
            raise CorpusError(
                f"{path} is compressed by {name}, which is not read here; unpack it with {command}, and name that file."
            )
    if start.startswith(_OLD_OFFICE):
        raise _spreadsheet(path)
    if (named := PACKED.get(path.suffix.lower())) and start:
        raise CorpusError(f"{path} is named as {named} but does not begin as {named} does; check the file.")
    return None


def _spreadsheet(path: Path) -> CorpusError:
    return CorpusError(f"{path} is a spreadsheet; save it as CSV (“CSV UTF-8”), and name that file.")


class _Reader(io.RawIOBase):
    """Reads as any file does: an OSError without a number stands for whatever the source calls damage. taken: is told
    of the bytes of each read.
    """

    def __init__(self, source: Any, taken: "Progress") -> None:
        self.source, self.taken = source, taken

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _damage():
            count = int(self.source.readinto(buffer))
        self.taken(count)
        return count


@contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except _DAMAGE as error:
        raise OSError(str(error) or type(error).__name__) from error


class _Zstd(io.RawIOBase):
    """The frames of a file, one after another. zstandard's own reader takes a frame that is cut off for whole."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.made = zstandard.ZstdDecompressor(max_window_size=_LONGEST_WINDOW)
        self.frame: Any = None
        self.waiting = b""  # compressed
        self.ready = memoryview(b"")

    def readinto(self, buffer: Any) -> int:
        while not self.ready:
            self.waiting = self.waiting or self.file.read(_PIECE)
            if not self.waiting:
                if self.frame is not None:
                    raise OSError("the last frame is cut off")
                return 0
            self.frame = self.frame or self.made.decompressobj()
            self.ready = memoryview(self.frame.decompress(self.waiting))
            self.waiting = self.frame.unused_data
            if self.frame.eof:
                self.frame = None
        count = min(len(buffer), len(self.ready))
        buffer[:count] = self.ready[:count]
        self.ready = self.ready[count:]
        return count


def members_of(path: Path) -> list[str]:
    """The files in a ZIP file, but hidden ones."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _files_in(archive)
    except (zipfile.BadZipFile, OSError):
        return []


def _files_in(archive: zipfile.ZipFile) -> list[str]:
    names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    return [name for name in names if not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)]


def _zip(path: Path, file: BinaryIO) -> Any:
    archive = zipfile.ZipFile(file)
    if "[Content_Types].xml" in archive.namelist() or "mimetype" in archive.namelist():
        raise _spreadsheet(path)
    names = _files_in(archive)
    if len(names) != 1:
        raise CorpusError(
            f"{path} is a ZIP file of {len(names):,} files, and one is read; unpack it, and name the files."
        )
    try:
        return archive.open(names[0])
    except (RuntimeError, NotImplementedError) as error:  # a password, or a method that Python does not know
        raise CorpusError(
            f"{path} is a ZIP file that cannot be read ({error}); unpack it, and name that file."
        ) from error


_READERS: dict[str, Callable[[Path, BinaryIO], Any]] = {
    "gzip": lambda path, file: pa.CompressedInputStream(file, "gzip"),
    "zstd": lambda path, file: _Zstd(file),
    "xz": lambda path, file: lzma.LZMAFile(file),  # noqa: SIM115
    "bzip2": lambda path, file: bz2.BZ2File(file),
    "zip": _zip,
}


# --- What a file is before its rows are read: its format by its name, its packing, and how damage is told.


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
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


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
        packing = packing_of(path, raw.peek(START)[:START])
        counted: Any = _Counted(raw, progress) if progress else raw
        source: Any = counted
        if packing:
            with _damage():
                source = _Reader(_READERS[packing](path, counted), Bound(path).take)
        with io.BufferedReader(source, 1 << 18) as file:
            yield file


class _Counted(_Reader):
    """A file that tells how far it has been read."""

    def seekable(self) -> bool:
        return bool(self.source.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self.source.seek(offset, whence))

    def tell(self) -> int:
        return int(self.source.tell())


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


# --- Documents that come as a ZIP file of files, one each.


def entries_of(path: Path, suffix: str, longest: int) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """(name, content) of each file in a ZIP file that has the suffix, in the order of their names; None in place of one
    with more than `longest` bytes. Hidden files are passed over. CorpusError where there is none, or the ZIP file is
    damaged."""
    kind = suffix.removeprefix(".").upper()
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
            wanted = [entry for entry in entries if _ends(entry.filename, suffix)]
            if not wanted:
                inside = [entry.filename for entry in entries if _ends(entry.filename, ".zip")]
                raise CorpusError(
                    f"{path} holds ZIP files such as {inside[0]}; unpack it, and import these."
                    if inside
                    else f"{path} holds no {kind} file; each document is one in a ZIP file, or one by itself."
                )
            bound = Bound(path)
            for entry in wanted:
                bound.take(min(entry.file_size, longest))
                content = archive.read(entry) if entry.file_size <= longest else None
                yield PurePosixPath(entry.filename), content
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # the last where it asks for a password
        raise CorpusError(f"{path} is cut off, damaged or locked ({error}); nothing of it was imported.") from error


def _ends(name: str, suffix: str) -> bool:
    return name.lower().endswith(suffix) and not PurePosixPath(name).name.startswith(".")
