"""Compressed files, file formats (by name or by content), size limits, and damaged files.

gzip, zstd, xz, bzip2 and ZIP are supported. zstd windows may have up to 2 GB, as in Pushshift's dumps. A ZIP file must
contain one file, or one file for each document. The compression is recognized by a file's first bytes rather than by
its name.
"""

import bz2
import codecs
import csv
import io
import lzma
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO

import pyarrow as pa

from corpora.core import CorpusError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACKED = {
    ".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".xz": "xz", ".bz2": "bzip2", ".zip": "zip",
}  # fmt: skip
# A skippable zstd frame starts with a byte from 0x50 to 0x5f, followed by these bytes.
_SKIPPED = b"\x2a\x4d\x18"
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}
# Unsupported formats, with their names and the commands that unpack them.
_UNSUPPORTED = {
    b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x"),
    b"Rar!\x1a\x07": ("RAR", "unrar x"),
    b"\x04\x22\x4d\x18": ("LZ4", "lz4 -d"),
    b"\x1f\x9d": ("compress (.Z)", "uncompress"),
    b"LZIP": ("lzip", "lzip -d"),
    b"\x5d\x00\x00": ("LZMA", "xz --decompress --format=lzma"),
}
ARROW_FILE, FEATHER_1 = b"ARROW1", b"FEA1"
_PARQUET = b"PAR1"
_ARROW_STREAM = b"\xff\xff\xff\xff"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_INSPECTED = 1 << 16  # The format is detected from this many bytes of the content.
_LINES = 20  # number of lines from which a table is recognized
_JSON = re.compile(r'\[?\s*\{\s*("(?:[^"\\]|\\.)*"\s*:|\})|\[\s*(\]|$)')
_NAME = re.compile(r"\s*[^\W\d][\w .:()/-]{0,60}\s*")  # the name of a column
_TAR_MARK = slice(257, 262)  # the bytes of a tar archive that are `ustar`
START = 8  # number of bytes at the start of a file that identify its format
# `zstd --long=31` writes files with this window (2 to the power of 31 bytes).
_ZSTD: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 31}
BAD_ZIP = (zipfile.BadZipFile, NotImplementedError)  # damaged, or of a version that zipfile cannot read
_DAMAGE = (lzma.LZMAError, zstd.ZstdError, *BAD_ZIP, zlib.error, EOFError, ValueError)


def is_packed(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a compressed file, even of an unsupported format."""
    return start.startswith((*_MAGIC, *_UNSUPPORTED)) or start[1:4] == _SKIPPED


def packing_of(path: Path, start: bytes) -> str | None:
    """Return the compression format of a file, or None if it is not compressed.

    start: the first bytes of the file

    Raise CorpusError if the format is not supported, or if it contradicts the file's name.
    """
    for magic, packing in _MAGIC.items():
        if start.startswith(magic):
            return packing
    if len(start) > 3 and 0x50 <= start[0] <= 0x5F and start[1:4] == _SKIPPED:
        return "zstd"
    for magic, (name, command) in _UNSUPPORTED.items():
        if start.startswith(magic):
            raise CorpusError(
                f"{path} is compressed with {name}, which is not supported. Unpack it with {command} and use that file."
            )
    if start.startswith(_OLD_OFFICE):
        raise _spreadsheet(path)
    if (expected := PACKED.get(path.suffix.lower())) and start:
        raise CorpusError(
            f"{path} has the suffix of a {expected} file, but its content is not {expected}. Remove {path.suffix} "
            "from its name if it is not compressed, or download it again."
        )
    return None


def _spreadsheet(path: Path) -> CorpusError:
    return CorpusError(f"{path} is a spreadsheet. Save it as .xlsx or as CSV (“CSV UTF-8”) and use that file.")


class _Reader(io.RawIOBase):
    """A raw stream that reads from a decompressor. If the data are damaged, it raises an OSError without an errno.

    source: the decompressor
    taken: a function that is called with the number of bytes after each read
    """

    def __init__(self, source: Any, progress: "Progress") -> None:
        self.source, self.taken = source, progress

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


def members_of(path: Path) -> list[str]:
    """Return the names of the files in a ZIP file. Hidden files are omitted."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _files_in(archive)
    except (*BAD_ZIP, OSError):
        return []


def _files_in(archive: zipfile.ZipFile) -> list[str]:
    names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    return [name for name in names if not _is_hidden(name)]


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def _is_office(archive: zipfile.ZipFile) -> bool:
    return "[Content_Types].xml" in archive.namelist() or "mimetype" in archive.namelist()


def _zip(path: Path, file: BinaryIO) -> Any:
    archive = zipfile.ZipFile(file)
    if _is_office(archive):
        raise _spreadsheet(path)
    names = _files_in(archive)
    if len(names) != 1:
        raise CorpusError(
            f"{path} is a ZIP file with {len(names):,} files, but it must contain one. Unpack it and use those files."
        )
    try:
        return archive.open(names[0])
    except (RuntimeError, NotImplementedError) as error:  # The file needs a password or uses an unsupported method.
        raise CorpusError(
            f"{path} is a ZIP file that cannot be read ({error}). Unpack it and use that file."
        ) from error


_READERS: dict[str, Callable[[Path, BinaryIO], Any]] = {
    "gzip": lambda path, file: pa.CompressedInputStream(file, "gzip"),
    "zstd": lambda path, file: zstd.ZstdFile(file, options=_ZSTD),
    "xz": lambda path, file: lzma.LZMAFile(file),  # noqa: SIM115
    "bzip2": lambda path, file: bz2.BZ2File(file),
    "zip": _zip,
}


# --- Formats by file name, and size limits.


SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow",
    ".xlsx": "xlsx",
}  # fmt: skip
BINARY = ("parquet", "arrow", "xlsx")  # formats that are not text
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
SPREADSHEETS = (".xls", ".xlsm", ".ods", ".numbers")
# The decompressed content of a file, including all cells of a Parquet file, must not exceed MOST_TIMES times the file's
# size. Without a limit, a file of a few kilobytes could fill memory and disk. Usually, text is compressed by a factor
# of 3 to 20, whereas gzip's maximum is about 1,000.
MOST_TIMES = 200
AT_LEAST = 64 << 20  # Content up to this many bytes is always allowed.
Progress = Callable[[int], object]  # a function that is called with the number of bytes read


