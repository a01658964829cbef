"""Opening a task: draw, make its units, route them; and extending it by a larger draw. All of it or nothing."""

from dataclasses import dataclass

from django.db import transaction

from annotate.models import LanguageRoute, Task
from annotate.routing import add_units
from annotate.task_types import TASK_TYPES
from corpora.core.languages import LANGUAGES
from corpora.drawing import draw_uniform
from corpora.errors import CorpusError
from corpora.models import Corpus

LEAST_LETTERS = 20


@dataclass(frozen=True)
class Settings:
    """How a task is to be opened. None takes the task type's or the model's default."""

    task_type: str = "language"
    title: str = ""
    labels: tuple[str, ...] = ()
    guidelines: str = ""
    least_letters: int = LEAST_LETTERS
    never_agree: tuple[str, ...] = ()
    redundancy: int = 1
    rounds: int = 2
    skip_limit: int = 1
    least_level: int = 4


class TaskError(Exception):
    """A task cannot be opened or extended; says why and what to do. Nothing was changed."""


def check_codes(codes) -> None:
    if unknown := [code for code in codes if code not in LANGUAGES]:
        raise TaskError(
            f"{', '.join(map(repr, unknown))}: no language code known here. Codes are as in de, zh-CN or hi-Latn."
        )


@transaction.atomic
def open_task(name: str, corpus: Corpus, size: int, seed: str, settings: Settings) -> tuple[Task, dict[str, int]]:
    """Draw size posts uniformly and open them as a task. Returns it and its units by stage."""
    if Task.objects.filter(name=name).exists():
        raise TaskError(f"There is already a task {name!r}. Choose another name, or enlarge it with --extend.")
    check_codes([*settings.labels, *settings.never_agree])
    task_type = TASK_TYPES[settings.task_type]
    draw, items = draw_uniform(corpus, size=size, seed=seed)
    listed = LanguageRoute.objects.filter(never_agree=True).values_list("language", flat=True)
    task = Task.objects.create(
        name=name,
        title=settings.title or task_type.title,
        task_type=task_type.slug,
        draw=draw,
        guidelines=settings.guidelines or task_type.guidelines,
        labels=sorted(set(settings.labels or task_type.labels)),
        least_letters=settings.least_letters,
        never_agree=sorted({*listed, *settings.never_agree}),
        redundancy=settings.redundancy,
        rounds=settings.rounds,
        skip_limit=settings.skip_limit,
        least_level=settings.least_level,
    )
    return task, add_units(task, items)


@transaction.atomic
def extend_task(task: Task, size: int) -> dict[str, int]:
    """Enlarge a task's draw to size posts of the same frame and seed. Returns the added units by stage."""
    task = Task.objects.select_for_update().get(pk=task.pk)
    if size <= task.draw.size:
        raise TaskError(f"The task has {task.draw.size:,} posts already; --size must be larger than that.")
    try:
        draw, items = draw_uniform(task.draw.corpus, size=size, seed=task.draw.seed, extends=task.draw)
    except CorpusError as error:
        raise TaskError(str(error)) from error
    task.draw = draw
    task.save(update_fields=["draw"])
    return add_units(task, items)
