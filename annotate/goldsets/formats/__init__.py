"""Published formats of exported sets.

Each kind of question names the formats of its sets (`Publication.formats`). To add a format, write a module in this
folder, or a package with an entry point in the group `assay.formats`. The module registers its formats when it is
imported, so no other code needs to change. If predictions can be evaluated on the format's files, a second module does
this (`Format.measured_by`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from annotate.kinds.file_sections import FORMATS as LAYOUTS
from annotate.kinds.file_sections import Layout
from corpora.core import install


@dataclass(frozen=True)
class Format:
    """A published format.

    name: name of the format in the definitions of kinds.
    title: name in manifests and reports.
    write: function `write(folder, export)` that writes the files and returns their manifest entry; see below.
    layouts: layouts of a line or file by name, added to those in `kinds/file_sections.py`. A kind that is defined in a
        file must match one of them.
    measured_by: module whose function `grade(predictions, sets, against)` evaluates predictions; empty if predictions
        cannot be evaluated. If the user chooses a split, the function also receives `split`.
    of_several: whether predictions for several sets can be evaluated at once.

    `write` receives the folder of the set and the export (`export.Export`), whose method `written_rows` reads the rows.
    It returns a dict with the format's title as `format`, the number of rows by file as `files`, and any other values
    that readers of the manifest need.
    """

    name: str
    title: str
    write: Callable[..., dict[str, Any]]
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    measured_by: str = ""
    of_several: bool = False


# The registered formats. Look them up with `formats`, which first registers the built-in formats.
FORMATS: dict[str, Format] = {}


def register(format: Format) -> None:
    """Register a format by name. Raise ValueError if a different format has the same name."""
    if FORMATS.setdefault(format.name, format) is not format:
        raise ValueError(f"There is already a format named {format.name!r}. Choose another name.")
    if format.layouts:
        LAYOUTS[format.name] = format.layouts


def load() -> None:
    """Import the formats of installed packages, so that they register themselves and kinds can use their layouts."""
    install("assay.formats", lambda module: None)


@cache
def _load_built_in() -> None:
    """Import the modules of the built-in formats, so that they register themselves.

    This is done when a set is first exported or evaluated, because most commands need no formats.
    """
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


def formats() -> Mapping[str, Format]:
    """Return all formats by name."""
    _load_built_in()
    return FORMATS


def evaluable_format(title: str) -> Format | None:
    """Return the format with a title, or None if predictions cannot be evaluated on it."""
    return next((format for format in formats().values() if format.title == title and format.measured_by), None)
