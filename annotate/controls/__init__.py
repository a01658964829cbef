"""The built-in quality controls, one per module. kinds/control.py defines their hooks."""

from importlib import import_module
from pkgutil import iter_modules

from annotate.kinds.control import QualityControl, register
from annotate.kinds.options import OPTIONS
from corpora.core import install


def load() -> None:
    """Register the built-in controls, and the controls of installed packages.

    Installed packages name their controls with entry points in the group `assay.controls`.
    """
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    install("assay.controls", add)


def add(control: QualityControl) -> None:
    """Register a control from an installed package, and add its options to Task as attributes.

    Raise ValueError if tasks already have an attribute with the name of one of its options.
    """
    from annotate.models import Task
    from annotate.models.tasks import option

    for task_option in control.options:
        if hasattr(Task, task_option.name) and OPTIONS.get(task_option.name) is not task_option:
            raise ValueError(
                f"The quality control {control.name!r} has an option named {task_option.name!r}, but tasks already "
                "have an attribute with that name. Rename the option."
            )
    register(control)
    for task_option in control.options:
        setattr(Task, task_option.name, option(task_option.name, task_option.off))
