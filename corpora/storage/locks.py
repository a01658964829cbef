"""The lock that a command must hold to change a corpus, and the removal of files that a crash has left behind."""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from corpora.core import CorpusError
from corpora.sources.rejects import TooManyRejected
from corpora.storage.layout import Manifest, corpus_dir, read_manifest, reject_name

_FOLDERS = ("parts", "votes", "predictions", "scores", "left_out", "rejects")


@contextmanager
def changing(name: str) -> Iterator[Path]:
    """Lock a corpus, remove leftover files, and yield its directory.

    If the corpus still has no manifest at the end of the block, everything that was created for it is removed.

    Raise CorpusError if another process holds the lock, or if the directory cannot be written.
    """
    directory = corpus_dir(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "lock").open("a")
    except OSError as error:
        raise _unwritable(directory, error) from error
    with lock:
        _acquire(lock, name)
        try:
            for folder in _FOLDERS:
                (directory / folder).mkdir(exist_ok=True)
            _sweep(directory, read_manifest(name))
            yield directory
        except OSError as error:
            if str(directory) in str(error):
                raise _unwritable(directory, error) from error
            raise
        finally:
            # Errors are suppressed here, because they would hide the error that was raised in the block. The next
            # command tries again to remove the files.
            with suppress(OSError, CorpusError):
                # Keep the list of rejected rows so that users can read it, unless a different CorpusError was raised.
                raised = sys.exception()
                keep_lists = isinstance(raised, TooManyRejected) or not isinstance(raised, CorpusError)
                manifest = read_manifest(name)
                _sweep(directory, manifest, lists_stay=keep_lists)
                if manifest is None:
                    _remove_empty(directory)


def _acquire(lock: TextIO, name: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # After this command opened the lock file, another command may have deleted the file with an empty corpus.
        free = os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name))
    except (BlockingIOError, FileNotFoundError):
        free = False
    except OSError as error:
        raise _unwritable(Path(lock.name).parent, error) from error
    if not free:
        raise CorpusError(f"Another command is changing the corpus {name}. Wait until it has finished.")


def _unwritable(directory: Path, error: OSError) -> CorpusError:
    return CorpusError(
        f"Cannot write to {directory}: {error.strerror or error}. The existing files are unchanged. Check the folder's "
        "permissions and the free disk space, and run the command again."
    )


def _remove_empty(directory: Path) -> None:
    for path in (directory / "rejects").iterdir():
        if not path.stat().st_size:
            path.unlink()
    for folder in _FOLDERS:
        (directory / folder).rmdir()
    (directory / "lock").unlink()
    directory.rmdir()


def _sweep(directory: Path, manifest: Manifest | None, *, lists_stay: bool = False) -> None:
    """Remove the files that the manifest does not name.

    lists_stay: keep lists of rejected rows that are not empty
    """
    listed: set[str] = set()
    if manifest:
        listed |= {f"parts/{part.name}" for part in manifest.parts}
        listed |= {f"votes/{votes.name}" for votes in manifest.votes}
        listed |= {f"predictions/{predictions.file}" for predictions in manifest.predictions}
        listed |= {f"scores/{scores.file}" for scores in manifest.scores}
        listed |= {f"left_out/{manifest.threads.file}"} if manifest.threads else set()
        listed |= {f"rejects/{reject_name(n)}" for n in range(1, len(manifest.sources) + 1)}
    for folder in _FOLDERS:
        for path in (directory / folder).iterdir():
            stays = lists_stay and folder == "rejects" and path.stat().st_size
            if f"{folder}/{path.name}" not in listed and not stays:
                path.unlink()
    if manifest is None:  # The corpus was deleted, so unfinished votes on it are not needed.
        shutil.rmtree(directory / "voting", ignore_errors=True)
    (directory / "manifest.draft").unlink(missing_ok=True)
    shutil.rmtree(directory / "staging", ignore_errors=True)
