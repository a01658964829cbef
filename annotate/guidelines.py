"""Which version of a task's guidelines holds, in which language."""

from collections.abc import Mapping

from annotate.models import Guidelines, Task

ENGLISH = "en"


def _newest(task: Task) -> dict[str, Guidelines]:
    newest: dict[str, Guidelines] = {}
    for version in task.guidelines.order_by("language", "-major", "-minor"):
        newest.setdefault(version.language, version)
    return newest


def _in(language: str, newest: Mapping[str, Guidelines]) -> Guidelines | None:
    return newest.get(language) or newest.get(ENGLISH) or next(iter(newest.values()), None)


def current(task: Task, language: str = ENGLISH) -> Guidelines | None:
    """The newest version in a language; where there is none in it, the English one, or whatever there is."""
    return _in(language, _newest(task))


def majors(task: Task) -> dict[str, int]:
    """Each language of the task's records -> the major version under which its test is to be passed."""
    newest = _newest(task)
    return {language: found.major if (found := _in(language, newest)) else 0 for language in task.languages}


def add_first(task: Task, texts: Mapping[str, str]) -> None:
    """Version 1.0 in each language. The task has none yet."""
    Guidelines.objects.bulk_create(
        Guidelines(task=task, language=language, text=text) for language, text in texts.items()
    )
