"""The actions by their names, which are those of their modules."""

import importlib
import pkgutil
from functools import cache

from annotate import actions
from annotate.actions.action import Action


@cache
def by_name() -> dict[str, Action]:
    modules = [
        importlib.import_module(f"{actions.__name__}.{each.name}")
        for each in pkgutil.iter_modules(actions.__path__)
        if each.name != "working"  # which asks here
    ]
    return {module.ACTION.name: module.ACTION for module in modules if hasattr(module, "ACTION")}
