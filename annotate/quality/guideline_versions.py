"""Versions of a task's guidelines. Each language has its own versions. Existing versions never change."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet, Value

from annotate.core.refusals import InvalidAnswer, NotFound, WrongStage
from annotate.kinds.file_sections import guidelines_fault
from annotate.models import Annotator, Guidelines, Qualification, Task
from corpora.core.language_tags import closest

ENGLISH = "en"
Version = TypeVar("Version")


def newest_of(task: Task) -> dict[str, Guidelines]:
    """Return the newest version of the guidelines in each language."""
    newest: dict[str, Guidelines] = {}
    for version in task.guidelines.order_by("language", "-major", "-minor"):
        newest.setdefault(version.language, version)
    return newest


def in_language(language: str, newest: Mapping[str, Version]) -> Version | None:
    """Return the guidelines in force for a language; None if there are none in any language.

    The first choice is this language, or the closest language that its speakers understand, such as `pt` for `pt-BR`.
    The second choice is English, and the third is any other language.

    newest: newest version by language.
    """
    return newest.get(closest(newest, language)) or newest.get(ENGLISH) or next(iter(newest.values()), None)


def current(task: Task, language: str = ENGLISH) -> Guidelines | None:
    """Return a task's guidelines in force for a language, see `in_language`."""
    return in_language(language, newest_of(task))


def versions(task: Task, language: str) -> list[Guidelines]:
    """Return all versions of the guidelines in a language, newest first."""
    return list(task.guidelines.filter(language=language).order_by("-major", "-minor"))


def languages(task: Task) -> list[str]:
    """Return the sorted language codes of a task's guidelines."""
    return sorted(newest_of(task))


def majors(task: Task) -> dict[str, int]:
    """Return the major version of the guidelines in force, by language of the task's items; 0 without guidelines.

    Annotators must pass the test under this version.
    """
    return majors_of([task])[task.pk]


def majors_of(tasks: Iterable[Task]) -> dict[int, dict[str, int]]:
    """Return the result of `majors` for several tasks, by task key."""
    all_tasks = list(tasks)
    # Don't load the texts, which are long.
    rows = Guidelines.objects.filter(task__in=all_tasks).order_by().values_list("task_id", "language", "major")
    return majors_in_force(all_tasks, rows if all_tasks else ())


def majors_in_force(tasks: list[Task], versions: Iterable[tuple[int, str, int]]) -> dict[int, dict[str, int]]:
    """Return the result of `majors_of`, without a query.

    versions: (task key, language, major version) of each version of the guidelines.
    """
    newest: dict[int, dict[str, int]] = {task.pk: {} for task in tasks}
    for task, language, major in sorted(versions):
        newest[task][language] = max(major, newest[task].get(language, 0))
    return {
        task.pk: {language: in_language(language, newest[task.pk]) or 0 for language in task.languages}
        for task in tasks
    }


def add_first(task: Task, texts: Mapping[str, str]) -> None:
    """Store a task's first guidelines, as version 1.0 in each language.

    texts: Markdown by language.
    """
    Guidelines.objects.bulk_create(
        Guidelines(task=task, language=language, text=text) for language, text in texts.items()
    )


def check_version(task: Task, language: str, text: str) -> None:
    """Raise NotFound or InvalidAnswer if the task cannot have these guidelines."""
    if task.languages and language not in {*task.languages, ENGLISH}:
        raise NotFound(f"This task has no records in {language!r}, so no annotator would see these guidelines.")
    if not text.strip():
        raise InvalidAnswer("The guidelines are empty. Write rules for annotators to follow.")
    if fault := guidelines_fault(text):
        raise InvalidAnswer(f"The guidelines {fault}.")


@transaction.atomic
def new_version(task: Task, language: str, text: str, *, major: bool, after: int | None = None) -> Guidelines:
    """Add a version of the guidelines in a language.

    If the language has no guidelines yet, a minor version is a translation of the guidelines in force, and gets the
    same number.

    major: whether this is a major version, after which annotators must take the test again.
    after: key of the version that the text is based on; None if unknown.

    Raise WrongStage if a newer version than `after` is in force.
    """
    check_version(task, language, text)
    # Lock the task, so that two versions added at the same time don't get the same number.
    Task.all_objects.select_for_update(no_key=True).get(pk=task.pk)
    newest = current(task, language)
    if after is not None and newest is not None and newest.pk != after:
        raise WrongStage(
            f"Version {newest.version} was added in the meantime, but your text is based on an older version. Check "
            "what has changed, update your text, and add it again."
        )
    if newest is None:
        number = (1, 0)
    elif major:
        number = (newest.major + 1, 0)
    else:
        number = (newest.major, newest.minor + (newest.language == language))
    return Guidelines.objects.create(task=task, language=language, major=number[0], minor=number[1], text=text)


def qualified(task: Task) -> QuerySet[Qualification]:
    """Return the valid qualifications. Their major version of the guidelines is still in force."""
    is_valid = Q(pk=None)
    for language, major in majors(task).items():
        is_valid |= Q(language=language, major=major)
    return task.qualifications.filter(is_valid).order_by()


def qualified_annotators(tasks: Collection[Task]) -> dict[int, dict[str, set[int]]]:
    """Return the keys of qualified annotators, by task key and language.

    The number of queries does not depend on the number of tasks.
    """
    annotators: dict[int, dict[str, set[int]]] = {task.pk: {} for task in tasks}
    in_force = majors_of(tasks)
    qualifications = Qualification.objects.filter(task__in=tasks).order_by()
    for task, language, major, person in qualifications.values_list("task_id", "language", "major", "annotator_id"):
        if in_force[task].get(language) == major:
            annotators[task].setdefault(language, set()).add(person)
    return annotators


def qualification_status(
    annotator: Annotator, tested: list[Task]
) -> tuple[dict[int, dict[str, int]], dict[int, set[str]]]:
    """Return the major versions of the guidelines in force, and the languages where the annotator passed the test.

    Both are mappings by task key.
    """
    columns = ("task_id", "language", "major")
    held = Qualification.objects.filter(annotator=annotator, task__in=tested).order_by()
    versions = Guidelines.objects.filter(task__in=tested).order_by().values_list(*columns, Value(0))
    # Use a single query, because this runs for every answer.
    rows = list(versions.union(held.values_list(*columns, Value(1)), all=True))
    majors = majors_in_force(tested, [row[:3] for row in rows if not row[3]])
    passed: dict[int, set[str]] = {task.pk: set() for task in tested}
    for task, language, major, is_held in rows:
        if is_held and majors[task].get(language) == major:
            passed[task].add(language)
    return majors, passed
