"""A task before it has units: its fields and options, checked. opening.py draws and makes the units."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from annotate.core.option import OptionError
from annotate.kinds import Kind
from annotate.kinds.options import OPTIONS
from annotate.models import LanguageRoute, Task


class TaskError(Exception):
    """A task cannot be opened or extended; says why and what to do. Nothing was changed."""


def new_task(name: str, kind: Kind, title: str, labels: Sequence[str], given: Mapping[str, Any]) -> Task:
    """A task that is not saved yet. given: the options that differ from the kind's. TaskError if refused."""
    if Task.objects.filter(name=name).exists():
        raise TaskError(f"There is already a task {name!r}. Choose another name, or enlarge it with --extend.")
    task = imagined_task(kind, labels, given)
    task.name, task.title = name, title or kind.title
    check_task(task)
    return task


def imagined_task(kind: Kind, labels: Sequence[str], given: Mapping[str, Any]) -> Task:
    """A task without a name, to ask what its options would make of posts. TaskError if they are refused."""
    options = with_defaults(kind, given)
    codes = list(labels or kind.labels)
    if kind.routing.is_routed:
        check_codes(kind, codes)
        codes = sorted(set(codes))
    if "audit_recheck" in options:
        listed = LanguageRoute.objects.filter(never_agree=True).values_list("language", flat=True)
        options["never_agree"] = sorted(listed)
    task = Task(kind_slug=kind.slug, kind_file=kind.source, labels=codes)
    task.options = options
    try:
        for control in kind.quality_controls:
            control.prepare(task)
    except ValueError as error:
        raise TaskError(str(error)) from error
    return task


def classes_and_answers(kind: Kind, classes: Sequence[str]) -> list[str]:
    """What may be answered where the draw names the classes: these, then the kind's own answers."""
    if taken := [label for label in classes if label in kind.answers]:
        raise TaskError(
            f"The class {taken[0]} is called as an answer of {kind.slug} that means something else; give the class "
            "another label."
        )
    return [*classes, *kind.answers]


@contextmanager
def made_once(name: str) -> Iterator[None]:
    """TaskError where somebody else has made meanwhile what is made in here; the caller has opened a transaction."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        raise TaskError(f"Somebody else has just made a task {name!r}. Run the command again.") from error


def with_defaults(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a kind with their values. TaskError for an option that the kind does not have, or an impossible
    value.
    """
    if strange := [OPTIONS[name].spelled for name in given if name not in kind.options]:
        raise TaskError(f"{', '.join(strange)}: not an option of {kind.slug} tasks. Leave it out.")
    values = {name: OPTIONS[name].default for name in kind.options} | dict(kind.defaults) | dict(given)
    try:
        checked = {name: OPTIONS[name].check(value) for name, value in values.items()}
    except OptionError as error:
        raise TaskError(str(error)) from error
    if checked.get("aggregation", "") not in ("", *kind.form.aggregations):
        raise TaskError(
            f"The labels of {kind.slug} are not grades, so they have no {checked['aggregation']}. Leave --aggregation "
            "out."
        )
    if fault := kind.rules.faults(checked):
        raise TaskError(fault)
    return checked


def check_task(task: Task) -> None:
    """TaskError with what is wrong with its fields."""
    try:
        task.full_clean()
    except ValidationError as error:
        faults = (_fault(field, fault) for field, found in error.error_dict.items() for fault in found)
        raise TaskError(" ".join(faults)) from error


# The code of what Django finds wrong with a field -> what we say of it.
FAULTS = {
    "blank": "is empty; give it one.",
    "null": "is missing; give it one.",
    "invalid": "has characters that it cannot have; use letters, digits, hyphens and underscores.",
    "null_characters_not_allowed": "holds a NUL character, which databases refuse.",
    "unique": "is taken; choose another.",
}


def _fault(field: str, fault: ValidationError) -> str:
    what = f"The task's {field.replace('_', ' ')}"
    if fault.code == "max_length":
        return f"{what} has {fault.params['show_value']:,} characters; {fault.params['limit_value']:,} are the most."
    return f"{what} {FAULTS[fault.code]}" if fault.code in FAULTS else f"{what}: {' '.join(fault.messages)}"


def check_codes(kind: Kind, codes: Sequence[str]) -> None:
    if unknown := [code for code in codes if not kind.known(code)]:
        raise TaskError(
            f"{', '.join(map(repr, unknown))}: not a language code known here, such as de, zh-CN or hi-Latn. A file "
            "given with --kind can add languages, each in a table [languages.CODE]."
        )
