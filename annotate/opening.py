"""Opening a task: draw, make its units, route them; and extending it by a larger draw. All of it or nothing."""

from django.core.exceptions import ValidationError
from django.db import transaction

from annotate.models import LanguageRoute, Task
from annotate.routing import add_units
from annotate.task_types import TASK_TYPES
from corpora.core.languages import LANGUAGES
from corpora.drawing import record, sample_uniform
from corpora.models import Corpus


class TaskError(Exception):
    """A task cannot be opened or extended; says why and what to do. Nothing was changed."""


def check_codes(codes) -> None:
    if unknown := [code for code in codes if code not in LANGUAGES]:
        raise TaskError(
            f"{', '.join(map(repr, unknown))}: not a language code known here, such as de, zh-CN or hi-Latn."
        )


def open_task(
    name: str, corpus: Corpus, size: int, seed: str, *, task_type: str = "language", **fields
) -> tuple[Task, dict[str, int]]:
    """Draw size posts uniformly and open them as a task. Returns it and its units by stage.

    fields: those of Task that are to differ from the task type's and the model's defaults.
    """
    if Task.objects.filter(name=name).exists():
        raise TaskError(f"There is already a task {name!r}. Choose another name, or enlarge it with --extend.")
    kind = TASK_TYPES[task_type]
    defaults = {"title": kind.title, "labels": kind.labels, "guidelines": kind.guidelines}
    task = Task(name=name, task_type=kind.slug, **{**defaults, **fields})
    check_codes([*task.labels, *task.never_agree])
    listed = LanguageRoute.objects.filter(never_agree=True).values_list("language", flat=True)
    task.labels, task.never_agree = sorted(set(task.labels)), sorted({*listed, *task.never_agree})
    try:
        task.full_clean(exclude=["draw"])
    except ValidationError as error:
        faults = (f"{field.replace('_', '-')}: {' '.join(said)}" for field, said in error.message_dict.items())
        raise TaskError(" ".join(faults)) from error
    # The files are read before the transaction, during which nobody else may write.
    sample = sample_uniform(corpus, size=size, seed=seed)
    with transaction.atomic():
        task.draw, items = record(sample)
        task.save()
        return task, add_units(task, items)


def extend_task(task: Task, size: int) -> dict[str, int]:
    """Enlarge a task's draw to size posts of the same frame and seed. Returns the added units by stage."""
    if size <= task.draw.size:
        raise TaskError(f"The task has {task.draw.size:,} posts already; --size must be larger than that.")
    sample = sample_uniform(task.draw.corpus, size=size, seed=task.draw.seed, extends=task.draw)
    with transaction.atomic():
        task.draw, items = record(sample)
        task.save(update_fields=["draw"])
        return add_units(task, items)
