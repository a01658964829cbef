"""Changing a corpus: one process at a time, and what a crash has left in it is swept away."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from corpora.core.errors import CorpusError
from corpora.folders import corpus_dir, reject_name
from corpora.manifest import Manifest, read_manifest

_FOLDERS = ("parts", "votes", "predictions", "rejects")


@contextmanager
def changing(name: str) -> Iterator[Path]:
    """The corpus's directory, for one process at a time to change, rid of what a crash left in it.

    CorpusError where another process has it, or it cannot be written to. Where no corpus came of it, what was made
    for it is removed.
    """
    directory = corpus_dir(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "lock").open("a")
    except OSError as error:
        raise _unwritable(directory, error) from error
    with lock:
        _take(lock, name)
        try:
            for folder in _FOLDERS:
                (directory / folder).mkdir(exist_ok=True)
            _sweep(directory, read_manifest(name), _FOLDERS)
            yield directory
        except OSError as error:
            if str(directory) in str(error):
                raise _unwritable(directory, error) from error
            raise
        finally:
            # What cannot be swept now is swept by the next command, and must not hide why this one failed.
            with suppress(OSError, CorpusError):
                # A list of rejects stays, for whoever is to read why a file was refused.
                manifest = read_manifest(name)
                _sweep(directory, manifest, ("parts", "votes", "predictions"))
                if manifest is None:
                    _remove_empty(directory)


def _take(lock: TextIO, name: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another command may have removed the file, and its corpus that came to nothing, since it was opened.
        free = os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name))
    except (BlockingIOError, FileNotFoundError):
        free = False
    except OSError as error:
        raise _unwritable(Path(lock.name).parent, error) from error
    if not free:
        raise CorpusError(f"Another command is changing corpus {name} just now; wait until it has ended.")


def _unwritable(directory: Path, error: OSError) -> CorpusError:
    return CorpusError(
        f"{directory} cannot be written: {error.strerror or error}. What was there before stays. See to it that you "
        "may write there and that the disk has room, then run the command again."
    )


def _remove_empty(directory: Path) -> None:
    for path in (directory / "rejects").iterdir():
        if not path.stat().st_size:
            path.unlink()
    for folder in _FOLDERS:
        (directory / folder).rmdir()
    (directory / "lock").unlink()
    directory.rmdir()


def _sweep(directory: Path, manifest: Manifest | None, folders: tuple[str, ...]) -> None:
    named: set[str] = set()
    if manifest:
        named |= {f"parts/{part.name}" for part in manifest.parts}
        named |= {f"votes/{votes.name}" for votes in manifest.votes}
        named |= {f"predictions/{predictions.file}" for predictions in manifest.predictions}
        named |= {f"rejects/{reject_name(n)}" for n in range(1, len(manifest.sources) + 1)}
    for folder in folders:
        for path in (directory / folder).iterdir():
            if f"{folder}/{path.name}" not in named:
                path.unlink()
    (directory / "manifest.draft").unlink(missing_ok=True)
    shutil.rmtree(directory / "staging", ignore_errors=True)
