"""Task settings that can be changed while annotators work: the title, the labels, and options that aren't fixed.

A fixed option cannot be changed once the task is open, because draws and published figures depend on it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.db import transaction

from annotate.core.option import Option, OptionError, format_value
from annotate.core.refusals import InvalidAnswer, WrongStage
from annotate.kinds.designs import DESIGNS
from annotate.kinds.options import OPTIONS
from annotate.models import Task
from annotate.work.moves import lock_task
from annotate.work.routes import is_language, to_language_code, unknown_code

TITLE, LABELS = "title", "labels"
LONGEST = 200


def changeable(task: Task) -> list[Option]:
    """Return the options of the task's kind that can be changed."""
    return [OPTIONS[name] for name in task.kind.options if not OPTIONS[name].fixed]


def fixed(task: Task) -> list[Option]:
    """Return the options that cannot be changed once the task is open."""
    return [OPTIONS[name] for name in task.kind.options if OPTIONS[name].fixed]


def may_relabel(task: Task) -> bool:
    """Return whether the labels can be changed.

    They cannot be changed if each language has a separate draw, or if the task's kind defines them.
    """
    return task.kind.routing.is_routed and not DESIGNS[task.draw.design].asks_each


def is_extendable(task: Task) -> bool:
    """Return whether more items can be drawn for the task."""
    return not any(DESIGNS[draw.design].not_extended for draw in task.draws.all())


def displayed_value(task: Task, name: str) -> str:
    """Return a setting's value as shown on pages."""
    value = getattr(task, name)
    if value is None:
        return "as many as needed"
    return " ".join(value) if name == LABELS else value if name == TITLE else format_value(value)


@transaction.atomic
def change(task: Task, values: Mapping[str, Any], was: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Change settings of a task, all or none. Returns the names of the settings that changed.

    values: the new value of each setting, by name. Labels are codes; options may be typed values or texts to parse.
    was: the value that the manager was shown, by name, as returned by `displayed_value`.

    Raise InvalidAnswer if a value is invalid, and WrongStage if a setting has changed since it was shown.
    """
    stored = lock_task(task)
    if stale := [name for name in values if name in was and was[name] != displayed_value(stored, name)]:
        changed_settings = ", ".join(f"{name.replace('_', ' ')} ({displayed_value(stored, name)})" for name in stale)
        raise WrongStage(
            f"Somebody has changed {changed_settings} since you opened this page, so nothing was saved. Your input is "
            "still here: check it, and save again."
        )
    old_values = {name: getattr(stored, name) for name in values}
    for name, value in values.items():
        setattr(stored, name, _checked(stored, name, value))
    changed = [name for name in values if getattr(stored, name) != old_values[name]]
    for control in stored.kind.hooks["check_change"]:
        control.check_change(stored, changed)
    if changed:
        stored.save(update_fields=[TITLE, LABELS, "options"])
    return changed


def _checked(task: Task, name: str, value: Any) -> Any:
    if name == TITLE:
        return _title(value)
    if name == LABELS:
        return _labels(task, value)
    if name not in {option.name for option in changeable(task)}:
        raise InvalidAnswer(f"{name} was fixed when the task was opened.")
    try:
        return OPTIONS[name].value(value)
    except OptionError as error:
        raise InvalidAnswer(str(error)) from error


def _title(title: str) -> str:
    if not title.strip():
        raise InvalidAnswer("The title is empty. Enter the title that annotators see.")
    if len(title) > LONGEST or not title.isprintable():
        raise InvalidAnswer(f"The title is longer than {LONGEST} characters or contains invisible characters.")
    return title.strip()


def _labels(task: Task, codes: list[str]) -> list[str]:
    if not may_relabel(task):
        raise InvalidAnswer("The labels were fixed when the task was opened.")
    if not codes:
        raise InvalidAnswer("Enter at least one label.")
    codes = list(map(to_language_code, codes))
    for code in codes:
        if not is_language(code):
            raise InvalidAnswer(unknown_code(code))
        if not task.kind.knows(code):
            raise InvalidAnswer(f"The language {code} is defined only in another task's file.")
    return task.labels if set(codes) == set(task.labels) else sorted(set(codes))
