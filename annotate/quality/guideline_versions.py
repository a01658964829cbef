"""Which version of a task's guidelines holds in which language; and new versions, which never change an old one."""

from collections.abc import Iterable, Mapping

from django.db import transaction
from django.db.models import Q, QuerySet

from annotate.core.guidelines import fault
from annotate.core.refusals import InvalidAnswer, NotFound, WrongStage
from annotate.models import Guidelines, Qualification, Task

ENGLISH = "en"


def newest_of(task: Task) -> dict[str, Guidelines]:
    """Language -> the version that holds in it."""
    newest: dict[str, Guidelines] = {}
    for version in task.guidelines.order_by("language", "-major", "-minor"):
        newest.setdefault(version.language, version)
    return newest


def in_language(language: str, newest: Mapping):
    """The version that holds in a language: its own, else the English one, else any other; None if there are none."""
    return newest.get(language) or newest.get(ENGLISH) or next(iter(newest.values()), None)


def current(task: Task, language: str = ENGLISH) -> Guidelines | None:
    """The newest version in a language; if there is none in it, the English one, or any other."""
    return in_language(language, newest_of(task))


def versions(task: Task, language: str) -> list[Guidelines]:
    """All versions in a language, the newest first."""
    return list(task.guidelines.filter(language=language).order_by("-major", "-minor"))


def languages(task: Task) -> list[str]:
    """The languages in which there are guidelines, by code."""
    return sorted(newest_of(task))


def majors(task: Task) -> dict[str, int]:
    """Each language of the task's records -> the major version under which its test must be passed."""
    return majors_of([task])[task.pk]


def majors_of(tasks: Iterable[Task]) -> dict[int, dict[str, int]]:
    """The same for several tasks, by their keys."""
    listed = list(tasks)
    # Without the texts, which are long.
    rows = Guidelines.objects.filter(task__in=listed).order_by().values_list("task_id", "language", "major")
    return holding(listed, rows if listed else ())


def holding(listed: list[Task], versions: Iterable[tuple[int, str, int]]) -> dict[int, dict[str, int]]:
    """The same from rows that have been read: task, language and major version of each version of the guidelines."""
    newest: dict[int, dict[str, int]] = {task.pk: {} for task in listed}
    for task, language, major in sorted(versions):
        newest[task][language] = max(major, newest[task].get(language, 0))
    return {
        task.pk: {language: in_language(language, newest[task.pk]) or 0 for language in task.languages}
        for task in listed
    }


def add_first(task: Task, texts: Mapping[str, str]) -> None:
    """Store version 1.0 in each language. The task has no guidelines yet."""
    Guidelines.objects.bulk_create(
        Guidelines(task=task, language=language, text=text) for language, text in texts.items()
    )


def check_version(task: Task, language: str, text: str) -> None:
    """NotFound or InvalidAnswer if the task cannot have these guidelines."""
    if task.languages and language not in {*task.languages, ENGLISH}:
        raise NotFound(f"This task has no records in {language!r}, so nobody would read these guidelines.")
    if not text.strip():
        raise InvalidAnswer("The guidelines are empty. Write down what annotators should go by.")
    if wrong := fault(text):
        raise InvalidAnswer(f"The guidelines {wrong}.")


@transaction.atomic
def new_version(task: Task, language: str, text: str, *, major: bool, after: int | None = None) -> Guidelines:
    """Add a version after the one that holds in a language; after a major one, everybody must take the test again.

    A first minor version in a language says the same as the English one that held there, and has its number. after:
    the key of the version with which the text began; WrongStage if another one has come to hold since.
    """
    check_version(task, language, text)
    # Versions are added one after another; otherwise two could get the same number.
    Task.objects.select_for_update(no_key=True).get(pk=task.pk)
    held = current(task, language)
    if after is not None and held is not None and held.pk != after:
        raise WrongStage(
            f"Somebody has added version {held.version} meanwhile, and your text began with the one before. Look at "
            "what has changed, put it into your text if it is right, and add it again."
        )
    if held is None:
        number = (1, 0)
    elif major:
        number = (held.major + 1, 0)
    else:
        number = (held.major, held.minor + (held.language == language))
    return Guidelines.objects.create(task=task, language=language, major=number[0], minor=number[1], text=text)


def qualified(task: Task) -> QuerySet[Qualification]:
    """The qualifications that hold: those under the major version of the guidelines that holds in their language."""
    holding = Q(pk=None)
    for language, major in majors(task).items():
        holding |= Q(language=language, major=major)
    return task.qualifications.filter(holding).order_by()


def qualified_in(tasks: Iterable[Task]) -> dict[int, dict[str, set[int]]]:
    """The same for several tasks, in as many statements as for one: task -> language -> ids of annotators."""
    listed = list(tasks)
    found: dict[int, dict[str, set[int]]] = {task.pk: {} for task in listed}
    if not listed:
        return found
    holding = majors_of(listed)
    held = Qualification.objects.filter(task__in=listed).order_by()
    for task, language, major, person in held.values_list("task_id", "language", "major", "annotator_id"):
        if holding[task].get(language) == major:
            found[task].setdefault(language, set()).add(person)
    return found
