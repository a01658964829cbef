"""The languages that tasks' files add to the list: known in this process once they have been looked for.

A process learns those of a task when it touches the task's kind. Whoever is told a code before, as when people are
entered or routes are written, asks here.
"""

from annotate.kinds import kind_of
from annotate.models import Task
from corpora.core.languages import LANGUAGES

HOW = (
    "is not a language code known here; write it as in de or zh-CN, or open a task whose --kind is a file that adds it "
    "in a table [languages.CODE]"
)


def learn_languages() -> None:
    """Give the languages of all tasks' files their names, in one statement."""
    files = Task.objects.filter(kind_file__contains="languages").order_by("pk")
    for slug, text in files.values_list("kind_slug", "kind_file").distinct():
        kind_of(slug, text)


def is_language(code: str) -> bool:
    """Whether a code is on the list or was added by a task's file. The tasks are asked only where it is not known."""
    if code not in LANGUAGES:
        learn_languages()
    return code in LANGUAGES
