"""A folder of results that takes its place as a whole: written beside it, synced, renamed.

An existing folder is replaced only if it is an earlier one of the same kind and name and holds nothing else.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from annotate.goldsets.manifest import summed
from corpora.folders import sync

# Kind of folder -> the section of its manifest.json that says whose it is.
SECTIONS = {"export": "task", "export of pairs": "pairs", "import": "imported", "evaluation": "evaluated"}


class FolderError(Exception):
    """The folder cannot be written; the sentence says why. It is as it was."""


@contextlib.contextmanager
def replacing(out: Path, kind: str, name: str) -> Iterator[Path]:
    """A new folder to write into, which becomes `out` if the block ends well; otherwise nothing is left of it.

    FolderError if `out` holds something other than an earlier one of that kind and name, or cannot be written.
    """
    partial = None
    try:
        _check_replaceable(out, kind, name)
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        partial.chmod(0o755)
        yield partial
        for path in (*partial.rglob("*"), partial):
            sync(path)
        _replace(out, partial)
    except OSError as error:
        raise FolderError(
            f"{error.filename or out} cannot be written: {error.strerror}. Nothing was changed."
        ) from error
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)


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


def _replace(out: Path, partial: Path) -> None:
    if not out.exists():
        os.replace(partial, out)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        os.replace(out, aside / "old")
        try:
            os.replace(partial, out)
        except OSError:
            os.replace(aside / "old", out)
            raise
        shutil.rmtree(aside / "old", ignore_errors=True)
    finally:
        with contextlib.suppress(OSError):
            aside.rmdir()
