"""Where a corpus lives on disk, and what its files are called.

    DATA_DIR/corpora/<name>/manifest.json       what is in the corpus; a file that it does not name is a leftover
                            parts/000001.parquet    posts or records, in the order in which they were imported
                            votes/000001.parquet    the detectors' votes on that part
                            voting/                 votes on a part that is not done yet (prelabel.py)
                            predictions/000001.parquet    what an imported classifier says of all posts
                            scores/000001.parquet    what an imported scorer says of all pairs
                            left_out/000001.parquet    the replies of threads that are no pairs of the corpus, and why
                            rejects/000001.jsonl    what was refused of the first source: file, line, reason

Parts never change. import_corpus.py, import_threads.py, prelabel.py and import_predictions.py write them; manifest.py
writes the manifest.
"""

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from corpora.core.errors import CorpusError
from corpora.system import release


def corpora_dir() -> Path:
    return Path(settings.DATA_DIR) / "corpora"


def corpora_on_disk() -> list[str]:
    """The names of the folders that have a manifest, in order."""
    return sorted(path.parent.name for path in corpora_dir().glob("*/manifest.json"))


def corpus_dir(name: str) -> Path:
    """The corpus's directory, whether it exists or not. CorpusError for an invalid corpus name."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise CorpusError(f"{name!r} cannot be a corpus's name; use 1 to 64 letters, digits, hyphens or underscores.")
    return corpora_dir() / name


def part_name(number: int) -> str:
    return f"{number:06}.parquet"


def reject_name(number: int) -> str:
    return f"{number:06}.jsonl"


def sync(path: Path) -> None:
    """Make sure that a file or directory is on disk before anything refers to it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, text: str) -> None:
    """Write a file outside of the data folder that takes its place as a whole: whatever ends the program meanwhile,
    what was there before stays.
    OSError if it cannot be written.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.write_text(text, encoding="utf-8", newline="")
        release(draft)
        sync(draft)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    sync(path.parent)


def files_in(folder: Path) -> list[Path]:
    """All that a folder holds, by name, but what is hidden; folders in it too."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def name_of(path: Path) -> str:
    """What a file or folder is called, also where it was given as `.`; a link is called what it is called."""
    return os.path.basename(os.path.abspath(path))


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; 0 of anything else."""
    files = files_in(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, as hex; of a folder that of the lines `<SHA-256> <name>` of its files, by name."""
    if path.is_dir():
        lines = (f"{digest_of(file)} {file.name}\n" for file in files_in(path) if file.is_file())
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
