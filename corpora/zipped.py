"""Documents that come as a ZIP file of files, one each."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from corpora.core.errors import CorpusError
from corpora.files import Bound


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
