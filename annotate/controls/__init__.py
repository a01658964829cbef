"""The quality controls of this project, each with its hooks (kinds/control.py), and those from outside."""

from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules

from annotate.kinds.control import QualityControl, register


def load() -> None:
    """Register the controls of this folder, and those of installed packages: an entry point in the group
    `assay.controls` names the object.
    """
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    for found in entry_points(group="assay.controls"):
        add(found.load())


def add(control: QualityControl) -> None:
    """Make a control from outside known, and its options attributes of tasks."""
    from annotate.models import Task
    from annotate.models.tasks import option

    register(control)
    for each in control.options:
        setattr(Task, each.name, option(each.name))
