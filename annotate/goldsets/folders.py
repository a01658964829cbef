"""A folder of results that takes its place as a whole: written beside it, synced, renamed.

An existing folder is replaced only if it is an earlier one of the same kind and name and holds nothing else. What a
command that was killed has left beside it is put away by the next one that writes there.
"""

import contextlib
import fcntl
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from annotate.goldsets.manifest import summed
from corpora.storage.layout import sync
from corpora.system import release

# Kind of folder -> the section of its manifest.json that says whose it is.
SECTIONS = {"export": "task", "export of pairs": "pairs", "import": "imported", "evaluation": "evaluated"}


class FolderError(Exception):
    """The folder cannot be written; the sentence says why. It is as it was."""


@contextlib.contextmanager
def replacing(out: Path, kind: str, name: str) -> Iterator[Path]:
    """A new folder to write into, which becomes `out` if the block ends well; otherwise nothing is left of it.

    FolderError if `out` holds something other than an earlier one of that kind and name, or cannot be written.
    """
    try:
        _sweep(out)
        _check_replaceable(out, kind, name)
        out.parent.mkdir(parents=True, exist_ok=True)
        with _beside(out) as ours:
            partial = ours / NEW
            partial.mkdir()
            yield partial
            for path in (*partial.rglob("*"), partial):
                release(path)
                sync(path)
            _replace(out, ours)
        sync(out.parent)
    except OSError as error:
        raise FolderError(
            f"{error.filename or out} cannot be written: {error.strerror}. Nothing was changed."
        ) from error


# In the folder beside: what is written, and what it takes the place of.
NEW, OLD = "new", "old"


def _prefix(out: Path) -> str:
    return f".{out.name}.assay-"


@contextlib.contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """A hidden folder beside `out` for as long as the block lasts, which is locked meanwhile."""
    ours = Path(tempfile.mkdtemp(prefix=_prefix(out), dir=out.parent))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, ours, ignore_errors=True)
        # Where there are no locks, what is left is not put away either.
        with contextlib.suppress(OSError):
            stack.enter_context(_locked(ours))
        yield ours


def _sweep(out: Path) -> None:
    """Remove what a command that was killed has left; what it had put aside without anything in its place goes back."""
    for left in out.parent.glob(f"{glob.escape(_prefix(out))}*"):
        # Not while another command is at work there, or has just ended.
        with contextlib.suppress(OSError), _locked(left):
            if (left / OLD).exists() and not out.exists():
                os.replace(left / OLD, out)
            shutil.rmtree(left)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """OSError if somebody else has it, or the file system knows no locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _check_replaceable(out: Path, kind: str, name: str) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise FolderError(f"{out} is a file; --out must name a folder.")
    if not any(out.iterdir()):
        return
    try:
        earlier = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        whose = earlier[SECTIONS[kind]]["name"]
        files = {"manifest.json", *earlier["files"], *summed(out, earlier["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        whose, files = None, set()
    if whose != name:
        raise FolderError(f"{out} holds something other than an {kind} of {name}; choose another folder.")
    # The folder is replaced as a whole, and anything that people have put beside its files would be lost.
    known = {PurePosixPath(file) for file in files}
    known |= {parent for file in known for parent in file.parents}
    there = {PurePosixPath(path.relative_to(out).as_posix()) for path in out.rglob("*")}
    if strangers := sorted(str(path) for path in there - known if path.parent in known):
        named = ", ".join(strangers)
        raise FolderError(
            f"{out} holds files that are not part of the {kind}: {named}. Move it away, or choose another folder."
        )


def _replace(out: Path, ours: Path) -> None:
    if not out.exists():
        os.replace(ours / NEW, out)
        return
    os.replace(out, ours / OLD)
    try:
        os.replace(ours / NEW, out)
    except OSError:
        os.replace(ours / OLD, out)
        raise


def without_empty(path: Path) -> bool:
    """Takes away a file without lines, since polars refuses to read one. Returns whether it did."""
    is_empty = not path.stat().st_size
    if is_empty:
        path.unlink()
    return is_empty
