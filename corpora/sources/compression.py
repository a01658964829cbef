"""Open compressed files, detect file formats by name and content, limit sizes, and report damaged files.

gzip, zstd, xz, bzip2 and ZIP are supported, with zstd windows of up to 2 GB as in Pushshift's dumps. A ZIP file must
contain a single file, or one file for each document. The compression is detected from a file's first bytes, not from
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
# Unsupported formats, with their names and unpacking commands.
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
_INSPECTED = 1 << 16  # number of bytes of the content that are used to detect the format
_LINES = 20  # number of lines that are used to detect a table
_JSON = re.compile(r'\[?\s*\{\s*("(?:[^"\\]|\\.)*"\s*:|\})|\[\s*(\]|$)')
_NAME = re.compile(r"\s*[^\W\d][\w .:()/-]{0,60}\s*")  # a column name
_TAR_MARK = slice(257, 262)  # position of the magic bytes `ustar` in a tar archive
START = 8  # number of bytes at the start of a file that identify its format
# Base-2 logarithm of the maximum window, as written by `zstd --long=31`.
_ZSTD: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 31}
BAD_ZIP = (zipfile.BadZipFile, NotImplementedError)  # damaged, or of a version not supported by zipfile
_DAMAGE = (lzma.LZMAError, zstd.ZstdError, *BAD_ZIP, zlib.error, EOFError, ValueError)


def is_packed(start: bytes) -> bool:
    """Return whether a file's first bytes are those of a compression format, supported or not."""
    return start.startswith((*_MAGIC, *_UNSUPPORTED)) or start[1:4] == _SKIPPED


def packing_of(path: Path, start: bytes) -> str | None:
    """Return the compression format of a file, or None if it is not compressed.

    start: first bytes of the file

    Raise CorpusError if the format is not supported, or contradicts the file's name.
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
    """A raw stream that reads from a decompressor. If the data is damaged, it raises an OSError without an errno.

    source: the decompressor
    progress: called with the number of bytes after each read
    """

    def __init__(self, source: Any, progress: "Progress") -> None:
        self.source, self.progress = source, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _damage():
            count = int(self.source.readinto(buffer))
        self.progress(count)
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
    """Return the names of the non-hidden files in a ZIP file. For any other file, return an empty list."""
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
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or an unsupported compression method
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
BINARY = ("parquet", "arrow", "xlsx")  # formats that are not text files
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
SPREADSHEETS = (".xls", ".xlsm", ".ods", ".numbers")
# The decompressed content of a file, including all cells of a Parquet file, must not exceed MOST_TIMES times the file's
# size. Otherwise, a file of a few kilobytes could fill memory and disk. Text is usually compressed by a factor of 3 to
# 20, and gzip's maximum is about 1,000.
MOST_TIMES = 200
AT_LEAST = 64 << 20  # content up to this size is always allowed (bytes)
Progress = Callable[[int], object]  # called with the number of bytes read


def format_of(path: Path) -> str | None:
    """Return a file's format, or None if it is unknown.

    The format is detected from the suffix before the compression suffix or, in a ZIP file without such a suffix, from
    the name of its only file. The content takes precedence over the name.
    """
    format = SUFFIXES.get(unpacked(path).suffix.lower())
    if not format and path.suffix.lower() == ".zip" and len(members := members_of(path)) == 1:
        format = SUFFIXES.get(Path(members[0]).suffix.lower())
    return format_inside(path, format) or format


def format_inside(path: Path, named: str | None = None) -> str | None:
    """Detect a file's format from its first bytes. Return None if they don't reveal it.

    named: format that the file's name suggests; if it is None, the content is also checked for a table
    """
    try:
        with path.open("rb") as raw:
            if _is_workbook(path, raw.read(START)):
                return "xlsx"
        with open_decompressed(path) as file:
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
    # Omit the last line if it may be incomplete.
    return None if named else _table_format(lines[: -1 if len(start) == _INSPECTED else None][:_LINES])


def _table_format(lines: list[str]) -> str | None:
    """Return the format of a table, or None if the lines are not a table.

    In a table, all lines have the same number of cells, and the first line contains column names.
    """
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
    """Raise CorpusError if a path cannot be imported. Only the start of the content is checked.

    folder: whether the path may be a folder
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
    """Raise CorpusError if a file is damaged, cannot be unpacked, contains an archive, or is compressed twice."""
    with explain_damage(path, "text"), open_decompressed(path) as file:
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
def open_decompressed(path: Path, progress: Progress | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading its decompressed content.

    progress: called after each read with the number of (compressed) bytes read from the file
    """
    with path.open("rb") as raw:
        packing = packing_of(path, raw.peek(START)[:START])
        counted: Any = _CountingReader(raw, progress) if progress else raw
        source: Any = counted
        if packing:
            with _damage():
                source = _Reader(_READERS[packing](path, counted), Bound(path).take)
        with io.BufferedReader(source, 1 << 18) as file:
            yield file


@contextmanager
def unpacked_file(path: Path) -> Iterator[Path]:
    """Yield the path of a file with the decompressed content, for readers that need random access."""
    with path.open("rb") as raw:
        start = raw.read(START)
    if not is_packed(start) or _is_workbook(path, start):
        yield path
        return
    with NamedTemporaryFile(prefix="assay-") as copy, open_decompressed(path) as file:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        yield Path(copy.name)


def _is_workbook(path: Path, start: bytes) -> bool:
    """Return whether a file is an Excel workbook, which is also a ZIP file."""
    if not start.startswith(b"PK"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except BAD_ZIP:
        return False


class _CountingReader(_Reader):
    """A file that reports the number of bytes read from it."""

    def seekable(self) -> bool:
        return bool(self.source.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self.source.seek(offset, whence))

    def tell(self) -> int:
        return int(self.source.tell())


class Bound:
    """A limit on the size of a file's content. The methods raise CorpusError if it is exceeded."""

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
def explain_damage(path: Path, format: str) -> Iterator[None]:
    """Convert errors that occur while a file is read to CorpusError."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorpusError(f"{path} cannot be read as {format}: {first_line(error)}.") from error
    except MemoryError as error:
        raise CorpusError(
            f"There is not enough memory for a page of {path}. Save it with smaller pages, or as JSONL."
        ) from error
    except OSError as error:
        if error.errno is not None:  # from the operating system, such as a missing permission
            raise CorpusError(f"{error.filename or path} cannot be read: {error.strerror}.") from error
        raise CorpusError(
            f"{path} is truncated or damaged ({first_line(error)}), so nothing was imported. Download it again."
        ) from error


def looks_like_utf16(start: bytes) -> bool:
    """Return whether bytes look like UTF-16: they start with its byte order mark, or many even or odd bytes are NUL."""
    fewer, more = sorted((start[::2].count(0), start[1::2].count(0)))
    return start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or (more * 3 > len(start) and more > 2 * fewer)


def first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")


# --- ZIP files that contain one file for each document.


def entries_of(path: Path, suffix: str | tuple[str, ...], longest: int) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Yield the (name, content) of each file with a suffix in a ZIP file, sorted by name. Hidden files are omitted.

    suffix: the suffix, or a tuple of alternatives
    longest: maximum size of a file (bytes); the content of larger files is None

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
