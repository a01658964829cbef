"""The built-in quality controls, one per module. kinds/control.py defines the hooks that they implement."""

from importlib import import_module
from pkgutil import iter_modules

from annotate.kinds.control import QualityControl, register
from annotate.kinds.options import OPTIONS
from corpora.core import install


def load() -> None:
    """Register the built-in controls and those of installed packages.

    Installed packages name their controls with entry points in the group `assay.controls`.
    """
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    install("assay.controls", add)


def add(control: QualityControl) -> None:
    """Register a control of an installed package, and add its options to Task as attributes.

    Raise ValueError if tasks already have an option or another attribute with the name of one of its options.
    """
    from annotate.models import Task
    from annotate.models.tasks import option

    for each in control.options:
        if hasattr(Task, each.name) and OPTIONS.get(each.name) is not each:
            raise ValueError(
                f"The quality control {control.name!r} has an option named {each.name!r}, and tasks already have "
                f"something of that name; give the option another name."
            )
    register(control)
    for each in control.options:
        setattr(Task, each.name, option(each.name))
