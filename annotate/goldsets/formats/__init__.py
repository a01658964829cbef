"""Published formats of exported sets.

A kind of question names the formats of its sets (`Publication.formats`). A module registers its formats on import. To
add a format, write a module in this folder, or a package with an entry point in the group `assay.formats`. No other
code changes, unless predictions for its files can be evaluated: then a second module does that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any

from annotate.kinds.file_sections import FORMATS as LAYOUTS
from annotate.kinds.file_sections import Layout


@dataclass(frozen=True)
class Format:
    """A published format.

    name: name used by kinds.
    title: name used in manifests and reports.
    write: function `write(folder, written, export)` that writes the files and returns their entry in the manifest; see
        below.
    layouts: layouts of lines or files by name, in addition to those in `kinds/file_sections.py`; kinds defined in a
        file must fit one.
    measured_by: module with a function `grade(predictions, sets, against)` that reports on predictions; empty if there
        are none.
    of_several: whether predictions may be for several sets at once.

    `write` gets the rows (`exporter.Written`) and the export (`export.Export`). Its result has the title as `format`,
    the number of rows by file as `files`, and any other values that readers need.
    """

    name: str
    title: str
    write: Callable[..., dict[str, Any]]
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    measured_by: str = ""
    of_several: bool = False


FORMATS: dict[str, Format] = {}


def register(format: Format) -> None:
    """Register a format by name. Raises ValueError if the name is taken."""
    if FORMATS.setdefault(format.name, format) is not format:
        raise ValueError(f"There is already a format named {format.name!r}; give this one another name.")
    if format.layouts:
        LAYOUTS[format.name] = format.layouts


def load() -> None:
    """Import the modules of all formats, which register themselves."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    for entry in entry_points(group="assay.formats"):
        entry.load()


def measured(title: str) -> Format | None:
    """Return the format with a title, or None if its predictions cannot be evaluated."""
    return next((each for each in FORMATS.values() if each.title == title and each.measured_by), None)
