"""Published formats of exported sets. A kind of question names the formats of its sets (`Publication.formats`).

A module registers its formats when it is imported. To add one, write a module in this folder, or one in a package whose
entry point in the group `assay.formats` names it. Nothing else needs to know it, unless predictions are made for its
files: then a second module measures them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any

from annotate.kinds.layouts import FORMATS as LAYOUTS
from annotate.kinds.layouts import Layout


@dataclass(frozen=True)
class Format:
    """name: as kinds name it. title: as manifests and reports name it.
    write(folder, written, export): writes the files from the rows in the set, and returns what the manifest says of
    them: the title as `format`, the files with their rows as `files`, and whatever else readers need. written: the
    rows (table.py). export: the task with its kind (export.py).
    layouts: the contents of its lines or files by name, which a kind made of a file must fit, beside those of
    kinds/layouts.py.
    measured_by: the module whose `grade(predictions, sets, against)` makes the report on predictions for its files;
    empty if there are none. of_several: whether predictions may be for several sets at once.
    """

    name: str
    title: str
    write: Callable[..., dict[str, Any]]
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    measured_by: str = ""
    of_several: bool = False


FORMATS: dict[str, Format] = {}


def register(format: Format) -> None:
    """Make a format known by its name. ValueError if another one has that name already."""
    if FORMATS.setdefault(format.name, format) is not format:
        raise ValueError(f"There is already a format named {format.name!r}; give this one another name.")
    if format.layouts:
        LAYOUTS[format.name] = format.layouts


def load() -> None:
    """Import the modules of all formats, which register them."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    for entry in entry_points(group="assay.formats"):
        entry.load()


def measured(title: str) -> Format | None:
    """The format with a title, if predictions for its files can be measured."""
    return next((each for each in FORMATS.values() if each.title == title and each.measured_by), None)
