"""The quality controls of this project, each with its hooks (kinds/control.py), and those from outside."""

from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules


def load() -> None:
    """Register the controls of this folder, and those of installed packages: an entry point in the group
    `assay.controls` names a module that registers its own.
    """
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    for found in entry_points(group="assay.controls"):
        found.load()
