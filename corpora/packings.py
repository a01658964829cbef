"""Compressed files: which format one is in by its first bytes, and its bytes uncompressed.

Those of gzip, zstd (with windows of up to 2 GB, as of Pushshift's dumps), xz and bzip2 are read, and a ZIP file of one
file. The name of a file decides nothing here.
"""

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import pyarrow as pa
import zstandard

from corpora.core.errors import CorpusError

SUFFIXES = {
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
    if (named := SUFFIXES.get(path.suffix.lower())) and start:
        raise CorpusError(f"{path} is named as {named} but does not begin as {named} does; check the file.")
    return None


def _spreadsheet(path: Path) -> CorpusError:
    return CorpusError(f"{path} is a spreadsheet; save it as CSV (“CSV UTF-8”), and name that file.")


def uncompressed(path: Path, packing: str, file: BinaryIO) -> io.RawIOBase:
    """What a compressed file holds. An OSError without a number where it is damaged."""
    try:
        return _Uncompressed(_READERS[packing](path, file))
    except _DAMAGE as error:
        raise OSError(str(error) or type(error).__name__) from error


class _Uncompressed(io.RawIOBase):
    """Reads as any file does, whatever its format calls damage."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self.source.readinto(buffer))
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
