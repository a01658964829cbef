"""Who may read the files that the program makes.

What lies in the data folder is its owner's alone: texts, judgments, hashes of passwords. What somebody has written
elsewhere, such as an exported set, gets the rights that the umask of their shell gives, as of any other program.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UMASK = 0o077
FOLDER = 0o700  # the data folder


def _umask() -> int:
    """The system tells it only to whoever sets another."""
    found = os.umask(UMASK)
    os.umask(found)
    return found


_OF_SHELL = _umask()


@contextmanager
def private() -> Iterator[None]:
    """Whatever this process makes meanwhile, in all of its threads, is its owner's alone."""
    before = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(before)


def release(path: Path) -> None:
    """Give a file or folder that lies outside of the data folder the rights of the shell's umask."""
    path.chmod((0o777 if path.is_dir() else 0o666) & ~_OF_SHELL)
