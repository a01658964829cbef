"""The rules for languages, source records and values. Nothing in this package depends on Django.

This module defines the exception for problems that users can fix, and loads plug-ins from installed packages.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

# --- The error class, and the formatting of lists of faults.

NAMED = 5  # A list names up to this many faults, and states the total number.


class CorpusError(Exception):
    """An error that a user can fix. Its message states what is wrong, where, and what to do.

    status: the exit status of a command that ends with this error
    option: the name of the option that must be changed, "" if unknown
    """

    status = 1

    def __init__(self, why: str, option: str = "") -> None:
        super().__init__(why)
        self.option = option


REJECTED = 3  # the exit status if rows were rejected


class TooManyRejected(CorpusError):
    """The error for a file from which nothing was imported, because too many of its rows were rejected."""

    status = REJECTED


def listed(names: list[str], total: int, noun: str) -> str:
    """Return a list of faults for a message, such as `3 ids: a, b, c` or `9 ids, the first: a, b, c, d, e`.

    names: the names of the faults; only the first NAMED are shown
    total: the number of faults
    noun: what the names are, in the singular
    """
    heading = f"{total:,} {noun}" + ("" if total == 1 else "s")
    return f"{heading}{', the first' if total > NAMED else ''}: {', '.join(names[:NAMED])}"


def counted(counts: Mapping[str, int]) -> str:
    """Return the counts of nouns as text, such as `1 collection, 2 arrays`."""
    return ", ".join(f"{count:,} {noun}" + ("" if count == 1 else "s") for noun, count in counts.items())


# --- Plug-ins

GROUPS = ("assay.controls", "assay.formats", "assay.forms", "assay.voters")


@cache
def _entry_points(path: tuple[str, ...]) -> Any:
    """Return the entry points of all groups. They are read once, because each read opens a file of every package.

    path: the folders with packages, `sys.path`
    """
    from importlib.metadata import entry_points  # here, because it makes `assay --version` slow

    return entry_points()


def package_of(plug_in: object) -> str:
    """Return a phrase that names a plug-in's package in messages, or its module if no installed package has it."""
    module = type(plug_in).__module__
    for entry in (entry for group in GROUPS for entry in _entry_points((*sys.path,)).select(group=group)):
        if entry.dist and entry.module.partition(".")[0] == module.partition(".")[0]:
            return f"The package {entry.dist.name}"
    return f"The module {module}"


def install(group: str, register: Callable[[Any], object]) -> None:
    """Load and register the objects that installed packages declare as entry points of a group.

    If an object cannot be loaded or registered, raise CorpusError with the name of the package.
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