def format_of(path: Path) -> str | None:
    """Return a file's format, or None if it is unknown.

    The format is given by the suffix before the compression suffix. If a ZIP file's name has no such suffix, the name
    of its only file is used. The content decides if it contradicts the name, or if the name does not show the format.
    """
    format = SUFFIXES.get(unpacked(path).suffix.lower())
    if not format and path.suffix.lower() == ".zip" and len(members := members_of(path)) == 1:
        format = SUFFIXES.get(Path(members[0]).suffix.lower())
    return format_inside(path, format) or format


def format_inside(path: Path, named: str | None = None) -> str | None:
    """Return the format that the first bytes of a file show, or None if they show none.

    named: the format that the file's name shows; a table's format is only looked for if there is none
    """
    try:
        with path.open("rb") as raw:
            if _is_workbook(path, raw.read(START)):
                return "xlsx"
        with opened(path) as file:
            start = file.read(_INSPECTED)
    except (OSError, CorpusError):
        return None
    if start.startswith(_PARQUET):
        return "parquet"
    if start.startswith((ARROW_FILE, FEATHER_1)) or (start.startswith(_ARROW_STREAM) and named in (None, "arrow")):
        return "arrow"
    if start.startswith(b"PK\x03\x04"):
        return "xlsx"  # a compressed workbook
    if named not in (None, "csv", "tsv"):
        return None
    text = start.decode("utf-16" if looks_like_utf16(start[:4096]) else "utf-8-sig", errors="replace").strip()
    if _JSON.match(text):
        return "jsonl"
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    # The last line may be incomplete.
    return None if named else _table_format(lines[: -1 if len(start) == _INSPECTED else None][:_LINES])


def _table_format(lines: list[str]) -> str | None:
    """Return the format of a text whose first lines all have the same number of cells and whose first names columns."""
    is_quoted = any('"' in line for line in lines)
    for format, delimiter in (("csv" if is_quoted else "tsv", "\t"), ("csv", ","), ("csv", ";")):
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        if len(rows) > 1 and len(set(map(len, rows))) == 1 < len(rows[0]) and all(map(_NAME.fullmatch, rows[0])):
            return format
    return None


def unpacked(path: Path) -> Path:
    """Return the path without its compression suffix."""
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


def check_file(path: Path, format: str | None, *, folder: bool = False) -> None:
    """Check that a path can be imported. Its content is not read.

    folder: whether the path may be a folder

    Raise CorpusError if the path cannot be imported.
    """
    try:
        if path.is_dir():
            if folder:
                return
            raise CorpusError(f"{path} is a folder. Specify the files in it instead.")
        if not path.is_file():
            raise CorpusError(f"{path} does not exist or is not a regular file.")
        with path.open("rb") as file:
            if not file.read(1):
                raise CorpusError(f"{path} is empty.")
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error
    if path.suffix.lower() in SPREADSHEETS:
        raise _spreadsheet(path)
    file_format = format or format_of(path)
    if not file_format or len(members_of(path)) < 2:
        _check_content(path)
    if not file_format:
        raise CorpusError(f"The file name {path} does not show the format. Add --format {'|'.join(FORMATS)}.")


def _check_content(path: Path) -> None:
    """Raise CorpusError if a file is damaged or cannot be unpacked, contains an archive, or is compressed twice."""
    with damage_explained(path, "text"), opened(path) as file:
        start = file.read(_TAR_MARK.stop)
        if start[_TAR_MARK] == b"ustar":
            raise CorpusError(
                f"{path} contains a tar archive. Unpack it, for example with tar -xf {path.name}, and use its files."
            )
        with path.open("rb") as raw:
            is_twice = is_packed(raw.read(START)) and is_packed(start) and not start.startswith(b"PK")
        if is_twice:
            raise CorpusError(f"{path} is compressed twice. Unpack it once and use that file.")


