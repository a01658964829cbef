"""Rules for languages, source records and values. Nothing in this package depends on Django.

This module defines CorpusError, the exception for problems that users can fix, and loads plug-ins.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

# --- The error class, and the formatting of lists of faults.

NAMED = 5  # A list names up to this many faults, and states the total number.


class CorpusError(Exception):
    """Raised for a problem that the user can fix. The message states what is wrong, where, and what to do.

    status: exit status of a command that fails with this error
    option: name of the command option to change; "" if unknown
    """

    status = 1

    def __init__(self, why: str, option: str = "") -> None:
        super().__init__(why)
        self.option = option


REJECTED = 3  # exit status if rows were rejected


class TooManyRejected(CorpusError):
    """Raised if so many of a file's rows were rejected that none was imported."""

    status = REJECTED


def listed(names: list[str], total: int, noun: str) -> str:
    """Format a list of faults for a message, such as `3 ids: a, b, c` or `9 ids, the first: a, b, c, d, e`.

    names: faulty ids, labels etc.; only the first NAMED are shown
    total: number of faults, which can exceed len(names)
    noun: what the names are, in the singular, such as `id`
    """
    heading = f"{total:,} {noun}" + ("" if total == 1 else "s")
    return f"{heading}{', the first' if total > NAMED else ''}: {', '.join(names[:NAMED])}"


def counted(counts: Mapping[str, int]) -> str:
    """Format counts keyed by singular noun, such as `1 collection, 2 arrays`."""
    return ", ".join(f"{count:,} {noun}" + ("" if count == 1 else "s") for noun, count in counts.items())


# --- Plug-ins

GROUPS = ("assay.controls", "assay.formats", "assay.forms", "assay.voters")


@cache
def _entry_points(path: tuple[str, ...]) -> Any:
    """Return the entry points of all installed packages. Cached, because finding them opens a file in every package.

    path: `sys.path`, so that the cache is bypassed if it changes
    """
    from importlib.metadata import entry_points  # here, because it makes `assay --version` slow

    return entry_points()


def package_of(plug_in: object) -> str:
    """Return how messages name a plug-in's package, such as `The package assay-xyz`, or its module if it has none."""
    module = type(plug_in).__module__
    for entry in (entry for group in GROUPS for entry in _entry_points((*sys.path,)).select(group=group)):
        if entry.dist and entry.module.partition(".")[0] == module.partition(".")[0]:
            return f"The package {entry.dist.name}"
    return f"The module {module}"


def install(group: str, register: Callable[[Any], object]) -> None:
    """Load the plug-ins that installed packages declare as entry points of a group, and pass each to `register`.

    Raise CorpusError with the package's name if a plug-in cannot be loaded or registered.
    """
    for entry in _entry_points((*sys.path,)).select(group=group):
        try:
            register(entry.load())
        except Exception as error:
            package = f"The package {entry.dist.name}" if entry.dist else "A package"
            raise CorpusError(
                f"{package} cannot be loaded: its entry point {entry.name} = {entry.value} in {group} failed "
                f"({type(error).__name__}: {error}). Fix or uninstall the package."
            ) from error