@contextmanager
def opened(path: Path, progress: Progress | None = None) -> Iterator[BinaryIO]:
    """Open a file and decompress it.

    progress: a function that is called after each read with the number of bytes that were consumed from the file
    """
    with path.open("rb") as raw:
        packing = packing_of(path, raw.peek(START)[:START])
        counted: Any = _Counted(raw, progress) if progress else raw
        source: Any = counted
        if packing:
            with _damage():
                source = _Reader(_READERS[packing](path, counted), Bound(path).take)
        with io.BufferedReader(source, 1 << 18) as file:
            yield file


@contextmanager
def unpacked_file(path: Path) -> Iterator[Path]:
    """Yield the path of a file's decompressed content, for readers that do not read from its start to its end."""
    with path.open("rb") as raw:
        start = raw.read(START)
    if not is_packed(start) or _is_workbook(path, start):
        yield path
        return
    with NamedTemporaryFile(prefix="assay-") as copy, opened(path) as file:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        yield Path(copy.name)


def _is_workbook(path: Path, start: bytes) -> bool:
    """Return whether a file is an Excel workbook, which is a ZIP file itself."""
    if not start.startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except BAD_ZIP:
        return False


class _Counted(_Reader):
    """A file that reports the number of bytes that are read from it."""

    def seekable(self) -> bool:
        return bool(self.source.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self.source.seek(offset, whence))

    def tell(self) -> int:
        return int(self.source.tell())


class Bound:
    """A limit on the size of a file's content.

    Its methods raise CorpusError if the content exceeds the limit.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.size, self.taken = path, path.stat().st_size, 0
        self.most = max(AT_LEAST, MOST_TIMES * self.size)

    def take(self, count: int) -> None:
        self.taken += count
        self.check(self.taken)

    def check(self, count: int) -> None:
        if count > self.most:
            raise CorpusError(
                f"{self.path} has {self.size:,} bytes, but its content exceeds the limit of {self.most:,} bytes, which "
                f"is {MOST_TIMES} times the file's size or {AT_LEAST >> 20} MB. If the content is valid, unpack the "
                "file or save it as JSONL, and use that file."
            )


@contextmanager
def damage_explained(path: Path, format: str) -> Iterator[None]:
    """Replace errors that occur while a file is read with a CorpusError."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorpusError(f"{path} cannot be read as {format}: {first_line(error)}.") from error
    except MemoryError as error:
        raise CorpusError(
            f"There is not enough memory for a page of {path}. Save it with smaller pages, or as JSONL."
        ) from error
    except OSError as error:
        if error.errno is not None:  # The operating system reported an error, such as a missing permission.
            raise CorpusError(f"{error.filename or path} cannot be read: {error.strerror}.") from error
        raise CorpusError(
            f"{path} is truncated or damaged ({first_line(error)}), so nothing was imported. Download it again."
        ) from error


def looks_like_utf16(start: bytes) -> bool:
    """Return whether bytes look like UTF-16.

    They do if they start with its byte order mark or if every other byte is NUL.
    """
    fewer, more = sorted((start[::2].count(0), start[1::2].count(0)))
    return start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (more * 3 > len(start) and more > 2 * fewer)


def first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")


# --- ZIP files that contain one file for each document.


def entries_of(path: Path, suffix: str | tuple[str, ...], longest: int) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Yield the (name, content) of each file in a ZIP file that has a suffix, sorted by name. Hidden files are omitted.

    suffix: the suffix, or several that are possible
    longest: the maximum size of a file (bytes); if a file is larger, its content is None

    Raise CorpusError if no file has the suffix, or if the ZIP file is damaged.
    """
    kind = (suffix if isinstance(suffix, str) else suffix[0]).removeprefix(".").upper()
    try:
        with zipfile.ZipFile(path) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.filename)
            matches = [entry for entry in entries if _ends(entry.filename, suffix)]
            if not matches:
                inside = [entry.filename for entry in entries if _ends(entry.filename, ".zip")]
                raise CorpusError(
                    f"{path} contains ZIP files such as {inside[0]}. Unpack it and import those."
                    if inside
                    else f"{path} contains no {kind} file. Each document must be a separate {kind} file."
                )
            bound = Bound(path)
            for entry in matches:
                bound.take(min(entry.file_size, longest))
                content = archive.read(entry) if entry.file_size <= longest else None
                yield PurePosixPath(entry.filename), content
    # zipfile raises RuntimeError if a file needs a password.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise CorpusError(f"{path} is truncated, damaged or encrypted ({error}), so nothing was imported.") from error


def _ends(name: str, suffix: str | tuple[str, ...]) -> bool:
    return name.lower().endswith(suffix) and not _is_hidden(name)
